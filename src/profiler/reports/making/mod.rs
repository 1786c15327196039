//! Makes outputs from a session or from a kept report: in a helper process, or here where none can be started.
//!
//! ```text
//! Input ──▶ Making ──┬─▶ helper process ── socket ──▶ Here ──▶ the output's bytes ── socket ──▶ the draft
//!                    └─▶ Here ────────────────────────────────────────────────────────────────▶ the draft
//! ```
//!
//! What has ended the helper by a signal (too little memory, a damaged debug file) must not end the service. So the same
//! output is then not made here, except for the report of a session that has ended. That is written without names, which
//! takes little.

mod helped;
mod here;
#[cfg(test)]
mod tests;
mod while_wanted;
mod write;

use std::io::{self, Write};
use std::time::SystemTime;

use heapray_report::memray::MemoryLimit;

use self::helped::Helped;
pub(crate) use self::helped::serve;
use self::here::Here;
use self::while_wanted::WhileWanted;
#[cfg(feature = "http")]
pub(crate) use self::write::render;
use super::line::Lines;
use crate::os::helper::reason_of;
use crate::profiler::machine::View;
use crate::profiler::store::{Output, OutputKey, OutputKind, ReportId};
use crate::symbolize::Wanted;

/// What outputs are made from.
#[derive(Debug)]
pub(super) enum Input {
    Session {
        view: View,
        /// The options of all outputs that are made from it.
        key: OutputKey,
    },
    Kept {
        report: KeptInput,
        /// The earlier report, if the outputs show what has grown since.
        since: Option<Box<(KeptInput, SystemTime)>>,
        limit: MemoryLimit,
    },
}

/// A kept report's own file.
#[derive(Debug)]
pub(super) struct KeptInput {
    pub(super) id: ReportId,
    pub(super) file: Output,
}

/// The reason why an output was not made.
#[derive(Debug)]
pub(super) enum Failure {
    /// Something could not be read or written, or nobody waits for it.
    Io(io::Error),
    /// A kept report is not what was written.
    Damaged(ReportId),
    /// A kept report needs more memory than reading it may take.
    TooLarge(String),
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Failure {
        Failure::Io(error)
    }
}

/// The making of outputs from one input. What was read for one of them serves the next.
#[derive(Debug)]
pub(super) struct Making {
    input: Input,
    wanted: Wanted,
    place: Place,
    /// Whether an output has failed in the helper, and can be tried again here.
    has_moved: bool,
}

#[derive(Debug)]
enum Place {
    /// Nothing was made yet.
    None,
    Helper(Helped),
    Here(Box<Here>),
}

impl Making {
    pub(super) fn new(input: Input, wanted: &Wanted) -> Making {
        Making {
            input,
            wanted: wanted.clone(),
            place: Place::None,
            has_moved: false,
        }
    }

    /// Writes an output. `whole`: with every allocation, if there is a log of them.
    pub(super) fn output(
        &mut self,
        key: OutputKey,
        whole: bool,
        out: &mut dyn Write,
    ) -> Result<(), Failure> {
        self.begin()?;
        let mut out = WhileWanted::new(out, &self.wanted);
        match &mut self.place {
            Place::Helper(helped) => match helped.output(key, whole, &mut out) {
                Ok(done) => done,
                Err(Some(written)) => {
                    // What the helper still says of this output is not the next one.
                    self.place = Place::None;
                    Err(written.into())
                }
                Err(None) => Err(self.move_here(key)),
            },
            Place::Here(here) => here.output(key, whole, &self.wanted, &mut out),
            Place::None => unreachable!("it has begun"),
        }
    }

    /// Returns the lines that the description of a report names, after the report was made; none if the helper has failed.
    pub(super) fn lines(&mut self) -> Lines {
        match &mut self.place {
            Place::Helper(helped) => helped.lines().unwrap_or_default(),
            Place::Here(here) => here.lines(),
            Place::None => Lines::default(),
        }
    }

    /// Returns whether the output that has failed should be tried once more.
    pub(super) fn has_moved(&mut self) -> bool {
        std::mem::take(&mut self.has_moved)
    }

    fn begin(&mut self) -> Result<(), Failure> {
        while_wanted::check(&self.wanted)?;
        if let Place::None = self.place {
            self.place = match Helped::start(&self.input, &self.wanted) {
                Ok(helped) => Place::Helper(helped),
                Err(error) => {
                    tracing::debug!(%error, "outputs are made in this process");
                    Place::Here(Box::new(Here::of(&self.input, &self.wanted)?))
                }
            };
        }
        Ok(())
    }

    /// Ends the helper, which has failed, and goes on here if that is safe. Returns the failure.
    fn move_here(&mut self, key: OutputKey) -> Failure {
        let place = std::mem::replace(&mut self.place, Place::None);
        let Place::Helper(helped) = place else {
            unreachable!("the helper has failed")
        };
        let signal = helped.killed_by();
        if let Err(error) = while_wanted::check(&self.wanted) {
            return error.into();
        }
        let here = match (signal, &self.input) {
            (None, _) => Here::of(&self.input, &self.wanted),
            (Some(signal), Input::Session { view, .. })
                if key.kind() == OutputKind::Report && !view.snapshot.still_recording =>
            {
                Ok(Here::without_names(view, key, signal))
            }
            (Some(signal), _) => {
                return Failure::Io(io::Error::other(format!(
                    "signal {signal} ended the process that makes outputs{}",
                    reason_of(signal)
                )));
            }
        };
        match here {
            Ok(here) => {
                self.place = Place::Here(Box::new(here));
                self.has_moved = true;
                Failure::Io(io::Error::other("the process that makes outputs has ended"))
            }
            Err(failure) => failure,
        }
    }
}
