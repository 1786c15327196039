//! Types that describe answers and query values in the OpenAPI document whose own types are not the profiler's.
//!
//! These are descriptions only: nothing is written with them. `tests/http/document.rs` compares them with real answers.
#![allow(dead_code)]

use std::collections::BTreeMap;

use utoipa::openapi::schema::{AnyOfBuilder, ObjectBuilder, OneOfBuilder, Schema, Type};
use utoipa::openapi::{Object, Ref, RefOr};
use utoipa::{PartialSchema, ToSchema};

use crate::profiler::{Blocks, SamplingStatus};

/// Yes or no, in any of the accepted words. A name without a value (null, for some clients) means yes.
pub(crate) struct Truth;

impl PartialSchema for Truth {
    fn schema() -> RefOr<Schema> {
        let words = "^([Tt]([Rr][Uu][Ee])?|[Yy]([Ee][Ss])?|1|[Ff]([Aa][Ll][Ss][Ee])?|[Nn][Oo]?|[Oo][Ff][Ff]|0)?$";
        let text = ObjectBuilder::new()
            .schema_type(Type::String)
            .pattern(Some(words));
        let either = AnyOfBuilder::new().item(Object::with_type(Type::Boolean));
        let either = either.item(text.build());
        RefOr::T(either.item(Object::with_type(Type::Null)).build().into())
    }
}

impl ToSchema for Truth {}

/// An event of the live page.
#[derive(ToSchema)]
pub(crate) struct LiveEvent {
    /// Name of the event.
    event: LiveEventName,
    /// JSON.
    #[schema(content_media_type = "application/json")]
    data: String,
    /// Milliseconds after which to ask again once the answer has ended.
    retry: Option<u64>,
}

/// Name of an event of the live page.
#[derive(ToSchema)]
#[schema(rename_all = "kebab-case")]
enum LiveEventName {
    Status,
    Curve,
    Now,
    Top,
    Leaks,
    TopSites,
    LeakSites,
    Routes,
    Reports,
}

/// The statistics, or with `by` what each value of a key holds.
pub(crate) struct StatisticsAnswer;

impl PartialSchema for StatisticsAnswer {
    fn schema() -> RefOr<Schema> {
        let of = |name| RefOr::<Schema>::Ref(Ref::from_schema_name(name));
        let one = OneOfBuilder::new().item(of("Statistics"));
        RefOr::T(one.item(of("StatisticsByContext")).build().into())
    }
}

impl ToSchema for StatisticsAnswer {}

/// What each value of a key of contexts holds.
#[derive(ToSchema)]
pub(crate) struct StatisticsByContext {
    key: String,
    /// The one with the most live bytes first.
    contexts: Vec<StatisticsOfContext>,
}

/// What one value of a key holds.
#[derive(ToSchema)]
struct StatisticsOfContext {
    /// Null for contexts without the key.
    #[schema(required)]
    value: Option<String>,
    live: Blocks,
    high_water: Blocks,
    allocated: Blocks,
    /// Time at which the oldest live block was allocated, in milliseconds since the start of the session; null if unknown.
    #[schema(required)]
    oldest_live_ms: Option<u64>,
    /// Null if no request or future of it has ended.
    #[schema(required)]
    runs: Option<StatisticsOfRuns>,
}

/// What requests, or futures, did from their beginning to their end. Null for what only samples do not tell.
#[derive(ToSchema)]
struct StatisticsOfRuns {
    /// The number of those that have ended.
    count: u64,
    /// Bytes that each allocated.
    #[schema(required)]
    allocated_bytes: Option<StatisticsEach>,
    /// Blocks that each allocated.
    #[schema(required)]
    allocated_blocks: Option<StatisticsEach>,
    /// The most bytes that each held at one time.
    #[schema(required)]
    most_bytes: Option<StatisticsEach>,
    /// Bytes that each left behind.
    #[schema(required)]
    held_bytes: Option<StatisticsEach>,
    /// What they freed that another context had allocated.
    freed_of_others: Blocks,
}

/// Figures of many numbers. Median and 99th percentile are within a quarter of the true values.
#[derive(ToSchema)]
struct StatisticsEach {
    mean: u64,
    median: u64,
    p99: u64,
    most: u64,
    sum: u64,
}

/// Statistics as `memray stats --json` writes them, and heapray's additions.
#[derive(ToSchema)]
pub(crate) struct Statistics {
    /// Number of allocations.
    total_num_allocations: u64,
    /// Sum of the bytes of all allocations.
    total_bytes_allocated: u64,
    /// Number of allocations by size.
    allocation_size_histogram: Vec<StatisticsBin>,
    /// Number of allocations by the function that was called.
    allocator_type_distribution: BTreeMap<String, u64>,
    /// The call sites that allocated the most bytes.
    top_allocations_by_size: Vec<StatisticsBySize>,
    /// The call sites that allocated most often.
    top_allocations_by_count: Vec<StatisticsByCount>,
    /// The modules that allocated the most bytes.
    top_modules_by_allocation_size: Vec<StatisticsModule>,
    /// The modules that allocated most often.
    top_modules_by_allocation_count: Vec<StatisticsModule>,
    /// Facts about the capture.
    metadata: StatisticsMetadata,
    /// Figures that memray does not have.
    heapray: StatisticsHeapray,
}

