//! Symbols from files that a person names, for the modules of a process that may have run elsewhere.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::{DebugDirs, ElfLookup, Object, is_newer};
use crate::collector::snapshot::Module;
use crate::hex;
use crate::os::elf::Sections;
use crate::os::file_hash;
use crate::symbolize::lookup::{Found, Lookup as _};
use crate::symbolize::object::shared_link;

/// Where to look for the files of a report's modules.
#[derive(Debug, Clone, Default)]
pub struct SymbolFiles {
    /// Programs, libraries and debug files.
    pub binaries: Vec<PathBuf>,
    /// Directories of debug files: by build id (`.build-id/ab/cdef….debug`), or files of any name in it, or in `.debug` in it.
    pub debug_dirs: Vec<PathBuf>,
    /// Directory that the modules' own paths, and the system's directories of debug files, are below.
    pub sysroot: Option<PathBuf>,
}

/// A file that was named, but is of no module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stranger {
    /// The file.
    pub path: PathBuf,
    /// Its build id, or its hash if it has none, in hexadecimal; `None` if it is not an ELF file.
    pub id: Option<String>,
}

/// An ELF file that was named, or that is in a directory that was.
#[derive(Debug)]
struct Candidate {
    path: PathBuf,
    build_id: Vec<u8>,
    has_lines: bool,
    /// The build id of the file to which `dwz` moved a part of this one.
    shared: Option<Vec<u8>>,
    /// Whether the file itself was named, but no module is of its build so far.
    is_stranger: bool,
}

impl Candidate {
    fn of(path: &Path, is_stranger: bool) -> Option<Candidate> {
        let sections = Sections::of(path)?;
        Some(Candidate {
            path: path.to_owned(),
            build_id: sections.build_id(),
            has_lines: sections.has(".debug_info"),
            shared: shared_by(&sections),
            is_stranger,
        })
    }
}

/// Returns the build id of the file to which `dwz` moved a part of a file.
fn shared_by(sections: &Sections) -> Option<Vec<u8>> {
    let section = sections.part(".gnu_debugaltlink", 0, LONGEST_LINK);
    let (_, build_id) = shared_link(&section)?;
    (!build_id.is_empty()).then(|| build_id.to_vec())
}

/// Longest link to another file that is read, in bytes.
const LONGEST_LINK: u64 = 8192;

/// The most files of a directory that are looked at.
const MOST_FILES: usize = 10_000;

/// Returns the ELF files in a directory.
fn files_in(dir: &Path) -> impl Iterator<Item = Candidate> {
    let files = std::fs::read_dir(dir).into_iter().flatten().flatten();
    files
        .take(MOST_FILES)
        .filter_map(|file| Candidate::of(&file.path(), false))
}

/// A lookup in such files. A file is only used if it is of the same build as the module.
#[derive(Debug)]
pub(in crate::symbolize) struct FileLookup {
    elf: ElfLookup,
    sysroot: Option<PathBuf>,
    candidates: Vec<Candidate>,
    strangers: Vec<Stranger>,
    started: SystemTime,
}

impl FileLookup {
    /// `started`: when the process began to record.
    pub(in crate::symbolize) fn new(files: &SymbolFiles, started: SystemTime) -> FileLookup {
        let mut candidates = Vec::new();
        let mut strangers = Vec::new();
        for path in &files.binaries {
            match Candidate::of(path, true) {
                Some(candidate) => candidates.push(candidate),
                None => strangers.push(Stranger {
                    path: path.clone(),
                    id: None,
                }),
            }
        }
        for dir in &files.debug_dirs {
            candidates.extend(files_in(dir).chain(files_in(&dir.join(".debug"))));
        }
        let below = |dir: &str| {
            let sysroot = files.sysroot.as_deref().unwrap_or(Path::new("/"));
            sysroot.join(dir)
        };
        let mut dirs = files.debug_dirs.clone();
        dirs.extend([below("usr/lib/debug"), below("lib/debug")]);
        let parts: Vec<Vec<u8>> = candidates
            .iter()
            .filter_map(|candidate| candidate.shared.clone())
            .collect();
        for candidate in &mut candidates {
            candidate.is_stranger &= !parts.contains(&candidate.build_id);
        }
        let named = candidates
            .iter()
            .filter(|candidate| parts.contains(&candidate.build_id))
            .map(|candidate| (candidate.build_id.clone(), candidate.path.clone()))
            .collect();
        FileLookup {
            elf: ElfLookup {
                elsewhere: Some(started),
                ..ElfLookup::with_debug_dirs(DebugDirs::from(dirs).with_files(named))
            },
            sysroot: files.sysroot.clone(),
            candidates,
            strangers,
            started,
        }
    }

    /// Notes that a file that was named may be of `module`.
    pub(in crate::symbolize) fn meet(&mut self, module: &Module, hash: &str) {
        for candidate in &mut self.candidates {
            if is_of(&candidate.path, &candidate.build_id, module, hash) {
                candidate.is_stranger = false;
            }
        }
    }

    /// Notes that the units of the program are known.
    pub(in crate::symbolize) fn knows_units(&mut self) {
        self.elf.wants_units = false;
    }

