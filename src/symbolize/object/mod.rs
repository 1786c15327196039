//! ELF files that have names: programs, libraries and their separate debug files.

mod debug_files;
mod pages;
mod sections;
mod symbols;

use std::borrow::Cow;
use std::path::{Path, PathBuf};

pub(super) use debug_files::DebugDirs;
pub(super) use pages::Pages;
pub(super) use sections::DwarfSections;
pub(super) use symbols::Symbols;

use crate::os::elf::Sections;
use crate::os::mapped_file::MappedFile;

/// An ELF file. Its sections are read through the page cache.
#[derive(Debug)]
pub(super) struct Object {
    pub(super) path: PathBuf,
    pub(super) sections: Sections,
    bytes: MappedFile,
}

impl Object {
    /// Opens the file at `path`. Returns `None` if it is not a 64-bit little-endian ELF file.
    pub(super) fn open(path: &Path) -> Option<Object> {
        let sections = Sections::of(path)?;
        Some(Object {
            bytes: MappedFile::of(sections.file())?,
            path: path.to_owned(),
            sections,
        })
    }

    /// Returns the bytes of a section, decompressed; none if it is missing, or of a compression that is not understood.
    pub(super) fn section(&self, name: &str) -> Cow<'_, [u8]> {
        let place = self.sections.place(name);
        let bytes = place.and_then(|(place, is_compressed)| {
            let bytes = self.bytes.bytes().get(place)?;
            if is_compressed {
                sections::decompressed(bytes).map(Cow::Owned)
            } else {
                Some(Cow::Borrowed(bytes))
            }
        });
        bytes.unwrap_or_default()
    }

    /// Gives the memory of what was read so far back to the page cache.
    pub(super) fn give_back(&self) {
        self.bytes.give_back();
    }
}
