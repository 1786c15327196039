//! Writes a report as what was asked for.

use std::io::{self, Write};
use std::iter;
use std::time::SystemTime;

use heapray_report::memray::{MemoryLimit, TooLarge};
use heapray_report::model::Event;
use heapray_report::page::{Page, SourceFiles};
use heapray_report::views::{IntervalOptions, Intervals};
use heapray_report::{Report, memray, stats, texts, views};

use super::while_wanted;
use crate::collector::snapshot::Snapshot;
use crate::contexts::LabelKey;
use crate::profiler::store::{OutputKey, OutputKind};
use crate::symbolize::{Apart, Resolved, Wanted};

/// Blocks that may be live at a time, allocations, and call sites, for the page to be made with the event log: following a
/// block takes about 50 bytes, an allocation 200 ns, and a call site has two rows. With more, the page says how else to get one.
const MOST_BLOCKS: u64 = 250_000;
const MOST_ALLOCATIONS: u64 = 5_000_000;
const MOST_SITES: usize = MOST_ROWS / 2;
/// Rows of the page's intervals: some hundred kilobytes of it.
const MOST_ROWS: usize = 200_000;
/// Memory that both may take: a file whose sums are wrong cannot take more.
const MOST_MEMORY: MemoryLimit = MemoryLimit(64 << 20);

fn write_page<E>(
    report: &Report,
    events: Option<E>,
    opens_at: &str,
    built: Option<SystemTime>,
    out: &mut impl Write,
) -> io::Result<()>
where
    E: Iterator<Item = io::Result<Event>>,
{
    let has_log = events.is_some();
    let sums = &report.totals;
    let few = sums.allocated.count <= MOST_ALLOCATIONS
        && sums.high_water.count.max(sums.live.count) <= MOST_BLOCKS
        && report.sites.len() <= MOST_SITES;
    let options = IntervalOptions {
        rows: MOST_ROWS,
        memory: MOST_MEMORY,
        ..IntervalOptions::default()
    };
    let intervals = events
        .filter(|_| few)
        .map(|events| Intervals::of(report, events, options))
        .transpose()
        .or_else(|error| if_too_large(error, None))?;
    let sources = built.map(|built| SourceFiles {
        root: &report.about.source_root,
        until: Some(built),
        server: None,
    });
    let page = Page {
        sources,
        report,
        intervals: intervals.as_ref(),
        has_log,
    };
    page.write_opened_at(opens_at, out)
}

/// Returns `instead` if `error` says that something is too large.
fn if_too_large<T>(error: io::Error, instead: T) -> io::Result<T> {
    let is_too_large = error.get_ref().is_some_and(|cause| cause.is::<TooLarge>());
    if is_too_large {
        Ok(instead)
    } else {
        Err(error)
    }
}

/// Writes the session's report so that memray tells threads of one name apart where it must.
pub(super) fn write_report(
    key: OutputKey,
    snapshot: &Snapshot,
    resolved: &Resolved,
    wanted: &Wanted,
    out: &mut impl Write,
) -> io::Result<()> {
    let renamed = key
        .names()
        .and_then(|names| views::named(&resolved.report, names));
    let report = renamed.as_ref().unwrap_or(&resolved.report);
    match &snapshot.log {
        Some(log) => {
            let apart = Apart::of(resolved, &snapshot.stacks.threads, log, wanted)?;
            let events = while_wanted::items(apart.events(resolved, log), wanted);
            let threads = apart.threads();
            memray::write_all_apart(report, threads, events, key.format(), out)
        }
        None => memray::write_aggregated(report, key.format(), out),
    }
}

/// Returns when this program was built, as its file says.
pub(super) fn built() -> Option<SystemTime> {
    std::fs::metadata("/proc/self/exe").ok()?.modified().ok()
}

