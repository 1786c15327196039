//! pprof's format, a gzipped protobuf message: read by `go tool pprof`, Pyroscope, Parca, speedscope and others.
//!
//! Sample types are those of Go's heap profiles, in their order: `alloc_objects`, `alloc_space`, `inuse_objects`,
//! `inuse_space` (the default: live at the end). `peak_objects` and `peak_space` follow: live at the high-water mark. A report
//! that does not know all allocations has no `alloc_*`: a missing value is better than a wrong 0. Each sample is labelled
//! with its `thread` and `allocator`.
//!
//! A profile is a snapshot: its time is the end of the report, and it has no duration. A comment says how long was recorded.
//!
//! Mappings are the process's own, with `has_*` set: pprof then prints our functions and lines with any binary. A report
//! without code addresses (one that memray wrote) has an empty mapping that keeps pprof from looking them up, and addresses
//! that are made up of functions and lines.

mod code;
mod proto;
mod wire;

#[cfg(test)]
mod tests;

use std::io::{self, Write};

use flate2::Compression;
use flate2::write::GzEncoder;

use self::code::{Code, Texts};
use self::proto::{Label, Profile, Sample, ValueType};
use self::wire::Part;
use super::spelling;
use crate::Report;
use crate::memray::in_one_line;
use crate::model::{Site, Tally};
use crate::stats::estimates;
use crate::units::{duration, lost_since};
use crate::views::Measure;

/// Length at which parts are written out.
const CHUNK: usize = 1 << 16;

/// Writes `report`, one sample at a time. Only its code and names are held in memory.
///
/// # Errors
/// If `out` fails.
pub fn write(report: &Report, out: &mut impl Write) -> io::Result<()> {
    let mut out = GzEncoder::new(out, Compression::new(4));
    let mut code = Code::of(report);
    let types = sample_types(report);
    write_samples(report, types, &mut code, &mut out)?;
    let header = header(report, types, &mut code.texts);
    write_part(&header, &mut out)?;
    let code = Profile {
        mapping: code.mappings,
        location: code.locations,
        function: code.functions,
        string_table: code.texts.list,
        ..Profile::default()
    };
    write_part(&code, &mut out)?;
    out.finish()?;
    Ok(())
}

/// Writes a part of the profile.
fn write_part(part: &Profile, out: &mut impl Write) -> io::Result<()> {
    let mut bytes = Vec::new();
    part.put(&mut bytes);
    out.write_all(&bytes)
}

/// Sample types: the beginning of their names, and their measure.
const TYPES: [(&str, Measure); 3] = [
    ("alloc", Measure::Allocated),
    ("inuse", Measure::Live),
    ("peak", Measure::HighWater),
];

/// Returns the sample types that are known of `report`.
fn sample_types(report: &Report) -> &'static [(&'static str, Measure)] {
    let unknown = report.totals.allocated.count == 0
        && report.sites.iter().all(|site| site.allocated.count == 0);
    &TYPES[usize::from(unknown)..]
}

fn write_samples(
    report: &Report,
    types: &[(&str, Measure)],
    code: &mut Code<'_>,
    out: &mut impl Write,
) -> io::Result<()> {
    let (thread_key, allocator_key) = (code.texts.number("thread"), code.texts.number("allocator"));
    let mut buffer = Vec::with_capacity(2 * CHUNK);
    // One profile of one sample is reused: its encoding is that of the sample as a part of the whole.
    let mut part = Profile::default();
    for site in &report.sites {
        let tallies = types.iter().map(|(_, measure)| measure.of(site));
        let value: Vec<i64> = tallies.flat_map(values).collect();
        if value.iter().all(|&value| value == 0) {
            continue;
        }
        let labels = labels(report, site, &mut code.texts);
        part.sample.clear();
        part.sample.push(Sample {
            location_id: code.locations_of(site.stack),
            value,
            label: vec![
                Label {
                    key: thread_key,
                    str: labels[0],
                },
                Label {
                    key: allocator_key,
                    str: labels[1],
                },
            ],
        });
        part.put(&mut buffer);
        if buffer.len() >= CHUNK {
            out.write_all(&buffer)?;
            buffer.clear();
        }
    }
    out.write_all(&buffer)
}

/// Returns the number of objects, and their space.
fn values(tally: Tally) -> [i64; 2] {
    [tally.count, tally.bytes].map(|n| i64::try_from(n).unwrap_or(i64::MAX))
}

/// Returns the labels for thread and allocator.
fn labels(report: &Report, site: &Site, texts: &mut Texts) -> [i64; 2] {
    let thread = spelling::thread(report, site.thread);
    [
        texts.number(&thread),
        texts.number(&site.allocator.name().to_ascii_lowercase()),
    ]
}

/// Writes everything except samples and code.
fn header(report: &Report, types: &[(&str, Measure)], texts: &mut Texts) -> Profile {
    let about = &report.about;
    let mut of = |r#type: &str, unit: &str| ValueType {
        r#type: texts.number(r#type),
        unit: texts.number(unit),
    };
    let mut sample_type = Vec::new();
    for (name, _) in types {
        sample_type.push(of(&format!("{name}_objects"), "count"));
        sample_type.push(of(&format!("{name}_space"), "bytes"));
    }
    let period_type = Some(of("space", "bytes"));
    Profile {
        sample_type,
        period_type,
        // 1: every allocation was recorded.
        period: report.conditions.sampling.as_ref().map_or(1, |sampling| {
            i64::try_from(sampling.mean_bytes()).unwrap_or(i64::MAX)
        }),
        // The moment that the profile shows. A capture that does not know its end has its start.
        time_nanos: about.end_ms.max(about.start_ms).saturating_mul(1_000_000),
        // A snapshot has no duration. Parca takes every value of a profile that has one for a change.
        duration_nanos: 0,
        comment: comments(report)
            .iter()
            .map(|comment| texts.number(comment))
            .collect(),
        default_sample_type: texts.number("inuse_space"),
        ..Profile::default()
    }
}

/// Returns the lines that `go tool pprof -comments` prints.
fn comments(report: &Report) -> Vec<String> {
    let (about, conditions) = (&report.about, &report.conditions);
    let mut comments = vec![
        in_one_line(&about.command_line).into_owned(),
        format!("written by {}", in_one_line(&about.producer)),
    ];
    comments
        .push("inuse: live at the end of the capture; peak: live at the high-water mark".into());
    let recorded_ms = about.end_ms.saturating_sub(about.start_ms);
    if let Ok(ms @ 1..) = u64::try_from(recorded_ms) {
        comments.push(format!("recorded for {}", duration(ms)));
    }
    if conditions.still_recording {
        comments.push("still recording: a snapshot".into());
    }
    comments.extend(estimates(report));
    if conditions.lost_events > 0 {
        let lost = conditions.lost_events;
        let since = lost_since(conditions);
        comments.push(format!("{lost} events were lost{since}: sums are too low"));
    }
    let notes = conditions.notes.iter();
    comments.extend(notes.map(|note| in_one_line(note).into_owned()));
    comments.retain(|comment| !comment.is_empty());
    comments
}
