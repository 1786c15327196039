//! The causes: what, besides the background, the program does with memory, and whether it leaks.

use crate::Site;

/// What a program does besides the background that all programs share.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Cause {
    /// Leak: every request keeps a small block.
    EveryRequest,
    /// Leak: one of 100 requests keeps a block.
    OneOfHundred,
    /// Leak: at most 1 % of the live bytes, at a call site with loud churn.
    SlowUnderChurn,
    /// Leak: the same, and the same call site has also made a large static table.
    SlowUnderChurnAndTable,
    /// Leak: the cache has no bound, and its key space grows with the requests.
    UnboundedCache,
    /// Leak: one vector is pushed to for ever and doubles by `realloc`.
    GrowingVector,
    /// Leak: one map is inserted into for ever. It rehashes: allocates the double size and frees the old table.
    RehashingMap,
    /// Leak: many small nodes of a linked list.
    LinkedList,
    /// Leak: all eight threads allocate at the call site, one of them never frees.
    OneOfEightThreads,
    /// Leak: 1 MB each two virtual seconds, whether there are requests or not.
    LargeSeldom,
    /// Leak: every request keeps a block, but only after 40 % of the run's requests.
    FeatureFlag,
    /// Leak: failed requests keep a block, and failures come in clumps.
    ErrorClumps,
    /// Leak: nine of ten blocks live far longer than the run, the others some seconds.
    LongTimeToLive,
    /// Leak: 5 % of the sessions are never closed, at the call site of all sessions.
    UnclosedSessions,
    /// Harmless: nothing besides the background.
    Nothing,
    /// Harmless: a cache fills until 40 % of the run's requests, then evicts the least recently used entry.
    LruCache,
    /// Harmless: a cache fills until 40 % of the run's requests, then evicts at random.
    RandomCache,
    /// Harmless: cache entries that live for five virtual seconds.
    TtlCache,
    /// Harmless: tables are built at their first use, in the first 20 % of the run's requests.
    LazySetUp,
    /// Harmless: a pool grows to the number of requests in flight, at most to 16 buffers, and keeps them.
    Pool,
    /// Harmless: a batch is collected, and flushed every four virtual seconds.
    Queue,
    /// Harmless: each thread's buffer is regrown to the largest message, which comes early.
    MessageBuffer,
    /// Harmless: large and small blocks are allocated alternately, then all large ones freed.
    Fragmentation,
    /// Harmless: a table is reloaded every ten virtual seconds: the new one is built, then the old one freed.
    DoubleBuffering,
    /// Harmless: many and long sessions, so that most of the live bytes follow the traffic.
    SessionsFollowTraffic,
    /// Harmless: an arena grows by chunks, and all are freed when it is reset.
    Arena,
}

impl Cause {
    /// Every cause.
    pub const ALL: [Cause; 26] = [
        Cause::EveryRequest,
        Cause::OneOfHundred,
        Cause::SlowUnderChurn,
        Cause::SlowUnderChurnAndTable,
        Cause::UnboundedCache,
        Cause::GrowingVector,
        Cause::RehashingMap,
        Cause::LinkedList,
        Cause::OneOfEightThreads,
        Cause::LargeSeldom,
        Cause::FeatureFlag,
        Cause::ErrorClumps,
        Cause::LongTimeToLive,
        Cause::UnclosedSessions,
        Cause::Nothing,
        Cause::LruCache,
        Cause::RandomCache,
        Cause::TtlCache,
        Cause::LazySetUp,
        Cause::Pool,
        Cause::Queue,
        Cause::MessageBuffer,
        Cause::Fragmentation,
        Cause::DoubleBuffering,
        Cause::SessionsFollowTraffic,
        Cause::Arena,
    ];

    /// Returns the second part of a program's name.
    pub fn name(self) -> &'static str {
        match self {
            Cause::EveryRequest => "every-request",
            Cause::OneOfHundred => "one-of-hundred",
            Cause::SlowUnderChurn => "slow-under-churn",
            Cause::SlowUnderChurnAndTable => "slow-under-churn-and-table",
            Cause::UnboundedCache => "unbounded-cache",
            Cause::GrowingVector => "growing-vector",
            Cause::RehashingMap => "rehashing-map",
            Cause::LinkedList => "linked-list",
            Cause::OneOfEightThreads => "one-of-eight-threads",
            Cause::LargeSeldom => "large-seldom",
            Cause::FeatureFlag => "feature-flag",
            Cause::ErrorClumps => "error-clumps",
            Cause::LongTimeToLive => "long-time-to-live",
            Cause::UnclosedSessions => "unclosed-sessions",
            Cause::Nothing => "nothing",
            Cause::LruCache => "lru-cache",
            Cause::RandomCache => "random-cache",
            Cause::TtlCache => "ttl-cache",
            Cause::LazySetUp => "lazy-set-up",
            Cause::Pool => "pool",
            Cause::Queue => "queue",
            Cause::MessageBuffer => "message-buffer",
            Cause::Fragmentation => "fragmentation",
            Cause::DoubleBuffering => "double-buffering",
            Cause::SessionsFollowTraffic => "sessions-follow-traffic",
            Cause::Arena => "arena",
        }
    }

    /// Returns the call site that leaks, if one does.
    pub fn leaks(self) -> Option<Site> {
        match self {
            Cause::EveryRequest
            | Cause::OneOfHundred
            | Cause::SlowUnderChurn
            | Cause::SlowUnderChurnAndTable
            | Cause::LinkedList
            | Cause::OneOfEightThreads
            | Cause::LargeSeldom
            | Cause::FeatureFlag
            | Cause::ErrorClumps
            | Cause::LongTimeToLive => Some(Site::Suspect),
            Cause::GrowingVector | Cause::RehashingMap => Some(Site::SuspectIndex),
            Cause::UnboundedCache => Some(Site::Cache),
            Cause::UnclosedSessions => Some(Site::Session),
            Cause::Nothing
            | Cause::LruCache
            | Cause::RandomCache
            | Cause::TtlCache
            | Cause::LazySetUp
            | Cause::Pool
            | Cause::Queue
            | Cause::MessageBuffer
            | Cause::Fragmentation
            | Cause::DoubleBuffering
            | Cause::SessionsFollowTraffic
            | Cause::Arena => None,
        }
    }

    /// Returns a second call site that grows for ever because [`leaks`](Self::leaks) does: the container of the blocks
    /// that leak. To accuse it too is right.
    pub fn also_grows(self) -> Option<Site> {
        (self == Cause::UnboundedCache).then_some(Site::CacheIndex)
    }

    /// Returns the number of threads that serve requests.
    pub(crate) fn threads(self) -> u8 {
        if self == Cause::OneOfEightThreads {
            8
        } else {
            4
        }
    }
}
