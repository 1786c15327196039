//! Finds the families of functions that a session does not record: each is called once at the start of the session.

use std::hint::black_box;
use std::ptr::null_mut;

use crate::capture::record::{self, seen};
use crate::capture::{arch, hook};

/// Returns one note for each family that is not recorded, or not in all modules. The hooks must be in place.
pub(super) fn unseen() -> Vec<String> {
    let mut notes = Vec::new();
    if hook::IS_NATIVE {
        let families: [(fn(), u8, &str); 4] = [
            (malloc, seen::GOT | seen::GLOBAL, "malloc of C code"),
            (
                posix_memalign,
                seen::ALIGNED | seen::GOT | seen::GLOBAL,
                "posix_memalign of C code",
            ),
            (
                aligned_alloc,
                seen::ALIGNED | seen::GOT | seen::GLOBAL,
                "aligned_alloc of C code",
            ),
            (mmap, seen::MAPPING, "mmap"),
        ];
        for (call, by, name) in families {
            if record::probe(call) & by == 0 {
                notes.push(format!(
                    "calls of {name} are not recorded: the loader gives heapray another function than the rest of the program"
                ));
            }
        }
    }
    notes.extend(hook::not_hooked());
    notes
}

fn malloc() {
    // SAFETY: the block is freed at once, and `free` accepts null.
    unsafe { libc::free(black_box(libc::malloc(black_box(48)))) };
}

fn posix_memalign() {
    let mut block = null_mut();
    // SAFETY: `block` is valid for a write. The block is freed at once, and `free` accepts null.
    unsafe {
        libc::posix_memalign(&raw mut block, 64, black_box(128));
        libc::free(black_box(block));
    }
}

fn aligned_alloc() {
    // SAFETY: the block is freed at once, and `free` accepts null.
    unsafe { libc::free(black_box(libc::aligned_alloc(64, black_box(128)))) };
}

fn mmap() {
    let (size, how) = (arch::page_size(), libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    // SAFETY: the mapping is new, and is unmapped at once.
    unsafe {
        let pages = libc::mmap(null_mut(), size, libc::PROT_READ, how, -1, 0);
        if pages != libc::MAP_FAILED {
            libc::munmap(black_box(pages), size);
        }
    }
}
