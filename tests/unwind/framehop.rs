//! Tests random call paths through C: every captured stack equals that of framehop, an unwinder that shares no code with
//! libgcc.

use std::cell::RefCell;
use std::ffi::c_void;
use std::ops::Range;

use crate::unwinder::{Numbers, Recorder, random_program};
#[cfg(target_arch = "aarch64")]
use framehop::aarch64::{
    CacheAarch64 as Cache, UnwindRegsAarch64 as UnwindRegs, UnwinderAarch64 as NativeUnwinder,
};
#[cfg(target_arch = "x86_64")]
use framehop::x86_64::{
    CacheX86_64 as Cache, UnwindRegsX86_64 as UnwindRegs, UnwinderX86_64 as NativeUnwinder,
};
use framehop::{ExplicitModuleSectionInfo, Module, Unwinder};
use heapray::capture::arch::registers_here;
use heapray_c_fixtures::{FUNCTIONS, Program};

struct Framehop {
    unwinder: NativeUnwinder<&'static [u8]>,
    cache: Cache,
}

/// Adds each module's `.eh_frame` and code from memory.
unsafe extern "C" fn add_module(info: *mut libc::dl_phdr_info, _: usize, data: *mut c_void) -> i32 {
    // SAFETY: the loader's structure and the unwinder below; the test loads and unloads nothing.
    unsafe {
        let (info, framehop) = (&*info, &mut *data.cast::<Framehop>());
        let headers = std::slice::from_raw_parts(info.dlpi_phdr, usize::from(info.dlpi_phnum));
        let load = |header: &libc::Elf64_Phdr| {
            let start = info.dlpi_addr + header.p_vaddr;
            start..start + header.p_memsz
        };
        let bytes = |range: &std::ops::Range<u64>| {
            std::slice::from_raw_parts(range.start as *const u8, (range.end - range.start) as usize)
        };
        let loads: Vec<_> = headers
            .iter()
            .filter(|header| header.p_type == libc::PT_LOAD)
            .collect();
        let text = loads
            .iter()
            .find(|header| header.p_flags & libc::PF_X != 0)
            .map(|header| load(header));
        let index = headers
            .iter()
            .find(|header| header.p_type == libc::PT_GNU_EH_FRAME)
            .map(load);
        let (Some(text), Some(index)) = (text, index) else {
            return 0;
        };
        // LSB 5.0, `.eh_frame_hdr`: four bytes, then a relative pointer to `.eh_frame`.
        let pointer = (index.start as *const i32).add(1);
        let frames = pointer as u64;
        let frames = frames.wrapping_add_signed(i64::from(pointer.read_unaligned()));
        let end = loads
            .iter()
            .map(|header| load(header))
            .find(|range| range.contains(&frames))
            .unwrap()
            .end;
        let frames = frames..end;
        let all = load(loads[0]).start..load(loads[loads.len() - 1]).end;
        framehop.unwinder.add_module(Module::new(
            String::new(),
            all.clone(),
            all.start,
            ExplicitModuleSectionInfo {
                base_svma: all.start,
                text: Some(bytes(&text)),
                text_svma: Some(text),
                eh_frame: Some(bytes(&frames)),
                eh_frame_svma: Some(frames),
                eh_frame_hdr: Some(bytes(&index)),
                eh_frame_hdr_svma: Some(index),
                ..Default::default()
            },
        ));
    }
    0
}

/// Facts about this thread's memory, which are read once.
struct Here {
    /// framehop may read at wrong addresses after a frame that it has misinterpreted. There may be no memory beyond the
    /// stack.
    stack: Range<u64>,
    /// The program's own code, without its libraries'.
    program: Range<u64>,
}

impl Here {
    fn new() -> Here {
        // SAFETY: structures that glibc and the loader fill; an address of this program's code.
        unsafe {
            let mut attributes: libc::pthread_attr_t = std::mem::zeroed();
            assert_eq!(
                libc::pthread_getattr_np(libc::pthread_self(), &mut attributes),
                0
            );
            let (mut lowest, mut size) = (std::ptr::null_mut(), 0);
            assert_eq!(
                libc::pthread_attr_getstack(&attributes, &mut lowest, &mut size),
                0
            );
            libc::pthread_attr_destroy(&mut attributes);
            let mut program = 0..0;
            libc::dl_iterate_phdr(Some(first_module), (&raw mut program).cast());
            let lowest = lowest as u64;
            Here {
                stack: lowest..lowest + size as u64,
                program,
            }
        }
    }

