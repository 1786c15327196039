//! The naive model: it keeps everything that ever happened and computes each answer from that.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::super::Counters;
use super::super::entries::Bounds;
use super::super::snapshot::{RawSite, RawThread};
use super::{CLOCK, PAGE, TICKS_PER_MS};
use crate::capture::event::{Event, Kind, NodeId};
use heapray_report::model::Tally;

type Key = (u32, NodeId, Kind, u32);

/// Allocation. Its number is its position in the history.
#[derive(Debug, Clone)]
pub(super) struct Born {
    /// The thread that allocated. The key has the entry that this thread is counted under.
    thread: u32,
    key: Key,
    at_ms: u64,
    pub(super) size: u64,
    temporary: bool,
}

/// Naive heap: blocks by address, ranges page by page.
#[derive(Debug, Default, Clone)]
pub(super) struct Heap {
    /// Number and size of each block.
    blocks: HashMap<u64, (usize, u64)>,
    /// Number and part of each page: a part is what a split made of one block.
    pages: BTreeMap<u64, (usize, u64)>,
    parts: u64,
}

impl Heap {
    /// Unmaps a range. Returns the (number, part) of those that are gone whole.
    fn unmap(&mut self, address: u64, size: u64) -> Vec<(usize, u64)> {
        let pages = address / PAGE..(address + size) / PAGE;
        let mut gone: Vec<_> = pages
            .clone()
            .filter_map(|page| self.pages.remove(&page))
            .collect();
        gone.dedup();
        gone.retain(|part| !self.pages.values().any(|left| left == part));
        // The part after the hole is a block of its own now.
        self.parts += 1;
        let mut page = pages.end;
        if let Some(beyond) = self.pages.get(&page).copied() {
            while self.pages.get(&page) == Some(&beyond) {
                self.pages.insert(page, (beyond.0, self.parts));
                page += 1;
            }
        }
        gone
    }

    fn map(&mut self, number: usize, address: u64, size: u64) {
        self.parts += 1;
        for page in address / PAGE..(address + size) / PAGE {
            self.pages.insert(page, (number, self.parts));
        }
    }

    /// Returns the bytes of each mapping.
    fn parts(&self) -> HashMap<usize, u64> {
        let mut parts = HashMap::new();
        for part in self.pages.values() {
            *parts.entry(part.0).or_default() += PAGE;
        }
        parts
    }

    /// Returns the (number, tally) of everything live.
    pub(super) fn live(&self) -> Vec<(usize, Tally)> {
        let blocks = self
            .blocks
            .values()
            .map(|&(number, bytes)| (number, Tally { count: 1, bytes }));
        let mut all: Vec<_> = blocks.collect();
        let mut seen = HashSet::new();
        for &part in self.pages.values() {
            let count = u64::from(seen.insert(part));
            all.push((part.0, Tally { count, bytes: PAGE }));
        }
        all
    }
}

pub(super) fn sum(tallies: impl Iterator<Item = Tally>) -> Tally {
    tallies.fold(Tally::default(), |mut sum, tally| {
        sum += tally;
        sum
    })
}

/// Reallocation whose outcome has not come yet.
#[derive(Debug, Clone, Copy)]
struct Reallocating {
    thread: u32,
    address: u64,
    known: bool,
    /// The context of the old block, if that was replaced meanwhile.
    replaced: Option<u32>,
}

/// Run that is under way.
#[derive(Debug, Clone, Default)]
struct ModelRun {
    allocated: Tally,
    held: i64,
    most: i64,
    freed_of_others: u64,
    contexts: HashSet<u32>,
}

#[derive(Debug, Default)]
pub(super) struct Model {
    /// Entries of threads; `None` if each thread is counted by itself.
    pub(super) folding: Option<Folding>,
    pub(super) born: Vec<Born>,
    heap: Heap,
    /// Time stamp of the present event.
    now: u64,
    /// The heap after each change: its bytes, the moment, all of it.
    history: Vec<(u64, u64, Heap)>,
    by_thread: HashMap<u32, Vec<u64>>,
    reallocs: Vec<Reallocating>,
    /// The context of each thread, if it is in one.
    contexts: HashMap<u32, u32>,
    /// The run of each thread, if it is in one.
    in_run: HashMap<u32, u64>,
    runs: HashMap<u64, ModelRun>,
    /// Contexts and runs that have ended.
    ended: Vec<(u32, ModelRun)>,
    pub(super) events: u64,
    pub(super) freed: Tally,
    pub(super) unknown_frees: u64,
}

impl Model {
    /// Makes a model that counts threads within `bounds`.
    pub(super) fn bounded(bounds: Bounds) -> Model {
        let folding = Folding {
            bounds,
            met: Vec::new(),
        };
        Model {
            folding: Some(folding),
            ..Model::default()
        }
    }

