//! The sections with debug information.

use std::borrow::Cow;

use gimli::{LittleEndian, SectionId};

use super::Object;
#[cfg(feature = "debug-files")]
use crate::os::elf::ELFCOMPRESS_ZSTD;
use crate::os::elf::{u32_at, u64_at};
use crate::symbolize::dwarf::{Bytes, Dwarf};

/// `ch_type` of a compressed section (gABI, "Section Compression").
const ELFCOMPRESS_ZLIB: u32 = 1;

/// The most that a section may grow by: a damaged or hostile file must not take the memory. Sections of the sample grow by 3 to 9.
const MOST_RATIO: usize = 100;

/// Size of the header of a compressed section.
const HEADER: usize = 24;

/// The sections that the lookup of functions and lines reads.
const READ: [SectionId; 10] = [
    SectionId::DebugAbbrev,
    SectionId::DebugAddr,
    // Of a package of split debug information.
    SectionId::DebugCuIndex,
    SectionId::DebugInfo,
    SectionId::DebugLine,
    SectionId::DebugLineStr,
    SectionId::DebugRanges,
    SectionId::DebugRngLists,
    SectionId::DebugStr,
    SectionId::DebugStrOffsets,
];

/// The debug information of a file: its bytes, decompressed where they were compressed.
#[derive(Debug)]
pub(in crate::symbolize) struct DwarfSections<'o>(Vec<(SectionId, Cow<'o, [u8]>)>);

impl<'o> DwarfSections<'o> {
    /// Returns the sections of a program, a library or a debug file.
    pub(in crate::symbolize) fn of(object: &'o Object) -> Self {
        DwarfSections::named(object, |id| Some(id.name()))
    }

    /// Returns the sections of a file with split debug information: a `.dwo` file or a package of them.
    pub(in crate::symbolize) fn of_split(object: &'o Object) -> Self {
        DwarfSections::named(object, SectionId::dwo_name)
    }

    fn named(object: &'o Object, name: impl Fn(SectionId) -> Option<&'static str>) -> Self {
        let section = |id: SectionId| Some((id, object.section(name(id)?)));
        DwarfSections(READ.into_iter().filter_map(section).collect())
    }

    /// Returns the bytes of a section for the parser; none if it is missing.
    pub(in crate::symbolize) fn get(&self, id: SectionId) -> Bytes<'_> {
        let found = self.0.iter().find(|(known, _)| *known == id);
        Bytes::new(found.map_or(&[], |(_, bytes)| bytes), LittleEndian)
    }

    /// Returns the parser of these sections.
    pub(in crate::symbolize) fn dwarf(&self) -> Dwarf<'_> {
        let loaded = Dwarf::load(|id| Ok::<_, std::convert::Infallible>(self.get(id)));
        match loaded {
            Ok(dwarf) => dwarf,
            Err(never) => match never {},
        }
    }
}

/// Returns the content of a compressed section, or `None` if it is damaged, or compressed with something else than zlib and,
/// with the feature `debug-files`, zstd.
pub(super) fn decompressed(section: &[u8]) -> Option<Vec<u8>> {
    let size = usize::try_from(u64_at(section, 8)?).ok()?;
    let bytes = section.get(HEADER..)?;
    let size = (size / MOST_RATIO <= bytes.len()).then_some(size)?;
    match u32_at(section, 0)? {
        ELFCOMPRESS_ZLIB => {
            miniz_oxide::inflate::decompress_to_vec_zlib_with_limit(bytes, size).ok()
        }
        #[cfg(feature = "debug-files")]
        ELFCOMPRESS_ZSTD => super::compressed::zstd(bytes, size),
        _ => None,
    }
}
