//! Names that were found before, by build: what a build's address stands for never changes.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use heapray_report::sources::Unit;
use serde::{Deserialize, Serialize};

use crate::collector::snapshot::Module;
use crate::hex;
use crate::symbolize::lookup::Place;

/// The most addresses of a build that are kept. One takes some 500 bytes.
const MOST: usize = 200_000;

/// The form in which they are written. Another one is not read.
const FORM: u32 = 1;

/// Names that were found before. They are looked up here first.
#[derive(Debug, Default)]
pub struct FoundBefore {
    builds: HashMap<String, Build>,
}

/// The names of a build.
#[derive(Debug, Default)]
struct Build {
    names: BuildNames,
    /// Whether there are names that were not loaded.
    has_new: bool,
}

#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct BuildNames {
    form: u32,
    /// Those of the program, if it is one.
    pub(super) units: BTreeSet<Unit>,
    /// The frames of each address, outermost first.
    pub(super) places: BTreeMap<u64, Vec<Place<'static>>>,
}

impl FoundBefore {
    /// Returns whether names of a build are here.
    #[must_use]
    pub fn has(&self, build_id: &str) -> bool {
        self.builds.contains_key(build_id)
    }

    /// Adds the names of a build that were [written](FoundBefore::changed) before. What is not that is left out.
    pub fn load(&mut self, build_id: &str, text: &[u8]) {
        let names: Option<BuildNames> = serde_json::from_slice(text).ok();
        let names = names.filter(|names| names.form == FORM && names.places.len() <= MOST);
        self.builds.insert(
            build_id.to_owned(),
            Build {
                names: names.unwrap_or_default(),
                has_new: false,
            },
        );
    }

    /// Returns the build id and the names of each build of which there are new ones, to be loaded another time.
    pub fn changed(&mut self) -> impl Iterator<Item = (&str, Vec<u8>)> {
        let changed = self.builds.iter_mut().filter(|(_, build)| build.has_new);
        changed.filter_map(|(build_id, build)| {
            build.has_new = false;
            build.names.form = FORM;
            Some((&**build_id, serde_json::to_vec(&build.names).ok()?))
        })
    }

    /// Returns what is known of the build of `module`.
    pub(super) fn of(&self, module: &Module) -> Option<&BuildNames> {
        Some(&self.builds.get(&key(module)?)?.names)
    }

    /// Adds what was found of `module`. Only answers of a file with debug information are to be added: others may have more.
    pub(super) fn add(
        &mut self,
        module: &Module,
        units: &BTreeSet<Unit>,
        found: Vec<(u64, Vec<Place<'static>>)>,
    ) {
        let Some(key) = key(module) else {
            return;
        };
        let build = self.builds.entry(key).or_default();
        if module.is_main && build.names.units.is_empty() && !units.is_empty() {
            build.names.units.clone_from(units);
            build.has_new = true;
        }
        for (offset, places) in found {
            if build.names.places.len() >= MOST {
                break;
            }
            build.has_new |= build.names.places.insert(offset, places).is_none();
        }
    }
}

/// Returns the build id of `module` in hexadecimal; `None` if it has none.
fn key(module: &Module) -> Option<String> {
    let id = &module.build_id;
    (!id.is_empty()).then(|| hex::digits(id))
}