    /// Looks `offsets` up like [`Lookup::lookup`](crate::symbolize::lookup::Lookup::lookup). `hash`: that of a module without a
    /// build id, or empty.
    pub(in crate::symbolize) fn look_up(
        &mut self,
        module: &Module,
        hash: &str,
        offsets: &[u64],
        found: &mut Found<'_>,
    ) {
        let mut left: Vec<usize> = (0..offsets.len()).collect();
        let mut has_file = false;
        for has_lines in [true, false] {
            for candidate in &self.candidates {
                if candidate.has_lines != has_lines
                    || !is_of(&candidate.path, &candidate.build_id, module, hash)
                {
                    continue;
                }
                has_file = true;
                let path = Some(candidate.path.clone());
                self.elf.look_up_in(module, path, &mut left, offsets, found);
            }
            // A file without lines answers for good, so one with lines comes first, wherever it is.
            if has_lines && let Some(path) = self.elf.debug_dirs.by_build_id(&module.build_id) {
                has_file = true;
                self.elf
                    .look_up_in(module, Some(path), &mut left, offsets, found);
            }
        }
        let own_path = self.own_path(module);
        // A file of the build was found: where the service had its own does not matter.
        if has_file && !own_path.exists() {
            for nth in left {
                found(nth, &[]);
            }
            return;
        }
        if left.is_empty() {
            return;
        }
        let rest: Vec<u64> = left.iter().map(|&nth| offsets[nth]).collect();
        let at_its_path = Module {
            path: own_path,
            ..module.clone()
        };
        // Without a build id only the hash tells.
        if module.build_id.is_empty() && !hash.is_empty() && !has_hash(&at_its_path.path, hash) {
            for &nth in &left {
                found(nth, &[]);
            }
            if at_its_path.path.exists() && !is_newer(&at_its_path.path, self.started) {
                self.elf.replaced.push(super::file_name(&module.path));
            }
            return;
        }
        self.elf.lookup(&at_its_path, &rest, &mut |nth, places| {
            found(left[nth], places);
        });
    }

    /// Returns where the file of `module` itself is.
    fn own_path(&self, module: &Module) -> PathBuf {
        match &self.sysroot {
            Some(sysroot) => sysroot.join(module.path.strip_prefix("/").unwrap_or(&module.path)),
            None => module.path.clone(),
        }
    }

    /// Returns whether a file of `module` has debug information, or symbols if those are what it lacks.
    pub(in crate::symbolize) fn offers(
        &self,
        module: &Module,
        hash: &str,
        lacks_functions: bool,
    ) -> bool {
        let has_more = |path: &Path| {
            let Some(object) = Object::open(path) else {
                return false;
            };
            let sections = &object.sections;
            is_of(path, &sections.build_id(), module, hash)
                && (sections.has(".debug_info")
                    || lacks_functions
                        && (sections.has(".symtab") || sections.has(".gnu_debugdata"))
                    || self.elf.debug_dirs.by_link(&object).is_some())
        };
        let given = self
            .candidates
            .iter()
            .map(|candidate| candidate.path.clone());
        let by_id = self.elf.debug_dirs.by_build_id(&module.build_id);
        let mut files = given.chain(by_id).chain([self.own_path(module)]);
        files.any(|path| has_more(&path))
    }

    /// Returns the named files that are of no module that was looked up.
    pub(in crate::symbolize) fn strangers(&self) -> Vec<Stranger> {
        let unused = self.candidates.iter().filter(|file| file.is_stranger);
        let unused = unused.map(|file| Stranger {
            path: file.path.clone(),
            id: Some(id_of(&file.path, &file.build_id)),
        });
        self.strangers.iter().cloned().chain(unused).collect()
    }

    /// Returns the lookup behind this, for units and notes.
    pub(in crate::symbolize) fn elf(&self) -> &ElfLookup {
        &self.elf
    }
}

/// Returns whether the file at `path`, which has `build_id`, is of the same build as `module`.
fn is_of(path: &Path, build_id: &[u8], module: &Module, hash: &str) -> bool {
    if module.build_id.is_empty() {
        return !hash.is_empty() && has_hash(path, hash)
            || hash.is_empty() && build_id.is_empty() && path == module.path;
    }
    build_id == module.build_id
}

fn has_hash(path: &Path, hash: &str) -> bool {
    file_hash::of(path).is_some_and(|found| hex::digits(&found) == hash)
}

fn id_of(path: &Path, build_id: &[u8]) -> String {
    if build_id.is_empty() {
        return file_hash::of(path).map_or_else(String::new, |hash| hex::digits(&hash));
    }
    hex::digits(build_id)
}

/// What an ELF file has for names.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ElfFile {
    /// Its build id, in hexadecimal; empty if it has none.
    pub build_id: String,
    /// OpenTelemetry's hash of its first and last bytes and its length, `htlhash`, in hexadecimal.
    pub hash: String,
    /// Whether it has debug information: files, lines and inlined calls.
    pub has_lines: bool,
    /// Whether it has a table of functions.
    pub has_functions: bool,
    /// The build id of the file to which `dwz` moved what several debug files share, in hexadecimal; empty if there is none.
    pub shared: String,
    /// Whether its section `.debug_gdb_scripts` has no bytes, as `objcopy --only-keep-debug` leaves it. Programs in Go then read no
    /// debug information at all.
    pub is_unreadable_in_go: bool,
}

impl ElfFile {
    /// Reads the sections of the file at `path`. `None` if it is not a 64-bit ELF file that can be read.
    #[must_use]
    pub fn read(path: &Path) -> Option<ElfFile> {
        let sections = Sections::of(path)?;
        Some(ElfFile {
            build_id: hex::digits(&sections.build_id()),
            hash: hex::digits(&file_hash::of(path)?),
            has_lines: sections.has(".debug_info"),
            has_functions: sections.has(".symtab"),
            shared: shared_by(&sections).map_or_else(String::new, |id| hex::digits(&id)),
            is_unreadable_in_go: sections.has_without_bytes(".debug_gdb_scripts"),
        })
    }
}
