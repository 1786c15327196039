//! The origin of a frame's code: the service itself, a package that it depends on, the standard library or native code. The
//! source path decides, since names of generic code contain other crates' names.

use std::collections::HashMap;

use crate::Report;
use crate::model::{About, FrameId, StrId};

/// Owner of a frame's code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Kind {
    /// The service's own sources: everything that is none of the following.
    Own = 0,
    /// A package from a registry, a git checkout or a `vendor` directory.
    Package = 1,
    /// The standard library (`core`, `alloc`, `std`; Python's standard library).
    Language = 2,
    /// Native code: C, C++, assembler, or code without symbols.
    Native = 3,
}

/// Crate, Python package, or native library.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Package {
    /// Its name, `-` written as `_` in Rust crates.
    pub name: String,
    /// Owner of its code.
    pub kind: Kind,
}

/// Packages of a report's frames.
#[derive(Debug, Clone, Default)]
pub struct Origins {
    packages: Vec<Package>,
    of_frame: Vec<u32>,
}

impl Origins {
    /// Finds the package of every frame of `report`.
    #[must_use]
    pub fn of(report: &Report) -> Origins {
        let paths = Paths::new(&report.about);
        let roots = own_crate_names(report, &paths);
        let mut origins = Origins::default();
        let mut index: HashMap<Package, u32> = HashMap::new();
        // Most frames share their file with others. Names matter only if the path does not decide.
        let mut by_file: HashMap<StrId, Option<u32>> = HashMap::new();
        for frame in &report.frames {
            let file = report.strings.get(frame.file);
            let by_path = *by_file.entry(frame.file).or_insert_with(|| {
                let package = paths.by_path(file, &roots)?;
                Some(origins.number(package, &mut index))
            });
            let id = by_path.unwrap_or_else(|| {
                let package = paths.by_name(report.strings.get(frame.function), file);
                origins.number(package, &mut index)
            });
            origins.of_frame.push(id);
        }
        origins
    }

    /// Returns the index of `package`, and adds it if it is new.
    fn number(&mut self, package: Package, index: &mut HashMap<Package, u32>) -> u32 {
        if let Some(&known) = index.get(&package) {
            return known;
        }
        let new = u32::try_from(self.packages.len()).expect("fewer packages than frames");
        self.packages.push(package.clone());
        index.insert(package, new);
        new
    }

    /// Returns the packages, each once, in the order of the frames.
    #[must_use]
    pub fn packages(&self) -> &[Package] {
        &self.packages
    }

    /// Returns the index of `frame`'s package in [`packages`](Self::packages), or `None` if `frame` is not of the report.
    #[must_use]
    pub fn index(&self, frame: FrameId) -> Option<u32> {
        self.of_frame.get(frame.0 as usize).copied()
    }

    /// Returns the owner of `frame`'s code, or [`Kind::Native`] if `frame` is not of the report.
    #[must_use]
    pub fn kind(&self, frame: FrameId) -> Kind {
        self.index(frame)
            .map_or(Kind::Native, |index| self.packages[index as usize].kind)
    }
}

/// Returns the standard library's directory as distributions build it, `…/rustc-<version>/library`, and the part of `file`
/// below it.
#[must_use]
pub fn distributions_library(file: &str) -> Option<(&str, &str)> {
    let sources = "/rustc-";
    file.match_indices(sources).find_map(|(at, _)| {
        let (version, rest) = file[at + sources.len()..].split_once('/')?;
        let is_version = version.starts_with(|first: char| first.is_ascii_digit());
        let below = rest.strip_prefix("library/").filter(|_| is_version)?;
        Some((&file[..file.len() - below.len() - 1], below))
    })
}

/// Directories that decide, from [`About`].
struct Paths<'a> {
    library: &'a str,
    packages: Vec<&'a str>,
    sources: Vec<&'a str>,
    /// The program's crate name: the only one known to be the service's if no frame has a path.
    program: String,
}

impl<'a> Paths<'a> {
    fn new(about: &'a About) -> Paths<'a> {
        let program = about.command_line.split(' ').next().unwrap_or_default();
        let program = program.rsplit('/').next().unwrap_or_default();
        let whole = |dirs: &'a [String]| {
            dirs.iter()
                .map(|dir| dir.trim_end_matches('/'))
                .filter(|dir| !dir.is_empty())
                .collect()
        };
        Paths {
            library: about.library_dir.trim_end_matches('/'),
            packages: whole(&about.package_dirs),
            sources: whole(&about.source_dirs),
            program: crate_name(program),
        }
    }