/// Writes `report`, or what `key` makes of it. `events`: its event log, where there is one. `built`: when the program was built;
/// a page has lines of sources that are not newer.
pub(crate) fn render(
    key: OutputKey,
    report: &Report,
    events: Option<impl Iterator<Item = io::Result<Event>>>,
    built: Option<SystemTime>,
    out: &mut impl Write,
) -> io::Result<()> {
    let joined = (!key.is_by_address()).then(|| views::joined(report));
    let joined = joined.flatten();
    let report = joined.as_ref().map_or(report, |joined| &joined.report);
    let events = events.map(|events| {
        events.map(|event| match &joined {
            Some(joined) => event.map(|event| joined.event(event)),
            None => event,
        })
    });
    let renamed = key.names().and_then(|names| views::named(report, names));
    let report = renamed.as_ref().unwrap_or(report);
    let inverted;
    let shown = if key.is_inverted() && !key.is_turned_by_writer() {
        inverted = views::inverted(report);
        &inverted
    } else {
        report
    };
    if let Some(label) = key.by_label() {
        return render_by(label, key, shown, built, out);
    }
    write(key, shown, events, built, out)
}

/// Writes `report` by the values that its contexts have for `label`.
fn render_by(
    label: LabelKey,
    key: OutputKey,
    report: &Report,
    built: Option<SystemTime>,
    out: &mut impl Write,
) -> io::Result<()> {
    let label = label.name();
    let missing = missing(report, label);
    match key.kind() {
        OutputKind::Stats => {
            texts::contexts(report, label, out)?;
            missing.map_or(Ok(()), |note| writeln!(out, "\n{note}"))
        }
        OutputKind::StatsJson => texts::contexts_json(report, label, out),
        _ => {
            // Last, so that nothing else changes the root frames.
            let mut report = views::by_context(report, label);
            report.conditions.notes.extend(missing);
            write(key, &report, None::<iter::Empty<_>>, built, out)
        }
    }
}

/// Returns a sentence for the user, if no call site has a context with the key `label`.
fn missing(report: &Report, label: &str) -> Option<String> {
    let keys = views::context_keys(report);
    match keys[..] {
        [] => Some(
            "nothing was allocated in a context: a service has them by MEMRAY_PROFILER_BY_ROUTE=true, \
             heapray::by_route() or heapray::context()"
                .to_owned(),
        ),
        _ if keys.contains(&label) => None,
        _ => Some(format!(
            "no context has the key {label}; there are {}",
            keys.join(", ")
        )),
    }
}

fn write(
    key: OutputKey,
    report: &Report,
    events: Option<impl Iterator<Item = io::Result<Event>>>,
    built: Option<SystemTime>,
    out: &mut impl Write,
) -> io::Result<()> {
    match key.kind() {
        OutputKind::Report => match events {
            Some(events) => memray::write_all(report, events, key.format(), out),
            None => memray::write_aggregated(report, key.format(), out),
        },
        OutputKind::Flamegraph => write_page(report, events, key.opens_at(), built, out),
        OutputKind::Stats => out.write_all(stats::text(report).as_bytes()),
        OutputKind::StatsJson => stats::json(report, &stats::JsonOptions::default(), out),
        OutputKind::Table => texts::table(report, &key.text_choices(), out),
        OutputKind::Tree => texts::tree(report, &key.text_choices(), out),
        OutputKind::Summary => texts::summary(report, &key.text_choices(), out),
        OutputKind::File(format) => format.write(report, &key.choices(), out),
    }
}

#[cfg(test)]
mod tests {
    use heapray_report::model::Event;

    use super::*;

    fn page(error: io::Error) -> io::Result<String> {
        let (report, events) = (Report::default(), iter::once(Err::<Event, _>(error)));
        let mut page = Vec::new();
        write_page(&report, Some(events), "", None, &mut page)?;
        Ok(String::from_utf8(page).unwrap())
    }

    #[test]
    fn a_log_that_needs_too_much_memory_is_left_out_of_the_page() {
        let too_large = TooLarge { limit: MOST_MEMORY };
        let page_without = page(too_large.into()).unwrap();
        assert!(page_without.starts_with("<!doctype html>"));
        let damaged = page(io::ErrorKind::InvalidData.into()).unwrap_err();
        assert_eq!(damaged.kind(), io::ErrorKind::InvalidData);
    }
}
