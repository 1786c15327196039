//! The replica that a thread of a merged report belongs to. It is the beginning of the thread's name, so that tools which know
//! nothing of replicas keep them apart too.

use crate::Report;

/// Makes `report` that of the replica `name`: each thread's name and each mark begins with it.
pub fn of_replica(report: &mut Report, name: &str) {
    let labelled = |of: &str| match of {
        "" => name.to_owned(),
        of => format!("{name}/{of}"),
    };
    for thread in &mut report.threads {
        let named = labelled(report.strings.get(thread.name));
        thread.name = report.strings.intern(&named);
    }
    for mark in &mut report.marks {
        mark.name = labelled(&mark.name);
    }
    report.about.replicas = vec![name.to_owned()];
}

/// Returns the replica in the name of a thread, and the name of the thread itself. `None` if the report is not of replicas,
/// or the thread of none of them.
#[must_use]
pub fn replica_of<'a>(report: &Report, thread: &'a str) -> Option<(&'a str, &'a str)> {
    let replicas = &report.about.replicas;
    let is_one = |name: &str| {
        let found = replicas.binary_search_by(|known| known.as_str().cmp(name));
        found.is_ok()
    };
    if replicas.is_empty() {
        return None;
    }
    if is_one(thread) {
        return Some((thread, ""));
    }
    // The longest, since a name of a replica may have a slash.
    let splits = thread.rmatch_indices('/');
    let mut splits = splits.map(|(at, _)| (&thread[..at], &thread[at + 1..]));
    splits.find(|(replica, _)| is_one(replica))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Mark, Thread};

    #[test]
    fn a_replica_is_found_in_the_name_that_it_was_put_in() {
        let mut report = Report::default();
        for name in ["", "main", "a/b"] {
            let name = report.strings.intern(name);
            report.threads.push(Thread {
                tid: 1,
                name,
                threads: 1,
            });
        }
        report.marks.push(Mark {
            name: "deploy".into(),
            ..Mark::default()
        });
        of_replica(&mut report, "host:7/r/1");
        let names = report.threads.iter();
        let names = names.map(|thread| report.strings.get(thread.name));
        let found: Vec<_> = names.map(|name| replica_of(&report, name)).collect();
        let expected = ["", "main", "a/b"].map(|name| Some(("host:7/r/1", name)));
        assert_eq!(found, expected);
        assert_eq!(report.marks[0].name, "host:7/r/1/deploy");
        assert_eq!(replica_of(&report, "host:7/r/10/main"), None);
        assert_eq!(replica_of(&Report::default(), "main"), None);
    }
}