    /// Returns the package by its source path, or `None` if only the function's name can decide.
    fn by_path(&self, file: &str, roots: &HashMap<String, String>) -> Option<Package> {
        if file.is_empty() {
            return None;
        }
        if let Some(rest) = self.in_library(file) {
            return package(first_part(rest), Kind::Language);
        }
        for dir in &self.packages {
            if let Some(rest) = below(file, dir) {
                // Each registry index has its own directory below `registry/src`.
                let rest = match rest.split_once('/') {
                    Some((index, rest)) if !has_version(index) && has_version(first_part(rest)) => {
                        rest
                    }
                    _ => rest,
                };
                return package(&without_version(first_part(rest)), Kind::Package);
            }
        }
        if let Some((_, rest)) = file.split_once("/registry/src/") {
            let (_, rest) = rest.split_once('/')?;
            return package(&without_version(first_part(rest)), Kind::Package);
        }
        if let Some((_, rest)) = file.split_once("/git/checkouts/") {
            let name = first_part(rest);
            let name = name.rsplit_once('-').map_or(name, |(name, _hash)| name);
            return package(name, Kind::Package);
        }
        if let Some(found) = python(file) {
            return Some(found);
        }
        if !file.ends_with(".rs") {
            return native(file);
        }
        if !self.sources.iter().any(|dir| below(file, dir).is_some())
            && let Some((_, rest)) = file
                .rsplit_once("/vendor/")
                .or_else(|| file.split_once("vendor/"))
        {
            return package(&without_version(first_part(rest)), Kind::Package);
        }
        roots.get(source_root(file)).map(|name| Package {
            name: name.clone(),
            // heapray is not the service, even if it is built from a path beside the service.
            kind: if name == "heapray" {
                Kind::Package
            } else {
                Kind::Own
            },
        })
    }

    /// Returns the part of `file` below the standard library.
    fn in_library<'f>(&self, file: &'f str) -> Option<&'f str> {
        if !self.library.is_empty()
            && let Some(rest) = below(file, self.library)
        {
            return Some(rest);
        }
        if let Some((_, rest)) = file.split_once("/rustc/") {
            let (_hash, rest) = rest.split_once('/')?;
            return Some(rest.strip_prefix("library/").unwrap_or(rest));
        }
        // rust-src, and the packages that the standard library was built with.
        file.split_once("/rustlib/src/rust/library/")
            .map(|(_, rest)| rest)
            .or_else(|| file.strip_prefix("/rust/deps/").map(|_| "std"))
            .or_else(|| Some(distributions_library(file)?.1))
    }

    /// Returns the package by the function's name alone.
    fn by_name(&self, function: &str, file: &str) -> Package {
        let kind_of = |name: &str| match name {
            "std" | "core" | "alloc" => Kind::Language,
            name if name == self.program || file.ends_with(".rs") => Kind::Own,
            _ => Kind::Package,
        };
        if file.is_empty()
            && let Some(name) = first_folded(function)
        {
            // The service's own frames are never folded, so a folded frame with its name is the native code that starts it.
            let kind = match name {
                "native" | "libc" | "libpthread" | "libgcc_s" => Kind::Native,
                name if name == self.program => Kind::Native,
                name => kind_of(name),
            };
            return Package {
                name: name.to_owned(),
                kind,
            };
        }
        match first_segment(function) {
            Some(name) => Package {
                name: name.to_owned(),
                kind: kind_of(name),
            },
            None if file.ends_with(".rs") => Package {
                name: self.program.clone(),
                kind: Kind::Own,
            },
            None => Package {
                name: last_part(file).to_owned(),
                kind: Kind::Native,
            },
        }
    }
}

/// Returns `tokio` for `[tokio, hyper]`, a folded run of frames.
fn first_folded(function: &str) -> Option<&str> {
    let names = function.strip_prefix('[')?.strip_suffix(']')?;
    let name = names.split([',', ' ']).next()?;
    (!name.is_empty()).then_some(name)
}

/// Returns the crate name of each source root, as in most of the plain function names there. `<T as Trait>::f` begins with
/// the crate of `T`, so it counts only if there are no other names.
fn own_crate_names(report: &Report, paths: &Paths<'_>) -> HashMap<String, String> {
    let mut votes: HashMap<&str, HashMap<&str, (usize, usize)>> = HashMap::new();
    let none = HashMap::new();
    for frame in &report.frames {
        let file = report.strings.get(frame.file);
        if !file.ends_with(".rs") || paths.by_path(file, &none).is_some() {
            continue;
        }
        let names = votes.entry(source_root(file)).or_default();
        let function = report.strings.get(frame.function);
        let plain = usize::from(!function.starts_with(['<', '&', '(']));
        match first_segment(function) {
            None | Some("std" | "core" | "alloc") => {}
            Some(name) => {
                let (of_plain, of_all) = names.entry(name).or_default();
                *of_plain += plain;
                *of_all += 1;
            }
        }
    }
    votes
        .into_iter()
        .map(|(root, names)| {
            let most = names.into_iter().max_by_key(|&(name, votes)| (votes, name));
            let name = most.map_or_else(
                || crate_name(last_part(root)),
                |(name, _votes)| name.to_owned(),
            );
            (root.to_owned(), name)
        })
        .filter(|(_, name)| !name.is_empty())
        .collect()
}

