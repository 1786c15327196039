//! `heapray fetch`

use std::fs::File;
use std::io::Seek;
use std::path::Path;
use std::time::Duration;

use heapray_report::memray;
use heapray_report::units::size;
use serde_json::json;

use crate::access::AccessArgs;
use crate::browser;
use crate::commands::flamegraph;
use crate::commands::symbolize::symbolize;
use crate::context::Context;
use crate::failure::Failure;
use crate::json::tally;
use crate::leftovers::Temporary;
use crate::limit;
use crate::output::{self, Destination, OutputArgs};
use crate::remote::{Client, Remote, Session, Timeouts, copy, readable, too_large};
use crate::symbols::FilesArgs;

/// Stop the profiler of a running service and download its report.
///
/// URL is the service's address, with its path prefix if it has one: `http://localhost:7000` or
/// `https://host/pub/job/NAME/VERSION`. The report is checked before it is saved: an answer that is not a whole capture is
/// not kept.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The service's address.
    url: String,
    #[command(flatten)]
    access: AccessArgs,
    /// Let the service go on recording, and download the report so far.
    #[arg(long)]
    no_stop: bool,
    /// Longest wait for the service's answer, in seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 300, value_parser = clap::value_parser!(u64).range(1..=LONGEST))]
    timeout: u64,
    /// Longest time of the download, in seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 3600, value_parser = clap::value_parser!(u64).range(1..=LONGEST))]
    max_time: u64,
    /// Largest size of the report.
    #[arg(long, value_name = "SIZE", default_value = "4GiB", value_parser = limit::size)]
    max_size: u64,
    #[command(flatten)]
    files: FilesArgs,
    /// Write the page too, beside the report.
    #[arg(long)]
    page: bool,
    /// Write the page too, and open it in the browser.
    #[arg(long)]
    open: bool,
    #[command(flatten)]
    output: OutputArgs,
}

/// Longest accepted time: a week.
const LONGEST: u64 = 7 * 24 * 3600;

impl Args {
    pub(crate) fn run(&self, context: &mut Context) -> Result<(), Failure> {
        let output = self.output.output.as_deref();
        let path = output.unwrap_or(Path::new("memray-report.bin"));
        let force = self.output.force;
        let Destination::File { path, .. } = Destination::new(path, force)? else {
            return Err(Failure::Usage("-o must name a file".into()));
        };
        let page = (self.page || self.open)
            .then(|| Destination::beside(&path, "flamegraph", "html", force))
            .transpose()?;

        let timeouts = Timeouts {
            answer: Duration::from_secs(self.timeout),
            download: Duration::from_secs(self.max_time),
        };
        let remote = Client::new(timeouts).service(&self.url, self.access.headers())?;
        if !self.no_stop {
            let spinner = context.spinner("Stopping the profiler");
            let stopped = remote.stop();
            spinner.finish_and_clear();
            stopped?;
        }
        let mut file = self.download(&remote, &path, context)?;
        let opened = file
            .file()
            .map_err(|error| Failure::writing(&path, error))?;
        let capture = memray::read_within(opened, context.memory_limit());
        let capture = capture.map_err(|error| Failure::reading(remote.base(), error))?;
        if !capture.complete {
            let notes = &capture.report.conditions.notes;
            return Err(Failure::Capture {
                name: remote.base().into(),
                problem: notes.last().cloned().unwrap_or_default(),
            });
        }
        output::keep(file, &path, force)?;
        let mut capture = capture;
        if self.files.is_given() {
            let out = Destination::new(&path, true)?;
            symbolize(&path, &self.files, &out, context)?;
            capture = memray::read_file_within(open(&path)?, context.memory_limit())
                .map_err(|error| Failure::reading(remote.base(), error))?;
        }

        let totals = &capture.report.totals;
        if context.json() {
            context.print_json(&json!({
                "wrote": path.to_string_lossy(),
                "high_water": tally(totals.high_water),
                "live": tally(totals.live),
            }))?;
        } else {
            if !self.files.is_given() {
                context.wrote(&path)?;
            }
            context.note(&format!(
                "{} at the high-water mark, {} still live",
                size(totals.high_water.bytes),
                size(totals.live.bytes)
            ));
        }
        if let Some(page) = page {
            let made = flamegraph::page(&capture.report, capture.format, None);
            page.write(context, |mut out| made.write(&mut out))?;
            if self.open
                && let Destination::File { path, .. } = &page
            {
                browser::open(path.as_os_str())?;
            }
        }
        Ok(())
    }

    /// Downloads the report into a temporary file beside `path`, and sets the file to its start.
    fn download(
        &self,
        remote: &Remote,
        path: &Path,
        context: &Context,
    ) -> Result<Temporary, Failure> {
        let writing = |error| Failure::writing(path, error);
        let reading = |error| {
            let doing = format!("cannot download from {}", remote.base());
            Failure::io(doing, readable(error))
        };
        let (length, body) = remote.report(Session::Last, None)?;
        if length.is_some_and(|length| length > self.max_size) {
            return Err(reading(too_large(self.max_size)));
        }
        let bar = context.progress("Downloading", length);
        let mut temporary = Temporary::beside(path).map_err(writing)?;
        let file = temporary.file().map_err(writing)?;
        let copied = copy(bar.wrap_read(body), file, self.max_size);
        bar.finish_and_clear();
        copied.map_err(reading)?;
        file.rewind().map_err(writing)?;
        Ok(temporary)
    }
}

fn open(path: &Path) -> Result<File, Failure> {
    File::open(path).map_err(|error| Failure::io(format!("cannot read {}", path.display()), error))
}
