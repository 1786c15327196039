//! The meaning of the numbers in events: call stacks, modules and threads. With it, another process can read the log of a
//! process that did not live to make its own report.
//!
//! Records stand in blocks of their own, each before the first block of events that needs it. Blocks of events are
//! independent; those of names continue the one before.
//!
//! ```text
//! 0   process: number, start (ms since the Unix epoch), command line
//! 1   module, numbered from 0: load bias, start, end; 0, or 1 and the code's start, end, offset; 1 if it is the program;
//!     build id, path
//! 2   node, numbered from 1: parent, module, address as a difference to the node before
//! 3   thread: number, tid, how many it stands for, name           (written again when it changes)
//! 4   mark: ms since the start, live blocks, live bytes, name
//! 5   context: number, count of labels, each: key, value
//! 6   thread in a context, numbered from 2^31: thread, context
//! ```

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::block::{FULL, invalid};
use super::codec::{put, take, take_byte, take_u32, unzigzag, zigzag};
use crate::capture::event::NodeId;
use crate::capture::modules::{MappedCode, Module, ModuleId};
use crate::collector::hash::Map;
use crate::collector::snapshot::{RawNode, RawThread};
use crate::contexts::Labels;
use heapray_report::model::{Mark, Tally};

const PROCESS: u8 = 0;
const MODULE: u8 = 1;
const NODE: u8 = 2;
const THREAD: u8 = 3;
const MARK: u8 = 4;
const CONTEXT: u8 = 5;
const PAIR: u8 = 6;

/// Largest number of bytes of a path, a name or a command line that is kept.
const LONGEST: usize = 4096;

/// Process that a log belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Process {
    /// Process number.
    pub pid: u32,
    /// Start of the session, to the millisecond.
    pub started: SystemTime,
    /// Arguments of the process, joined by blanks.
    pub command_line: String,
}

/// Data of a session besides its events.
#[derive(Debug, Clone, Copy)]
pub(in crate::collector) struct Known<'a> {
    pub(in crate::collector) modules: &'a [Module],
    pub(in crate::collector) nodes: &'a [RawNode],
    pub(in crate::collector) threads: &'a [RawThread],
    pub(in crate::collector) marks: &'a [Mark],
    /// Pairs of a thread and a context.
    pub(in crate::collector) pairs: &'a [(u32, u32)],
    /// Returns the contexts from a number on, with that and their labels. They are asked for when there is a new pair.
    pub(in crate::collector) contexts_from: fn(u32) -> Vec<(u32, Labels)>,
}

/// Data that was already written to the log.
#[derive(Debug)]
pub(super) struct WrittenNames {
    process: Option<Process>,
    modules: usize,
    nodes: usize,
    address: u64,
    threads: Vec<RawThread>,
    marks: usize,
    pairs: usize,
    /// The number of the next context.
    contexts: u32,
}

impl WrittenNames {
    pub(super) fn nothing() -> WrittenNames {
        WrittenNames {
            process: None,
            modules: 0,
            // The empty stack is not written.
            nodes: 1,
            address: 0,
            threads: Vec::new(),
            marks: 0,
            pairs: 0,
            // The context without labels is not written.
            contexts: 1,
        }
    }

    /// Sets the process, which is written with the first names.
    pub(super) fn set_process(&mut self, process: Process) {
        self.process = Some(process);
    }

