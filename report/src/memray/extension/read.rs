//! Reads the extension. Counts and texts are hostile input: each has a limit, and memory is taken from a budget.

use std::io::Read;

use super::super::limit::{Budget, in_list};
use super::super::source::{Decoded, Source, Stop, damaged};
use super::super::tables::MOST_STACKS;
use super::{END, Extension, MAGIC, NodeEntry, ThreadEntry, VERSION};
use crate::known::{Known, MOST_RULES};
use crate::model::{
    About, Allocator, AllocatorMemory, Conditions, Context, ContextId, Held, History,
    HistoryMoment, Mark, Module, Moment, Overhead, Place, ProcessMemory, Sampling, SamplingRate,
    Site, SizeCount, Spread, StackId, Survivor, Survivors, Tally, ThreadId, Totals,
};

/// Reads the step from one entry's call site to the next. Returns it, and adds it to `site`, which must be one of `sites`.
/// `what` is the entry's name for users.
fn next_site<R: Read>(
    source: &mut Source<R>,
    site: &mut u32,
    sites: usize,
    what: &str,
) -> Decoded<i64> {
    let step = source.signed()?;
    match u32::try_from(i64::from(*site).wrapping_add(step)) {
        Ok(next) if (next as usize) < sites => *site = next,
        _ => return damaged(format!("{what} without a call site")),
    }
    Ok(step)
}

/// Reads the extension. Returns `None` if there is none, or one of an unknown version.
pub(in crate::memray) fn read<R: Read>(
    source: &mut Source<R>,
    budget: &mut Budget,
) -> Decoded<Option<Extension>> {
    match source.peek()? {
        Some(first) if first == MAGIC[0] => {}
        // Between its frames: a packed capture of heapray's own always has an extension.
        None if source.is_packed() => return Err(Stop::Cut),
        _ => return Ok(None),
    }
    if source.array()? != MAGIC || u32::from_le_bytes(source.array()?) != VERSION {
        return Ok(None);
    }
    let mut extension = Extension {
        about: about(source, budget)?,
        ..Extension::default()
    };
    for _ in 0..count(source, MOST_ROWS)? {
        budget.take(in_list::<ThreadEntry>())?;
        extension.threads.push(ThreadEntry {
            tid: source.varint()?,
            threads: small(source)?,
            name: text(source, budget)?,
        });
    }
    for own in 1..=count(source, MOST_SITES)? {
        let up = source.varint()?;
        let parent = own.checked_sub(up).filter(|_| up > 0);
        let Some(parent) = parent.and_then(|p| u32::try_from(p).ok()) else {
            return damaged("a call stack whose caller comes later");
        };
        let code = small(source)?;
        // And the node's number in the capture's own tree.
        budget.take(in_list::<(NodeEntry, StackId)>())?;
        extension.stacks.push(NodeEntry { parent, code });
    }
    for number in 0..count(source, MOST_CONTEXTS)? {
        let context = context(source, budget)?;
        if number == 0 && !context.labels.is_empty() {
            return damaged("a first context with labels");
        }
        budget.take(in_list::<Context>())?;
        extension.contexts.push(context);
    }
    for _ in 0..count(source, MOST_SITES)? {
        let site = site(source)?;
        if site.context != ContextId::NONE && site.context.0 as usize >= extension.contexts.len() {
            return damaged("a call site without its context");
        }
        if site.thread.0 as usize >= extension.threads.len()
            || site.stack.0 as usize > extension.stacks.len()
        {
            return damaged("a call site without thread or call stack");
        }
        budget.take(in_list::<Site>())?;
        extension.sites.push(site);
    }
    let mut at_ms = 0u64;
    for _ in 0..count(source, MOST_ROWS)? {
        at_ms = at_ms.wrapping_add(source.signed()? as u64);
        budget.take(in_list::<Moment>())?;
        extension.timeline.push(Moment {
            at_ms,
            rss: source.varint()?,
            heap: source.varint()?,
            own: source.varint()?,
        });
    }
    extension.totals = totals(source, budget)?;
    extension.conditions = conditions(source, budget)?;
    for _ in 0..count(source, MOST_NOTES)? {
        budget.take(in_list::<Mark>())?;
        extension.marks.push(Mark {
            name: text(source, budget)?,
            at_ms: source.varint()?,
            live: tally(source)?,
        });
    }
    extension.survivors = survivors(source, extension.sites.len(), budget)?;
    extension.process_memory = process_memory(source, budget)?;
    for _ in 0..count(source, MOST_NOTES)? {
        budget.take(in_list::<Module>())?;
        extension.modules.push(module(source, budget)?);
    }
    let mut address = 0u64;
    for _ in 0..count(source, MOST_SITES)? {
        let code = small(source)?;
        let module = optional(source)?.and_then(|module| u32::try_from(module).ok());
        address = address.wrapping_add(source.signed()? as u64);
        let place = Place {
            module: module.filter(|&module| (module as usize) < extension.modules.len()),
            address,
            inlined: flag(source)?,
        };
        budget.take(2 * in_list::<(u32, Place)>())?;
        extension.places.push((code, place));
    }
    extension.conditions.sampling = sampling(source, budget)?;
    for _ in 0..count(source, MOST_SITES)? {
        let code = small(source)?;
        budget.take(2 * in_list::<(u32, String)>())?;
        extension.full_names.push((code, text(source, budget)?));
    }
    extension.history = history(source, extension.sites.len(), budget)?;
    if source.byte()? != END {
        return damaged("a bad end mark");
    }
    Ok(Some(extension))
}

