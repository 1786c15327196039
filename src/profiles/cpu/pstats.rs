//! The file that Python's `pstats` loads, and so snakeviz and gprof2dot: one dictionary in Python's `marshal` format.
//!
//! ```text
//! {(file, line, function): (cc, nc, tt, ct, {(file, line, function): (nc, cc, tt, ct)})}
//!
//! dictionary  '{' (key value)* '0'        tuple  '(' u32 count, items
//! text        'u' u32 bytes, UTF-8        float  'g' f64
//! integer     'i' i32, or 'l' i32 count of digits, u16 digits of 15 bits
//! ```
//! All little endian. `cc` and `nc` are calls in `cProfile`, and samples with the function on the stack here; `tt` and
//! `ct` are own and cumulative seconds. These types have been in every version of `marshal` since Python 2.5.

use std::fs;
use std::io;
use std::path::Path;

use super::table::seconds_of;
use super::{CpuTally, Function, Stats};
use crate::capture::untracked;

impl Stats {
    /// Writes the file that `python -m pstats`, snakeviz and gprof2dot open.
    ///
    /// # Errors
    /// The error of writing the file.
    pub fn dump(&self, path: impl AsRef<Path>) -> io::Result<()> {
        let _untracked = untracked::enter();
        fs::write(path, self.to_pstats())
    }

    /// Returns the bytes of that file.
    #[must_use]
    pub fn to_pstats(&self) -> Vec<u8> {
        let mut out = Marshal::default();
        out.kind(b'{');
        for function in self.functions() {
            out.key(function);
            out.tuple(5);
            out.calls(function.cumulative.samples);
            out.calls(function.cumulative.samples);
            out.times(function.own, function.cumulative);
            out.kind(b'{');
            for caller in &function.callers {
                out.key(&self.functions[caller.function]);
                out.tuple(4);
                out.calls(caller.cumulative.samples);
                out.calls(caller.cumulative.samples);
                out.times(caller.own, caller.cumulative);
            }
            out.kind(b'0');
        }
        out.kind(b'0');
        out.0
    }
}

/// Writer of values as CPython's `marshal.c` writes them, without references.
#[derive(Default)]
struct Marshal(Vec<u8>);

impl Marshal {
    fn kind(&mut self, kind: u8) {
        self.0.push(kind);
    }

    fn tuple(&mut self, items: u32) {
        self.kind(b'(');
        self.0.extend(items.to_le_bytes());
    }

    fn text(&mut self, text: &str) {
        self.kind(b'u');
        let length = i32::try_from(text.len()).unwrap_or(0);
        self.0.extend(length.to_le_bytes());
        self.0.extend(&text.as_bytes()[..length as usize]);
    }

    fn integer(&mut self, value: u64) {
        if let Ok(value) = i32::try_from(value) {
            self.kind(b'i');
            self.0.extend(value.to_le_bytes());
            return;
        }
        self.kind(b'l');
        let digits = (64 - value.leading_zeros()).div_ceil(15);
        self.0.extend(digits.to_le_bytes());
        for digit in 0..digits {
            let digit = (value >> (15 * digit)) as u16 & 0x7fff;
            self.0.extend(digit.to_le_bytes());
        }
    }

    fn float(&mut self, value: f64) {
        self.kind(b'g');
        self.0.extend(value.to_le_bytes());
    }

    fn calls(&mut self, samples: u64) {
        self.integer(samples);
    }

    fn times(&mut self, own: CpuTally, cumulative: CpuTally) {
        self.float(seconds_of(own.ns));
        self.float(seconds_of(cumulative.ns));
    }

    /// A function without a file is named as a built-in one.
    fn key(&mut self, function: &Function) {
        self.tuple(3);
        if function.file.is_empty() {
            self.text("~");
            self.integer(0);
            self.text(&format!("<{}>", function.name));
        } else {
            self.text(&function.file);
            self.integer(u64::from(function.line));
            self.text(&function.name);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::stats::tests::scripted;
    use super::*;

    #[test]
    fn a_function_and_its_caller_are_these_bytes() {
        let stats = scripted(&[("m:3;f:9", 2, 500)]);
        let key = |name: &str, line: u8| {
            let file = format!("/src/{name}.rs");
            let mut key = b"(\x03\0\0\0u".to_vec();
            key.extend([file.len() as u8, 0, 0, 0]);
            key.extend(file.as_bytes());
            key.extend([b'i', line, 0, 0, 0, b'u', 1, 0, 0, 0]);
            key.extend(name.as_bytes());
            key
        };
        let half = 0.5f64.to_le_bytes();
        let zero = 0f64.to_le_bytes();
        let two = b"i\x02\0\0\0".as_slice();
        let expected: Vec<u8> = [
            b"{".as_slice(),
            // Equal cumulative time: own time decides.
            &key("f", 9),
            b"(\x05\0\0\0",
            two,
            two,
            b"g",
            &half,
            b"g",
            &half,
            b"{",
            &key("m", 3),
            b"(\x04\0\0\0",
            two,
            two,
            b"g",
            &half,
            b"g",
            &half,
            b"0",
            &key("m", 3),
            b"(\x05\0\0\0",
            two,
            two,
            b"g",
            &zero,
            b"g",
            &half,
            b"{00",
        ]
        .concat();
        assert_eq!(stats.to_pstats(), expected);
    }

    #[test]
    fn large_counts_are_long_integers() {
        let mut out = Marshal::default();
        out.integer(i32::MAX as u64);
        out.integer(1 << 31);
        out.integer(u64::MAX);
        assert_eq!(
            out.0,
            [
                b"i\xff\xff\xff\x7f".as_slice(),
                b"l\x03\0\0\0\0\0\0\0\x02\0",
                b"l\x05\0\0\0\xff\x7f\xff\x7f\xff\x7f\xff\x7f\x0f\0",
            ]
            .concat()
        );
    }
}
