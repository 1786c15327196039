//! A profile store with everything that a push needs: the address, the credentials, and the names of this process there.
//!
//! The variables are those that users of the stores' own libraries know.

use std::fmt;

use super::target::{Protocol, PushTarget};
use crate::config::address::address;
use crate::config::service::{Names, decoded, pairs, service};

/// A profile store, and what this process is called there.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(not(feature = "push"), allow(dead_code))] // read by what pushes
pub(crate) struct Destination {
    pub(crate) protocol: Protocol,
    /// Without a slash at its end.
    pub(crate) address: String,
    pub(crate) credentials: Credentials,
    /// `None` if nobody has named the service.
    pub(crate) service: Option<String>,
    /// Further names and values, in the order of the variables; no name twice.
    pub(crate) labels: Vec<(String, String)>,
}

/// What a server asks for besides a profile. Never shown.
#[derive(Clone, Default, PartialEq, Eq)]
#[cfg_attr(not(feature = "push"), allow(dead_code))]
pub(crate) struct Credentials {
    /// User and password.
    pub(crate) basic: Option<(String, String)>,
    /// Further headers, such as a tenant's.
    pub(crate) headers: Vec<(String, String)>,
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Credentials(hidden)")
    }
}

impl Destination {
    /// Returns the destination that `target` and the variables say. `variable` returns a variable that is not empty.
    /// `job` is the configured name and version, each empty if there is none.
    ///
    /// # Errors
    ///
    /// The variable without a usable value.
    pub(crate) fn of(
        target: &PushTarget,
        job: [&str; 2],
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Destination, (&'static str, String)> {
        let protocol = target.protocol;
        let address = match &target.address {
            Some(address) => address.clone(),
            None => {
                let name = protocol.address_variable().unwrap_or_default();
                let given = variable(name).unwrap_or_default();
                address(&given).ok_or((name, given))?
            }
        };
        let mut labels: Vec<(String, String)> = Vec::new();
        let mut add = |name: &str, value: String| {
            if !name.is_empty() && !value.is_empty() && labels.iter().all(|(had, _)| had != name) {
                labels.push((name.to_owned(), value));
            }
        };
        let listed = |name| pairs(&variable(name).unwrap_or_default());
        for (name, value) in listed("PYROSCOPE_LABELS") {
            add(&name, value);
        }
        for (name, value) in listed("OTEL_RESOURCE_ATTRIBUTES") {
            if name != "service.name" {
                add(&name, decoded(&value));
            }
        }
        add("service.version", job[1].to_owned());
        let order = match protocol {
            Protocol::Otlp => [Names::OpenTelemetry, Names::Pyroscope],
            _ => [Names::Pyroscope, Names::OpenTelemetry],
        };
        let service = service(order, job[0], &variable);
        Ok(Destination {
            protocol,
            address,
            credentials: credentials(protocol, &variable),
            service,
            labels,
        })
    }
}

fn credentials(protocol: Protocol, variable: impl Fn(&str) -> Option<String>) -> Credentials {
    match protocol {
        Protocol::Pyroscope => Credentials {
            basic: variable("PYROSCOPE_BASIC_AUTH_USER").map(|user| {
                let password = variable("PYROSCOPE_BASIC_AUTH_PASSWORD");
                (user, password.unwrap_or_default())
            }),
            headers: variable("PYROSCOPE_TENANT_ID")
                .map(|tenant| ("X-Scope-OrgID".to_owned(), tenant))
                .into_iter()
                .collect(),
        },
        Protocol::Otlp => Credentials {
            basic: None,
            headers: pairs(&variable("OTEL_EXPORTER_OTLP_HEADERS").unwrap_or_default())
                .into_iter()
                .map(|(name, value)| (name, decoded(&value)))
                .collect(),
        },
        Protocol::Parca => Credentials::default(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::target::PushTargets;
    use super::*;
    use crate::config::values::Values as _;

    fn of(
        target: &str,
        job: [&str; 2],
        variables: &[(&str, &str)],
    ) -> Result<Destination, (&'static str, String)> {
        Destination::of(&PushTargets.parse(target).unwrap(), job, |name| {
            let found = variables.iter().find(|(variable, _)| *variable == name);
            found.map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn the_names_that_users_of_pyroscope_know_are_honoured() {
        let found = of(
            "pyroscope",
            ["job", "1.2"],
            &[
                ("PYROSCOPE_SERVER_ADDRESS", "https://p.example/"),
                ("PYROSCOPE_APPLICATION_NAME", "shop"),
                ("PYROSCOPE_BASIC_AUTH_USER", "me"),
                ("PYROSCOPE_BASIC_AUTH_PASSWORD", "hunter2"),
                ("PYROSCOPE_TENANT_ID", "acme"),
                ("PYROSCOPE_LABELS", "region=eu, zone=a,odd,=x"),
                ("OTEL_SERVICE_NAME", "other"),
            ],
        );
        let found = found.unwrap();
        assert_eq!(found.address, "https://p.example");
        assert_eq!(found.service.as_deref(), Some("shop"));
        let labels = [("region", "eu"), ("zone", "a"), ("service.version", "1.2")];
        assert_eq!(found.labels, labels.map(|(a, b)| (a.into(), b.into())));
        assert_eq!(
            found.credentials.basic,
            Some(("me".into(), "hunter2".into()))
        );
        assert_eq!(
            found.credentials.headers,
            [("X-Scope-OrgID".into(), "acme".into())]
        );
        assert!(!format!("{found:?}").contains("hunter2"));
    }

    #[test]
    fn the_names_that_users_of_opentelemetry_know_are_honoured() {
        let found = of(
            "otlp",
            ["job", ""],
            &[
                ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector:4318"),
                (
                    "OTEL_EXPORTER_OTLP_HEADERS",
                    "authorization=Basic%20eA%3D%3D",
                ),
                (
                    "OTEL_RESOURCE_ATTRIBUTES",
                    "service.name=my%20shop,deployment.environment=a%",
                ),
                ("PYROSCOPE_APPLICATION_NAME", "other"),
            ],
        );
        let found = found.unwrap();
        assert_eq!(found.service.as_deref(), Some("my shop"));
        assert_eq!(
            found.labels,
            [("deployment.environment".into(), "a%".into())]
        );
        assert_eq!(
            found.credentials.headers,
            [("authorization".into(), "Basic eA==".into())]
        );
    }

    #[test]
    fn without_an_address_the_variable_is_named() {
        let missing = of("pyroscope", ["", ""], &[]);
        assert_eq!(
            missing.unwrap_err(),
            ("PYROSCOPE_SERVER_ADDRESS", String::new())
        );
        let bad = of("otlp", ["", ""], &[("OTEL_EXPORTER_OTLP_ENDPOINT", "c")]);
        assert_eq!(
            bad.unwrap_err(),
            ("OTEL_EXPORTER_OTLP_ENDPOINT", "c".into())
        );
        let plain = of("parca+http://p", ["job", ""], &[]).unwrap();
        assert_eq!(plain.service.as_deref(), Some("job"));
    }
}
