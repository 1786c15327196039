//! Statistics that memray does not have: the live memory, the lines that allocated it, those that probably leak, and the
//! quality of the session.

use std::fmt::Write;

use super::{estimates, place};
use crate::memray::in_one_line;
use crate::model::{FrameId, Report, Tally};
use crate::units::{duration, lost_since, size};
use crate::views::{
    Confidence, KnownSums, Origins, Sums, by_location, by_thread, fragmentation, known, leaks,
    own_sites,
};

pub(super) fn put(out: &mut String, report: &Report, most: usize) {
    // Writing to a string cannot fail.
    let _ = put_live(out, report, most)
        .and_then(|()| put_leaks(out, report, most))
        .and_then(|()| put_known(out, report, most))
        .and_then(|()| put_fragmentation(out, report))
        .and_then(|()| put_high_water(out, report))
        .and_then(|()| put_threads(out, report, most))
        .and_then(|()| put_capture(out, report))
        .and_then(|()| put_overhead(out, report));
}

fn amount(tally: Tally) -> String {
    let s = if tally.count == 1 { "" } else { "s" };
    format!("{} in {} allocation{s}", size(tally.bytes), tally.count)
}

fn percent(part: u64, whole: u64) -> String {
    if whole == 0 {
        return "0.0%".into();
    }
    format!("{:.1}%", part as f64 * 100.0 / whole as f64)
}

/// Returns the milliseconds from the start to the moment of the report.
fn length_ms(report: &Report) -> u64 {
    u64::try_from(report.about.end_ms.saturating_sub(report.about.start_ms)).unwrap_or(0)
}

fn put_live(out: &mut String, report: &Report, most: usize) -> std::fmt::Result {
    let live = report.totals.live;
    let when = if report.conditions.still_recording {
        "now"
    } else {
        "at the end"
    };
    writeln!(out, "\n💧 Still live {when}:\n\t{}", amount(live))?;
    let locations = live_locations(report, most);
    put_places(
        out,
        report,
        &format!("Top {most} still-live locations (by size)"),
        &locations,
    )?;
    // The code that allocates is often in a library; the code that keeps the memory is a line of the service.
    let own = live_own_lines(report, most);
    if own != locations {
        put_places(
            out,
            report,
            &format!(
                "Top {most} lines of the service's own that still-live memory came from (by size)"
            ),
            &own,
        )?;
    }
    Ok(())
}

/// Line of code, and the sums of the allocations there or through it.
pub(super) type Place = (Option<FrameId>, Sums);

/// Returns the places with the most live memory.
pub(super) fn live_locations(report: &Report, most: usize) -> Vec<Place> {
    let mut locations: Vec<Place> = by_location(report)
        .into_iter()
        .map(|location| (location.frame, location.sums))
        .collect();
    locations.sort_by_key(|(_, sums)| std::cmp::Reverse((sums.live.bytes, sums.live.count)));
    still_live(locations, most)
}

/// Returns the lines of the service's own through which the most live memory was allocated.
pub(super) fn live_own_lines(report: &Report, most: usize) -> Vec<Place> {
    let own = own_sites(report, &Origins::of(report))
        .into_iter()
        .filter(|site| site.is_own)
        .map(|site| (site.frame, site.sums))
        .collect();
    still_live(own, most)
}

/// Returns the first places that have live memory.
fn still_live(mut places: Vec<Place>, most: usize) -> Vec<Place> {
    places.retain(|(_, sums)| sums.live.count > 0);
    places.truncate(most);
    places
}

fn put_places(out: &mut String, report: &Report, what: &str, places: &[Place]) -> std::fmt::Result {
    if places.is_empty() {
        return Ok(());
    }
    writeln!(out, "\n💧 {what}:")?;
    for (frame, sums) in places {
        write!(
            out,
            "\t- {} -> {}, {} of live",
            place(report, *frame),
            amount(sums.live),
            percent(sums.live.bytes, report.totals.live.bytes)
        )?;
        if sums.allocated.count > 0 {
            let kept = percent(sums.live.count, sums.allocated.count);
            write!(out, ", {kept} of its allocations kept")?;
        }
        if let Some(born) = sums.oldest_live_ms {
            let age = length_ms(report).saturating_sub(born);
            write!(out, ", the oldest {} old", duration(age))?;
        }
        out.push('\n');
    }
    Ok(())
}

/// Names the lines that probably leak, unless that may be a coincidence.
fn put_leaks(out: &mut String, report: &Report, most: usize) -> std::fmt::Result {
    let leaks = leaks(report);
    let probable = leaks.list().iter();
    let probable = probable.filter(|leak| leak.confidence >= Confidence::Medium);
    for (index, leak) in probable.take(most).enumerate() {
        if index == 0 {
            writeln!(out, "\n💧 Probably leaking:")?;
        }
        writeln!(
            out,
            "\t- {} -> {} live, {} more an hour, {} confidence",
            place(report, Some(leak.frame)),
            size(leak.live.bytes),
            size(leak.growth_bytes_per_hour),
            leak.confidence.name()
        )?;
    }
    Ok(())
}

/// Names what is known, and so not among the lines that probably leak.
fn put_known(out: &mut String, report: &Report, most: usize) -> std::fmt::Result {
    let known = known(report);
    if known.is_empty() {
        return Ok(());
    }
    writeln!(out, "\n🤝 Known, and not ranked as leaks:")?;
    for KnownSums { rule, sums } in known.iter().take(most) {
        let rule = &report.about.known[*rule];
        writeln!(out, "\t- {}", rule.held(sums))?;
    }
    Ok(())
}

