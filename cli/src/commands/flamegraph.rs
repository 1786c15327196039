//! `heapray flamegraph`

use std::path::PathBuf;

use heapray_report::Report;
use heapray_report::memray::Format;
use heapray_report::page::{Page, SourceFiles, SourceServer};
use heapray_report::sources::is_template;
use heapray_report::views::{IntervalOptions, Intervals};

use crate::context::Context;
use crate::debuginfod::{Debuginfod, DebuginfodSources};
use crate::failure::Failure;
use crate::input::{Capture, Passes};
use crate::output::OutputArgs;
use crate::selection::{NamesArgs, OrderArgs, PartArgs, SideArgs};

/// Write the page: flame graph, tables, trees and the curve of memory in one HTML file that needs no network.
///
/// The page itself switches between measures, orders, threads and filters: --leaks, --inverted and the like decide how it
/// opens; the options that select a part decide what is in it.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The capture.
    #[arg(value_name = "FILE")]
    capture: PathBuf,
    /// Let the page show any time range, from the events of the capture.
    #[arg(long, conflicts_with_all = ["PartArgs", "WhereArgs", "ByArgs"])]
    temporal: bool,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    side: SideArgs,
    #[command(flatten)]
    order: OrderArgs,
    /// Keep threads apart. The page always does; memray's needs this option.
    #[arg(long)]
    split_threads: bool,
    #[command(flatten)]
    names: NamesArgs,
    /// The directory of the service's sources, as they were built: the page shows the lines of its own code.
    #[arg(long, value_name = "DIRECTORY")]
    sources: Option<String>,
    /// Ask a debuginfod server for sources that are not there: this one, or those of DEBUGINFOD_URLS.
    #[arg(long, value_name = "URL", num_args = 0..=1, require_equals = true, default_missing_value = "")]
    debuginfod: Option<String>,
    /// Address of the service's sources, such as https://github.com/acme/shop/blob/v1.2/{file}#L{line}: the page links each
    /// line of its own code to it.
    #[arg(long, value_name = "TEMPLATE", value_parser = source_url)]
    source_url: Option<String>,
    #[command(flatten)]
    part: PartArgs,
}

fn source_url(text: &str) -> Result<String, String> {
    if is_template(text) {
        Ok(text.to_owned())
    } else {
        Err("it must be an address of the web with {file} in it, and may have {line}".to_owned())
    }
}

impl Args {
    pub(crate) fn run(&self, context: &mut Context) -> Result<(), Failure> {
        let out = self.output.or_beside(&self.capture, "flamegraph", "html")?;
        let passes = if self.temporal {
            Passes::Two
        } else {
            self.part.passes(&self.side)
        };
        let mut capture = Capture::read(&self.capture, passes, context)?;
        self.names.spell_out(&mut capture.report);
        let intervals = intervals(&mut capture, self.temporal, context)?;
        self.part.apply(&mut capture, &self.side, context)?;
        if let Some(url) = &self.source_url {
            capture.report.about.source_url.clone_from(url);
        }
        let mut page = page(&capture.report, capture.format, intervals.as_ref());
        let server = self.source_server(context)?;
        let has_sources = self.sources.is_some() || server.is_some();
        page.sources = has_sources.then(|| SourceFiles {
            root: self.sources.as_deref().unwrap_or_default(),
            until: None,
            server: server.as_ref().map(|server| server as &dyn SourceServer),
        });
        let spinner = context.spinner("Writing the page");
        let written = out.write(context, |mut out| {
            page.write_opened_at(&self.opens_at(), &mut out)
        });
        spinner.finish_and_clear();
        written
    }

    /// Returns the servers that are asked for sources, if they are to be asked.
    fn source_server(&self, context: &Context) -> Result<Option<DebuginfodSources>, Failure> {
        let Some(url) = &self.debuginfod else {
            return Ok(None);
        };
        let servers = Debuginfod::new(Some(url), false)?;
        Ok(servers.map(|servers| DebuginfodSources::new(servers, context.clone())))
    }

    /// Returns the requested view in the page's spelling, or nothing to leave the choice to the page.
    fn opens_at(&self) -> String {
        let view = self.side.opens_at();
        let order = self.order.inverted.then_some("order=leaf");
        let names = self.names.opens_at();
        let parts: Vec<&str> = view.into_iter().chain(order).chain(names).collect();
        parts.join("&")
    }
}

/// Returns the page of a capture of that format.
pub(super) fn page<'r>(
    report: &'r Report,
    format: Format,
    intervals: Option<&'r Intervals>,
) -> Page<'r> {
    Page {
        report,
        intervals,
        has_log: format == Format::AllAllocations,
        sources: None,
    }
}

/// Returns the times of allocations and frees from the events, if they are `wanted`.
pub(super) fn intervals(
    capture: &mut Capture,
    wanted: bool,
    context: &mut Context,
) -> Result<Option<Intervals>, Failure> {
    if !wanted {
        return Ok(None);
    }
    let Some(mut events) = capture.events(context)? else {
        context.note(&format!(
            "{}: an aggregated capture has no events: the page shows time ranges only as far as sums allow",
            capture.name
        ));
        return Ok(None);
    };
    let options = IntervalOptions {
        memory: context.memory_limit(),
        ..IntervalOptions::default()
    };
    let intervals = Intervals::of(&capture.report, &mut events, options);
    let intervals = intervals.map_err(|error| capture.failed(error))?;
    capture.followed(&events, context);
    Ok(Some(intervals))
}
