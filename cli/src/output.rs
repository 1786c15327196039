//! Writes results to standard output, or to a file that appears whole or not at all and overwrites nothing without `-f`.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::{Path, PathBuf};

use crate::context::{Context, printing};
use crate::failure::Failure;
use crate::input;
use crate::leftovers::Temporary;

/// `-o` and `-f`.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct OutputArgs {
    /// The file to write; `-` is standard output.
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Overwrite the file if there is one.
    #[arg(long, short)]
    pub(crate) force: bool,
}

/// Destination of a result. Made before the work is done, so that nobody waits for a result that cannot be written.
#[derive(Debug)]
pub(crate) enum Destination {
    Stdout,
    /// A device or a pipe, which is written to directly.
    Device(PathBuf),
    File {
        path: PathBuf,
        force: bool,
    },
}

impl OutputArgs {
    /// Returns standard output, unless `-o` names something else.
    pub(crate) fn or_stdout(&self) -> Result<Destination, Failure> {
        match &self.output {
            Some(path) => Destination::new(path, self.force),
            None => Ok(Destination::Stdout),
        }
    }

    /// Returns a file beside the capture, unless `-o` names something else: for `memray-web.bin` the file of memray's
    /// command of the same name, `memray-flamegraph-web.html`.
    pub(crate) fn or_beside(
        &self,
        capture: &Path,
        what: &str,
        extension: &str,
    ) -> Result<Destination, Failure> {
        match &self.output {
            Some(path) => Destination::new(path, self.force),
            None => Destination::beside(&input::named(capture), what, extension, self.force),
        }
    }
}

/// Applies memray's rule: the extension is replaced, `memray-` is put before it once, and the name of the report in between.
fn beside(capture: &Path, what: &str, extension: &str) -> PathBuf {
    let stem = capture.file_stem().unwrap_or_default().to_string_lossy();
    let stem = stem.strip_prefix("memray-").unwrap_or(&stem);
    capture.with_file_name(format!("memray-{what}-{stem}.{extension}"))
}

impl Destination {
    pub(crate) fn new(path: &Path, force: bool) -> Result<Destination, Failure> {
        if input::is_stdin(path) {
            return Ok(Destination::Stdout);
        }
        // Follows links: their target is replaced, not the link.
        let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
        match fs::metadata(&path) {
            Ok(metadata) if metadata.is_dir() => {
                Err(Failure::writing(&path, io::ErrorKind::IsADirectory.into()))
            }
            Ok(metadata) if !metadata.is_file() => Ok(Destination::Device(path)),
            Ok(_) if !force => Err(exists(&path)),
            _ => Ok(Destination::File { path, force }),
        }
    }

    /// Returns a file beside the capture, with memray's name.
    pub(crate) fn beside(
        capture: &Path,
        what: &str,
        extension: &str,
        force: bool,
    ) -> Result<Destination, Failure> {
        Destination::new(&beside(capture, what, extension), force)
    }

    /// Refuses to write binary data to a terminal.
    pub(crate) fn for_binary(self) -> Result<Destination, Failure> {
        if matches!(self, Destination::Stdout) && io::stdout().is_terminal() {
            return Err(Failure::Usage(
                "this format is not for terminals: name a file with -o, or pipe it on".into(),
            ));
        }
        Ok(self)
    }

    /// Lets `write` write, and prints the file of the result.
    pub(crate) fn write(
        &self,
        context: &Context,
        write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> Result<(), Failure> {
        self.put(write)?;
        self.path().map_or(Ok(()), |path| context.wrote(path))
    }

    /// Returns the file, if it is one.
    pub(crate) fn path(&self) -> Option<&Path> {
        match self {
            Destination::File { path, .. } => Some(path),
            Destination::Stdout | Destination::Device(_) => None,
        }
    }

    /// Lets `write` write, and prints nothing.
    pub(crate) fn put(
        &self,
        write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> Result<(), Failure> {
        match self {
            Destination::Stdout => {
                let mut out = BufWriter::new(io::stdout().lock());
                let written = write(&mut out).and_then(|()| out.flush());
                written.map_err(printing)
            }
            Destination::Device(path) => {
                let write_to = |file: File| {
                    let mut out = BufWriter::new(file);
                    write(&mut out).and_then(|()| out.flush())
                };
                let opened = OpenOptions::new().write(true).open(path);
                opened
                    .and_then(write_to)
                    .map_err(|error| Failure::writing(path, error))
            }
            Destination::File { path, force } => replace(path, *force, write),
        }
    }
}

/// Writes a temporary file beside `path`, and renames it once all of it is on disk.
fn replace(
    path: &Path,
    force: bool,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<(), Failure> {
    let failed = |error| Failure::writing(path, error);
    let mut out = BufWriter::with_capacity(1 << 16, Temporary::beside(path).map_err(failed)?);
    write(&mut out).map_err(failed)?;
    let file = out
        .into_inner()
        .map_err(|error| failed(error.into_error()))?;
    keep(file, path, force)
}

/// Gives a temporary file its name.
pub(crate) fn keep(file: Temporary, path: &Path, force: bool) -> Result<(), Failure> {
    file.keep(path, force).map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => exists(path),
        _ => Failure::writing(path, error),
    })
}

fn exists(path: &Path) -> Failure {
    Failure::Other(format!(
        "{} exists already: overwrite it with -f, or name another with -o",
        path.display()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_is_named_as_memray_names_it() {
        for (capture, report) in [
            ("memray-web.12.bin", "memray-flamegraph-web.12.html"),
            ("dir/memray-report.bin", "dir/memray-flamegraph-report.html"),
            ("/tmp/x", "/tmp/memray-flamegraph-x.html"),
        ] {
            let beside = beside(Path::new(capture), "flamegraph", "html");
            assert_eq!(beside, Path::new(report));
        }
    }
}
