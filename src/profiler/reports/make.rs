//! Makes the outputs of sessions, on the output thread.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use heapray_report::error_chain;

use super::while_wanted::{self, WhileWanted};
use super::write::{render, write_report};
use super::{Origin, OutputSpec, Reports, or_panicked};
use crate::profiler::Error;
use crate::profiler::machine::View;
use crate::profiler::store::{Draft, Label, Output, OutputKey, OutputKind, is_too_long};
use crate::symbolize::{self, Resolved};

impl Reports {
    /// Makes the next output in the queue, and its cheap siblings while the resolved frames are at hand.
    pub(super) fn make_next(self: &Arc<Reports>) {
        let Some(spec) = self.queue.take_next() else {
            return;
        };
        let made = or_panicked(|| match spec.origin {
            Origin::Session { .. } => self.make(spec),
            Origin::Kept(id) => Ok((self.make_of_kept(id, spec.key)?, None)),
        });
        match made {
            Ok((output, sources)) => {
                self.open.remember(spec, &output);
                self.queue.complete(&Ok(output));
                if let Some((view, resolved)) = sources {
                    // Nobody waits for them.
                    let siblings = || self.make_siblings(spec.key, &view, &resolved);
                    let _ = catch_unwind(AssertUnwindSafe(siblings));
                }
            }
            Err(error) => {
                if self.queue.complete(&Err(error.clone())) {
                    let output = spec.key.kind().file_name();
                    tracing::warn!(error = %error_chain(&error), %output, "no output");
                }
            }
        }
        self.serve_queue();
    }

    /// Makes room for another output without a name, or returns one that will do.
    pub(super) fn room_for(&self, spec: OutputSpec) -> Result<Option<Output>, Error> {
        let open = &self.open;
        if open.has_room() {
            return Ok(None);
        }
        let latest = open.latest(spec);
        self.recent.make_room();
        #[cfg(feature = "http")]
        self.readers.make_room();
        match latest {
            _ if open.has_room() => Ok(None),
            Some(output) => Ok(Some(output)),
            None => Err(Error::OutputsHeld),
        }
    }

    /// Returns the output, and what it was made from if that is of further use.
    #[allow(clippy::type_complexity)] // a pair that is taken apart at its only use
    fn make(&self, spec: OutputSpec) -> Result<(Output, Option<(View, Resolved)>), Error> {
        let key = spec.key;
        if (spec.is_snapshot() || !key.kind().is_kept())
            && let Some(output) = self.room_for(spec)?
        {
            return Ok((output, None));
        }
        let view = self.machine.view()?;
        if !view.snapshot.still_recording
            && let Some(output) = self.verified_output(key)
        {
            return Ok((output, None));
        }
        self.store
            .directory
            .prepare()
            .map_err(|error| self.not_written(error))?;
        let wanted = &self.wanted;
        let resolved = symbolize::report_while(wanted, &view.snapshot, &key.options());
        while_wanted::check(wanted).map_err(|error| self.not_written(error))?;
        let output = self.write(key, &view, &resolved)?;
        let last = !view.snapshot.still_recording;
        if last && !key.kind().is_kept() {
            let origin = Origin::Session {
                number: view.session,
                recording: false,
            };
            self.recent.remember(origin, key, &output);
            return Ok((output, None));
        }
        if last && key == OutputKey::new(OutputKind::Report) {
            self.keep(&view, &resolved.report, &output);
        }
        Ok((output, last.then_some((view, resolved))))
    }

    /// Returns the output of that key, if its bytes are still those that were written; otherwise forgets it. Reads it all.
    fn verified_output(&self, key: OutputKey) -> Option<Output> {
        let (session, mut stored) = self.session_outputs().stored(key)?;
        let checked = stored.open_and_verify();
        let good = matches!(checked, Ok(Some(_)));
        if !good {
            let path = stored.path().display();
            tracing::warn!(%path, "an output was changed or removed by somebody else: it is made again");
        }
        self.session_outputs()
            .checked(session, key, good.then_some(stored));
        checked.ok().flatten()
    }

    /// Makes the page and the text of a session too: resolving costs far more than they do, and a client that asks for one
    /// asks for the other.
    fn make_siblings(&self, key: OutputKey, view: &View, resolved: &Resolved) {
        for kind in [OutputKind::Stats, OutputKind::Flamegraph] {
            let sibling = key.sibling(kind);
            if !self.wanted.still() {
                return;
            }
            if kind == key.kind() || self.session_outputs().stored(sibling).is_some() {
                continue;
            }
            // Nobody waits for it. A client that asks has it made again, and gets the error.
            if let Err(error) = self.write(sibling, view, resolved) {
                tracing::debug!(error = %error_chain(&error), "no sibling output");
            }
        }
    }

    fn write(&self, key: OutputKey, view: &View, resolved: &Resolved) -> Result<Output, Error> {
        let mut written = self.write_once(key, view, resolved, true);
        if written.as_ref().is_err_and(is_too_long) && key.kind() == OutputKind::Report {
            tracing::warn!(
                bound = self.store.archive.bound(),
                "with every allocation the report would be larger than MEMRAY_PROFILER_KEEP_BYTES allows: it holds sums only"
            );
            written = self.write_once(key, view, resolved, false);
        }
        written.map_err(|error| self.not_written(error))
    }

    /// `whole`: with every allocation, where there is a log of them.
    fn write_once(
        &self,
        key: OutputKey,
        view: &View,
        resolved: &Resolved,
        whole: bool,
    ) -> io::Result<Output> {
        let snapshot = view.snapshot.still_recording;
        let label = Label {
            key,
            taken: view.snapshot.taken,
            snapshot,
        };
        let directory = self.store.directory.path();
        let wanted = &self.wanted;
        Draft::new(directory).and_then(|mut draft| {
            if let Some(log) = &view.snapshot.log
                && whole
                && key.kind() == OutputKind::Report
            {
                if !snapshot {
                    // It is about as long as the log, which goes after it.
                    self.store.archive.make_way(log.bytes / 2 * 3);
                }
                draft = draft.at_most(self.store.archive.left());
            }
            let mut out = WhileWanted::new(&mut draft, wanted);
            if key.kind() == OutputKind::Report && whole {
                write_report(key, view, resolved, wanted, &mut out)?;
            } else {
                let log = view.snapshot.log.as_ref().filter(|_| whole);
                let events = log.map(|log| while_wanted::items(resolved.events(log), wanted));
                render(key, &resolved.report, events, &mut out)?;
            }
            if snapshot || !key.kind().is_kept() {
                return draft.detach(label);
            }
            draft.sync()?;
            self.session_outputs()
                .put(view.session, draft, label, directory)
        })
    }
}
