//! Labels of tasks, from the spans that tokio makes for them.

use std::fmt;

use tracing::Metadata;
use tracing::field::{Field, Visit};
use tracing::span::Attributes;

use super::table::LONGEST;

/// The key of a task's name.
const NAME: &str = "task";
/// The key of the place that spawned it: a file and a line.
const PLACE: &str = "spawned";

/// Fields of tokio's span of a task, `runtime.spawn`.
#[derive(Default)]
struct Task {
    name: String,
    file: String,
    line: u64,
}

/// Returns the labels of the task that a span is of; none if it is of no task.
pub(super) fn labels(span: &Attributes<'_>) -> Vec<(String, String)> {
    if !is_of_task(span.metadata()) {
        return Vec::new();
    }
    let mut task = Task::default();
    span.record(&mut task);
    let mut labels = Vec::new();
    if !task.name.is_empty() {
        labels.push((NAME.to_owned(), task.name));
    }
    if !task.file.is_empty() {
        labels.push((PLACE.to_owned(), place(&task.file, task.line)));
    }
    labels
}

fn is_of_task(span: &Metadata<'_>) -> bool {
    span.name() == "runtime.spawn" && span.target().starts_with("tokio::task")
}

/// Returns `file:line`, without the first folders of a long path.
fn place(file: &str, line: u64) -> String {
    let line = format!(":{line}");
    let mut short = file;
    while short.len() + line.len() > LONGEST {
        match short.split_once('/') {
            Some((_, rest)) => short = rest,
            None => break,
        }
    }
    format!("{short}{line}")
}

impl Visit for Task {
    fn record_str(&mut self, field: &Field, value: &str) {
        match field.name() {
            "task.name" => self.name = value.to_owned(),
            "loc.file" => self.file = value.to_owned(),
            _ => {}
        }
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        if field.name() == "loc.line" {
            self.line = value;
        }
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        if field.name() == "task.name" {
            self.name = format!("{value:?}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_path_is_cut_at_a_folder_and_keeps_its_line() {
        assert_eq!(place("src/main.rs", 7), "src/main.rs:7");
        let long = format!("/{}/crate-1.0/src/lib.rs", "x".repeat(LONGEST));
        assert_eq!(place(&long, 12), "crate-1.0/src/lib.rs:12");
    }
}
