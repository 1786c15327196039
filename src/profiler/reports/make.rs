//! Makes the outputs of sessions, on the output thread.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use heapray_report::error_chain;

use super::making::{Failure, Input, Making};
use super::{Origin, OutputSpec, Reports, or_panicked};
use crate::profiler::Error;
use crate::profiler::machine::View;
use crate::profiler::store::{Draft, Label, Output, OutputKey, OutputKind, is_too_long};

impl Reports {
    /// Makes the next output in the queue, and its cheap siblings while its names are at hand.
    pub(super) fn make_next(self: &Arc<Reports>) {
        let Some(spec) = self.queue.take_next() else {
            return;
        };
        let made = or_panicked(|| match spec.origin {
            Origin::Kept(id) => Ok((self.make_of_kept(id, spec.key)?, None)),
            _ => self.make(spec),
        });
        match made {
            Ok((output, sources)) => {
                self.open.remember(spec, &output);
                self.queue.complete(&Ok(output));
                if let Some((view, mut making)) = sources {
                    // Nobody waits for them.
                    let siblings = || self.make_siblings(spec.key, &view, &mut making);
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
    fn make(&self, spec: OutputSpec) -> Result<(Output, Option<(View, Making)>), Error> {
        let key = spec.key;
        if (spec.is_snapshot() || !key.is_kept())
            && let Some(output) = self.room_for(spec)?
        {
            return Ok((output, None));
        }
        let view = self.view_of(spec)?;
        if !view.snapshot.still_recording
            && let Some(output) = self.verified_output(key)
        {
            return Ok((output, None));
        }
        self.store
            .directory
            .prepare()
            .map_err(|error| self.not_written(error))?;
        let input = Input::Session {
            view: view.clone(),
            key,
        };
        let mut making = Making::new(input, &self.wanted);
        let output = self.write(key, &view, &mut making)?;
        let last = !view.snapshot.still_recording;
        if last && !key.is_kept() {
            let origin = Origin::Session {
                number: view.session,
                recording: false,
            };
            self.recent.remember(origin, key, &output);
            return Ok((output, None));
        }
        if last && key == OutputKey::new(OutputKind::Report) {
            self.keep(&view, making.lines(), &output);
        }
        Ok((output, last.then_some((view, making))))
    }

    fn view_of(&self, spec: OutputSpec) -> Result<View, Error> {
        let view = self.machine.view_preferring(spec.running())?;
        #[cfg(feature = "http")]
        if let Origin::Process { .. } = spec.origin {
            return self.of_process(view);
        }
        Ok(view)
    }

    /// Adds what ended sessions allocated.
    #[cfg(feature = "http")]
    fn of_process(&self, mut view: View) -> Result<View, Error> {
        let snapshot = Arc::make_mut(&mut view.snapshot);
        let (stacks, total) = (&mut snapshot.stacks, &mut snapshot.totals.allocated);
        let ended = self.ended.lock();
        let added = snapshot.still_recording && ended.add_to(view.session, stacks, total);
        drop(ended);
        added.then_some(view).ok_or(Error::NotRecording)
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

    /// Makes the page and the text of a session too: looking names up costs far more than they do, and a client that asks
    /// for one asks for the other.
    fn make_siblings(&self, key: OutputKey, view: &View, making: &mut Making) {
        for kind in [OutputKind::Stats, OutputKind::Flamegraph] {
            let sibling = key.sibling(kind);
            if !self.wanted.still() {
                return;
            }
            if kind == key.kind() || self.session_outputs().stored(sibling).is_some() {
                continue;
            }
            // Nobody waits for it. A client that asks has it made again, and gets the error.
            if let Err(error) = self.write(sibling, view, making) {
                tracing::debug!(error = %error_chain(&error), "no sibling output");
            }
        }
    }

    fn write(&self, key: OutputKey, view: &View, making: &mut Making) -> Result<Output, Error> {
        let mut written = self.write_once(key, view, making, key.is_whole());
        if matches!(&written, Err(Failure::Io(error)) if is_too_long(error))
            && key.kind() == OutputKind::Report
        {
            tracing::warn!(
                bound = self.store.archive.bound(),
                "with every allocation the report would be larger than MEMRAY_PROFILER_KEEP_BYTES allows: it holds sums only"
            );
            written = self.write_once(key, view, making, false);
        }
        written.map_err(|failure| self.failed(failure))
    }

    /// `whole`: with every allocation, where there is a log of them.
    fn write_once(
        &self,
        key: OutputKey,
        view: &View,
        making: &mut Making,
        whole: bool,
    ) -> Result<Output, Failure> {
        let snapshot = view.snapshot.still_recording;
        let label = Label {
            key,
            taken: view.snapshot.taken,
            snapshot,
        };
        let directory = self.store.directory.path();
        let new = || {
            let draft = Draft::new(directory)?;
            let log = view.snapshot.log.as_ref().filter(|_| whole);
            Ok(match log.filter(|_| key.kind() == OutputKind::Report) {
                Some(log) => {
                    if !snapshot {
                        // It is about as long as the log, which goes after it.
                        self.store.archive.make_way(log.bytes / 2 * 3);
                    }
                    draft.at_most(self.store.archive.left())
                }
                None => draft,
            })
        };
        let mut draft = written_output(making, key, whole, new)?;
        if snapshot || !key.is_kept() {
            return Ok(draft.detach(label)?);
        }
        draft.sync()?;
        let put = self
            .session_outputs()
            .put(view.session, draft, label, directory);
        Ok(put?)
    }

    pub(super) fn failed(&self, failure: Failure) -> Error {
        match failure {
            Failure::Io(error) => self.not_written(error),
            Failure::Damaged(id) => Error::Damaged(id),
            Failure::TooLarge(error) => self.not_written(io::Error::other(format!(
                "{error}: download the report and read it with the heapray command"
            ))),
        }
    }
}

/// Returns the output, written into what `new` has created empty. A helper process that ends costs one more try.
pub(super) fn written_output<W: io::Write>(
    making: &mut Making,
    key: OutputKey,
    whole: bool,
    new: impl Fn() -> io::Result<W>,
) -> Result<W, Failure> {
    loop {
        let mut draft = new()?;
        match making.output(key, whole, &mut draft) {
            Ok(()) => return Ok(draft),
            Err(_) if making.has_moved() => {}
            Err(failure) => return Err(failure),
        }
    }
}
