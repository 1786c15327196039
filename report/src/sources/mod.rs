//! Whose code a source file is: the standard library's, a package's, or the service's own.
//!
//! The path shows it in most builds. Where it doesn't, the program's compilation units do: cargo compiles the crates of the
//! workspace in the workspace's directory, with relative paths, and every other package in a directory of its own.

mod library;
mod package;
mod url;

use std::collections::{BTreeMap, BTreeSet};

pub use library::{is_dependency_of_library, library_dir, possible_library_dir};
pub use package::{below, has_version, package_dir, source_root, without_version};
pub use url::is_template;

/// A compilation unit of a Rust crate, as the compiler named it. The units of one crate differ in nothing else.
#[derive(
    Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize,
)]
pub struct Unit {
    /// The crate's root file: `src/main.rs`, or an absolute path.
    pub root: String,
    /// The directory in which it was compiled, to which `root` is relative.
    pub directory: String,
    /// The crate's name. Incremental builds leave it out.
    pub crate_name: Option<String>,
}

/// Directories of a program's sources.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Directories {
    /// Directory in which the program's own crate was compiled; empty if unknown.
    pub root: String,
    /// Directory of the standard library; empty if unknown.
    pub library: String,
    /// Directories that contain packages.
    pub packages: BTreeSet<String>,
    /// Directories of the service's own sources.
    pub sources: BTreeSet<String>,
}

impl Directories {
    /// Returns the directories of `files` in a program whose executable is called `program` and was made of `units`.
    #[must_use]
    pub fn of<'f>(
        files: impl Iterator<Item = &'f str>,
        units: &BTreeSet<Unit>,
        program: &str,
    ) -> Directories {
        let shown = ByUnits::of(units, program);
        let mut dirs = Directories {
            root: shown.root.to_owned(),
            library: shown.library.to_owned(),
            ..Directories::default()
        };
        for file in files.filter(|file| !is_dependency_of_library(file)) {
            if let Some(dir) = shown.library_dir(file) {
                if dirs.library.is_empty() {
                    dirs.library = dir.to_owned();
                }
            } else if let Some(dir) = shown.package_dir(file) {
                // A relative path that begins with the package shows it by itself.
                if !dir.is_empty() {
                    dirs.packages.insert(dir.to_owned());
                }
            } else if let Some(dir) = source_dir(file) {
                dirs.sources.insert(dir.to_owned());
            }
        }
        dirs
    }
}

/// What the compilation units show.
struct ByUnits<'u> {
    library: &'u str,
    /// The directory in which the program's own crate was compiled; empty if unknown.
    root: &'u str,
    packages: BTreeSet<&'u str>,
    /// Directories of the workspace's crates, without the workspace's own.
    members: BTreeSet<String>,
}

/// Crates that heapray depends on. A directory with two of them contains packages, whatever its name is.
const USUAL: [&str; 9] = [
    "cpp_demangle",
    "gimli",
    "libc",
    "lz4_flex",
    "miniz_oxide",
    "rustc_demangle",
    "serde",
    "tracing_core",
    "twox_hash",
];

