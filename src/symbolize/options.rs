//! What the reader of a report may choose.

/// How a report is made. The default leaves out what hides the answer: the standard library's frames at the
/// leaf of each call stack, and the difference between threads of one pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct ReportOptions {
    /// Keep every frame. Default `false`: a call stack ends at the code that asked for memory, without the
    /// frames of `alloc`, `core` and `std` (and heapray's own) that it asked through.
    pub full: bool,
    /// How threads are told apart.
    pub threads: ThreadMode,
    /// How functions are called.
    pub names: NameMode,
}

impl ReportOptions {
    /// Returns the default options.
    #[must_use]
    pub const fn new() -> ReportOptions {
        ReportOptions {
            full: false,
            threads: ThreadMode::ByName,
            names: NameMode::Plain,
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

    /// Sets [`names`](ReportOptions#structfield.names).
    #[must_use]
    pub const fn names(mut self, names: NameMode) -> ReportOptions {
        self.names = names;
        self
    }
}

/// How a report calls functions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum NameMode {
    /// By plain names, which are the same whatever the mangling: without generic arguments (the default). Call sites that
    /// differ in type parameters alone are one.
    #[default]
    Plain,
    /// As the compiler calls them.
    Full,
    /// Both: frames that differ in full names are apart, and their plain names show what belongs together.
    Both,
}

/// How a report tells threads apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum ThreadMode {
    /// Threads whose names are exactly equal are one entry (the default): a pool's workers run the same code.
    /// Threads without a name are one entry too. `worker-1` and `worker-2` stay apart, because a number in a
    /// name may mean something.
    #[default]
    ByName,
    /// One entry for each thread.
    Each,
}
