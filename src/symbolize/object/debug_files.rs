//! Where the separate debug file of a program or a library is.
//!
//! The rules are gdb's ("Separate Debug Files" in its manual): by build id below a directory of debug files, or by the name
//! in a debug link, beside the file or below such a directory.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use super::{Object, Pages};
use crate::hex;
use crate::os::elf::{Sections, u32_at};

/// The bytes of a file that are summed up at once.
const PART: usize = 1 << 20;

/// Directories of separate debug files.
#[derive(Debug)]
pub(in crate::symbolize) struct DebugDirs {
    dirs: Vec<PathBuf>,
    /// Files by build id that are in none of them.
    named: Vec<(Vec<u8>, PathBuf)>,
}

impl Default for DebugDirs {
    fn default() -> Self {
        DebugDirs::from(vec!["/usr/lib/debug".into(), "/lib/debug".into()])
    }
}

impl From<Vec<PathBuf>> for DebugDirs {
    fn from(dirs: Vec<PathBuf>) -> Self {
        DebugDirs {
            dirs,
            named: Vec::new(),
        }
    }
}

impl DebugDirs {
    /// Adds files by build id, in which what several debug files share may be.
    pub(in crate::symbolize) fn with_files(self, named: Vec<(Vec<u8>, PathBuf)>) -> DebugDirs {
        DebugDirs { named, ..self }
    }

    /// Returns the debug file of a build id.
    pub(in crate::symbolize) fn by_build_id(&self, build_id: &[u8]) -> Option<PathBuf> {
        let (first, rest) = build_id.split_first()?;
        let name = format!(
            ".build-id/{}/{}.debug",
            hex::digits(&[*first]),
            hex::digits(rest)
        );
        let mut files = self.dirs.iter().map(|dir| dir.join(&name));
        files
            .find(|path| Sections::of(path).is_some_and(|sections| sections.build_id() == build_id))
    }

    /// Returns the debug file that the debug link of `object` names: a file with the checksum that the link tells.
    pub(in crate::symbolize) fn by_link(&self, object: &Object) -> Option<Object> {
        let section = object.section(".gnu_debuglink");
        let (name, checksum) = link(&section)?;
        let path = object.path.canonicalize().ok()?;
        let dir = path.parent()?;
        let below = dir.strip_prefix("/").unwrap_or(dir);
        let beside = [dir.join(name), dir.join(".debug").join(name)];
        let elsewhere = self.dirs.iter().map(|debug| debug.join(below).join(name));
        let mut files = beside.into_iter().chain(elsewhere);
        files.find_map(|file| {
            let linked = Object::open(&file).filter(|_| file != path)?;
            (crc32(&linked) == checksum).then_some(linked)
        })
    }

    /// Returns the file to which `dwz` moved what several debug files share, if `object` names one.
    pub(in crate::symbolize) fn shared(&self, object: &Object) -> Option<Object> {
        let section = object.section(".gnu_debugaltlink");
        let (name, build_id) = shared_link(&section)?;
        let dir = object.path.canonicalize().ok()?.parent()?.to_owned();
        let beside = Object::open(&dir.join(name));
        let beside = beside.filter(|object| object.sections.build_id() == build_id);
        let named = || {
            let mut named = self.named.iter();
            Some(named.find(|(id, _)| id == build_id)?.1.clone())
        };
        beside.or_else(|| Object::open(&self.by_build_id(build_id).or_else(named)?))
    }
}

/// Returns the name and the build id of the file to which `dwz` moved a part of a file, which `section`, `.gnu_debugaltlink`, tells.
pub(in crate::symbolize) fn shared_link(section: &[u8]) -> Option<(&Path, &[u8])> {
    let end = section.iter().position(|&byte| byte == 0)?;
    let (name, build_id) = section.split_at(end);
    Some((Path::new(OsStr::from_bytes(name)), &build_id[1..]))
}

/// Returns the file name and the checksum of a debug link: the name, padding to a multiple of four, the checksum.
fn link(section: &[u8]) -> Option<(&OsStr, u32)> {
    let end = section.iter().position(|&byte| byte == 0)?;
    let checksum = u32_at(section, (end + 1).next_multiple_of(4))?;
    let name = Path::new(OsStr::from_bytes(&section[..end])).file_name()?;
    Some((name, checksum))
}

/// Returns the checksum of a file: that of zip files and of debug links (CRC-32, polynomial 0xedb88320).
fn crc32(object: &Object) -> u32 {
    let pages = Pages::of([object]);
    let parts = object.bytes.bytes().chunks(PART);
    let sum = parts.fold(!0, |sum, part| {
        pages.bound();
        crc32_of(part, sum)
    });
    !sum
}

/// Returns the checksum after `bytes`, before its final inversion, if it was `sum` before them.
fn crc32_of(bytes: &[u8], sum: u32) -> u32 {
    const TABLE: [u32; 256] = {
        let mut table = [0; 256];
        let mut byte = 0;
        while byte < 256 {
            let mut value = byte as u32;
            let mut bit = 0;
            while bit < 8 {
                value = (value >> 1) ^ (0xedb8_8320 * (value & 1));
                bit += 1;
            }
            table[byte] = value;
            byte += 1;
        }
        table
    };
    bytes.iter().fold(sum, |sum, &byte| {
        (sum >> 8) ^ TABLE[usize::from(sum as u8 ^ byte)]
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_is_that_of_zip_files() {
        assert_eq!(!crc32_of(b"123456789", !0), 0xcbf4_3926);
        assert_eq!(!crc32_of(b"56789", crc32_of(b"1234", !0)), 0xcbf4_3926);
    }

    #[test]
    fn a_link_has_a_name_without_directories_and_a_checksum() {
        let section = b"../lib.so.debug\0\x78\x56\x34\x12";
        assert_eq!(
            link(section),
            Some((OsStr::new("lib.so.debug"), 0x1234_5678))
        );
        assert_eq!(link(b"lib.so.debug"), None);
        assert_eq!(link(b"lib\0\x78\x56"), None);
    }
}
