//! Joins several reports, such as those of the replicas of one job.

use std::collections::{BTreeMap, HashMap};

use super::rebuild::{FrameTable, StackCopier, placed};
use crate::Report;
use crate::known::MOST_RULES;
use crate::memray::timeline::{MOST_MOMENTS, halve};
use crate::model::{
    AllocatorMemory, Context, ContextId, FrameId, Held, History, HistoryMoment, Mark, Module,
    Moment, ProcessMemory, Sampling, Sites, SizeCount, StackId, StrId, Strings, Survivor,
    Survivors, Thread, ThreadId, Totals,
};

/// Returns `reports` as one report with the sums of all.
///
/// Call sites are the same if thread name, allocator and call stack (functions, files, lines) are; threads of one name
/// become one entry that stands for all of them. Times are put on one clock, that of the first start: the timeline has the
/// sum of all processes that ran at a moment. A process whose session still ran is there until the end. The high-water mark is the sum of each one's own, which may be of different
/// moments; a note among the conditions says so. Survivors are merged by generation if all reports have equally many, and
/// left out otherwise; the process's memory is added up if all reports have it.
#[must_use]
pub fn merged(reports: &[Report]) -> Report {
    match reports {
        [] => return Report::default(),
        [one] => return one.clone(),
        _ => {}
    }
    let mut merged = summed(reports, |number, name| format!("{name} ({number})"));
    add_notes(&mut merged, reports.len());
    merged
}

/// Returns the sums of `reports`, which are not empty, without notes about the merging. `mark` names a mark of the report of
/// a number, from 1 on.
pub(super) fn summed(reports: &[Report], mark: impl Fn(usize, &str) -> String) -> Report {
    let [first, others @ ..] = reports else {
        return Report::default();
    };
    let start = reports.iter().map(|report| report.about.start_ms).min();
    let start_ms = start.unwrap_or(first.about.start_ms);
    let later = |report: &Report| {
        report
            .about
            .start_ms
            .saturating_sub(start_ms)
            .unsigned_abs()
    };
    let (mut merged, renamed) = join(reports);
    merged.about = first.about.clone();
    merge_about(&mut merged, others);
    merged.about.start_ms = start_ms;

    let mut sites = Sites::default();
    let mut numbers: Vec<Vec<u32>> = Vec::new();
    for (report, renamed) in reports.iter().zip(&renamed) {
        let of_report = report.sites.iter().map(|site| {
            let mut site = *site;
            site.thread = renamed.thread(site.thread);
            site.stack = renamed.stack(site.stack);
            site.context = renamed.context(site.context);
            site.oldest_live_ms = site
                .oldest_live_ms
                .map(|ms| ms.saturating_add(later(report)));
            sites.add(site)
        });
        numbers.push(of_report.collect());
    }
    merged.sites = sites.into_list();
    merged.timeline = timeline(reports, &later);
    merged.survivors = survivors(reports, &numbers);
    merged.history = history(reports, &numbers);
    merged.totals = totals(reports);
    merged.process_memory = process_memory(reports);
    for (number, report) in (1..).zip(reports) {
        merged.marks.extend(report.marks.iter().map(|named| Mark {
            name: mark(number, &named.name),
            at_ms: named.at_ms.saturating_add(later(report)),
            live: named.live,
        }));
    }
    merged.marks.sort_by_key(|mark| mark.at_ms);
    merge_conditions(&mut merged, reports);
    merged
}

/// Handles in the joint report of one report's handles.
#[derive(Debug, Default)]
pub(super) struct Renamed {
    threads: Vec<ThreadId>,
    contexts: Vec<ContextId>,
    stacks: HashMap<StackId, StackId>,
}

impl Renamed {
    pub(super) fn thread(&self, thread: ThreadId) -> ThreadId {
        self.threads
            .get(thread.0 as usize)
            .copied()
            .unwrap_or(ThreadId(u32::MAX))
    }

    pub(super) fn context(&self, context: ContextId) -> ContextId {
        let contexts = self.contexts.get(context.0 as usize);
        contexts.copied().unwrap_or_default()
    }

    pub(super) fn stack(&self, stack: StackId) -> StackId {
        self.stacks.get(&stack).copied().unwrap_or(StackId::EMPTY)
    }
}

