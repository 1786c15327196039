//! The call tree of one thread: call stacks as numbered nodes, each a parent and a return address.
//!
//! Only the thread that records adds nodes, inside its hooks; the collector reads them from another thread, through
//! [`Nodes`], without stopping it. Nodes are only ever appended, to chunks that never move:
//!
//! ```text
//! chunk 0: nodes 0..256   chunk 1: 256..768   chunk 2: 768..1792 …   (each twice as long as the one before)
//! ```
//! A node is written before `count` is raised past it with `Release`. A reader sees the whole node if it reads `count` with
//! `Acquire`, or takes the number from an event that was published with `Release` after that. A written node never changes.
//!
//! Most frames that are new with a stack have numbers in a row, so a node whose number is the one after its parent's is looked for
//! there. All others are found by a hash table that belongs to the recording thread alone.

use core::ptr::NonNull;
use core::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

use super::arch::prefetch;
use super::memory::{self, GrowArray, Plain};

/// Nodes in the first chunk.
const FIRST_CHUNK: u32 = 256;
/// Slots of the first hash table.
const FIRST_SLOTS: usize = 1024;
/// Chunks that numbers of 32 bits could have.
const CHUNKS: usize = 25;
/// Number of slots that are on their way to the cache while a table is filled.
const AHEAD: u32 = 16;
/// Bit of a node's number that says that the tree had no room for the rest of the stack. A call from such a node is the same
/// node again: a known inner frame below it would make a stack that never existed.
const SHORT: u32 = 1 << 31;
/// Bytes of a new tree, in one piece: the chunk list, the first chunk, the first hash table.
const BLOCK: usize = 8192;

const _: () = assert!(
    size_of::<Head>() + FIRST_CHUNK as usize * size_of::<Node>() + FIRST_SLOTS * 4 <= BLOCK,
    "a tree's first tables fit into its first block"
);

/// Node, packed to 12 bytes, because there may be millions.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(C, packed(4))]
struct Node {
    address: u64,
    parent: u32,
}

// SAFETY: integers.
unsafe impl Plain for Node {}

/// Part that the collector reads. It never moves, and lives until the tree is released.
#[repr(C)]
struct Head {
    /// Where node number -256 would be if the chunk went on before its beginning: a node is found without a subtraction.
    chunks: [AtomicPtr<Node>; CHUNKS],
    count: AtomicU32,
}

impl Head {
    /// Returns the chunk of node `number`, and the node's place counted from number -256 on: chunk c has the places
    /// 256 << c .. 512 << c.
    #[inline(always)]
    fn place(number: u32) -> (usize, usize) {
        let place = u64::from(number) + u64::from(FIRST_CHUNK);
        let chunk = place.ilog2() - FIRST_CHUNK.ilog2();
        (chunk as usize, place as usize)
    }

    /// Enters chunk `chunk`, which begins at `start`.
    fn set_chunk(&self, chunk: usize, start: NonNull<Node>) {
        let place_0 = start.as_ptr().wrapping_sub((FIRST_CHUNK as usize) << chunk);
        self.chunks[chunk].store(place_0, Ordering::Release);
    }

    /// Returns where node `number` is. Its chunk has been entered.
    #[inline(always)]
    fn at(&self, number: u32) -> *mut Node {
        let (chunk, place) = Head::place(number);
        self.chunks[chunk]
            .load(Ordering::Acquire)
            .wrapping_add(place)
    }

    /// # Safety
    /// Node `number` exists already: the calling thread knows its number from `count` or from an event.
    #[inline(always)]
    unsafe fn node(&self, number: u32) -> Node {
        // SAFETY: the chunk of an added node exists and is long enough (`place`), and the node in it was written
        // before it became known and is never written again.
        unsafe { self.at(number).read() }
    }
}

/// Thread's call tree, as other threads see it.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct Nodes(NonNull<Head>);

// SAFETY: the head is made of atomics, and nodes that are known are never written again (module documentation).
unsafe impl Send for Nodes {}
// SAFETY: as above.
unsafe impl Sync for Nodes {}

impl core::fmt::Debug for Nodes {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Nodes")
            .field("count", &self.count())
            .finish()
    }
}

impl Nodes {
    /// Returns the number of nodes, including the root (node 0).
    #[must_use]
    pub fn count(self) -> u32 {
        // SAFETY: whoever releases a tree promises that no `Nodes` of it is used afterwards.
        unsafe { self.0.as_ref() }.count.load(Ordering::Acquire)
    }

