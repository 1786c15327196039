//! The declarations of an attribute: the function, its options, and the markers that its body calls.

use std::sync::Mutex;

use super::calls::{self, Ended};
use super::future::Profiled;
use super::sums::Sums;

/// Source of a function.
#[derive(Debug, Clone, Copy)]
pub struct Source {
    /// File, as the compiler names it.
    pub file: &'static str,
    /// Name, with the module's.
    pub path: &'static str,
    /// Name.
    pub name: &'static str,
    /// Line of the attribute.
    pub first_line: u32,
    /// Number of lines.
    pub lines: u32,
    /// Text of the lines.
    pub text: &'static str,
}

/// Figure that is read at each line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Metric {
    /// The process's resident memory.
    Rss,
    /// Memory that the call allocated and has not freed.
    Heap,
}

/// Meaning of an increment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Semantics {
    /// The difference to the reading before.
    Readings,
    /// The difference to the highest reading of the line before.
    MemoryProfiler,
}

/// Format of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// The table of memory_profiler.
    MemoryProfiler,
    /// The table with PyCOMPSs' additions.
    Pycompss,
}

/// Unit of the figures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// 2^20 bytes.
    Mebibytes,
    /// 2^10 bytes.
    Kibibytes,
    /// Bytes.
    Bytes,
}

/// Arguments of the attribute.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// See [`Metric`].
    pub metric: Metric,
    /// See [`Semantics`].
    pub semantics: Semantics,
    /// See [`Format`].
    pub format: Format,
    /// See [`Unit`].
    pub unit: Unit,
    /// Decimals.
    pub precision: u8,
    /// Set for the table, instead of one line.
    pub full_report: bool,
    /// Set to report all calls together, when the process ends.
    pub sum: bool,
    /// Set to report what is live at the end, by call site.
    pub held: bool,
}

/// Profiled function: one `static` in its body.
#[derive(Debug)]
pub struct Function {
    pub(super) source: Source,
    pub(super) options: Options,
    pub(super) sums: Mutex<Sums>,
}

impl Function {
    /// Declares a function.
    #[must_use]
    pub const fn new(source: Source, options: Options) -> Function {
        Function {
            source,
            options,
            sums: Mutex::new(Sums::new()),
        }
    }

    /// Begins a call, which ends when the guard is dropped.
    pub fn enter(&'static self) -> Call {
        Call {
            begun: calls::begin(self),
        }
    }

    /// Notes that control comes to `line`. Does nothing on a thread without a running call of the function.
    #[inline]
    pub fn line(&'static self, line: u32) {
        calls::line(self, line);
    }

    /// Returns a guard whose drop notes that control comes to `line`.
    #[inline]
    pub fn at_end(&'static self, line: u32) -> AtEnd {
        AtEnd {
            function: self,
            line,
        }
    }

    /// Returns a guard whose drop notes that control comes back to `head`, if it was on line `close` until then.
    #[inline]
    pub fn turn(&'static self, head: u32, close: u32) -> Turn {
        Turn {
            function: self,
            head,
            close,
        }
    }

    /// Notes that control comes to `line`. The drop of the guard notes that control is back on the line before.
    #[inline]
    pub fn nested(&'static self, line: u32) -> Nested {
        let before = calls::current(self);
        calls::line(self, line);
        Nested {
            function: self,
            before,
        }
    }

    /// Makes `future` the body of a call.
    pub fn future<F: Future>(&'static self, future: F) -> Profiled<F> {
        Profiled::new(self, future)
    }
}

/// Running call.
#[derive(Debug)]
#[must_use = "the call ends when this is dropped"]
pub struct Call {
    begun: bool,
}

impl Drop for Call {
    fn drop(&mut self) {
        if self.begun {
            calls::end(Ended::Returned);
        }
    }
}

/// Guard of [`Function::at_end`].
#[derive(Debug)]
#[must_use = "the line is noted when this is dropped"]
pub struct AtEnd {
    function: &'static Function,
    line: u32,
}

impl Drop for AtEnd {
    #[inline]
    fn drop(&mut self) {
        if !std::thread::panicking() {
            calls::line(self.function, self.line);
        }
    }
}

/// Guard of [`Function::turn`].
#[derive(Debug)]
#[must_use = "the line is noted when this is dropped"]
pub struct Turn {
    function: &'static Function,
    head: u32,
    close: u32,
}

impl Drop for Turn {
    #[inline]
    fn drop(&mut self) {
        if calls::current(self.function) == Some(self.close) && !std::thread::panicking() {
            calls::line(self.function, self.head);
        }
    }
}

/// Guard of [`Function::nested`].
#[derive(Debug)]
#[must_use = "the line is noted when this is dropped"]
pub struct Nested {
    function: &'static Function,
    before: Option<u32>,
}

impl Drop for Nested {
    #[inline]
    fn drop(&mut self) {
        if let Some(line) = self.before
            && !std::thread::panicking()
        {
            calls::line(self.function, line);
        }
    }
}
