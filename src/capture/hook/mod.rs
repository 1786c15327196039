//! Seeing allocations by patching the GOT: `got` finds and writes the entries, `entry` is what they point to,
//! `body` records and calls the real function. The list of hooked functions is here, and nowhere else.
//!
//! Where there is no GOT to patch (another system, processor or libc), `portable.rs` is in its place: nothing is patched,
//! and [`crate::Alloc`] is the way to see allocations.
#![allow(non_snake_case)] // functions have the names of what they stand for

pub mod got;

mod body;
mod entry;
mod loader;
mod lookup;
mod operators;
mod pages;
mod real;

pub use loader::{not_hooked, patch, patched, refresh, restore};
pub use operators::choose as choose_operators;
pub use real::prepare;

/// Functions that are seen or not seen together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Family {
    /// `malloc` and its like.
    Malloc,
    /// Those that align blocks.
    Aligned,
    /// C++'s `operator new` and `delete`.
    Operators,
    /// `mmap` and its like.
    Mappings,
    /// Those that look functions up.
    Loader,
}

impl Family {
    /// How many there are.
    pub const COUNT: usize = Family::Loader as usize + 1;

    /// What it is called in messages.
    #[must_use]
    pub fn title(self) -> &'static str {
        match self {
            Family::Malloc => "malloc and its like",
            Family::Aligned => "posix_memalign and its like",
            Family::Operators => "C++'s operators new and delete",
            Family::Mappings => "mmap and its like",
            Family::Loader => "dlsym",
        }
    }
}

/// Whether there are GOT entries to patch.
pub const IS_NATIVE: bool = true;

/// A function whose GOT entries are replaced.
#[derive(Debug, Clone, Copy)]
pub struct Hooked {
    /// Its symbol.
    pub name: &'static str,
    /// What it belongs to.
    pub family: Family,
    /// What the entries are made to point to.
    pub entry: usize,
    /// The real function; 0 if the process has none of that name, or it is not to be hooked.
    pub real: usize,
}

macro_rules! hooked {
    ($($family:ident: $($name:ident)*;)*) => {
        /// How many functions are hooked.
        pub const COUNT: usize = [$($(stringify!($name)),*),*].len();

        /// Every hooked function.
        pub fn all() -> [Hooked; COUNT] {
            [$($(Hooked {
                name: stringify!($name),
                family: Family::$family,
                entry: entry::$name as *const () as usize,
                real: if Family::$family == Family::Operators && !operators::are_chosen() {
                    0
                } else {
                    real::$name.address()
                },
            }),*),*]
        }
    };
}

hooked! {
    Malloc: malloc calloc realloc reallocarray free free_sized free_aligned_sized;
    Aligned: posix_memalign aligned_alloc memalign valloc pvalloc;
    Operators:
        _Znwm _Znam _ZnwmRKSt9nothrow_t _ZnamRKSt9nothrow_t
        _ZnwmSt11align_val_t _ZnamSt11align_val_t
        _ZnwmSt11align_val_tRKSt9nothrow_t _ZnamSt11align_val_tRKSt9nothrow_t
        _ZdlPv _ZdaPv _ZdlPvm _ZdaPvm _ZdlPvRKSt9nothrow_t _ZdaPvRKSt9nothrow_t
        _ZdlPvSt11align_val_t _ZdaPvSt11align_val_t _ZdlPvmSt11align_val_t _ZdaPvmSt11align_val_t
        _ZdlPvSt11align_val_tRKSt9nothrow_t _ZdaPvSt11align_val_tRKSt9nothrow_t;
    Mappings: mmap mmap64 munmap mremap;
    Loader: dlsym dlvsym;
}
