//! The contexts of routes that were met. They are found without a lock: threads that answer requests do not wait for each
//! other.

use std::sync::OnceLock;

use crate::contexts::Context;

/// Routes that there is room for, with some room to spare. Others are named anew for each request, which takes longer.
const SLOTS: usize = 1024;
/// Slots in a row that a path may be in.
const TRIES: usize = 16;

/// The context of each path, and of `N` methods of it.
#[derive(Debug)]
pub(super) struct KnownRoutes<const N: usize> {
    slots: Box<[OnceLock<Path<N>>]>,
}

#[derive(Debug)]
struct Path<const N: usize> {
    path: Box<str>,
    contexts: [OnceLock<Context>; N],
}

impl<const N: usize> Default for KnownRoutes<N> {
    fn default() -> KnownRoutes<N> {
        KnownRoutes {
            slots: (0..SLOTS).map(|_| OnceLock::new()).collect(),
        }
    }
}

impl<const N: usize> KnownRoutes<N> {
    /// Returns the context of method number `method` of `path`, if it was learned.
    pub(super) fn get(&self, path: &str, method: usize) -> Option<Context> {
        let known = self.slots(path).map_while(OnceLock::get);
        let mut same = known.filter(|known| *known.path == *path);
        same.next()?.contexts.get(method)?.get().copied()
    }

    /// Learns the context of method number `method` of `path`, if there is room.
    pub(super) fn learn(&self, path: &str, method: usize, context: Context) {
        for slot in self.slots(path) {
            let known = slot.get_or_init(|| Path {
                path: path.into(),
                contexts: std::array::from_fn(|_| OnceLock::new()),
            });
            if *known.path == *path {
                if let Some(known) = known.contexts.get(method) {
                    known.get_or_init(|| context);
                }
                return;
            }
        }
    }

    /// Returns the slots where `path` may be, in the order in which they are filled.
    fn slots(&self, path: &str) -> impl Iterator<Item = &OnceLock<Path<N>>> {
        let first = hash(path) as usize;
        (first..first + TRIES).map(|at| &self.slots[at % SLOTS])
    }
}

/// A hash that is quick rather than safe: clients do not choose the paths of a router.
fn hash(path: &str) -> u32 {
    let bytes = path.as_bytes();
    let (words, rest) = bytes.as_chunks::<8>();
    // The last bytes with some of those before, since a copy of a few bytes costs more than all else here.
    let last = bytes.last_chunk::<8>().copied().unwrap_or_else(|| {
        let mut word = [0; 8];
        word[..rest.len()].copy_from_slice(rest);
        word
    });
    let mut hash = bytes.len() as u64;
    for word in words.iter().chain([&last]) {
        hash = (hash ^ u64::from_le_bytes(*word))
            .wrapping_mul(0x9E37_79B9_7F4A_7C15)
            .rotate_left(32);
    }
    hash as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contexts::context;

    #[test]
    fn each_path_and_method_has_its_own_context_and_too_many_are_not_kept() {
        let known: KnownRoutes<2> = KnownRoutes::default();
        let contexts = ["a", "b"].map(|name| context([("known route", name)]));
        let path = |nth: usize| format!("/items/{nth}/details");
        for nth in 0..2 * SLOTS {
            known.learn(&path(nth), nth % 2, contexts[nth % 2]);
        }
        let mut kept = 0;
        for nth in 0..2 * SLOTS {
            let found = known.get(&path(nth), nth % 2);
            assert!(found.is_none_or(|found| found == contexts[nth % 2]));
            assert_eq!(known.get(&path(nth), 1 - nth % 2), None);
            kept += usize::from(found.is_some());
        }
        assert!((SLOTS * 9 / 10..=SLOTS).contains(&kept), "{kept}");
        assert_eq!(known.get("/items", 0), None);
    }
}
