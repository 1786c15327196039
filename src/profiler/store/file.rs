//! One file: written under a temporary name, remembered by length and checksum, read without moving a cursor.

use std::fs::{self, File, OpenOptions};
use std::hash::Hasher;
use std::io::{self, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use twox_hash::XxHash3_64;

use super::{OutputKey, OutputKind, name};
use crate::os::held;

/// The properties of an output that are known before its first byte.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Label {
    /// What it is.
    pub(crate) key: OutputKey,
    /// The moment that it describes.
    pub(crate) taken: SystemTime,
    /// Whether the session went on after that moment.
    pub(crate) snapshot: bool,
}

/// A finished report, flame graph or statistics text, open for reading. Cheap to clone; it stays readable even when a
/// new session has replaced its file.
#[derive(Debug, Clone)]
pub struct Output {
    pub(super) file: Arc<File>,
    pub(super) label: Label,
    pub(super) len: u64,
    pub(super) hash: u64,
    pub(super) position: u64,
}

impl Output {
    /// Returns the first `len` bytes of a file that somebody else goes on writing; `hash` is their checksum.
    pub(crate) fn beginning_of(file: Arc<File>, label: Label, len: u64, hash: u64) -> Output {
        Output {
            file,
            label,
            len,
            hash,
            position: 0,
        }
    }

    /// Returns the first `len` bytes of a file that another process has opened and described.
    pub(crate) fn opened(file: Arc<File>, len: u64) -> Output {
        let label = Label {
            key: OutputKey::new(OutputKind::Report),
            taken: SystemTime::UNIX_EPOCH,
            snapshot: false,
        };
        Output::beginning_of(file, label, len, 0)
    }

    /// What it is.
    #[must_use]
    pub fn kind(&self) -> OutputKind {
        self.label.key.kind()
    }

    /// Returns its length in bytes.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Returns whether it has no bytes at all.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the moment that it describes: the end of the session, or when the snapshot was taken.
    #[must_use]
    pub fn taken(&self) -> SystemTime {
        self.label.taken
    }

    /// Returns whether the session was still recording: a consistent view up to [`Output::taken`], but not the final one.
    #[must_use]
    pub fn is_snapshot(&self) -> bool {
        self.label.snapshot
    }

    pub(crate) fn file(&self) -> &File {
        &self.file
    }

    /// Returns the XXH3 of its bytes, 64 bits.
    #[must_use]
    pub fn checksum(&self) -> u64 {
        self.hash
    }

    /// Reads at `offset`, without a cursor. If there are fewer bytes than there should be, that is an error: somebody has cut
    /// the file.
    pub(crate) fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        #[cfg(unix)]
        {
            std::os::unix::fs::FileExt::read_exact_at(&*self.file, buffer, offset)
        }
        #[cfg(not(unix))]
        {
            use std::io::{Seek, SeekFrom};
            let mut file = self.file.try_clone()?;
            file.seek(SeekFrom::Start(offset))?;
            file.read_exact(buffer)
        }
    }
}

impl Read for Output {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = self.len.saturating_sub(self.position);
        let count = usize::try_from(left)
            .unwrap_or(usize::MAX)
            .min(buffer.len());
        self.read_at(&mut buffer[..count], self.position)?;
        self.position += count as u64;
        Ok(count)
    }
}

impl Seek for Output {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let position = match to {
            SeekFrom::Start(position) => Some(position),
            SeekFrom::Current(by) => self.position.checked_add_signed(by),
            SeekFrom::End(by) => self.len.checked_add_signed(by),
        };
        let before = || io::Error::from(io::ErrorKind::InvalidInput);
        self.position = position.ok_or_else(before)?;
        Ok(self.position)
    }
}

/// A file that is being written, under a temporary name.
pub(crate) struct Draft {
    path: PathBuf,
    file: BufWriter<Hashed>,
}

impl Draft {
    /// Creates an empty draft in `directory`.
    pub(crate) fn new(directory: &Path) -> io::Result<Draft> {
        let (path, file) = held::create(directory, name::draft)?;
        Ok(Draft {
            path,
            file: BufWriter::with_capacity(256 << 10, Hashed::new(file)),
        })
    }

    /// Makes writing more than so many bytes fail ([`is_too_long`]).
    pub(crate) fn at_most(mut self, bytes: u64) -> Draft {
        let limit = &mut self.file.get_mut().limit;
        *limit = bytes.min(*limit);
        self
    }

