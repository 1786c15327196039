//! A profile store: `pyroscope+https://profiles.example.com`.

#[cfg(feature = "push")]
use heapray_report::formats::pprof::MOST_SAMPLES;

use crate::config::address::{address, without_user};
use crate::config::values::Values;

/// What a profile store speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Protocol {
    /// `push.v1.PusherService/Push`.
    Pyroscope,
    /// `WriteRaw`.
    Parca,
    /// OpenTelemetry's profiles over HTTP.
    Otlp,
}

impl Protocol {
    const ALL: [Protocol; 3] = [Protocol::Pyroscope, Protocol::Parca, Protocol::Otlp];

    /// Returns the name in settings, files and metrics.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Protocol::Pyroscope => "pyroscope",
            Protocol::Parca => "parca",
            Protocol::Otlp => "otlp",
        }
    }

    /// Returns the most samples of a profile. OpenTelemetry's messages have a profile for each sample type. Pyroscope makes a whole
    /// one of each, with all names, and takes at most 4 MiB of them a second.
    #[cfg(feature = "push")]
    pub(crate) const fn most_samples(self) -> u32 {
        match self {
            Protocol::Pyroscope | Protocol::Parca => MOST_SAMPLES,
            Protocol::Otlp => MOST_SAMPLES / 4,
        }
    }

    /// Returns the variable that has the server's address where the setting has none.
    pub(super) const fn address_variable(self) -> Option<&'static str> {
        match self {
            Protocol::Pyroscope => Some("PYROSCOPE_SERVER_ADDRESS"),
            Protocol::Parca => None,
            Protocol::Otlp => Some("OTEL_EXPORTER_OTLP_ENDPOINT"),
        }
    }
}

/// A protocol, and the address of a server that speaks it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PushTarget {
    pub(crate) protocol: Protocol,
    /// Without a slash at its end; `None` if a variable of the protocol's own has it.
    pub(super) address: Option<String>,
}

/// Kind of setting: a profile store.
pub(crate) struct PushTargets;

impl Values for PushTargets {
    type Given = String;
    type Value = PushTarget;

    fn allowed(&self) -> String {
        "pyroscope, parca or otlp, then + and the address of the server without a user or a query, such as \
         pyroscope+https://profiles.example.com; or pyroscope alone where PYROSCOPE_SERVER_ADDRESS has the address, or otlp \
         alone where OTEL_EXPORTER_OTLP_ENDPOINT has it"
            .into()
    }

    fn bounds(&self) -> String {
        "`pyroscope+`, `parca+` or `otlp+`, and an address".into()
    }

    fn parse(&self, text: &str) -> Option<PushTarget> {
        let (name, url) = match text.trim().split_once('+') {
            Some((name, url)) => (name, Some(url)),
            None => (text.trim(), None),
        };
        let mut all = Protocol::ALL.into_iter();
        let protocol = all.find(|protocol| protocol.name().eq_ignore_ascii_case(name))?;
        let address = match url {
            Some(url) => Some(address(url)?),
            None => {
                protocol.address_variable()?;
                None
            }
        };
        Some(PushTarget { protocol, address })
    }

    fn accept(&self, given: String) -> Result<PushTarget, String> {
        self.parse(&given).ok_or_else(|| without_user(&given))
    }

    fn read(&self, raw: std::ffi::OsString) -> Result<PushTarget, String> {
        self.accept(raw.to_string_lossy().into_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::{Protocol, PushTargets, Values as _};

    #[test]
    fn a_protocol_and_an_address_are_a_target() {
        for (text, protocol, address) in [
            (
                "pyroscope+https://profiles.example.com/",
                Protocol::Pyroscope,
                Some("https://profiles.example.com"),
            ),
            (
                "Parca+http://[::1]:7070",
                Protocol::Parca,
                Some("http://[::1]:7070"),
            ),
            (
                " otlp+http://c:4318/a/b/ ",
                Protocol::Otlp,
                Some("http://c:4318/a/b"),
            ),
            ("pyroscope", Protocol::Pyroscope, None),
            ("otlp", Protocol::Otlp, None),
        ] {
            let target = PushTargets.parse(text).unwrap();
            assert_eq!(
                (target.protocol, target.address.as_deref()),
                (protocol, address)
            );
        }
        for bad in [
            "",
            "parca",
            "https://profiles.example.com",
            "pyroscope+ftp://h",
            "pyroscope+https://",
            "pyroscope+https://:4040",
            "pyroscope+https://h/a b",
            "pyroscope+https://h/?x=1",
            "jaeger+https://h",
        ] {
            assert!(PushTargets.parse(bad).is_none(), "{bad:?}");
        }
    }

    #[test]
    fn a_password_is_refused_and_not_shown() {
        let refused = PushTargets.read("pyroscope+https://me:hunter2@h".into());
        assert_eq!(refused.unwrap_err(), "pyroscope+https://(hidden)@h");
    }
}
