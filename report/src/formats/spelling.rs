//! The spelling of frames and threads, the same in every format and text.

use std::borrow::Cow;

use crate::memray::in_one_line;
use crate::model::{Frame, FrameId, Report, ThreadId};

/// Name for the missing call stack of an allocation, as in memray.
pub(crate) const NO_STACK: &str = "<stack trace unavailable>";

/// Name for a function without a name.
pub(crate) const NO_NAME: &str = "???";

/// Returns the frame of `id`, or `None` if it does not belong to `report`.
pub(crate) fn frame(report: &Report, id: FrameId) -> Option<Frame> {
    report.frames.get(id.0 as usize).copied()
}

/// Returns a frame's function, never empty, in one line.
pub(crate) fn function(report: &Report, frame: Frame) -> Cow<'_, str> {
    match report.strings.get(frame.function) {
        "" => NO_NAME.into(),
        name => in_one_line(name),
    }
}

/// Returns a frame's file in one line, which may be empty.
pub(crate) fn file(report: &Report, frame: Frame) -> Cow<'_, str> {
    in_one_line(report.strings.get(frame.file))
}

/// Returns a frame as one name: the function, and with `lines` its file and line, if they are known.
pub(crate) fn label(report: &Report, frame: Frame, lines: bool) -> String {
    let function = function(report, frame);
    match (lines, &*file(report, frame), frame.line) {
        (false, ..) | (true, "", _) => function.into_owned(),
        (true, file, 0) => format!("{function} ({file})"),
        (true, file, line) => format!("{function} ({file}:{line})"),
    }
}

/// Returns a frame as `function:file:line`, as in memray.
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

/// Returns a thread for users: its name, or else its number.
pub(crate) fn thread(report: &Report, id: ThreadId) -> Cow<'_, str> {
    let Some(thread) = report.threads.get(id.0 as usize) else {
        return "unknown thread".into();
    };
    match report.strings.get(thread.name) {
        "" => format!("thread {}", thread.tid).into(),
        name => in_one_line(name),
    }
}
