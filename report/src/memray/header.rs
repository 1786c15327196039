//! The header, the same for both bodies (capture format, section 1).

use std::io::Read;

use super::codec::put_cstr;
use super::error::ReadError;
use super::limit::{Budget, in_list};
use super::names;
use super::source::{Decoded, Source, Stop, damaged};
use crate::model::About;

/// Version of the capture format. memray reads only the version that it writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Version {
    /// memray 1.19.
    V12,
    /// memray 1.20.
    #[default]
    V13,
}

impl Version {
    /// Returns the number in the file.
    #[must_use]
    pub const fn number(self) -> i32 {
        match self {
            Version::V12 => 12,
            Version::V13 => 13,
        }
    }

    /// Returns the version with this number.
    #[must_use]
    pub const fn from_number(number: i32) -> Option<Version> {
        match number {
            12 => Some(Version::V12),
            13 => Some(Version::V13),
            _ => None,
        }
    }
}

/// Number of the all-allocations body.
pub(super) const ALL_ALLOCATIONS: u8 = 0;
pub(super) const AGGREGATED: u8 = 1;

const MAGIC: [u8; 7] = *b"memray\0";

/// Version of CPython whose line tables are written: the shortest form of 3.11 says "this line" in two bytes (section 3.3).
const PYTHON_VERSION: i32 = 0x030B_00F0;

/// memray's number for `malloc` as Python's allocator, which needs no warning (section 1).
const MALLOC: u8 = 3;

/// Fields of a capture file's header that a report does not have. memray's statistics print them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Facts {
    /// Number of the main thread; the process id in our files.
    pub main_thread_id: u64,
    /// Number of frames in the header; 0 in memray's all-allocations captures.
    pub total_frames: u64,
    /// Set if the capture has native call stacks.
    pub native_traces: bool,
    /// Set if Python's own allocators were traced.
    pub python_allocators_traced: bool,
}

/// Fields of a header.
#[derive(Debug, Clone)]
pub(super) struct Header {
    pub(super) version: Version,
    pub(super) python_version: i32,
    pub(super) native_traces: bool,
    pub(super) format: u8,
    pub(super) n_frames: u64,
    pub(super) main_tid: u64,
    /// Number of outermost frames of `main_tid`'s stacks that are not shown.
    pub(super) skipped_frames: u64,
    pub(super) python_allocators_traced: bool,
    pub(super) about: About,
}

impl Header {
    /// Returns the header of a report's capture.
    pub(super) fn of(about: &About, version: Version, format: u8, frames: usize) -> Header {
        Header {
            version,
            python_version: PYTHON_VERSION,
            native_traces: false,
            format,
            n_frames: frames as u64,
            main_tid: u64::from(about.pid),
            skipped_frames: 0,
            python_allocators_traced: false,
            about: about.clone(),
        }
    }

    /// Returns the fields that a report does not have.
    pub(super) fn facts(&self) -> Facts {
        Facts {
            main_thread_id: self.main_tid,
            total_frames: self.n_frames,
            native_traces: self.native_traces,
            python_allocators_traced: self.python_allocators_traced,
        }
    }

    pub(super) fn write(&self, out: &mut Vec<u8>) {
        let about = &self.about;
        out.extend_from_slice(&MAGIC);
        out.extend_from_slice(&self.version.number().to_le_bytes());
        out.extend_from_slice(&self.python_version.to_le_bytes());
        out.push(u8::from(self.native_traces));
        out.push(self.format);
        for number in [about.events, self.n_frames] {
            out.extend_from_slice(&number.to_le_bytes());
        }
        for time in [about.start_ms, about.end_ms] {
            out.extend_from_slice(&time.to_le_bytes());
        }
        put_cstr(out, &names::in_one_line(&about.command_line));
        out.extend_from_slice(&about.pid.to_le_bytes());
        out.extend_from_slice(&self.main_tid.to_le_bytes());
        out.extend_from_slice(&self.skipped_frames.to_le_bytes());
        // memray's reporters fail on numbers that memray does not know.
        out.push(if (1..=6).contains(&about.python_allocator) {
            about.python_allocator
        } else {
            MALLOC
        });
        out.extend_from_slice(&[0, 0]); // trace_python_allocators, track_object_lifetimes
        if self.version == Version::V13 {
            put_cstr(out, &names::to_capture(&about.library_dir));
            for paths in [&about.package_dirs, &about.source_dirs] {
                for path in paths.iter().filter(|path| !path.is_empty()) {
                    put_cstr(out, &names::to_capture(path));
                }
                out.push(0);
            }
        }
    }

