//! A profile with what a server must know of it, as bytes that can wait in a file.
//!
//! ```text
//! {"version":1,"taken_ms":…,"identity":{…}}\n     one line of JSON
//! …                                               the profile: pprof, gzipped
//! ```

use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};

use super::identity::Identity;

/// Version of the head's format. A file of another version is dropped.
const VERSION: u32 = 1;

/// A profile. Its `alloc_*` are what was allocated since the profile before it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PushedProfile {
    pub(super) head: Head,
    /// pprof, gzipped.
    pub(super) pprof: Vec<u8>,
}

/// What a server must know of a profile.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Head {
    version: u32,
    /// The moment that it shows, in milliseconds since the Unix epoch.
    pub(super) taken_ms: u64,
    /// The time in which its `alloc_*` were allocated, up to that moment.
    pub(super) interval_ms: u64,
    /// A number of its own: a server that gets it twice can know it.
    pub(super) id: u128,
    pub(super) identity: Identity,
}

impl PushedProfile {
    /// Returns a profile of the moment `taken`, with what was allocated in the `interval` before it.
    pub(crate) fn new(
        pprof: Vec<u8>,
        taken: SystemTime,
        interval: Duration,
        identity: Identity,
    ) -> PushedProfile {
        let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        let taken = taken.duration_since(SystemTime::UNIX_EPOCH);
        let unique = || u128::from(crate::os::unique::unique());
        PushedProfile {
            head: Head {
                version: VERSION,
                taken_ms: millis(taken.unwrap_or_default()),
                interval_ms: millis(interval),
                id: unique() << 64 | unique(),
                identity,
            },
            pprof,
        }
    }

    /// Returns the bytes that [`from_bytes`](Self::from_bytes) reads.
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = serde_json::to_vec(&self.head).unwrap_or_default();
        bytes.push(b'\n');
        bytes.extend_from_slice(&self.pprof);
        bytes
    }

    /// Returns the profile; `None` if the bytes are not one of this version.
    pub(super) fn from_bytes(bytes: &[u8]) -> Option<PushedProfile> {
        let end = bytes.iter().position(|&byte| byte == b'\n')?;
        let head: Head = serde_json::from_slice(&bytes[..end]).ok()?;
        (head.version == VERSION).then(|| PushedProfile {
            head,
            pprof: bytes[end + 1..].to_vec(),
        })
    }
}

impl Head {
    /// Returns the number as a random UUID (RFC 9562, version 4).
    pub(super) fn uuid(&self) -> String {
        let id = self.id & !(0xf << 76 | 0x3 << 62) | 0x4 << 76 | 0x2 << 62;
        let hex = format!("{id:032x}");
        let parts = [
            &hex[..8],
            &hex[8..12],
            &hex[12..16],
            &hex[16..20],
            &hex[20..],
        ];
        parts.join("-")
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A profile of a made-up process, with one sample.
    pub(in super::super) fn profile() -> PushedProfile {
        let identity = Identity {
            service: "shop".into(),
            host: "machine".into(),
            pid: 4711,
            life: 0xab,
            labels: vec![("service.version".into(), "1.2".into())],
        };
        let taken = SystemTime::UNIX_EPOCH + Duration::from_millis(1_795_000_000_123);
        PushedProfile::new(
            vec![1, 2, 3, b'\n', 4],
            taken,
            Duration::from_secs(15),
            identity,
        )
    }

    #[test]
    fn a_profile_is_read_as_it_was_written_and_other_bytes_are_not_one() {
        let profile = profile();
        let bytes = profile.to_bytes();
        assert_eq!(PushedProfile::from_bytes(&bytes), Some(profile));
        for other in [&b""[..], b"{}\n", b"\n\n", &bytes[..20]] {
            assert_eq!(PushedProfile::from_bytes(other), None);
        }
        let text = String::from_utf8_lossy(&bytes).replace("\"version\":1", "\"version\":2");
        assert_eq!(PushedProfile::from_bytes(text.as_bytes()), None);
    }

    #[test]
    fn the_number_is_a_uuid_of_the_random_kind() {
        let uuid = profile().head.uuid();
        assert_eq!(uuid.len(), 36);
        assert_eq!(&uuid[14..15], "4");
        assert!("89ab".contains(&uuid[19..20]), "{uuid}");
    }
}
