//! Results that need the event log: the heap at any moment, the memory that a time span left, and blocks that were freed
//! soon after their allocation, for any meaning of "soon".
//!
//! An event happens at the last reading of memory before it. So the heap "at t" has all events before the reading of t, and
//! has the size that the timeline shows there.

use std::collections::VecDeque;

use super::intervals::{LOOK, SiteNumbers};
use super::rebuild::{StackCopier, shell, sum_up};
use crate::Report;
use crate::memray::live_blocks::{Block, LiveBlocks};
use crate::memray::ranges::Taken;
use crate::memray::{MemoryLimit, TooLarge};
use crate::model::{Allocator, Event, Runs, Site, Sites, Tally};

/// Returns what was allocated from `t1` to `t2` (milliseconds since the start, without `t2`) and is still live at `t3`.
///
/// In the result, `live` and `high_water` of each site have this memory, so that every view of live memory shows it, and
/// `allocated` has everything that was allocated from `t1` to `t2`. `u64::MAX` is the end of the session. A mapping that was
/// unmapped in its middle counts as two, as in memray. Events of sites that `report` does not have are left out.
///
/// # Errors
/// An error of `events`, or [`TooLarge`] if the live blocks do not fit into `limit`.
pub fn in_range<E: From<TooLarge>>(
    report: &Report,
    events: impl Iterator<Item = Result<Event, E>>,
    t1: u64,
    t2: u64,
    t3: u64,
    limit: MemoryLimit,
) -> Result<Report, E> {
    let mut span = Span::new(report, t1, t2, t3);
    span.run(events, limit)?;
    let mut part = span.close();
    part.conditions.notes.push(format!(
        "only what was allocated from {} to {} and still live at {}",
        moment(t1),
        moment(t2),
        moment(t3)
    ));
    Ok(part)
}

/// Returns the heap at `t` (milliseconds since the start; `u64::MAX`: the end of the session), in `live` and `high_water` of
/// each site; `allocated` has everything that was allocated until then. Otherwise it is like [`in_range`].
///
/// # Errors
/// The same as of [`in_range`].
pub fn at_moment<E: From<TooLarge>>(
    report: &Report,
    events: impl Iterator<Item = Result<Event, E>>,
    t: u64,
    limit: MemoryLimit,
) -> Result<Report, E> {
    let mut span = Span::new(report, 0, t, t);
    span.run(events, limit)?;
    let mut part = span.close();
    let note = format!("the heap as it was at {}", moment(t));
    part.conditions.notes.push(note);
    Ok(part)
}

fn moment(ms: u64) -> String {
    match ms {
        u64::MAX => "the end".into(),
        ms => format!("{}.{:03} s", ms / 1000, ms % 1000),
    }
}

/// Index for "no call site of the report".
const NONE: u32 = u32::MAX;

struct Span<'a> {
    report: &'a Report,
    numbers: SiteNumbers,
    live: LiveBlocks,
    allocated: Vec<Tally>,
    t1: u64,
    t2: u64,
    t3: u64,
    now: u64,
}

impl<'a> Span<'a> {
    fn new(report: &'a Report, t1: u64, t2: u64, t3: u64) -> Self {
        Span {
            report,
            numbers: SiteNumbers::of(report),
            live: LiveBlocks::default(),
            allocated: vec![Tally::default(); report.sites.len()],
            t1,
            t2,
            t3,
            now: 0,
        }
    }

    /// Returns whether an event that happens now is "before `t`". The end is after every event.
    fn is_before(&self, t: u64) -> bool {
        self.now < t || t == u64::MAX
    }

