//! `heapray upload-symbols`

use std::path::{Path, PathBuf};
use std::time::Duration;

use heapray::symbolize::ElfFile;
use heapray_report::units::size;
use serde_json::{Value, json};

use crate::access::StoreAccessArgs;
use crate::context::Context;
use crate::failure::Failure;
use crate::stores::{DebugFile, Parca, Pyroscope, Server, Store, Upload, cannot_read};

/// Send the debug file of a build to a profile store, which then finds the names of profiles without any.
///
/// A profile of `?symbolize=false`, or of a service that looks up no symbols, has addresses and build ids. Parca and Pyroscope
/// turn them into functions and lines, if they have the program as it was built, or its debug file.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    store: StoreArgs,
    /// Programs or libraries as they were built, or debug files of them.
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    #[command(flatten)]
    access: StoreAccessArgs,
    /// Send a file even if the store has one of the same build.
    #[arg(long, short)]
    force: bool,
    /// Longest time for the store to answer, and to take a file, in seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 300, value_parser = clap::value_parser!(u64).range(1..=24 * 3600))]
    timeout: u64,
}

/// The store: one of them.
#[derive(Debug, clap::Args)]
#[group(required = true, multiple = false)]
struct StoreArgs {
    /// Address of a Parca.
    #[arg(long, value_name = "URL")]
    parca: Option<String>,
    /// Address of a Pyroscope.
    #[arg(long, value_name = "URL")]
    pyroscope: Option<String>,
}

impl Args {
    pub(crate) fn run(&self, context: &mut Context) -> Result<(), Failure> {
        // Nothing is sent if one of the files is of no use.
        let files: Vec<DebugFile> = self
            .files
            .iter()
            .map(|path| debug_file(path))
            .collect::<Result<_, _>>()?;
        let store = self.store()?;
        let mut values = Vec::new();
        for file in &files {
            if !file.elf.has_lines {
                context.note(&format!(
                    "{} has no debug information: {} will know functions, but no files and lines",
                    file.path.display(),
                    store.name()
                ));
            }
            let upload = store.upload(file, self.force, context)?;
            values.push(self.say(&*store, file, &upload, context)?);
        }
        if context.json() {
            context.print_json(&Value::Array(values))?;
        }
        Ok(())
    }

    fn store(&self) -> Result<Box<dyn Store>, Failure> {
        let server = |url: &str| {
            let timeout = Duration::from_secs(self.timeout);
            Server::new(url, self.access.headers(), timeout)
        };
        match (&self.store.parca, &self.store.pyroscope) {
            (Some(url), _) => Ok(Box::new(Parca(server(url)?))),
            (_, Some(url)) => Ok(Box::new(Pyroscope(server(url)?))),
            (None, None) => Err(Failure::Usage("give --parca or --pyroscope".into())),
        }
    }

    /// Says what became of a file. Returns it for `--json`.
    fn say(
        &self,
        store: &dyn Store,
        file: &DebugFile,
        upload: &Upload,
        context: &Context,
    ) -> Result<Value, Failure> {
        let path = file.path.display();
        let build_id = &file.elf.build_id;
        let (name, address) = (store.name(), store.address());
        let reason = match upload {
            Upload::Done => None,
            Upload::NotNeeded(reason) => Some(reason),
        };
        if !context.json() {
            match reason {
                None => context.print(&format!(
                    "Sent {path} to {name} at {address}: {}, build id {build_id}\n",
                    size(file.length)
                ))?,
                Some(reason) => context.note(&format!(
                    "{name} at {address} does not need {path} (build id {build_id}): {reason}"
                )),
            }
        }
        Ok(json!({
            "file": file.path.to_string_lossy(),
            "build_id": build_id,
            "bytes": file.length,
            "sent": reason.is_none(),
            "reason": reason,
        }))
    }
}

/// Returns the file at `path`, if a store can find names in it.
fn debug_file(path: &Path) -> Result<DebugFile, Failure> {
    let about = path.metadata().map_err(|error| cannot_read(path, error))?;
    let of_no_use = |why: &str| Failure::Other(format!("{}: {why}", path.display()));
    let elf = ElfFile::read(path)
        .ok_or_else(|| of_no_use("that is not a 64-bit ELF file that can be read"))?;
    if elf.build_id.is_empty() {
        return Err(of_no_use(
            "it has no build id, by which stores know it: link with `-C link-arg=-Wl,--build-id`",
        ));
    }
    if !elf.has_lines && !elf.has_functions {
        return Err(of_no_use(
            "it is stripped: give the program as it was built, or its debug file",
        ));
    }
    Ok(DebugFile {
        path: path.to_owned(),
        elf,
        length: about.len(),
    })
}
