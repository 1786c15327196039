//! ELF files that have names: programs, libraries and their separate debug files.

#[cfg(feature = "debug-files")]
mod compressed;
mod debug_files;
mod pages;
mod sections;
mod symbols;

use std::borrow::Cow;
use std::path::{Path, PathBuf};

pub(super) use debug_files::{DebugDirs, shared_link};
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
        Object::of(Sections::of(path)?, path)
    }

    fn of(sections: Sections, path: &Path) -> Option<Object> {
        Some(Object {
            bytes: MappedFile::of(sections.file())?,
            path: path.to_owned(),
            sections,
        })
    }

    /// Returns the ELF file in the section `.gnu_debugdata`, if there is one: it has the functions of a stripped program that
    /// are not exported. Always `None` without the feature `debug-files`.
    pub(super) fn embedded(&self) -> Option<Object> {
        #[cfg(feature = "debug-files")]
        {
            let packed = self.section(".gnu_debugdata");
            let packed = (!packed.is_empty()).then_some(packed)?;
            let file = compressed::xz_file(&packed).ok()?;
            Object::of(Sections::of_file(file)?, &self.path)
        }
        #[cfg(not(feature = "debug-files"))]
        None
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
