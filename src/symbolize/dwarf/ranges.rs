//! The code of a unit, a function or an inlined call.

use std::ops::Range;

use gimli::{Attribute, AttributeValue, RangeListsOffset, constants};

use super::{Bytes, UnitRef};

/// What the attributes of an entry say about its code: a range, or a list of ranges.
#[derive(Debug, Default)]
pub(super) struct Extent {
    low: Option<u64>,
    /// The end, or the size if it is not `is_end`.
    high: Option<(u64, bool)>,
    list: Option<RangeListsOffset>,
}

impl Extent {
    /// Takes in an attribute, if it is about the entry's code.
    pub(super) fn see<'d>(
        &mut self,
        unit: UnitRef<'_, 'd>,
        attribute: &Attribute<Bytes<'d>>,
    ) -> gimli::Result<()> {
        let value = attribute.value();
        match attribute.name() {
            constants::DW_AT_low_pc => self.low = unit.attr_address(value)?,
            constants::DW_AT_high_pc => {
                self.high = match value {
                    AttributeValue::Udata(size) => Some((size, false)),
                    value => unit.attr_address(value)?.map(|end| (end, true)),
                }
            }
            constants::DW_AT_ranges => self.list = unit.attr_ranges_offset(value)?,
            _ => {}
        }
        Ok(())
    }

    /// Calls `each` with every range of the code. Returns whether there is one.
    pub(super) fn for_each(
        &self,
        unit: UnitRef<'_, '_>,
        each: &mut dyn FnMut(gimli::Range),
    ) -> gimli::Result<bool> {
        let mut has_any = false;
        // A linker leaves the entries of code that it dropped in place, at an address near 0.
        let mut each = |range: gimli::Range| {
            if range.begin > 1 && range.begin < range.end {
                has_any = true;
                each(range);
            }
        };
        if let Some(list) = self.list {
            let mut ranges = unit.ranges(list)?;
            while let Some(range) = ranges.next()? {
                each(range);
            }
        } else if let (Some(begin), Some((high, is_end))) = (self.low, self.high) {
            let end = if is_end {
                high
            } else {
                begin.saturating_add(high)
            };
            each(gimli::Range { begin, end });
        }
        Ok(has_any)
    }
}

/// Returns the indices of those `addresses`, which ascend, that lie in a range.
pub(super) fn within(addresses: &[u64], range: gimli::Range) -> Range<usize> {
    let index = |limit: u64| addresses.partition_point(|&address| address < limit);
    let first = index(range.begin);
    // Most ranges have no wanted address: then the end is not searched.
    let has_any = addresses
        .get(first)
        .is_some_and(|&address| address < range.end);
    first..if has_any { index(range.end) } else { first }
}
