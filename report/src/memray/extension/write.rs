//! Writes everything that memray's records do not have.

use std::io::{self, Write};

use super::super::codec::{put_signed, put_varint};
use super::super::signpost::Signpost;
use super::super::writer::Sink;
use super::{END, MAGIC, VERSION};
use crate::model::{
    About, Conditions, History, Module, ProcessMemory, Report, Runs, Sampling, Site, Survivors,
    Tally, Thread, Totals,
};

/// Ends a capture whose records are written with the extension and the signpost to it. `codes`: code object by frame;
/// `tables`: bytes of the unpacked capture up to the last of them.
pub(in crate::memray) fn finish<W: Write>(
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

/// Writes all of `report` except strings and frames.
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
    put_count(&mut sink.buffer, report.contexts.len());
    for context in &report.contexts {
        put_count(&mut sink.buffer, context.labels.len());
        for (key, value) in &context.labels {
            put_text(&mut sink.buffer, key);
            put_text(&mut sink.buffer, value);
        }
        put_runs(&mut sink.buffer, &context.runs);
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
    put_history(sink, &report.history)?;
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

/// Writes a number that may be missing: 0, or the number plus one. A byte distinguishes the two largest numbers, which would
/// be the same.
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
    put_texts(out, &about.own_crates);
    put_varint(out, about.known.len() as u64);
    for rule in &about.known {
        for text in [&rule.function, &rule.file, &rule.reason] {
            put_text(out, text);
        }
    }
    put_text(out, &about.source_root);
    put_text(out, &about.source_url);
    put_texts(out, &about.replicas);
    out.push(u8::from(about.untrimmed));
    put_text(out, &about.producer);
    out.push(about.python_allocator);
}

fn put_runs(out: &mut Vec<u8>, runs: &Runs) {
    let has_runs = *runs != Runs::default();
    out.push(u8::from(has_runs));
    if !has_runs {
        return;
    }
    for spread in runs.spreads() {
        put_count(out, spread.buckets().count());
        for (_, count) in spread.buckets() {
            put_varint(out, count);
        }
        put_varint(out, spread.sum());
        put_varint(out, spread.largest());
    }
    put_tally(out, runs.freed_of_others);
}

fn put_site(out: &mut Vec<u8>, site: &Site) {
    put_varint(out, u64::from(site.thread.0));
    put_varint(out, u64::from(site.stack.0));
    put_varint(out, u64::from(site.context.0));
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

fn put_history<W: Write>(sink: &mut Sink<W>, history: &History) -> io::Result<()> {
    put_count(&mut sink.buffer, history.moments.len());
    let mut last = 0;
    for moment in &history.moments {
        put_signed(&mut sink.buffer, moment.at_ms.wrapping_sub(last) as i64);
        last = moment.at_ms;
        put_tally(&mut sink.buffer, moment.allocated);
    }
    put_count(&mut sink.buffer, history.list.len());
    let (mut site, mut live, mut allocated) = (0, 0, 0);
    for held in &history.list {
        let out = &mut sink.buffer;
        let step = i64::from(held.site) - site;
        if step != 0 {
            (live, allocated) = (0, 0);
        }
        put_signed(out, step);
        put_varint(out, u64::from(held.moment));
        put_signed(out, held.live.wrapping_sub(live) as i64);
        put_signed(out, held.allocated.wrapping_sub(allocated) as i64);
        (site, live, allocated) = (i64::from(held.site), held.live, held.allocated);
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
        put_varint(out, u64::from(allocator.arenas));
    }
    put_optional(out, memory.cgroup);
    put_optional(out, memory.cgroup_limit);
}

fn put_modules(out: &mut Vec<u8>, modules: &[Module]) {
    put_count(out, modules.len());
    for module in modules {
        put_text(out, &module.path);
        put_text(out, &module.build_id);
        put_text(out, &module.hash);
        put_varint(out, module.start);
        put_varint(out, module.limit.saturating_sub(module.start));
        put_varint(out, module.offset);
        put_varint(out, module.address);
    }
}

/// Returns the first one of equal frames, which share a code object, with the code object.
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
