//! The messages of pprof's `profile.proto` (<https://github.com/google/pprof/blob/main/proto/profile.proto>) that we
//! write. Field numbers are the format; texts are indices into `string_table`.

use super::wire::{Part, packed, packed_signed, parts, signed, texts, truth, unsigned};

/// Profile. A protobuf message is the concatenation of its parts, so a profile is written in several messages.
#[derive(Debug, Default)]
pub(super) struct Profile {
    pub(super) sample_type: Vec<ValueType>,
    pub(super) sample: Vec<Sample>,
    pub(super) mapping: Vec<Mapping>,
    pub(super) location: Vec<Location>,
    pub(super) function: Vec<Function>,
    pub(super) string_table: Vec<String>,
    pub(super) time_nanos: i64,
    pub(super) duration_nanos: i64,
    pub(super) period_type: Option<ValueType>,
    pub(super) period: i64,
    pub(super) comment: Vec<i64>,
    pub(super) default_sample_type: i64,
}

impl Part for Profile {
    fn put(&self, to: &mut Vec<u8>) {
        parts(1, &self.sample_type, to);
        parts(2, &self.sample, to);
        parts(3, &self.mapping, to);
        parts(4, &self.location, to);
        parts(5, &self.function, to);
        texts(6, &self.string_table, to);
        signed(9, self.time_nanos, to);
        signed(10, self.duration_nanos, to);
        parts(11, &self.period_type, to);
        signed(12, self.period, to);
        packed_signed(13, &self.comment, to);
        signed(14, self.default_sample_type, to);
    }
}

/// Type and unit of a value.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ValueType {
    pub(super) r#type: i64,
    pub(super) unit: i64,
}

impl Part for ValueType {
    fn put(&self, to: &mut Vec<u8>) {
        signed(1, self.r#type, to);
        signed(2, self.unit, to);
    }
}

/// Sample: locations from the leaf, and a value for each sample type.
#[derive(Debug, Default)]
pub(super) struct Sample {
    pub(super) location_id: Vec<u64>,
    pub(super) value: Vec<i64>,
    pub(super) label: Vec<Label>,
}

impl Part for Sample {
    fn put(&self, to: &mut Vec<u8>) {
        packed(1, &self.location_id, to);
        packed_signed(2, &self.value, to);
        parts(3, &self.label, to);
    }
}

/// Label of a sample.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Label {
    pub(super) key: i64,
    pub(super) str: i64,
}

impl Part for Label {
    fn put(&self, to: &mut Vec<u8>) {
        signed(1, self.key, to);
        signed(2, self.str, to);
    }
}

/// ELF object in memory. With `has_*` set, pprof looks nothing up in a binary next to the profile.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Mapping {
    pub(super) id: u64,
    pub(super) memory_start: u64,
    pub(super) memory_limit: u64,
    pub(super) file_offset: u64,
    pub(super) filename: i64,
    pub(super) build_id: i64,
    pub(super) has_functions: bool,
    pub(super) has_filenames: bool,
    pub(super) has_line_numbers: bool,
    pub(super) has_inline_frames: bool,
}

impl Part for Mapping {
    fn put(&self, to: &mut Vec<u8>) {
        unsigned(1, self.id, to);
        unsigned(2, self.memory_start, to);
        unsigned(3, self.memory_limit, to);
        unsigned(4, self.file_offset, to);
        signed(5, self.filename, to);
        signed(6, self.build_id, to);
        truth(7, self.has_functions, to);
        truth(8, self.has_filenames, to);
        truth(9, self.has_line_numbers, to);
        truth(10, self.has_inline_frames, to);
    }
}

/// Address and its lines. The functions that are inlined there come first.
#[derive(Debug, Default)]
pub(super) struct Location {
    pub(super) id: u64,
    pub(super) mapping_id: u64,
    pub(super) address: u64,
    pub(super) line: Vec<Line>,
}

impl Part for Location {
    fn put(&self, to: &mut Vec<u8>) {
        unsigned(1, self.id, to);
        unsigned(2, self.mapping_id, to);
        unsigned(3, self.address, to);
        parts(4, &self.line, to);
    }
}

/// Line of a function.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Line {
    pub(super) function_id: u64,
    pub(super) line: i64,
}

impl Part for Line {
    fn put(&self, to: &mut Vec<u8>) {
        unsigned(1, self.function_id, to);
        signed(2, self.line, to);
    }
}

/// Function of a file.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Function {
    pub(super) id: u64,
    pub(super) name: i64,
    pub(super) system_name: i64,
    pub(super) filename: i64,
}

impl Part for Function {
    fn put(&self, to: &mut Vec<u8>) {
        unsigned(1, self.id, to);
        signed(2, self.name, to);
        signed(3, self.system_name, to);
        signed(4, self.filename, to);
    }
}
