//! What the OpenAPI document says of answers whose types are not the profiler's own, and of values in a query.
//!
//! Descriptions only: nothing is written by these types. `tests/http/routes.rs` compares them with what is.
#![allow(dead_code)]

use std::collections::BTreeMap;

use utoipa::openapi::schema::{AnyOfBuilder, ObjectBuilder, Schema, Type};
use utoipa::openapi::{Object, RefOr};
use utoipa::{PartialSchema, ToSchema};

use crate::profiler::{Blocks, SamplingStatus};

/// Yes or no, in any of the words that are understood. A name without a value (null, to some clients) says yes.
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
    /// What is told.
    event: LiveEventName,
    /// JSON.
    #[schema(content_media_type = "application/json")]
    data: String,
    /// Milliseconds after which to ask again, once the answer has ended.
    retry: Option<u64>,
}

/// What an event of the live page tells.
#[derive(ToSchema)]
#[schema(rename_all = "lowercase")]
enum LiveEventName {
    Status,
    Curve,
    Now,
    Top,
    Reports,
}

/// What `memray stats --json` writes, and `heapray` besides.
#[derive(ToSchema)]
pub(crate) struct Statistics {
    /// Allocations.
    total_num_allocations: u64,
    /// Bytes of all allocations.
    total_bytes_allocated: u64,
    /// How many allocations were how large.
    allocation_size_histogram: Vec<StatisticsBin>,
    /// Allocations by the function that was called.
    allocator_type_distribution: BTreeMap<String, u64>,
    /// The places that allocated the most bytes.
    top_allocations_by_size: Vec<StatisticsBySize>,
    /// The places that allocated most often.
    top_allocations_by_count: Vec<StatisticsByCount>,
    /// The modules that allocated the most bytes.
    top_modules_by_allocation_size: Vec<StatisticsModule>,
    /// The modules that allocated most often.
    top_modules_by_allocation_count: Vec<StatisticsModule>,
    /// The capture.
    metadata: StatisticsMetadata,
    /// What memray does not know.
    heapray: StatisticsHeapray,
}

/// Allocations of sizes in a range.
#[derive(ToSchema)]
struct StatisticsBin {
    min_bytes: u64,
    max_bytes: u64,
    count: u64,
}

/// A place, and its bytes.
#[derive(ToSchema)]
struct StatisticsBySize {
    /// `function:file:line`.
    location: String,
    size: u64,
}

/// A place, and its allocations.
#[derive(ToSchema)]
struct StatisticsByCount {
    /// `function:file:line`.
    location: String,
    count: u64,
}

/// A module, and what it allocated.
#[derive(ToSchema)]
struct StatisticsModule {
    module: String,
    num_allocations: u64,
    total_bytes: u64,
}

/// The capture, as memray tells of one.
#[derive(ToSchema)]
struct StatisticsMetadata {
    /// UTC.
    start_time: String,
    /// UTC.
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

/// What memray's statistics leave open.
#[derive(ToSchema)]
struct StatisticsHeapray {
    producer: String,
    still_recording: bool,
    live: Blocks,
    high_water: Blocks,
    /// Milliseconds since the start of the session; null if it is not known.
    #[schema(required)]
    high_water_ms: Option<u64>,
    top_live_locations: Vec<StatisticsLive>,
    top_live_own_lines: Vec<StatisticsLive>,
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

/// A place, and what of its allocations was not freed.
#[derive(ToSchema)]
struct StatisticsLive {
    /// `function:file:line`.
    location: String,
    bytes: u64,
    count: u64,
    /// When the oldest block was allocated, in milliseconds since the start of the session; null if it is not known.
    #[schema(required)]
    oldest_ms: Option<u64>,
}

/// What the capture cost.
#[derive(ToSchema)]
struct StatisticsOverhead {
    memory_bytes: u64,
    collector_cpu_ns: u64,
    log_bytes: u64,
}
