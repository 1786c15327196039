//! Reads the memory log's file, once however many clients ask: a request reads only what was added since.
//!
//! This runs on a thread of its own: the first reading of a long log takes a second, and status requests must not wait for it.

use std::fmt;
use std::fs::File;
use std::hash::Hasher;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;
use std::sync::Arc;

use heapray_report::error_chain;
use heapray_report::memory_log::{Digest, DigestLimits, Digesting};
use twox_hash::XxHash3_64;

use super::Error;
use super::lock::{Lock, Rank};
use super::worker::Worker;
use crate::profiler::store::{Label, Output};

/// Bytes read at once.
const PIECE: usize = 256 << 10;
/// Bytes of the longest line.
const LONGEST: usize = 1 << 20;

/// The log as far as it was read, and the thread that reads it.
pub(crate) struct LogReader {
    thread: Worker,
    known: Lock<Option<Known>>,
}

/// A file up to its last whole line.
struct Known {
    file: Arc<File>,
    number: FileNumber,
    len: u64,
    hash: XxHash3_64,
    /// The digest, or why there is none.
    digest: Result<Digesting, String>,
}

/// The file's device and inode: a log that has grown long is replaced by a shorter one of the same name.
#[cfg(unix)]
type FileNumber = (u64, u64);
#[cfg(not(unix))]
type FileNumber = ();

impl fmt::Debug for LogReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LogReader").finish_non_exhaustive()
    }
}

impl LogReader {
    pub(crate) fn new() -> io::Result<LogReader> {
        Ok(LogReader {
            thread: Worker::spawn("heapray-timeline")?,
            known: Lock::new(Rank::MemoryLog, None),
        })
    }

    /// Does `job`, which reads the log, on the log's thread.
    pub(crate) async fn read<T: Send + 'static>(
        &self,
        job: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Error> {
        self.thread.read(job).await
    }

    /// The file up to its last whole line.
    pub(crate) fn file(
        &self,
        path: &Path,
        label: Label,
        limits: &DigestLimits,
    ) -> io::Result<Output> {
        self.up_to_now(path, limits, |known| {
            let file = Arc::clone(&known.file);
            Ok(Output::beginning_of(
                file,
                label,
                known.len,
                known.hash.finish(),
            ))
        })
    }

    /// Returns the digest of the log. `limits` must always be the same.
    pub(crate) fn digest(&self, path: &Path, limits: &DigestLimits) -> io::Result<Digest> {
        self.up_to_now(path, limits, |known| match &known.digest {
            Ok(digest) => Ok(digest.digest()),
            Err(reason) => Err(io::Error::other(reason.clone())),
        })
    }

    fn up_to_now<T>(
        &self,
        path: &Path,
        limits: &DigestLimits,
        take: impl FnOnce(&Known) -> io::Result<T>,
    ) -> io::Result<T> {
        let mut slot = self.known.lock();
        let file = File::open(path)?;
        let (number, len) = (number(&file)?, file.metadata()?.len());
        let known = slot
            .take()
            .filter(|known| known.number == number && known.len <= len);
        let mut known = known.unwrap_or_else(|| Known {
            file: Arc::new(file),
            number,
            len: 0,
            hash: XxHash3_64::new(),
            digest: Ok(Digesting::new(*limits)),
        });
        // Only up to here: otherwise a log that grows could keep us reading.
        known.read_to(len)?;
        take(slot.insert(known))
    }
}

impl Known {
    fn read_to(&mut self, end: u64) -> io::Result<()> {
        let mut file = &*self.file;
        file.seek(SeekFrom::Start(self.len))?;
        let mut from = file.take(end.saturating_sub(self.len));
        // Bytes that were read after the last whole line.
        let mut rest = Vec::new();
        let mut all = self.hash.clone();
        let mut length = self.len;
        let mut buffer = vec![0; PIECE.min(usize::try_from(from.limit()).unwrap_or(PIECE))];
        loop {
            let count = from.read(&mut buffer)?;
            if count == 0 {
                return Ok(());
            }
            let read = &buffer[..count];
            let last = read.iter().rposition(|&byte| byte == b'\n');
            let (lines, begun) = read.split_at(last.map_or(0, |last| last + 1));
            all.write(lines);
            length += lines.len() as u64;
            if !lines.is_empty() {
                (self.hash, self.len) = (all.clone(), length);
                if let Ok(digest) = &mut self.digest {
                    let added = digest.read(rest[..].chain(lines));
                    if let Err(error) = added {
                        self.digest = Err(error_chain(&error).to_string());
                    }
                }
                rest.clear();
            }
            all.write(begun);
            length += begun.len() as u64;
            if rest.len() + begun.len() <= LONGEST {
                rest.extend_from_slice(begun);
            } else {
                self.digest = Err(format!("a line is longer than {LONGEST} bytes"));
            }
        }
    }
}