/// Number of allocations in a range of sizes.
#[derive(ToSchema)]
struct StatisticsBin {
    min_bytes: u64,
    max_bytes: u64,
    count: u64,
}

/// A call site and its bytes.
#[derive(ToSchema)]
struct StatisticsBySize {
    /// `function:file:line`.
    location: String,
    size: u64,
}

/// A call site and its number of allocations.
#[derive(ToSchema)]
struct StatisticsByCount {
    /// `function:file:line`.
    location: String,
    count: u64,
}

/// A module and its allocations.
#[derive(ToSchema)]
struct StatisticsModule {
    module: String,
    num_allocations: u64,
    total_bytes: u64,
}

/// Facts about the capture, as memray writes them.
#[derive(ToSchema)]
struct StatisticsMetadata {
    /// Time in UTC.
    start_time: String,
    /// Time in UTC.
    end_time: String,
    total_allocations: u64,
    total_frames: u64,
    peak_memory: u64,
    command_line: String,
    pid: u32,
    main_thread_id: u64,
    python_allocator: String,
    has_native_traces: bool,
    trace_python_allocators: bool,
    file_format: u8,
}

/// An allocator that keeps much of the resident memory although the service has freed it.
#[derive(ToSchema)]
struct StatisticsFragmentation {
    allocator: String,
    /// Bytes that are free inside the allocator.
    kept: u64,
    /// Resident bytes.
    rss: u64,
    /// The arenas among which it divides its memory; null if unknown.
    #[schema(required)]
    arenas: Option<u32>,
    /// What it is and what to do about it.
    advice: String,
}

/// Figures that memray's statistics do not have.
#[derive(ToSchema)]
struct StatisticsHeapray {
    producer: String,
    still_recording: bool,
    live: Blocks,
    high_water: Blocks,
    /// Milliseconds since the start of the session; null if the time is not known.
    #[schema(required)]
    high_water_ms: Option<u64>,
    top_live_locations: Vec<StatisticsLive>,
    top_live_own_lines: Vec<StatisticsLive>,
    /// The lines that probably leak, the likeliest first.
    leaks: Vec<StatisticsLeak>,
    /// Why it cannot be told what leaks; null if it can.
    #[schema(required)]
    leaks_unknown: Option<String>,
    /// Memory that a rule of `heapray-known.toml` makes known: it is not among the leaks.
    known: Vec<StatisticsKnown>,
    /// The allocator that keeps much of the resident memory although it was freed; null if none does.
    #[schema(required)]
    fragmentation: Option<StatisticsFragmentation>,
    lost_events: u64,
    #[schema(required)]
    lost_since_ms: Option<u64>,
    stacks_cut: u64,
    stacks_incomplete: u64,
    unknown_frees: u64,
    sizes_rounded: bool,
    #[schema(required)]
    sampling: Option<SamplingStatus>,
    notes: Vec<String>,
    overhead: StatisticsOverhead,
}

/// A call site and its live blocks.
#[derive(ToSchema)]
struct StatisticsLive {
    /// `function:file:line`.
    location: String,
    bytes: u64,
    count: u64,
    /// Time at which the oldest block was allocated, in milliseconds since the start of the session; null if the time is not
    /// known.
    #[schema(required)]
    oldest_ms: Option<u64>,
}

/// A line that probably leaks.
#[derive(ToSchema)]
struct StatisticsLeak {
    function: String,
    file: String,
    line: u32,
    /// The call stack through the line that kept most, leaf first.
    stack: Vec<StatisticsFrame>,
    live_bytes: u64,
    live_blocks: u64,
    growth_bytes_per_hour: u64,
    /// Part of the bytes allocated while the line grew that is still live, from 0 to 1; null if it is not known.
    #[schema(required, minimum = 0, maximum = 1)]
    survival: Option<f64>,
    confidence: StatisticsConfidence,
    /// What speaks for a leak, a sentence each.
    evidence: Vec<String>,
    /// What speaks against it.
    against: Vec<String>,
}

/// Memory that is known.
#[derive(ToSchema)]
struct StatisticsKnown {
    /// The rule's patterns; empty for any.
    function: String,
    file: String,
    /// Why it does not leak.
    reason: String,
    live_bytes: u64,
    live_blocks: u64,
}

/// How sure it is that a line leaks.
#[derive(ToSchema)]
#[schema(rename_all = "lowercase")]
enum StatisticsConfidence {
    High,
    Medium,
    Low,
}

/// A frame of a call stack.
#[derive(ToSchema)]
struct StatisticsFrame {
    function: String,
    file: String,
    line: u32,
}

/// Cost of the capture.
#[derive(ToSchema)]
struct StatisticsOverhead {
    memory_bytes: u64,
    collector_cpu_ns: u64,
    log_bytes: u64,
}
