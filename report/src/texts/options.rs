//! What can be chosen for a text.

use std::fmt;
use std::str::FromStr;

use crate::views::{Measure, Unit};

/// What a text shows and how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// Which side of the heap. Default: the high-water mark.
    pub measure: Measure,
    /// By what lines are ordered, and shares and bars drawn. Default: bytes.
    pub unit: Unit,
    /// Columns of the terminal. Default: 120.
    pub width: usize,
    /// Colours, as escape sequences. Default: none.
    pub colours: bool,
    /// Table and summary: how many rows at most; the rest is counted. Default: all.
    pub max_rows: Option<usize>,
    /// Table: threads apart, with a column for them. Default: added up.
    pub by_thread: bool,
    /// Summary: the column that orders it. Default: the first, total bytes.
    pub sort_column: SortColumn,
    /// Tree: how many of the biggest call sites are shown (memray's `--biggest-allocs`). Default: 200.
    pub biggest_allocs: usize,
    /// Tree: calls with nothing beside them in one line. Default: yes.
    pub fold_runs: bool,
}

impl Options {
    /// The narrowest width that is kept to; narrower terminals get lines of this length.
    pub const MIN_WIDTH: usize = 80;

    /// The width that is kept to.
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

/// A column of the summary, by memray's numbers 1 to 5. Under [`Unit::Count`] the first four are of blocks, and the
/// last is of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum SortColumn {
    /// 1: with everything that the function called.
    #[default]
    Total,
    /// 2: the same as a share of all.
    TotalShare,
    /// 3: by the function itself.
    Own,
    /// 4: the same as a share of all.
    OwnShare,
    /// 5: number of allocations.
    Allocations,
}

impl SortColumn {
    /// All, in their order.
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

/// The text is not the number of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnknownColumn;

impl fmt::Display for UnknownColumn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("columns are 1 (total), 2 (total %), 3 (own), 4 (own %) and 5 (allocations)")
    }
}

impl std::error::Error for UnknownColumn {}