    /// Applies an event. `later` are the events that come after it in the same batch.
    pub(super) fn apply(&mut self, event: &Event, later: &[Event]) {
        self.now = event.stamp;
        if let Some(folding) = &mut self.folding {
            match event.kind {
                Kind::ThreadStart => folding.start(event, later),
                Kind::ThreadName => folding.end(event),
                _ => {}
            }
        }
        let mut context = self.contexts.get(&event.thread).copied().unwrap_or(0);
        // Set if a block of another context than the thread's is reallocated.
        let mut keeps = false;
        let of_this = |one: &Reallocating| one.thread == event.thread;
        if event.kind != Kind::ThreadStart
            && let Some(at) = self.reallocs.iter().position(of_this)
        {
            let ended = self.reallocs.remove(at);
            if event.kind == Kind::ReallocFailed && event.address == ended.address {
                return;
            }
            let (old, freed) = self.end_realloc(ended);
            let now = context;
            if event.kind == Kind::Realloc {
                context = old.unwrap_or(context);
            }
            keeps = context != now;
            if !keeps && let Some((number, bytes)) = freed {
                self.freed_in_run(event.thread, number, bytes);
            }
        }
        match event.kind {
            Kind::Free => {
                self.events += 1;
                for one in &mut self.reallocs {
                    one.known &= one.address != event.address;
                }
                self.free(event.thread, event.address);
            }
            Kind::Mmap => {
                self.unmap(event);
                let number = self.bear(event, context);
                self.allocated_in_run(event);
                self.heap.map(number, event.address, event.size);
                self.remember();
            }
            Kind::Munmap => {
                self.events += 1;
                if !self.unmap(event) {
                    self.unknown_frees += 1;
                }
            }
            Kind::ReallocFree => {
                let known = self.heap.blocks.contains_key(&event.address);
                self.reallocs.push(Reallocating {
                    thread: event.thread,
                    address: event.address,
                    known,
                    replaced: None,
                });
            }
            Kind::ReallocFailed | Kind::ReallocDone | Kind::ThreadName | Kind::Sampling => {}
            Kind::ThreadStart => {
                self.contexts.remove(&event.thread);
                self.in_run.remove(&event.thread);
            }
            Kind::Context => {
                self.contexts.insert(event.thread, event.context());
                self.in_run.insert(event.thread, event.run());
                if event.run() != 0 {
                    let run = self.runs.entry(event.run()).or_default();
                    run.contexts.insert(event.context());
                }
            }
            Kind::RunEnd => {
                let run = self.runs.remove(&event.run()).unwrap_or_default();
                self.ended.push((event.run_end().context, run));
            }
            Kind::MeteredRunEnd | Kind::TraceId | Kind::SpanId => {}
            _ => {
                if let Some(&(old, _)) = self.heap.blocks.get(&event.address) {
                    let mut thread = event.thread;
                    let mut all = self.reallocs.iter_mut();
                    if let Some(one) = all.find(|one| one.address == event.address && one.known) {
                        thread = one.thread;
                        one.known = false;
                        one.replaced = Some(self.born[old].key.3);
                        self.events += 1;
                    }
                    self.free(thread, event.address);
                }
                let number = self.bear(event, context);
                if !keeps {
                    self.allocated_in_run(event);
                }
                self.heap.blocks.insert(event.address, (number, event.size));
                self.remember();
            }
        }
    }

    /// Frees the old block of a reallocation. Returns that block's context, if the block was known, and the block, if the
    /// thread's run has not been told yet.
    fn end_realloc(&mut self, ended: Reallocating) -> (Option<u32>, Option<(usize, u64)>) {
        if ended.replaced.is_some() {
            return (ended.replaced, None);
        }
        self.events += 1;
        if !ended.known {
            self.unknown_frees += 1;
            return (None, None);
        }
        // Another reallocation that claimed the block may have freed it.
        let old = self.heap.blocks.get(&ended.address).copied();
        self.free_outside_run(ended.thread, ended.address);
        (old.map(|(old, _)| self.born[old].key.3), old)
    }

    fn allocated_in_run(&mut self, event: &Event) {
        let run = self.in_run.get(&event.thread);
        if let Some(run) = run.and_then(|run| self.runs.get_mut(run)) {
            run.allocated += Tally {
                count: 1,
                bytes: event.size,
            };
            run.held += event.size as i64;
            run.most = run.most.max(run.held);
        }
    }

    /// Counts `bytes` of block `number`, which `thread` frees.
    fn freed_in_run(&mut self, thread: u32, number: usize, bytes: u64) {
        let context = self.born[number].key.3;
        let run = self.in_run.get(&thread);
        if let Some(run) = run.and_then(|run| self.runs.get_mut(run)) {
            if run.contexts.contains(&context) {
                run.held -= bytes as i64;
            } else {
                run.freed_of_others += bytes;
            }
        }
    }

