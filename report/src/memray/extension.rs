//! What memray's format cannot say, behind the record at which memray stops reading.
//!
//! ```text
//! "heapray\0"  u32 version = 4
//! about        texts and numbers, in the order of the struct
//! threads      count, each: tid, how many it stands for, name
//! stacks       count, each: own number - parent's, code object        (node n is StackId n + 1)
//! sites        count, each: thread, stack, allocator, 4 tallies, oldest + 1 or 0
//! timeline     count, each: ms since the last, rss, heap, own
//! totals, conditions
//! marks        count, each: name, ms, what was live
//! survivors    count of generations, each: ms since the last; count, each: sites since the last, generation, what is live
//! memory       0 or 1, then the numbers in the order of the struct; allocators: count, each: name, in use, kept
//! modules      count, each: path, build id, start, length, offset
//! places       count, each: code object, module + 1 or 0, address from the last, inlined
//! sampling     0 or 1, then: count of rates, each: ms, mean; samples; what was asked for; 3 margins
//! full names   count, each: code object, the name where it is not the capture's
//! 0x01
//! ```
//! Numbers are varints, texts have their length in front. A number that may be missing is 0 or one more than it; behind
//! the largest one that a varint holds comes a byte, 0 for 2^64 - 2 and 1 for 2^64 - 1. Code objects are those of the capture, so this part is
//! of no use alone. A reader that finds it whole takes its sums from here, else from memray's records.

use std::io::{self, Read, Write};

use super::codec::{put_signed, put_varint};
use super::limit::{Budget, in_list};
use super::signpost::Signpost;
use super::source::{Decoded, Source, Stop, damaged};
use super::tables::MOST_STACKS;
use super::writer::Sink;
use crate::model::{
    About, Allocator, AllocatorMemory, Conditions, Mark, Module, Moment, Overhead, Place,
    ProcessMemory, Report, Sampling, SamplingRate, Site, SizeCount, StackId, Survivor, Survivors,
    Tally, Thread, ThreadId, Totals,
};

const MAGIC: [u8; 8] = *b"heapray\0";
const VERSION: u32 = 4;
const END: u8 = 1;

/// A thread as the extension has it.
#[derive(Debug, Clone)]
pub(super) struct ThreadEntry {
    pub(super) tid: u64,
    pub(super) threads: u32,
    pub(super) name: String,
}

/// A call-tree node as the extension has it: parent and code object.
#[derive(Debug, Clone, Copy)]
pub(super) struct NodeEntry {
    pub(super) parent: u32,
    pub(super) code: u32,
}

/// What was read. Stacks of `sites` are those of `stacks`, not of a report.
#[derive(Debug, Clone, Default)]
pub(super) struct Extension {
    pub(super) about: About,
    pub(super) threads: Vec<ThreadEntry>,
    pub(super) stacks: Vec<NodeEntry>,
    pub(super) sites: Vec<Site>,
    pub(super) timeline: Vec<Moment>,
    pub(super) totals: Totals,
    pub(super) conditions: Conditions,
    pub(super) marks: Vec<Mark>,
    pub(super) survivors: Survivors,
    pub(super) process_memory: Option<ProcessMemory>,
    pub(super) modules: Vec<Module>,
    /// By code object.
    pub(super) places: Vec<(u32, Place)>,
    /// By code object.
    pub(super) full_names: Vec<(u32, String)>,
}

impl Extension {
    /// Every code object that is referred to.
    pub(super) fn codes(&self) -> impl Iterator<Item = u32> {
        let of_stacks = self.stacks.iter().map(|node| node.code);
        let of_places = self.places.iter().map(|&(code, _)| code);
        let of_names = self.full_names.iter().map(|&(code, _)| code);
        of_stacks.chain(of_places).chain(of_names)
    }
}

/// Ends a capture whose records are written: the extension and the way to it. `codes`: code object by frame; `tables`:
/// bytes of the unpacked capture up to the last of them.
pub(super) fn finish<W: Write>(
    report: &Report,
    apart: &[Thread],
    codes: &[u32],
    tables: u64,
    sink: Sink<W>,
) -> io::Result<()> {
    let (mut sink, extension) = sink.next_frame()?;
    write(report, apart, codes, &mut sink)?;
    sink.finish(&Signpost { extension, tables })
}

