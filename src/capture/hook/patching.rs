//! The list of hooked functions: the one place that names them.

pub mod got;

mod body;
mod entry;
mod loader;
mod pages;
mod real;

pub use loader::{patch, patched, refresh, restore};
pub use real::prepare;

/// A function whose GOT entries are replaced.
#[derive(Debug, Clone, Copy)]
pub struct Hooked {
    /// Its symbol.
    pub name: &'static str,
    /// What the entries are made to point to.
    pub entry: usize,
    /// The real function; 0 if the process has none of that name.
    pub real: usize,
}

macro_rules! hooked {
    ($($name:ident)*) => {
        /// How many functions are hooked.
        pub const COUNT: usize = [$(stringify!($name)),*].len();

        /// Every hooked function.
        pub fn all() -> [Hooked; COUNT] {
            [$(Hooked {
                name: stringify!($name),
                entry: entry::$name as *const () as usize,
                real: real::$name.address(),
            }),*]
        }
    };
}

hooked! {
    malloc calloc realloc reallocarray free
    posix_memalign aligned_alloc memalign valloc pvalloc
    mmap mmap64 munmap mremap
    dlsym
}
