//! The hash of the collector's tables: fast, and good enough for addresses and small numbers. Keys come from the profiled
//! program, not from its users, so the hash need not withstand an attacker.

use std::hash::{BuildHasherDefault, Hasher};

const ODD: u64 = 0x9E37_79B9_7F4A_7C15;

/// Spreads `key` over all 64 bits. Two keys never have the same result.
#[inline]
pub(super) fn mix(key: u64) -> u64 {
    let spread = key.wrapping_mul(ODD);
    (spread ^ (spread >> 32)).wrapping_mul(ODD)
}

/// Standard map with this hash.
pub(crate) type Map<K, V> = std::collections::HashMap<K, V, BuildHasherDefault<MixHasher>>;

/// Hasher with [`mix`] for the standard maps.
#[derive(Debug, Default, Clone)]
pub(crate) struct MixHasher(u64);

impl Hasher for MixHasher {
    fn finish(&self) -> u64 {
        // The standard map takes its bucket from the low bits and its fingerprint from the high ones.
        self.0 ^ (self.0 >> 32)
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u64(u64::from(byte));
        }
    }

    fn write_u32(&mut self, value: u32) {
        self.write_u64(u64::from(value));
    }

    fn write_u64(&mut self, value: u64) {
        self.0 = mix(self.0 ^ value);
    }
}
