//! Sums by module, as in memray's `stats`: the package or source file that a call stack's memory is charged to.
//!
//! The rules are those of memray 1.20's `module_tools.py`, which were made for Python's paths: a frame of the standard
//! library is skipped; below a directory of packages or sources the first path component names the module, up to its first
//! dot; elsewhere the file's name does.

use std::collections::HashMap;

use crate::model::{About, FrameId, Report, StrId, Tally};

/// Returns the sums of all allocations by module. The order has no meaning (it is memray's order of ties, if that can be
/// known).
#[must_use]
pub fn by_module(report: &Report) -> Vec<(String, Tally)> {
    let names = ModuleNames::new(&report.about);
    let mut of_file: HashMap<StrId, Option<String>> = HashMap::new();
    let mut index: HashMap<String, usize> = HashMap::new();
    let mut modules: Vec<(String, Tally)> = Vec::new();
    for site in report.sites.iter().rev() {
        if site.allocated.count == 0 {
            continue;
        }
        let module = report
            .stacks
            .leaf_to_root(site.stack)
            .find_map(|FrameId(frame)| {
                let file = report.frames.get(frame as usize)?.file;
                of_file
                    .entry(file)
                    .or_insert_with(|| names.of_file(report.strings.get(file)))
                    .clone()
            })
            .filter(|name| name != "memray")
            .unwrap_or_else(|| "<root>".into());
        let at = *index.entry(module).or_insert_with_key(|name| {
            modules.push((name.clone(), Tally::default()));
            modules.len() - 1
        });
        modules[at].1 += site.allocated;
    }
    modules
}

/// Names of modules by the directories that a report has.
#[derive(Debug)]
pub struct ModuleNames {
    library: Option<Vec<String>>,
    /// (parts of the directory, absolute)
    packages: Vec<Vec<String>>,
    sources: Vec<Vec<String>>,
}

impl ModuleNames {
    /// Makes the names for the directories of `about`.
    #[must_use]
    pub fn new(about: &About) -> Self {
        let all = |paths: &[String]| {
            paths
                .iter()
                .filter(|path| !path.is_empty())
                .map(|path| parts(path))
                .collect()
        };
        ModuleNames {
            library: (!about.library_dir.is_empty()).then(|| parts(&about.library_dir)),
            packages: all(&about.package_dirs),
            sources: all(&about.source_dirs),
        }
    }

    /// Returns the module of `file`, or `None` if it is the standard library's.
    #[must_use]
    pub fn of_file(&self, file: &str) -> Option<String> {
        if file.is_empty() {
            return Some("unknown".into());
        }
        if file.starts_with("<frozen ") {
            return None;
        }
        let path = parts(file);
        for directory in &self.packages {
            if let Some(below) = path.strip_prefix(&directory[..]) {
                return Some(top_level(below));
            }
        }
        if let Some(library) = &self.library
            && path.starts_with(library)
        {
            return None;
        }
        for directory in &self.sources {
            if let Some(below) = path.strip_prefix(&directory[..]) {
                return Some(top_level(below));
            }
        }
        // The bare file name, unless the path is only a root.
        let name = path.last().filter(|part| *part != "/" && *part != "//");
        Some(top_level(name.map_or(&[], std::slice::from_ref)))
    }
}

/// Returns a path's parts as in Python's `pathlib`: `/` first if it is absolute, no empty ones, no `.`.
fn parts(path: &str) -> Vec<String> {
    let root = match path.bytes().take_while(|&b| b == b'/').count() {
        0 => None,
        2 => Some("//"), // POSIX leaves the meaning of exactly two slashes open
        _ => Some("/"),
    };
    root.into_iter()
        .chain(
            path.split('/')
                .filter(|part| !part.is_empty() && *part != "."),
        )
        .map(str::to_owned)
        .collect()
}

/// Returns the first component of the module's dotted name.
fn top_level(path: &[String]) -> String {
    let path = match path {
        [package @ .., file] if file == "__init__.py" => package,
        other => other,
    };
    let first = path.first().map_or("", String::as_str);
    first.split('.').next().unwrap_or("").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Expected values are those of memray 1.20.0's `ModuleResolver` for the same paths.
    #[test]
    fn modules_are_memrays() {
        let names = ModuleNames::new(&About {
            library_dir: "/rustc/0123/library".into(),
            package_dirs: vec!["/home/dev/.cargo/registry/src/index".into()],
            source_dirs: vec!["src".into(), "/srv/app//./src/".into()],
            ..About::default()
        });
        for (file, module) in [
            ("", Some("unknown")),
            ("<frozen runpy>", None),
            ("/rustc/0123/library/alloc/src/vec/mod.rs", None),
            ("/rustc/0123/librarian.rs", Some("librarian")),
            (
                "/home/dev/.cargo/registry/src/index/bytes-1.7.2/src/x.rs",
                Some("bytes-1"),
            ),
            ("src/main.rs", Some("main")),
            ("src/api/get.rs", Some("api")),
            ("/srv/app/src/__init__.py", Some("")),
            ("/srv/app/src/pkg/__init__.py", Some("pkg")),
            ("/elsewhere/lib.rs", Some("lib")),
            ("/usr/lib/libc.so.6", Some("libc")),
            ("/", Some("")),
        ] {
            assert_eq!(names.of_file(file).as_deref(), module, "{file}");
        }
    }
}
