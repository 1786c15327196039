//! A cache of frames, for reports that look up the same few addresses again and again.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};
use std::path::PathBuf;

use heapray_report::sources::Unit;

use super::helped::HelpedLookup;
use super::lookup::{Found, Lookup, Place};
use super::names::FunctionName;
use crate::collector::snapshot::Module;

/// The most addresses in the cache. If there are more, the cache is emptied, and the addresses in use are looked up again.
const MOST: usize = 20_000;

/// A lookup that caches its results by file and offset.
#[derive(Debug, Default)]
pub struct Known {
    files: HashMap<(PathBuf, Vec<u8>), HashMap<u64, Vec<Remembered>>>,
    units: BTreeSet<Unit>,
}

/// A [`Place`] that owns its texts.
#[derive(Debug, Clone)]
struct Remembered {
    function: FunctionName,
    file: String,
    line: u32,
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
                let remembered = places.iter().map(|place| Remembered {
                    function: place.function.as_ref().clone(),
                    file: place.file.as_ref().to_owned(),
                    line: place.line,
                });
                known.insert(new[nth], remembered.collect());
            });
            self.units.extend(lookup.units());
        }
        for (nth, offset) in offsets.iter().enumerate() {
            let places = known.get(offset).map_or(&[][..], Vec::as_slice);
            let places: Vec<Place<'_>> = places
                .iter()
                .map(|place| Place {
                    function: Cow::Borrowed(&place.function),
                    file: Cow::Borrowed(&place.file),
                    line: place.line,
                })
                .collect();
            found(nth, &places);
        }
    }

    fn units(&self) -> BTreeSet<Unit> {
        self.units.clone()
    }

    fn notes(&self) -> Vec<String> {
        Vec::new()
    }
}