    pub(super) fn read<R: Read>(
        source: &mut Source<R>,
        budget: &mut Budget,
    ) -> Result<Header, ReadError> {
        let mut magic = [0; MAGIC.len()];
        for (byte, expected) in magic.iter_mut().zip(MAGIC) {
            match source.byte() {
                Ok(b) if b == expected => *byte = b,
                Err(Stop::Io(error)) => return Err(ReadError::Io(error)),
                Err(stop @ Stop::Damaged(_)) => return Err(stopped(source, stop)),
                // There are no data yet, but the first bytes say that the file was to be packed.
                Err(Stop::Cut) if source.is_packed() => {
                    let what = "the file is cut short before the end of its first packed block";
                    return Err(stopped(source, Stop::Damaged(what.into())));
                }
                _ => return Err(ReadError::NotACapture),
            }
        }
        let number = source.i32().map_err(|stop| stopped(source, stop))?;
        let version = Version::from_number(number).ok_or(ReadError::UnsupportedVersion(number))?;
        Header::read_fields(source, version, budget).map_err(|stop| stopped(source, stop))
    }

    fn read_fields<R: Read>(
        source: &mut Source<R>,
        version: Version,
        budget: &mut Budget,
    ) -> Decoded<Header> {
        let python_version = source.i32()?;
        let native_traces = source.byte()? != 0;
        let format = source.byte()?;
        if format > AGGREGATED {
            return damaged(format!("body format {format}, not 0 or 1"));
        }
        let mut about = About {
            events: source.u64()?,
            ..About::default()
        };
        let n_frames = source.u64()?;
        about.start_ms = source.u64()? as i64;
        about.end_ms = source.u64()? as i64;
        about.command_line = source.cstr()?;
        about.pid = source.i32()? as u32;
        let main_tid = source.u64()?;
        let skipped_frames = source.u64()?;
        about.python_allocator = source.byte()?;
        let python_allocators_traced = source.byte()? != 0;
        let _track_object_lifetimes = source.byte()?;
        if version == Version::V13 {
            about.library_dir = names::from_capture(&source.cstr()?).into_owned();
            for paths in [&mut about.package_dirs, &mut about.source_dirs] {
                loop {
                    let path = source.cstr()?;
                    if path.is_empty() {
                        break;
                    }
                    if paths.len() == MOST_PATHS {
                        return damaged("a list of directories without an end");
                    }
                    budget.take(in_list::<String>() + path.len() as u64 * 2 + 32)?;
                    paths.push(names::from_capture(&path).into_owned());
                }
            }
        }
        Ok(Header {
            version,
            python_version,
            native_traces,
            format,
            n_frames,
            main_tid,
            skipped_frames,
            python_allocators_traced,
            about,
        })
    }
}

/// Larger than any program's number of search paths.
const MOST_PATHS: usize = 1 << 16;

fn stopped<R: Read>(source: &Source<R>, stop: Stop) -> ReadError {
    match stop {
        Stop::Io(error) => ReadError::Io(error),
        Stop::TooLarge(error) => error.into(),
        Stop::Cut => ReadError::Header {
            at: source.position(),
            problem: "the capture ends here".into(),
        },
        Stop::Damaged(problem) => ReadError::Header {
            at: source.position(),
            problem,
        },
    }
}
