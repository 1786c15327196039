//! Event rings: one per recording thread, written by it alone and read by the collector alone.
//!
//! A ring is a chain of segments in memory of heapray's own. It starts with one small segment. A producer that finds the
//! segment full appends a larger one and goes on there; the consumer unmaps the drained one. A thread that ends with a large
//! segment appends a small one, so that the large one is unmapped. Nothing here allocates, locks or calls libc.
//!
//! ```text
//!  slot, 24 bytes        word 0            word 1                        word 2
//!  allocation            time stamp        kind (8 bits) | address (56)  size (32) | node (32)
//!  Munmap                time stamp        kind | address                size | 1 if the thread is untracked
//!   size of 4 GiB or more  ... size = u32::MAX, and the next slot:
//!                        size (64)         0                             0
//!  Free                  time stamp        kind | address                1 if known for temporary | as Munmap
//!  other ends            time stamp        kind | address                0 | as Munmap
//!  ThreadStart           time stamp        kind | session                tid (32) | thread number (32)
//!  ThreadName            time stamp        kind | 0                      0, and the next slot:
//!                        name, bytes 0-7   name, bytes 8-15              0
//!  Sampling              time stamp        kind | 0                      mean bytes, as a size | 0
//! ```
//!
//! **Order.** A producer sets its *window* flag while it takes a stamp and publishes the slot. The consumer takes a stamp of
//! its own, makes every running thread execute a full barrier (`membarrier`), and then looks at the flags. A thread whose
//! flag is clear then has published every event older than that stamp (see [`Reader::bound`]).

use core::cell::UnsafeCell;
use core::ptr::{self, NonNull};

use core::sync::atomic::Ordering;

use super::event::{Kind, NodeId, packed_name};
use super::memory;
use super::shared::{AtomicBool, AtomicPtr, AtomicU64, fence};

mod slot;

/// Slot of a ring: see the drawing above.
pub type Slot = [u64; 3];

/// Slots of a thread's first segment: 12 KiB, so that thousands of threads stay cheap.
const FIRST_SLOTS: u64 = if cfg!(heapray_loom) { 2 } else { 512 };
/// Slots of the largest segment: 192 KiB, half a millisecond of a thread that only allocates.
const MOST_SLOTS: u64 = if cfg!(heapray_loom) { 8 } else { 8192 };

/// Largest number of segments: a first one and two larger ones, with none left over from an earlier thread.
const MOST_SEGMENTS: u64 = 3;

const SIZE_IN_NEXT_SLOT: u64 = u32::MAX as u64;
const ADDRESS_MASK: u64 = (1 << 56) - 1;

/// Value on a cache line of its own. Head and tail have one each, because two threads write them.
#[repr(C, align(64))]
struct Line<T>(T);

/// Piece of a ring: this header, then `capacity` slots.
#[repr(C)]
struct Segment {
    capacity: u64,
    bytes: usize,
    /// The segment in which the producer went on; set once, after its last slot here was published.
    next: AtomicPtr<Segment>,
    /// Number of slots ever written.
    head: Line<AtomicU64>,
    /// Number of slots ever read.
    tail: Line<AtomicU64>,
}

const _: () = assert!(
    size_of::<Segment>().is_multiple_of(64)
        && FIRST_SLOTS.is_power_of_two()
        && MOST_SLOTS.is_power_of_two()
);

impl Segment {
    fn create(capacity: u64) -> *mut Segment {
        let bytes = size_of::<Segment>() + capacity as usize * size_of::<slot::Cell>();
        let Some(pages) = memory::map(bytes) else {
            return ptr::null_mut();
        };
        let segment = pages.cast::<Segment>().as_ptr();
        // SAFETY: a fresh mapping of at least this size, page aligned, that nobody else knows.
        unsafe {
            segment.write(Segment {
                capacity,
                bytes,
                next: AtomicPtr::new(ptr::null_mut()),
                head: Line(AtomicU64::new(0)),
                tail: Line(AtomicU64::new(0)),
            });
            slot::make(segment.add(1).cast(), capacity);
        }
        segment
    }

    /// # Safety
    /// `this` is a live segment.
    unsafe fn slot(this: *mut Segment, position: u64) -> *mut slot::Cell {
        // SAFETY: `capacity` slots follow the header in the same mapping, and the index is below `capacity`, which is
        // a power of two.
        unsafe {
            this.add(1)
                .cast::<slot::Cell>()
                .add((position & ((*this).capacity - 1)) as usize)
        }
    }
}