/// Writes all of `report` that is not strings and frames.
fn write<W: Write>(
    report: &Report,
    apart: &[Thread],
    codes: &[u32],
    sink: &mut Sink<W>,
) -> io::Result<()> {
    sink.buffer.extend_from_slice(&MAGIC);
    sink.buffer.extend_from_slice(&VERSION.to_le_bytes());
    put_about(&mut sink.buffer, &report.about);
    put_count(&mut sink.buffer, report.threads.len() + apart.len());
    for thread in report.threads.iter().chain(apart) {
        put_varint(&mut sink.buffer, thread.tid);
        put_varint(&mut sink.buffer, u64::from(thread.threads));
        put_text(&mut sink.buffer, report.strings.get(thread.name));
        sink.pack_if_full()?;
    }
    put_count(&mut sink.buffer, report.stacks.len());
    for (stack, node) in report.stacks.iter() {
        put_varint(&mut sink.buffer, u64::from(stack.0 - node.parent.0));
        put_varint(&mut sink.buffer, u64::from(codes[node.frame.0 as usize]));
        sink.pack_if_full()?;
    }
    put_count(&mut sink.buffer, report.sites.len());
    for site in &report.sites {
        put_site(&mut sink.buffer, site);
        sink.pack_if_full()?;
    }
    put_count(&mut sink.buffer, report.timeline.len());
    let mut last = 0;
    for moment in &report.timeline {
        let out = &mut sink.buffer;
        put_signed(out, moment.at_ms.wrapping_sub(last) as i64);
        last = moment.at_ms;
        for number in [moment.rss, moment.heap, moment.own] {
            put_varint(out, number);
        }
        sink.pack_if_full()?;
    }
    put_totals(sink, &report.totals)?;
    put_conditions(&mut sink.buffer, &report.conditions);
    put_count(&mut sink.buffer, report.marks.len());
    for mark in &report.marks {
        put_text(&mut sink.buffer, &mark.name);
        put_varint(&mut sink.buffer, mark.at_ms);
        put_tally(&mut sink.buffer, mark.live);
        sink.pack_if_full()?;
    }
    put_survivors(sink, &report.survivors)?;
    put_process_memory(&mut sink.buffer, report.process_memory.as_ref());
    put_modules(&mut sink.buffer, &report.modules);
    put_places(sink, report, codes)?;
    put_sampling(&mut sink.buffer, report.conditions.sampling.as_ref());
    put_full_names(sink, report, codes)?;
    sink.buffer.push(END);
    Ok(())
}

fn put_count(out: &mut Vec<u8>, count: usize) {
    put_varint(out, count as u64);
}

fn put_text(out: &mut Vec<u8>, text: &str) {
    put_count(out, text.len());
    out.extend_from_slice(text.as_bytes());
}

fn put_texts(out: &mut Vec<u8>, texts: &[String]) {
    put_count(out, texts.len());
    for text in texts {
        put_text(out, text);
    }
}

fn put_tally(out: &mut Vec<u8>, tally: Tally) {
    put_varint(out, tally.count);
    put_varint(out, tally.bytes);
}

/// A number that may be missing: 0, or one more than it. The two largest would be the same then, so a byte tells them apart.
fn put_optional(out: &mut Vec<u8>, number: Option<u64>) {
    put_varint(out, number.map_or(0, |n| n.saturating_add(1)));
    if let Some(n) = number.filter(|&n| n >= u64::MAX - 1) {
        out.push((n & 1) as u8);
    }
}

fn put_about(out: &mut Vec<u8>, about: &About) {
    put_text(out, &about.command_line);
    put_varint(out, u64::from(about.pid));
    put_signed(out, about.start_ms);
    put_signed(out, about.end_ms);
    put_varint(out, about.events);
    put_text(out, &about.library_dir);
    put_texts(out, &about.package_dirs);
    put_texts(out, &about.source_dirs);
    put_text(out, &about.producer);
    out.push(about.python_allocator);
}

fn put_site(out: &mut Vec<u8>, site: &Site) {
    put_varint(out, u64::from(site.thread.0));
    put_varint(out, u64::from(site.stack.0));
    out.push(site.allocator.id());
    for tally in [site.allocated, site.high_water, site.live, site.temporary] {
        put_tally(out, tally);
    }
    put_optional(out, site.oldest_live_ms);
}

