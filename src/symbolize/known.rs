//! A cache of frames, for reports that look up the same few addresses again and again.

use std::collections::{BTreeSet, HashMap};
use std::path::PathBuf;

use heapray_report::sources::Unit;

use super::helped::HelpedLookup;
use super::lookup::{Found, Lookup, Place};
use crate::collector::snapshot::Module;

/// The most addresses in the cache. If there are more, the cache is emptied, and the addresses in use are looked up again.
const MOST: usize = 20_000;

/// A lookup that caches its results by file and offset.
#[derive(Debug, Default)]
pub struct Known {
    files: HashMap<(PathBuf, Vec<u8>), HashMap<u64, Vec<Place<'static>>>>,
    units: BTreeSet<Unit>,
}

impl Lookup for Known {
    fn lookup(&mut self, module: &Module, offsets: &[u64], found: &mut Found<'_>) {
        if self.files.values().map(HashMap::len).sum::<usize>() + offsets.len() > MOST {
            self.files.clear();
        }
        let file = (module.path.clone(), module.build_id.clone());
        let known = self.files.entry(file).or_default();
        let mut new = offsets.to_vec();
        new.retain(|offset| !known.contains_key(offset));
        if !new.is_empty() {
            // The units are read once: they are those of this process's own program.
            let mut lookup = HelpedLookup::without_units(!self.units.is_empty());
            lookup.lookup(module, &new, &mut |nth, places| {
                known.insert(new[nth], places.iter().map(Place::to_owned).collect());
            });
            self.units.extend(lookup.units());
        }
        for (nth, offset) in offsets.iter().enumerate() {
            found(nth, known.get(offset).map_or(&[][..], Vec::as_slice));
        }
    }

    fn units(&self) -> BTreeSet<Unit> {
        self.units.clone()
    }

    fn notes(&self) -> Vec<String> {
        Vec::new()
    }
}