/// Producer's private side.
#[derive(Debug)]
struct Producer {
    segment: *mut Segment,
    head: u64,
    /// The head may rise to this position without another look at the tail.
    limit: u64,
    /// From this head on, the producer should wake the consumer.
    wake_at: u64,
}

/// Ring that is shared by its owning thread and the collector.
#[derive(Debug)]
pub struct Ring {
    producer: UnsafeCell<Producer>,
    /// The consumer's segment.
    consumer: UnsafeCell<*mut Segment>,
    /// Set while an event is being written.
    window: AtomicBool,
    /// Set while the producer sleeps until there is room.
    pub waiting: AtomicBool,
    /// Set while there is a [`Reader`].
    is_read: AtomicBool,
    /// Number of mapped segments.
    segments: AtomicU64,
}

impl Ring {
    /// Makes a ring with its first segment. Returns `None` without memory.
    pub fn new() -> Option<Ring> {
        let segment = Segment::create(FIRST_SLOTS);
        let producer = Producer {
            segment,
            head: 0,
            limit: FIRST_SLOTS,
            wake_at: FIRST_SLOTS / 2,
        };
        (!segment.is_null()).then(|| Ring {
            producer: UnsafeCell::new(producer),
            consumer: UnsafeCell::new(segment),
            window: AtomicBool::new(false),
            waiting: AtomicBool::new(false),
            is_read: AtomicBool::new(false),
            segments: AtomicU64::new(1),
        })
    }

