//! The entries of threads in contexts.
//!
//! A call site belongs to one thread entry in one [context](crate::capture::context). Such a pair has a number of its own in
//! the place of the thread entry's, so that sites and live blocks need no further field:
//!
//! ```text
//!   0 .. 2^31                 a thread, in no context
//!   2^31 .. MOST_PAIRS on     a thread in a context, in the order of first use
//!   near 2^32                 the threads of one name (`Entries`), in no context
//! ```

use super::hash::Map;
use crate::contexts;

/// Number of the first pair.
const FIRST: u32 = 1 << 31;
/// Further pairs are counted as the thread in no context. 16 million of them need a gigabyte, so this is not expected.
const MOST_PAIRS: u32 = 1 << 24;

/// Pairs of a thread's entry and a context.
#[derive(Debug, Default)]
pub(super) struct Pairs {
    pairs: Vec<(u32, u32)>,
    numbers: Map<(u32, u32), u32>,
    /// Numbers that may be used again.
    free: Vec<u32>,
}

impl Pairs {
    /// Returns the number of `thread` in `context`, or in the context that this one is counted under.
    pub(super) fn entry(&mut self, thread: u32, context: u32) -> u32 {
        if context == 0 {
            return thread;
        }
        match self.numbers.get(&(thread, context)) {
            Some(&known) => known,
            None => self.add(thread, contexts::counted_under(context)),
        }
    }

    #[cold]
    fn add(&mut self, thread: u32, context: u32) -> u32 {
        if context == 0 {
            return thread;
        }
        if let Some(&known) = self.numbers.get(&(thread, context)) {
            return known;
        }
        let next = self.pairs.len() as u32;
        let number = match self.free.pop() {
            Some(free) => {
                self.pairs[(free - FIRST) as usize] = (thread, context);
                free
            }
            None if next < MOST_PAIRS => {
                self.pairs.push((thread, context));
                FIRST + next
            }
            None => return thread,
        };
        self.numbers.insert((thread, context), number);
        number
    }

    /// Counts what the threads did in some contexts under others: `retired` has both numbers. Returns the number of each pair
    /// with that of the pair that stands for it now. The first one may be `used_again` for another pair.
    pub(super) fn retire(&mut self, retired: &Map<u32, u32>, used_again: bool) -> Map<u32, u32> {
        let gone = self
            .numbers
            .extract_if(|(_, context), _| retired.contains_key(context));
        let gone: Vec<((u32, u32), u32)> = gone.collect();
        let mut moved = Map::default();
        for ((thread, context), number) in gone {
            let into = self.add(thread, retired[&context]);
            // What the log says of the pair is of the other context, too.
            self.pairs[(number - FIRST) as usize] = self.parts(into);
            moved.insert(number, into);
        }
        if used_again {
            self.free.extend(moved.keys());
        }
        moved
    }

    /// Returns the thread's entry and the context of an entry.
    #[inline]
    pub(super) fn parts(&self, entry: u32) -> (u32, u32) {
        parts(&self.pairs, entry)
    }

    /// Returns all pairs, in the order of their numbers.
    pub(super) fn list(&self) -> &[(u32, u32)] {
        &self.pairs
    }

    pub(super) fn is_empty(&self) -> bool {
        self.pairs.is_empty()
    }

    /// Returns the bytes of memory.
    pub(super) fn memory_bytes(&self) -> usize {
        self.pairs.capacity() * size_of::<(u32, u32)>()
            + self.numbers.capacity() * (size_of::<((u32, u32), u32)>() + 1)
            + self.free.capacity() * size_of::<u32>()
    }
}

/// Returns the thread's entry and the context of an entry, where `pairs` are those of [`Pairs::list`].
#[inline]
pub(super) fn parts(pairs: &[(u32, u32)], entry: u32) -> (u32, u32) {
    let at = entry.wrapping_sub(FIRST) as usize;
    pairs.get(at).copied().unwrap_or((entry, 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_stands_for_one_thread_in_one_context() {
        let mut pairs = Pairs::default();
        assert_eq!(pairs.entry(7, 0), 7);
        let numbers = [(7, 1), (7, 2), (u32::MAX, 1), (7, 1)].map(|(t, c)| pairs.entry(t, c));
        assert_eq!(numbers, [FIRST, FIRST + 1, FIRST + 2, FIRST]);
        let parts = [7, FIRST, FIRST + 1, FIRST + 2, u32::MAX].map(|entry| pairs.parts(entry));
        assert_eq!(
            parts,
            [(7, 0), (7, 1), (7, 2), (u32::MAX, 1), (u32::MAX, 0)]
        );
    }
}
