//! A lookup in what was found before, in files, and in the report itself.

use std::borrow::Cow;
use std::collections::BTreeSet;

use heapray_report::Report;
use heapray_report::model::FrameId;
use heapray_report::sources::Unit;
use heapray_report::views::is_offset;

use super::FoundNames;
use super::addresses::Addresses;
use super::before::FoundBefore;
use crate::collector::snapshot::Module;
use crate::symbolize::lookup::{Found, Lookup, Place};
use crate::symbolize::names::FunctionName;
use crate::symbolize::resolver::FileLookup;

/// A lookup in files, and in the report itself.
pub(super) struct LaterLookup<'r> {
    pub(super) report: &'r Report,
    pub(super) addresses: &'r Addresses,
    pub(super) files: FileLookup,
    pub(super) before: &'r mut FoundBefore,
    pub(super) found: Vec<FoundNames>,
    /// The units of the program, if they were found before.
    pub(super) units: BTreeSet<Unit>,
}

/// The frames of an address.
type Places<'a> = Cow<'a, [Place<'static>]>;

fn has_line(places: &[Place<'_>]) -> bool {
    places.iter().any(|place| place.line > 0)
}

impl LaterLookup<'_> {
    /// Returns the names that the report has for a frame.
    fn old(&self, id: FrameId, module: &Module) -> Place<'static> {
        let at = id.0 as usize;
        let report = self.report;
        let frame = report.frames.get(at).copied().unwrap_or_default();
        let plain = report.strings.get(frame.function);
        let full = report
            .full_names
            .get(at)
            .map(|&name| report.strings.get(name));
        let file = report.strings.get(frame.file);
        let function = if is_offset(plain, &module.path.to_string_lossy()) {
            FunctionName::default()
        } else {
            FunctionName::of_report(full.unwrap_or(plain), plain)
        };
        Place {
            function: Cow::Owned(function),
            // The path of the module stands for a file that is not known.
            file: if *file == *module.path.to_string_lossy() {
                Cow::Borrowed("")
            } else {
                Cow::Owned(file.to_owned())
            },
            line: frame.line,
        }
    }

    fn look_up_code(&mut self, at: usize, module: &Module, offsets: &[u64], found: &mut Found<'_>) {
        let mut sums = FoundNames {
            module: at,
            addresses: offsets.len(),
            named: 0,
            with_lines: 0,
        };
        let hash = &self.report.modules[at].hash;
        let names = self.before.of(module);
        if module.is_main
            && let Some(names) = names.filter(|names| !names.units.is_empty())
        {
            self.files.knows_units();
            self.units.clone_from(&names.units);
        }
        let mut answers: Vec<Option<Places<'_>>> = vec![None; offsets.len()];
        let mut new: Vec<usize> = Vec::new();
        for (nth, offset) in offsets.iter().enumerate() {
            match names.and_then(|names| names.places.get(offset)) {
                Some(places) => answers[nth] = Some(Cow::Borrowed(places)),
                None => new.push(nth),
            }
        }
        let new_offsets: Vec<u64> = new.iter().map(|&nth| offsets[nth]).collect();
        self.files.meet(module, hash);
        if !new.is_empty() {
            let found = &mut |at: usize, places: &[Place<'_>]| {
                let owned: Vec<Place<'static>> = places.iter().map(Place::to_owned).collect();
                answers[new[at]] = Some(Cow::Owned(owned));
            };
            self.files.look_up(module, hash, &new_offsets, found);
        }
        // A file with debug information says all that there is to say of its code, also of code without a line.
        let is_new = |nth: &usize| answers[*nth].as_deref().is_some_and(has_line);
        if new.iter().any(is_new) {
            new.retain(|&nth| {
                answers[nth]
                    .as_deref()
                    .is_some_and(|places| !places.is_empty())
            });
        } else {
            new.clear();
        }
        // In order, so that the report does not depend on what was found before.
        for (nth, answer) in answers.iter_mut().enumerate() {
            if answer.as_ref().is_none_or(|places| places.is_empty()) {
                let address = offsets[nth].wrapping_add(module.load_bias);
                let old = self.addresses.frames.get(&(at, address));
                let old = old.map_or(&[][..], Vec::as_slice);
                *answer = Some(old.iter().map(|&id| self.old(id, module)).collect());
            }
            let places = answer.as_deref().unwrap_or_default();
            sums.named += usize::from(places.iter().any(|place| !place.function.is_empty()));
            sums.with_lines += usize::from(has_line(places));
            found(nth, places);
        }
        let to_keep: Vec<(u64, Vec<Place<'static>>)> = new
            .into_iter()
            .filter_map(|nth| {
                let places = answers[nth].take()?;
                Some((offsets[nth], places.into_owned()))
            })
            .collect();
        self.found.push(sums);
        // Where a part of the debug information is missing, there may be more next time.
        if self.files.elf().is_complete() {
            let units = self.files.elf().units();
            self.before.add(module, &units, to_keep);
        }
    }
}

impl Lookup for LaterLookup<'_> {
    fn lookup(&mut self, module: &Module, offsets: &[u64], found: &mut Found<'_>) {
        let mut modules = self.addresses.modules.iter();
        let at = modules.position(|known| std::ptr::eq(known, module));
        match at {
            Some(at) if at < self.addresses.looked_up() => {
                self.look_up_code(at, module, offsets, found);
            }
            _ => {
                for (nth, &offset) in offsets.iter().enumerate() {
                    match Addresses::frame_at(offset) {
                        Some(id) => found(nth, &[self.old(id, module)]),
                        None => found(nth, &[]),
                    }
                }
            }
        }
    }

    fn units(&self) -> BTreeSet<Unit> {
        if self.units.is_empty() {
            return self.files.elf().units();
        }
        self.units.clone()
    }

    fn notes(&self) -> Vec<String> {
        self.files.elf().notes()
    }
}
