//! The call of a profiled function in the memory log.

/// Kept from the begin of a call to its end.
#[derive(Debug)]
pub(super) struct Record;

/// The call of the function of this path (`module::name`) begins, on this thread.
///
/// The one place where the memory log's `FUNC` records are to be wired in: what is returned is dropped when the call
/// ends, on whatever thread that is.
pub(super) fn begin(_path: &'static str) -> Record {
    Record
}