    fn run<E: From<TooLarge>>(
        &mut self,
        events: impl Iterator<Item = Result<Event, E>>,
        limit: MemoryLimit,
    ) -> Result<(), E> {
        let mut taken: Vec<Taken> = Vec::new();
        for (number, event) in events.enumerate() {
            let event = event?;
            if number.is_multiple_of(LOOK) {
                limit.holds(self.live.memory())?;
            }
            match event {
                Event::Memory { at_ms, .. } => {
                    // Readings rise. If a reading of a damaged capture does not, time stands still.
                    self.now = self.now.max(at_ms);
                    if !self.is_before(self.t2) && !self.is_before(self.t3) {
                        return Ok(());
                    }
                }
                Event::Allocation {
                    allocator,
                    address,
                    size,
                    ..
                } => {
                    let counts = self.now >= self.t1 && self.is_before(self.t2);
                    let site = self.numbers.get(&event).filter(|_| counts).unwrap_or(NONE);
                    if let Some(allocated) = self.allocated.get_mut(site as usize) {
                        *allocated += Tally {
                            count: 1,
                            bytes: size,
                        };
                    }
                    if self.is_before(self.t3) {
                        let block = Block {
                            bytes: size,
                            born: self.now,
                            site,
                        };
                        self.live.allocate(allocator, address, block);
                    }
                }
                Event::Deallocation {
                    allocator,
                    address,
                    size,
                    ..
                } if self.is_before(self.t3) => {
                    if allocator == Allocator::Munmap {
                        self.live.unmap(address, size, &mut taken);
                    } else {
                        self.live.free(address);
                    }
                }
                Event::Deallocation { .. } => {}
            }
        }
        Ok(())
    }

    fn close(self) -> Report {
        let mut live: Vec<(Tally, Option<u64>)> = vec![Default::default(); self.allocated.len()];
        for Block { bytes, born, site } in self.live.pieces() {
            if let Some((tally, oldest)) = live.get_mut(site as usize) {
                *tally += Tally { count: 1, bytes };
                *oldest = Some(oldest.map_or(born, |known| known.min(born)));
            }
        }
        let mut part = shell(self.report);
        // They are of the whole session.
        for context in &mut part.contexts {
            context.runs = Runs::default();
        }
        let mut copier = StackCopier::new(&self.report.stacks);
        let mut sites = Sites::default();
        for ((site, (live, oldest_live_ms)), allocated) in
            self.report.sites.iter().zip(live).zip(self.allocated)
        {
            if live == Tally::default() && allocated == Tally::default() {
                continue;
            }
            sites.add(Site {
                stack: copier.copy(site.stack, &mut part.stacks, |frame| frame),
                allocated,
                high_water: live,
                live,
                temporary: Tally::default(),
                oldest_live_ms,
                ..*site
            });
        }
        part.sites = sites.into_list();
        part.totals = sum_up(&self.report.totals, &part.sites);
        part.totals.high_water_ms = (self.t3 != u64::MAX).then_some(self.t3);
        // It is of the end of the session.
        part.process_memory = None;
        part
    }
}

/// Returns `report` with `temporary` of each site counted anew: blocks that their thread freed with at most `threshold`
/// other allocations of its own in between, as with `memray --temporary-allocations-threshold`. Everything else stays.
///
/// Memory grows with the threshold and the threads.
///
/// # Errors
/// An error of `events`.
pub fn temporary<E>(
    report: &Report,
    events: impl Iterator<Item = Result<Event, E>>,
    threshold: usize,
) -> Result<Report, E> {
    let numbers = SiteNumbers::of(report);
    let mut counted = report.clone();
    for site in &mut counted.sites {
        site.temporary = Tally::default();
    }
    // The last allocations of each thread, the newest first: address, size and site.
    let mut windows: Vec<VecDeque<(u64, u64, u32)>> = vec![VecDeque::new(); report.threads.len()];
    for event in events {
        let event = event?;
        let (Event::Allocation { thread, .. } | Event::Deallocation { thread, .. }) = event else {
            continue;
        };
        let Some(window) = windows.get_mut(thread.0 as usize) else {
            continue;
        };
        match event {
            Event::Allocation { address, size, .. } => {
                if window.len() > threshold {
                    window.pop_back();
                }
                window.push_front((address, size, numbers.get(&event).unwrap_or(NONE)));
            }
            Event::Deallocation {
                allocator,
                address,
                size,
                ..
            } => {
                let ranged = allocator == Allocator::Munmap;
                let hit = window
                    .iter()
                    .find(|(at, bytes, _)| *at == address && (!ranged || *bytes == size));
                if let Some(&(_, bytes, site)) = hit
                    && let Some(site) = counted.sites.get_mut(site as usize)
                {
                    site.temporary += Tally { count: 1, bytes };
                }
            }
            Event::Memory { .. } => {}
        }
    }
    Ok(counted)
}
