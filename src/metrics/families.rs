//! The profiler's own families. `docs/monitoring.md` lists them.

use std::time::{Duration, SystemTime};

use super::family::{Family, Kind};
use super::resident;
use crate::collector::figures::Running;
use crate::flight_recorder::TriggerKind;
use crate::os::cgroup::Limit;
use crate::os::command_line;
use crate::profiler::store::ReportsOfCause;
use crate::profiler::{ProcessFigures, PushStatus, StoreStatus};

/// Returns the families of `figures`. Those of a session have a value only while it runs.
pub(crate) fn families(figures: &ProcessFigures) -> Vec<Family> {
    let running = figures.sessions.running.as_ref();
    let totals = figures.sessions.totals();
    let memory = figures.memory.as_ref();
    let limit = figures.limit.as_ref();
    let of = |figure: fn(&Running) -> u64| running.map(figure);
    let mut families = vec![
        info(running),
        Family::gauge(
            "heapray_recording",
            "Whether allocations are recorded: 1 or 0.",
            Some(u64::from(running.is_some())),
        ),
        Family::gauge(
            "heapray_recording_start_time_seconds",
            "When the running session began, in seconds since the Unix epoch.",
            running.map(|now| seconds(now.started)),
        ),
        Family::gauge(
            "heapray_process_start_time_seconds",
            "When the process started, in seconds since the Unix epoch.",
            figures.process_started.map(seconds),
        ),
        Family::gauge(
            "heapray_sample_interval_bytes",
            "Bytes between two samples on average; 0 if every allocation is recorded.",
            of(|now| now.sample),
        ),
        Family::gauge(
            "heapray_live_bytes",
            "Bytes that were allocated since recording began and are not freed.",
            of(|now| now.live.bytes),
        ),
        Family::gauge(
            "heapray_live_blocks",
            "Blocks that were allocated since recording began and are not freed.",
            of(|now| now.live.count),
        ),
        Family::gauge(
            "heapray_high_water_bytes",
            "The largest number of live bytes since recording began.",
            of(|now| now.high_water.bytes),
        ),
        Family::counter(
            "heapray_allocated_bytes",
            "Bytes that were allocated while the profiler recorded.",
            totals.allocated.bytes,
        ),
        Family::counter(
            "heapray_allocations",
            "Allocations while the profiler recorded.",
            totals.allocated.count,
        ),
        Family::counter(
            "heapray_freed_bytes",
            "Bytes of known blocks that were freed while the profiler recorded.",
            totals.freed.bytes,
        ),
        Family::counter(
            "heapray_deallocations",
            "Frees of known blocks while the profiler recorded.",
            totals.freed.count,
        ),
        Family::counter(
            "heapray_lost_events",
            "Allocations and frees that were not recorded because the collector could not keep up.",
            totals.lost_events,
        ),
        resident::family(memory, running),
        Family::gauge(
            "heapray_memory_used_bytes",
            "Memory that the control group uses of its limit, without page cache that the kernel would drop.",
            limit.map(Limit::used),
        ),
        Family::gauge(
            "heapray_memory_limit_bytes",
            "The limit of the control group, or of the one above it that has the least left.",
            limit.map(|limit| limit.bytes),
        ),
        Family::gauge(
            "heapray_profiler_memory_bytes",
            "Memory that the profiler holds.",
            memory.map(|memory| memory.own_mapped + memory.own_heap),
        ),
        Family::counter(
            "heapray_profiler_cpu_seconds",
            "CPU time of the thread that collects the events.",
            Duration::from_nanos(totals.collector_cpu_ns).as_secs_f64(),
        ),
        Family::gauge(
            "heapray_profiler_disk_bytes",
            "Bytes of the profiler's files in its directory.",
            Some(figures.disk.bytes),
        ),
        Family::gauge(
            "heapray_profiler_disk_limit_bytes",
            "Most bytes that these files may have.",
            Some(figures.disk.bound_bytes),
        ),
        reports(&figures.reports),
        last_reports(&figures.reports),
    ];
    families.extend(figures.push.iter().flat_map(push));
    families.extend(figures.store.iter().flat_map(store));
    families
}

