//! Heapray's own memory: pages directly from the kernel, all of them counted.
//!
//! Runs inside hooks, so nothing here calls the allocator or libc. When the kernel has no more pages, callers go on with the
//! memory that they have.

use core::mem::ManuallyDrop;
use core::ptr::{self, NonNull};
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use super::arch;

static OWN_BYTES: AtomicUsize = AtomicUsize::new(0);

/// Returns the bytes of address space that heapray has mapped for itself and not unmapped.
#[must_use]
pub fn own_bytes() -> usize {
    OWN_BYTES.load(Ordering::Relaxed)
}

/// Limit of [`own_bytes`] for tables that can do without more memory.
static MOST: AtomicUsize = AtomicUsize::new(usize::MAX);

/// Set when a table would have exceeded the limit.
static REFUSED: AtomicBool = AtomicBool::new(false);

/// Stops tables that can do without more memory from growing when [`own_bytes`] would exceed `bytes`.
pub fn set_most(bytes: usize) {
    MOST.store(bytes, Ordering::Relaxed);
}

/// Returns whether a table that can do without more memory may take `bytes`.
#[must_use]
pub fn has_room(bytes: usize) -> bool {
    let has_room = own_bytes().saturating_add(bytes) <= MOST.load(Ordering::Relaxed);
    if !has_room {
        REFUSED.store(true, Ordering::Relaxed);
    }
    has_room
}

/// Returns whether a table was refused memory since the last call.
pub fn was_refused() -> bool {
    REFUSED.load(Ordering::Relaxed) && REFUSED.swap(false, Ordering::Relaxed)
}

/// Size of a huge page, on x86-64 and on most AArch64 systems.
const HUGE_PAGE: usize = 2 << 20;

/// Returns `bytes` rounded up to whole pages, or `None` on overflow.
fn whole_pages(bytes: usize) -> Option<usize> {
    bytes.checked_next_multiple_of(arch::page_size())
}

/// Maps at least `bytes` of zeroed memory, page aligned. Returns `None` if the kernel has none.
#[must_use]
pub fn map(bytes: usize) -> Option<NonNull<u8>> {
    let bytes = whole_pages(bytes)?;
    let start = arch::map_pages(bytes)?;
    OWN_BYTES.fetch_add(bytes, Ordering::Relaxed);
    Some(start)
}

/// Unmaps memory that [`map`] returned for the same `bytes`.
///
/// # Safety
/// Nothing uses the memory any more.
pub unsafe fn unmap(start: NonNull<u8>, bytes: usize) {
    let bytes = whole_pages(bytes).unwrap_or(bytes);
    // SAFETY: the caller's duty.
    unsafe { arch::unmap_pages(start, bytes) };
    OWN_BYTES.fetch_sub(bytes, Ordering::Relaxed);
}

/// Returns whether `bytes` could be mapped at this moment. This is tried, not computed: only the kernel knows what it
/// counts.
#[must_use]
pub fn could_map(bytes: usize) -> bool {
    let Some(start) = map(bytes) else {
        return false;
    };
    // SAFETY: mapped just now; no page of it was touched.
    unsafe { unmap(start, bytes) };
    true
}

/// Address space that is kept free until it is needed. It has no memory behind it, and does not count as heapray's own.
#[derive(Debug)]
pub struct Reserve {
    start: NonNull<u8>,
    bytes: usize,
}

// SAFETY: it owns its pages, and nobody reads or writes them.
unsafe impl Send for Reserve {}

impl Reserve {
    /// Reserves at least `bytes`. Returns `None` if the kernel has none.
    #[must_use]
    pub fn take(bytes: usize) -> Option<Reserve> {
        let bytes = whole_pages(bytes)?;
        let start = arch::map_pages(bytes)?;
        Some(Reserve { start, bytes })
    }
}

impl Drop for Reserve {
    fn drop(&mut self) {
        // SAFETY: the mapping is this one's own, and nobody uses it.
        unsafe { arch::unmap_pages(self.start, self.bytes) };
    }
}

/// Growing room for plain values. It knows its capacity; its owner knows how much of the room is in use.
///
/// It begins in memory of another owner (a thread's first block) and moves to pages of its own when it grows. All-zero bytes
/// must be a valid `T`, because new room is zeroed.
#[derive(Debug)]
pub struct GrowArray<T> {
    start: NonNull<T>,
    capacity: usize,
    /// Bytes of its own mapping; 0 while it lies in borrowed memory.
    mapped: usize,
}

// SAFETY: it owns its values like a `Vec<T>`; nothing in it refers to a thread.
unsafe impl<T: Send> Send for GrowArray<T> {}

// SAFETY: a shared array is only read (`as_slice`).
unsafe impl<T: Sync> Sync for GrowArray<T> {}

/// Values for which all-zero bytes are valid and which need no drop.
///
/// # Safety
/// Both must be true of the type.
pub unsafe trait Plain: Copy {}