/// Returns a report with the strings, frames, modules, threads, contexts and the call stacks with sites of all `reports`, and nothing
/// else.
pub(super) fn join(reports: &[Report]) -> (Report, Vec<Renamed>) {
    let mut joint = Report::default();
    if reports.iter().any(|report| !report.places.is_empty()) {
        // If one report has code addresses, the frames of reports without them get unknown ones.
        joint.places.push(Default::default());
    }
    let mut frames = FrameTable::emptied(&mut joint);
    let has_full_names = reports.iter().any(|report| !report.full_names.is_empty());
    let mut threads: HashMap<String, ThreadId> = HashMap::new();
    let mut contexts: HashMap<Labels, ContextId> = HashMap::new();
    let renamed = reports
        .iter()
        .map(|report| {
            let mut renamed = Renamed::default();
            let modules = join_modules(&mut joint.modules, &report.modules);
            let in_report: Vec<FrameId> = (0..report.frames.len() as u32)
                .map(|number| {
                    let (mut frame, mut place) = placed(report, FrameId(number));
                    frame.function = rename(&mut joint.strings, report, frame.function);
                    frame.file = rename(&mut joint.strings, report, frame.file);
                    place.module = place
                        .module
                        .and_then(|module| modules.get(module as usize).copied());
                    if !has_full_names {
                        return frames.intern(&mut joint, frame, place);
                    }
                    let full = report.full_names.get(number as usize);
                    let full = full.map_or(frame.function, |&full| {
                        rename(&mut joint.strings, report, full)
                    });
                    frames.intern_in_full(&mut joint, frame, full, place)
                })
                .collect();
            for thread in &report.threads {
                let name = report.strings.get(thread.name);
                let at = *threads.entry(name.to_owned()).or_insert_with(|| {
                    joint.threads.push(Thread {
                        name: joint.strings.intern(name),
                        threads: 0,
                        ..*thread
                    });
                    ThreadId(joint.threads.len() as u32 - 1)
                });
                let entry = &mut joint.threads[at.0 as usize];
                entry.threads = entry.threads.saturating_add(thread.threads);
                renamed.threads.push(at);
            }
            renamed.contexts = join_contexts(&mut joint.contexts, &mut contexts, report);
            let mut copier = StackCopier::new(&report.stacks);
            for site in &report.sites {
                let stacks = &mut joint.stacks;
                renamed.stacks.entry(site.stack).or_insert_with(|| {
                    copier.copy(site.stack, stacks, |frame| {
                        in_report.get(frame.0 as usize).copied().unwrap_or(frame)
                    })
                });
            }
            renamed
        })
        .collect();
    (joint, renamed)
}

/// Pairs of a key and a value.
type Labels = Vec<(String, String)>;

/// Adds the report's contexts to `known`, each once, with the sums of their runs. Returns their numbers there.
fn join_contexts(
    known: &mut Vec<Context>,
    numbers: &mut HashMap<Labels, ContextId>,
    report: &Report,
) -> Vec<ContextId> {
    let of = |context: &Context| {
        let number = *numbers.entry(context.labels.clone()).or_insert_with(|| {
            known.push(Context {
                labels: context.labels.clone(),
                ..Context::default()
            });
            ContextId(known.len() as u32 - 1)
        });
        known[number.0 as usize].runs += &context.runs;
        number
    };
    report.contexts.iter().map(of).collect()
}

fn rename(strings: &mut Strings, report: &Report, id: StrId) -> StrId {
    strings.intern(report.strings.get(id))
}

/// Adds `more` to `known` modules, and returns their indices.
fn join_modules(known: &mut Vec<Module>, more: &[Module]) -> Vec<u32> {
    more.iter()
        .map(|module| {
            let at = known.iter().position(|one| one == module);
            let at = at.unwrap_or_else(|| {
                known.push(module.clone());
                known.len() - 1
            });
            at as u32
        })
        .collect()
}

fn merge_about(merged: &mut Report, others: &[Report]) {
    let about = &mut merged.about;
    for other in others.iter().map(|report| &report.about) {
        about.end_ms = about.end_ms.max(other.end_ms);
        about.events = about.events.saturating_add(other.events);
        if about.library_dir.is_empty() {
            about.library_dir.clone_from(&other.library_dir);
        }
        for (known, other) in [
            (&mut about.source_root, &other.source_root),
            (&mut about.source_url, &other.source_url),
        ] {
            if known.is_empty() {
                known.clone_from(other);
            }
        }
        for (known, more) in [
            (&mut about.package_dirs, &other.package_dirs),
            (&mut about.source_dirs, &other.source_dirs),
            (&mut about.own_crates, &other.own_crates),
            (&mut about.replicas, &other.replicas),
        ] {
            add_missing(known, more);
        }
        about.replicas.sort();
        add_missing(&mut about.known, &other.known);
        about.known.truncate(MOST_RULES);
    }
}

fn add_missing<T: Clone + PartialEq>(list: &mut Vec<T>, more: &[T]) {
    for item in more {
        if !list.contains(item) {
            list.push(item.clone());
        }
    }
}