    /// Returns the consumer's side, or `None` while another reader has it.
    pub fn reader(&self) -> Option<Reader<'_>> {
        if self.is_read.swap(true, Ordering::Acquire) {
            return None;
        }
        // SAFETY: the flag gives this reader the consumer's side to itself; its segment is live until it frees it.
        unsafe {
            let segment = *self.consumer.get();
            let tail = (*segment).tail.0.load(Ordering::Relaxed);
            Some(Reader {
                ring: self,
                segment,
                tail,
                head: tail,
            })
        }
    }

    /// Returns the number of slots that were published in the producer's segment. It is unchanged only if nothing was
    /// published meanwhile.
    ///
    /// # Safety
    /// The calling thread owns the ring, and no other call of the producer's side is running.
    pub unsafe fn position(&self) -> u64 {
        // SAFETY: the producer's side belongs to the calling thread.
        unsafe { (*self.producer.get()).head }
    }

    /// Makes sure that the next event fits (an event takes two slots at most). Returns false if the ring is full, and the
    /// consumer has to make room first.
    ///
    /// # Safety
    /// The calling thread owns the ring, and no other call of the producer's side is running.
    #[inline]
    #[must_use]
    pub unsafe fn reserve(&self) -> bool {
        // SAFETY: the producer's side belongs to the calling thread.
        let producer = unsafe { &mut *self.producer.get() };
        if producer.head + 2 <= producer.limit {
            return true;
        }
        // SAFETY: as above.
        unsafe { self.reserve_slowly() }
    }

    #[cold]
    unsafe fn reserve_slowly(&self) -> bool {
        // SAFETY: the producer's side belongs to the calling thread (the caller's promise), and its segment is live:
        // the consumer frees a segment only after `next` was set, and then the producer is in the next one.
        unsafe {
            let producer = &mut *self.producer.get();
            let segment = producer.segment;
            let capacity = (*segment).capacity;
            producer.limit = (*segment).tail.0.load(Ordering::Acquire) + capacity;
            if producer.head + 2 <= producer.limit {
                producer.wake_at = producer.wake_at.max(producer.limit - capacity / 2);
                return true;
            }
            capacity < MOST_SLOTS && self.append(producer, capacity * 4)
        }
    }

    /// Lets the consumer unmap a segment of the largest size when the thread ends, because the next thread may need little.
    /// Does nothing if the consumer has not read as far as the last time. Otherwise threads that come and go would never
    /// have to wait for the consumer.
    ///
    /// # Safety
    /// The calling thread owns the ring, and no other call of the producer's side is running.
    pub unsafe fn shorten(&self) {
        // SAFETY: as in `reserve_slowly`.
        unsafe {
            let producer = &mut *self.producer.get();
            if (*producer.segment).capacity >= MOST_SLOTS
                && self.segments.load(Ordering::Relaxed) <= MOST_SEGMENTS
            {
                self.append(producer, FIRST_SLOTS);
            }
        }
    }

    /// Lets the producer go on in a new segment. Returns false without memory for it.
    ///
    /// # Safety
    /// The producer's side is the calling thread's, and its segment is live.
    unsafe fn append(&self, producer: &mut Producer, capacity: u64) -> bool {
        let segment = Segment::create(capacity);
        if segment.is_null() {
            return false;
        }
        // Count the segment before the consumer sees it and may unmap it.
        self.segments.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller's promise. After this the producer touches the former segment no more.
        unsafe { (*producer.segment).next.store(segment, Ordering::Release) };
        *producer = Producer {
            segment,
            head: 0,
            limit: capacity,
            wake_at: capacity / 2,
        };
        true
    }

    /// Publishes an event of a block or a range: an allocation with its `size` and a `node` of the thread's call tree, or an
    /// end with [`size_of_free`](super::event::size_of_free) or the length of the range, and [`NodeId::of_free`]. `stamp` is
    /// called inside the window. Returns true if the consumer should be woken.
    ///
    /// # Safety
    /// The calling thread owns the ring, and [`Ring::reserve`] has returned true since the last push.
    #[inline]
    pub unsafe fn push(
        &self,
        kind: Kind,
        address: u64,
        size: u64,
        node: u32,
        stamp: impl FnOnce() -> u64,
    ) -> bool {
        let long = size >= SIZE_IN_NEXT_SLOT;
        let short_size = if long { SIZE_IN_NEXT_SLOT } else { size };
        let head = (kind as u64) << 56 | (address & ADDRESS_MASK);
        // SAFETY: the caller's promise is that of `publish`.
        unsafe {
            self.publish(
                head,
                short_size << 32 | u64::from(node),
                long.then_some([size, 0, 0]),
                stamp,
            )
        }
    }

    /// Publishes the thread that writes to the ring from now on.
    ///
    /// # Safety
    /// The same as for [`Ring::push`].
    pub unsafe fn push_thread_start(
        &self,
        start: ThreadStart,
        stamp: impl FnOnce() -> u64,
    ) -> bool {
        let (session, tid) = (u64::from(start.session), u64::from(start.tid));
        // SAFETY: the caller's promise.
        unsafe { self.push(Kind::ThreadStart, session, tid, start.number, stamp) }
    }

    /// Publishes that the following events are samples, with a point every `mean_bytes` on average.
    ///
    /// # Safety
    /// The same as for [`Ring::push`].
    pub unsafe fn push_sampling(&self, mean_bytes: u64, stamp: impl FnOnce() -> u64) -> bool {
        // SAFETY: the caller's promise.
        unsafe { self.push(Kind::Sampling, 0, mean_bytes, 0, stamp) }
    }

    /// Publishes a thread's name: 16 bytes, padded with zeros.
    ///
    /// # Safety
    /// The same as for [`Ring::push`].
    pub unsafe fn push_name(&self, name: [u8; 16], stamp: impl FnOnce() -> u64) -> bool {
        let [first, last] = packed_name(name);
        // SAFETY: the caller's promise is that of `publish`.
        unsafe {
            self.publish(
                (Kind::ThreadName as u64) << 56,
                0,
                Some([first, last, 0]),
                stamp,
            )
        }
    }

    #[inline]
    unsafe fn publish(
        &self,
        word1: u64,
        word2: u64,
        more: Option<Slot>,
        stamp: impl FnOnce() -> u64,
    ) -> bool {
        // SAFETY: the producer's side is the calling thread's. The slots at `head` and `head + 1` are not being read:
        // `reserve` saw `tail` past them, and the consumer reads below `head` only.
        unsafe {
            let producer = &mut *self.producer.get();
            let segment = producer.segment;
            self.window.store(true, Ordering::Relaxed);
            light_barrier();
            let slot = Segment::slot(segment, producer.head);
            slot::write(slot, [stamp(), word1, word2]);
            let mut head = producer.head + 1;
            if let Some(more) = more {
                slot::write(Segment::slot(segment, head), more);
                head += 1;
            }
            (*segment).head.0.store(head, Ordering::Release);
            self.window.store(false, Ordering::Release);
            producer.head = head;
            if head < producer.wake_at {
                return false;
            }
            self.half_full(producer)
        }
    }

    /// Returns whether the head has passed the point at which the consumer should be woken.
    #[cold]
    unsafe fn half_full(&self, producer: &mut Producer) -> bool {
        // SAFETY: the producer's segment is live, see `reserve_slowly`.
        let (tail, capacity) = unsafe {
            (
                (*producer.segment).tail.0.load(Ordering::Acquire),
                (*producer.segment).capacity,
            )
        };
        producer.limit = tail + capacity;
        let half = tail + capacity / 2;
        if producer.head < half {
            producer.wake_at = half;
            return false;
        }
        // Ask again only after another eighth, so that a busy consumer is not woken at each event.
        producer.wake_at = producer.head + capacity / 8;
        true
    }
}