fn put_totals<W: Write>(sink: &mut Sink<W>, totals: &Totals) -> io::Result<()> {
    let out = &mut sink.buffer;
    for tally in [
        totals.allocated,
        totals.freed,
        totals.live,
        totals.high_water,
    ] {
        put_tally(out, tally);
    }
    put_optional(out, totals.high_water_ms);
    out.push(u8::from(totals.sizes_rounded));
    put_count(out, totals.by_allocator.len());
    for &(allocator, tally) in &totals.by_allocator {
        out.push(allocator.id());
        put_tally(out, tally);
    }
    put_count(out, totals.sizes.len());
    for size in &totals.sizes {
        put_varint(&mut sink.buffer, size.size);
        put_varint(&mut sink.buffer, size.count);
        sink.pack_if_full()?;
    }
    Ok(())
}

fn put_conditions(out: &mut Vec<u8>, conditions: &Conditions) {
    out.push(u8::from(conditions.still_recording));
    put_text(out, &conditions.hooks);
    for number in [
        conditions.lost_events,
        conditions.stacks_cut,
        conditions.stacks_incomplete,
        conditions.unknown_frees,
    ] {
        put_varint(out, number);
    }
    put_optional(out, conditions.lost_since_ms);
    out.push(u8::from(conditions.log_given_up.is_some()));
    put_text(out, conditions.log_given_up.as_deref().unwrap_or(""));
    put_texts(out, &conditions.notes);
    let overhead = &conditions.overhead;
    for number in [
        overhead.memory_bytes,
        overhead.collector_cpu_ns,
        overhead.log_bytes,
    ] {
        put_varint(out, number);
    }
}

fn put_sampling(out: &mut Vec<u8>, sampling: Option<&Sampling>) {
    out.push(u8::from(sampling.is_some()));
    let Some(sampling) = sampling else {
        return;
    };
    put_count(out, sampling.rates.len());
    for rate in &sampling.rates {
        put_varint(out, rate.at_ms);
        put_varint(out, rate.mean_bytes);
    }
    put_varint(out, sampling.samples);
    put_tally(out, sampling.asked);
    for margin in [sampling.allocated, sampling.live, sampling.high_water] {
        put_tally(out, margin);
    }
}

fn put_survivors<W: Write>(sink: &mut Sink<W>, survivors: &Survivors) -> io::Result<()> {
    put_count(&mut sink.buffer, survivors.starts_ms.len());
    let mut last = 0;
    for &start in &survivors.starts_ms {
        put_signed(&mut sink.buffer, start.wrapping_sub(last) as i64);
        last = start;
    }
    put_count(&mut sink.buffer, survivors.list.len());
    let mut last = 0;
    for survivor in &survivors.list {
        let out = &mut sink.buffer;
        put_signed(out, i64::from(survivor.site) - last);
        last = i64::from(survivor.site);
        put_varint(out, u64::from(survivor.generation));
        put_tally(out, survivor.live);
        sink.pack_if_full()?;
    }
    Ok(())
}

fn put_process_memory(out: &mut Vec<u8>, memory: Option<&ProcessMemory>) {
    out.push(u8::from(memory.is_some()));
    let Some(memory) = memory else { return };
    put_varint(out, memory.rss);
    for number in [
        memory.anonymous,
        memory.files,
        memory.shared,
        memory.swapped,
        memory.stacks,
    ] {
        put_optional(out, number);
    }
    put_varint(out, u64::from(memory.stack_count));
    put_varint(out, memory.own_mapped);
    put_varint(out, memory.own_heap);
    put_count(out, memory.allocators.len());
    for allocator in &memory.allocators {
        put_text(out, &allocator.name);
        put_varint(out, allocator.in_use);
        put_varint(out, allocator.kept);
    }
    put_optional(out, memory.cgroup);
    put_optional(out, memory.cgroup_limit);
}

fn put_modules(out: &mut Vec<u8>, modules: &[Module]) {
    put_count(out, modules.len());
    for module in modules {
        put_text(out, &module.path);
        put_text(out, &module.build_id);
        put_varint(out, module.start);
        put_varint(out, module.limit.saturating_sub(module.start));
        put_varint(out, module.offset);
    }
}