    /// Reads the word at `address`, if it is on the stack above `sp`.
    fn read(&self, sp: u64, address: u64) -> Result<u64, ()> {
        if address < sp || !address.is_multiple_of(8) || !self.stack.contains(&address) {
            return Err(());
        }
        // SAFETY: an aligned word of this thread's stack, outward of a frame that is being executed.
        Ok(unsafe { (address as *const u64).read_volatile() })
    }
}

/// Finds the memory of the module that the loader lists first: the program.
unsafe extern "C" fn first_module(
    info: *mut libc::dl_phdr_info,
    _: usize,
    data: *mut c_void,
) -> i32 {
    // SAFETY: the loader's structure, and the range above.
    unsafe {
        let info = &*info;
        let headers = std::slice::from_raw_parts(info.dlpi_phdr, usize::from(info.dlpi_phnum));
        let ends = headers
            .iter()
            .filter(|header| header.p_type == libc::PT_LOAD)
            .map(|header| info.dlpi_addr + header.p_vaddr + header.p_memsz);
        *data.cast::<Range<u64>>() = info.dlpi_addr..ends.max().unwrap();
    }
    1
}

thread_local! {
    static HERE: Here = Here::new();
    static BOTH: RefCell<(Recorder, Framehop, usize)> = {
        let mut framehop = Framehop { unwinder: NativeUnwinder::new(), cache: Cache::new() };
        // SAFETY: `add_module` expects the unwinder.
        unsafe { libc::dl_iterate_phdr(Some(add_module), (&raw mut framehop).cast()) };
        RefCell::new((Recorder::new(), framehop, 0))
    };
}

unsafe extern "C" fn capture(_: *mut Program) {
    let registers = registers_here();
    BOTH.with_borrow_mut(|(recorder, framehop, captures)| {
        // SAFETY: this thread's own registers.
        let ours = unsafe { recorder.capture(registers) };
        let start = UnwindRegs::new(registers.return_address, registers.sp, registers.bp);
        let mut read = |address: u64| HERE.with(|here| here.read(registers.sp, address));
        let mut theirs = Vec::new();
        let mut frames = framehop.unwinder.iter_frames(
            registers.return_address,
            start,
            &mut framehop.cache,
            &mut read,
        );
        while let Ok(Some(frame)) = frames.next() {
            theirs.push(frame.address());
        }
        assert_eq!(ours.mark, None);
        // On AArch64 framehop does not read the rules of functions that sign their return address, as libraries' functions
        // do, and it takes a frame whose x29 is 0 for the last one. So only the program's own frames are compared. The
        // frames beyond them start the thread.
        let last = if cfg!(target_arch = "aarch64") {
            let is_own = |address: &&u64| HERE.with(|here| here.program.contains(address));
            let own = ours.addresses.iter().take_while(is_own).count();
            assert!(ours.addresses.len() - own <= 3);
            own
        } else {
            assert_eq!(ours.addresses.len(), theirs.len());
            theirs.len()
        };
        assert_eq!(ours.addresses[1..last], theirs[1..last]);
        *captures += 1;
    });
}

#[test]
fn ten_thousand_stacks_of_random_paths_equal_those_of_framehop() {
    // framehop loses the stack in functions that realign it. There, heapray agrees with libgcc.
    let realign = |index: &usize| matches!(index % 7, 4 | 5);
    let functions: Vec<_> = (0..FUNCTIONS.len())
        .filter(|index| !realign(index))
        .map(|index| FUNCTIONS[index])
        .collect();
    let mut numbers = Numbers(7);
    for _ in 0..20 {
        let bytes = random_program(&mut numbers, 500, 50);
        // SAFETY: all functions are made to run a program.
        unsafe { Program::run(&bytes, &functions, capture, functions[0]) };
    }
    assert!(BOTH.with_borrow(|both| both.2) >= 10_000);
}