/// Reads a count of at most `most` entries. A single byte may stand for an entry, and a packed capture may expand to 255
/// times its size.
fn count<R: Read>(source: &mut Source<R>, most: u64) -> Decoded<u64> {
    match source.varint()? {
        count if count <= most => Ok(count),
        count => damaged(format!("{count} entries, but at most {most} are possible")),
    }
}

/// Larger than any report's number of directories, notes, marks, generations or allocators.
const MOST_NOTES: u64 = 1 << 16;
/// Every line has a curve over these: `views::leaks`. There are never more than 32 in a capture of heapray's.
const MOST_HISTORY_MOMENTS: u64 = 256;
/// Larger than any report's number of contexts.
const MOST_CONTEXTS: u64 = 1 << 20;
/// Larger than any context's number of labels.
const MOST_LABELS: u64 = 64;
/// Larger than any report's number of threads, sizes or readings of memory.
const MOST_ROWS: u64 = 1 << 22;
/// Larger than any report's number of call sites or survivors.
const MOST_SITES: u64 = MOST_STACKS as u64;

/// Reads a text, whose bytes are taken from the budget.
fn text<R: Read>(source: &mut Source<R>, budget: &mut Budget) -> Decoded<String> {
    let text = source.text()?;
    budget.take(text.capacity() as u64 + 32)?;
    Ok(text)
}

fn small<R: Read>(source: &mut Source<R>) -> Decoded<u32> {
    match u32::try_from(source.varint()?) {
        Ok(n) => Ok(n),
        Err(_) => damaged("a number of more than 32 bits"),
    }
}

fn optional<R: Read>(source: &mut Source<R>) -> Decoded<Option<u64>> {
    match source.varint()? {
        u64::MAX => Ok(Some(u64::MAX - 1 + u64::from(flag(source)?))),
        more => Ok(more.checked_sub(1)),
    }
}

fn flag<R: Read>(source: &mut Source<R>) -> Decoded<bool> {
    Ok(source.byte()? != 0)
}

fn texts<R: Read>(source: &mut Source<R>, budget: &mut Budget) -> Decoded<Vec<String>> {
    let mut texts = Vec::new();
    for _ in 0..count(source, MOST_NOTES)? {
        budget.take(in_list::<String>())?;
        texts.push(text(source, budget)?);
    }
    Ok(texts)
}

fn known<R: Read>(source: &mut Source<R>, budget: &mut Budget) -> Decoded<Vec<Known>> {
    let mut rules = Vec::new();
    for _ in 0..count(source, MOST_RULES as u64)? {
        budget.take(in_list::<Known>())?;
        rules.push(Known {
            function: text(source, budget)?,
            file: text(source, budget)?,
            reason: text(source, budget)?,
        });
    }
    Ok(rules)
}

fn tally<R: Read>(source: &mut Source<R>) -> Decoded<Tally> {
    Ok(Tally {
        count: source.varint()?,
        bytes: source.varint()?,
    })
}

fn allocator<R: Read>(source: &mut Source<R>) -> Decoded<Allocator> {
    let id = source.byte()?;
    match Allocator::from_id(id) {
        Some(allocator) => Ok(allocator),
        None => damaged(format!("allocator {id}")),
    }
}

