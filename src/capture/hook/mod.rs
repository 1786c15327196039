//! Records allocations by patching the GOT: `got` finds and writes the entries, `entry` has their new targets, and `body`
//! records and calls the real function. The list of hooked functions is here, and nowhere else.
//!
//! Where there is no GOT to patch (another system, processor or libc), `portable.rs` replaces this module: nothing is
//! patched, and only [`crate::Alloc`] records allocations.
#![allow(non_snake_case)] // the functions are named after the functions that they replace

pub mod got;

mod body;
mod entry;
mod loader;
mod lookup;
mod operators;
mod pages;
mod real;
#[cfg(target_arch = "aarch64")]
mod unsampled;

pub use loader::{not_hooked, patch, patched, refresh, restore};
pub use operators::choose as choose_operators;
pub use real::prepare;

/// Functions that are hooked together or not at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Family {
    /// `malloc` and its like.
    Malloc,
    /// `posix_memalign` and its like.
    Aligned,
    /// C++'s `operator new` and `delete`.
    Operators,
    /// `mmap` and its like.
    Mappings,
    /// Functions that look up functions by name.
    Loader,
}

impl Family {
    /// Number of families.
    pub const COUNT: usize = Family::Loader as usize + 1;

    /// Returns the family's name in messages.
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

/// Set if there are GOT entries to patch.
pub const IS_NATIVE: bool = true;

/// Function whose GOT entries are replaced.
#[derive(Debug, Clone, Copy)]
pub struct Hooked {
    /// The function's symbol.
    pub name: &'static str,
    /// The function's family.
    pub family: Family,
    /// New target of the GOT entries.
    pub entry: usize,
    /// The real function; 0 if the process has no such function, or the function is not to be hooked.
    pub real: usize,
}

macro_rules! hooked {
    ($($family:ident: $($name:ident)*;)*) => {
        /// Number of hooked functions.
        pub const COUNT: usize = [$($(stringify!($name)),*),*].len();

        /// Returns all hooked functions.
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