fn put_fragmentation(out: &mut String, report: &Report) -> std::fmt::Result {
    match fragmentation(report) {
        Some(found) => writeln!(out, "\n🧩 Free, but resident:\n\t{}", found.advice()),
        None => Ok(()),
    }
}

fn put_high_water(out: &mut String, report: &Report) -> std::fmt::Result {
    let peak = report.totals.high_water;
    write!(out, "\n📈 High-water mark:\n\t{}", amount(peak))?;
    if let Some(at) = report.totals.high_water_ms {
        write!(out, ", {} after the start", duration(at))?;
    }
    let live = percent(report.totals.live.bytes, peak.bytes);
    writeln!(out, "; what is still live is {live} of that")
}

fn put_threads(out: &mut String, report: &Report, most: usize) -> std::fmt::Result {
    let mut threads: Vec<(usize, Sums)> = by_thread(report)
        .into_iter()
        .enumerate()
        .filter(|(_, sums)| !sums.is_zero())
        .collect();
    if threads.is_empty() {
        return Ok(());
    }
    threads.sort_by_key(|(_, sums)| {
        std::cmp::Reverse((sums.live.bytes, sums.high_water.bytes, sums.allocated.bytes))
    });
    writeln!(out, "\n🧵 Top {most} threads (by size still live):")?;
    for &(index, sums) in threads.iter().take(most) {
        let thread = report.threads[index];
        let name = match report.strings.get(thread.name) {
            "" => format!("thread {}", thread.tid),
            name => in_one_line(name).into_owned(),
        };
        write!(out, "\t- {name}")?;
        if thread.threads > 1 {
            write!(out, " ({} threads)", thread.threads)?;
        }
        writeln!(
            out,
            ": {} live | {} at the high-water mark | {} allocated",
            size(sums.live.bytes),
            size(sums.high_water.bytes),
            size(sums.allocated.bytes)
        )?;
    }
    if threads.len() > most {
        writeln!(out, "\t  and {} more", threads.len() - most)?;
    }
    Ok(())
}

fn put_capture(out: &mut String, report: &Report) -> std::fmt::Result {
    let (about, conditions) = (&report.about, &report.conditions);
    writeln!(out, "\n🩺 Capture:")?;
    writeln!(
        out,
        "\t{} (process {}), {} by {}, {} events",
        in_one_line(&about.command_line),
        about.pid,
        duration(length_ms(report)),
        in_one_line(&about.producer),
        about.events
    )?;
    if conditions.still_recording {
        let exact = if conditions.sampling.is_some() {
            "consistent"
        } else {
            "exact"
        };
        writeln!(
            out,
            "\tstill recording: a snapshot, {exact} up to its moment"
        )?;
    }
    if !conditions.hooks.is_empty() {
        let hooks = in_one_line(&conditions.hooks);
        writeln!(out, "\tallocations seen by: {hooks}")?;
    }
    for line in estimates(report) {
        writeln!(out, "\t≈ {line}")?;
    }
    if conditions.lost_events > 0 {
        let lost = conditions.lost_events;
        let since = lost_since(conditions);
        writeln!(out, "\t⚠ {lost} events were lost{since}: sums are too low")?;
    }
    if conditions.stacks_cut > 0 {
        let cut = conditions.stacks_cut;
        writeln!(out, "\t⚠ {cut} call stacks were too deep and are cut")?;
    }
    if conditions.stacks_incomplete > 0 {
        let incomplete = conditions.stacks_incomplete;
        writeln!(
            out,
            "\t⚠ {incomplete} call stacks end early, in code without unwind information"
        )?;
    }
    if conditions.unknown_frees > 0 {
        let unknown = conditions.unknown_frees;
        writeln!(
            out,
            "\t{unknown} frees of blocks from before the capture were ignored"
        )?;
    }
    if let Some(why) = &conditions.log_given_up {
        writeln!(out, "\tno event log: {}", in_one_line(why))?;
    }
    if report.totals.sizes_rounded {
        writeln!(
            out,
            "\tlarge sizes are rounded by under 1 % in the histogram"
        )?;
    }
    for note in &conditions.notes {
        writeln!(out, "\t{}", in_one_line(note))?;
    }
    Ok(())
}

/// With fewer events, the time for each says nothing.
const ENOUGH_EVENTS: u64 = 10_000;

fn put_overhead(out: &mut String, report: &Report) -> std::fmt::Result {
    let overhead = &report.conditions.overhead;
    if overhead.memory_bytes == 0 && overhead.collector_cpu_ns == 0 && overhead.log_bytes == 0 {
        return Ok(());
    }
    writeln!(out, "\n🪙 heapray's own overhead:")?;
    writeln!(out, "\t{} of memory", size(overhead.memory_bytes))?;
    write!(
        out,
        "\t{} of collector CPU",
        duration(overhead.collector_cpu_ns / 1_000_000)
    )?;
    let each = overhead.collector_cpu_ns.checked_div(report.about.events);
    // For few events or for samples it would mostly be the time without them.
    let is_known = report.about.events >= ENOUGH_EVENTS && report.conditions.sampling.is_none();
    if let Some(each) = each.filter(|_| is_known) {
        write!(out, ", {each} ns an event")?;
    }
    writeln!(out, "\n\t{} of event log", size(overhead.log_bytes))
}