fn number(file: &File) -> io::Result<FileNumber> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        let metadata = file.metadata()?;
        Ok((metadata.dev(), metadata.ino()))
    }
    #[cfg(not(unix))]
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{Digest, DigestLimits, Label, LogReader, PIECE};
    use crate::profiler::store::{OutputKey, OutputKind};
    use heapray_report::formats::Format;
    use std::fs::{self, OpenOptions};
    use std::io::{Read, Write};
    use std::path::PathBuf;
    use std::time::SystemTime;

    const LIMITS: DigestLimits = DigestLimits {
        readings: 100,
        children: 2,
        functions: 2,
    };

    struct Log(PathBuf, LogReader);

    impl Log {
        fn new(name: &str) -> Log {
            let name = format!("log-reader-{name}-{}", std::process::id());
            let path = std::env::temp_dir().join(name);
            fs::write(&path, "").unwrap();
            Log(path, LogReader::new().unwrap())
        }

        fn add(&self, text: &str) {
            let mut file = OpenOptions::new().append(true).open(&self.0).unwrap();
            file.write_all(text.as_bytes()).unwrap();
        }

        /// Both answers are those of a reader who has never read before.
        #[track_caller]
        fn is_read_as_anew(&self) {
            let label = Label {
                key: OutputKey::new(OutputKind::File(Format::Mprof)),
                taken: SystemTime::now(),
                snapshot: true,
            };
            let read = |reader: &LogReader| {
                let mut output = reader.file(&self.0, label, &LIMITS).unwrap();
                let mut text = String::new();
                output.read_to_string(&mut text).unwrap();
                let digest = reader.digest(&self.0, &LIMITS).map_err(drop);
                (text, output.checksum(), digest)
            };
            let anew = read(&LogReader::new().unwrap());
            assert_eq!(read(&self.1), anew);
            let whole = fs::read(&self.0).unwrap();
            let last = whole.iter().rposition(|&byte| byte == b'\n');
            let lines = &whole[..last.map_or(0, |last| last + 1)];
            assert_eq!(anew.0.as_bytes(), lines);
            let digest = Digest::read(lines, &LIMITS).map_err(drop);
            assert_eq!(anew.2, digest);
        }
    }

    impl Drop for Log {
        fn drop(&mut self) {
            let _ = fs::remove_file(&self.0);
        }
    }

    #[test]
    fn what_is_added_is_read_when_it_is_whole() {
        let log = Log::new("added");
        log.is_read_as_anew();
        for text in [
            "CMDLINE x",
            " y\nMEM 1 1\nME",
            "",
            "M 2 2\n",
            "FUNC f 1 1 2 2 0\n",
        ] {
            log.add(text);
            log.is_read_as_anew();
        }
        let long: String = (0..PIECE / 4)
            .map(|at| format!("MEM {at} {at}\n"))
            .collect();
        log.add(&long);
        log.add("MEM 5");
        log.is_read_as_anew();
        log.add(".5 999999\n");
        log.is_read_as_anew();
    }

    #[test]
    fn a_shorter_file_or_another_one_is_read_from_its_beginning() {
        let log = Log::new("replaced");
        log.add("MEM 1 1\nMEM 2 2\n");
        log.is_read_as_anew();
        fs::write(&log.0, "MEM 7 7\n").unwrap();
        log.is_read_as_anew();
        let draft = log.0.with_extension("draft");
        fs::write(&draft, "MEM 8 1\nMEM 9 2\nMEM 10 3\n").unwrap();
        fs::rename(&draft, &log.0).unwrap();
        log.is_read_as_anew();
    }

    #[test]
    fn lines_that_mean_nothing_leave_the_file_to_be_had() {
        let log = Log::new("damaged");
        log.add("MEM 1 1\nMEM one two\n");
        log.is_read_as_anew();
        log.add("MEM 3 3\n");
        log.is_read_as_anew();
        let log = Log::new("endless");
        log.add(&"x".repeat(3 << 20));
        let digest = log.1.digest(&log.0, &LIMITS);
        assert!(digest.is_err(), "{digest:?}");
    }
}