/// Of frames that are equal, and so share a code object, the first one with it.
fn firsts<'r, T>(of_frames: &'r [T], codes: &'r [u32]) -> impl Iterator<Item = (&'r T, u32)> {
    let mut last_code = 0;
    of_frames.iter().zip(codes).filter_map(move |(of, &code)| {
        let is_first = code > last_code;
        last_code = last_code.max(code);
        is_first.then_some((of, code))
    })
}

fn put_places<W: Write>(sink: &mut Sink<W>, report: &Report, codes: &[u32]) -> io::Result<()> {
    let firsts: Vec<_> = firsts(&report.places, codes).collect();
    put_count(&mut sink.buffer, firsts.len());
    let mut last = 0;
    for (place, code) in firsts {
        let out = &mut sink.buffer;
        put_varint(out, u64::from(code));
        put_optional(out, place.module.map(u64::from));
        put_signed(out, place.address.wrapping_sub(last) as i64);
        last = place.address;
        out.push(u8::from(place.inlined));
        sink.pack_if_full()?;
    }
    Ok(())
}

fn put_full_names<W: Write>(sink: &mut Sink<W>, report: &Report, codes: &[u32]) -> io::Result<()> {
    let both: Vec<_> = report.frames.iter().zip(&report.full_names).collect();
    let others: Vec<_> = firsts(&both, codes)
        .filter(|((frame, full), _)| frame.function != **full)
        .collect();
    put_count(&mut sink.buffer, others.len());
    for ((_, full), code) in others {
        put_varint(&mut sink.buffer, u64::from(code));
        put_text(&mut sink.buffer, report.strings.get(**full));
        sink.pack_if_full()?;
    }
    Ok(())
}

/// Reads the extension; `None` if none follows, or one of a version that is not known here.
pub(super) fn read<R: Read>(
    source: &mut Source<R>,
    budget: &mut Budget,
) -> Decoded<Option<Extension>> {
    match source.peek()? {
        Some(first) if first == MAGIC[0] => {}
        // Between its frames: a packed capture of heapray's own always has it.
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
        // And its number in the capture's own tree.
        budget.take(in_list::<(NodeEntry, StackId)>())?;
        extension.stacks.push(NodeEntry { parent, code });
    }
    for _ in 0..count(source, MOST_SITES)? {
        let site = site(source)?;
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
    if source.byte()? != END {
        return damaged("an end that is none");
    }
    Ok(Some(extension))
}

/// How many of something follow: no more than `most`. A single byte may stand for each, and a packed capture may hold
/// 255 times as many bytes as it has.
fn count<R: Read>(source: &mut Source<R>, most: u64) -> Decoded<u64> {
    match source.varint()? {
        count if count <= most => Ok(count),
        count => damaged(format!("{count} entries where there can be {most}")),
    }
}

/// More directories, notes, marks, generations or allocators than a report has.
const MOST_NOTES: u64 = 1 << 16;
/// More threads, sizes or readings of memory.
const MOST_ROWS: u64 = 1 << 22;
/// More call sites or survivors.
const MOST_SITES: u64 = MOST_STACKS as u64;

/// A text, whose bytes are counted.
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

/// An allocator that gets memory: call sites have no other.
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
        producer: text(source, budget)?,
        python_allocator: source.byte()?,
    })
}

fn site<R: Read>(source: &mut Source<R>) -> Decoded<Site> {
    Ok(Site {
        thread: ThreadId(small(source)?),
        stack: StackId(small(source)?),
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
    let mut site = 0i64;
    for _ in 0..count(source, MOST_SITES)? {
        site = site.wrapping_add(source.signed()?);
        let survivor = Survivor {
            site: match u32::try_from(site) {
                Ok(site) if (site as usize) < sites => site,
                _ => return damaged("survivors of no call site"),
            },
            generation: small(source)?,
            live: tally(source)?,
        };
        if survivor.generation as usize >= survivors.starts_ms.len() {
            return damaged("survivors of no generation");
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
        });
    }
    memory.cgroup = optional(source)?;
    memory.cgroup_limit = optional(source)?;
    Ok(Some(memory))
}

fn module<R: Read>(source: &mut Source<R>, budget: &mut Budget) -> Decoded<Module> {
    let (path, build_id) = (text(source, budget)?, text(source, budget)?);
    let start = source.varint()?;
    Ok(Module {
        path,
        build_id,
        start,
        limit: start.saturating_add(source.varint()?),
        offset: source.varint()?,
    })
}
