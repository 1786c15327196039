//! Symbols that a helper process reads, so that this process does not need the memory for them.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::io;

use heapray_report::sources::Unit;
use serde::{Deserialize, Serialize};

use super::about;
use super::lookup::{Found, Lookup, Place};
use super::notes::about_helper;
use super::resolver::ElfLookup;
use crate::collector::snapshot::Module;
use crate::config::SymbolMode;
use crate::os::helper::{self, Helper, Job, Service};

/// A lookup in a helper process, or in this process where none can be started.
#[derive(Debug, Default)]
pub(super) struct HelpedLookup {
    helper: Option<Helper>,
    /// What to use where there is no helper.
    own: ElfLookup,
    /// The signal that ended the helper. What has ended the helper must not end this process, too.
    killed_by: Option<i32>,
    units: BTreeSet<Unit>,
    notes: Vec<String>,
}

/// What the service says: the addresses of one module.
#[derive(Debug, Serialize, Deserialize)]
struct Ask<'a> {
    module: Cow<'a, Module>,
    offsets: Cow<'a, [u64]>,
    /// Whether the units of the program are to be read.
    with_units: bool,
    /// How much is looked up.
    mode: SymbolMode,
}

/// What the helper answers.
#[derive(Debug, Serialize, Deserialize)]
enum Answer<'a> {
    /// The frames of an address.
    Frames(usize, Cow<'a, [Place<'a>]>),
    /// There are no more of this module.
    End {
        units: BTreeSet<Unit>,
        notes: Vec<String>,
    },
}

impl HelpedLookup {
    /// Returns a lookup that reads the units only if they are not `known`.
    pub(super) fn without_units(known: bool) -> HelpedLookup {
        HelpedLookup {
            own: ElfLookup::without_units(known),
            ..HelpedLookup::default()
        }
    }

    /// Returns a lookup that finds nothing, because `signal` has ended the helper.
    pub(super) fn killed_by(signal: i32) -> HelpedLookup {
        HelpedLookup {
            killed_by: Some(signal),
            ..HelpedLookup::default()
        }
    }

    /// Has the helper look up `offsets`, and notes in `is_found` which were.
    fn ask(
        &mut self,
        module: &Module,
        offsets: &[u64],
        is_found: &mut [bool],
        found: &mut Found<'_>,
    ) -> io::Result<()> {
        let helper = match &mut self.helper {
            Some(helper) => helper,
            none => none.insert(Helper::start(Job::Names, [None, None], || true)?),
        };
        let ask = Ask {
            module: Cow::Borrowed(module),
            offsets: Cow::Borrowed(offsets),
            with_units: self.own.wants_units(),
            mode: about::symbols(),
        };
        helper.say(&ask)?;
        loop {
            match helper::read(helper.hears())? {
                Answer::Frames(nth, places) => {
                    if let Some(is_found @ false) = is_found.get_mut(nth) {
                        *is_found = true;
                        found(nth, &places);
                    }
                }
                Answer::End { units, notes } => {
                    self.units = units;
                    self.notes = notes;
                    return Ok(());
                }
            }
        }
    }
}

impl Lookup for HelpedLookup {
    fn lookup(&mut self, module: &Module, offsets: &[u64], found: &mut Found<'_>) {
        let mut is_found = vec![false; offsets.len()];
        if about::symbols() == SymbolMode::Off {
            // Nothing to ask for.
            return self.own.lookup(module, offsets, found);
        }
        if self.killed_by.is_none() {
            let Err(error) = self.ask(module, offsets, &mut is_found, found) else {
                return;
            };
            tracing::debug!(%error, "no names from a helper process");
            self.killed_by = self.helper.take().and_then(Helper::killed_by);
        }
        let left: Vec<usize> = (0..offsets.len()).filter(|&nth| !is_found[nth]).collect();
        if self.killed_by.is_some() {
            for nth in left {
                found(nth, &[]);
            }
            return;
        }
        let offsets: Vec<u64> = left.iter().map(|&nth| offsets[nth]).collect();
        let own = &mut self.own;
        own.lookup(module, &offsets, &mut |nth, places| {
            found(left[nth], places);
        });
    }

    fn units(&self) -> BTreeSet<Unit> {
        self.units.union(&self.own.units()).cloned().collect()
    }

    fn notes(&self) -> Vec<String> {
        let killed = self.killed_by.map(about_helper);
        let notes = self.notes.iter().cloned().chain(self.own.notes());
        notes.chain(killed).collect()
    }
}

/// Looks up what the service asks for, until it closes the conversation.
pub(crate) fn serve(service: &mut Service) -> io::Result<()> {
    let mut lookup = None;
    loop {
        let Ask {
            module,
            offsets,
            with_units,
            mode,
        } = helper::read(&mut service.says)?;
        let lookup =
            lookup.get_or_insert_with(|| ElfLookup::without_units(!with_units).with_mode(mode));
        let mut written = Ok(());
        lookup.lookup(&module, &offsets, &mut |nth, places| {
            if written.is_ok() {
                let frames = Answer::Frames(nth, Cow::Borrowed(places));
                written = helper::write(&mut service.hears, &frames);
            }
        });
        written?;
        let end = Answer::End {
            units: lookup.units(),
            notes: lookup.notes(),
        };
        service.answer(&end)?;
    }
}