fn package(name: &str, kind: Kind) -> Option<Package> {
    (!name.is_empty()).then(|| Package {
        name: crate_name(name),
        kind,
    })
}

/// Returns the package of a file that is not Rust source: a C file, or the ELF object if the file is unknown. Names of Rust
/// functions in an object without debug information still have their crate.
fn native(file: &str) -> Option<Package> {
    let name = last_part(file);
    let (_, extension) = name.rsplit_once('.')?;
    let source = ["c", "h", "cc", "cpp", "cxx", "hpp", "S", "s", "y", "l"].contains(&extension);
    if source {
        return Some(Package {
            name: "native".to_owned(),
            kind: Kind::Native,
        });
    }
    name.contains(".so").then(|| Package {
        name: name.split(".so").next().unwrap_or(name).to_owned(),
        kind: Kind::Native,
    })
}

fn python(file: &str) -> Option<Package> {
    for dir in ["/site-packages/", "/dist-packages/"] {
        if let Some((_, rest)) = file.split_once(dir) {
            let name = first_part(rest);
            return package(name.strip_suffix(".py").unwrap_or(name), Kind::Package);
        }
    }
    if file.starts_with("<frozen ") || (file.contains("/lib/python") && file.ends_with(".py")) {
        return package("python", Kind::Language);
    }
    if file.ends_with(".py") {
        let dir = file.rsplit_once('/').map_or("", |(dir, _)| dir);
        let name = if dir.is_empty() {
            "main"
        } else {
            last_part(dir)
        };
        return package(name, Kind::Own);
    }
    None
}

/// Returns the directory of a crate: the part before its `src`, `examples`, `tests` or `benches`.
fn source_root(file: &str) -> &str {
    let cut = ["/src/", "/examples/", "/tests/", "/benches/"]
        .iter()
        .filter_map(|dir| file.find(dir))
        .min();
    match cut {
        Some(cut) => &file[..cut],
        None => file.rsplit_once('/').map_or("", |(dir, _)| dir),
    }
}

/// Returns `tokio` for `tokio::runtime::…` and for `<tokio::task::Id as …>::fmt`, and `None` for a name without a path.
fn first_segment(function: &str) -> Option<&str> {
    let mut name = function.trim_start_matches(['<', '&', '*', '(', '[']);
    for word in ["mut ", "const ", "dyn ", "impl "] {
        name = name.strip_prefix(word).unwrap_or(name);
    }
    let (name, _) = name.split_once("::")?;
    let identifier = name.chars().all(|c| c.is_alphanumeric() || c == '_');
    (identifier && !name.is_empty()).then_some(name)
}

/// Returns the part of `file` after `dir/`.
fn below<'f>(file: &'f str, dir: &str) -> Option<&'f str> {
    file.strip_prefix(dir)?.strip_prefix('/')
}

fn first_part(path: &str) -> &str {
    path.split('/').next().unwrap_or(path)
}

