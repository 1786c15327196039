//! The call sites of the made-up service.

/// A call site of the made-up service: a function of [`sites`](crate::sites).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Site {
    /// A large static table, made at start-up.
    Settings,
    /// What the service parses at start-up and mostly throws away (only [`Traffic::StartUp`](crate::Traffic)).
    StartUp,
    /// The body of a request, freed when the request ends. Each request has exactly one.
    RequestBody,
    /// Buffers of a response: churn.
    ResponseBuffer,
    /// A line of the log, freed when the request ends.
    LogLine,
    /// The session of a user, which lives for some seconds.
    Session,
    /// Entries of the cache.
    Cache,
    /// The cache's container, which is regrown by `realloc`.
    CacheIndex,
    /// The call site at which most causes are put.
    Suspect,
    /// The container at which the causes are put that are about containers.
    SuspectIndex,
}

impl Site {
    /// Every call site.
    pub const ALL: [Site; 10] = [
        Site::Settings,
        Site::StartUp,
        Site::RequestBody,
        Site::ResponseBuffer,
        Site::LogLine,
        Site::Session,
        Site::Cache,
        Site::CacheIndex,
        Site::Suspect,
        Site::SuspectIndex,
    ];

    /// Returns the name of the function that allocates for this site, as a profiler prints it.
    pub fn name(self) -> &'static str {
        match self {
            Site::Settings => "leak_programs::sites::settings",
            Site::StartUp => "leak_programs::sites::start_up",
            Site::RequestBody => "leak_programs::sites::request_body",
            Site::ResponseBuffer => "leak_programs::sites::response_buffer",
            Site::LogLine => "leak_programs::sites::log_line",
            Site::Session => "leak_programs::sites::session",
            Site::Cache => "leak_programs::sites::cache",
            Site::CacheIndex => "leak_programs::sites::cache_index",
            Site::Suspect => "leak_programs::sites::suspect",
            Site::SuspectIndex => "leak_programs::sites::suspect_index",
        }
    }
}
