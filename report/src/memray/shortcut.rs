//! The fast way through a capture that heapray wrote: the definitions at its front, and then its sums at once.
//!
//! Only for inputs that can seek, and only if everything fits: a signpost, tables that end where it says, and a whole
//! extension that refers to nothing else and ends the capture. Any other capture is read from front to back, which reports
//! what is wrong. Damage among the skipped events is not noticed here.

use std::io::{Read, Seek, SeekFrom};

use super::extension;
use super::graft::{Grafted, SameNames, graft};
use super::header::{ALL_ALLOCATIONS, Header};
use super::limit::{Budget, MemoryLimit};
use super::read::{Capture, Format, forget_roots};
use super::signpost::Signpost;
use super::source::{Decoded, Source};
use super::tables::Tables;
use super::tag;
use crate::model::Report;

/// Result of the fast way.
#[derive(Debug)]
pub(super) struct Shortcut {
    header: Header,
    pub(super) tables: Tables,
    grafted: Grafted,
}

impl Shortcut {
    /// Takes the fast way, if possible. Leaves `input` at any position.
    pub(super) fn take(
        input: &mut (impl Read + Seek),
        limit: MemoryLimit,
        same_names: SameNames,
    ) -> Option<Shortcut> {
        let signpost = Signpost::find(input)?;
        input.rewind().ok()?;
        let mut source = Source::new(&mut *input).ok()?;
        let mut budget = Budget::new(limit);
        let header = Header::read(&mut source, &mut budget).ok()?;
        let mut tables = Tables::new(header.python_version, budget);
        let whole = read_tables(&mut source, &header, &mut tables, signpost.tables).ok()?;
        if !whole || !tables.ours {
            return None;
        }
        input.seek(SeekFrom::Start(signpost.extension)).ok()?;
        let mut source = Source::new(input).ok()?;
        let extension = extension::read(&mut source, &mut tables.budget).ok()??;
        let ends = source.peek().ok()?.is_none();
        if !ends || !source.is_packed() || !extension.codes().all(|code| tables.defines(code)) {
            return None;
        }
        let grafted = graft(&mut tables, extension, same_names).ok()?;
        Some(Shortcut {
            header,
            tables,
            grafted,
        })
    }

    pub(super) fn into_capture(self) -> Capture {
        let Shortcut {
            header,
            mut tables,
            grafted,
        } = self;
        let format = if header.format == ALL_ALLOCATIONS {
            Format::AllAllocations
        } else {
            forget_roots(&mut tables, &header);
            Format::Aggregated
        };
        let (version, facts) = (header.version, header.facts());
        let mut report = Report::default();
        tables.give_to(&mut report);
        grafted.give_to(&mut report);
        Capture {
            report,
            format,
            version,
            facts,
            complete: true,
        }
    }
}

/// Reads the records up to byte `end` of the unpacked capture. Returns true if all of them are definitions, and one ends
/// there.
fn read_tables<R: Read>(
    source: &mut Source<R>,
    header: &Header,
    tables: &mut Tables,
    end: u64,
) -> Decoded<bool> {
    let mut current = None;
    while source.position() < end {
        match source.byte()? {
            tag::CONTEXT_SWITCH => current = tables.thread(source.u64()?)?,
            tag::THREAD_RECORD => tables.read_thread_name(current, source)?,
            tag::CODE_OBJECT => tables.read_code_object(source)?,
            tag::MEMORY_SNAPSHOT if header.format != ALL_ALLOCATIONS => {
                let _: [u64; 3] = [source.u64()?, source.u64()?, source.u64()?];
            }
            _ => return Ok(false),
        }
    }
    Ok(source.position() == end)
}
