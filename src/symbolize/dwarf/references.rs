//! Names of functions, which an entry may have from another one: an inlined call has that of its function, perhaps in
//! another unit.

use std::collections::HashMap;
use std::rc::Rc;

use gimli::{Attribute, AttributeValue, DebugInfoOffset, UnitOffset, constants};

use super::{Bytes, Dwarf, Pages, Unit, UnitRef};

/// The most entries that are followed for one name. More are a circle.
const STEPS: usize = 16;

/// The most units that are kept because entries of others refer to them.
const KEPT: usize = 16;

/// What an entry says about its name. The texts are read when they are needed: most never are.
#[derive(Debug, Default)]
pub(super) struct Names<'d> {
    linkage: Option<Value<'d>>,
    plain: Option<Value<'d>>,
    /// The entry that has the name.
    other: Option<Value<'d>>,
}

type Value<'d> = AttributeValue<Bytes<'d>>;

impl<'d> Names<'d> {
    /// Takes in an attribute, if it is about the name.
    pub(super) fn see(&mut self, attribute: &Attribute<Bytes<'d>>) {
        let value = match attribute.name() {
            constants::DW_AT_linkage_name | constants::DW_AT_MIPS_linkage_name => &mut self.linkage,
            constants::DW_AT_name => &mut self.plain,
            constants::DW_AT_abstract_origin | constants::DW_AT_specification => &mut self.other,
            _ => return,
        };
        *value = Some(attribute.value());
    }

    fn read(unit: UnitRef<'_, 'd>, at: UnitOffset) -> gimli::Result<Self> {
        let mut names = Names::default();
        let mut entries = unit.entries_raw(Some(at))?;
        if let Some(abbreviation) = entries.read_abbreviation()? {
            for &attribute in abbreviation.attributes() {
                names.see(&entries.read_attribute(attribute)?);
            }
        }
        Ok(names)
    }
}

/// Finds the entries that others refer to, in a file and in the one that it shares with others.
#[derive(Debug)]
pub(super) struct References<'r, 'd> {
    own: Units<'r, 'd>,
    shared: Option<Units<'r, 'd>>,
    /// Those of the files.
    pub(super) pages: &'r Pages<'r>,
}

impl<'r, 'd> References<'r, 'd> {
    /// `units` are the beginnings of all units, in ascending order.
    pub(super) fn new(
        dwarf: &'r Dwarf<'d>,
        units: Vec<DebugInfoOffset>,
        pages: &'r Pages<'r>,
    ) -> Self {
        References {
            pages,
            own: Units::new(dwarf, units),
            shared: dwarf.sup().map(|shared| Units::new(shared, starts(shared))),
        }
    }

    /// Returns the mangled name of an entry of `unit`, or its plain name if it has no other.
    pub(super) fn symbol(&mut self, unit: UnitRef<'_, 'd>, names: &Names<'d>) -> Option<Bytes<'d>> {
        self.follow(unit, names, STEPS)
    }

    fn follow(
        &mut self,
        unit: UnitRef<'_, 'd>,
        names: &Names<'d>,
        steps: usize,
    ) -> Option<Bytes<'d>> {
        if let Some(name) = names.linkage.or(names.plain) {
            return unit.attr_string(name).ok();
        }
        let steps = steps.checked_sub(1)?;
        let is_shared = |shared: &Units<'r, 'd>| std::ptr::eq(shared.dwarf, unit.dwarf);
        let (units, at) = match names.other? {
            AttributeValue::UnitRef(at) => {
                return self.follow(unit, &Names::read(unit, at).ok()?, steps);
            }
            AttributeValue::DebugInfoRef(at) => match &mut self.shared {
                Some(shared) if is_shared(shared) => (shared, at),
                _ => (&mut self.own, at),
            },
            AttributeValue::DebugInfoRefSup(at) => (self.shared.as_mut()?, at),
            _ => return None,
        };
        let (other, at) = units.find(at)?;
        let other = UnitRef::new(units.dwarf, &other);
        self.follow(other, &Names::read(other, at).ok()?, steps)
    }
}

/// Returns where each unit begins.
fn starts(dwarf: &Dwarf<'_>) -> Vec<DebugInfoOffset> {
    let mut units = dwarf.units();
    std::iter::from_fn(|| units.next().ok().flatten()?.debug_info_offset()).collect()
}

/// The units of one file. Keeps the last ones that were read.
#[derive(Debug)]
struct Units<'r, 'd> {
    dwarf: &'r Dwarf<'d>,
    starts: Vec<DebugInfoOffset>,
    read: HashMap<usize, Rc<Unit<'d>>>,
}

impl<'r, 'd> Units<'r, 'd> {
    fn new(dwarf: &'r Dwarf<'d>, starts: Vec<DebugInfoOffset>) -> Self {
        Units {
            dwarf,
            starts,
            read: HashMap::new(),
        }
    }

    /// Returns the unit of an entry, and the entry's place in it.
    fn find(&mut self, at: DebugInfoOffset) -> Option<(Rc<Unit<'d>>, UnitOffset)> {
        let behind = self.starts.partition_point(|start| start.0 <= at.0);
        let start = self.starts[..behind].last()?;
        if let Some(unit) = self.read.get(&start.0) {
            return Some((unit.clone(), at.to_unit_offset(&unit.header)?));
        }
        let unit = Rc::new(self.dwarf.unit(self.dwarf.unit_header(*start).ok()?).ok()?);
        if self.read.len() >= KEPT {
            self.read.clear();
        }
        self.read.insert(start.0, unit.clone());
        let offset = at.to_unit_offset(&unit.header)?;
        Some((unit, offset))
    }
}