/// Reads an allocator that allocates: call sites have no other.
fn getter<R: Read>(source: &mut Source<R>) -> Decoded<Allocator> {
    match allocator(source)? {
        free if free.is_free() => damaged(format!("a call site of {}", free.name())),
        allocator => Ok(allocator),
    }
}

fn about<R: Read>(source: &mut Source<R>, budget: &mut Budget) -> Decoded<About> {
    Ok(About {
        command_line: text(source, budget)?,
        pid: small(source)?,
        start_ms: source.signed()?,
        end_ms: source.signed()?,
        events: source.varint()?,
        library_dir: text(source, budget)?,
        package_dirs: texts(source, budget)?,
        source_dirs: texts(source, budget)?,
        own_crates: texts(source, budget)?,
        known: known(source, budget)?,
        source_root: text(source, budget)?,
        source_url: text(source, budget)?,
        replicas: texts(source, budget)?,
        untrimmed: flag(source)?,
        producer: text(source, budget)?,
        python_allocator: source.byte()?,
    })
}

fn context<R: Read>(source: &mut Source<R>, budget: &mut Budget) -> Decoded<Context> {
    let mut context = Context::default();
    for _ in 0..count(source, MOST_LABELS)? {
        budget.take(in_list::<(String, String)>())?;
        let label = (text(source, budget)?, text(source, budget)?);
        context.labels.push(label);
    }
    if flag(source)? {
        for spread in context.runs.spreads_mut() {
            *spread = read_spread(source, budget)?;
        }
        context.runs.freed_of_others = tally(source)?;
    }
    Ok(context)
}

fn read_spread<R: Read>(source: &mut Source<R>, budget: &mut Budget) -> Decoded<Spread> {
    let mut counts = Vec::new();
    for _ in 0..count(source, Spread::BUCKETS as u64)? {
        budget.take(in_list::<u64>())?;
        counts.push(source.varint()?);
    }
    let (sum, largest) = (source.varint()?, source.varint()?);
    Ok(Spread::from_parts(counts, sum, largest))
}

fn site<R: Read>(source: &mut Source<R>) -> Decoded<Site> {
    Ok(Site {
        thread: ThreadId(small(source)?),
        stack: StackId(small(source)?),
        context: ContextId(small(source)?),
        allocator: getter(source)?,
        allocated: tally(source)?,
        high_water: tally(source)?,
        live: tally(source)?,
        temporary: tally(source)?,
        oldest_live_ms: optional(source)?,
    })
}

fn totals<R: Read>(source: &mut Source<R>, budget: &mut Budget) -> Decoded<Totals> {
    let mut totals = Totals {
        allocated: tally(source)?,
        freed: tally(source)?,
        live: tally(source)?,
        high_water: tally(source)?,
        high_water_ms: optional(source)?,
        sizes_rounded: flag(source)?,
        ..Totals::default()
    };
    for _ in 0..count(source, MOST_NOTES)? {
        let allocator = allocator(source)?;
        budget.take(in_list::<(Allocator, Tally)>())?;
        totals.by_allocator.push((allocator, tally(source)?));
    }
    for _ in 0..count(source, MOST_ROWS)? {
        budget.take(in_list::<SizeCount>())?;
        totals.sizes.push(SizeCount {
            size: source.varint()?,
            count: source.varint()?,
        });
    }
    Ok(totals)
}

fn conditions<R: Read>(source: &mut Source<R>, budget: &mut Budget) -> Decoded<Conditions> {
    let still_recording = flag(source)?;
    let hooks = text(source, budget)?;
    let lost_events = source.varint()?;
    let stacks_cut = source.varint()?;
    let stacks_incomplete = source.varint()?;
    let unknown_frees = source.varint()?;
    let lost_since_ms = optional(source)?;
    let given_up = flag(source)?;
    let why = text(source, budget)?;
    Ok(Conditions {
        still_recording,
        hooks,
        lost_events,
        lost_since_ms,
        stacks_cut,
        stacks_incomplete,
        unknown_frees,
        log_given_up: given_up.then_some(why),
        notes: texts(source, budget)?,
        overhead: Overhead {
            memory_bytes: source.varint()?,
            collector_cpu_ns: source.varint()?,
            log_bytes: source.varint()?,
        },
        sampling: None,
    })
}

