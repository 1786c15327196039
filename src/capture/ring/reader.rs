//! The consumer's side of a ring.

use core::ptr::NonNull;
use core::sync::atomic::Ordering;

use super::{Ring, Segment, Slot, slot};
use crate::capture::memory;
use crate::capture::shared::fence;

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
    pub(super) segment: *mut Segment,
    tail: u64,
    head: u64,
}

impl Ring {
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

    /// Tells the producer how far the consumer has read. Returns true if the producer sleeps and should be [woken](Ring::wake):
    /// there is room for a quarter of what the ring holds.
    pub fn commit(&mut self) -> bool {
        // SAFETY: the consumer's segment is live.
        unsafe { (*self.segment).tail.0.store(self.tail, Ordering::Release) };
        fence(Ordering::SeqCst);
        self.ring.waiting.load(Ordering::Relaxed) != 0 && self.has_much_room()
    }

    #[cold]
    fn has_much_room(&mut self) -> bool {
        self.refresh();
        // SAFETY: the consumer's segment is live.
        let (capacity, next) = unsafe {
            let segment = &*self.segment;
            (segment.capacity, segment.next.load(Ordering::Relaxed))
        };
        next.is_null() && self.head - self.tail <= capacity / 4 * 3
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
