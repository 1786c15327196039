//! `heapray serve`

use std::path::PathBuf;
use std::sync::Arc;

use heapray_report::formats::{Format, Options};
use heapray_report::stats;
use serde_json::json;

use crate::commands::flamegraph::{intervals, page};
use crate::context::Context;
use crate::failure::Failure;
use crate::input::{Capture, Passes};
use crate::selection::NamesArgs;
use crate::server::{Answers, Server};

/// Show the page of a capture in a browser, from this machine to this machine only, until interrupted.
///
/// Beside the page at `/` there is `/stats`, and each format of `heapray convert` under its name, so that
/// `go tool pprof http://127.0.0.1:PORT/pprof` works.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The capture.
    #[arg(value_name = "FILE")]
    capture: PathBuf,
    /// The port on 127.0.0.1; 0 is any that is free.
    #[arg(long, short, default_value_t = 0)]
    port: u16,
    /// Let the page show any stretch of time, from the events of the capture.
    #[arg(long)]
    temporal: bool,
    #[command(flatten)]
    names: NamesArgs,
}

impl Args {
    pub(crate) fn run(&self, context: &mut Context) -> Result<(), Failure> {
        let server = Server::bind(self.port)?;
        let passes = if self.temporal {
            Passes::Two
        } else {
            Passes::One
        };
        let mut capture = Capture::read(&self.capture, passes, context)?;
        self.names.spell_out(&mut capture.report);
        let intervals = intervals(&mut capture, self.temporal, context)?;
        let report = &capture.report;
        let page = page(report, capture.format, intervals.as_ref());
        let mut html = Vec::new();
        let failed = |error| Failure::io("cannot make the page", error);
        let opens_at = self.names.opens_at().unwrap_or_default();
        page.write_opened_at(opens_at, &mut html).map_err(failed)?;

        let mut answers = Answers::default();
        answers.put("/", "text/html; charset=utf-8", html);
        self.names.apply(&mut capture.report);
        let text = stats::text(&capture.report).into_bytes();
        let report = Arc::new(capture.report);
        answers.put("/stats", "text/plain; charset=utf-8", text);
        for &format in Format::ALL {
            let report = Arc::clone(&report);
            answers.make(
                &format!("/{}", format.name()),
                format.content_type(),
                move || {
                    let mut file = Vec::new();
                    format.write(&report, &Options::default(), &mut file)?;
                    Ok(file)
                },
            );
        }
        let url = server.url()?;
        if context.json() {
            context.print_json(&json!({ "url": url }))?;
        } else {
            context.print(&format!("Serving {} at {url}\n", capture.name))?;
        }
        server.serve(answers)
    }
}
