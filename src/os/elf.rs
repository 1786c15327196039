//! The sections of an ELF file. They are read one by one, so only the requested parts of a large file are in memory.
//!
//! Files may be damaged or hostile: a section that does not fit into the file counts as missing. Only 64-bit little-endian
//! files are read. All supported machines have these.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use crate::capture::modules::find_build_id;

const MAGIC: &[u8] = b"\x7fELF\x02\x01";
const HEADER: usize = 64;
const ENTRY: usize = 64;
const SHT_NOBITS: u32 = 8;
const SHF_COMPRESSED: u64 = 1 << 11;
/// `ch_type` of a section that is compressed with zstd (gABI, "Section Compression").
pub(crate) const ELFCOMPRESS_ZSTD: u32 = 2;

/// The most bytes of a note that are read.
const NOTE: u64 = 4096;

/// A file and its table of sections.
#[derive(Debug)]
pub(crate) struct Sections {
    file: File,
    length: u64,
    entry: u64,
    list: Vec<Section>,
}

#[derive(Debug)]
struct Section {
    name: String,
    flags: u64,
    offset: u64,
    size: u64,
}

impl Sections {
    /// Reads the table of sections of the file at `path`. Returns `None` if it is not a 64-bit little-endian ELF file.
    pub(crate) fn of(path: &Path) -> Option<Sections> {
        Sections::of_file(File::open(path).ok()?)
    }

    /// Reads the table of sections of an open file, like [`Sections::of`].
    pub(crate) fn of_file(file: File) -> Option<Sections> {
        let metadata = file.metadata().ok()?;
        if !metadata.is_file() {
            return None;
        }
        let length = metadata.len();
        let header = read(&file, length, 0, HEADER as u64).ok()?;
        if !header.starts_with(MAGIC) || u16_at(&header, 58)? as usize != ENTRY {
            return None;
        }
        let (count, of_names) = (u16_at(&header, 60)?, u16_at(&header, 62)?);
        let table = u64_at(&header, 40)?;
        let table = read(&file, length, table, u64::from(count) * ENTRY as u64).ok()?;
        let entry = |number: u16| table.chunks_exact(ENTRY).nth(usize::from(number));
        let names = entry(of_names)?;
        let names = read(&file, length, u64_at(names, 24)?, u64_at(names, 32)?).ok()?;
        let list = table.chunks_exact(ENTRY).filter_map(|entry| {
            let name = names.get(u32_at(entry, 0)? as usize..)?;
            let name = name.split(|&byte| byte == 0).next()?;
            let has_bytes = u32_at(entry, 4)? != SHT_NOBITS;
            Some(Section {
                name: String::from_utf8_lossy(name).into_owned(),
                flags: u64_at(entry, 8)?,
                offset: u64_at(entry, 24)?,
                size: if has_bytes { u64_at(entry, 32)? } else { 0 },
            })
        });
        let list = list.collect();
        Some(Sections {
            file,
            length,
            entry: u64_at(&header, 24)?,
            list,
        })
    }

    /// Returns the virtual address of the program's first instruction.
    pub(crate) fn entry(&self) -> u64 {
        self.entry
    }

    fn find(&self, name: &str) -> Option<&Section> {
        let found = self.list.iter().find(|section| section.name == name);
        found.filter(|section| section.size > 0)
    }

    /// Returns whether the file has a section of that name that is not empty.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.find(name).is_some()
    }

    /// Returns whether the file has a section of that name without its bytes, as `objcopy --only-keep-debug` leaves code.
    pub(crate) fn has_without_bytes(&self, name: &str) -> bool {
        let mut sections = self.list.iter();
        sections.any(|section| section.name == name && section.size == 0)
    }

    /// Returns at most `size` bytes of a section from `offset` on: fewer at its end, and none if the section is missing or
    /// compressed.
    pub(crate) fn part(&self, name: &str, offset: u64, size: u64) -> Vec<u8> {
        let section = self.find(name);
        let Some(section) = section.filter(|section| section.flags & SHF_COMPRESSED == 0) else {
            return Vec::new();
        };
        let size = size.min(section.size.saturating_sub(offset));
        let Some(start) = section.offset.checked_add(offset) else {
            return Vec::new();
        };
        read(&self.file, self.length, start, size).unwrap_or_default()
    }

    /// Returns the GNU build id; empty if the file has none.
    pub(crate) fn build_id(&self) -> Vec<u8> {
        let notes = self
            .list
            .iter()
            .filter(|section| section.name.starts_with(".note"));
        let mut ids = notes.filter_map(|section| {
            let bytes = read(
                &self.file,
                self.length,
                section.offset,
                section.size.min(NOTE),
            );
            find_build_id(&bytes.ok()?).map(<[u8]>::to_vec)
        });
        ids.next().unwrap_or_default()
    }

    /// Returns where in the file a section lies, and whether it is compressed; `None` if the section is missing or incomplete.
    pub(crate) fn place(&self, name: &str) -> Option<(Range<usize>, bool)> {
        let section = self.find(name)?;
        let end = section.offset.checked_add(section.size);
        let end = end.filter(|end| *end <= self.length)?;
        let place = usize::try_from(section.offset).ok()?..usize::try_from(end).ok()?;
        Some((place, section.flags & SHF_COMPRESSED != 0))
    }

    /// Returns the open file.
    pub(crate) fn file(&self) -> &File {
        &self.file
    }

    /// Returns whether debug information is compressed with zstd.
    pub(crate) fn has_zstd(&self) -> bool {
        self.list
            .iter()
            .filter(|section| section.name.starts_with(".debug_"))
            .filter(|section| section.flags & SHF_COMPRESSED != 0)
            .any(|section| {
                let kind = read(&self.file, self.length, section.offset, 4);
                kind.is_ok_and(|kind| u32_at(&kind, 0) == Some(ELFCOMPRESS_ZSTD))
            })
    }
}

/// Reads `size` bytes at `offset` of a file of `length` bytes.
fn read(file: &File, length: u64, offset: u64, size: u64) -> io::Result<Vec<u8>> {
    let whole = offset.checked_add(size).is_some_and(|end| end <= length);
    let size = usize::try_from(size).ok().filter(|_| whole);
    let mut bytes = vec![0; size.ok_or(io::ErrorKind::UnexpectedEof)?];
    file.read_exact_at(&mut bytes, offset)?;
    Ok(bytes)
}

pub(crate) fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

pub(crate) fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

pub(crate) fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}
