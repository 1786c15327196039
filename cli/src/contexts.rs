//! Options about contexts: on whose behalf memory was allocated.

use clap::Args;
use heapray_report::Report;
use heapray_report::views::{Filter, by_context, context_keys, filtered};

use crate::failure::Failure;

/// `--where`.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "A part of it")]
pub(crate) struct WhereArgs {
    /// Only memory that was allocated in a context with this label, such as `route=GET /users`; may be repeated. Without a
    /// value: only contexts without the key.
    #[arg(long = "where", value_name = "KEY=VALUE", value_parser = label)]
    context: Vec<(String, String)>,
}

/// `--by`.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "A part of it")]
pub(crate) struct ByArgs {
    /// Put each call stack below the value that its context has for this key, such as `route` or `tenant`.
    #[arg(long, value_name = "KEY")]
    by: Option<String>,
}

impl WhereArgs {
    /// Fails if `report`, that of the capture `name`, has no context with one of the keys.
    pub(crate) fn check(&self, report: &Report, name: &str) -> Result<(), Failure> {
        let mut keys = self.context.iter().map(|(key, _)| key);
        keys.try_for_each(|key| check_key(report, name, key))
    }

    /// Leaves the memory of the contexts that were asked for.
    pub(crate) fn apply(&self, report: &mut Report) {
        if !self.context.is_empty() {
            let filter = Filter {
                contexts: self.context.clone(),
                ..Filter::default()
            };
            *report = filtered(report, &filter);
        }
    }
}

impl ByArgs {
    /// Fails if `report`, that of the capture `name`, has no context with the key.
    pub(crate) fn check(&self, report: &Report, name: &str) -> Result<(), Failure> {
        match &self.by {
            Some(key) => check_key(report, name, key),
            None => Ok(()),
        }
    }

    /// Puts call stacks below their contexts' values. Must be last, so that nothing else changes the root frames.
    pub(crate) fn apply(&self, report: &mut Report) {
        if let Some(key) = &self.by {
            *report = by_context(report, key);
        }
    }
}

/// Fails if no call site of `report`, that of the capture `name`, has a context with `key`.
pub(crate) fn check_key(report: &Report, name: &str, key: &str) -> Result<(), Failure> {
    let keys = context_keys(report);
    if keys.contains(&key) {
        return Ok(());
    }
    Err(Failure::Usage(if keys.is_empty() {
        format!(
            "{name}: this capture has no contexts; a service records them with heapray::by_route() or heapray::context()"
        )
    } else {
        format!(
            "{name}: no context has the key {key}; there are {}",
            keys.join(", ")
        )
    }))
}

fn label(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err("a label is written KEY=VALUE, such as route=GET /users".to_owned()),
    }
}
