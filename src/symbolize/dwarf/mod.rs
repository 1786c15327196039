//! Functions, inlined calls, files and lines by debug information (DWARF 2 to 5).
//!
//! A debug file may be far larger than the memory that a lookup may take. So nothing is kept that grows with the file:
//!
//! 1. `owners` walks over the compilation units and notes of each address which unit has it.
//! 2. The units that have an address are read one after another: their lines (`lines`) and their functions (`functions`)
//!    are walked over once, and only what concerns the wanted addresses is kept until the next unit.
//!
//! The file is read through the page cache, and its pages are given back after every few megabytes.

mod functions;
mod lines;
mod owners;
mod ranges;
mod references;
mod split;
pub(super) mod units;

use std::borrow::Cow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;

use gimli::{EndianSlice, LittleEndian};

pub(super) use split::SplitFiles;

use functions::Call;
use lines::{Files, Row};
use owners::Owned;
use references::References;

use super::object::{DwarfSections, Object, Pages};
use super::wanted::Wanted;

pub(super) type Bytes<'b> = EndianSlice<'b, LittleEndian>;
pub(super) type Dwarf<'b> = gimli::Dwarf<Bytes<'b>>;
type Unit<'b> = gimli::Unit<Bytes<'b>>;
type UnitRef<'u, 'b> = gimli::UnitRef<'u, Bytes<'b>>;

/// A function that runs at an address: the one that was called, or one that is inlined there.
#[derive(Debug, Clone)]
pub(super) struct Frame<'f> {
    /// The function's symbol; `None` if the code has no function.
    pub(super) symbol: Option<Cow<'f, str>>,
    /// The source file as the compiler saw it; empty if unknown.
    pub(super) file: Rc<str>,
    /// Line in `file`, from 1; 0 if unknown.
    pub(super) line: u32,
}

/// A callback that gets the index of an address and its frames, outermost first.
pub(super) type Found<'f> = dyn FnMut(usize, &[Frame<'_>]) + 'f;

/// Looks up `addresses`, which ascend, in the debug information of `object`, and calls `found` for each that has frames.
/// `shared` is the file to which `dwz` moved a part of it.
pub(super) fn look_up(
    object: &Object,
    shared: Option<&Object>,
    addresses: &[u64],
    split: &mut SplitFiles,
    wanted: &Wanted,
    found: &mut Found<'_>,
) {
    let sections = DwarfSections::of(object);
    let shared_sections = shared.map(DwarfSections::of);
    let mut dwarf = sections.dwarf();
    if let Some(shared) = &shared_sections {
        dwarf.set_sup(shared.dwarf());
    }
    let pages = Pages::of([object].into_iter().chain(shared));
    // A damaged file must not end the service: an address whose unit cannot be read has no frames.
    let owners = catch_unwind(AssertUnwindSafe(|| {
        owners::of(&dwarf, addresses, wanted, &pages)
    }));
    let Ok(owners) = owners else { return };
    let mut references = References::new(&dwarf, owners.units, &pages);
    for owned in owners.owned.chunk_by(|a, b| a.unit == b.unit) {
        if !wanted.still() {
            return;
        }
        // The addresses of a damaged unit have no frames.
        let _ = catch_unwind(AssertUnwindSafe(|| {
            look_up_in_unit(&sections, &dwarf, owned, &mut references, split, found)
        }));
        pages.bound();
    }
}

/// Looks up the addresses of one unit, which are `owned` by it. Returns `None` if it is damaged.
fn look_up_in_unit<'d>(
    sections: &DwarfSections<'_>,
    dwarf: &Dwarf<'d>,
    owned: &[Owned],
    references: &mut References<'_, 'd>,
    split: &mut SplitFiles,
    found: &mut Found<'_>,
) -> Option<()> {
    let at = owned.first()?.unit;
    let header = dwarf.unit_header(at).ok()?;
    let unit = dwarf.unit(header).ok()?;
    let unit = unit.unit_ref(dwarf);
    let wanted: Vec<u64> = owned.iter().map(|owned| owned.address).collect();
    let rows = lines::find(unit, &wanted).ok()?;
    let mut files = Files::of(unit);
    let mut answer = |calls: &[Vec<Call<'_>>]| {
        for ((calls, row), owned) in calls.iter().zip(&rows).zip(owned) {
            let frames = frames(calls, *row, &mut files);
            if !frames.is_empty() {
                found(owned.nth, &frames);
            }
        }
    };
    if unit.dwo_id.is_none() {
        answer(&functions::find(unit, &wanted, references).ok()?);
    } else if let Some(rest) = split.rest(sections, at, unit) {
        rest.read(sections, at, &mut |unit| {
            let mut references = References::new(unit.dwarf, Vec::new(), references.pages);
            answer(&functions::find(unit, &wanted, &mut references).ok()?);
            Some(())
        })?;
    } else {
        answer(&vec![Vec::new(); wanted.len()]);
    }
    Some(())
}

/// Returns the frames of an address. Each function runs at the place where the next one is inlined, the last one at the
/// address's own `row`.
fn frames<'f>(calls: &[Call<'f>], row: Option<Row>, files: &mut Files<'_, '_>) -> Vec<Frame<'f>> {
    let inlined = calls.iter().skip(1).map(|call| Some(call.at));
    let mut places = inlined.chain([row]);
    let symbols = calls.iter().map(|call| call.symbol);
    // Code without a function may still have a line.
    let lone = (calls.is_empty() && row.is_some()).then_some(None);
    let frame = |symbol: Option<Bytes<'f>>| {
        let row = places.next().flatten();
        Frame {
            symbol: symbol.map(|symbol| String::from_utf8_lossy(symbol.slice())),
            file: row.map_or_else(|| "".into(), |row| files.name(row.file)),
            line: row.map_or(0, |row| row.line),
        }
    };
    symbols.chain(lone).map(frame).collect()
}