/// Returns the families of the profiles that are pushed.
fn push(push: &PushStatus) -> [Family; 5] {
    let mut profiles = Family::new(
        Kind::Counter,
        "heapray_pushed_profiles",
        "Profiles for the profile store, by what became of them: sent, refused, dropped or not made.",
    );
    for (result, count) in [
        ("sent", push.sent),
        ("refused", push.refused),
        ("dropped", push.dropped),
        ("not_made", push.not_made),
    ] {
        profiles.add([("result", result.to_owned())], count);
    }
    [
        profiles,
        Family::counter(
            "heapray_push_failures",
            "Tries to push a profile that have failed. The profile waits for the next one.",
            push.failures,
        ),
        Family::gauge(
            "heapray_push_waiting_profiles",
            "Profiles that wait for the profile store.",
            Some(push.waiting),
        ),
        Family::gauge(
            "heapray_push_waiting_bytes",
            "Bytes of the profiles that wait for the profile store.",
            Some(push.waiting_bytes),
        ),
        Family::gauge(
            "heapray_last_push_time_seconds",
            "When the profile store has taken a profile last, in seconds since the Unix epoch.",
            push.last_sent.map(seconds),
        ),
    ]
}

/// Returns the families of the reports that are copied to an object storage.
fn store(store: &StoreStatus) -> [Family; 5] {
    let mut reports = Family::new(
        Kind::Counter,
        "heapray_stored_reports",
        "Kept reports for the object storage, by what became of them: stored or dropped.",
    );
    for (result, count) in [("stored", store.stored), ("dropped", store.dropped)] {
        reports.add([("result", result.to_owned())], count);
    }
    [
        reports,
        Family::counter(
            "heapray_store_failures",
            "Tries to copy a report that have failed. The report waits for the next one.",
            store.failures,
        ),
        Family::gauge(
            "heapray_store_waiting_reports",
            "Kept reports that wait for the object storage.",
            Some(store.waiting),
        ),
        Family::gauge(
            "heapray_store_waiting_bytes",
            "Bytes of the kept reports that wait for the object storage.",
            Some(store.waiting_bytes),
        ),
        Family::gauge(
            "heapray_last_store_time_seconds",
            "When the object storage has taken a report last, in seconds since the Unix epoch.",
            store.last_stored.map(seconds),
        ),
    ]
}

fn info(running: Option<&Running>) -> Family {
    let mode = match running {
        None => "off",
        Some(now) if now.sample == 0 => "exact",
        Some(_) => "sampled",
    };
    let interval = running.map_or_else(String::new, |now| now.sample.to_string());
    let mut family = Family::new(
        Kind::Info,
        "heapray",
        "The profiler's version, whether it records every allocation or samples, and the program.",
    );
    let labels = [
        ("version", env!("CARGO_PKG_VERSION").to_owned()),
        ("mode", mode.to_owned()),
        ("sample_interval_bytes", interval),
        ("program", command_line::program()),
    ];
    family.add(labels, 1);
    family
}

fn reports(reports: &[ReportsOfCause]) -> Family {
    let mut family = Family::new(
        Kind::Counter,
        "heapray_reports",
        "Reports that this process has written, by cause; stop: a session was stopped.",
    );
    for of in reports {
        family.add([("cause", cause(of.cause))], of.reports);
    }
    family
}

fn last_reports(reports: &[ReportsOfCause]) -> Family {
    let mut family = Family::new(
        Kind::Gauge,
        "heapray_last_report_time_seconds",
        "When the last report of this cause was written, also before a restart, in seconds since the Unix epoch.",
    );
    for of in reports {
        if let Some(last) = of.last {
            family.add([("cause", cause(of.cause))], seconds(last));
        }
    }
    family
}

fn cause(trigger: Option<TriggerKind>) -> String {
    trigger.map_or("stop", TriggerKind::name).to_owned()
}

/// Returns seconds since the Unix epoch, to the millisecond.
fn seconds(time: SystemTime) -> f64 {
    let since = time.duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0.0, |since| since.as_millis() as f64 / 1e3)
}
