//! Names of objects: the service, the day, the report.
//!
//! ```text
//! shop/2026-11-24/1795252380250-shop-7f9c-0123456789abcdef.bin     the report
//! shop/2026-11-24/1795252380250-shop-7f9c-0123456789abcdef.json    what a list shows of it; put after it
//! ```
//!
//! The name of a report is the same wherever it is put from: by the process that made it, or by the next one. So a second try
//! replaces the object, and makes no other one.

use std::time::SystemTime;

use crate::os::calendar::rfc3339;

/// Most characters of a service's or a host's name.
const LONGEST: usize = 80;

/// The name of a report's object, without its ending.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ObjectName {
    pub(super) service: String,
    pub(super) day: String,
    pub(super) stem: String,
}

impl ObjectName {
    /// Returns the name of a report with the number `id`, of a process with the number `life` on `host` (empty if that is not
    /// known), whose session began at `started`.
    pub(crate) fn of(
        service: &str,
        id: &str,
        host: &str,
        life: u64,
        started: SystemTime,
    ) -> ObjectName {
        let host = plain(host);
        let host = if host.is_empty() { host } else { host + "-" };
        let time = rfc3339(started);
        ObjectName {
            service: plain(service),
            day: time.split('T').next().unwrap_or_default().to_owned(),
            stem: format!("{id}-{host}{life:016x}"),
        }
    }
}

/// Returns a name as a part of an address that needs no quotes.
fn plain(name: &str) -> String {
    let plain = |c: char| {
        if c.is_ascii_alphanumeric() || "._-".contains(c) {
            c
        } else {
            '_'
        }
    };
    name.chars().take(LONGEST).map(plain).collect()
}

#[cfg(test)]
mod tests {
    use super::ObjectName;
    use std::time::{Duration, SystemTime};

    #[test]
    fn an_object_is_named_by_service_day_number_and_process() {
        let started = SystemTime::UNIX_EPOCH + Duration::from_millis(1_795_252_380_250);
        let name = ObjectName::of("my shop", "1795252380250", "a/b..c", 0xabc, started);
        assert_eq!(
            (name.service.as_str(), name.day.as_str()),
            ("my_shop", "2026-11-21")
        );
        assert_eq!(name.stem, "1795252380250-a_b..c-0000000000000abc");
        let unknown = ObjectName::of("shop", "7", "", 0, started);
        assert_eq!(unknown.stem, "7-0000000000000000");
    }
}
