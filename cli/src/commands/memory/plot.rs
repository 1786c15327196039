//! `heapray memory plot`

use std::fs::File;
use std::io::{BufReader, Write};
use std::path::{Path, PathBuf};

use heapray_report::memory_log::{MemoryLog, ReadError};

use crate::context::Context;
use crate::failure::Failure;
use crate::input;
use crate::output::OutputArgs;
use crate::plot::{self, Figure, Options, Source};

/// Draw memory over time: files of heapray's memory log, of `heapray memory run`, and of `mprof run`.
///
/// To the terminal, or with -o to a file: a picture like that of `mprof plot`, SVG or PNG by the file's name.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The files; `-` is standard input.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    #[command(flatten)]
    output: OutputArgs,
    /// Functions as a flame graph over time, instead of brackets.
    #[arg(long)]
    flame: bool,
    /// A trend line, and its slope in MiB per second: above 0, memory grows.
    #[arg(long, short)]
    slope: bool,
    /// The title; otherwise the command line.
    #[arg(long, short)]
    title: Option<String>,
    /// Seconds since the first reading, from A to B.
    #[arg(long, short, value_name = "A,B", value_parser = window, allow_hyphen_values = true)]
    window: Option<(f64, f64)>,
    /// No functions, and no lines at the peak.
    #[arg(long, short, visible_alias = "no-function-ts")]
    no_functions: bool,
}

fn window(text: &str) -> Result<(f64, f64), String> {
    let number = |text: &str| text.trim().parse::<f64>().ok().filter(|n| n.is_finite());
    let ends = text
        .split_once(',')
        .and_then(|(a, b)| number(a).zip(number(b)));
    ends.filter(|(a, b)| a < b)
        .ok_or_else(|| "must be two numbers, the smaller first, such as 0,20.5".into())
}

impl Args {
    pub(super) fn run(&self, context: &mut Context) -> Result<(), Failure> {
        let out = match &self.output.output {
            None => None,
            Some(path) => Some((Picture::of(path)?, self.output.or_stdout()?)),
        };
        let sources = self.files.iter().map(|path| read(path, context));
        let sources = sources.collect::<Result<Vec<_>, _>>()?;
        // Of many files, such as those of many short programs, some may be empty.
        let (empty, sources): (Vec<_>, Vec<_>) = sources
            .into_iter()
            .partition(|source| source.log.memory.is_empty());
        let empty: Vec<String> = empty.into_iter().map(|source| source.name).collect();
        if sources.is_empty() {
            return Err(Failure::Capture {
                name: empty.join(", "),
                problem: NO_READING.to_owned(),
            });
        }
        for name in empty {
            context.note(&format!("{name} is left out: {NO_READING}"));
        }
        let options = Options {
            flame: self.flame,
            slope: self.slope,
            title: self.title.clone(),
            window: self.window,
            functions: !self.no_functions && sources.len() == 1,
        };
        let figure = Figure::of(&sources, &options);
        match out {
            None => {
                let width = context.width().min(MOST_COLUMNS);
                let text = plot::terminal(&figure, width, context.colour());
                context.print(&text)
            }
            Some((Picture::Svg, out)) => {
                let svg = plot::svg(&figure);
                out.write(context, |out| out.write_all(svg.as_bytes()))
            }
            Some((Picture::Png, out)) => {
                let png = plot::png(&plot::svg(&figure)).map_err(Failure::Other)?;
                out.for_binary()?
                    .write(context, |out: &mut dyn Write| out.write_all(&png))
            }
        }
    }
}

const NO_READING: &str = "there is no reading of memory in it (no MEM line)";

/// Columns of a plot without a terminal.
const MOST_COLUMNS: usize = 200;

#[derive(Debug, Clone, Copy)]
enum Picture {
    Svg,
    Png,
}

impl Picture {
    fn of(path: &Path) -> Result<Picture, Failure> {
        let extension = path.extension().unwrap_or_default().to_ascii_lowercase();
        match extension.to_str() {
            Some("png") => Ok(Picture::Png),
            Some("svg") => Ok(Picture::Svg),
            _ if input::is_stdin(path) => Ok(Picture::Svg),
            _ => Err(Failure::Usage(format!(
                "{}: pictures are .svg or .png",
                path.display()
            ))),
        }
    }
}

fn read(path: &Path, context: &mut Context) -> Result<Source, Failure> {
    let name = input::named(path).display().to_string();
    let read = if input::is_stdin(path) {
        MemoryLog::read(std::io::stdin().lock())
    } else {
        let open = File::open(path).map_err(ReadError::Io);
        open.and_then(|file| MemoryLog::read(BufReader::new(file)))
    };
    let log = read.map_err(|error| match error {
        ReadError::Io(error) => Failure::io(format!("cannot read {name}"), error),
        error => Failure::Capture {
            name: name.clone(),
            problem: error.to_string(),
        },
    })?;
    if let Some(cut) = &log.cut {
        context.cut_short(&name, &cut.to_string());
    }
    Ok(Source { name, log })
}