    /// Returns the parent and the return address of node `number`. The root is its own parent. A parent's number is smaller
    /// than its children's. For the number of a stack that was cut short, returns the node at which it was cut.
    ///
    /// # Panics
    /// Panics if the node does not exist yet.
    #[must_use]
    pub fn node(self, number: u32) -> (u32, u64) {
        let number = whole(number);
        assert!(number < self.count(), "node {number} of {}", self.count());
        // SAFETY: the head is alive as in `count`, which has just been read past `number`.
        let node = unsafe { self.0.as_ref().node(number) };
        (node.parent, node.address)
    }
}

/// Returns the number of the node itself, or of the node at which a stack was cut short.
#[inline]
#[must_use]
pub fn whole(number: u32) -> u32 {
    number & !SHORT
}

/// Thread's call tree, as its own thread sees it. Another thread may take over the tree with all nodes.
#[derive(Debug)]
pub struct CallTree {
    head: NonNull<Head>,
    count: u32,
    /// Numbers below this have a chunk.
    room: u32,
    /// Table of the nodes that do not follow their parents, open addressing. A slot has the node in its `number_bits` lowest
    /// bits, and as many of the hash's lowest bits as fit above them; 0 means empty. The hash's highest bits say where a search
    /// begins.
    slots: GrowArray<u32>,
    bits: u32,
    /// Number of nodes in the table.
    used: usize,
    /// Bits of a slot that are the number: enough for every number below `room`.
    number_bits: u32,
    /// The first node that can be found. The nodes before it are forgotten.
    first: u32,
}

// SAFETY: it owns the block and the tables it points to; nothing in it refers to a thread.
unsafe impl Send for CallTree {}

impl CallTree {
    /// Makes a tree that has only its root, in 8 KiB. Returns `None` if the kernel has no memory.
    #[must_use]
    pub fn new() -> Option<CallTree> {
        let block = memory::map(BLOCK)?;
        let head = block.cast::<Head>();
        // SAFETY: both follow the head inside the block (asserted above), and all are aligned to 4 bytes.
        // Fresh pages are zeroed, which is a valid `Head`, the root node (parent 0, address 0) and an empty table.
        let (slots, nodes) = unsafe {
            let slots = head.add(1).cast::<u32>();
            (
                GrowArray::borrowed(slots, FIRST_SLOTS),
                slots.add(FIRST_SLOTS).cast::<Node>(),
            )
        };
        // SAFETY: nobody else knows the block yet.
        let shared = unsafe { head.as_ref() };
        shared.set_chunk(0, nodes);
        shared.count.store(1, Ordering::Release);
        let bits = FIRST_SLOTS.ilog2();
        Some(CallTree {
            head,
            count: 1,
            room: FIRST_CHUNK,
            slots,
            bits,
            used: 0,
            number_bits: FIRST_CHUNK.ilog2(),
            first: 1,
        })
    }

    /// Returns the tree for its readers, valid until [`release`](CallTree::release).
    #[must_use]
    pub fn nodes(&self) -> Nodes {
        Nodes(self.head)
    }

    /// Returns the number of nodes, including the root.
    #[must_use]
    pub fn count(&self) -> u32 {
        self.count
    }

    fn head(&self) -> &Head {
        // SAFETY: the block lives as long as the tree.
        unsafe { self.head.as_ref() }
    }

    /// Returns the node for `address` called from `parent`, and makes it if necessary. If there is no room, returns `parent`
    /// itself with a mark. The stack then lacks its innermost frames; [`whole`] removes the mark.
    #[inline(always)]
    pub fn child(&mut self, parent: u32, address: u64) -> u32 {
        let next = parent.wrapping_add(1);
        if (self.first..self.count).contains(&next) {
            // SAFETY: the numbers below `count` are those of nodes that were added.
            let node = unsafe { self.head().node(next) };
            if node == (Node { address, parent }) {
                return next;
            }
        }
        self.child_by_hash(parent, address)
    }

