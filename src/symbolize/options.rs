//! The options of a report.

/// The options of a report. By default, a report leaves out the standard library's frames at the leaf of each call stack,
/// and joins the threads of a pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct ReportOptions {
    /// Whether every frame is kept. Default `false`: a call stack ends at the code that called the library to allocate,
    /// without the frames of `alloc`, `core` and `std` (and heapray's own) in between.
    pub full: bool,
    /// The grouping of threads.
    pub threads: ThreadMode,
    /// The form of function names.
    pub names: NameMode,
    /// Whether frames without lines that have the same names stay apart if their addresses differ, so that the lines can be
    /// looked up later. For captures; other formats show such frames as one. Default `false`.
    pub by_address: bool,
}

impl ReportOptions {
    /// Returns the default options.
    #[must_use]
    pub const fn new() -> ReportOptions {
        ReportOptions {
            full: false,
            threads: ThreadMode::ByName,
            names: NameMode::Plain,
            by_address: false,
        }
    }

    /// Sets [`full`](ReportOptions#structfield.full).
    #[must_use]
    pub const fn full(mut self, full: bool) -> ReportOptions {
        self.full = full;
        self
    }

    /// Sets [`threads`](ReportOptions#structfield.threads).
    #[must_use]
    pub const fn threads(mut self, threads: ThreadMode) -> ReportOptions {
        self.threads = threads;
        self
    }

    /// Sets [`by_address`](ReportOptions#structfield.by_address).
    #[must_use]
    pub const fn by_address(mut self, by_address: bool) -> ReportOptions {
        self.by_address = by_address;
        self
    }

    /// Sets [`names`](ReportOptions#structfield.names).
    #[must_use]
    pub const fn names(mut self, names: NameMode) -> ReportOptions {
        self.names = names;
        self
    }
}

/// The form of function names in a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum NameMode {
    /// Plain names without generic arguments (the default). They are the same for both manglings. Call sites that differ
    /// only in type parameters are one.
    #[default]
    Plain,
    /// Full names, as the compiler writes them.
    Full,
    /// Both names. Frames with different full names are different frames, and their plain names show which ones belong
    /// together.
    Both,
}

/// The grouping of threads in a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum ThreadMode {
    /// Threads whose names are exactly equal are one entry (the default), because the workers of a pool run the same code.
    /// Threads without a name are one entry too. `worker-1` and `worker-2` are two entries, because a number in a name may
    /// have a meaning.
    #[default]
    ByName,
    /// One entry for each thread.
    Each,
}