    /// Returns the sums of runs by context: their number, and the sums of what they allocated, of the most that each held, of what
    /// each left behind, and of what they freed of others.
    pub(super) fn run_sums(&self) -> BTreeMap<u32, (u64, Tally, u64, u64, u64)> {
        let mut sums: BTreeMap<u32, (u64, Tally, u64, u64, u64)> = BTreeMap::new();
        for (context, run) in &self.ended {
            let sum = sums.entry(*context).or_default();
            sum.0 += 1;
            sum.1 += run.allocated;
            sum.2 += run.most as u64;
            sum.3 += run.held.max(0) as u64;
            sum.4 += run.freed_of_others;
        }
        sums
    }

    /// Returns whether nothing that was allocated in `context` is live.
    pub(super) fn holds_nothing(&self, context: u32) -> bool {
        let live = self.heap.live();
        live.iter()
            .all(|&(number, _)| self.born[number].key.3 != context)
    }

    /// Counts what was done in `context` as done in `other`, where its threads are now.
    pub(super) fn retire(&mut self, context: u32, other: u32) {
        let of_born = self.born.iter_mut().map(|born| &mut born.key.3);
        let of_runs = self.ended.iter_mut().map(|(of, _)| of);
        let of_threads = self.contexts.values_mut();
        for of in of_born.chain(of_runs).chain(of_threads) {
            if *of == context {
                *of = other;
            }
        }
    }

    fn bear(&mut self, event: &Event, context: u32) -> usize {
        self.events += 1;
        self.by_thread
            .entry(event.thread)
            .or_default()
            .push(event.address);
        let entry = match &self.folding {
            Some(folding) => folding.entry(event.thread).unwrap().number,
            None => event.thread,
        };
        self.born.push(Born {
            thread: event.thread,
            key: (entry, event.node, event.kind, context),
            at_ms: (event.stamp - CLOCK.start_stamp) / TICKS_PER_MS,
            size: event.size,
            temporary: false,
        });
        self.born.len() - 1
    }

    fn free(&mut self, thread: u32, address: u64) {
        if let Some(&(number, bytes)) = self.heap.blocks.get(&address) {
            self.freed_in_run(thread, number, bytes);
        }
        self.free_outside_run(thread, address);
    }

    fn free_outside_run(&mut self, thread: u32, address: u64) {
        match self.heap.blocks.remove(&address) {
            None => self.unknown_frees += 1,
            Some((number, bytes)) => {
                self.freed += Tally { count: 1, bytes };
                self.gone(thread, address, number);
                self.remember();
            }
        }
    }

    fn remember(&mut self) {
        let bytes = sum(self.heap.live().into_iter().map(|one| one.1)).bytes;
        self.history.push((bytes, self.now, self.heap.clone()));
    }

    fn gone(&mut self, thread: u32, address: u64, number: usize) {
        let mine = self.by_thread.get(&thread).map_or(&[][..], Vec::as_slice);
        let recent = mine.iter().rev().take(2).any(|&one| one == address);
        self.born[number].temporary = self.born[number].thread == thread && recent;
    }

    fn unmap(&mut self, event: &Event) -> bool {
        let before = sum(self.heap.live().into_iter().map(|one| one.1));
        let untouched: HashMap<usize, u64> = (0..self.born.len())
            .filter_map(|number| {
                let pages: Vec<_> = self
                    .heap
                    .pages
                    .iter()
                    .filter(|page| page.1.0 == number)
                    .collect();
                let whole = pages.len() as u64 * PAGE == self.born[number].size;
                (whole && !pages.is_empty()).then(|| (number, *pages[0].0 * PAGE))
            })
            .collect();
        let parts = self.heap.parts();
        let gone = self.heap.unmap(event.address, event.size);
        let left = self.heap.parts();
        for (number, bytes) in parts {
            let left = left.get(&number).copied().unwrap_or(0);
            self.freed_in_run(event.thread, number, bytes - left);
        }
        let after = sum(self.heap.live().into_iter().map(|one| one.1));
        self.freed.bytes += before.bytes - after.bytes;
        self.freed.count += gone.len() as u64;
        for (number, _) in gone {
            let exact = event.size == self.born[number].size;
            if let Some(&start) = untouched.get(&number)
                && (start == event.address && exact)
            {
                self.gone(event.thread, start, number);
            }
        }
        let found = before.bytes != after.bytes;
        if found {
            self.remember();
        }
        found
    }

