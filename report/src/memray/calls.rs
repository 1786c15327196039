//! The most recent calls, by caller and code: nearly every call of a capture is one of them.
//!
//! Two caches that forget, so that no capture makes them grow beyond its call tree. Most call stacks call one or two others:
//! those are kept by the caller's number, so that a path that is walked again lies in memory in the order of the walk.
//! Callers with more callees use a common cache.

use super::limit::in_list;
use crate::model::StackId;

/// Called code and offset, and the stack that the call leads to.
#[derive(Debug, Clone, Copy, Default)]
struct Near {
    code: u32,
    offset: i32,
    /// The resulting stack. Empty in a free entry, because no call leads to the empty stack.
    stack: StackId,
}

#[derive(Debug, Clone, Copy, Default)]
struct Far {
    parent: StackId,
    call: Near,
}

#[derive(Debug)]
pub(super) struct Calls {
    /// Calls by the calling stack, the newer one first.
    near: Vec<[Near; 2]>,
    far: Box<[Far]>,
}

/// Bytes for each stack.
pub(super) const A_STACK: u64 = in_list::<[Near; 2]>();

/// Size of the common cache. Must be a power of two.
const FAR: usize = 1 << 15;

impl Default for Calls {
    fn default() -> Self {
        Calls {
            near: Vec::new(),
            far: vec![Far::default(); FAR].into_boxed_slice(),
        }
    }
}

impl Near {
    #[inline]
    fn led(&self, code: u32, offset: i32) -> bool {
        (self.code, self.offset) == (code, offset) && self.stack != StackId::EMPTY
    }
}

impl Calls {
    /// Returns the stack that the call leads to, if it is remembered.
    #[inline]
    pub(super) fn find(&mut self, parent: StackId, code: u32, offset: i32) -> Option<StackId> {
        if let Some(pair) = self.near.get(parent.0 as usize)
            && let Some(near) = pair.iter().find(|near| near.led(code, offset))
        {
            return Some(near.stack);
        }
        self.find_far(parent, code, offset)
    }

    fn find_far(&mut self, parent: StackId, code: u32, offset: i32) -> Option<StackId> {
        let far = self.far[place(parent, code, offset)];
        if far.parent != parent || !far.call.led(code, offset) {
            return None;
        }
        self.bring_near(parent, far.call);
        Some(far.call.stack)
    }

    /// Remembers that a call of `code` at `offset` by `parent` leads to `stack`.
    pub(super) fn remember(&mut self, parent: StackId, code: u32, offset: i32, stack: StackId) {
        let call = Near {
            code,
            offset,
            stack,
        };
        self.far[place(parent, code, offset)] = Far { parent, call };
        self.bring_near(parent, call);
    }

    fn bring_near(&mut self, parent: StackId, call: Near) {
        let parent = parent.0 as usize;
        if parent >= self.near.len() {
            self.near.resize(parent + 1, <[Near; 2]>::default());
        }
        let [newer, older] = &mut self.near[parent];
        *older = std::mem::replace(newer, call);
    }
}

#[inline]
fn place(parent: StackId, code: u32, offset: i32) -> usize {
    let site = code ^ (offset as u32).wrapping_mul(0x9E37_79B9);
    let all = u64::from(parent.0) << 32 | u64::from(site);
    (all.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40) as usize % FAR
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_remembered_is_where_the_call_led(
            calls in prop::collection::vec((0u32..5, 0u32..3000, -2i32..3), 1..20_000),
        ) {
            let mut cache = Calls::default();
            let mut tree = std::collections::HashMap::new();
            for (parent, code, offset) in calls {
                let parent = StackId(parent);
                let next = StackId(tree.len() as u32 + 1);
                let stack = *tree.entry((parent, code, offset)).or_insert(next);
                if let Some(found) = cache.find(parent, code, offset) {
                    prop_assert_eq!(found, stack);
                } else {
                    cache.remember(parent, code, offset, stack);
                    prop_assert_eq!(cache.find(parent, code, offset), Some(stack));
                }
            }
        }
    }
}