/// Returns the sum of all processes over time: each reading replaces its process's previous one, from its first reading to
/// its last.
fn timeline(reports: &[Report], later: &dyn Fn(&Report) -> u64) -> Vec<Moment> {
    // For each time: the processes that have a new reading from then on.
    let mut changes: BTreeMap<u64, Vec<(usize, Moment)>> = BTreeMap::new();
    for (process, report) in reports.iter().enumerate() {
        let mut end = 0;
        for moment in &report.timeline {
            let at_ms = moment.at_ms.saturating_add(later(report));
            end = end.max(at_ms);
            changes.entry(at_ms).or_default().push((process, *moment));
        }
        if !report.timeline.is_empty() && !report.conditions.still_recording {
            // A process's last reading is still shown. The process is gone with the next reading of another.
            let gone = Moment::default();
            changes
                .entry(end.saturating_add(1))
                .or_default()
                .push((process, gone));
        }
    }
    let mut now = vec![Moment::default(); reports.len()];
    let mut sums = Vec::new();
    for (at_ms, readings) in changes {
        let mut is_reading = false;
        for (process, moment) in readings {
            is_reading |= moment != Moment::default();
            now[process] = moment;
        }
        if is_reading {
            let sum = |field: fn(&Moment) -> u64| {
                now.iter()
                    .map(field)
                    .fold(0u64, |sum, bytes| sum.saturating_add(bytes))
            };
            sums.push(Moment {
                at_ms,
                rss: sum(|moment| moment.rss),
                heap: sum(|moment| moment.heap),
                own: sum(|moment| moment.own),
            });
        }
    }
    while sums.len() > MOST_MOMENTS {
        halve(&mut sums);
    }
    sums
}

/// Returns the smallest number of generations, or of moments, of the reports.
fn fewest(reports: &[Report], number: impl Fn(&Report) -> usize) -> usize {
    reports.iter().map(number).min().unwrap_or(0)
}

/// Joins the survivors by the number of the generation. Where reports have different numbers, neighbours are joined.
fn survivors(reports: &[Report], numbers: &[Vec<u32>]) -> Survivors {
    let fewest = fewest(reports, |report| report.survivors.starts_ms.len());
    if fewest == 0 {
        return Survivors::default();
    }
    let joint = |generation: usize, all: usize| generation * fewest / all;
    let mut list = Vec::new();
    for (report, numbers) in reports.iter().zip(numbers) {
        let all = report.survivors.starts_ms.len();
        list.extend(report.survivors.list.iter().filter_map(|survivor| {
            Some(Survivor {
                site: *numbers.get(survivor.site as usize)?,
                generation: joint(survivor.generation as usize, all) as u32,
                ..*survivor
            })
        }));
    }
    let starts_ms = &reports[0].survivors.starts_ms;
    let all = starts_ms.len();
    let begins = |at: &usize| *at == 0 || joint(*at, all) != joint(*at - 1, all);
    let starts_ms = (0..all).filter(begins).map(|at| starts_ms[at]).collect();
    Survivors::of(starts_ms, list)
}

/// Joins what the sites held by the number of the moment. Where reports have different numbers, some moments are left out.
fn history(reports: &[Report], numbers: &[Vec<u32>]) -> History {
    let fewest = fewest(reports, |report| report.history.moments.len());
    let mut moments: Vec<HistoryMoment> = Vec::new();
    let mut list = Vec::new();
    for (report, numbers) in reports.iter().zip(numbers) {
        let old = &report.history;
        // The last moment of each part is the part's.
        let mut joint = vec![None; old.moments.len()];
        for moment in 0..fewest {
            let at = (moment + 1) * old.moments.len() / fewest - 1;
            joint[at] = Some(moment as u32);
            match moments.get_mut(moment) {
                Some(sum) => sum.allocated += old.moments[at].allocated,
                None => moments.push(old.moments[at]),
            }
        }
        list.extend(old.list.iter().filter_map(|held| {
            Some(Held {
                site: *numbers.get(held.site as usize)?,
                moment: joint.get(held.moment as usize).copied().flatten()?,
                ..*held
            })
        }));
    }
    History::of(moments, list)
}

fn totals(reports: &[Report]) -> Totals {
    let mut sum = Totals::default();
    let mut sizes: BTreeMap<u64, u64> = BTreeMap::new();
    for totals in reports.iter().map(|report| &report.totals) {
        sum.allocated += totals.allocated;
        sum.freed += totals.freed;
        sum.live += totals.live;
        sum.high_water += totals.high_water;
        sum.sizes_rounded |= totals.sizes_rounded;
        for size in &totals.sizes {
            let count = sizes.entry(size.size).or_default();
            *count = count.saturating_add(size.count);
        }
        for &(allocator, tally) in &totals.by_allocator {
            match sum.by_allocator.iter_mut().find(|(a, _)| *a == allocator) {
                Some((_, known)) => *known += tally,
                None => sum.by_allocator.push((allocator, tally)),
            }
        }
    }
    sum.sizes = sizes
        .into_iter()
        .map(|(size, count)| SizeCount { size, count })
        .collect();
    sum
}

