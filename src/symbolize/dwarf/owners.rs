//! Which compilation unit has an address.

use gimli::{DebugInfoOffset, UnitType};

use super::lines;
use super::ranges::{Extent, within};
use super::{Dwarf, Pages, UnitRef, Wanted};

/// The units between two looks at the memory, and at whether the result is still wanted.
const PART: usize = 8;

/// The units of a file, and which of the wanted addresses each has.
#[derive(Debug, Default)]
pub(super) struct Owners {
    /// Where each unit begins, in ascending order.
    pub(super) units: Vec<DebugInfoOffset>,
    /// The addresses that have a unit, by unit, each unit's in ascending order.
    pub(super) owned: Vec<Owned>,
}

/// An address, its index among all addresses, and where its unit begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Owned {
    pub(super) unit: DebugInfoOffset,
    pub(super) nth: usize,
    pub(super) address: u64,
}

/// Finds the unit of each of `addresses`, which ascend. `pages` are those of the file.
pub(super) fn of(
    dwarf: &Dwarf<'_>,
    addresses: &[u64],
    wanted: &Wanted,
    pages: &Pages<'_>,
) -> Owners {
    let mut owners = Owners::default();
    let mut owner: Vec<Option<DebugInfoOffset>> = vec![None; addresses.len()];
    let mut units = dwarf.units();
    // Behind a damaged unit no other one can be found.
    while let Ok(Some(header)) = units.next() {
        let Some(at) = header.debug_info_offset() else {
            continue;
        };
        owners.units.push(at);
        if owners.units.len().is_multiple_of(PART) {
            pages.bound();
            if !wanted.still() {
                break;
            }
        }
        // Types have no code, and partial units are only there for others to refer to.
        if matches!(
            header.type_(),
            UnitType::Compilation | UnitType::Skeleton(_)
        ) && let Ok(unit) = dwarf.unit(header)
        {
            // What was found until the damage counts.
            let _ = code(unit.unit_ref(dwarf), &mut |range| {
                owner[within(addresses, range)].fill(Some(at));
            });
        }
    }
    let owned = owner.into_iter().zip(addresses).enumerate();
    let owned = owned.filter_map(|(nth, (unit, &address))| {
        Some(Owned {
            unit: unit?,
            nth,
            address,
        })
    });
    owners.owned = owned.collect();
    owners.owned.sort_by_key(|owned| owned.unit.0);
    owners
}

/// Calls `each` with every range of a unit's code.
fn code(unit: UnitRef<'_, '_>, each: &mut dyn FnMut(gimli::Range)) -> gimli::Result<()> {
    let mut extent = Extent::default();
    let mut entries = unit.entries_raw(None)?;
    if let Some(abbreviation) = entries.read_abbreviation()? {
        for &attribute in abbreviation.attributes() {
            extent.see(unit, &entries.read_attribute(attribute)?)?;
        }
    }
    if !extent.for_each(unit, each)? {
        // Some compilers leave the ranges out.
        lines::sequences(unit, each)?;
    }
    Ok(())
}
