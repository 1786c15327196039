//! The origin of a frame's code: the service itself, a package that it depends on, the standard library or native code. The
//! source path decides, since names of generic code contain other crates' names. The service may name more crates that are
//! its own.

mod own_crates;

use std::collections::HashMap;

use crate::Report;
use crate::model::{About, FrameId, StrId};
use crate::sources::{
    below, has_version, is_dependency_of_library, library_dir, package_dir, source_root,
    without_version,
};

pub use own_crates::OwnCrates;

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
        let roots = crate_names(report, &paths);
        let mut origins = Origins::default();
        let mut index: HashMap<Package, u32> = HashMap::new();
        // Most frames share their file with others.
        let mut files: HashMap<StrId, OfFile> = HashMap::new();
        let mut crates: HashMap<String, u32> = HashMap::new();
        for frame in &report.frames {
            files.entry(frame.file).or_insert_with(|| {
                let file = report.strings.get(frame.file);
                let package = paths.by_path(file, &roots).map(|package| {
                    let name = package.name.clone();
                    let is_crate = matches!(package.kind, Kind::Own | Kind::Package);
                    let id = origins.number(paths.owned(package), &mut index);
                    if is_crate {
                        crates.entry(name).or_insert(id);
                    }
                    id
                });
                let in_library = paths.in_library(file).is_some();
                OfFile {
                    package,
                    in_library: in_library && !is_dependency_of_library(file),
                }
            });
        }
        for frame in &report.frames {
            let of_file = &files[&frame.file];
            let function = report.strings.get(frame.function);
            // The compiler gives some code that it generates the file of code that was inlined there, and line 0.
            let name_decides = frame.line == 0 || of_file.in_library;
            let name =
                crate_in_name(function).filter(|_| name_decides && !function.starts_with('<'));
            let by_name = match name {
                Some(name @ ("alloc" | "core" | "std")) if !of_file.in_library => {
                    package(name, Kind::Language).map(|library| origins.number(library, &mut index))
                }
                Some(name) => crates.get(name).copied(),
                None => None,
            };
            let id = by_name.or(of_file.package).unwrap_or_else(|| {
                let package = paths.by_name(function, report.strings.get(frame.file));
                origins.number(paths.owned(package), &mut index)
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

    /// Returns the packages of the report's files and functions, each once.
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

/// What the path of a source file shows.
struct OfFile {
    package: Option<u32>,
    /// Set if it is a file of the standard library itself.
    in_library: bool,
}

/// Directories that decide, from [`About`].
struct Paths<'a> {
    library: &'a str,
    packages: Vec<&'a str>,
    sources: Vec<&'a str>,
    /// The program's crate name: the only one known to be the service's if no frame has a path.
    program: String,
    own: OwnCrates,
}

impl<'a> Paths<'a> {
    fn new(about: &'a About) -> Paths<'a> {
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
            program: crate_name(about.program()),
            own: OwnCrates::new(&about.own_crates),
        }
    }

    /// Returns `package`, as the service's own if the service says so.
    fn owned(&self, package: Package) -> Package {
        let is_own = package.kind == Kind::Package && self.own.contains(&package.name);
        let kind = if is_own { Kind::Own } else { package.kind };
        Package { kind, ..package }
    }

    /// Returns the package by its source path, or `None` if only the function's name can decide.
    fn by_path(&self, file: &str, roots: &HashMap<String, String>) -> Option<Package> {
        if file.is_empty() {
            return None;
        }
        if let Some(rest) = self.in_library(file) {
            return package(first_part(rest), Kind::Language);
        }
        if let Some(dir) = self.package_dir(file) {
            let rest = file[dir.len()..].trim_start_matches('/');
            // Each registry index has its own directory below `registry/src`.
            let rest = match rest.split_once('/') {
                Some((index, rest)) if !has_version(index) && has_version(first_part(rest)) => rest,
                _ => rest,
            };
            let name = without_version(first_part(rest));
            // In a checkout of many crates, or of one at its top, the directory's name is not the crate's.
            let root = source_root(file);
            let is_of_crate = rest[first_part(rest).len()..].starts_with(&file[root.len()..]);
            let name = match roots.get(root) {
                Some(by_names) if !is_of_crate => by_names,
                _ => name,
            };
            return package(name, Kind::Package);
        }
        if let Some(found) = python(file) {
            return Some(found);
        }
        if !file.ends_with(".rs") {
            return native(file);
        }
        roots.get(source_root(file)).map(|name| Package {
            name: name.clone(),
            // heapray is not the service, even if it is built from a path beside the service.
            kind: match name.as_str() {
                "heapray" | "heapray_report" => Kind::Package,
                _ => Kind::Own,
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
        // The packages that the standard library was built with.
        if is_dependency_of_library(file) {
            return Some("std");
        }
        below(file, library_dir(file)?)
    }

    /// Returns the directory that contains the package of `file`, or `None` if it is no package's. Of the report's own
    /// directories the longest decides; other files are judged by their path.
    fn package_dir<'f>(&self, file: &'f str) -> Option<&'f str> {
        let longest = |dirs: &[&str]| {
            let containing = dirs.iter().filter(|dir| below(file, dir).is_some());
            containing.map(|dir| dir.len()).max()
        };
        let (of_packages, of_sources) = (longest(&self.packages), longest(&self.sources));
        match of_packages.max(of_sources) {
            None => package_dir(file, ""),
            of_all => (of_packages == of_all).then(|| &file[..of_packages.unwrap_or(0)]),
        }
    }

    /// Returns the package by the function's name alone.
    fn by_name(&self, function: &str, file: &str) -> Package {
        let kind_of = |name: &str| match name {
            "std" | "core" | "alloc" => Kind::Language,
            name if BUILT_IN.contains(&name) => Kind::Language,
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

/// Returns the crate name of each source root outside of the library, as in most of the plain function names there.
/// `<T as Trait>::f` begins with the crate of `T`, so it counts only if there are no other names.
fn crate_names(report: &Report, paths: &Paths<'_>) -> HashMap<String, String> {
    let mut votes: HashMap<&str, HashMap<&str, (usize, usize)>> = HashMap::new();
    for frame in &report.frames {
        let file = report.strings.get(frame.file);
        if !file.ends_with(".rs") || paths.in_library(file).is_some() {
            continue;
        }
        let names = votes.entry(source_root(file)).or_default();
        let function = report.strings.get(frame.function);
        let plain = usize::from(!function.starts_with(['<', '&', '(']));
        match crate_in_name(function) {
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

/// Returns the crate of `tokio::runtime::…` and of `<tokio::task::Id as …>::fmt`, and `None` for a name without a crate.
fn crate_in_name(function: &str) -> Option<&str> {
    first_segment(function).filter(|name| !BUILT_IN.contains(name))
}

/// The first part of plain names of methods of types that belong to no crate. Traits of any crate can have such methods.
const BUILT_IN: [&str; 23] = [
    "array", "bool", "char", "f32", "f64", "fn", "i128", "i16", "i32", "i64", "i8", "isize",
    "never", "pointer", "slice", "str", "tuple", "u128", "u16", "u32", "u64", "u8", "usize",
];

fn first_segment(function: &str) -> Option<&str> {
    let mut name = function.trim_start_matches(['<', '&', '*', '(', '[']);
    for word in ["mut ", "const ", "dyn ", "impl "] {
        name = name.strip_prefix(word).unwrap_or(name);
    }
    let (name, _) = name.split_once("::")?;
    let identifier = name.chars().all(|c| c.is_alphanumeric() || c == '_');
    (identifier && !name.is_empty()).then_some(name)
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

#[cfg(test)]
mod tests;
