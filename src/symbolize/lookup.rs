//! The interface between the assembly of a report and the source of symbols.

use std::borrow::Cow;
use std::collections::BTreeSet;

use heapray_report::sources::Unit;

use super::names::FunctionName;
use crate::collector::snapshot::Module;

/// One frame that an address stands for.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) struct Place<'a> {
    /// The function's name. Its texts are empty if it is unknown.
    pub(crate) function: Cow<'a, FunctionName>,
    /// The source file as the compiler saw it; empty if unknown.
    pub(crate) file: Cow<'a, str>,
    /// Line in `file`, from 1; 0 if unknown.
    pub(crate) line: u32,
}

impl Place<'_> {
    /// Returns the same with texts of its own.
    pub(crate) fn to_owned(&self) -> Place<'static> {
        Place {
            function: Cow::Owned(self.function.as_ref().clone()),
            file: Cow::Owned(self.file.as_ref().to_owned()),
            line: self.line,
        }
    }
}

/// A callback that gets the index of an address and its frames, outermost first, or no frames if the address is unknown.
pub(crate) type Found<'f> = dyn FnMut(usize, &[Place<'_>]) + 'f;

/// A source of symbols for the code of modules.
pub(crate) trait Lookup {
    /// Calls `found` once for each of `offsets`, in any order. `offsets` are virtual addresses in the file of `module`, in
    /// ascending order: those of the call instructions, not the return addresses.
    fn lookup(&mut self, module: &Module, offsets: &[u64], found: &mut Found<'_>);

    /// Returns the compilation units of the program's Rust code, if an address in the program was looked up and the program
    /// has debug information.
    fn units(&self) -> BTreeSet<Unit>;

    /// Returns notes for the reader of the report about addresses that could not be looked up.
    fn notes(&self) -> Vec<String>;
}
