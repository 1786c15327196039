//! `heapray flamegraph`

use std::path::PathBuf;

use heapray_report::page::Page;
use heapray_report::views::{IntervalOptions, Intervals};

use crate::context::Context;
use crate::failure::Failure;
use crate::input::{Capture, Passes};
use crate::output::OutputArgs;
use crate::selection::{OrderArgs, PartArgs, SideArgs};

/// Write the page: flame graph, tables, trees and the curve of memory in one HTML file that needs no network.
///
/// The page itself switches between sides of the heap, orders, threads and filters: the options decide how it opens.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The capture.
    #[arg(value_name = "FILE")]
    capture: PathBuf,
    /// Let the page show any stretch of time, from the events of the capture.
    #[arg(long)]
    temporal: bool,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    side: SideArgs,
    #[command(flatten)]
    order: OrderArgs,
    /// Keep threads apart. The page always does; memray's must be told.
    #[arg(long)]
    split_threads: bool,
    #[command(flatten)]
    part: PartArgs,
}
