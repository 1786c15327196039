//! Parquet: a row for each call site, for DuckDB, DataFusion, Spark, ClickHouse and others.
//!
//! The rows of several captures may be read together, so each says when and where it was taken. Rows without a value are left
//! out. The sums over the rows are those of the report.

mod columns;

use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};

use heapray_report::Report;
use heapray_report::model::{Frame, FrameId, Site, StrId, Tally};
use heapray_report::views::{Measure, Origins, own_frame, replica_of};
use parquet::basic::Compression;
use parquet::data_type::ByteArray;
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;

use columns::{Columns, FrameValues};

/// The columns. `docs/parquet.md` explains them.
const SCHEMA: &str = "message heapray {
    required int64 time (TIMESTAMP(MILLIS, true));
    required binary service (STRING);
    required binary replica (STRING);
    required group labels (MAP) {
        repeated group key_value {
            required binary key (STRING);
            required binary value (STRING);
        }
    }
    required binary thread (STRING);
    required binary allocator (STRING);
    required binary function (STRING);
    required binary file (STRING);
    required int32 line;
    required group stack (LIST) {
        repeated group list {
            required group element {
                required binary function (STRING);
                required binary file (STRING);
                required int32 line;
            }
        }
    }
    required int64 live_bytes;
    required int64 live_blocks;
    required int64 high_water_bytes;
    required int64 high_water_blocks;
    required int64 allocated_bytes;
    required int64 allocations;
    required int64 temporary_bytes;
    required int64 temporary_allocations;
}";

/// The measures of the last columns, in their order.
const MEASURES: [Measure; 4] = [
    Measure::Live,
    Measure::HighWater,
    Measure::Allocated,
    Measure::Temporary,
];

/// Most frames of a row group: it is held in memory until it is written.
const FRAMES_OF_A_GROUP: usize = 1 << 18;

/// Where a capture was taken: the same in all of its rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) service: String,
    /// The default is the thread's, or else the process's number.
    pub(crate) replica: Option<String>,
    pub(crate) labels: Vec<(String, String)>,
}

/// Writes `report`, a row for each call site.
///
/// # Errors
///
/// If `out` fails.
pub(crate) fn write(report: &Report, place: &Place, out: &mut dyn Write) -> io::Result<()> {
    let sink = Sink::default();
    let schema = parse_message_type(SCHEMA).map_err(failed)?;
    let properties = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .set_created_by(concat!("heapray ", env!("CARGO_PKG_VERSION")).to_owned())
        .build();
    let mut file = SerializedFileWriter::new(sink.clone(), Arc::new(schema), Arc::new(properties))
        .map_err(failed)?;
    let names = Names::of(report, place);
    let mut columns = Columns::new(place, report.about.end_ms);
    for site in &report.sites {
        if MEASURES
            .iter()
            .all(|measure| measure.of(site) == Tally::default())
        {
            continue;
        }
        names.add(report, site, &mut columns);
        if columns.frames() >= FRAMES_OF_A_GROUP {
            columns.write(&mut file).map_err(failed)?;
            sink.drain_to(out)?;
        }
    }
    columns.write(&mut file).map_err(failed)?;
    file.close().map_err(failed)?;
    sink.drain_to(out)
}

fn failed(error: ParquetError) -> io::Error {
    io::Error::other(error)
}

/// Texts of the report, which all rows share.
struct Names {
    /// By the number of the string.
    strings: Vec<ByteArray>,
    unknown: ByteArray,
    /// Replica and name, by the number of the thread.
    threads: Vec<(ByteArray, ByteArray)>,
    nobody: (ByteArray, ByteArray),
    origins: Origins,
}

impl Names {
    fn of(report: &Report, place: &Place) -> Names {
        let strings = (0..).take(report.strings.len());
        let text = |id| ByteArray::from(report.strings.get(StrId(id)));
        let process = report.about.pid.to_string();
        let replica = place.replica.as_deref();
        let thread = |name| {
            // A given name stands for all, so the thread's keeps what tells the replicas apart.
            let (of_thread, name) = match replica {
                None => replica_of(report, name).unwrap_or((process.as_str(), name)),
                Some(given) => (given, name),
            };
            (ByteArray::from(of_thread), ByteArray::from(name))
        };
        let threads = report.threads.iter();
        Names {
            strings: strings.map(text).collect(),
            unknown: ByteArray::from("???"),
            threads: threads
                .map(|of| thread(report.strings.get(of.name)))
                .collect(),
            nobody: thread(""),
            origins: Origins::of(report),
        }
    }

    /// Adds a call site as a row.
    fn add(&self, report: &Report, site: &Site, columns: &mut Columns) {
        let (own, _) = own_frame(report, &self.origins, site.stack);
        let thread = self.threads.get(site.thread.0 as usize);
        let values = MEASURES.map(|measure| measure.of(site));
        columns.start_row(
            thread.unwrap_or(&self.nobody).clone(),
            site.allocator.name().into(),
            self.frame(report, own),
            values,
        );
        for frame in report.stacks.leaf_to_root(site.stack) {
            columns.add_frame(self.frame(report, Some(frame)));
        }
    }

    fn text(&self, id: StrId) -> ByteArray {
        let text = self.strings.get(id.0 as usize);
        text.cloned().unwrap_or_else(ByteArray::new)
    }

    /// Returns function, file and line of a frame.
    fn frame(&self, report: &Report, id: Option<FrameId>) -> FrameValues {
        let frame = id.and_then(|id| report.frames.get(id.0 as usize));
        let Some(&Frame {
            function,
            file,
            line,
        }) = frame
        else {
            return (self.unknown.clone(), ByteArray::from(""), 0);
        };
        let function = match self.text(function) {
            name if name.is_empty() => self.unknown.clone(),
            name => name,
        };
        let line = i32::try_from(line).unwrap_or(i32::MAX);
        (function, self.text(file), line)
    }
}

/// What the writer has written and `out` has not got yet. The writer wants an output that may change threads, which standard
/// output may not.
#[derive(Debug, Clone, Default)]
struct Sink(Arc<Mutex<Vec<u8>>>);

impl Sink {
    fn drain_to(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        out.write_all(&held)?;
        held.clear();
        Ok(())
    }
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        held.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
