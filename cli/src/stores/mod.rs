//! Profile stores that find the names of a profile's addresses themselves, once they have the debug file: Parca and Pyroscope.

mod parca;
mod pyroscope;

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Duration;

use heapray::symbolize::ElfFile;
use ureq::http::Response;
use ureq::typestate::WithBody;
use ureq::{Agent, Body, RequestBuilder};

use crate::context::Context;
use crate::failure::Failure;
use crate::http::{Headers, address, trusted_agent, with_headers};
pub(crate) use parca::Parca;
pub(crate) use pyroscope::Pyroscope;

/// A file with the names of a build.
#[derive(Debug)]
pub(crate) struct DebugFile {
    pub(crate) path: PathBuf,
    pub(crate) elf: ElfFile,
    /// Length in bytes.
    pub(crate) length: u64,
}

/// What became of a file.
#[derive(Debug)]
pub(crate) enum Upload {
    Done,
    /// The store has the names of this build, in its words.
    NotNeeded(String),
}

/// A store that takes debug files.
pub(crate) trait Store {
    /// Returns the store's name.
    fn name(&self) -> &'static str;

    /// Returns the store's address.
    fn address(&self) -> &str;

    /// Sends a file. `force`: also if the store has one of the same build.
    fn upload(&self, file: &DebugFile, force: bool, context: &Context) -> Result<Upload, Failure>;
}

/// The server of a store.
#[derive(Debug)]
pub(crate) struct Server {
    agent: Agent,
    base: String,
    headers: Headers,
}

impl Server {
    /// `answer`: how long it may take to answer, and to take a file.
    pub(crate) fn new(url: &str, headers: Headers, answer: Duration) -> Result<Server, Failure> {
        let agent = trusted_agent(answer).timeout_send_body(Some(answer));
        Ok(Server {
            agent: agent.build().new_agent(),
            base: address(url)?,
            headers,
        })
    }

    fn url(&self, path: &str) -> String {
        format!("{}/{path}", self.base)
    }

    fn post(&self, url: &str, content_type: &str) -> RequestBuilder<WithBody> {
        let request = self.agent.post(url).header("Content-Type", content_type);
        with_headers(request, &self.headers)
    }
}

impl DebugFile {
    /// Opens the file, behind a bar that shows what was read of it.
    fn open(&self, context: &Context) -> Result<impl Read + use<>, Failure> {
        let file = File::open(&self.path).map_err(|error| cannot_read(&self.path, error))?;
        let bar = context.progress("Uploading", Some(self.length));
        // No more than was announced, if it grows.
        Ok(bar.wrap_read(file.take(self.length)))
    }
}

/// Returns what became of a file that the store does not want, by the reason that the store gives.
fn unwanted(url: &str, reason: String) -> Result<Upload, Failure> {
    let has_it = reason.contains("already exists") || reason.contains("debuginfod");
    if has_it && !reason.contains("is marked as invalid") {
        return Ok(Upload::NotNeeded(reason));
    }
    Err(Failure::Other(format!(
        "{url}: the file is not wanted: {reason} (--force sends it nevertheless)"
    )))
}

/// Returns the failure for a server that speaks another protocol.
fn is_another_server(url: &str, name: &str) -> Failure {
    Failure::Other(format!(
        "{url}: it does not answer as {name} does: give the address at which {name} itself is"
    ))
}

pub(crate) fn cannot_read(path: &Path, error: std::io::Error) -> Failure {
    Failure::io(format!("cannot read {}", path.display()), error)
}

/// Largest answer of a store that is read.
const LONGEST_ANSWER: u64 = 1 << 20;

/// Returns the bytes of an answer.
fn bytes(url: &str, answer: Response<Body>) -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    let mut body = answer.into_body().into_reader().take(LONGEST_ANSWER);
    let read = body.read_to_end(&mut bytes);
    read.map_err(|error| Failure::io(format!("cannot read the answer of {url}"), error))?;
    Ok(bytes)
}