// SAFETY: the producer's cell is touched by the owning thread alone and the consumer's by the one reader (promises of
// the unsafe functions); everything that both touch is atomic, or a slot whose hand-over `head` and `tail` order.
unsafe impl Sync for Ring {}
// SAFETY: as above; nothing in a ring belongs to the thread that made it.
unsafe impl Send for Ring {}

/// Executes the producer's side of the barrier that [`Reader::bound`] relies on.
#[inline(always)]
fn light_barrier() {
    #[cfg(not(heapray_loom))]
    super::sys::light_barrier();
    #[cfg(heapray_loom)]
    fence(Ordering::SeqCst);
}

/// Guarantee about a ring before it is read: see [`Reader::bound`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bound {
    /// Every event older than the consumer's stamp is published.
    All,
    /// An event is being written. It is at least as new as the last published one.
    LastPublished,
}

/// Consumer's side of a ring.
#[derive(Debug)]
pub struct Reader<'a> {
    ring: &'a Ring,
    segment: *mut Segment,
    tail: u64,
    head: u64,
}

// SAFETY: a reader is the one user of the consumer's side, on whatever thread it is; what it shares with the producer
// is atomic or handed over.
unsafe impl Send for Reader<'_> {}

impl Drop for Reader<'_> {
    fn drop(&mut self) {
        self.commit();
        self.ring.is_read.store(false, Ordering::Release);
    }
}

impl Reader<'_> {
    /// Looks at the published slots. Call it after the consumer's stamp was taken and the heavy barrier was executed: then
    /// [`Bound::All`] guarantees that no event older than that stamp is missing.
    ///
    /// Why: the producer sets its window, passes a compiler barrier and only then takes its stamp. If that stamp is
    /// older than the consumer's, the heavy barrier fell after it in the producer's program order, so the window's
    /// store is visible here. A window seen clear was therefore cleared *after* the event was published, and the
    /// acquire load makes that slot visible too.
    ///
    /// This also holds for weakly ordered processors, which may read their counter before an earlier store is visible. The
    /// barrier comes with an interrupt (or a switch of threads), at one place in the producer's program order. Anything
    /// after that place that the processor had read early, it reads again, so that stamp is younger than the consumer's;
    /// stores before that place are visible. Without `membarrier`, `fence_and_stamps` on both sides waits for the same.
    pub fn bound(&mut self) -> Bound {
        let open = self.ring.window.load(Ordering::Acquire);
        self.refresh();
        if open {
            Bound::LastPublished
        } else {
            Bound::All
        }
    }

    fn refresh(&mut self) {
        // SAFETY: the consumer's segment is live.
        self.head = unsafe { (*self.segment).head.0.load(Ordering::Acquire) };
    }

    /// Returns the next slot, if one is published, without taking it.
    #[inline]
    pub fn peek(&mut self) -> Option<Slot> {
        if self.tail == self.head && !self.next_segment() {
            return None;
        }
        // SAFETY: `tail < head`: the slot was published by the release store of `head` that `refresh` acquired.
        Some(unsafe { slot::read(Segment::slot(self.segment, self.tail)) })
    }

    /// Takes the slot that [`Reader::peek`] returned.
    #[inline]
    pub fn advance(&mut self) {
        self.tail += 1;
    }

    /// Returns the next published slots that lie side by side, without taking them. The run is empty if none is published.
    #[inline]
    pub fn run(&mut self) -> Run<'_> {
        if self.tail == self.head && !self.next_segment() {
            return Run(&[]);
        }
        // SAFETY: the slots from `tail` to `head` were published by the release store of `head` that `refresh` acquired,
        // and the producer leaves them alone until `commit` says that they are read, which needs the reader back. As
        // many are taken as come before the segment's end. A cell is only read through the `Run`.
        unsafe {
            let first = Segment::slot(self.segment, self.tail);
            let capacity = (*self.segment).capacity;
            let before_end = capacity - (self.tail & (capacity - 1));
            let count = before_end.min(self.head - self.tail);
            Run(core::slice::from_raw_parts(first, count as usize))
        }
    }

    /// Takes `slots` of the slots that [`Reader::run`] returned.
    #[inline]
    pub fn advance_by(&mut self, slots: usize) {
        self.tail += slots as u64;
        debug_assert!(self.tail <= self.head, "only what was shown is taken");
    }

    /// Goes on to the producer's next segment if this one is drained and complete.
    fn next_segment(&mut self) -> bool {
        loop {
            // SAFETY: the consumer's segment is live. `next` is set after the last publication in this segment, so a
            // head that is read after `next` was seen is final. A segment is unmapped once its successor is the
            // consumer's; the producer left it before it set `next`.
            unsafe {
                let next = (*self.segment).next.load(Ordering::Acquire);
                if next.is_null() {
                    return false;
                }
                self.refresh();
                if self.tail < self.head {
                    return true;
                }
                let drained = NonNull::new_unchecked(self.segment);
                self.segment = next;
                self.tail = 0;
                *self.ring.consumer.get() = next;
                memory::unmap(drained.cast(), drained.as_ref().bytes);
                self.ring.segments.fetch_sub(1, Ordering::Relaxed);
                self.refresh();
                if self.tail < self.head {
                    return true;
                }
            }
        }
    }

    /// Tells the producer how far the consumer has read. Returns true if the producer sleeps and should be woken.
    pub fn commit(&mut self) -> bool {
        // SAFETY: the consumer's segment is live.
        unsafe { (*self.segment).tail.0.store(self.tail, Ordering::Release) };
        fence(Ordering::SeqCst);
        self.ring.waiting.load(Ordering::Relaxed)
    }
}

