//! Functions by the tables of symbols, for code without debug information.

use std::borrow::Cow;

use super::{Object, Pages};
use crate::os::elf::{u16_at, u32_at, u64_at};

/// Size of an entry of the table.
const SYMBOL: usize = 24;

const STT_FUNC: u8 = 2;
const STT_GNU_IFUNC: u8 = 10;

/// Sections with symbols and with their names: of all, and of those that are exported.
const ALL: (&str, &str) = (".symtab", ".strtab");
const EXPORTED: (&str, &str) = (".dynsym", ".dynstr");

/// The symbols between two looks at how much of the file is in memory.
const PART: usize = 8192;

/// The symbols of some addresses.
#[derive(Debug)]
pub(in crate::symbolize) struct Symbols<'o> {
    tables: Vec<Table<'o>>,
}

#[derive(Debug)]
struct Table<'o> {
    names: Cow<'o, [u8]>,
    /// For each address, where its name begins.
    found: Vec<Option<u32>>,
}

/// The nearest function so far, by where it begins, and where its name begins.
#[derive(Debug, Clone, Copy, Default)]
struct Nearest(Option<(u64, u32)>);

impl Nearest {
    /// Notes a function. Returns whether it is the nearest so far.
    fn see(&mut self, start: u64, name: u32) -> bool {
        let is_nearer = self.0.is_none_or(|(nearest, _)| start > nearest);
        if is_nearer {
            self.0 = Some((start, name));
        }
        is_nearer
    }
}

impl<'o> Symbols<'o> {
    /// Looks up `addresses`, which ascend. `embedded`: that of `object`.
    pub(in crate::symbolize) fn of(
        object: &'o Object,
        embedded: Option<&'o Object>,
        addresses: &[u64],
    ) -> Self {
        let files = [Some(object), embedded];
        let pages = Pages::of(files.into_iter().flatten());
        let table = |(object, (entries, names)): (&'o Object, (&str, &str))| {
            let reaches_on = entries == ALL.0 && embedded.is_none();
            let entries = object.section(entries);
            let found = functions(&entries, addresses, reaches_on, &|| pages.bound());
            Table {
                names: object.section(names),
                found,
            }
        };
        let all = files.into_iter().flatten().map(|object| (object, ALL));
        let tables = all.chain([(object, EXPORTED)]);
        Symbols {
            tables: tables.map(table).collect(),
        }
    }

    /// Returns the name of the function at the address with the index `nth`.
    pub(in crate::symbolize) fn get(&self, nth: usize) -> Option<Cow<'_, str>> {
        self.tables.iter().find_map(|table| {
            let start = (*table.found.get(nth)?)? as usize;
            let name = table.names.get(start..)?;
            let end = name.iter().position(|&byte| byte == 0)?;
            (end > 0).then(|| String::from_utf8_lossy(&name[..end]))
        })
    }
}

/// Returns for each address where the name of its function begins: the function that contains it and begins last.
///
/// Functions of assembly code may have no size. Such a function reaches to the next one if `reaches_on`: not in a table of
/// exported symbols, which lacks most functions.
fn functions(
    entries: &[u8],
    addresses: &[u64],
    reaches_on: bool,
    each_part: &dyn Fn(),
) -> Vec<Option<u32>> {
    let mut containing = vec![Nearest::default(); addresses.len()];
    // The last function that begins after the address before and not after the address itself, and whether it has no size.
    let mut before = vec![(Nearest::default(), false); addresses.len()];
    for part in entries.chunks(PART * SYMBOL) {
        for symbol in part.chunks_exact(SYMBOL) {
            let Some((name, start, size)) = function(symbol) else {
                continue;
            };
            let first = addresses.partition_point(|&address| address < start);
            if let Some((nearest, is_open)) = before.get_mut(first)
                && nearest.see(start, name)
            {
                *is_open = size == 0;
            }
            let inside = addresses[first..].iter().zip(&mut containing[first..]);
            for (_, nearest) in inside.take_while(|(address, _)| **address - start < size) {
                nearest.see(start, name);
            }
        }
        each_part();
    }
    let mut open = None;
    let found = containing.iter().zip(before);
    let found = found.map(|(containing, (begins, is_open))| {
        if let Some((_, name)) = begins.0 {
            open = (is_open && reaches_on).then_some(name);
        }
        containing.0.map(|(_, name)| name).or(open)
    });
    found.collect()
}

/// Returns where the name of a symbol begins, its address and its size, or `None` if it is not a defined function.
fn function(symbol: &[u8]) -> Option<(u32, u64, u64)> {
    let is_function = matches!(symbol[4] & 0xf, STT_FUNC | STT_GNU_IFUNC);
    (is_function && u16_at(symbol, 6)? != 0).then_some(())?;
    Some((u32_at(symbol, 0)?, u64_at(symbol, 8)?, u64_at(symbol, 16)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn symbol(name: u32, kind: u8, section: u16, start: u64, size: u64) -> Vec<u8> {
        let mut bytes = name.to_le_bytes().to_vec();
        bytes.extend([kind, 0]);
        bytes.extend(section.to_le_bytes());
        bytes.extend(start.to_le_bytes());
        bytes.extend(size.to_le_bytes());
        bytes
    }

    #[test]
    fn the_function_that_contains_an_address_and_begins_last_names_it() {
        let entries = [
            symbol(1, STT_FUNC, 1, 100, 50),
            symbol(2, STT_FUNC, 1, 120, 10),
            // Data, and a function of another file.
            symbol(3, 1, 1, 125, 1),
            symbol(4, STT_FUNC, 0, 126, 1),
            // The same code under another name.
            symbol(5, STT_FUNC, 1, 120, 10),
            symbol(6, STT_FUNC, 1, 200, 0),
            symbol(7, STT_GNU_IFUNC, 1, 300, 10),
        ];
        let addresses = [
            99, 100, 119, 120, 129, 130, 149, 150, 200, 299, 300, 309, 310,
        ];
        let names = |reaches_on| functions(&entries.concat(), &addresses, reaches_on, &|| ());
        let mut expected = [
            None,
            Some(1),
            Some(1),
            Some(2),
            Some(2),
            Some(1),
            Some(1),
            None,
            Some(6),
            Some(6),
            Some(7),
            Some(7),
            None,
        ];
        assert_eq!(names(true), expected);
        expected[8..10].fill(None);
        assert_eq!(names(false), expected);
        assert_eq!(functions(&[0; 40], &[0, 7], true, &|| ()), [None, None]);
    }
}
