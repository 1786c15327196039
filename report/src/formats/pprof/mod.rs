//! pprof's format, a gzipped protobuf message: read by `go tool pprof`, Pyroscope, Parca, speedscope and others.
//!
//! Sample types are those of Go's heap profiles, in their order: `alloc_objects`, `alloc_space`, `inuse_objects`,
//! `inuse_space` (the default: live at the end). `peak_objects` and `peak_space` follow: live at the high-water mark. A report
//! that does not know all allocations has no `alloc_*`: a missing value is better than a wrong 0.
//!
//! Profile stores take what is written by default as it is. Call sites with the same call stack are one sample, since a label
//! would make a series of its own for each of its values. Samples and bytes are limited ([`Options`]).
//!
//! A profile is a snapshot: its time is the end of the report, and it has no duration. A comment says how long was recorded.
//!
//! Mappings are the process's own, with `has_*` set: pprof then prints our functions and lines with any binary. A report
//! without code addresses (one that memray wrote) has an empty mapping that keeps pprof from looking them up, and addresses
//! that are made up of functions and lines.
//!
//! A profile that is [not symbolized](Options::symbolize) has addresses instead of names, for stores that have the debug information.

mod code;
mod fold;
mod header;
mod options;
mod proto;
mod samples;
mod wire;

#[cfg(test)]
mod tests;

use std::io::{self, Write};

use self::code::{Code, Texts};
use self::fold::Fold;
pub use self::options::{Labels, MOST_BYTES, MOST_SAMPLES, Options, UnknownLabel};
use self::proto::{Label, Profile, Sample};
use self::samples::{Key, Samples, Sums};
use self::wire::Part;
use super::spelling;
use crate::model::Tally;
use crate::views::replica_of;
use crate::{Report, compress};

/// Length at which parts are written out.
const CHUNK: usize = 1 << 16;

/// Writes `report`.
///
/// A profile without a limit is written one sample at a time: only its code and names are held in memory, and 24 bytes per
/// call site. One with a limit is held in memory before it is compressed.
///
/// # Errors
/// If `out` fails.
pub fn write(report: &Report, options: &Options, out: &mut impl Write) -> io::Result<()> {
    write_within(MOST_BYTES, report, options, out)
}

fn write_within(
    most_bytes: usize,
    report: &Report,
    options: &Options,
    out: &mut impl Write,
) -> io::Result<()> {
    let samples = Samples::of(report, options.labels);
    compress::gzip(out, |mut out| {
        if options.limit == 0 {
            return encode(&samples, &Fold::nothing(&samples), options, &mut out);
        }
        let mut fold = Fold::to(options.limit as usize, &samples);
        loop {
            let mut profile = Measured::new(most_bytes);
            encode(&samples, &fold, options, &mut profile)?;
            if profile.fits() {
                return out.write_all(&profile.bytes);
            }
            // Of a profile that cannot be smaller, only mappings and comments are left.
            if !fold.more(profile.length, most_bytes) {
                return encode(&samples, &fold, options, &mut out);
            }
        }
    })
}

/// Profile that is kept as long as it is not too long, and measured in any case.
struct Measured {
    bytes: Vec<u8>,
    length: usize,
    most: usize,
}

impl Measured {
    fn new(most: usize) -> Measured {
        Measured {
            bytes: Vec::new(),
            length: 0,
            most,
        }
    }

    fn fits(&self) -> bool {
        self.length <= self.most
    }
}

impl Write for Measured {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.length += bytes.len();
        if self.fits() {
            self.bytes.extend_from_slice(bytes);
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Writes a profile, not compressed. It has no code but that of its samples.
fn encode(
    samples: &Samples<'_>,
    fold: &Fold<'_>,
    options: &Options,
    out: &mut impl Write,
) -> io::Result<()> {
    let report = samples.report;
    let first_type = header::first_type(report);
    let mut code = Code::of(report, options.symbolize);
    write_samples(samples, fold, first_type, &mut code, out)?;
    let mut header = header::header(report, fold, first_type, options.shown, &mut code.texts);
    header.comment.extend(code.executable_infos());
    write_part(&header, out)?;
    let code = Profile {
        mapping: code.mappings,
        location: code.locations,
        function: code.functions,
        string_table: code.texts.list,
        ..Profile::default()
    };
    write_part(&code, out)
}

/// Writes a part of the profile.
fn write_part(part: &Profile, out: &mut impl Write) -> io::Result<()> {
    let mut bytes = Vec::new();
    part.put(&mut bytes);
    out.write_all(&bytes)
}

fn write_samples(
    samples: &Samples<'_>,
    fold: &Fold<'_>,
    first_type: usize,
    code: &mut Code<'_>,
    out: &mut impl Write,
) -> io::Result<()> {
    let mut buffer = Vec::with_capacity(2 * CHUNK);
    // One profile of one sample is reused: its encoding is that of the sample as a part of the whole.
    let mut part = Profile::default();
    let mut write = |sample: Sample| {
        part.sample.clear();
        part.sample.push(sample);
        part.put(&mut buffer);
        if buffer.len() >= CHUNK {
            out.write_all(&buffer)?;
            buffer.clear();
        }
        io::Result::Ok(())
    };
    let values = |sums: Sums| sums[first_type..].iter().flat_map(values).collect();
    for sample in fold.kept() {
        let key = samples.key(sample);
        write(Sample {
            location_id: code.locations_of(key.stack),
            value: values(samples.sums(sample)),
            label: labels(samples.report, key, &mut code.texts),
        })?;
    }
    for (key, sums) in fold.folded() {
        let mut location_id = vec![code.others()];
        location_id.extend(key.iter().flat_map(|key| code.locations_of(key.stack)));
        let label = key.map(|key| labels(samples.report, key, &mut code.texts));
        write(Sample {
            location_id,
            value: values(sums),
            label: label.unwrap_or_default(),
        })?;
    }
    out.write_all(&buffer)
}

/// Returns the number of objects, and their space.
fn values(tally: &Tally) -> [i64; 2] {
    [tally.count, tally.bytes].map(|n| i64::try_from(n).unwrap_or(i64::MAX))
}

/// Returns the labels that `key` has.
fn labels(report: &Report, key: Key, texts: &mut Texts) -> Vec<Label> {
    let thread = key.thread.map(|thread| spelling::thread(report, thread));
    let thread = thread.as_deref();
    let (replica, thread) = match thread.and_then(|thread| replica_of(report, thread)) {
        Some((replica, "")) => (Some(replica), None),
        Some((replica, thread)) => (Some(replica), Some(thread)),
        None => (None, thread),
    };
    let allocator = key.allocator.map(|it| it.name().to_ascii_lowercase());
    let mut label = |key: &str, value: &str| Label {
        key: texts.number(key),
        str: texts.number(value),
    };
    let replica = replica.map(|replica| label("replica", replica));
    let thread = thread.map(|thread| label("thread", thread));
    let allocator = allocator.map(|allocator| label("allocator", &allocator));
    let mut all: Vec<Label> = [replica, thread, allocator].into_iter().flatten().collect();
    let context = key
        .context
        .and_then(|id| report.contexts.get(id.0 as usize));
    let of_context = context.iter().flat_map(|context| &context.labels);
    all.extend(of_context.map(|(key, value)| label(key, value)));
    all
}
