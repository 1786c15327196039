//! Where frames lie in the process's code: what formats that name addresses (pprof) need.

/// An ELF object as it was mapped: a line of `/proc/self/maps` with its build id.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Module {
    /// Its path.
    pub path: String,
    /// Its GNU build id in hexadecimal; empty if it has none.
    pub build_id: String,
    /// Address of the first byte of its code's mapping.
    pub start: u64,
    /// Address behind the last.
    pub limit: u64,
    /// Offset in the file of the byte at `start`.
    pub offset: u64,
}

/// Where one frame's code is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Place {
    /// An index into [`Report::modules`](super::Report::modules); `None` where no module is known.
    pub module: Option<u32>,
    /// An address in the process at which the frame was met, in the call instruction; of an inlined frame, that of
    /// the frame that it is inlined into. 0 if unknown.
    pub address: u64,
    /// The compiler put it into its caller: it has no frame of its own on the machine's stack.
    pub inlined: bool,
}