    /// Calls `block` with the records of what is new in `known`, one block's payload at a time.
    pub(super) fn write_new(&mut self, known: Known<'_>, block: &mut dyn FnMut(&[u8])) {
        let mut out = Vec::new();
        if let Some(process) = self.process.take() {
            put_process(&mut out, &process);
        }
        for module in &known.modules[self.modules.min(known.modules.len())..] {
            put_module(&mut out, module);
            self.modules += 1;
            pass_on_if_full(&mut out, block);
        }
        for node in &known.nodes[self.nodes.min(known.nodes.len())..] {
            out.push(NODE);
            put(&mut out, u64::from(node.parent.0));
            put(&mut out, u64::from(node.module.0));
            put(&mut out, zigzag(node.address.wrapping_sub(self.address)));
            self.address = node.address;
            self.nodes += 1;
            pass_on_if_full(&mut out, block);
        }
        for (at, thread) in known.threads.iter().enumerate() {
            if self.threads.get(at) == Some(thread) {
                continue;
            }
            match self.threads.get_mut(at) {
                Some(written) => written.clone_from(thread),
                None => self.threads.push(thread.clone()),
            }
            out.push(THREAD);
            put(&mut out, u64::from(thread.number));
            put(&mut out, u64::from(thread.tid));
            put(&mut out, u64::from(thread.threads));
            put_text(&mut out, thread.name.as_bytes());
            pass_on_if_full(&mut out, block);
        }
        let pairs = &known.pairs[self.pairs.min(known.pairs.len())..];
        if !pairs.is_empty() {
            for (number, labels) in (known.contexts_from)(self.contexts) {
                put_context(&mut out, number, &labels);
                self.contexts = number + 1;
                pass_on_if_full(&mut out, block);
            }
        }
        for &(thread, context) in pairs {
            out.push(PAIR);
            put(&mut out, u64::from(thread));
            put(&mut out, u64::from(context));
            self.pairs += 1;
            pass_on_if_full(&mut out, block);
        }
        for mark in &known.marks[self.marks.min(known.marks.len())..] {
            out.push(MARK);
            put(&mut out, mark.at_ms);
            put(&mut out, mark.live.count);
            put(&mut out, mark.live.bytes);
            put_text(&mut out, mark.name.as_bytes());
            self.marks += 1;
            pass_on_if_full(&mut out, block);
        }
        if !out.is_empty() {
            block(&out);
        }
    }

    /// Returns the bytes of memory.
    pub(super) fn memory_bytes(&self) -> usize {
        self.threads.capacity() * size_of::<RawThread>()
            + self
                .threads
                .iter()
                .map(|thread| thread.name.capacity())
                .sum::<usize>()
    }
}

fn pass_on_if_full(out: &mut Vec<u8>, block: &mut dyn FnMut(&[u8])) {
    // No record is longer than a few texts.
    if out.len() >= FULL - 3 * LONGEST {
        block(out);
        out.clear();
    }
}

fn put_text(out: &mut Vec<u8>, text: &[u8]) {
    let text = &text[..text.len().min(LONGEST)];
    put(out, text.len() as u64);
    out.extend_from_slice(text);
}

fn put_process(out: &mut Vec<u8>, process: &Process) {
    let since = process.started.duration_since(UNIX_EPOCH);
    out.push(PROCESS);
    put(out, u64::from(process.pid));
    put(out, since.map_or(0, |since| since.as_millis() as u64));
    put_text(out, process.command_line.as_bytes());
}

fn put_context(out: &mut Vec<u8>, number: u32, labels: &[(String, String)]) {
    out.push(CONTEXT);
    put(out, u64::from(number));
    put(out, labels.len() as u64);
    for text in labels.iter().flat_map(|(key, value)| [key, value]) {
        put_text(out, text.as_bytes());
    }
}

fn put_module(out: &mut Vec<u8>, module: &Module) {
    out.push(MODULE);
    for number in [module.load_bias, module.start, module.end] {
        put(out, number);
    }
    out.push(u8::from(module.code.is_some()));
    if let Some(code) = module.code {
        for number in [code.start, code.end, code.offset] {
            put(out, number);
        }
    }
    out.push(u8::from(module.is_main));
    put_text(out, &module.build_id);
    put_text(out, module.path.as_os_str().as_bytes());
}

/// Data in a log besides its events.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Names {
    /// The process, or `None` if the log ends before it.
    pub process: Option<Process>,
    /// Modules by [`ModuleId`].
    pub modules: Arc<Vec<Module>>,
    /// Nodes by [`NodeId`]. Index 0 is the empty stack.
    pub nodes: Vec<RawNode>,
    /// Threads, with their last names.
    pub threads: Vec<RawThread>,
    /// Marks, oldest first.
    pub marks: Vec<Mark>,
    /// Labels of each context. The first has none. Empty without contexts.
    pub contexts: Vec<Labels>,
    /// Positions in `contexts`, by the number of the context in the process.
    pub(super) context_at: Map<u32, u32>,
    /// Pairs of a thread and a position in `contexts`.
    pub(super) pairs: Vec<(u32, u32)>,
    /// The last address: addresses are stored as differences.
    pub(super) address: u64,
}

