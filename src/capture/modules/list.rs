//! The loader's modules, and the parts of them that are needed here.
//!
//! While `dl_iterate_phdr` runs, no module can be unloaded; afterwards any thread can unload one. So everything is copied
//! inside the callback, except for the program itself, which is never unloaded.

use std::borrow::Cow;
use std::ffi::{CStr, OsStr, c_int, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use super::find_build_id;

/// Number of modules that the loader has added and removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct LoaderCounts {
    pub(super) added: u64,
    pub(super) removed: u64,
}

/// A loaded module.
#[derive(Debug)]
pub(super) struct Loaded {
    /// Empty for the program itself.
    pub(super) path: PathBuf,
    pub(super) load_bias: u64,
    pub(super) start: u64,
    pub(super) end: u64,
    /// Range of the module's executable segments.
    pub(super) code: Option<(u64, u64)>,
    /// Offset in the file of that range's first byte.
    pub(super) code_offset: u64,
    pub(super) build_id: Vec<u8>,
    pub(super) is_main: bool,
    /// The module's unwind information, if `wanted` asked for it and the module has any.
    pub(super) unwind: Option<UnwindBytes>,
}

/// A module's unwind information: a copy, or the memory itself if it is never unmapped.
#[derive(Debug)]
pub(super) struct UnwindBytes {
    pub(super) header: Cow<'static, [u8]>,
    pub(super) header_address: u64,
    pub(super) frames: Cow<'static, [u8]>,
    pub(super) frames_address: u64,
}

/// Asks the loader for its counts alone.
pub(super) fn counts() -> LoaderCounts {
    unsafe extern "C" fn first(
        info: *mut libc::dl_phdr_info,
        _: usize,
        data: *mut c_void,
    ) -> c_int {
        // SAFETY: the loader passes a valid `info`; `data` is the counts below, exclusively.
        let (info, counts) = unsafe { (&*info, &mut *data.cast::<LoaderCounts>()) };
        *counts = LoaderCounts {
            added: info.dlpi_adds,
            removed: info.dlpi_subs,
        };
        1
    }
    let mut counts = LoaderCounts::default();
    // SAFETY: `first` expects the counts, which outlive the call.
    unsafe { libc::dl_iterate_phdr(Some(first), (&raw mut counts).cast()) };
    counts
}

/// Returns all loaded modules, the program itself first. `wanted` says which modules' unwind information is needed.
pub(super) fn loaded(mut wanted: impl FnMut(&Loaded) -> bool) -> Vec<Loaded> {
    struct Request<'a> {
        modules: Vec<Loaded>,
        wanted: &'a mut dyn FnMut(&Loaded) -> bool,
    }
    unsafe extern "C" fn each(info: *mut libc::dl_phdr_info, _: usize, data: *mut c_void) -> c_int {
        // SAFETY: the loader passes a valid `info`; `data` is the request below, exclusively.
        let (info, request) = unsafe { (&*info, &mut *data.cast::<Request<'_>>()) };
        let is_main = request.modules.is_empty();
        // SAFETY: the module stays loaded during the callback.
        let (mut module, headers) = unsafe { describe(info, is_main) };
        if module.start < module.end {
            if (request.wanted)(&module) {
                // SAFETY: as above; the program itself is never unloaded.
                module.unwind = unsafe { unwind_bytes(info, headers, is_main) };
            }
            request.modules.push(module);
        }
        0
    }
    let mut request = Request {
        modules: Vec::new(),
        wanted: &mut wanted,
    };
    // SAFETY: `each` expects the request, which outlives the call. Neither it nor `wanted` unwinds: they only compare
    // and copy.
    unsafe { libc::dl_iterate_phdr(Some(each), (&raw mut request).cast()) };
    request.modules
}

type Headers = &'static [libc::Elf64_Phdr];

/// # Safety
/// The module of `info` stays loaded as long as the returned headers are used.
unsafe fn describe(info: &libc::dl_phdr_info, is_main: bool) -> (Loaded, Headers) {
    let path = if info.dlpi_name.is_null() {
        PathBuf::new()
    } else {
        // SAFETY: the loader's name, a C string.
        let name = unsafe { CStr::from_ptr(info.dlpi_name) };
        PathBuf::from(OsStr::from_bytes(name.to_bytes()))
    };
    let headers: Headers = if info.dlpi_phdr.is_null() {
        &[]
    } else {
        // SAFETY: the loader's program headers, `dlpi_phnum` of them.
        unsafe { core::slice::from_raw_parts(info.dlpi_phdr, usize::from(info.dlpi_phnum)) }
    };
    let segment = |header: &libc::Elf64_Phdr| {
        let start = info.dlpi_addr.wrapping_add(header.p_vaddr);
        (start, start.wrapping_add(header.p_memsz))
    };
    let hull = |wanted: &dyn Fn(&libc::Elf64_Phdr) -> bool| {
        let segments = headers
            .iter()
            .filter(|&header| header.p_type == libc::PT_LOAD && wanted(header));
        segments
            .map(segment)
            .reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)))
    };
    let (start, end) = hull(&|_| true).unwrap_or_default();
    let code = hull(&|header| header.p_flags & libc::PF_X != 0);
    let code_offset = headers
        .iter()
        .find(|header| {
            Some(segment(header).0) == code.map(|(start, _)| start)
                && header.p_type == libc::PT_LOAD
        })
        .map_or(0, |header| header.p_offset);
    let mut build_id = Vec::new();
    for header in headers
        .iter()
        .filter(|header| header.p_type == libc::PT_NOTE)
    {
        let (address, _) = segment(header);
        if is_inside(headers, info.dlpi_addr, address, header.p_memsz) {
            // SAFETY: notes lie in a loaded segment, as was checked just now.
            let notes = unsafe { bytes(address, header.p_memsz) };
            if let Some(id) = find_build_id(notes) {
                build_id = id.to_vec();
            }
        }
    }
    let load_bias = info.dlpi_addr;
    (
        Loaded {
            path,
            load_bias,
            start,
            end,
            code,
            code_offset,
            build_id,
            is_main,
            unwind: None,
        },
        headers,
    )
}