    /// Does what [`child`](Self::child) does, for a node that does not follow its parent, or a new one.
    #[inline(never)]
    fn child_by_hash(&mut self, parent: u32, address: u64) -> u32 {
        // Nothing is called from the newest node yet.
        if follows(parent, self.count) {
            return self.add(parent, address);
        }
        let tag = tag(parent, address);
        let mask = (1usize << self.bits) - 1;
        let mut slot = self.first_slot(tag);
        loop {
            // SAFETY: the table has 2^bits slots, and the mask is one less.
            let entry = unsafe { *self.slots.as_ptr().add(slot & mask) };
            if entry == 0 {
                return self.add(parent, address);
            }
            if (entry ^ tag << self.number_bits) >> self.number_bits == 0 {
                let number = entry & ((1 << self.number_bits) - 1);
                // SAFETY: this thread entered the number, after it had added the node.
                if unsafe { self.head().node(number) } == (Node { address, parent }) {
                    return number;
                }
            }
            slot += 1;
        }
    }

    #[cold]
    fn add(&mut self, parent: u32, address: u64) -> u32 {
        if parent & SHORT != 0 {
            return parent;
        }
        let number = self.count;
        let in_table = !follows(parent, number);
        // A fuller table would make each search in a hook long.
        let is_full = in_table && (self.used + 1) * 4 > 3 << self.bits;
        if is_full && !self.rehash() || number == self.room && !self.add_chunk() {
            return parent | SHORT;
        }
        // SAFETY: `number` is below `room`, so its chunk exists and has the place. No reader knows the number yet.
        unsafe { self.head().at(number).write(Node { address, parent }) };
        self.count += 1;
        self.head().count.store(self.count, Ordering::Release);
        if in_table {
            self.enter(number, tag(parent, address));
        }
        number
    }

    fn add_chunk(&mut self) -> bool {
        let (chunk, _) = Head::place(self.room);
        let length = FIRST_CHUNK << chunk;
        // More nodes would not fit into a slot. Two billion stacks would need 24 GB.
        let room = self.room.checked_add(length);
        let Some(room) = room.filter(|&room| room <= 1 << 31) else {
            return false;
        };
        let bytes = length as usize * size_of::<Node>();
        if !memory::has_room(bytes) {
            return false;
        }
        let Some(start) = memory::map(bytes) else {
            return false;
        };
        self.head().set_chunk(chunk, start.cast());
        self.room = room;
        if self.room_bits() > self.number_bits {
            self.slots.as_mut_slice()[..1 << self.bits].fill(0);
            self.fill();
        }
        true
    }

    /// Returns the number of bits that hold every number below `room`.
    fn room_bits(&self) -> u32 {
        self.room.next_power_of_two().ilog2()
    }

    /// Returns the slot where the search for a node with this tag begins.
    #[inline(always)]
    fn first_slot(&self, tag: u32) -> usize {
        (tag >> (32 - self.bits)) as usize
    }

    /// Enters a node into the table, which has room.
    fn enter(&mut self, number: u32, tag: u32) {
        let mask = (1usize << self.bits) - 1;
        let mut slot = self.first_slot(tag);
        let slots = self.slots.as_mut_slice();
        while slots[slot & mask] != 0 {
            slot += 1;
        }
        slots[slot & mask] = tag << self.number_bits | number;
        self.used += 1;
    }

    fn rehash(&mut self) -> bool {
        let bits = self.bits + 1;
        if bits > 31 || !memory::has_room(size_of::<u32>() << bits) {
            return false;
        }
        let Some(slots) = GrowArray::hash_table(1 << bits) else {
            return false;
        };
        core::mem::replace(&mut self.slots, slots).release();
        self.bits = bits;
        self.fill();
        true
    }

    /// Enters all nodes that belong there into the empty table.
    fn fill(&mut self) {
        self.used = 0;
        // One bit more than needed, or a chunk that is added soon would fill the table again.
        self.number_bits = (self.room_bits() + 1).min(31);
        for number in self.first..self.count {
            if let Some(tag) = self.tag_in_table((number + AHEAD).min(self.count - 1)) {
                prefetch(&self.slots.as_slice()[self.first_slot(tag)]);
            }
            if let Some(tag) = self.tag_in_table(number) {
                self.enter(number, tag);
            }
        }
    }

    /// Returns the tag of node `number`, which is one of the tree's, if it belongs into the table.
    fn tag_in_table(&self, number: u32) -> Option<u32> {
        assert!(number < self.count, "the node was added");
        // SAFETY: checked.
        let node = unsafe { self.head().node(number) };
        (!follows(node.parent, number)).then(|| tag(node.parent, node.address))
    }

