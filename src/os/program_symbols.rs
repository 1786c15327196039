//! Functions of the program that it does not export, by the symbol table of its file. A stripped program has none.

use core::ffi::{CStr, c_void};
use std::path::Path;
use std::sync::OnceLock;

use super::elf::{Sections, u16_at, u32_at, u64_at};

/// The functions that are looked for: those with which a static jemalloc or mimalloc tells of its memory.
const NAMES: [&CStr; 3] = [c"_rjem_mallctl", c"mallctl", c"mi_process_info"];

/// The addresses of [`NAMES`]. The file is read once, in parts, so that it does not come into memory.
static ADDRESSES: OnceLock<[Option<usize>; NAMES.len()]> = OnceLock::new();

/// Looks for all functions, so that nobody waits for that later: a large program has many names.
pub(crate) fn look_for_all() {
    ADDRESSES.get_or_init(|| find().unwrap_or_default());
}

/// Returns the function's address in this process. Only [`NAMES`] are looked for.
pub(super) fn function(name: &CStr) -> Option<*mut c_void> {
    look_for_all();
    let addresses = ADDRESSES.get()?;
    let at = NAMES.iter().position(|known| *known == name)?;
    addresses[at].map(|address| address as *mut c_void)
}

/// Bytes that are read at once: a multiple of a symbol's size.
const PART: u64 = 24 << 11;

/// Size of a symbol in the table.
const SYMBOL: usize = 24;

/// `st_info`: a function.
const STT_FUNC: u8 = 2;

fn find() -> Option<[Option<usize>; NAMES.len()]> {
    let sections = Sections::of(Path::new("/proc/self/exe"))?;
    // SAFETY: no precondition.
    let entry = unsafe { libc::getauxval(libc::AT_ENTRY) };
    let bias = (entry as u64).wrapping_sub(sections.entry());
    let names = offsets_of_names(&sections);
    let mut found = [None; NAMES.len()];
    let mut at = 0;
    loop {
        let part = sections.part(".symtab", at, PART);
        for symbol in part.chunks_exact(SYMBOL) {
            let name = u64::from(u32_at(symbol, 0)?);
            let Some(&(_, which)) = names.iter().find(|(offset, _)| *offset == name) else {
                continue;
            };
            let is_defined_function = symbol[4] & 0xf == STT_FUNC && u16_at(symbol, 6)? != 0;
            if is_defined_function {
                let address = u64_at(symbol, 8)?.wrapping_add(bias);
                found[which] = usize::try_from(address).ok();
            }
        }
        if (part.len() as u64) < PART {
            return Some(found);
        }
        at += PART;
    }
}

/// Returns the offsets of the names in the table of names, and which name it is. A linker may store a name as the end of a
/// longer one.
fn offsets_of_names(sections: &Sections) -> Vec<(u64, usize)> {
    let longest = NAMES.iter().map(|name| name.count_bytes() + 1).max();
    let overlap = longest.unwrap_or(0) as u64;
    let mut offsets = Vec::new();
    let mut at = 0;
    loop {
        // Parts overlap, so that a name at the end of one is whole in the next.
        let part = sections.part(".strtab", at, PART + overlap);
        for (which, name) in NAMES.iter().enumerate() {
            let name = name.to_bytes_with_nul();
            let matches = part.windows(name.len()).enumerate();
            let matches = matches.filter(|(_, text)| *text == name);
            offsets.extend(matches.map(|(start, _)| (at + start as u64, which)));
        }
        if (part.len() as u64) < PART {
            return offsets;
        }
        at += PART;
    }
}
