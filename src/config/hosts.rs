//! The host names under which clients may call the profiler.
//!
//! A page of a stranger can point its own name to this machine (DNS rebinding) and then call the profiler from a visitor's
//! browser as if it were its own server. But the browser still sends the stranger's name in `Host`, which reveals the
//! attack. Names that no stranger can own are allowed without being listed.

use std::net::{Ipv4Addr, Ipv6Addr};

use super::values::{Values, entries};

/// Configured names: `profiler.example.com`, `*.example.com` for all below, `*` for any.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Hosts {
    names: Vec<String>,
}

/// Kind of setting: a list of host names.
pub(crate) struct HostNames;

impl Values for HostNames {
    type Given = Vec<String>;
    type Value = Hosts;

    fn allowed(&self) -> String {
        "names of hosts without a port, separated by commas, such as profiler.example.com or *.example.com; * for any"
            .into()
    }

    fn bounds(&self) -> String {
        "names without a port, separated by commas".into()
    }

    fn parse(&self, text: &str) -> Option<Hosts> {
        Hosts::parse(text)
    }

    fn accept(&self, given: Vec<String>) -> Result<Hosts, String> {
        let text = given.join(",");
        self.parse(&text).ok_or(text)
    }
}

/// Endings that the public name service never resolves: of this machine, of a private network, of Kubernetes.
const PRIVATE: [&str; 4] = ["localhost", "internal", "svc", "cluster.local"];

impl Hosts {
    /// Parses a list. Returns `None` if one of its entries is not a name.
    pub(crate) fn parse(text: &str) -> Option<Hosts> {
        let names = entries(text).map(|name| {
            let body = name.strip_prefix("*.").unwrap_or(name);
            (name == "*" || is_name(body) || is_address(body)).then(|| name.to_ascii_lowercase())
        });
        Some(Hosts {
            names: names.collect::<Option<_>>()?,
        })
    }

    /// Returns whether `authority`, as a request has it (with or without a port), is configured or cannot belong to a
    /// stranger: an address, a name without a dot, or a name that ends in `.localhost`, `.internal`, `.svc` or
    /// `.cluster.local`.
    #[must_use]
    pub fn admit(&self, authority: &str) -> bool {
        let Some(host) = without_port(authority) else {
            return self.names.iter().any(|name| name == "*");
        };
        if is_address(host) || !host.contains('.') {
            return true;
        }
        let below = |parent: &str| {
            let rest = strip_suffix(host, parent);
            rest.is_some_and(|rest| rest.len() > 1 && rest.ends_with('.'))
        };
        let listed = |name: &String| match name.strip_prefix("*.") {
            Some(parent) => below(parent),
            None => name == "*" || name.eq_ignore_ascii_case(host),
        };
        PRIVATE.iter().any(|ending| below(ending)) || self.names.iter().any(listed)
    }
}

/// Returns the host of `name:port`, `name` or `[address]:port`, without a dot at its end, which changes nothing. Returns
/// `None` if `authority` is not a host.
fn without_port(authority: &str) -> Option<&str> {
    let (host, port) = match authority.strip_prefix('[') {
        Some(rest) => {
            let end = rest.find(']')?;
            (&authority[..end + 2], &rest[end + 1..])
        }
        None => authority.split_at(authority.find(':').unwrap_or(authority.len())),
    };
    let port = port.strip_prefix(':').unwrap_or(port);
    let host = host.strip_suffix('.').unwrap_or(host);
    let whole = port.bytes().all(|b| b.is_ascii_digit()) && (is_name(host) || is_address(host));
    whole.then_some(host)
}

fn is_address(host: &str) -> bool {
    let bare = host.strip_prefix('[').and_then(|h| h.strip_suffix(']'));
    match bare {
        Some(six) => six.parse::<Ipv6Addr>().is_ok(),
        None => host.parse::<Ipv4Addr>().is_ok(),
    }
}

fn is_name(text: &str) -> bool {
    let legal = |b: u8| b.is_ascii_alphanumeric() || b"-_".contains(&b);
    text.split('.')
        .all(|label| !label.is_empty() && label.bytes().all(legal))
}

fn strip_suffix<'h>(host: &'h str, ending: &str) -> Option<&'h str> {
    let (rest, tail) = host.split_at_checked(host.len().checked_sub(ending.len())?)?;
    tail.eq_ignore_ascii_case(ending).then_some(rest)
}

#[cfg(test)]
mod tests {
    use super::Hosts;

    #[test]
    fn what_no_stranger_can_own_is_good_without_being_listed() {
        let none = Hosts::default();
        for good in [
            "localhost",
            "LOCALHOST:7000",
            "a.localhost:7000",
            "127.0.0.1",
            "127.0.0.1:7000",
            "10.1.2.3:80",
            "[::1]",
            "[::1]:7000",
            "[fe80::1]:7000",
            "memory-leak",
            "memory-leak:7000",
            "memory_leak:7000",
            "memory-leak.default.svc",
            "memory-leak.default.svc.cluster.local:7000",
            "a.b.cluster.local.",
            "vm.internal",
            "localhost.",
        ] {
            assert!(none.admit(good), "{good:?}");
        }
        for bad in [
            "evil.example",
            "evil.example:7000",
            "evil.example.",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
            "127.0.0.1.nip.io:7000",
            "notlocalhost.evil",
            "xlocalhost.com",
            "evil.example:80:80",
            "1.2.3",
            "::1",
            "[::1",
            "[evil.example]",
            "a b",
            "a@evil.example",
            "",
            ":7000",
            ".",
            "..",
            "evil.example/",
            "localhost:x",
            ".localhost",
            "ü.example",
            "evil.local",
            "0x7f.1.2.3.4",
        ] {
            assert!(!none.admit(bad), "{bad:?}");
        }
    }

    #[test]
    fn listed_names_are_good_with_any_port() {
        let hosts = Hosts::parse("Profiler.example.com, *.corp.example,").unwrap();
        for good in [
            "profiler.example.com",
            "PROFILER.example.com:7000",
            "a.corp.example",
            "a.b.corp.example:1",
            "localhost",
        ] {
            assert!(hosts.admit(good), "{good:?}");
        }
        for bad in [
            "example.com",
            "x.profiler.example.com",
            "corp.example",
            "xcorp.example",
            ".corp.example",
            "evil.example",
        ] {
            assert!(!hosts.admit(bad), "{bad:?}");
        }
        let any = Hosts::parse("*").unwrap();
        assert!(any.admit("evil.example") && any.admit("") && any.admit("a b"));
        assert_eq!(Hosts::parse("").unwrap(), Hosts::default());
    }

    #[test]
    fn what_is_not_a_name_is_refused() {
        for text in [
            "a:80", "http://a", "*a", "a.*", "a b", "*.", "a..b", "a/", "**", "*.*",
        ] {
            assert_eq!(Hosts::parse(text), None, "{text:?}");
        }
    }
}