    /// Forgets which nodes exist, because addresses have changed their meaning. Numbering goes on, and the old nodes stay
    /// readable.
    #[cold]
    pub fn reset(&mut self) {
        let entries = 1usize << self.bits;
        self.slots.as_mut_slice()[..entries].fill(0);
        self.used = 0;
        self.first = self.count;
    }

    /// Unmaps all memory.
    ///
    /// # Safety
    /// No [`Nodes`] of this tree is used any more.
    pub unsafe fn release(self) {
        // Each chunk but the first is as long as those before it, and 256 nodes longer.
        let mut first = FIRST_CHUNK;
        while first < self.room {
            let length = first + FIRST_CHUNK;
            // SAFETY: mapped by `add_chunk` with this length, and entered; no reader is left.
            unsafe {
                let start = NonNull::new_unchecked(self.head().at(first));
                memory::unmap(start.cast(), length as usize * size_of::<Node>());
            }
            first += length;
        }
        let head = self.head;
        self.slots.release();
        // SAFETY: the block of `new`; no reader is left, and the tree is gone.
        unsafe { memory::unmap(head.cast(), BLOCK) };
    }
}

/// Returns whether node `number` is the one after its parent, and so not in the table.
#[inline(always)]
fn follows(parent: u32, number: u32) -> bool {
    parent.wrapping_add(1) == number
}

/// Returns 32 well-mixed bits of a child's key.
#[inline(always)]
fn tag(parent: u32, address: u64) -> u32 {
    let key = address ^ u64::from(parent).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let product = u128::from(key) * 0xd6e8_feb8_6659_fd93_u128;
    ((product >> 64) as u64 ^ product as u64) as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashMap;
    use std::sync::atomic::AtomicBool;

    proptest! {
        #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        #[cfg_attr(miri, ignore = "takes hours; the test below goes the same ways")]
        fn a_tree_gives_the_numbers_that_a_map_gives(
            steps in prop::collection::vec((any::<u16>(), 0u64..40, 0u32..200), 1..3000),
        ) {
            let mut tree = CallTree::new().unwrap();
            let mut map = HashMap::new();
            let mut nodes = vec![(0, 0)];
            for (parent, address, chance) in steps {
                if chance == 0 {
                    tree.reset();
                    map.clear();
                }
                let parent = u32::from(parent) % nodes.len() as u32;
                let address = 0x7f00_0000_0000 + address * 8;
                let expected = *map.entry((parent, address)).or_insert_with(|| {
                    nodes.push((parent, address));
                    nodes.len() as u32 - 1
                });
                prop_assert_eq!(tree.child(parent, address), expected);
            }
            prop_assert_eq!(tree.count() as usize, nodes.len());
            for (number, &node) in nodes.iter().enumerate() {
                prop_assert_eq!(tree.nodes().node(number as u32), node);
            }
            // SAFETY: nobody else reads it.
            unsafe { tree.release() };
        }
    }

    #[test]
    fn a_stack_that_was_cut_short_stays_where_it_was_cut() {
        let mut tree = CallTree::new().unwrap();
        let outer = tree.child(0, 0x1000);
        let inner = tree.child(outer, 0x2000);
        // As if there had been no room for a frame between the two.
        let cut = outer | SHORT;
        assert_eq!(tree.child(cut, 0x2000), cut);
        assert_ne!(tree.child(outer, 0x2000), cut);
        assert_eq!(whole(cut), outer);
        assert_eq!(tree.nodes().node(cut), tree.nodes().node(outer));
        assert_eq!((tree.child(outer, 0x2000), tree.count()), (inner, 3));
        // SAFETY: nobody else reads it.
        unsafe { tree.release() };
    }

    #[test]
    fn a_reader_on_another_thread_sees_every_published_node_whole() {
        const LENGTH: u32 = if cfg!(miri) { 1_000 } else { 200_000 };
        let address = |number: u32| u64::from(number).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let mut tree = CallTree::new().unwrap();
        let nodes = tree.nodes();
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut seen = 1;
                while !done.load(Ordering::Acquire) || seen < nodes.count() {
                    while seen < nodes.count() {
                        assert_eq!(nodes.node(seen), (seen - 1, address(seen)));
                        seen += 1;
                    }
                }
                assert_eq!(seen, LENGTH + 1);
            });
            for number in 1..=LENGTH {
                assert_eq!(tree.child(number - 1, address(number)), number);
            }
            done.store(true, Ordering::Release);
        });
        // SAFETY: the reader is gone.
        unsafe { tree.release() };
    }
}