impl Names {
    pub(super) fn none() -> Names {
        Names {
            nodes: vec![RawNode {
                parent: NodeId::ROOT,
                module: ModuleId::NONE,
                address: 0,
            }],
            ..Names::default()
        }
    }

    /// Reads the records of a block.
    pub(super) fn learn(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        let bytes = &mut bytes;
        while !bytes.is_empty() {
            match take_byte(bytes)? {
                PROCESS => self.process = Some(process(bytes)?),
                MODULE => Arc::make_mut(&mut self.modules).push(module(bytes)?),
                NODE => {
                    let node = self.node(bytes)?;
                    self.nodes.push(node);
                }
                THREAD => {
                    let thread = RawThread {
                        number: take_u32(bytes)?,
                        tid: take_u32(bytes)?,
                        threads: take_u32(bytes)?,
                        name: string(bytes)?,
                    };
                    match self
                        .threads
                        .iter_mut()
                        .find(|one| one.number == thread.number)
                    {
                        Some(known) => *known = thread,
                        None => self.threads.push(thread),
                    }
                }
                CONTEXT => {
                    if self.contexts.is_empty() {
                        self.contexts.push(Labels::new());
                    }
                    let at = self.contexts.len() as u32;
                    self.context_at.insert(take_u32(bytes)?, at);
                    self.contexts.push(labels(bytes)?);
                }
                PAIR => {
                    let (thread, context) = (take_u32(bytes)?, take_u32(bytes)?);
                    let context = self.context_at.get(&context).copied();
                    self.pairs.push((thread, context.unwrap_or(0)));
                }
                MARK => self.marks.push(Mark {
                    at_ms: take(bytes)?,
                    live: Tally {
                        count: take(bytes)?,
                        bytes: take(bytes)?,
                    },
                    name: string(bytes)?,
                }),
                _ => return Err(invalid("a name is of an unknown kind")),
            }
        }
        Ok(())
    }

    fn node(&mut self, bytes: &mut &[u8]) -> io::Result<RawNode> {
        let parent = take_u32(bytes)?;
        if parent as usize >= self.nodes.len() {
            return Err(invalid("a call stack's caller comes later"));
        }
        let module = u16::try_from(take_u32(bytes)?)
            .map_err(|_| invalid("a module's number is too large"))?;
        self.address = self.address.wrapping_add(unzigzag(take(bytes)?));
        Ok(RawNode {
            parent: NodeId(parent),
            module: ModuleId(module),
            address: self.address,
        })
    }
}

fn process(bytes: &mut &[u8]) -> io::Result<Process> {
    let pid = take_u32(bytes)?;
    let since = Duration::from_millis(take(bytes)?);
    Ok(Process {
        pid,
        started: UNIX_EPOCH.checked_add(since).unwrap_or(UNIX_EPOCH),
        command_line: string(bytes)?,
    })
}

fn module(bytes: &mut &[u8]) -> io::Result<Module> {
    let (load_bias, start, end) = (take(bytes)?, take(bytes)?, take(bytes)?);
    let code = match take_byte(bytes)? {
        0 => None,
        _ => Some(MappedCode {
            start: take(bytes)?,
            end: take(bytes)?,
            offset: take(bytes)?,
        }),
    };
    Ok(Module {
        load_bias,
        start,
        end,
        code,
        is_main: take_byte(bytes)? != 0,
        build_id: text(bytes)?.to_vec(),
        path: PathBuf::from(OsStr::from_bytes(text(bytes)?)),
    })
}

fn labels(bytes: &mut &[u8]) -> io::Result<Labels> {
    let count = take(bytes)?;
    // The number is not trusted: memory is taken as the labels come.
    (0..count)
        .map(|_| Ok((string(bytes)?, string(bytes)?)))
        .collect()
}

fn string(bytes: &mut &[u8]) -> io::Result<String> {
    Ok(String::from_utf8_lossy(text(bytes)?).into_owned())
}

fn text<'b>(bytes: &mut &'b [u8]) -> io::Result<&'b [u8]> {
    let length = take(bytes)?;
    let Some((text, rest)) = usize::try_from(length)
        .ok()
        .and_then(|length| bytes.split_at_checked(length))
    else {
        return Err(invalid("a text is cut"));
    };
    *bytes = rest;
    Ok(text)
}