fn sampling<R: Read>(source: &mut Source<R>, budget: &mut Budget) -> Decoded<Option<Sampling>> {
    if !flag(source)? {
        return Ok(None);
    }
    let mut rates = Vec::new();
    for _ in 0..count(source, MOST_NOTES)? {
        budget.take(in_list::<SamplingRate>())?;
        rates.push(SamplingRate {
            at_ms: source.varint()?,
            mean_bytes: source.varint()?,
        });
    }
    Ok(Some(Sampling {
        rates,
        samples: source.varint()?,
        asked: tally(source)?,
        allocated: tally(source)?,
        live: tally(source)?,
        high_water: tally(source)?,
    }))
}

fn survivors<R: Read>(
    source: &mut Source<R>,
    sites: usize,
    budget: &mut Budget,
) -> Decoded<Survivors> {
    let mut survivors = Survivors::default();
    let mut start = 0u64;
    for _ in 0..count(source, MOST_NOTES)? {
        start = start.wrapping_add(source.signed()? as u64);
        budget.take(in_list::<u64>())?;
        survivors.starts_ms.push(start);
    }
    let mut site = 0;
    for _ in 0..count(source, MOST_SITES)? {
        next_site(source, &mut site, sites, "survivors")?;
        let survivor = Survivor {
            site,
            generation: small(source)?,
            live: tally(source)?,
        };
        if survivor.generation as usize >= survivors.starts_ms.len() {
            return damaged("survivors without a generation");
        }
        budget.take(in_list::<Survivor>())?;
        survivors.list.push(survivor);
    }
    Ok(survivors)
}

fn process_memory<R: Read>(
    source: &mut Source<R>,
    budget: &mut Budget,
) -> Decoded<Option<ProcessMemory>> {
    if !flag(source)? {
        return Ok(None);
    }
    let mut memory = ProcessMemory {
        rss: source.varint()?,
        anonymous: optional(source)?,
        files: optional(source)?,
        shared: optional(source)?,
        swapped: optional(source)?,
        stacks: optional(source)?,
        stack_count: small(source)?,
        own_mapped: source.varint()?,
        own_heap: source.varint()?,
        ..ProcessMemory::default()
    };
    for _ in 0..count(source, MOST_NOTES)? {
        budget.take(in_list::<AllocatorMemory>())?;
        memory.allocators.push(AllocatorMemory {
            name: text(source, budget)?,
            in_use: source.varint()?,
            kept: source.varint()?,
            arenas: small(source)?,
        });
    }
    memory.cgroup = optional(source)?;
    memory.cgroup_limit = optional(source)?;
    Ok(Some(memory))
}

fn module<R: Read>(source: &mut Source<R>, budget: &mut Budget) -> Decoded<Module> {
    let path = text(source, budget)?;
    let build_id = text(source, budget)?;
    let hash = text(source, budget)?;
    let start = source.varint()?;
    Ok(Module {
        path,
        build_id,
        start,
        limit: start.saturating_add(source.varint()?),
        offset: source.varint()?,
        address: source.varint()?,
        hash,
    })
}

fn history<R: Read>(source: &mut Source<R>, sites: usize, budget: &mut Budget) -> Decoded<History> {
    let mut history = History::default();
    let mut at_ms = 0u64;
    for _ in 0..count(source, MOST_HISTORY_MOMENTS)? {
        at_ms = at_ms.wrapping_add(source.signed()? as u64);
        budget.take(in_list::<HistoryMoment>())?;
        history.moments.push(HistoryMoment {
            at_ms,
            allocated: tally(source)?,
        });
    }
    let (mut site, mut live, mut allocated) = (0, 0u64, 0u64);
    for _ in 0..count(source, MOST_SITES)? {
        if next_site(source, &mut site, sites, "a history")? != 0 {
            (live, allocated) = (0, 0);
        }
        let moment = small(source)?;
        live = live.wrapping_add(source.signed()? as u64);
        allocated = allocated.wrapping_add(source.signed()? as u64);
        let held = Held {
            site,
            moment,
            live,
            allocated,
        };
        if held.moment as usize >= history.moments.len() {
            return damaged("a history without a moment");
        }
        budget.take(in_list::<Held>())?;
        history.list.push(held);
    }
    Ok(history)
}
