//! The role of a frame in trimming: library frames between the code that allocates and the allocator are removed.
//!
//! The leaf of a trimmed stack is the code that called the library to allocate. Trimming removes frames with
//! [`Role::Library`] from the leaf on, up to the first frame with another role. Name and file give the role:
//!
//! 1. A name that can only be the program's own decides. Without the debug information of its unit (`.dwo`) a function has
//!    its own name, but the file of code that was inlined into it.
//! 2. Else the file decides. A generic function of the library that is instantiated in the user's crate has the user's
//!    types in its name.
//! 3. If the file is unknown, the name decides.

use heapray_report::sources::{is_dependency_of_library, library_dir, possible_library_dir};

/// The role of a frame when a stack is trimmed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Role {
    /// Code that can be the cause of an allocation: the service, its dependencies, C code.
    Code,
    /// The standard library, or an allocator's wrapper. Trimming removes it.
    Library,
    /// Code of the C runtime that runs before the program's code. Only at the root; elsewhere it counts as [`Role::Code`].
    Entry,
}

/// Functions of the C library that run before the first function of a program or thread.
const ENTRIES: [&str; 9] = [
    "_start",
    "main", // the shim that rustc makes; a C program's own has a file
    "__libc_start_main",
    "__libc_start_main_impl",
    "__libc_start_call_main",
    "clone",
    "clone3",
    "__clone3",
    "start_thread",
];

/// Returns the role of a frame. An empty `file` and a `line` of 0 stand for unknown. `function` is
/// [`FunctionName::for_role`](super::names::FunctionName::for_role).
pub(crate) fn role(function: &str, file: &str, line: u32) -> Role {
    if is_allocator(function) {
        return Role::Library;
    }
    if file.is_empty() && ENTRIES.contains(&function) {
        return Role::Entry;
    }
    // Code that the compiler generated has line 0, and its file is often the crate's root file.
    // A user's directory may look like the library's, so the name must also be the library's.
    let name_decides = line == 0 || possible_library_dir(file).is_some();
    let library = (library_dir(file).is_some() && !is_own_name(function))
        || is_vendored(file)
        || (name_decides && is_library_name(function));
    if library { Role::Library } else { Role::Code }
}

/// Returns whether the module at `path` is the C library. Its code at a stack's root is [`Role::Entry`] under any name:
/// `start_thread` is a local symbol, and distributions strip local symbols.
pub(crate) fn is_c_runtime(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    ["libc.so", "libc-2", "libpthread", "ld-linux", "ld-musl"]
        .iter()
        .any(|start| name.starts_with(start))
}

/// Returns whether `file` belongs to a dependency of the standard library. hashbrown and its allocator interface count as library also if they come from crates.io: `HashMap` is made of hashbrown, and with
/// its raw table as the leaf, all maps of the program would be one call site.
fn is_vendored(file: &str) -> bool {
    is_dependency_of_library(file)
        || ["/hashbrown", "/allocator-api2"].iter().any(|package| {
            file.match_indices(package).any(|(at, _)| {
                // `cargo vendor` leaves the version out.
                let rest = &file[at + package.len()..];
                let has_version =
                    |rest: &str| rest.starts_with(|first: char| first.is_ascii_digit());
                rest.starts_with("/src/") || rest.strip_prefix('-').is_some_and(has_version)
            })
        })
}

/// Returns whether `function` is one of the compiler's allocation shims (their file is that of the user's
/// `#[global_allocator]`), heapray's wrapper or code inlined into it, or a method of another `GlobalAlloc`.
fn is_allocator(function: &str) -> bool {
    let shim = function.strip_prefix("__rustc::").unwrap_or(function);
    ["__rust_", "__rdl_", "__rg_"].iter().any(|kind| {
        shim.strip_prefix(kind).is_some_and(|what| {
            matches!(
                what,
                "alloc" | "alloc_zeroed" | "realloc" | "dealloc" | "no_alloc_shim_is_unstable_v2"
            )
        })
    }) || function.contains(" as core::alloc::global::GlobalAlloc>::")
        || [
            "heapray::alloc::",
            "<heapray::alloc::",
            "heapray::capture::",
        ]
        .iter()
        .any(|ours| function.starts_with(ours))
}

