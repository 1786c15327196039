//! Reads the aggregated body: sums by call stack, in any order of records (capture format, section 4).

use std::io::Read;

use super::error::ReadError;
use super::header::Header;
use super::limit::{Budget, in_list, in_map};
use super::native::Native;
use super::source::{Decoded, Source, Stop, damaged};
use super::tables::{MOST_STACKS, Tables};
use super::tag;
use super::timeline::Timeline;
use crate::hash::FastMap;
use crate::model::{Allocator, ContextId, FrameId, Moment, Site, StackId, Tally, ThreadId};

/// Largest memory of a call site.
const SITE: u64 = in_list::<Site>() + in_map::<((u64, u64), usize)>();

/// Content of an aggregated body.
#[derive(Debug)]
pub(super) struct Aggregated {
    pub(super) tables: Tables,
    pub(super) sites: Vec<Site>,
    pub(super) timeline: Timeline,
    header: Header,
    native: Native,
    frames: Vec<FrameId>,
    /// Call stack of each node. Node n is `nodes[n - 1]`.
    nodes: Vec<StackId>,
    current: Option<ThreadId>,
    /// The index of a site, by thread, stack and allocator.
    known: FastMap<(u64, u64), usize>,
    record: &'static str,
    record_at: u64,
}

impl Aggregated {
    pub(super) fn new(header: &Header, budget: Budget) -> Self {
        Aggregated {
            tables: Tables::new(header.python_version, budget),
            sites: Vec::new(),
            timeline: Timeline::default(),
            header: header.clone(),
            native: Native::default(),
            frames: Vec::new(),
            nodes: Vec::new(),
            current: None,
            known: FastMap::default(),
            record: "record",
            record_at: 0,
        }
    }

    /// Reads all records. An unreadable record ends it; the message says what is wrong and where.
    pub(super) fn read<R: Read>(
        &mut self,
        source: &mut Source<R>,
    ) -> Result<Option<String>, ReadError> {
        let (record, at) = match self.records(source) {
            Ok(true) => return Ok(None),
            Ok(false) => {
                return Ok(Some(format!(
                    "the capture ends at byte {} without its end mark: call sites may be missing",
                    self.record_at
                )));
            }
            Err(Stop::Io(error)) => return Err(ReadError::Io(error)),
            Err(Stop::TooLarge(error)) => return Err(error.into()),
            Err(Stop::Cut) => (self.record, None),
            Err(Stop::Damaged(what)) => (self.record, Some(what)),
        };
        let byte = self.record_at;
        Ok(Some(match at {
            None => format!(
                "the capture is cut short inside of the {record} at byte {byte}: the rest is missing"
            ),
            Some(what) => format!(
                "the capture is damaged at byte {byte}, in the {record}: {what}; the rest is ignored"
            ),
        }))
    }

    /// Returns true at the end mark, false at the end of the input.
    fn records<R: Read>(&mut self, source: &mut Source<R>) -> Decoded<bool> {
        loop {
            self.record_at = source.position();
            self.record = "record";
            if source.peek()?.is_none() {
                return Ok(false);
            }
            match source.byte()? {
                tag::AGGREGATED_TRAILER => return Ok(true),
                tag::MEMORY_SNAPSHOT => self.snapshot(source)?,
                tag::AGGREGATED_ALLOCATION => self.row(source)?,
                tag::PYTHON_TRACE_INDEX => self.node(source)?,
                tag::PYTHON_FRAME_INDEX => self.frame(source)?,
                tag::NATIVE_TRACE_INDEX => {
                    self.record = "native frame";
                    self.native.read_node(source, &mut self.tables)?;
                }
                tag::MEMORY_MAP_START => self.native.start_generation(&mut self.tables)?,
                tag::SEGMENT_HEADER => {
                    self.record = "image";
                    self.native.read_image(source, &mut self.tables)?;
                }
                tag::THREAD_RECORD => {
                    self.record = "thread record";
                    self.tables.read_thread_name(self.current, source)?;
                }
                tag::CONTEXT_SWITCH => {
                    self.record = "context switch";
                    let tid = source.u64()?;
                    self.current = self.tables.thread(tid)?;
                }
                tag::CODE_OBJECT => {
                    self.record = "code object";
                    self.tables.read_code_object(source)?;
                }
                tag::SURVIVING_OBJECT => {
                    self.record = "surviving object";
                    source.varint()?;
                    if self.header.native_traces {
                        source.varint()?;
                    }
                }
                other => return damaged(format!("no record begins with {other:#04x}")),
            }
        }
    }

