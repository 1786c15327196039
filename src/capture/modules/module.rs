//! A loaded object, as reports name it.

use std::path::PathBuf;

/// ELF object that was loaded at some time of the session.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Module {
    /// Path as the loader gave it; `/proc/self/exe`'s target for the program itself.
    #[serde(with = "path")]
    pub path: PathBuf,
    /// The difference between an address in memory and the virtual address in the file.
    pub load_bias: u64,
    /// First address of the module in memory.
    pub start: u64,
    /// Address after the module's last one.
    pub end: u64,
    /// Its code, if it has any.
    pub code: Option<MappedCode>,
    /// GNU build id; empty if it has none.
    pub build_id: Vec<u8>,
    /// Set for the program itself (read it through `/proc/self/exe`, which survives a replaced file).
    pub is_main: bool,
}

/// The pages of a module's code, as a line of `/proc/self/maps` has them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct MappedCode {
    /// The first page's address.
    pub start: u64,
    /// Address after the last page.
    pub end: u64,
    /// Offset in the file of the first page.
    pub offset: u64,
}

impl Module {
    /// Returns whether it has `address`, if it is loaded.
    #[cfg_attr(not(target_os = "linux"), allow(dead_code))]
    pub(super) fn covers(&self, address: u64) -> bool {
        (self.start..self.end).contains(&address)
    }
}

impl MappedCode {
    /// Returns the pages of the segments that lie in `code` and begin in the file at `offset`.
    pub(super) fn around(code: (u64, u64), offset: u64, page: u64) -> MappedCode {
        let into_page = code.0 % page;
        MappedCode {
            start: code.0 - into_page,
            end: code.1.checked_next_multiple_of(page).unwrap_or(code.1),
            offset: offset.saturating_sub(into_page),
        }
    }
}

/// Index into [`StackTable::modules`](crate::collector::snapshot::StackTable::modules); `ModuleId::NONE` for an address
/// outside of every module.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize,
)]
pub struct ModuleId(pub u16);

impl ModuleId {
    /// Not in a module: code that was generated at run time, or the mark of a cut stack.
    pub const NONE: ModuleId = ModuleId(u16::MAX);
}

/// A path, as bytes: it need not be UTF-8.
mod path {
    use std::ffi::OsString;
    use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
    use std::path::{Path, PathBuf};

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(super) fn serialize<S: Serializer>(path: &Path, to: S) -> Result<S::Ok, S::Error> {
        path.as_os_str().as_bytes().serialize(to)
    }

    pub(super) fn deserialize<'d, D: Deserializer<'d>>(from: D) -> Result<PathBuf, D::Error> {
        Vec::deserialize(from).map(|bytes| OsString::from_vec(bytes).into())
    }
}