/// Run of slots that are published and not taken.
#[derive(Debug, Clone, Copy)]
pub struct Run<'a>(&'a [slot::Cell]);

impl<'a> Run<'a> {
    /// Returns the slots, oldest first.
    #[inline]
    pub fn slots(self) -> impl Iterator<Item = Slot> + 'a {
        // SAFETY: published, and not given back to the producer while the run lives (`Reader::run`).
        self.0
            .iter()
            .map(|cell| unsafe { slot::read(core::ptr::from_ref(cell).cast_mut()) })
    }
}

/// Thread that begins to write to a ring.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ThreadStart {
    /// The session.
    pub session: u32,
    /// The operating system's number of the thread.
    pub tid: u32,
    /// The number of the thread in its events.
    pub number: u32,
}

/// Decoded slot. [`add`](Decoded::add) adds the content of a second slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Decoded {
    /// Time stamp counter.
    pub stamp: u64,
    /// Kind of the event.
    pub kind: Kind,
    /// As that of an [`Event`](super::event::Event).
    pub address: u64,
    /// As that of an [`Event`](super::event::Event).
    pub size: u64,
    /// See the methods.
    node: u32,
    /// Set if a second slot belongs to the event.
    pub more: bool,
}

impl Decoded {
    /// Returns the call stack of an allocation, as a node of the thread's own call tree.
    #[inline(always)]
    #[must_use]
    pub fn stack(&self) -> u32 {
        self.node
    }

    /// Returns the [`NodeId::of_free`] of an event that frees.
    #[inline(always)]
    #[must_use]
    pub fn node_of_free(&self) -> NodeId {
        NodeId(self.node)
    }

    /// Returns the thread of a [`Kind::ThreadStart`].
    #[must_use]
    pub fn thread_start(&self) -> ThreadStart {
        ThreadStart {
            session: self.address as u32,
            tid: self.size as u32,
            number: self.node,
        }
    }

    /// Adds the second slot.
    #[inline]
    pub fn add(&mut self, more: Slot) {
        if self.kind == Kind::ThreadName {
            [self.address, self.size, _] = more;
        } else {
            self.size = more[0];
        }
    }
}

/// Decodes a first slot.
#[inline]
pub fn decode(slot: Slot) -> Decoded {
    let kind = Kind::from_byte((slot[1] >> 56) as u8);
    let size = slot[2] >> 32;
    Decoded {
        stamp: slot[0],
        kind,
        address: slot[1] & ADDRESS_MASK,
        size,
        node: slot[2] as u32,
        more: size == SIZE_IN_NEXT_SLOT || kind == Kind::ThreadName,
    }
}

#[cfg(all(test, heapray_loom))]
impl Ring {
    /// Unmaps the ring's memory.
    ///
    /// # Safety
    /// Nothing uses the ring any more.
    pub(crate) unsafe fn release(&self) {
        // SAFETY: the caller's promise; every segment from the consumer's on is mapped.
        unsafe {
            let mut at = *self.consumer.get();
            while let Some(segment) = NonNull::new(at) {
                at = (*at).next.load(Ordering::Relaxed);
                memory::unmap(segment.cast(), segment.as_ref().bytes);
            }
        }
    }
}

#[cfg(all(test, heapray_loom))]
mod loom_tests;
#[cfg(all(test, not(heapray_loom)))]
mod tests;