// SAFETY: integers.
unsafe impl Plain for u32 {}
// SAFETY: integers.
unsafe impl Plain for u64 {}
// SAFETY: integers, with nothing between them.
unsafe impl<const LENGTH: usize, const WIDTH: usize> Plain for [[u64; WIDTH]; LENGTH] {}

impl<T: Plain> GrowArray<T> {
    /// Makes room for `capacity` values in memory of another owner.
    ///
    /// # Safety
    /// `start` is aligned, and the memory is zeroed, belongs exclusively to this array, and outlives it.
    #[must_use]
    pub const unsafe fn borrowed(start: NonNull<T>, capacity: usize) -> GrowArray<T> {
        GrowArray {
            start,
            capacity,
            mapped: 0,
        }
    }

    /// Makes room for at least `capacity` values in pages of its own.
    #[must_use]
    pub fn mapped(capacity: usize) -> Option<GrowArray<T>> {
        let bytes = whole_pages(capacity.checked_mul(size_of::<T>())?)?;
        let start = map(bytes)?.cast();
        Some(GrowArray {
            start,
            capacity: bytes / size_of::<T>(),
            mapped: bytes,
        })
    }

    /// Does what [`mapped`](Self::mapped) does, for values that are found in no order: with small pages, the processor would
    /// have to find out for each of them where in memory its page is.
    #[must_use]
    pub fn hash_table(capacity: usize) -> Option<GrowArray<T>> {
        let array = GrowArray::mapped(capacity)?;
        if array.mapped >= HUGE_PAGE {
            arch::want_huge_pages(array.start.cast(), array.mapped);
        }
        Some(array)
    }

    /// Returns how many values it has room for.
    #[inline(always)]
    #[must_use]
    pub const fn capacity(&self) -> usize {
        self.capacity
    }

    /// Returns the address of the values. Growing moves them.
    #[inline(always)]
    #[must_use]
    pub const fn as_ptr(&self) -> *mut T {
        self.start.as_ptr()
    }

    /// Returns all of its room as a slice.
    #[inline(always)]
    #[must_use]
    pub const fn as_slice(&self) -> &[T] {
        // SAFETY: `capacity` values lie there, all valid: zeroed at first (`Plain`), or written since.
        unsafe { core::slice::from_raw_parts(self.start.as_ptr(), self.capacity) }
    }

    /// Returns all of its room as a slice to write to.
    #[inline(always)]
    #[must_use]
    pub const fn as_mut_slice(&mut self) -> &mut [T] {
        // SAFETY: as in `as_slice`; the memory is exclusively this array's.
        unsafe { core::slice::from_raw_parts_mut(self.start.as_ptr(), self.capacity) }
    }

    /// Makes room for at least `capacity` values and keeps the present ones. Returns `false`, and changes nothing, if the
    /// kernel has no more memory.
    #[cold]
    pub fn grow(&mut self, capacity: usize) -> bool {
        if capacity <= self.capacity {
            return true;
        }
        let Some(bytes) = capacity.checked_mul(size_of::<T>()).and_then(whole_pages) else {
            return false;
        };
        if self.mapped == 0 {
            let Some(start) = map(bytes) else {
                return false;
            };
            // SAFETY: both are `capacity` values long at least, and the new mapping overlaps nothing.
            unsafe {
                start
                    .cast::<T>()
                    .copy_from_nonoverlapping(self.start, self.capacity)
            };
            self.start = start.cast();
        } else {
            // SAFETY: the mapping is this array's own; `start` is replaced at once.
            let moved = unsafe { arch::remap_pages(self.start.cast(), self.mapped, bytes) };
            let Some(start) = moved else {
                return false;
            };
            OWN_BYTES.fetch_add(bytes - self.mapped, Ordering::Relaxed);
            self.start = start.cast();
        }
        self.mapped = bytes;
        self.capacity = bytes / size_of::<T>();
        true
    }

    /// Unmaps its own pages.
    pub fn release(self) {
        if self.mapped != 0 {
            // SAFETY: the mapping is this array's own, and the array is gone after this.
            unsafe { unmap(self.start.cast(), self.mapped) };
        }
    }
}

/// [`GrowArray`] in pages of its own. Dropping it unmaps them.
#[derive(Debug)]
pub struct OwnedArray<T: Plain>(GrowArray<T>);

impl<T: Plain> OwnedArray<T> {
    /// Does what [`GrowArray::mapped`] does.
    #[must_use]
    pub fn mapped(capacity: usize) -> Option<OwnedArray<T>> {
        GrowArray::mapped(capacity).map(OwnedArray)
    }

    /// Does what [`GrowArray::hash_table`] does.
    #[must_use]
    pub fn hash_table(capacity: usize) -> Option<OwnedArray<T>> {
        GrowArray::hash_table(capacity).map(OwnedArray)
    }