    /// Waits until everything written is on disk.
    pub(crate) fn sync(&mut self) -> io::Result<()> {
        self.file.flush()?;
        self.file.get_ref().file.sync_all()
    }

    /// Renames a synced draft to its final name, replacing a former file there in one step: after a crash one of the two is
    /// there, whole.
    pub(crate) fn publish(self, label: Label, directory: &Path) -> io::Result<(Stored, Output)> {
        let path = directory.join(label.key.stored_name());
        fs::rename(&self.path, &path)?;
        // The new name is on disk once the directory is. Some file systems refuse to sync a directory; the rename holds.
        let _ = File::open(directory).and_then(|directory| directory.sync_all());
        let output = self.output(label)?;
        let stored = Stored {
            path,
            label,
            len: output.len,
            hash: output.hash,
            stamp: None,
            own: Some(Arc::clone(&output.file)),
        };
        Ok((stored, output))
    }

    /// Writes out what is buffered. The file keeps its temporary name as long as the draft lives.
    pub(crate) fn written(&mut self, label: Label) -> io::Result<Output> {
        self.file.flush()?;
        self.output(label)
    }

    /// Returns its present path.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Renames it to `name` in `directory`, replacing a former file there in one step. Returns its length.
    pub(crate) fn place(mut self, directory: &Path, name: &str) -> io::Result<u64> {
        self.sync()?;
        fs::rename(&self.path, directory.join(name))?;
        Ok(self.file.get_ref().len)
    }

    /// Removes its name: the file lives as long as somebody reads it.
    pub(crate) fn detach(mut self, label: Label) -> io::Result<Output> {
        self.file.flush()?;
        self.output(label)
    }

    fn output(&self, label: Label) -> io::Result<Output> {
        let written = self.file.get_ref();
        Ok(Output {
            file: Arc::new(written.file.try_clone()?),
            label,
            len: written.len,
            hash: written.hash.finish(),
            position: 0,
        })
    }
}

impl Write for Draft {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        // After publishing, nothing has that name any more.
        let _ = fs::remove_file(&self.path);
    }
}

/// A published file as it was when it was written.
#[derive(Debug, Clone)]
pub(crate) struct Stored {
    path: PathBuf,
    label: Label,
    len: u64,
    hash: u64,
    /// The file's stamp when its bytes were last known to be right; `None` if that was so soon after a change that another
    /// change could give the same stamp.
    stamp: Option<Stamp>,
    /// The file, if it is this process's own. Another process may put its own in the same place.
    own: Option<Arc<File>>,
}

impl Stored {
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    pub(crate) fn label(&self) -> Label {
        self.label
    }

    pub(crate) fn checksum(&self) -> u64 {
        self.hash
    }

    /// Returns a file whose length and checksum were noted by another process or an earlier session.
    pub(super) fn noted(path: PathBuf, label: Label, len: u64, hash: u64) -> Stored {
        Stored {
            path,
            label,
            len,
            hash,
            stamp: None,
            own: None,
        }
    }

    /// Removes the file, unless another one is in its place.
    pub(super) fn remove(&self) {
        let is_own = |file: &Path| {
            let found = fs::symlink_metadata(file).ok();
            found.zip(self.own.as_ref()?.metadata().ok())
        };
        let is_own = |file: &Path| is_own(file).is_some_and(|(a, b)| is_same(&a, &b));
        if !is_own(&self.path) {
            return;
        }
        // Renamed first: another process may put its own there at any moment.
        let aside = self.path.with_file_name(name::draft());
        if fs::rename(&self.path, &aside).is_ok() {
            if !is_own(&aside) {
                // Without hard links, the other process makes its own again when it is asked for.
                let _ = fs::hard_link(&aside, &self.path);
            }
            let _ = fs::remove_file(&aside);
        }
    }

    /// Opens it if nobody has touched it since. Quick: compares its times, inode and length, not its bytes.
    pub(crate) fn open(&self) -> io::Result<Option<Output>> {
        let output = self.open_unchecked()?;
        let untouched = self.stamp.as_ref() == Some(&Stamp::of(&output.file)?);
        Ok(untouched.then_some(output))
    }