/// Crates whose name alone shows that code is the library's. See [`is_vendored`] for the last two.
const LIBRARIES: [&str; 5] = ["alloc", "core", "std", "hashbrown", "allocator_api2"];

/// Returns whether a demangled name belongs to the standard library, as far as the name shows that.
///
/// In `<T as Trait>::f` both must belong to the library. If `T` has no path (a generic parameter, a primitive, a reference),
/// the trait decides, because of the orphan rule. In `<T>::f` such a `T` is the library's: only the library can define
/// methods of it.
fn is_library_name(function: &str) -> bool {
    let Some(inner) = function.strip_prefix('<') else {
        return is_library_path(function);
    };
    match split_as(inner) {
        Some((of, of_trait)) => {
            (is_library_path(of) || head(of).is_none()) && is_library_path(of_trait)
        }
        None => is_library_path(inner) || is_of_primitive(inner),
    }
}

/// Returns whether the `T` in `<T>::f` is a slice, an array, a tuple, a pointer, or a name without a path.
fn is_of_primitive(inner: &str) -> bool {
    let is_name = |of: &str| !of.is_empty() && of.chars().all(char::is_alphanumeric);
    inner.starts_with(['[', '(', '*']) || inner.split_once(">::").is_some_and(|(of, _)| is_name(of))
}

/// Other crates in the library's directory.
const BUNDLED: [&str; 18] = [
    "__rustc",
    "addr2line",
    "backtrace",
    "backtrace_rs",
    "compiler_builtins",
    "core_arch",
    "core_simd",
    "gimli",
    "miniz_oxide",
    "object",
    "panic_abort",
    "panic_unwind",
    "proc_macro",
    "rustc_demangle",
    "std_detect",
    "std_float",
    "test",
    "unwind",
];

/// Returns whether a demangled name belongs to code outside of the library, whatever the file is: a path of another crate,
/// or a method of another crate's type or trait.
fn is_own_name(function: &str) -> bool {
    let is_own = |path: &str| {
        // Methods of slices, arrays, tuples and pointers are the library's, whatever the element type is.
        let is_made_of = path.starts_with(['[', '(', '*']);
        !is_made_of
            && head(path).is_some_and(|head| !LIBRARIES.contains(&head) && !BUNDLED.contains(&head))
    };
    let Some(inner) = function.strip_prefix('<') else {
        return is_own(function);
    };
    match split_as(inner) {
        Some((of, of_trait)) => is_own(of) || is_own(of_trait),
        None => is_own(inner),
    }
}

fn is_library_path(path: &str) -> bool {
    head(path).is_some_and(|head| LIBRARIES.contains(&head))
}

/// Returns the first segment of a path, or `None` if the path has a single segment. Skips `&`, `*`, `dyn` and `[`.
fn head(path: &str) -> Option<&str> {
    let path = ["&mut ", "&", "*const ", "*mut ", "dyn ", "["]
        .iter()
        .fold(path, |path, prefix| {
            path.strip_prefix(prefix).unwrap_or(path)
        });
    let end = path.find(|c: char| !(c.is_alphanumeric() || c == '_'))?;
    path[end..].starts_with("::").then(|| &path[..end])
}

