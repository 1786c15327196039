//! The functions of a unit and the calls that are inlined in them.

use gimli::{AttributeValue, EntriesRaw, constants};

use super::lines::Row;
use super::ranges::{Extent, within};
use super::references::{Names, References};
use super::{Bytes, UnitRef};

/// The entries between two looks at the memory: a unit may have millions.
const PART: usize = 16_384;

/// A function that runs at an address.
#[derive(Debug, Clone)]
pub(super) struct Call<'d> {
    /// Its mangled name if the compiler wrote one, else its plain name.
    pub(super) symbol: Option<Bytes<'d>>,
    /// Where it is inlined. Of no meaning for a function that is called.
    pub(super) at: Row,
}

/// Returns for each of `addresses`, which ascend, the function that has it and the calls that are inlined there, outermost
/// first.
pub(super) fn find<'d>(
    unit: UnitRef<'_, 'd>,
    addresses: &[u64],
    references: &mut References<'_, 'd>,
) -> gimli::Result<Vec<Vec<Call<'d>>>> {
    let mut found = vec![Vec::new(); addresses.len()];
    let mut entries = unit.entries_raw(None)?;
    // The depth of the outermost function that has an address, while its parts are walked over.
    let mut function: Option<isize> = None;
    let mut read: usize = 0;
    while !entries.is_empty() {
        read += 1;
        if read.is_multiple_of(PART) {
            references.pages.bound();
        }
        let depth = entries.next_depth();
        let Some(abbreviation) = entries.read_abbreviation()? else {
            continue;
        };
        function = function.filter(|outer| depth > *outer);
        let is_called = abbreviation.tag() == constants::DW_TAG_subprogram;
        let is_inlined = abbreviation.tag() == constants::DW_TAG_inlined_subroutine;
        if !is_called && (!is_inlined || function.is_none()) {
            entries.skip_attributes(abbreviation.attributes())?;
            continue;
        }
        let entry = Entry::read(unit, &mut entries, abbreviation.attributes())?;
        let mut call = None;
        entry.extent.for_each(unit, &mut |range| {
            for nth in within(addresses, range) {
                let call = call.get_or_insert_with(|| Call {
                    symbol: references.symbol(unit, &entry.names),
                    at: entry.at,
                });
                if is_called {
                    found[nth].clear();
                }
                found[nth].push(call.clone());
            }
        })?;
        if is_called && call.is_some() {
            function = function.or(Some(depth));
        }
    }
    Ok(found)
}

/// What an entry says about a function or an inlined call.
#[derive(Debug)]
struct Entry<'d> {
    extent: Extent,
    names: Names<'d>,
    at: Row,
}

impl<'d> Entry<'d> {
    fn read(
        unit: UnitRef<'_, 'd>,
        entries: &mut EntriesRaw<'_, Bytes<'d>>,
        attributes: &[gimli::AttributeSpecification],
    ) -> gimli::Result<Self> {
        let mut entry = Entry {
            extent: Extent::default(),
            names: Names::default(),
            at: Row { file: 0, line: 0 },
        };
        for &attribute in attributes {
            let attribute = entries.read_attribute(attribute)?;
            match attribute.name() {
                constants::DW_AT_call_file => {
                    if let AttributeValue::FileIndex(file) = attribute.value() {
                        entry.at.file = file;
                    }
                }
                constants::DW_AT_call_line => {
                    let line = attribute
                        .udata_value()
                        .and_then(|line| line.try_into().ok());
                    entry.at.line = line.unwrap_or(0);
                }
                _ => {
                    entry.extent.see(unit, &attribute)?;
                    entry.names.see(&attribute);
                }
            }
        }
        Ok(entry)
    }
}
