//! Compiles a module's `.eh_frame` into a table of rules. Ordinary code: never called in a hook.
//!
//! Formats: DWARF 5 section 6.4; LSB 5.0 Core, "Exception Frames" (`.eh_frame` and `.eh_frame_hdr`).

use gimli::{
    BaseAddresses, CfaRule, EhFrame, EhFrameHdr, EndianSlice, FrameDescriptionEntry, NativeEndian,
    Register, RegisterRule, UnwindContext, UnwindContextStorage, UnwindSection, UnwindTableRow,
};

use super::table::{Table, TableBuilder};
use crate::capture::arch::{
    self, DWARF_FRAME_POINTER, DWARF_RETURN_ADDRESS, DwarfCfa, DwarfPlace, DwarfRow,
};

/// Places of a module's unwind information in memory.
#[derive(Debug, Clone, Copy)]
pub(super) struct UnwindSections<'a> {
    /// The bytes of `.eh_frame_hdr`.
    pub(super) header: &'a [u8],
    /// Address of those bytes in the module.
    pub(super) header_address: u64,
    /// The bytes from the beginning of `.eh_frame` to the end of its segment.
    pub(super) frames: &'a [u8],
    /// Address of those bytes in the module.
    pub(super) frames_address: u64,
    /// The range of the module's code.
    pub(super) code: (u64, u64),
}

type Slice<'a> = EndianSlice<'a, NativeEndian>;

/// Inline storage for the rules of one row: x86-64 has 17 registers that a row can name, and vector registers never survive
/// a call; AArch64 functions save 12 registers, half of 8 vector registers, and the state of a signature.
struct InLine;

impl UnwindContextStorage<usize> for InLine {
    type Rules = [(Register, RegisterRule<usize>); 32];
    type Stack = [UnwindTableRow<usize, InLine>; 4];
}

/// Returns the address of `.eh_frame`, from the `.eh_frame_hdr` at `address`.
pub(super) fn frames_address(header: &[u8], address: u64) -> Option<u64> {
    let bases = BaseAddresses::default().set_eh_frame_hdr(address);
    let parsed = EhFrameHdr::new(header, NativeEndian)
        .parse(&bases, 8)
        .ok()?;
    parsed.eh_frame_ptr().direct().ok()
}

/// Returns the rules of all of a module's code, or `None` if there is no memory or the information makes no sense.
pub(super) fn compile(sections: &UnwindSections<'_>) -> Option<Table> {
    let (start, end) = sections.code;
    let mut builder = TableBuilder::new(u32::try_from(end - start).ok()?)?;
    let bases = BaseAddresses::default()
        .set_eh_frame_hdr(sections.header_address)
        .set_eh_frame(sections.frames_address);
    let mut frames = EhFrame::new(sections.frames, NativeEndian);
    if cfg!(target_arch = "aarch64") {
        // Without this, gimli does not know `DW_CFA_AARCH64_negate_ra_state`.
        frames.set_vendor(gimli::Vendor::AArch64);
    }
    let mut context = UnwindContext::<usize, InLine>::new_in();
    each_fde(sections, &frames, &bases, |fde| {
        push_rows(&mut builder, start, fde, &frames, &bases, &mut context);
    });
    builder.finish()
}

type Fde<'a> = FrameDescriptionEntry<Slice<'a>>;

/// Calls `visit` with all frame description entries, by their first address. They come from the header's search table, which
/// linkers sort, or, without such a table, from the section itself.
fn each_fde<'a>(
    sections: &UnwindSections<'a>,
    frames: &EhFrame<Slice<'a>>,
    bases: &BaseAddresses,
    mut visit: impl FnMut(&Fde<'a>),
) {
    if each_listed_fde(sections, frames, bases, &mut visit).is_some() {
        return;
    }
    let mut fdes = Vec::new();
    let mut entries = frames.entries(bases);
    // An entry that makes no sense ends the section, because the start of the next one is not known.
    while let Ok(Some(entry)) = entries.next() {
        if let gimli::CieOrFde::Fde(partial) = entry
            && let Ok(fde) = partial.parse(EhFrame::cie_from_offset)
        {
            fdes.push(fde);
        }
    }
    fdes.sort_by_key(FrameDescriptionEntry::initial_address);
    fdes.iter().for_each(visit);
}

