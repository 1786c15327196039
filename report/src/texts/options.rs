//! Options of a text.

use std::fmt;
use std::str::FromStr;

use crate::views::{Measure, Unit};

/// Content and form of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// Measure of the heap. Default: the high-water mark.
    pub measure: Measure,
    /// Unit by which lines are ordered, and shares and bars drawn. Default: bytes.
    pub unit: Unit,
    /// Columns of the terminal. Default: 120.
    pub width: usize,
    /// Colours, as escape sequences. Default: none.
    pub colours: bool,
    /// Largest number of rows in table and summary, and of leaks; the others are counted. Default: all.
    pub max_rows: Option<usize>,
    /// Set to keep threads apart in the table, with a column for them. Default: summed up.
    pub by_thread: bool,
    /// Summary: the column that orders it. Default: the first, total bytes.
    pub sort_column: SortColumn,
    /// Number of the biggest call sites that the tree shows (memray's `--biggest-allocs`). Default: 200.
    pub biggest_allocs: usize,
    /// Set to put calls without siblings in one line of the tree. Default: yes.
    pub fold_runs: bool,
}

impl Options {
    /// Narrowest width of a text. On a narrower terminal, lines still have this width.
    pub const MIN_WIDTH: usize = 80;

    /// Returns the width of the text.
    pub(super) fn columns(&self) -> usize {
        self.width.max(Options::MIN_WIDTH)
    }
}

impl Default for Options {
    fn default() -> Self {
        Options {
            measure: Measure::default(),
            unit: Unit::default(),
            width: 120,
            colours: false,
            max_rows: None,
            by_thread: false,
            sort_column: SortColumn::default(),
            biggest_allocs: 200,
            fold_runs: true,
        }
    }
}

/// Column of the summary, by memray's numbers 1 to 5. With [`Unit::Count`] the first four are of blocks, and the last is of
/// bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum SortColumn {
    /// 1: of the function and its callees.
    #[default]
    Total,
    /// 2: the same as a share of all.
    TotalShare,
    /// 3: of the function itself.
    Own,
    /// 4: the same as a share of all.
    OwnShare,
    /// 5: number of allocations.
    Allocations,
}

impl SortColumn {
    /// All columns, in their order.
    pub const ALL: [SortColumn; 5] = [
        SortColumn::Total,
        SortColumn::TotalShare,
        SortColumn::Own,
        SortColumn::OwnShare,
        SortColumn::Allocations,
    ];
}

impl FromStr for SortColumn {
    type Err = UnknownColumn;

    fn from_str(number: &str) -> Result<Self, Self::Err> {
        let index = number.parse::<usize>().ok().and_then(|n| n.checked_sub(1));
        let column = index.and_then(|index| SortColumn::ALL.get(index));
        column.copied().ok_or(UnknownColumn)
    }
}

/// Error of a text that is not the number of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnknownColumn;

impl fmt::Display for UnknownColumn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("columns are 1 (total), 2 (total %), 3 (own), 4 (own %) and 5 (allocations)")
    }
}

impl std::error::Error for UnknownColumn {}
