//! The interface of profilers for the workloads.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use axum::Router;

use crate::measure::Result;

/// Profiler inside the measured process.
pub trait Profiler {
    /// Returns the service's routes with the profiler's beside them.
    fn mount(&self, app: Router) -> Router {
        app
    }

    /// Waits until everything that happened so far is processed, so that work that was put off is measured too.
    fn settle(&mut self) {}

    /// Returns the profiler's own figures: `recorded` allocations, `lost` events, `own_bytes` of memory, …
    fn facts(&mut self) -> Vec<(&'static str, f64)> {
        Vec::new()
    }

    /// Ends the recording and writes below `folder` what a user would look at.
    ///
    /// # Errors
    ///
    /// An error of writing.
    fn finish(&mut self, _folder: &Path) -> Result<Written> {
        Ok(Written::default())
    }

    /// Returns the recorded call stacks, after the profiler is finished.
    ///
    /// # Errors
    ///
    /// An error of reading.
    fn folded(&mut self) -> Result<Option<Folded>> {
        Ok(None)
    }
}

/// No profiler in the process, or one that the process cannot see.
#[derive(Debug, Clone, Copy)]
pub struct Unprofiled;

impl Profiler for Unprofiled {}

/// Files that a finished profiler has left.
#[derive(Debug, Clone, Default)]
pub struct Written {
    /// Size of the recording's file.
    pub recording_bytes: Option<u64>,
    /// The flame graph, or the page that the profiler has instead.
    pub page: Option<PathBuf>,
}

impl Written {
    pub(crate) fn tell(&self) {
        let page = self.page.as_ref().and_then(|page| page.metadata().ok());
        for (name, bytes) in [
            ("recording_bytes", self.recording_bytes),
            ("page_bytes", page.map(|page| page.len())),
        ] {
            if let Some(bytes) = bytes {
                println!("{name}={bytes}");
            }
        }
    }
}

/// Call stacks that a profiler recorded, to check its work.
#[derive(Debug, Clone, Default)]
pub struct Folded {
    stacks: BTreeSet<u64>,
    deepest: usize,
    allocations: u64,
}

impl Folded {
    /// Adds a stack of `depth` frames, identified by `hash`, with its number of allocations.
    pub fn add(&mut self, hash: u64, depth: usize, allocations: u64) {
        self.stacks.insert(hash);
        self.deepest = self.deepest.max(depth);
        self.allocations += allocations;
    }

    /// Reads lines of `root;…;leaf number`.
    #[must_use]
    pub fn read(text: &str) -> Folded {
        use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
        let mut folded = Folded::default();
        for (stack, number) in text.lines().filter_map(|line| line.rsplit_once(' ')) {
            let hash = BuildHasherDefault::<DefaultHasher>::default().hash_one(stack);
            let number = number.parse().unwrap_or(0);
            folded.add(hash, stack.split(';').count(), number);
        }
        folded
    }

    /// Prints `stacks`, `deepest` and `stack_allocations`.
    pub fn tell(&self) {
        println!("stacks={}", self.stacks.len());
        println!("deepest={}", self.deepest);
        println!("stack_allocations={}", self.allocations);
    }

    /// Returns the number of different stacks, the frames of the deepest, and all allocations.
    #[must_use]
    pub fn sums(&self) -> (usize, usize, u64) {
        (self.stacks.len(), self.deepest, self.allocations)
    }
}

#[cfg(test)]
mod tests {
    use super::Folded;

    #[test]
    fn folded_stacks_are_counted() {
        let folded = Folded::read("main;run;read 3\nmain;run 4\nmain;run 5\n");
        assert_eq!(folded.sums(), (2, 3, 12));
    }
}
