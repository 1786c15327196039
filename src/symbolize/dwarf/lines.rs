//! The lines of a unit's code.

use std::collections::HashMap;
use std::rc::Rc;

use super::UnitRef;
use super::ranges::within;

/// A place in the source: the number of its file, and the line, from 1; 0 if unknown.
#[derive(Debug, Clone, Copy)]
pub(super) struct Row {
    pub(super) file: u64,
    pub(super) line: u32,
}

/// Returns the row of each of `addresses`, which ascend.
pub(super) fn find(unit: UnitRef<'_, '_>, addresses: &[u64]) -> gimli::Result<Vec<Option<Row>>> {
    let mut found = vec![None; addresses.len()];
    let (Some(first), Some(last)) = (addresses.first(), addresses.last()) else {
        return Ok(found);
    };
    walk(unit, &mut |range, row| {
        if range.end > *first && range.begin <= *last {
            found[within(addresses, range)].fill(Some(row));
        }
    })?;
    Ok(found)
}

/// Calls `each` with the code of every sequence of rows. A linker places each sequence as a whole.
pub(super) fn sequences(
    unit: UnitRef<'_, '_>,
    each: &mut dyn FnMut(gimli::Range),
) -> gimli::Result<()> {
    let mut sequence: Option<gimli::Range> = None;
    walk(unit, &mut |range, _| match &mut sequence {
        Some(sequence) if sequence.end == range.begin => sequence.end = range.end,
        _ => {
            let ended = sequence.replace(range);
            ended.into_iter().for_each(&mut *each);
        }
    })?;
    sequence.into_iter().for_each(each);
    Ok(())
}

/// Calls `each` with the code of every row.
fn walk(unit: UnitRef<'_, '_>, each: &mut dyn FnMut(gimli::Range, Row)) -> gimli::Result<()> {
    let Some(program) = unit.line_program.clone() else {
        return Ok(());
    };
    let mut rows = program.rows();
    let mut last: Option<(u64, Row)> = None;
    // A linker leaves the lines of code that it dropped in place, at address 0.
    let mut is_dropped = false;
    while let Some((_, row)) = rows.next_row()? {
        let address = row.address();
        match last {
            Some((begin, row)) if begin < address && !is_dropped => {
                each(
                    gimli::Range {
                        begin,
                        end: address,
                    },
                    row,
                );
            }
            Some(_) => {}
            None => is_dropped = address == 0,
        }
        let line = row.line().map_or(0, |line| line.get());
        let this = Row {
            file: row.file_index(),
            line: u32::try_from(line).unwrap_or(0),
        };
        last = (!row.end_sequence()).then_some((address, this));
    }
    Ok(())
}

/// The names of a unit's source files.
#[derive(Debug)]
pub(super) struct Files<'u, 'd> {
    unit: UnitRef<'u, 'd>,
    names: HashMap<u64, Rc<str>>,
}

impl<'u, 'd> Files<'u, 'd> {
    pub(super) fn of(unit: UnitRef<'u, 'd>) -> Self {
        Files {
            unit,
            names: HashMap::new(),
        }
    }

    /// Returns the path of the file with this number; empty if there is none.
    pub(super) fn name(&mut self, number: u64) -> Rc<str> {
        let unit = self.unit;
        let name = self.names.entry(number);
        let name = name.or_insert_with(|| path(unit, number).unwrap_or_default().into());
        name.clone()
    }
}

/// Returns the path of a source file: its directory may be relative to the unit's.
fn path(unit: UnitRef<'_, '_>, number: u64) -> Option<String> {
    let header = unit.line_program.as_ref()?.header();
    let file = header.file(number)?;
    let mut path = String::new();
    if let Some(directory) = unit.comp_dir {
        path.push_str(&directory.to_string_lossy());
    }
    let mut push = |part| {
        let part = unit.attr_string(part).ok()?;
        let part = part.to_string_lossy();
        if part.starts_with('/') {
            path.clear();
        } else if !path.is_empty() && !path.ends_with('/') {
            path.push('/');
        }
        path.push_str(&part);
        Some(())
    };
    // Directory 0 is the unit's.
    if file.directory_index() != 0
        && let Some(directory) = file.directory(header)
    {
        push(directory)?;
    }
    push(file.path_name())?;
    Some(path)
}