impl<'u> ByUnits<'u> {
    fn of(units: &'u BTreeSet<Unit>, program: &str) -> ByUnits<'u> {
        let library = units.iter().find_map(Unit::library).unwrap_or_default();
        let root = program_unit(units, program).map_or("", |unit| &unit.directory);
        let is_apart = |unit: &&Unit| {
            unit.root.starts_with('/') && unit.directory != root && unit.library().is_none()
        };
        let mut usual: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        let mut packages = BTreeSet::new();
        for unit in units.iter().filter(is_apart) {
            let Some((parent, name)) = unit.directory.rsplit_once('/') else {
                continue;
            };
            // Cargo gives every path dependency in the workspace a relative path.
            if !root.is_empty() && below(&unit.directory, root).is_some() {
                packages.insert(parent);
            }
            let name = without_version(name).replace('-', "_");
            if let Some(&name) = USUAL.iter().find(|usual| **usual == name) {
                usual.entry(parent).or_default().insert(name);
            }
        }
        packages.extend(
            usual
                .into_iter()
                .filter(|(_, names)| names.len() > 1)
                .map(|(parent, _)| parent),
        );
        // Bazel and Buck compile all crates in one directory. There a relative path shows nothing.
        let members = if units.iter().any(|unit| is_apart(&unit)) {
            units
                .iter()
                .filter_map(|unit| unit.member_of(root))
                .collect()
        } else {
            BTreeSet::new()
        };
        ByUnits {
            library,
            root,
            packages,
            members,
        }
    }

    fn library_dir<'f>(&self, file: &'f str) -> Option<&'f str> {
        let by_unit = (!self.library.is_empty() && below(file, self.library).is_some())
            .then(|| &file[..self.library.len()]);
        by_unit.or_else(|| library_dir(file))
    }

    fn package_dir<'f>(&self, file: &'f str) -> Option<&'f str> {
        let contains = |dir: &str| below(file, dir).is_some();
        if self.members.iter().any(|dir| contains(dir)) {
            return None;
        }
        let by_unit = self.packages.iter().filter(|dir| contains(dir));
        let by_unit = by_unit.map(|dir| &file[..dir.len()]);
        by_unit
            .max_by_key(|dir| dir.len())
            .or_else(|| package_dir(file, self.root))
    }
}

impl Unit {
    /// Returns whether this is the program's code or a package's, not the standard library's. A program that is built without
    /// debug information has units of the library alone.
    #[must_use]
    pub fn is_program(&self) -> bool {
        self.library().is_none()
            && !is_dependency_of_library(&self.root)
            && library_dir(&self.root).is_none()
    }

    /// Returns the directory `library` if this is a crate of the standard library.
    fn library(&self) -> Option<&str> {
        let dir = library_dir(&self.root).or_else(|| possible_library_dir(&self.root))?;
        let (name, file) = below(&self.root, dir)?.split_once('/')?;
        let is_root = file == "src/lib.rs" && self.crate_name.as_deref() == Some(name);
        is_root.then_some(dir)
    }

    /// Returns the crate's directory if it is in the workspace at `root`, and not the workspace's own directory.
    fn member_of(&self, root: &str) -> Option<String> {
        let is_member = self.directory == root && !self.root.starts_with('/');
        let file = format!("{root}/{}", self.root);
        let dir = source_root(&file);
        (is_member && dir != root).then(|| dir.to_owned())
    }

    fn is_named(&self, name: &str) -> bool {
        self.crate_name.as_deref() == Some(name)
    }

    fn has_root_file(&self, name: &str) -> bool {
        self.root.rsplit('/').next() == Some(name)
    }
}

/// Returns the unit of the program's own crate: the one with its name, else the one whose root file has that name, else one
/// whose root file is `main.rs`. Cargo names the executable of a test `name-<hash>`.
fn program_unit<'u>(units: &'u BTreeSet<Unit>, program: &str) -> Option<&'u Unit> {
    let is_hash = |text: &str| text.len() == 16 && text.bytes().all(|b| b.is_ascii_hexdigit());
    let program = match program.rsplit_once('-') {
        Some((name, hash)) if is_hash(hash) => name,
        _ => program,
    };
    let crate_name = program.replace('-', "_");
    let root_file = format!("{program}.rs");
    let find = |is: &dyn Fn(&Unit) -> bool| units.iter().find(|unit| is(unit));
    find(&|unit| unit.is_named(&crate_name))
        .or_else(|| find(&|unit| unit.has_root_file(&root_file)))
        .or_else(|| find(&|unit| unit.has_root_file("main.rs")))
}

/// Returns the directory of a Rust source outside of the library and packages: up to `src`, if the path has one.
fn source_dir(file: &str) -> Option<&str> {
    let dir = &file[..=file.strip_suffix(".rs")?.rfind('/')?];
    if file.starts_with("/rustc/") {
        return None;
    }
    match dir.rfind("/src/") {
        Some(at) => Some(&dir[..at + "/src".len()]),
        None => dir.strip_suffix('/'),
    }
}

#[cfg(test)]
mod tests;
