//! A profile as it is read again, for a format that has the same in other tables
//! (<https://github.com/google/pprof/blob/main/proto/profile.proto>).

use std::io::Read;

use flate2::read::GzDecoder;
use prost::Message;

/// Longest profile that is read.
const LONGEST: u64 = 64 << 20;

#[derive(Clone, PartialEq, Message)]
pub(super) struct Profile {
    #[prost(message, repeated, tag = "1")]
    pub(super) sample_type: Vec<ValueType>,
    #[prost(message, repeated, tag = "2")]
    pub(super) sample: Vec<Sample>,
    #[prost(message, repeated, tag = "3")]
    pub(super) mapping: Vec<Mapping>,
    #[prost(message, repeated, tag = "4")]
    pub(super) location: Vec<Location>,
    #[prost(message, repeated, tag = "5")]
    pub(super) function: Vec<Function>,
    #[prost(string, repeated, tag = "6")]
    pub(super) string_table: Vec<String>,
    #[prost(int64, tag = "12")]
    pub(super) period: i64,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct ValueType {
    #[prost(int64, tag = "1")]
    pub(super) r#type: i64,
    #[prost(int64, tag = "2")]
    pub(super) unit: i64,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Sample {
    #[prost(uint64, repeated, tag = "1")]
    pub(super) location_id: Vec<u64>,
    #[prost(int64, repeated, tag = "2")]
    pub(super) value: Vec<i64>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Mapping {
    #[prost(uint64, tag = "2")]
    pub(super) memory_start: u64,
    #[prost(uint64, tag = "3")]
    pub(super) memory_limit: u64,
    #[prost(uint64, tag = "4")]
    pub(super) file_offset: u64,
    #[prost(int64, tag = "5")]
    pub(super) filename: i64,
    #[prost(int64, tag = "6")]
    pub(super) build_id: i64,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Location {
    #[prost(uint64, tag = "2")]
    pub(super) mapping_id: u64,
    #[prost(uint64, tag = "3")]
    pub(super) address: u64,
    #[prost(message, repeated, tag = "4")]
    pub(super) line: Vec<Line>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Line {
    #[prost(uint64, tag = "1")]
    pub(super) function_id: u64,
    #[prost(int64, tag = "2")]
    pub(super) line: i64,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Function {
    #[prost(int64, tag = "2")]
    pub(super) name: i64,
    #[prost(int64, tag = "3")]
    pub(super) system_name: i64,
    #[prost(int64, tag = "4")]
    pub(super) filename: i64,
}

impl Profile {
    /// Reads a gzipped profile. Ids of mappings, locations and functions are their numbers from 1 on, as ours are.
    pub(super) fn read(gzipped: &[u8]) -> Result<Profile, String> {
        let mut bytes = Vec::new();
        let read = GzDecoder::new(gzipped)
            .take(LONGEST)
            .read_to_end(&mut bytes);
        read.map_err(|error| error.to_string())?;
        Profile::decode(&bytes[..]).map_err(|error| error.to_string())
    }

    /// Returns a text of the table; empty if there is none of that number.
    pub(super) fn text(&self, number: i64) -> &str {
        let at = usize::try_from(number).ok();
        at.and_then(|at| self.string_table.get(at))
            .map_or("", String::as_str)
    }
}
