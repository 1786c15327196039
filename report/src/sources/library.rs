//! Source files of Rust's standard library, wherever it was built.

/// Returns the directory of the standard library that contains `file`: `/rustc/<commit>/library` in official builds,
/// rustup's `…/lib/rustlib/src/rust/library` if its sources are installed, or `…/rustc-<version>/library` in a
/// distribution's build (Debian: `/usr/src/rustc-1.97.1/library`).
#[must_use]
pub fn library_dir(file: &str) -> Option<&str> {
    official(file)
        .or_else(|| installed(file))
        .or_else(|| distributions(file))
}

fn official(file: &str) -> Option<&str> {
    // A build with remapped paths may have a root of its own before `/rustc/`.
    let (before, rest) = file.split_once("/rustc/")?;
    let commit = rest.find('/')?;
    let length = before.len() + "/rustc/".len() + commit + "/library".len();
    rest[commit..]
        .starts_with("/library/")
        .then(|| &file[..length])
}

fn installed(file: &str) -> Option<&str> {
    let dir = "/rustlib/src/rust/library";
    let at = file.find(&format!("{dir}/"))?;
    Some(&file[..at + dir.len()])
}

fn distributions(file: &str) -> Option<&str> {
    let sources = "/rustc-";
    file.match_indices(sources).find_map(|(at, _)| {
        let (version, rest) = file[at + sources.len()..].split_once('/')?;
        let is_version = version.starts_with(|first: char| first.is_ascii_digit());
        let below = rest.strip_prefix("library/").filter(|_| is_version)?;
        Some(&file[..file.len() - below.len() - 1])
    })
}

/// Returns the directory `library` below any root, if `file` is in `library/{alloc,core,std}/src`. A user's directory may
/// have the same name, so something else must show that this is the standard library: the function's name, or the crate of
/// the compilation unit.
#[must_use]
pub fn possible_library_dir(file: &str) -> Option<&str> {
    ["alloc", "core", "std"].iter().find_map(|name| {
        let dir = format!("library/{name}/src/");
        let at = file.match_indices(&dir).map(|(at, _)| at);
        let mut at = at.filter(|&at| at == 0 || file[..at].ends_with('/'));
        Some(&file[..at.next()? + "library".len()])
    })
}

/// Returns whether `file` belongs to a dependency of the standard library, which its build has below `/rust/deps`.
#[must_use]
pub fn is_dependency_of_library(file: &str) -> bool {
    file.starts_with("/rust/deps/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_librarys_directory_is_derived_from_its_files() {
        for (file, dir) in [
            (
                "/rustc/5980/library/core/src/fmt/mod.rs",
                "/rustc/5980/library",
            ),
            (
                "/rustc/1.85.0/library/std/src/rt.rs",
                "/rustc/1.85.0/library",
            ),
            (
                "/usr/src/rustc-1.97.1/library/std/src/rt.rs",
                "/usr/src/rustc-1.97.1/library",
            ),
            (
                "/b/rustc-hash-2.1.1/src/rustc-1.97.1-src/library/std/src/rt.rs",
                "/b/rustc-hash-2.1.1/src/rustc-1.97.1-src/library",
            ),
            (
                "/t/lib/rustlib/src/rust/library/std/src/rt.rs",
                "/t/lib/rustlib/src/rust/library",
            ),
        ] {
            assert_eq!(library_dir(file), Some(dir), "{file}");
        }
        for other in [
            "/rustc/1.85.0/compiler/x.rs",
            "/rustc/",
            "/rustc/src/lib.rs",
            "/usr/src/rustc-1.97.1/compiler/x.rs",
            "/usr/src/rustc-hash/library/x.rs",
            "/usr/src/rustc-1",
            "",
        ] {
            assert_eq!(library_dir(other), None, "{other}");
        }
    }

    #[test]
    fn a_library_below_any_root_is_possible() {
        for (file, dir) in [
            (
                "/build/rust/library/alloc/src/slice.rs",
                "/build/rust/library",
            ),
            ("library/std/src/rt.rs", "library"),
        ] {
            assert_eq!(possible_library_dir(file), Some(dir), "{file}");
        }
        for other in ["/srv/mylibrary/std/src/x.rs", "/library/std/main.rs", ""] {
            assert_eq!(possible_library_dir(other), None, "{other}");
        }
    }
}