fn last_part(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

fn crate_name(name: &str) -> String {
    name.replace('-', "_")
}

/// Returns the start of `-1.2.3`. Package names may have digits of their own (`sha-1`).
fn version_at(name: &str) -> Option<usize> {
    name.match_indices('-')
        .find(|(at, _)| {
            let major = name[at + 1..].split('.').next().unwrap_or_default();
            let dotted = name.len() > at + 1 + major.len();
            dotted && !major.is_empty() && major.bytes().all(|b| b.is_ascii_digit())
        })
        .map(|(at, _)| at)
}

fn has_version(name: &str) -> bool {
    version_at(name).is_some()
}

fn without_version(name: &str) -> String {
    version_at(name).map_or(name, |at| &name[..at]).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Frame;

    fn origins(about: About, frames: &[(&str, &str)]) -> Vec<(String, Kind)> {
        let mut report = Report {
            about,
            ..Report::default()
        };
        for (function, file) in frames {
            let frame = Frame {
                function: report.strings.intern(function),
                file: report.strings.intern(file),
                line: 1,
            };
            report.frames.push(frame);
        }
        let origins = Origins::of(&report);
        (0..)
            .map_while(|frame| origins.index(FrameId(frame)))
            .map(|index| origins.packages()[index as usize].clone())
            .map(|package| (package.name, package.kind))
            .collect()
    }

    fn one(function: &str, file: &str) -> (String, Kind) {
        let about = About {
            command_line: "/usr/bin/memory-leak --port 7000".to_owned(),
            package_dirs: vec!["/opt/crates".to_owned()],
            source_dirs: vec!["/build/vendor/shop".to_owned()],
            library_dir: "/opt/rust/library".to_owned(),
            ..About::default()
        };
        origins(about, &[(function, file)]).remove(0)
    }

    #[test]
    fn a_source_path_tells_whose_code_it_is() {
        let cases = [
            (
                "/rustc/0a1b/library/alloc/src/vec/mod.rs",
                "alloc",
                Kind::Language,
            ),
            ("/opt/rust/library/std/src/io.rs", "std", Kind::Language),
            (
                "/home/dev/.rustup/toolchains/x/lib/rustlib/src/rust/library/core/src/x.rs",
                "core",
                Kind::Language,
            ),
            (
                "/rust/deps/hashbrown-0.15.2/src/raw.rs",
                "std",
                Kind::Language,
            ),
            (
                "/usr/src/rustc-1.97.1/library/std/src/sys/backtrace.rs",
                "std",
                Kind::Language,
            ),
            (
                "/home/dev/.cargo/registry/src/index-1949/tokio-1.54.1/src/lib.rs",
                "tokio",
                Kind::Package,
            ),
            (
                "/u/.cargo/registry/src/i-1/sha-1-0.10.0-rc.1/src/lib.rs",
                "sha_1",
                Kind::Package,
            ),
            (
                "/u/.cargo/git/checkouts/my-lib-0a1b2c/77aa/src/lib.rs",
                "my_lib",
                Kind::Package,
            ),
            (
                "/opt/crates/serde_json-1.0.1/src/de.rs",
                "serde_json",
                Kind::Package,
            ),
            (
                "/opt/crates/index-9/http-1.3.1/src/map.rs",
                "http",
                Kind::Package,
            ),
            (
                "/srv/vendor/axum-core/src/body.rs",
                "axum_core",
                Kind::Package,
            ),
            ("vendor/axum-core/src/body.rs", "axum_core", Kind::Package),
            ("/build/vendor/shop/src/cart.rs", "name", Kind::Own),
            ("src/main.rs", "name", Kind::Own),
            ("/home/me/shop/src/main.rs", "name", Kind::Own),
            ("./malloc/malloc.c", "native", Kind::Native),
            ("/lib/x86_64-linux-gnu/libc.so.6", "libc", Kind::Native),
            (
                "/usr/lib/python3/dist-packages/numpy/core.py",
                "numpy",
                Kind::Package,
            ),
            (
                "/usr/lib/python3.11/json/decoder.py",
                "python",
                Kind::Language,
            ),
            ("<frozen runpy>", "python", Kind::Language),
            ("/srv/app/leak.py", "app", Kind::Own),
        ];
        for (file, name, kind) in cases {
            assert_eq!(one("name::run", file), (name.to_owned(), kind), "{file}");
        }
    }

    #[test]
    fn without_a_path_the_function_name_decides() {
        let exe = "/usr/bin/memory-leak";
        let cases = [
            ("memory_leak::main", "memory_leak", Kind::Own),
            ("tokio::runtime::park", "tokio", Kind::Package),
            (
                "<alloc::vec::Vec<T> as Clone>::clone",
                "alloc",
                Kind::Language,
            ),
            ("<&mut dyn std::io::Write>::write", "std", Kind::Language),
            ("memory-leak+0x1234", "memory-leak", Kind::Native),
            ("main", "memory-leak", Kind::Native),
        ];
        for (function, name, kind) in cases {
            assert_eq!(one(function, exe), (name.to_owned(), kind), "{function}");
        }
    }

    #[test]
    fn the_profiler_is_not_the_service_it_is_in() {
        let poll = "<heapray::endpoints::MountFuture<F> as core::future::Future>::poll";
        let found = origins(About::default(), &[(poll, "/home/me/shop/src/mounted.rs")]);
        assert_eq!(found, [("heapray".to_owned(), Kind::Package)]);
    }

    #[test]
    fn a_trait_method_of_foreign_types_counts_for_the_crate_that_wrote_it() {
        let file = "/home/me/shop-backend/src/cart.rs";
        let found = origins(
            About::default(),
            &[
                ("<alloc::vec::Vec<T> as shop::Total>::total", file),
                ("shop::cart::add", file),
                ("{closure#0}", "/home/me/shop-backend/src/main.rs"),
            ],
        );
        assert!(
            found.iter().all(|o| *o == ("shop".to_owned(), Kind::Own)),
            "{found:?}"
        );
    }
}
