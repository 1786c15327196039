//! How frames and threads are spelt, the same in every format and text.

use std::borrow::Cow;

use crate::memray::in_one_line;
use crate::model::{Frame, FrameId, Report, ThreadId};

/// Stands for the call stack of an allocation that has none; memray's words.
pub(crate) const NO_STACK: &str = "<stack trace unavailable>";

/// Stands for a function without a name.
pub(crate) const NO_NAME: &str = "???";

/// The frame of `id`; `None` if it is not of `report`.
pub(crate) fn frame(report: &Report, id: FrameId) -> Option<Frame> {
    report.frames.get(id.0 as usize).copied()
}

/// Its function, never empty, in one line.
pub(crate) fn function(report: &Report, frame: Frame) -> Cow<'_, str> {
    match report.strings.get(frame.function) {
        "" => NO_NAME.into(),
        name => in_one_line(name),
    }
}

/// Its file in one line; may be empty.
pub(crate) fn file(report: &Report, frame: Frame) -> Cow<'_, str> {
    in_one_line(report.strings.get(frame.file))
}

/// The frame as one name: the function, and with `lines` its place behind it, if that is known.
pub(crate) fn label(report: &Report, frame: Frame, lines: bool) -> String {
    let function = function(report, frame);
    match (lines, &*file(report, frame), frame.line) {
        (false, ..) | (true, "", _) => function.into_owned(),
        (true, file, 0) => format!("{function} ({file})"),
        (true, file, line) => format!("{function} ({file}:{line})"),
    }
}

/// The frame as memray names places: `function:file:line`.
pub(crate) fn location(report: &Report, frame: Option<Frame>) -> String {
    match frame {
        None => NO_STACK.into(),
        Some(frame) => format!(
            "{}:{}:{}",
            function(report, frame),
            file(report, frame),
            frame.line
        ),
    }
}

/// A thread for people: its name, else its number.
pub(crate) fn thread(report: &Report, id: ThreadId) -> Cow<'_, str> {
    let Some(thread) = report.threads.get(id.0 as usize) else {
        return "unknown thread".into();
    };
    match report.strings.get(thread.name) {
        "" => format!("thread {}", thread.tid).into(),
        name => in_one_line(name),
    }
}
