//! Finds the GOT entries of every loaded ELF object that name a hooked function, points them to our entries, and restores
//! the originals.
//!
//! Rust calls `malloc` through `GLOB_DAT` slots, C mostly through `JUMP_SLOT`, and tables of functions hold `R_X86_64_64`
//! (`R_AARCH64_ABS64`): all three are written. Slots in pages that the loader made read-only (RELRO) are made writable for
//! the write.
//!
//! Everything happens inside `dl_iterate_phdr`'s callback, under the loader's lock: no object can be unmapped while
//! its slots are read or written.

use core::cell::Cell;
use core::ffi::{CStr, c_char, c_int, c_void};
use core::slice;
use core::sync::atomic::{AtomicUsize, Ordering};
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError, TryLockError};

use super::pages::{self, page_of};
use super::{Family, Hooked};
use crate::capture::arch::page_size;

/// Former content of the patched slots, by the slot's address.
static ORIGINALS: Mutex<Originals> = Mutex::new(None);

type Originals = Option<HashMap<usize, usize>>;

/// Result of [`patch`].
#[derive(Debug, Clone, Copy, Default)]
pub struct Patched {
    /// Slots that point to our entries now.
    pub slots: usize,
    /// Slots to patch later, because another thread is opening their object and the loader is still working on it.
    pub too_early: usize,
    /// Slots that stay as they are because the system does not let their pages be written.
    pub refused: usize,
    /// Slots that hold another function, which is not hooked, by [`Family`].
    pub others: [usize; Family::COUNT],
}

/// Points every slot of every loaded object to our entries, except those that the loader still works on.
///
/// The loader lists an object before it fills the object's slots, and then makes its RELRO pages read-only. Until then, our
/// store and our change of the page's protection could collide with the loader's. `wait_no_longer` also patches slots that
/// look unfinished for good, such as those of pages that something else has made writable.
pub fn patch(wait_no_longer: bool) -> Patched {
    patch_all(originals(), wait_no_longer)
}

/// Does what [`patch`] does, if no other thread walks the objects just now and `is_wanted` is still true then.
pub fn try_patch(is_wanted: impl Fn() -> bool) -> Option<Patched> {
    let originals = match ORIGINALS.try_lock() {
        Ok(originals) => originals,
        Err(TryLockError::Poisoned(originals)) => originals.into_inner(),
        Err(TryLockError::WouldBlock) => return None,
    };
    Some(if is_wanted() {
        patch_all(originals, false)
    } else {
        Patched::default()
    })
}

fn patch_all(originals: MutexGuard<'_, Originals>, wait_no_longer: bool) -> Patched {
    let (mut too_early, mut refused, mut others) = (0, 0, [0; Family::COUNT]);
    let slots = walk(originals, |originals, slot, hooked, object| {
        let now = slot.value();
        if now == hooked.entry {
            return true;
        }
        if hooked.real == 0 {
            return false;
        }
        if object.has_not_relocated(now) {
            too_early += 1;
            return false;
        }
        // Another interposer's slot, or an object's own allocator, stays as it is: blocks must not be given to the wrong
        // `free`. A slot that is not bound yet points into its own object.
        if now != hooked.real && !(slot.lazy && object.holds(now)) {
            others[hooked.family as usize] += usize::from(!is_stand_in(now));
            return false;
        }
        if !wait_no_longer && !object.runs() && object.is_to_be_protected(slot) {
            too_early += 1;
            return false;
        }
        originals.insert(slot.address, now);
        let is_written = slot.write(hooked.entry, object);
        refused += usize::from(!is_written);
        is_written
    });
    Patched {
        slots,
        too_early,
        refused,
        others,
    }
}

fn originals() -> MutexGuard<'static, Originals> {
    ORIGINALS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns whether the object that holds `code` has slots that point to our entries, so that the functions that the loader
/// has found for it are those that our entries call. Returns false if another thread walks the objects just now.
pub fn has_patched_slots(code: usize) -> bool {
    let Ok(originals) = ORIGINALS.try_lock() else {
        return false;
    };
    let patched = walk(originals, |_, slot, hooked, object| {
        object.holds(code) && hooked.family != Family::Loader && slot.value() == hooked.entry
    });
    patched != 0
}

