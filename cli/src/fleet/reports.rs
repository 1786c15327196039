//! The reports of replicas: downloaded many at once, and read one at a time, so that memory does not grow with their number.

use std::fs::File;
use std::io::{self, Seek};
use std::panic::resume_unwind;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use heapray_report::Report;
use heapray_report::memray::{self, MemoryLimit, in_one_line};
use heapray_report::views::{Merger, of_replica};

use super::figures::Replica;
use crate::failure::Failure;
use crate::remote::{Remote, Session, copy, readable, too_large};

/// Downloads the report of a replica, of the session that runs, or else of the one that ended last, into a file without a
/// name.
pub(crate) fn download(
    replica: &Replica,
    remote: &Remote,
    max_size: u64,
    within: Duration,
) -> Result<File, Failure> {
    let failed = |error: io::Error| Failure::io("cannot download its report", readable(error));
    let session = if replica.is_running() {
        Session::Running
    } else {
        Session::Last
    };
    let (length, body) = remote.report(session, Some(within))?;
    if length.is_some_and(|length| length > max_size) {
        return Err(failed(too_large(max_size)));
    }
    let mut file = tempfile::tempfile().map_err(failed)?;
    copy(body, &mut file, max_size).map_err(failed)?;
    file.rewind().map_err(failed)?;
    Ok(file)
}

/// Reads a report. One that is cut off is an error: its sums would be too small.
pub(crate) fn read(file: File, memory: MemoryLimit) -> Result<Report, Failure> {
    let capture = memray::read_file_within(file, memory);
    let capture = capture.map_err(|error| Failure::reading("its report", error))?;
    if capture.complete {
        return Ok(capture.report);
    }
    let problem = capture.report.conditions.notes.last().cloned();
    Err(Failure::Capture {
        name: "its report".into(),
        problem: problem.unwrap_or_else(|| "it is not complete".into()),
    })
}

/// Calls `download` with a function that adds the report of a replica to those of the others, and waits until it is read.
/// Returns what `download` returns, and the sum.
///
/// All are read on one thread: what the allocator keeps for each thread would otherwise add up.
pub(crate) fn merged<R>(
    memory: MemoryLimit,
    download: impl FnOnce(&(dyn Fn(&str, File) -> Result<(), Failure> + Sync)) -> R,
) -> (R, Merger) {
    type Read = Result<(), Failure>;
    thread::scope(|scope| {
        let (send, files) = mpsc::channel::<(String, File, mpsc::Sender<Read>)>();
        let reading = scope.spawn(move || {
            let mut merger = Merger::default();
            for (name, file, done) in files {
                let read = read(file, memory).map(|mut report| {
                    of_replica(&mut report, &in_one_line(&name));
                    merger.add(report);
                });
                // The one who has sent it waits.
                let _ = done.send(read);
            }
            merger
        });
        let gone = || Failure::Other("its report was not read".into());
        let downloaded = download(&|name, file| {
            let (done, is_read) = mpsc::channel();
            let sent = send.send((name.to_owned(), file, done));
            sent.map_err(|_| gone())?;
            is_read.recv().map_err(|_| gone())?
        });
        drop(send);
        let merger = reading.join();
        (
            downloaded,
            merger.unwrap_or_else(|panic| resume_unwind(panic)),
        )
    })
}
