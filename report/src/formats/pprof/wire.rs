//! Protobuf's encoding (<https://protobuf.dev/programming-guides/encoding/>), as much of it as a profile needs. A field
//! with its default value is left out, as proto3 has it.
//!
//! It is short enough to have here: prost writes the same bytes, but a service would build five more crates.

use crate::varint::encode;

/// A message that can be a part of another one.
pub(super) trait Part {
    /// Appends the fields to `to`.
    fn put(&self, to: &mut Vec<u8>);
}

const VARINT: u64 = 0;
const LENGTH_DELIMITED: u64 = 2;

/// Appends a field of type `uint64`.
pub(super) fn unsigned(field: u64, value: u64, to: &mut Vec<u8>) {
    if value != 0 {
        varint(field << 3 | VARINT, to);
        varint(value, to);
    }
}

/// Appends a field of type `int64`. A negative number takes ten bytes.
pub(super) fn signed(field: u64, value: i64, to: &mut Vec<u8>) {
    unsigned(field, value.cast_unsigned(), to);
}

/// Appends a field of type `bool`.
pub(super) fn truth(field: u64, value: bool, to: &mut Vec<u8>) {
    unsigned(field, value.into(), to);
}

/// Appends a field of type `repeated uint64`, packed.
pub(super) fn packed(field: u64, values: &[u64], to: &mut Vec<u8>) {
    pack(field, values.iter().copied(), to);
}

/// Appends a field of type `repeated int64`, packed.
pub(super) fn packed_signed(field: u64, values: &[i64], to: &mut Vec<u8>) {
    pack(field, values.iter().map(|value| value.cast_unsigned()), to);
}

fn pack(field: u64, values: impl ExactSizeIterator<Item = u64>, to: &mut Vec<u8>) {
    if values.len() > 0 {
        delimited(field, to, |to| values.for_each(|value| varint(value, to)));
    }
}

/// Appends a field of type `repeated string`: empty ones count.
pub(super) fn texts(field: u64, texts: &[String], to: &mut Vec<u8>) {
    for text in texts {
        delimited(field, to, |to| to.extend_from_slice(text.as_bytes()));
    }
}

/// Appends a field of a repeated message.
pub(super) fn parts<'p, P: Part + 'p>(
    field: u64,
    parts: impl IntoIterator<Item = &'p P>,
    to: &mut Vec<u8>,
) {
    for part in parts {
        delimited(field, to, |to| part.put(to));
    }
}

/// Appends a field whose content `put` appends: its length goes before it.
fn delimited(field: u64, to: &mut Vec<u8>, put: impl FnOnce(&mut Vec<u8>)) {
    varint(field << 3 | LENGTH_DELIMITED, to);
    let start = to.len();
    put(to);
    let end = to.len();
    varint((end - start) as u64, to);
    let length_bytes = to.len() - end;
    to[start..].rotate_right(length_bytes);
}

fn varint(value: u64, to: &mut Vec<u8>) {
    encode(value, |byte| to.push(byte));
}
