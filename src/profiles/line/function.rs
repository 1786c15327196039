//! What an attribute declares: the function, how to measure it, and the markers that its body calls.

use std::sync::Mutex;

use super::calls::{self, Ended};
use super::future::Profiled;
use super::sums::Sums;

/// The function as it was written.
#[derive(Debug, Clone, Copy)]
pub struct Source {
    /// Its file, as the compiler names it.
    pub file: &'static str,
    /// Its name with the module's.
    pub path: &'static str,
    /// Its name.
    pub name: &'static str,
    /// The attribute's line.
    pub first_line: u32,
    /// How many lines there are.
    pub lines: u32,
    /// The lines.
    pub text: &'static str,
}

/// What is read at each line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Metric {
    /// The process's resident memory.
    Rss,
    /// What the call allocated and has not freed.
    Heap,
}

/// What an increment is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Semantics {
    /// The difference to the reading before.
    Readings,
    /// That to the highest reading of the line before.
    MemoryProfiler,
}

/// What a report looks like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// The table of memory_profiler.
    MemoryProfiler,
    /// With what PyCOMPSs adds to it.
    Pycompss,
}

/// In what bytes are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// 2^20 bytes.
    Mebibytes,
    /// 2^10 bytes.
    Kibibytes,
    /// Bytes.
    Bytes,
}

/// What the attribute's arguments say.
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
    /// The table, not one line only.
    pub full_report: bool,
    /// All calls together, when the process ends.
    pub sum: bool,
    /// What is still live at the end, by call site.
    pub held: bool,
}

/// A profiled function: one `static` in its body.
#[derive(Debug)]
pub struct Function {
    pub(super) source: Source,
    pub(super) options: Options,
    pub(super) sums: Mutex<Sums>,
}

impl Function {
    /// Declares it.
    #[must_use]
    pub const fn new(source: Source, options: Options) -> Function {
        Function {
            source,
            options,
            sums: Mutex::new(Sums::new()),
        }
    }

    /// A call begins; it ends when the guard is dropped.
    pub fn enter(&'static self) -> Call {
        Call {
            begun: calls::begin(self),
        }
    }

    /// Control comes to `line`. Does nothing on a thread where no call of the function is under way.
    #[inline]
    pub fn line(&'static self, line: u32) {
        calls::line(self, line);
    }

    /// Control comes to `line` when the guard is dropped.
    #[inline]
    pub fn at_end(&'static self, line: u32) -> AtEnd {
        AtEnd {
            function: self,
            line,
        }
    }

    /// Control comes back to `head` when the guard is dropped, if it was on line `close` until then.
    #[inline]
    pub fn turn(&'static self, head: u32, close: u32) -> Turn {
        Turn {
            function: self,
            head,
            close,
        }
    }

    /// Control comes to `line`, and back to where it was when the guard is dropped.
    #[inline]
    pub fn nested(&'static self, line: u32) -> Nested {
        let before = calls::current(self);
        calls::line(self, line);
        Nested {
            function: self,
            before,
        }
    }

    /// A call whose body is `future`.
    pub fn future<F: Future>(&'static self, future: F) -> Profiled<F> {
        Profiled::new(self, future)
    }
}

/// A call under way.
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

/// See [`Function::at_end`].
#[derive(Debug)]
#[must_use = "the line is told when this is dropped"]
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

/// See [`Function::turn`].
#[derive(Debug)]
#[must_use = "the line is told when this is dropped"]
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

/// See [`Function::nested`].
#[derive(Debug)]
#[must_use = "the line is told when this is dropped"]
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