    /// Opens it if its bytes are still those that were written. Reads it all.
    pub(crate) fn open_and_verify(&mut self) -> io::Result<Option<Output>> {
        if let Some(output) = self.open()? {
            return Ok(Some(output));
        }
        let mut output = self.open_unchecked()?;
        let stamp = Stamp::of(&output.file)?;
        if stamp.len != self.len {
            return Ok(None);
        }
        let mut check = Hashed::new(io::sink());
        io::copy(&mut output, &mut check)?;
        output.position = 0;
        if (check.len, check.hash.finish()) != (self.len, self.hash) {
            return Ok(None);
        }
        self.stamp = stamp.settled();
        Ok(Some(output))
    }

    pub(super) fn open_unchecked(&self) -> io::Result<Output> {
        let file = match &self.own {
            // Another process's report may be there by now, but nothing else: a user who removes the file, or puts a link
            // in its place, wants it made again.
            Some(own) if fs::symlink_metadata(&self.path)?.is_file() => Arc::clone(own),
            Some(_) => return Err(io::ErrorKind::NotFound.into()),
            None => Arc::new(open(&self.path)?),
        };
        Ok(Output {
            file,
            label: self.label,
            len: self.len,
            hash: self.hash,
            position: 0,
        })
    }
}

/// Returns whether both are the same file, maybe under two names.
pub(super) fn is_same(one: &fs::Metadata, other: &fs::Metadata) -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        (one.dev(), one.ino()) == (other.dev(), other.ino())
    }
    #[cfg(not(unix))]
    {
        let _ = (one, other);
        true
    }
}

/// A file's metadata that change when the file is touched.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Stamp {
    len: u64,
    modified: Option<SystemTime>,
    /// Device, inode, change time.
    #[cfg(unix)]
    inode: (u64, u64, i64, i64),
}

/// File times advance in steps: by a timer's tick on many file systems, by two seconds on the coarsest.
const TIME_STEP: Duration = Duration::from_secs(2);

impl Stamp {
    fn of(file: &File) -> io::Result<Stamp> {
        let metadata = file.metadata()?;
        Ok(Stamp {
            len: metadata.len(),
            modified: metadata.modified().ok(),
            #[cfg(unix)]
            inode: {
                use std::os::unix::fs::MetadataExt;
                // The change time cannot be set back as the modification time can.
                (
                    metadata.dev(),
                    metadata.ino(),
                    metadata.ctime(),
                    metadata.ctime_nsec(),
                )
            },
        })
    }

    /// Returns the stamp, if every later change must give another one: git's "racy" problem.
    fn settled(self) -> Option<Stamp> {
        #[cfg(unix)]
        let changed = {
            let (_, _, seconds, nanoseconds) = self.inode;
            let seconds = Duration::from_secs(u64::try_from(seconds).ok()?);
            SystemTime::UNIX_EPOCH
                + seconds
                + Duration::from_nanos(u64::try_from(nanoseconds).ok()?)
        };
        #[cfg(not(unix))]
        let changed = self.modified?;
        let age = SystemTime::now().duration_since(changed).ok()?;
        (age > TIME_STEP).then_some(self)
    }
}

/// Opens a file to read. Does not follow a link, nor block on a pipe, that somebody put in its place.
pub(super) fn open(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::custom_flags(
        &mut options,
        libc::O_NOFOLLOW | libc::O_NONBLOCK,
    );
    options.open(path)
}

/// A new file in `directory` that takes room, and where it is. It is this process's as long as it is open; after a crash it
/// goes as drafts do.
pub(crate) fn room(directory: &Path) -> io::Result<(PathBuf, File)> {
    held::create(directory, name::draft)
}

/// Whether a draft was to grow above its limit.
pub(crate) fn is_too_long(error: &io::Error) -> bool {
    error.raw_os_error() == Some(libc::EFBIG)
}

/// Counts and sums up what goes through, and stops short of the process's file size limit.
struct Hashed<W = File> {
    file: W,
    len: u64,
    hash: XxHash3_64,
    limit: u64,
}

impl<W> Hashed<W> {
    fn new(file: W) -> Hashed<W> {
        Hashed {
            file,
            len: 0,
            hash: XxHash3_64::new(),
            limit: crate::os::file::file_size_limit(),
        }
    }
}

impl<W: Write> Write for Hashed<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.len + bytes.len() as u64 > self.limit {
            return Err(crate::os::file::too_large());
        }
        let count = self.file.write(bytes)?;
        self.hash.write(&bytes[..count]);
        self.len += count as u64;
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}