/// Splits `T as Trait>::f` at the ` as ` that belongs to the outermost brackets.
fn split_as(inner: &str) -> Option<(&str, &str)> {
    let mut depth = 0usize;
    for (at, c) in inner.char_indices() {
        match c {
            '<' | '(' | '[' | '{' => depth += 1,
            // The `>` of `->` is not a bracket.
            '>' if inner[..at].ends_with('-') => {}
            '>' | ')' | ']' | '}' => depth = depth.checked_sub(1)?,
            ' ' if depth == 0 && inner[at..].starts_with(" as ") => {
                return Some((&inner[..at], &inner[at + " as ".len()..]));
            }
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    const RUSTC: &str = "/rustc/59807616e1fa2540724bfbac14d7976d7e4a3860";

    #[test]
    fn the_file_decides_where_it_is_known() {
        let std_file = |file: &str| format!("{RUSTC}/library/{file}");
        let cases = [
            ("alloc::raw_vec::finish_grow", std_file("alloc/src/raw_vec/mod.rs"), Role::Library),
            ("<alloc::vec::Vec<app::Row>>::push", std_file("alloc/src/vec/mod.rs"), Role::Library),
            // A generic function of the library, instantiated for the user's type.
            ("core::convert::Into::into", std_file("core/src/convert/mod.rs"), Role::Library),
            ("<[app::Row] as alloc::slice::Join>::join", std_file("alloc/src/slice.rs"), Role::Library),
            ("<alloc::boxed::Box<app::Row>>::new", std_file("alloc/src/boxed.rs"), Role::Library),
            ("push<app::Row>", std_file("alloc/src/vec/mod.rs"), Role::Library),
            ("panic_unwind::real_imp::panic", std_file("panic_unwind/src/gcc.rs"), Role::Library),
            // Without the unit's debug information, the file is that of inlined code.
            ("app::cart::add", std_file("alloc/src/raw_vec/mod.rs"), Role::Code),
            ("app::cart::add::{closure#0}", std_file("alloc/src/raw_vec/mod.rs"), Role::Code),
            ("<app::Row>::add", std_file("alloc/src/raw_vec/mod.rs"), Role::Code),
            ("<app::Row as core::clone::Clone>::clone", std_file("alloc/src/raw_vec/mod.rs"), Role::Code),
            ("<alloc::vec::Vec<u8> as app::Encode>::encode", std_file("alloc/src/raw_vec/mod.rs"), Role::Code),
            ("__rust_begin_short_backtrace", std_file("std/src/sys/backtrace.rs"), Role::Library),
            // The user's code with names of the library in it.
            ("<alloc::vec::Vec<u8> as app::Encode>::encode", "/home/me/app/src/encode.rs".into(), Role::Code),
            ("std::fmt::helper", "/home/me/app/src/std.rs".into(), Role::Code),
            ("alloc::alloc::alloc", "/home/dev/.rustup/toolchains/stable/lib/rustlib/src/rust/library/alloc/src/alloc.rs".into(), Role::Library),
            ("alloc::alloc::alloc", "/usr/src/rustc-1.85.0/library/alloc/src/alloc.rs".into(), Role::Library),
            ("<[app::Row]>::to_vec", "/usr/src/rustc-1.97.1/library/alloc/src/slice.rs".into(), Role::Library),
            ("__rust_begin_short_backtrace", "/usr/src/rustc-1.97.1/library/std/src/sys/backtrace.rs".into(), Role::Library),
            ("app::cart::add", "/usr/src/rustc-1.97.1/library/alloc/src/raw_vec/mod.rs".into(), Role::Code),
            ("<[app::Row]>::to_vec", "/build/rust/library/alloc/src/slice.rs".into(), Role::Library),
            ("alloc::alloc::alloc", "library/alloc/src/alloc.rs".into(), Role::Library),
            // A user's directory that looks like the library's.
            ("catalogue::books::load", "/home/me/library/core/src/books.rs".into(), Role::Code),
            ("hashbrown::raw::RawTableInner::new_uninitialized", "/rust/deps/hashbrown-0.15.5/src/raw/mod.rs".into(), Role::Library),
            ("hashbrown::raw::RawTableInner::new_uninitialized", "/home/dev/.cargo/registry/src/index-1949cf8c6b5b557f/hashbrown-0.17.1/src/raw/mod.rs".into(), Role::Library),
            ("hashbrown::raw::RawTableInner::new_uninitialized", "/home/me/app/vendor/hashbrown/src/raw/mod.rs".into(), Role::Library),
            ("hashbrown_json::parse", "/home/dev/.cargo/registry/src/index-1949cf8c6b5b557f/hashbrown-json-0.1.0/src/lib.rs".into(), Role::Code),
            ("bytes::bytes_mut::BytesMut::with_capacity", "/home/dev/.cargo/registry/src/index-1949cf8c6b5b557f/bytes-1.11.0/src/bytes_mut.rs".into(), Role::Code),
            ("rustc_hash::add", "/rustc/src/lib.rs".into(), Role::Code),
            ("main", "/home/me/app/main.c".into(), Role::Code),
        ];
        for (function, file, expected) in cases {
            assert_eq!(role(function, &file, 7), expected, "{function} in {file}");
        }
    }

    #[test]
    fn the_name_decides_where_no_file_is_known() {
        let cases = [
            ("alloc::vec::Vec<T,A>::push", Role::Library),
            ("std::rt::lang_start_internal", Role::Library),
            ("core::ptr::drop_in_place<app::Row>", Role::Library),
            ("<alloc::vec::Vec<app::Row>>::push", Role::Library),
            (
                "<alloc::vec::Vec<T> as core::clone::Clone>::clone",
                Role::Library,
            ),
            ("<T as alloc::string::ToString>::to_string", Role::Library),
            ("<&mut T as core::iter::Iterator>::next", Role::Library),
            ("<[u8] as alloc::slice::ToOwned>::to_owned", Role::Library),
            (
                "<[alloc::string::String] as alloc::slice::Join>::join",
                Role::Library,
            ),
            (
                "<fn(u8) -> u8 as core::ops::function::FnOnce<(u8,)>>::call_once",
                Role::Library,
            ),
            ("<[u8]>::to_vec", Role::Library),
            ("<[app::Row]>::to_vec", Role::Library),
            ("<str>::repeat", Role::Library),
            ("<*const app::Row>::read", Role::Library),
            ("<app::Row>::add", Role::Code),
            ("<app::Row as core::clone::Clone>::clone", Role::Code),
            ("<alloc::vec::Vec<T> as app::Encode>::encode", Role::Code),
            (
                "<alloc::vec::Vec<<app::Row as core::iter::Iterator>::Item> as app::Encode>::encode",
                Role::Code,
            ),
            ("<app::Table as app::Encode>::encode", Role::Code),
            ("app::main", Role::Code),
            ("allocator::grow", Role::Code),
            ("core_affinity::set", Role::Code),
            ("std", Role::Code),
            ("qsort", Role::Code),
            ("", Role::Code),
            ("<", Role::Code),
            ("< as >", Role::Code),
            ("_start", Role::Entry),
            ("clone3", Role::Entry),
            ("main", Role::Entry),
        ];
        for (function, expected) in cases {
            assert_eq!(role(function, "", 0), expected, "{function}");
        }
    }

    #[test]
    fn the_name_helps_where_the_compiler_gave_no_line() {
        let root = "/home/me/app/src/lib.rs";
        let hashbrown = "hashbrown::raw::TableLayout::calculate_layout_for";
        assert_eq!(role(hashbrown, root, 0), Role::Library);
        assert_eq!(role(hashbrown, root, 7), Role::Code);
        assert_eq!(role("app::main", root, 0), Role::Code);
        let library = format!("{RUSTC}/library/core/src/ub_checks.rs");
        assert_eq!(role("app::main", &library, 0), Role::Code);
        assert_eq!(role("main", &library, 0), Role::Library);
    }

    #[test]
    fn allocators_are_passed_over_whatever_their_file() {
        let user = "/home/me/app/src/main.rs";
        for function in [
            "__rust_alloc",
            "__rust_realloc",
            "__rustc::__rust_alloc_zeroed",
            "__rustc::__rg_alloc",
            "__rdl_alloc",
            "<heapray::alloc::Alloc<std::alloc::System> as core::alloc::global::GlobalAlloc>::alloc",
            "<tikv_jemallocator::Jemalloc as core::alloc::global::GlobalAlloc>::realloc",
            "heapray::alloc::record",
        ] {
            assert_eq!(role(function, user, 7), Role::Library, "{function}");
        }
        for function in [
            "__rust_begin_short_backtrace",
            "heapray::allocation_report",
            "my::__rust_alloc",
        ] {
            assert_eq!(role(function, user, 7), Role::Code, "{function}");
        }
    }

    #[test]
    fn the_c_library_is_known_by_its_file_name() {
        for path in [
            "/lib/x86_64-linux-gnu/libc.so.6",
            "/lib64/ld-linux-x86-64.so.2",
            "/lib/ld-musl-x86_64.so.1",
        ] {
            assert!(is_c_runtime(path), "{path}");
        }
        for path in [
            "/usr/lib/libcrypto.so.3",
            "/home/libc.so/app",
            "/usr/lib/libcurl.so.4",
        ] {
            assert!(!is_c_runtime(path), "{path}");
        }
    }
}