/// Returns `None` if there is no search table, or an unusable one.
fn each_listed_fde<'a>(
    sections: &UnwindSections<'a>,
    frames: &EhFrame<Slice<'a>>,
    bases: &BaseAddresses,
    visit: &mut impl FnMut(&Fde<'a>),
) -> Option<()> {
    let header = EhFrameHdr::new(sections.header, NativeEndian)
        .parse(bases, 8)
        .ok()?;
    let table = header.table()?;
    if !is_sorted(table.iter(bases)) {
        return None;
    }
    let mut entries = table.iter(bases);
    // Neighbours mostly share their common information entry.
    let mut last_cie = None;
    while let Ok(Some((_, pointer))) = entries.next() {
        let Ok(offset) = table.pointer_to_offset(pointer) else {
            continue;
        };
        let fde = frames.fde_from_offset(bases, offset, |section, bases, offset| {
            if let Some((known, cie)) = &last_cie
                && *known == offset
            {
                return Ok(Clone::clone(cie));
            }
            let cie = section.cie_from_offset(bases, offset)?;
            last_cie = Some((offset, cie.clone()));
            Ok(cie)
        });
        if let Ok(fde) = fde {
            visit(&fde);
        }
    }
    Some(())
}

/// Returns whether there are entries, sorted by their first address.
fn is_sorted(mut entries: gimli::EhHdrTableIter<'_, '_, Slice<'_>>) -> bool {
    let mut last = None;
    while let Ok(Some((address, _))) = entries.next() {
        let address = Some(address.pointer());
        if address < last {
            return false;
        }
        last = address;
    }
    last.is_some()
}

fn push_rows(
    builder: &mut TableBuilder,
    code: u64,
    fde: &Fde<'_>,
    frames: &EhFrame<Slice<'_>>,
    bases: &BaseAddresses,
    context: &mut UnwindContext<usize, InLine>,
) {
    let offset = |address: u64| u32::try_from(address.saturating_sub(code)).unwrap_or(u32::MAX);
    if fde.end_address() <= code {
        return;
    }
    let Ok(mut rows) = fde.rows(frames, bases, context) else {
        return builder.push(
            offset(fde.initial_address()),
            offset(fde.end_address()),
            arch::Rule::UNSUPPORTED,
        );
    };
    let is_signal_frame = fde.is_signal_trampoline();
    let mut at = fde.initial_address();
    loop {
        match rows.next_row() {
            Ok(Some(row)) => {
                let rule = rule(row, frames, is_signal_frame);
                at = row.end_address();
                builder.push(offset(row.start_address()), offset(at), rule);
            }
            Ok(None) => return,
            // The rest of this function has an instruction that is not understood.
            Err(_) => {
                let end = offset(fde.end_address());
                return builder.push(offset(at), end, arch::Rule::UNSUPPORTED);
            }
        }
    }
}

fn rule(
    row: &UnwindTableRow<usize, InLine>,
    frames: &EhFrame<Slice<'_>>,
    is_signal_frame: bool,
) -> arch::Rule {
    let expression = |expression: &gimli::UnwindExpression<usize>| {
        expression.get(frames).map(|found| found.0.slice())
    };
    let place = |number: u16| match row.register(Register(number)) {
        None => DwarfPlace::Unspecified,
        Some(RegisterRule::Undefined) => DwarfPlace::Undefined,
        Some(RegisterRule::SameValue) => DwarfPlace::Unchanged,
        Some(RegisterRule::Offset(offset)) => DwarfPlace::AtCfa(offset),
        Some(RegisterRule::Expression(found)) => {
            expression(&found).map_or(DwarfPlace::Elsewhere, DwarfPlace::AtExpression)
        }
        Some(_) => DwarfPlace::Elsewhere,
    };
    let cfa = match row.cfa() {
        CfaRule::RegisterAndOffset { register, offset } => DwarfCfa::Register {
            number: register.0,
            offset: *offset,
        },
        CfaRule::Expression(found) => DwarfCfa::Expression(expression(found).unwrap_or_default()),
    };
    arch::Rule::from_dwarf(&DwarfRow {
        cfa,
        frame_pointer: place(DWARF_FRAME_POINTER),
        return_address: place(DWARF_RETURN_ADDRESS),
        is_signal_frame,
    })
}