/// # Safety
/// The module of `info` stays loaded during the call, and forever if `stays`.
unsafe fn unwind_bytes(
    info: &libc::dl_phdr_info,
    headers: Headers,
    stays: bool,
) -> Option<UnwindBytes> {
    let keep = |bytes: &'static [u8]| {
        if stays {
            Cow::Borrowed(bytes)
        } else {
            Cow::Owned(bytes.to_vec())
        }
    };
    let entry = headers
        .iter()
        .find(|header| header.p_type == libc::PT_GNU_EH_FRAME)?;
    let header_address = info.dlpi_addr.wrapping_add(entry.p_vaddr);
    if !is_inside(headers, info.dlpi_addr, header_address, entry.p_memsz) {
        return None;
    }
    // SAFETY: the header lies in a loaded segment, as was checked just now.
    let header = unsafe { bytes(header_address, entry.p_memsz) };
    let frames_address = super::compile::frames_address(header, header_address)?;
    let end = readable_segments(headers, info.dlpi_addr)
        .find(|&(start, end)| (start..end).contains(&frames_address))?
        .1;
    // SAFETY: from an address inside a loaded segment to its end.
    let frames = unsafe { bytes(frames_address, end - frames_address) };
    Some(UnwindBytes {
        header: keep(header),
        header_address,
        frames: keep(frames),
        frames_address,
    })
}

fn readable_segments(headers: Headers, bias: u64) -> impl Iterator<Item = (u64, u64)> {
    let readable = |header: &&libc::Elf64_Phdr| {
        header.p_type == libc::PT_LOAD && header.p_flags & libc::PF_R != 0
    };
    headers.iter().filter(readable).map(move |header| {
        let start = bias.wrapping_add(header.p_vaddr);
        (start, start.wrapping_add(header.p_memsz))
    })
}

fn is_inside(headers: Headers, bias: u64, address: u64, length: u64) -> bool {
    readable_segments(headers, bias)
        .any(|(start, end)| start <= address && address < end && length <= end - address)
}

/// # Safety
/// The memory is readable as long as the slice is used.
unsafe fn bytes(address: u64, length: u64) -> &'static [u8] {
    // SAFETY: the caller's duty.
    unsafe { core::slice::from_raw_parts(address as *const u8, length as usize) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_itself_comes_first_and_has_code_and_unwind_information() {
        let modules = loaded(|module| module.is_main);
        let here = super::counts as *const () as u64;
        let (start, end) = modules[0].code.unwrap();
        assert!(modules[0].is_main && (start..end).contains(&here));
        let has_rules = cfg!(heapray_native);
        assert_eq!(modules[0].unwind.is_some(), has_rules);
        assert!(
            modules.len() > 1
                && modules[1..]
                    .iter()
                    .all(|module| !module.is_main && module.unwind.is_none())
        );
        assert!(counts().added >= modules.len() as u64 - 1);
    }
}
