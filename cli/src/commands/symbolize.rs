//! `heapray symbolize`

use std::path::{Path, PathBuf};

use heapray::symbolize::{FoundNames, NamedLater};
use heapray_report::Report;
use heapray_report::memray::{Format, write_aggregated, write_all};
use heapray_report::views::{ModuleCode, code_of_modules};
use serde_json::{Value, json};

use crate::context::Context;
use crate::failure::Failure;
use crate::input::{Capture, Passes, is_stdin};
use crate::output::{Destination, OutputArgs};
use crate::symbols::{FilesArgs, say_found, say_strangers, wanted};

/// Add the names of functions, files and lines to captures of a stripped program, or of a service that looks up no symbols.
///
/// They come from files of the same build: the files that you name, debug files by build id below /usr/lib/debug, the modules at
/// the paths that the service had them at, and debuginfod servers. A file of another build is never used. The result is what the
/// service would have written with its debug information at hand.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The captures.
    #[arg(value_name = "FILE", required = true)]
    captures: Vec<PathBuf>,
    /// Replace the captures themselves.
    #[arg(long, conflicts_with = "output")]
    in_place: bool,
    #[command(flatten)]
    files: FilesArgs,
    #[command(flatten)]
    output: OutputArgs,
}

impl Args {
    pub(crate) fn run(&self, context: &mut Context) -> Result<(), Failure> {
        if self.output.output.is_some() && self.captures.len() > 1 {
            let problem = "-o names one file: give one capture, or leave -o out";
            return Err(Failure::Usage(problem.into()));
        }
        let mut values = Vec::new();
        for path in &self.captures {
            values.extend(self.symbolize(path, context)?);
        }
        match &values[..] {
            _ if !context.json() => Ok(()),
            [value] => context.print_json(value),
            _ => context.print_json(&Value::Array(values)),
        }
    }

    /// Symbolizes a capture. Returns what was done, for `--json`.
    fn symbolize(&self, path: &Path, context: &mut Context) -> Result<Option<Value>, Failure> {
        let out = self.destination(path)?;
        symbolize(path, &self.files, &out, context)
    }

    fn destination(&self, path: &Path) -> Result<Destination, Failure> {
        if !self.in_place {
            return self
                .output
                .or_beside(path, "symbolized", "bin")?
                .for_binary();
        }
        if is_stdin(path) {
            let problem = "standard input cannot be replaced: name a file with -o";
            return Err(Failure::Usage(problem.into()));
        }
        Destination::new(path, true)
    }
}

/// Writes the capture at `path` to `out`, with the names that `files` have. Returns what was done, for `--json`.
pub(super) fn symbolize(
    path: &Path,
    files: &FilesArgs,
    out: &Destination,
    context: &mut Context,
) -> Result<Option<Value>, Failure> {
    let mut capture = Capture::read_apart(path, Passes::Two, context)?;
    if capture.report.places.is_empty() {
        return Err(Failure::Capture {
            name: capture.name,
            problem: "it does not say where its code is: only captures of heapray do".into(),
        });
    }
    let mut named = files.names()?.name(&capture.report, context);
    let before = std::mem::replace(&mut capture.report, std::mem::take(&mut named.report));
    let report = &capture.report;
    say_strangers(report, &named, context);
    let lacks_all = |code: &ModuleCode| code.without_line == code.frames;
    if !has_more_names(&before, report) && code_of_modules(report).iter().any(lacks_all) {
        return Err(Failure::Other(format!(
            "{}: no names were found, because no file here has more of the same build than the capture. It has {}: name such \
             a file with --binary, or its directory with --debug-dir",
            capture.name,
            wanted(report, &named)
        )));
    }
    let version = capture.version;
    let events = capture.events(context)?;
    out.put(|mut out| match (capture.format, events) {
        (Format::AllAllocations, Some(events)) => {
            let events = events.map(|event| {
                let event = event.map_err(std::io::Error::other)?;
                Ok(named.event(event))
            });
            write_all(&capture.report, events, version, &mut out)
        }
        _ => write_aggregated(&capture.report, version, &mut out),
    })?;
    if context.json() {
        return Ok(Some(as_json(out, &capture, &named)));
    }
    out.path().map_or(Ok(()), |path| context.wrote(path))?;
    say_found(&capture.report, &named, context);
    Ok(None)
}

/// Returns whether `after` has names or lines that `before` lacks.
fn has_more_names(before: &Report, after: &Report) -> bool {
    let lines = |report: &Report| {
        let frames = report.frames.iter();
        frames.filter(|frame| frame.line > 0).count()
    };
    let offsets = |report: &Report| {
        let names = report.frames.iter().map(|frame| frame.function);
        names
            .filter(|&name| report.strings.get(name).contains("+0x"))
            .count()
    };
    lines(after) > lines(before) || offsets(after) < offsets(before)
}

fn as_json(out: &Destination, capture: &Capture, named: &NamedLater) -> Value {
    let module = |found: &FoundNames| {
        let module = capture.report.modules.get(found.module);
        let module = module.cloned().unwrap_or_default();
        json!({
            "path": module.path,
            "build_id": module.build_id,
            "htlhash": module.hash,
            "addresses": found.addresses,
            "with_function": found.named,
            "with_line": found.with_lines,
        })
    };
    let strangers = named.strangers.iter().map(
        |stranger| json!({ "path": stranger.path.to_string_lossy(), "build_id": stranger.id }),
    );
    json!({
        "capture": capture.name,
        "wrote": out.path().map(Path::to_string_lossy),
        "modules": named.modules.iter().map(module).collect::<Vec<_>>(),
        "not_used": strangers.collect::<Vec<_>>(),
    })
}