    /// Does what [`GrowArray::grow`] does.
    pub fn grow(&mut self, capacity: usize) -> bool {
        #[cfg(target_os = "linux")]
        let before = self.0.mapped;
        let grown = self.0.grow(capacity);
        // All of it will be used soon. Otherwise each page would fault twice, at the first read and at the first write.
        #[cfg(target_os = "linux")]
        if self.0.mapped > before {
            // SAFETY: these pages are the array's own and nobody has used them. A kernel before 5.14 refuses.
            unsafe {
                let new = self.0.start.cast::<u8>().add(before).as_ptr();
                libc::madvise(
                    new.cast(),
                    self.0.mapped - before,
                    libc::MADV_POPULATE_WRITE,
                );
            }
        }
        grown
    }

    /// Unmaps the whole pages after the first `capacity` values, but never the first page.
    pub fn shrink(&mut self, capacity: usize) {
        let array = &mut self.0;
        let wanted = capacity.max(1).checked_mul(size_of::<T>());
        let Some(bytes) = wanted
            .and_then(whole_pages)
            .filter(|&bytes| bytes < array.mapped)
        else {
            return;
        };
        // SAFETY: the mapping is this array's own, and the values there are forgotten.
        unsafe { unmap(array.start.cast().add(bytes), array.mapped - bytes) };
        array.mapped = bytes;
        array.capacity = bytes / size_of::<T>();
    }

    /// Returns the array, which is never unmapped then.
    #[must_use]
    pub fn keep(self) -> GrowArray<T> {
        let this = ManuallyDrop::new(self);
        // SAFETY: `this` is not used again, and not dropped.
        unsafe { ptr::read(&raw const this.0) }
    }

    /// Returns the bytes of its pages.
    #[must_use]
    pub const fn bytes(&self) -> usize {
        self.0.mapped
    }

    /// Does what [`GrowArray::as_slice`] does.
    #[inline(always)]
    #[must_use]
    pub const fn as_slice(&self) -> &[T] {
        self.0.as_slice()
    }

    /// Does what [`GrowArray::as_mut_slice`] does.
    #[inline(always)]
    #[must_use]
    pub const fn as_mut_slice(&mut self) -> &mut [T] {
        self.0.as_mut_slice()
    }
}

impl<T: Plain> Drop for OwnedArray<T> {
    fn drop(&mut self) {
        // SAFETY: the mapping is this array's own, and the array is gone after this.
        unsafe { unmap(self.0.start.cast(), self.0.mapped) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_array_keeps_its_values_when_it_moves_from_borrowed_memory_to_its_own_and_grows_on() {
        let mut first = [0u64; 16];
        // SAFETY: `first` outlives the array and is not used otherwise meanwhile.
        let mut array = unsafe { GrowArray::borrowed(NonNull::from(&mut first).cast(), 16) };
        for (index, value) in array.as_mut_slice().iter_mut().enumerate() {
            *value = index as u64;
        }
        for capacity in [17, 600, if cfg!(miri) { 9_000 } else { 100_000 }] {
            assert!(array.grow(capacity));
            assert!(array.capacity() >= capacity);
            let (kept, fresh) = array.as_slice().split_at(16);
            assert!(kept.iter().copied().eq(0..16));
            assert!(fresh.iter().all(|&value| value == 0));
        }
        array.release();
    }

    #[test]
    #[cfg_attr(miri, ignore = "Miri cannot unmap a part")]
    fn an_owned_array_keeps_its_values_when_it_grows_and_shrinks_and_is_zero_where_it_is_new() {
        let page = arch::page_size() / 64;
        let mut array = OwnedArray::<[[u64; 2]; 4]>::mapped(1).unwrap();
        assert_eq!(
            (array.as_slice().len(), array.bytes()),
            (page, arch::page_size())
        );
        assert!(array.as_slice().as_ptr().addr().is_multiple_of(64));
        array.as_mut_slice()[page - 1] = [[7; 2]; 4];
        assert!(array.grow(page * 5));
        array.as_mut_slice()[page * 4] = [[8; 2]; 4];
        array.shrink(page + 1);
        assert_eq!(array.bytes(), 2 * arch::page_size());
        assert!(array.grow(page * 5));
        assert_eq!(array.as_slice()[page - 1], [[7; 2]; 4]);
        assert_eq!(array.as_slice()[page * 4], [[0; 2]; 4]);
        array.shrink(0);
        assert_eq!(array.bytes(), arch::page_size());
    }

    #[test]
    #[cfg_attr(miri, ignore = "Miri ends where there is no memory")]
    fn a_request_that_the_kernel_refuses_changes_nothing() {
        let mut array = GrowArray::<u64>::mapped(10).unwrap();
        array.as_mut_slice()[9] = 99;
        let capacity = array.capacity();
        assert!(!array.grow(usize::MAX / 8));
        assert!(!array.grow(usize::MAX));
        assert_eq!((array.capacity(), array.as_slice()[9]), (capacity, 99));
        array.release();
        assert!(map(1 << 60).is_none());
    }
}
