//! Labels of a series, as Prometheus has them: what tells the profiles of one process from those of another.

use crate::push::profile::Head;

/// Limits of Pyroscope: labels, and bytes of a value.
const MOST: usize = 30;
const LONGEST_VALUE: usize = 2048;

/// Returns the labels of a profile's process, in the order of their importance, and no name twice. `service` is the name of the
/// service's own label.
pub(super) fn labels(head: &Head, service: &str) -> Vec<(String, String)> {
    let identity = &head.identity;
    let mut labels: Vec<(String, String)> = Vec::new();
    let own = [
        ("__name__", "memory".to_owned()),
        (service, identity.service.clone()),
        ("hostname", identity.host.clone()),
    ];
    let given = identity.labels.iter();
    let given = given.map(|(name, value)| (plain(name), value.clone()));
    let own = own
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value));
    for (name, value) in own.chain(given) {
        let is_new = labels.iter().all(|(had, _)| *had != name);
        if is_new && !name.is_empty() && !value.is_empty() && labels.len() < MOST - 3 {
            labels.push((name, shortened(value)));
        }
    }
    labels
}

/// Returns a name of letters, digits and underscores. Two underscores at its beginning would be the server's.
fn plain(name: &str) -> String {
    let plain = |c: char| {
        if c.is_ascii_alphanumeric() { c } else { '_' }
    };
    let name: String = name.chars().take(LONGEST_VALUE / 2).map(plain).collect();
    let name = name.trim_start_matches('_');
    match name.chars().next() {
        Some('0'..='9') => format!("_{name}"),
        _ => name.to_owned(),
    }
}

fn shortened(value: String) -> String {
    if value.len() <= LONGEST_VALUE {
        return value;
    }
    // A character has up to four bytes.
    value.chars().take(LONGEST_VALUE / 4).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::push::profile::tests::profile;

    #[test]
    fn names_are_those_that_a_server_takes() {
        let mut head = profile().head;
        head.identity.labels = [
            ("service.version", "1.2"),
            ("__delta__", "x"),
            ("hostname", "other"),
            ("1st", "a"),
            ("empty", ""),
            ("..", "x"),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .into();
        let found = labels(&head, "service_name");
        let expected = [
            ("__name__", "memory"),
            ("service_name", "shop"),
            ("hostname", "machine"),
            ("service_version", "1.2"),
            ("delta__", "x"),
            ("_1st", "a"),
        ];
        assert_eq!(found, expected.map(|(a, b)| (a.into(), b.into())));
    }

    #[test]
    fn there_are_as_many_labels_as_a_server_takes_and_as_long_ones() {
        let mut head = profile().head;
        head.identity.labels = (0..50)
            .map(|number| (format!("l{number}"), "ä".repeat(3000)))
            .collect();
        let found = labels(&head, "service_name");
        assert_eq!(found.len(), MOST - 3);
        assert!(found.iter().all(|(_, value)| value.len() <= LONGEST_VALUE));
    }
}
