//! The file. Each line is one write, so that the file can be read even if the process is killed.

use std::fmt::Write as _;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use heapray_report::memory_log::{self, Line, ReadError};

use super::name;
use crate::config::MemoryRole;

/// `.dat` file that is being written.
#[derive(Debug)]
pub struct LogFile {
    path: PathBuf,
    file: File,
    length: u64,
    line: String,
}

impl LogFile {
    /// Creates a new file in `directory`, which is made if it is missing, under a free name for the role.
    ///
    /// # Errors
    /// The error of the file system.
    pub fn create_in(directory: &Path, role: MemoryRole) -> io::Result<LogFile> {
        fs::create_dir_all(directory)?;
        // Absolute: a program may change its directory later.
        let directory = fs::canonicalize(directory)?;
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        let seconds = since.map_or(0, |since| since.as_secs() as i64);
        for n in 0..name::TRIES {
            match LogFile::create(&directory.join(name::file_name(role, seconds, n))) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                created => return created,
            }
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }

    /// Creates a new file.
    ///
    /// # Errors
    /// A file of that name exists already, or the file system has another error.
    pub fn create(path: &Path) -> io::Result<LogFile> {
        Ok(LogFile {
            file: create_new(path)?,
            path: path.to_owned(),
            length: 0,
            line: String::new(),
        })
    }

    /// Returns the file's path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the file's length in bytes.
    #[must_use]
    pub fn length(&self) -> u64 {
        self.length
    }

    /// Writes a line, all of it or nothing.
    ///
    /// # Errors
    /// The error of the file system. The file then ends with the line before.
    pub fn write(&mut self, line: &Line<'_>) -> io::Result<()> {
        self.line.clear();
        writeln!(self.line, "{line}").expect("a string takes everything");
        let written = self.file.write_all(self.line.as_bytes());
        match written {
            Ok(()) => self.length += self.line.len() as u64,
            // A full disk may take half a line. If the half line cannot be removed, readers ignore it.
            Err(_) => drop(self.file.set_len(self.length)),
        }
        written
    }

    /// Makes the file shorter: for each curve keeps the largest reading in every `step` seconds, and keeps the calls that
    /// took as long. A reader of the file gets the longer or the shorter one, whole.
    ///
    /// # Errors
    /// The error of the file system. The file is unchanged then.
    pub fn thin(&mut self, step: f64) -> io::Result<()> {
        let draft = self.path.with_extension("dat.tmp");
        let thinned = self.thin_to(&draft, step);
        if thinned.is_err() {
            // The draft may not even have been made.
            let _ = fs::remove_file(&draft);
        }
        thinned
    }

    fn thin_to(&mut self, draft: &Path, step: f64) -> io::Result<()> {
        // A file of that name was left by a crash of our own.
        let _ = fs::remove_file(draft);
        let file = create_new(draft)?;
        // The owner may have opened the file to other users. Keep its permissions.
        file.set_permissions(self.file.metadata()?.permissions())?;
        let mut out = BufWriter::new(file);
        let from = BufReader::new(File::open(&self.path)?);
        memory_log::thin(from, &mut out, step).map_err(|error| match error {
            ReadError::Io(error) => error,
            other => io::Error::new(io::ErrorKind::InvalidData, other),
        })?;
        let file = out.into_inner().map_err(io::IntoInnerError::into_error)?;
        let length = file.metadata()?.len();
        fs::rename(draft, &self.path)?;
        (self.file, self.length) = (file, length);
        Ok(())
    }
}

/// Creates a new file for this user alone: its first line is the command line, which may have secrets.
fn create_new(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.append(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use heapray_report::memory_log::{MemoryLog, Reading};

    fn directory(name: &str) -> PathBuf {
        let directory =
            std::env::temp_dir().join(format!("heapray-file-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&directory);
        directory
    }

    #[test]
    fn names_never_collide_and_directories_are_made() {
        let top = directory("names");
        let below = top.join("a/b");
        let names = [MemoryRole::Main, MemoryRole::Worker].map(|role| {
            let files = [0; 4].map(|_| LogFile::create_in(&below, role).unwrap());
            let mut names = files.map(|file| file.path().to_owned()).to_vec();
            names.dedup();
            names.len()
        });
        assert_eq!(names, [4, 4]);
        assert_eq!(fs::read_dir(&below).unwrap().count(), 8);
        fs::remove_dir_all(top).unwrap();
    }

    #[cfg(unix)]
    #[test]
    fn a_file_is_for_its_user_alone_and_stays_as_open_as_its_owner_made_it() {
        use std::os::unix::fs::PermissionsExt;
        let directory = directory("mode");
        let mut file = LogFile::create_in(&directory, MemoryRole::Main).unwrap();
        let path = file.path().to_owned();
        let mode = || fs::metadata(&path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(), 0o600);
        file.thin(1.0).unwrap();
        assert_eq!(mode(), 0o600);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        file.thin(1.0).unwrap();
        assert_eq!(mode(), 0o640);
        fs::remove_dir_all(directory).unwrap();
    }

    #[test]
    fn a_thinned_file_is_written_on() {
        let directory = directory("thin");
        let mut file = LogFile::create_in(&directory, MemoryRole::Main).unwrap();
        let line = |n: u32| {
            Line::Memory(Reading {
                mib: f64::from(n % 7),
                at: f64::from(n) / 10.0,
            })
        };
        for n in 0..1000 {
            file.write(&line(n)).unwrap();
        }
        let before = file.length();
        file.thin(1.0).unwrap();
        assert!(file.length() < before / 9);
        file.write(&line(1000)).unwrap();
        assert_eq!(file.length(), fs::metadata(file.path()).unwrap().len());
        let log = MemoryLog::read(BufReader::new(File::open(file.path()).unwrap())).unwrap();
        assert_eq!(log.memory.len(), 101);
        assert_eq!(fs::read_dir(&directory).unwrap().count(), 1);
        fs::remove_dir_all(directory).unwrap();
    }
}