    fn snapshot<R: Read>(&mut self, source: &mut Source<R>) -> Decoded<()> {
        self.record = "memory snapshot";
        let at = source.u64()?;
        let start = self.header.about.start_ms as u64;
        self.timeline.add(Moment {
            at_ms: at.saturating_sub(start),
            rss: source.u64()?,
            heap: source.u64()?,
            own: 0,
        });
        Ok(())
    }

    fn frame<R: Read>(&mut self, source: &mut Source<R>) -> Decoded<()> {
        self.record = "frame";
        let number = source.varint()?;
        if number != self.frames.len() as u64 {
            return damaged(format!("frame {number} out of order"));
        }
        let code = source.varint()?;
        let offset = source.signed()?;
        let _is_entry = source.byte()?;
        self.tables.budget.take(in_list::<FrameId>())?;
        self.frames.push(self.tables.frame(code, offset)?);
        Ok(())
    }

    fn node<R: Read>(&mut self, source: &mut Source<R>) -> Decoded<()> {
        self.record = "call-tree node";
        let frame = source.varint()?;
        let parent = source.varint()?;
        let Some(&frame) = self.frames.get(frame as usize) else {
            return damaged(format!("frame {frame}, which is not defined"));
        };
        let parent = self.stack(parent)?;
        let stack = self.tables.child(parent, frame)?;
        if self.nodes.len() >= MOST_STACKS {
            return damaged("more call stacks than there can be");
        }
        self.tables.budget.take(in_list::<StackId>())?;
        self.nodes.push(stack);
        Ok(())
    }

    fn stack(&self, node: u64) -> Decoded<StackId> {
        let Some(index) = (node as usize).checked_sub(1) else {
            return Ok(StackId::EMPTY);
        };
        match self.nodes.get(index) {
            Some(&stack) => Ok(stack),
            None => damaged(format!("call stack {node}, which is not defined")),
        }
    }

    fn row<R: Read>(&mut self, source: &mut Source<R>) -> Decoded<()> {
        self.record = "aggregated allocation";
        let tid = source.u64()?;
        let [id, ..]: [u8; 8] = source.array()?;
        let native = source.u64()?;
        let node = source.u64()?;
        let generation = source.u64()?;
        let (high_count, live_count) = (source.u64()?, source.u64()?);
        let high_water = Tally {
            count: high_count,
            bytes: source.u64()?,
        };
        let live = Tally {
            count: live_count,
            bytes: source.u64()?,
        };
        let Some(allocator) = Allocator::from_id(id).filter(|a| !a.is_free()) else {
            return damaged(format!("allocator {id}"));
        };
        let Some(thread) = self.tables.thread(tid)? else {
            return damaged("an allocation by the thread that names the producer");
        };
        let mut stack = self.stack(node)?;
        if tid == self.header.main_tid && self.header.skipped_frames > 0 {
            stack = self.without_roots(stack)?;
        }
        if stack == StackId::EMPTY && native != 0 {
            stack = self.native.stack(native, generation, &mut self.tables)?;
        }
        let key = (u64::from(stack.0), u64::from(thread.0) << 8 | u64::from(id));
        let sites = &mut self.sites;
        if !self.known.contains_key(&key) {
            self.tables.budget.take(SITE)?;
        }
        let index = *self.known.entry(key).or_insert_with(|| {
            sites.push(Site {
                context: ContextId::NONE,
                thread,
                stack,
                allocator,
                allocated: Tally::default(),
                high_water: Tally::default(),
                live: Tally::default(),
                temporary: Tally::default(),
                oldest_live_ms: None,
            });
            sites.len() - 1
        });
        self.sites[index].high_water += high_water;
        self.sites[index].live += live;
        Ok(())
    }

    /// Returns `stack` without the outermost frames that the header hides, unless nothing would be left.
    fn without_roots(&mut self, stack: StackId) -> Decoded<StackId> {
        let mut frames: Vec<FrameId> = self.tables.stacks.leaf_to_root(stack).collect();
        let hidden = usize::try_from(self.header.skipped_frames).unwrap_or(usize::MAX);
        if frames.len() <= hidden {
            return Ok(stack);
        }
        frames.truncate(frames.len() - hidden);
        let mut shown = StackId::EMPTY;
        for frame in frames.into_iter().rev() {
            shown = self.tables.child(shown, frame)?;
        }
        Ok(shown)
    }
}
