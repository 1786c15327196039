//! The compilation units of a program's Rust code: of each only the first entry, which names the crate's root file and the
//! directory in which the crate was compiled.
//!
//! Each unit takes a few small reads of the file, so a large file does not come into memory: 2,500 units take some 10 ms.

use std::collections::HashMap;

use gimli::{
    AttributeValue, DebugAbbrev, DebugAbbrevOffset, DebugInfo, DwAt, LittleEndian, UnitHeader,
    UnitOffset, constants,
};
use heapray_report::sources::Unit;

use super::Bytes;
use crate::os::elf::Sections;

/// The bytes of a unit that are read: its header and first entry, which take less than 100.
const HEAD: u64 = 512;

/// The bytes of a unit's declarations that are read. The first declares the first entry: pairs of an attribute and its form.
const DECLARATION: u64 = 512;

/// The bytes of a text that are read. Longer ones are cut.
const TEXT: u64 = 4096;

/// The most units that are read. The largest Rust programs have some tens of thousands.
const MOST: usize = 200_000;

/// Reads the units of the Rust code in a file, one after another. There are none if it has no debug information, or if that
/// is compressed, split or of a form that is not understood.
pub(in crate::symbolize) fn of(sections: &Sections) -> impl Iterator<Item = Unit> {
    let mut texts = Texts {
        sections,
        known: HashMap::new(),
    };
    let mut at = 0;
    let units = std::iter::from_fn(move || {
        let mut head = sections.part(".debug_info", at, HEAD);
        let length = u32::from_le_bytes(*head.first_chunk()?);
        // This and larger values mark the 64-bit form of DWARF, which rustc does not write.
        if length >= 0xffff_fff0 {
            return None;
        }
        at += 4 + u64::from(length);
        Some(texts.unit(&mut head, length))
    });
    units.take(MOST).flatten()
}

/// Reads units, and the texts that they refer to. Many units have the same directory.
struct Texts<'s> {
    sections: &'s Sections,
    known: HashMap<(&'static str, u64), String>,
}

impl Texts<'_> {
    /// Returns the unit that begins with `head` and has `length` bytes after its length, or `None` if it is not Rust code.
    fn unit(&mut self, head: &mut Vec<u8>, length: u32) -> Option<Unit> {
        // As if the unit ended here: more of it is not needed.
        let whole = usize::try_from(length).ok()?.checked_add(4)?;
        head.truncate(whole);
        let shorter = u32::try_from(head.len() - 4).ok()?;
        *head.first_chunk_mut()? = shorter.to_le_bytes();
        let info = DebugInfo::new(head, LittleEndian);
        let unit = info.units().next().ok()??;
        let declaration = self.sections.part(
            ".debug_abbrev",
            u64::try_from(unit.debug_abbrev_offset().0).ok()?,
            DECLARATION,
        );
        let declaration = first_declaration(declaration)?;
        let declarations = DebugAbbrev::new(&declaration, LittleEndian);
        let declarations = declarations.abbreviations(DebugAbbrevOffset(0)).ok()?;
        let first = unit
            .entry(&declarations, UnitOffset(unit.header_size()))
            .ok()?;
        if first.attr_value(constants::DW_AT_language)
            != Some(AttributeValue::Language(constants::DW_LANG_Rust))
        {
            return None;
        }
        let offsets = match first.attr_value(constants::DW_AT_str_offsets_base) {
            Some(AttributeValue::DebugStrOffsetsBase(base)) => base.0 as u64,
            _ => 0,
        };
        let mut text = |attribute: DwAt| {
            let value = first.attr_value(attribute)?;
            self.text(value, &unit, offsets)
        };
        let name = text(constants::DW_AT_name)?;
        let directory = text(constants::DW_AT_comp_dir).unwrap_or_default();
        // rustc writes `src/main.rs/@/shop.0a1b2c-cgu.0`, and `src/main.rs/@/0a1b2c` in incremental builds.
        let (root, part) = name.split_once("/@/").unwrap_or((&name, ""));
        let crate_name = part.split_once('.').map(|(name, _)| name.to_owned());
        Some(Unit {
            root: root.to_owned(),
            directory: directory.trim_end_matches('/').to_owned(),
            crate_name,
        })
    }

    fn text(
        &mut self,
        value: AttributeValue<Bytes<'_>>,
        unit: &UnitHeader<Bytes<'_>>,
        offsets: u64,
    ) -> Option<String> {
        match value {
            AttributeValue::String(bytes) => Some(bytes.to_string_lossy().into_owned()),
            AttributeValue::DebugStrRef(at) => Some(self.at(".debug_str", at.0 as u64)),
            AttributeValue::DebugLineStrRef(at) => Some(self.at(".debug_line_str", at.0 as u64)),
            AttributeValue::DebugStrOffsetsIndex(index) => {
                let size = u64::from(unit.format().word_size());
                let at = offsets.checked_add(size.checked_mul(index.0 as u64)?)?;
                let bytes = self.sections.part(".debug_str_offsets", at, 4);
                let at = u32::from_le_bytes(*bytes.first_chunk()?);
                Some(self.at(".debug_str", u64::from(at)))
            }
            _ => None,
        }
    }

    fn at(&mut self, section: &'static str, offset: u64) -> String {
        let sections = self.sections;
        let read = || {
            let bytes = sections.part(section, offset, TEXT);
            let end = bytes.iter().position(|&byte| byte == 0);
            String::from_utf8_lossy(&bytes[..end.unwrap_or(bytes.len())]).into_owned()
        };
        self.known
            .entry((section, offset))
            .or_insert_with(read)
            .clone()
    }
}

/// Returns the first declaration of `bytes`, followed by the end of all declarations.
fn first_declaration(mut bytes: Vec<u8>) -> Option<Vec<u8>> {
    let mut at = 0;
    let mut number = || {
        let start = at;
        while *bytes.get(at)? & 0x80 != 0 {
            at += 1;
        }
        at += 1;
        Some((bytes[start], at))
    };
    number()?; // its number
    number()?; // the entry's kind
    number()?; // whether the entry has children
    let end = loop {
        let (attribute, _) = number()?;
        let (form, end) = number()?;
        if form == constants::DW_FORM_implicit_const.0 as u8 {
            number()?;
        }
        if (attribute, form) == (0, 0) {
            break end;
        }
    };
    bytes.truncate(end);
    bytes.push(0);
    Some(bytes)
}