fn process_memory(reports: &[Report]) -> Option<ProcessMemory> {
    let mut all = reports.iter().map(|report| report.process_memory.as_ref());
    let mut sum = all.next()??.clone();
    for memory in all {
        let memory = memory?;
        sum.rss = sum.rss.saturating_add(memory.rss);
        for (known, more) in [
            (&mut sum.anonymous, memory.anonymous),
            (&mut sum.files, memory.files),
            (&mut sum.shared, memory.shared),
            (&mut sum.swapped, memory.swapped),
            (&mut sum.stacks, memory.stacks),
            (&mut sum.cgroup, memory.cgroup),
            (&mut sum.cgroup_limit, memory.cgroup_limit),
        ] {
            *known = known.zip(more).map(|(a, b)| a.saturating_add(b));
        }
        sum.stack_count = sum.stack_count.saturating_add(memory.stack_count);
        sum.own_mapped = sum.own_mapped.saturating_add(memory.own_mapped);
        sum.own_heap = sum.own_heap.saturating_add(memory.own_heap);
        for one in &memory.allocators {
            let known = sum.allocators.iter_mut().find(|a| a.name == one.name);
            match known {
                Some(AllocatorMemory {
                    in_use,
                    kept,
                    arenas,
                    ..
                }) => {
                    *arenas = arenas.saturating_add(one.arenas);
                    *in_use = in_use.saturating_add(one.in_use);
                    *kept = kept.saturating_add(one.kept);
                }
                None => sum.allocators.push(one.clone()),
            }
        }
    }
    Some(sum)
}

/// Adds margins. An exact report adds nothing to the margin.
fn merge_sampling(sum: &mut Option<Sampling>, more: Option<&Sampling>) {
    let Some(more) = more else {
        return;
    };
    let sum = sum.get_or_insert_default();
    sum.rates.extend_from_slice(&more.rates);
    sum.samples = sum.samples.saturating_add(more.samples);
    sum.asked += more.asked;
    for (sum, more) in [
        (&mut sum.allocated, more.allocated),
        (&mut sum.live, more.live),
        (&mut sum.high_water, more.high_water),
    ] {
        // The estimates are independent of each other, so their squares add up.
        let both = |one: u64, other: u64| (one as f64).hypot(other as f64).round() as u64;
        sum.count = both(sum.count, more.count);
        sum.bytes = both(sum.bytes, more.bytes);
    }
}

fn merge_conditions(merged: &mut Report, reports: &[Report]) {
    let sum = &mut merged.conditions;
    for conditions in reports.iter().map(|report| &report.conditions) {
        sum.still_recording |= conditions.still_recording;
        for hooks in conditions.hooks.split(", ") {
            if !sum.hooks.split(", ").any(|known| known == hooks) {
                let comma = if sum.hooks.is_empty() { "" } else { ", " };
                sum.hooks = format!("{}{comma}{hooks}", sum.hooks);
            }
        }
        for (known, more) in [
            (&mut sum.lost_events, conditions.lost_events),
            (&mut sum.stacks_cut, conditions.stacks_cut),
            (&mut sum.stacks_incomplete, conditions.stacks_incomplete),
            (&mut sum.unknown_frees, conditions.unknown_frees),
            (
                &mut sum.overhead.memory_bytes,
                conditions.overhead.memory_bytes,
            ),
            (
                &mut sum.overhead.collector_cpu_ns,
                conditions.overhead.collector_cpu_ns,
            ),
            (&mut sum.overhead.log_bytes, conditions.overhead.log_bytes),
        ] {
            *known = known.saturating_add(more);
        }
        merge_sampling(&mut sum.sampling, conditions.sampling.as_ref());
        // The smallest of all, because each session counts from its own start.
        sum.lost_since_ms = match (sum.lost_since_ms, conditions.lost_since_ms) {
            (Some(known), Some(more)) => Some(known.min(more)),
            (known, more) => known.or(more),
        };
        if sum.log_given_up.is_none() {
            sum.log_given_up.clone_from(&conditions.log_given_up);
        }
        for note in &conditions.notes {
            if !sum.notes.contains(note) {
                sum.notes.push(note.clone());
            }
        }
    }
}

/// Adds what the reader of a report of `number` captures must know.
pub(super) fn add_notes(merged: &mut Report, number: usize) {
    let notes = &mut merged.conditions.notes;
    notes.push(format!(
        "merged from {number} captures: the high-water mark is the sum of each one's own, which need not have come at \
         one moment",
    ));
    if !merged.survivors.starts_ms.is_empty() {
        notes.push(
            "ages of what is still live are by number of the generation: each capture was cut at times of its own"
                .into(),
        );
    }
}