/// Restores the originals in every object that is still loaded. Returns how many slots could not be written.
pub fn restore() -> usize {
    let mut kept = HashMap::new();
    let left = walk(originals(), |originals, slot, hooked, object| {
        if slot.value() != hooked.entry {
            return false;
        }
        let original = originals.get(&slot.address).copied().unwrap_or(hooked.real);
        let is_left = !slot.write(original, object);
        if is_left {
            kept.insert(slot.address, original);
        }
        is_left
    });
    *originals() = (!kept.is_empty()).then_some(kept);
    left
}

/// Returns the present content of every slot that names a hooked function, by the slot's address.
pub fn values() -> Vec<(usize, usize)> {
    let mut values = Vec::new();
    walk(originals(), |_, slot, _, _| {
        values.push((slot.address, slot.value()));
        true
    });
    values
}

/// The [`stand_ins`] that the program had before the first session.
static STAND_INS: OnceLock<Vec<usize>> = OnceLock::new();

/// Finds the stand-ins. Called once, before the first session.
pub(super) fn find_stand_ins() {
    STAND_INS.get_or_init(stand_ins);
}

/// Returns whether calls of `function` go through a patched slot.
pub(super) fn is_stand_in(function: usize) -> bool {
    let known = STAND_INS.get();
    known.is_some_and(|stand_ins| stand_ins.contains(&function))
}

/// Returns PLT entries that stand for a hooked function in the whole process.
///
/// Code that is linked to a fixed address takes a function's address without a GOT. The linker gives it the address of the
/// program's PLT entry, as the value of an undefined symbol. The loader gives the same address to every object that asks for
/// the function, so that pointers compare equal (x86-64 psABI, "Function Addresses").
pub fn stand_ins() -> Vec<usize> {
    let mut found = Vec::new();
    walk(originals(), |_, slot, _, _| {
        found.extend(slot.stand_in);
        true
    });
    found
}

