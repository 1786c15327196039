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
//!  ThreadName            time stamp        kind | 0                      size = u32::MAX, and the next slot:
//!                        name, bytes 0-7   name, bytes 8-15              0
//!  TraceId               time stamp        kind | 0                      size = u32::MAX, and the next slot:
//!                        trace, bytes 0-7  trace, bytes 8-15             0
//!  SpanId                time stamp        kind | 0                      size = u32::MAX, and the next slot:
//!                        span              0                             0
//!  Sampling              time stamp        kind | 0                      mean bytes, as a size | 0
//! ```
//!
//! **Order.** A producer sets its *window* flag while it takes a stamp and publishes the slot. The consumer takes a stamp of
//! its own, makes every running thread execute a full barrier (`membarrier`), and then looks at the flags. A thread whose
//! flag is clear then has published every event older than that stamp (see [`Reader::bound`]).

use core::cell::UnsafeCell;
use core::ptr;

use core::sync::atomic::{AtomicU32, Ordering};

use super::event::{Kind, RunEnd, packed_name};
use super::shared::{AtomicBool, AtomicPtr, AtomicU64, fence};
use super::{arch, memory};

mod decoded;
mod reader;
mod slot;

pub use decoded::{Decoded, ThreadStart, decode};
pub use reader::{Bound, Reader, Run};

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
    /// 1 while the producer sleeps until there is room. It sleeps on this word.
    waiting: AtomicU32,
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
            waiting: AtomicU32::new(0),
            is_read: AtomicBool::new(false),
            segments: AtomicU64::new(1),
        })
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

    /// Sleeps until the consumer has made room, or `longest` nanoseconds have passed. Returns whether there is room for the
    /// next event. `before` is called before the sleep, if there is none.
    ///
    /// # Safety
    /// The same as for [`Ring::reserve`].
    pub unsafe fn wait(&self, longest: u64, before: impl FnOnce()) -> bool {
        self.waiting.store(1, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        // If there is no room now, the consumer sees the word above when it makes some.
        // SAFETY: the caller's promise.
        let mut found = unsafe { self.reserve() };
        if !found {
            before();
            arch::futex_wait(&self.waiting, 1, longest);
            // SAFETY: the caller's promise.
            found = unsafe { self.reserve() };
        }
        self.waiting.store(0, Ordering::Relaxed);
        found
    }

    /// Wakes the producer, which [`Reader::commit`] has found sleeping.
    pub fn wake(&self) {
        if self.waiting.swap(0, Ordering::Relaxed) != 0 {
            arch::futex_wake(&self.waiting, 1);
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

    /// Publishes the context of the following allocations, and their run.
    ///
    /// # Safety
    /// The same as for [`Ring::push`].
    pub unsafe fn push_context(&self, context: u32, run: u64, stamp: impl FnOnce() -> u64) -> bool {
        // SAFETY: the caller's promise.
        unsafe { self.push(Kind::Context, run, u64::from(context), 0, stamp) }
    }

    /// Publishes that a run has ended.
    ///
    /// # Safety
    /// The same as for [`Ring::push`].
    pub unsafe fn push_run_end(&self, run: u64, end: RunEnd, stamp: impl FnOnce() -> u64) -> bool {
        let (kind, address, size) = end.fields(run);
        // SAFETY: the caller's promise.
        unsafe { self.push(kind, address, size, end.context, stamp) }
    }

    /// Publishes an event that [has two words](Kind::has_words): a name, or a part of the trace of the run whose end follows.
    ///
    /// # Safety
    /// The same as for [`Ring::push`].
    pub unsafe fn push_words(
        &self,
        kind: Kind,
        [first, last]: [u64; 2],
        stamp: impl FnOnce() -> u64,
    ) -> bool {
        // SAFETY: the caller's promise is that of `publish`.
        unsafe {
            self.publish(
                (kind as u64) << 56,
                SIZE_IN_NEXT_SLOT << 32,
                Some([first, last, 0]),
                stamp,
            )
        }
    }

    /// Publishes a thread's name: 16 bytes, padded with zeros.
    ///
    /// # Safety
    /// The same as for [`Ring::push`].
    pub unsafe fn push_name(&self, name: [u8; 16], stamp: impl FnOnce() -> u64) -> bool {
        // SAFETY: the caller's promise.
        unsafe { self.push_words(Kind::ThreadName, packed_name(name), stamp) }
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
    super::shared::fence(Ordering::SeqCst);
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
            while let Some(segment) = ptr::NonNull::new(at) {
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