    pub(super) fn counters(&self) -> Counters {
        Counters {
            events: self.events,
            allocated: sum(self.born.iter().map(|born| Tally {
                count: 1,
                bytes: born.size,
            })),
            freed: self.freed,
            live: sum(self.heap.live().into_iter().map(|one| one.1)),
            high_water: sum(self.peak().1.live().into_iter().map(|one| one.1)),
            unknown_frees: self.unknown_frees,
        }
    }

    /// Returns the last of the moments at which the heap was largest.
    pub(super) fn peak(&self) -> (u64, Heap) {
        let last = self.history.iter().max_by_key(|(bytes, ..)| bytes);
        last.map_or((CLOCK.start_stamp, Heap::default()), |(_, now, heap)| {
            (*now, heap.clone())
        })
    }

    pub(super) fn sites(&self) -> Vec<RawSite> {
        let mut sites: HashMap<Key, RawSite> = HashMap::new();
        let peak = self.peak().1.live();
        let live = self.heap.live();
        for (number, born) in self.born.iter().enumerate() {
            let of = |list: &[(usize, Tally)]| {
                sum(list.iter().filter(|one| one.0 == number).map(|one| one.1))
            };
            let once = Tally {
                count: 1,
                bytes: born.size,
            };
            let (thread, node, kind, context) = born.key;
            let site = sites.entry(born.key).or_insert(RawSite {
                thread,
                node,
                context,
                kind,
                allocated: Tally::default(),
                high_water: Tally::default(),
                live: Tally::default(),
                temporary: Tally::default(),
                oldest_live_ms: None,
            });
            site.allocated += once;
            site.high_water += of(&peak);
            site.live += of(&live);
            if born.temporary {
                site.temporary += once;
            }
            if of(&live).count > 0 {
                site.oldest_live_ms = Some(site.oldest_live_ms.unwrap_or(u64::MAX).min(born.at_ms));
            }
        }
        sorted(sites.into_values().collect())
    }
}

pub(super) fn sorted(mut sites: Vec<RawSite>) -> Vec<RawSite> {
    sites.sort_by_key(|site| (site.thread, site.node, site.kind, site.context));
    sites
}

/// Entries of threads, found by scanning all threads.
#[derive(Debug)]
pub(super) struct Folding {
    bounds: Bounds,
    met: Vec<(u32, RawThread)>,
}

impl Folding {
    fn entry(&self, number: u32) -> Option<&RawThread> {
        let met = self.met.iter().find(|met| met.0 == number);
        met.map(|met| &met.1)
    }

    fn start(&mut self, event: &Event, later: &[Event]) {
        if self.entry(event.thread).is_some() {
            return;
        }
        let tid = event.size as u32;
        let mut entry = RawThread {
            number: event.thread,
            tid,
            // A name that was not sent before is asked for when the list is made.
            name: name_of(tid).unwrap_or_default(),
            threads: 1,
        };
        if self.met.len() >= self.bounds.apart {
            let folded = &self.met[self.bounds.apart..];
            let end = later
                .iter()
                .find(|one| one.kind == Kind::ThreadName && one.thread == event.thread);
            entry.name = match end {
                Some(end) => name_in(end),
                None => name_of(tid).unwrap_or_default(),
            };
            let mut numbers: Vec<_> = folded.iter().map(|one| one.1.number).collect();
            numbers.sort_unstable();
            numbers.dedup();
            let names: HashSet<_> = folded
                .iter()
                .map(|one| &one.1.name)
                .filter(|name| !name.starts_with('('))
                .collect();
            if names.len() >= self.bounds.names
                && !names.contains(&entry.name)
                && !entry.name.is_empty()
            {
                entry.name = "(threads of other names)".to_owned();
            }
            let same = folded.iter().find(|one| one.1.name == entry.name);
            entry.number = same.map_or(u32::MAX - numbers.len() as u32, |one| one.1.number);
        }
        self.met.push((event.thread, entry));
    }

    fn end(&mut self, event: &Event) {
        for (number, entry) in self.met.iter_mut().take(self.bounds.apart) {
            if *number == event.thread {
                entry.name = name_in(event);
            }
        }
    }

    /// Returns the (name, threads) of each number.
    pub(super) fn list(&self) -> BTreeMap<u32, (String, u32)> {
        let mut list = BTreeMap::new();
        for (_, entry) in &self.met {
            list.entry(entry.number)
                .or_insert((entry.name.clone(), 0))
                .1 += 1;
        }
        list
    }
}

fn name_in(event: &Event) -> String {
    let bytes = [event.address.to_ne_bytes(), event.size.to_ne_bytes()].concat();
    let text = String::from_utf8_lossy(&bytes);
    text.split('\0').next().unwrap_or_default().to_owned()
}

/// Returns the name of a living thread. Some threads have ended before.
pub(super) fn name_of(tid: u32) -> Option<String> {
    (!tid.is_multiple_of(5)).then(|| format!("pool {}", tid % 3))
}
