//! Code addresses of frames, for formats that need them (pprof), and for looking up names later.

/// ELF object as it was mapped: a line of `/proc/self/maps` with its build id.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Module {
    /// Its path.
    pub path: String,
    /// Its GNU build id in hexadecimal; empty if it has none.
    pub build_id: String,
    /// Address of the first byte of its code's mapping.
    pub start: u64,
    /// Address after the last byte.
    pub limit: u64,
    /// Offset in the file of the byte at `start`.
    pub offset: u64,
    /// Virtual address in the file of the byte at `start`: what symbols and debug information name.
    pub address: u64,
    /// OpenTelemetry's hash of the file
    /// ([`htlhash`](https://opentelemetry.io/docs/specs/semconv/registry/attributes/process/)) in hexadecimal, if it has no build
    /// id; else empty.
    pub hash: String,
}

impl Module {
    /// Returns what the file calls `address`, an address in the process.
    #[must_use]
    pub fn in_file(&self, address: u64) -> u64 {
        address.wrapping_sub(self.start).wrapping_add(self.address)
    }
}

/// Place of one frame's code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Place {
    /// Index into [`Report::modules`](super::Report::modules), if the module is known.
    pub module: Option<u32>,
    /// Address of the frame in the process, in the call instruction. For an inlined frame, that of the frame that it is
    /// inlined into. 0 if unknown.
    pub address: u64,
    /// Set if the compiler has inlined the function into its caller: it has no frame of its own on the machine's stack.
    pub inlined: bool,
}
