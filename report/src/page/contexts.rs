//! The contexts of the page's call sites.

use std::collections::BTreeMap;

use super::rows::Rows;
use crate::Report;
use crate::model::{Context, ContextId, Runs};

/// Pairs of a key and a value, sorted by key.
pub(super) type Labels = [(String, String)];

/// Contexts that rows use, numbered from 0: no context.
pub(super) struct UsedContexts<'a> {
    numbers: BTreeMap<u32, u32>,
    list: Vec<&'a Context>,
}

impl<'a> UsedContexts<'a> {
    pub(super) fn by(report: &'a Report, rows: &Rows) -> UsedContexts<'a> {
        let mut used = UsedContexts {
            numbers: BTreeMap::new(),
            list: Vec::new(),
        };
        for site in rows.sites(report) {
            // A context that the report does not have, or that has no labels, counts as none.
            let context = report.contexts.get(site.context.0 as usize);
            let Some(context) = context.filter(|context| !context.labels.is_empty()) else {
                continue;
            };
            used.numbers.entry(site.context.0).or_insert_with(|| {
                used.list.push(context);
                u32::try_from(used.list.len()).expect("fewer contexts than 2^32")
            });
        }
        used
    }

    /// Returns the number of a context of the report.
    pub(super) fn number_of(&self, context: ContextId) -> u32 {
        self.numbers.get(&context.0).copied().unwrap_or(0)
    }

    /// Returns the runs of each number from 1.
    pub(super) fn runs(&self) -> Vec<&'a Runs> {
        self.list.iter().map(|context| &context.runs).collect()
    }

    /// Returns the labels of each number from 1.
    pub(super) fn labels(&self) -> Vec<&'a Labels> {
        self.list.iter().map(|context| &*context.labels).collect()
    }
}
