//! The values of one row group, column by column, as Parquet stores them.
//!
//! Nested columns have two levels beside each value: whether it begins a new row (0) or goes on in the same list (1), and
//! whether there is a value (1) or the list is empty (0).

use heapray_report::model::Tally;
use parquet::data_type::{ByteArray, ByteArrayType, DataType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};

use super::{MEASURES, Place, Sink};

/// Function, file and line of a frame.
pub(super) type FrameValues = (ByteArray, ByteArray, i32);

/// A row group that is being collected.
pub(super) struct Columns {
    service: ByteArray,
    labels: Vec<(ByteArray, ByteArray)>,
    time: i64,
    rows: Rows,
}

/// What differs from row to row.
#[derive(Default)]
struct Rows {
    replicas: Vec<ByteArray>,
    threads: Vec<ByteArray>,
    allocators: Vec<ByteArray>,
    own: Frames,
    stacks: Frames,
    stack_levels: Levels,
    values: [Tallies; MEASURES.len()],
}

/// Frames, column by column.
#[derive(Default)]
struct Frames {
    functions: Vec<ByteArray>,
    files: Vec<ByteArray>,
    lines: Vec<i32>,
}

/// Bytes and blocks of a measure.
#[derive(Default)]
struct Tallies {
    bytes: Vec<i64>,
    counts: Vec<i64>,
}

/// Levels of a list's values.
#[derive(Default)]
struct Levels {
    is_there: Vec<i16>,
    goes_on: Vec<i16>,
}

impl Columns {
    pub(super) fn new(place: &Place, time: i64) -> Columns {
        let text = |text: &String| ByteArray::from(text.as_str());
        let labels = place.labels.iter();
        Columns {
            service: text(&place.service),
            labels: labels
                .map(|(key, value)| (text(key), text(value)))
                .collect(),
            time,
            rows: Rows::default(),
        }
    }

    /// Returns how many frames are held, with one for each row.
    pub(super) fn frames(&self) -> usize {
        self.rows.stacks.lines.len() + self.rows.own.lines.len()
    }

    /// Begins a row with an empty stack.
    pub(super) fn start_row(
        &mut self,
        (replica, thread): (ByteArray, ByteArray),
        allocator: ByteArray,
        own: FrameValues,
        values: [Tally; MEASURES.len()],
    ) {
        let rows = &mut self.rows;
        rows.replicas.push(replica);
        rows.threads.push(thread);
        rows.allocators.push(allocator);
        rows.own.push(own);
        rows.stack_levels.start_list();
        for (column, tally) in rows.values.iter_mut().zip(values) {
            let signed = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
            column.bytes.push(signed(tally.bytes));
            column.counts.push(signed(tally.count));
        }
    }

    /// Adds a frame to the row's stack, from the leaf on.
    pub(super) fn add_frame(&mut self, frame: FrameValues) {
        self.rows.stacks.push(frame);
        self.rows.stack_levels.add();
    }

    /// Writes the row group, in the order of the schema, and empties it.
    pub(super) fn write(
        &mut self,
        file: &mut SerializedFileWriter<Sink>,
    ) -> Result<(), ParquetError> {
        let rows = std::mem::take(&mut self.rows);
        let count = rows.threads.len();
        if count == 0 {
            return Ok(());
        }
        let mut group = file.next_row_group()?;
        let out = &mut group;
        column::<Int64Type>(out, &vec![self.time; count], None)?;
        column::<ByteArrayType>(out, &vec![self.service.clone(); count], None)?;
        column::<ByteArrayType>(out, &rows.replicas, None)?;
        self.write_labels(out, count)?;
        column::<ByteArrayType>(out, &rows.threads, None)?;
        column::<ByteArrayType>(out, &rows.allocators, None)?;
        rows.own.write(out, None)?;
        rows.stacks.write(out, Some(&rows.stack_levels))?;
        for tallies in &rows.values {
            column::<Int64Type>(out, &tallies.bytes, None)?;
            column::<Int64Type>(out, &tallies.counts, None)?;
        }
        group.close()?;
        Ok(())
    }

    fn write_labels(
        &self,
        out: &mut SerializedRowGroupWriter<'_, Sink>,
        rows: usize,
    ) -> Result<(), ParquetError> {
        let mut levels = Levels::default();
        for _ in 0..rows {
            levels.start_list();
            self.labels.iter().for_each(|_| levels.add());
        }
        let of_all_rows = (0..rows).flat_map(|_| self.labels.iter().cloned());
        let (keys, values): (Vec<_>, Vec<_>) = of_all_rows.unzip();
        column::<ByteArrayType>(out, &keys, Some(&levels))?;
        column::<ByteArrayType>(out, &values, Some(&levels))
    }
}

impl Frames {
    fn push(&mut self, (function, file, line): FrameValues) {
        self.functions.push(function);
        self.files.push(file);
        self.lines.push(line);
    }

    fn write(
        &self,
        out: &mut SerializedRowGroupWriter<'_, Sink>,
        levels: Option<&Levels>,
    ) -> Result<(), ParquetError> {
        column::<ByteArrayType>(out, &self.functions, levels)?;
        column::<ByteArrayType>(out, &self.files, levels)?;
        column::<Int32Type>(out, &self.lines, levels)
    }
}

impl Levels {
    /// Begins a list without a value.
    fn start_list(&mut self) {
        self.is_there.push(0);
        self.goes_on.push(0);
    }

    /// Adds a value to the last list.
    fn add(&mut self) {
        match self.is_there.last_mut() {
            Some(there @ 0) => *there = 1,
            _ => {
                self.is_there.push(1);
                self.goes_on.push(1);
            }
        }
    }
}

/// Writes the next column of the group.
fn column<T: DataType>(
    out: &mut SerializedRowGroupWriter<'_, Sink>,
    values: &[T::T],
    levels: Option<&Levels>,
) -> Result<(), ParquetError> {
    let missing = || ParquetError::General("there are more columns than the schema has".to_owned());
    let mut column = out.next_column()?.ok_or_else(missing)?;
    let (is_there, goes_on) = levels
        .map(|levels| (levels.is_there.as_slice(), levels.goes_on.as_slice()))
        .unzip();
    column.typed::<T>().write_batch(values, is_there, goes_on)?;
    column.close()
}

#[cfg(test)]
mod tests {
    use super::Levels;

    #[test]
    fn each_list_begins_anew_and_an_empty_one_has_no_value() {
        let mut levels = Levels::default();
        for length in [2, 0, 1] {
            levels.start_list();
            (0..length).for_each(|_| levels.add());
        }
        assert_eq!(levels.is_there, [1, 1, 0, 1]);
        assert_eq!(levels.goes_on, [0, 1, 0, 0]);
    }
}
