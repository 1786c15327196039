//! The seam between the pure assembly of a report and whatever knows symbols.

use std::borrow::Cow;

use super::names::FunctionName;
use crate::collector::snapshot::Module;

/// One frame that an address stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place<'a> {
    /// Its name; the texts in it are empty if it is unknown.
    pub(crate) function: Cow<'a, FunctionName>,
    /// The source file as the compiler saw it; empty if unknown.
    pub(crate) file: Cow<'a, str>,
    /// Line in `file`, from 1; 0 if unknown.
    pub(crate) line: u32,
}

/// Called with the index of an address and its frames, outermost first; no frame if nothing is known.
pub(crate) type Found<'f> = dyn FnMut(usize, &[Place<'_>]) + 'f;

/// Something that knows the code of modules.
pub(crate) trait Lookup {
    /// Calls `found` once for each of `offsets`: virtual addresses in the file of `module` (of the call
    /// instruction, not of the return), ascending. Order of the calls is free.
    fn lookup(&mut self, module: &Module, offsets: &[u64], found: &mut Found<'_>);

    /// Sentences for the reader of the report about what could not be looked up.
    fn notes(&self) -> Vec<String>;
}