/// Calls `visit` for every slot that names a hooked function. Returns how many calls returned true.
fn walk(
    mut originals: MutexGuard<'_, Originals>,
    visit: impl FnMut(&mut HashMap<usize, usize>, &Slot, &Hooked, &Object) -> bool,
) -> usize {
    struct Walk<'a, F> {
        visit: F,
        hooked: [Hooked; super::COUNT],
        originals: &'a mut HashMap<usize, usize>,
        count: usize,
    }

    unsafe extern "C" fn each<F>(
        info: *mut libc::dl_phdr_info,
        _size: usize,
        walk: *mut c_void,
    ) -> c_int
    where
        F: FnMut(&mut HashMap<usize, usize>, &Slot, &Hooked, &Object) -> bool,
    {
        // SAFETY: `walk` is the `Walk` that is handed to `dl_iterate_phdr` below, borrowed by nobody else meanwhile;
        // `info` is valid during the callback.
        let (walk, info) = unsafe { (&mut *walk.cast::<Walk<'_, F>>(), &*info) };
        // SAFETY: the object stays mapped during the callback, under the loader's lock.
        if let Some(object) = unsafe { Object::of(info) } {
            object.each_slot(|name, slot| {
                if let Some(hooked) = walk
                    .hooked
                    .iter()
                    .find(|hooked| hooked.name.as_bytes() == name)
                    && (walk.visit)(walk.originals, slot, hooked, &object)
                {
                    walk.count += 1;
                }
            });
        }
        0
    }

    fn run<F>(walk: &mut Walk<'_, F>)
    where
        F: FnMut(&mut HashMap<usize, usize>, &Slot, &Hooked, &Object) -> bool,
    {
        // SAFETY: the callback matches the type behind the pointer, and does not unwind: it calls only code of this
        // folder, which does not panic.
        unsafe { libc::dl_iterate_phdr(Some(each::<F>), (&raw mut *walk).cast()) };
    }

    let mut walk = Walk {
        visit,
        hooked: super::all(),
        originals: originals.get_or_insert_default(),
        count: 0,
    };
    run(&mut walk);
    walk.count
}

/// Loaded object, with the parts that lead to its GOT.
#[derive(Debug)]
struct Object {
    is_main: bool,
    bias: usize,
    start: usize,
    end: usize,
    relro: core::ops::Range<usize>,
    symbols: *const Symbol,
    strings: *const c_char,
    tables: [&'static [Relocation]; 2],
    /// The last page that was found to be read-only, or 0.
    read_only: Cell<usize>,
}

#[derive(Debug)]
#[repr(C)]
struct Relocation {
    offset: u64,
    info: u64,
    addend: i64,
}

#[derive(Debug)]
#[repr(C)]
struct Symbol {
    name: u32,
    info: u8,
    other: u8,
    section: u16,
    value: u64,
    size: u64,
}

/// A symbol's section where it is defined elsewhere (`SHN_UNDEF`).
const UNDEFINED: u16 = 0;

/// Entries of the dynamic section (System V gABI, chapter 5).
mod tag {
    pub(super) const PLTRELSZ: u64 = 2;
    pub(super) const STRTAB: u64 = 5;
    pub(super) const SYMTAB: u64 = 6;
    pub(super) const RELA: u64 = 7;
    pub(super) const RELASZ: u64 = 8;
    pub(super) const JMPREL: u64 = 23;
}

/// Relocation types (x86-64 psABI, table 4.9).
#[cfg(target_arch = "x86_64")]
mod relocation {
    pub(super) const ABSOLUTE_64: u32 = 1;
    pub(super) const GLOB_DAT: u32 = 6;
    pub(super) const JUMP_SLOT: u32 = 7;
}

/// Relocation types (AAELF64, table 5-7 and "Dynamic relocations").
#[cfg(target_arch = "aarch64")]
mod relocation {
    pub(super) const ABSOLUTE_64: u32 = 257;
    pub(super) const GLOB_DAT: u32 = 1025;
    pub(super) const JUMP_SLOT: u32 = 1026;
}

impl Object {
    /// # Safety
    /// `info` describes an object that stays mapped for as long as the result lives.
    unsafe fn of(info: &libc::dl_phdr_info) -> Option<Object> {
        // SAFETY: the loader's own array of program headers, and its own string.
        let (headers, path) = unsafe {
            (
                slice::from_raw_parts(info.dlpi_phdr, info.dlpi_phnum.into()),
                if info.dlpi_name.is_null() {
                    c""
                } else {
                    CStr::from_ptr(info.dlpi_name)
                },
            )
        };
        // The vDSO is read-only, and the loader must not find its own functions replaced.
        let file = path
            .to_bytes()
            .rsplit(|&byte| byte == b'/')
            .next()
            .unwrap_or_default();
        if file.starts_with(b"linux-vdso") || file.starts_with(b"ld-linux") {
            return None;
        }
        let bias = info.dlpi_addr as usize;
        let mut object = Object {
            // The loader has no name for the program itself.
            is_main: path.is_empty(),
            bias,
            start: usize::MAX,
            end: 0,
            relro: 0..0,
            symbols: core::ptr::null(),
            strings: core::ptr::null(),
            tables: [&[], &[]],
            read_only: Cell::new(0),
        };
        let mut dynamic = None;
        for header in headers {
            let start = bias.wrapping_add(header.p_vaddr as usize);
            match header.p_type {
                libc::PT_LOAD => {
                    object.start = object.start.min(start);
                    object.end = object.end.max(start + header.p_memsz as usize);
                }
                // Whole pages, as the loader protects them.
                libc::PT_GNU_RELRO => {
                    object.relro = page_of(start)..page_of(start + header.p_memsz as usize);
                }
                libc::PT_DYNAMIC => dynamic = Some(start as *const [u64; 2]),
                _ => {}
            }
        }
        // SAFETY: the dynamic section is mapped (it lies in a PT_LOAD segment) and ends with a DT_NULL entry.
        unsafe { object.read_dynamic(dynamic?) };
        (!object.symbols.is_null() && !object.strings.is_null()).then_some(object)
    }

    /// # Safety
    /// `entry` points to the object's mapped dynamic section.
    unsafe fn read_dynamic(&mut self, mut entry: *const [u64; 2]) {
        let mut table = [(0, 0); 2];
        // SAFETY: up to DT_NULL the section is mapped; the addresses in it are those of the object's own tables,
        // which the loader itself reads. It turns them into absolute ones where the section is writable.
        unsafe {
            while (*entry)[0] != 0 {
                let [tag, value] = *entry;
                let address = if (value as usize) < self.start {
                    self.bias + value as usize
                } else {
                    value as usize
                };
                match tag {
                    tag::STRTAB => self.strings = address as *const c_char,
                    tag::SYMTAB => self.symbols = address as *const Symbol,
                    tag::RELA => table[0].0 = address,
                    tag::RELASZ => table[0].1 = value as usize,
                    tag::JMPREL => table[1].0 = address,
                    tag::PLTRELSZ => table[1].1 = value as usize,
                    _ => {}
                }
                entry = entry.add(1);
            }
            for (target, (address, bytes)) in self.tables.iter_mut().zip(table) {
                if address != 0 {
                    *target = slice::from_raw_parts(
                        address as *const Relocation,
                        bytes / size_of::<Relocation>(),
                    );
                }
            }
        }
    }

    fn holds(&self, address: usize) -> bool {
        (self.start..self.end).contains(&address)
    }

    /// Returns whether a slot that holds `value` was not filled in yet: it has the file's content, which is 0 or the address
    /// of a PLT entry as if the object were mapped at 0.
    fn has_not_relocated(&self, value: usize) -> bool {
        value == 0 || (value < self.start && self.holds(self.bias.wrapping_add(value)))
    }

    /// Returns whether code of the object runs already, so that the loader has finished with it: the program, and the object
    /// that heapray is part of.
    fn runs(&self) -> bool {
        self.is_main || self.holds(patch as *const () as usize)
    }

    /// Returns whether the loader will make the slot's page read-only and has not done so yet, or the system does not say.
    fn is_to_be_protected(&self, slot: &Slot) -> bool {
        self.relro.contains(&slot.address) && self.is_read_only(slot) != Some(true)
    }

    /// Returns whether the slot's page is read-only. The system is asked once: a page that the loader has protected stays
    /// so.
    fn is_read_only(&self, slot: &Slot) -> Option<bool> {
        let page = page_of(slot.address);
        if self.read_only.get() == page {
            return Some(true);
        }
        let is_read_only = !pages::is_writable(page)?;
        if is_read_only {
            self.read_only.set(page);
        }
        Some(is_read_only)
    }

    /// Calls `visit` with the symbol's name for each relocation that may hold a function's address.
    fn each_slot(&self, mut visit: impl FnMut(&[u8], &Slot)) {
        for entry in self.tables.iter().copied().flatten() {
            let kind = entry.info as u32;
            let symbol = (entry.info >> 32) as usize;
            let plain = matches!(kind, relocation::GLOB_DAT | relocation::JUMP_SLOT)
                || (kind == relocation::ABSOLUTE_64 && entry.addend == 0);
            let address = self.bias.wrapping_add(entry.offset as usize);
            if !plain
                || symbol == 0
                || !self.holds(address)
                || !address.is_multiple_of(size_of::<usize>())
            {
                continue;
            }
            // SAFETY: a relocation's symbol index is one of the object's symbol table, and a symbol's name is an
            // offset of a NUL-terminated string in its string table: the loader has read both.
            let (symbol, name) = unsafe {
                let symbol = &*self.symbols.add(symbol);
                (
                    symbol,
                    CStr::from_ptr(self.strings.add(symbol.name as usize)),
                )
            };
            visit(
                name.to_bytes(),
                &Slot {
                    address,
                    lazy: kind == relocation::JUMP_SLOT,
                    stand_in: (symbol.section == UNDEFINED && symbol.value != 0)
                        .then(|| self.bias.wrapping_add(symbol.value as usize)),
                },
            );
        }
    }
}

/// GOT entry.
#[derive(Debug)]
struct Slot {
    address: usize,
    /// Set if the slot may still point into its object's PLT.
    lazy: bool,
    /// See [`stand_ins`].
    stand_in: Option<usize>,
}

impl Slot {
    fn cell(&self) -> &AtomicUsize {
        // SAFETY: the address is aligned (checked in `each_slot`) and inside the mapped object. Others read and write
        // it only as a whole word: the loader binds it so, and code calls through it.
        unsafe { AtomicUsize::from_ptr(self.address as *mut usize) }
    }

    fn value(&self) -> usize {
        self.cell().load(Ordering::Acquire)
    }

    /// Writes the slot. Returns false if its page could not be made writable.
    fn write(&self, value: usize, object: &Object) -> bool {
        // A writable page stays writable, because something made it so. If the system does not say, the loader has had its
        // time.
        let read_only =
            object.relro.contains(&self.address) && object.is_read_only(self) != Some(false);
        if read_only && !self.protect(libc::PROT_READ | libc::PROT_WRITE) {
            return false;
        }
        self.cell().store(value, Ordering::Release);
        if read_only {
            self.protect(libc::PROT_READ);
        }
        true
    }

    fn protect(&self, protection: c_int) -> bool {
        // SAFETY: the page lies in the object's RELRO range, which holds data only; it is readable before and after.
        unsafe {
            libc::mprotect(
                page_of(self.address) as *mut c_void,
                page_size(),
                protection,
            ) == 0
        }
    }
}
