//! What glibc's allocator reports about itself, without stopping the service for long.
//!
//! `mallinfo2` and `malloc_info` look at each free block of an arena, and hold its lock meanwhile. That takes 100 to 300 ns a
//! block. With half a million free blocks the threads of that arena wait 75 ms for memory, and with five million 1.5 s. So what
//! took long is repeated seldom.

use core::mem::transmute;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::allocators::{AllocatorFigures, function};
use crate::capture::arch::thread_cpu_ns;

/// Time of `mallinfo2` from which on the arenas are not counted, which takes as long again.
const TOO_LONG_FOR_ARENAS: Duration = Duration::from_millis(5);

/// Figures, and when they may be read again.
struct Reading {
    figures: AllocatorFigures,
    next: Instant,
}

static LAST: Mutex<Option<Reading>> = Mutex::new(None);

/// Returns the figures: those of now or, if reading these took long, the last ones.
pub(super) fn figures() -> Option<AllocatorFigures> {
    let mut last = LAST.lock().unwrap_or_else(PoisonError::into_inner);
    last_or(&mut last, Instant::now(), read)
}

/// Returns the figures of `last` or, if it is time to read again, those that `read` returns.
fn last_or(
    last: &mut Option<Reading>,
    now: Instant,
    read: impl FnOnce(u32) -> Option<(AllocatorFigures, Duration)>,
) -> Option<AllocatorFigures> {
    let arenas_before = match last {
        Some(last) if now < last.next => return Some(last.figures),
        Some(last) => last.figures.arenas,
        None => 0,
    };
    let (figures, took) = read(arenas_before)?;
    let next = now + pause_after(took);
    *last = Some(Reading { figures, next });
    Some(figures)
}

/// Returns how long nothing is read after reading took so long. It grows with the square: 10 ms come every 10 s at most,
/// 100 ms every quarter of an hour, and a second once a day.
fn pause_after(took: Duration) -> Duration {
    const AFTER_A_SECOND: f64 = 100_000.0;
    Duration::from_secs_f64(took.as_secs_f64().powi(2) * AFTER_A_SECOND)
}

/// Reads the figures. Returns the CPU time that this took, too. If the arenas are not counted, their number is
/// `arenas_before`.
fn read(arenas_before: u32) -> Option<(AllocatorFigures, Duration)> {
    let address = function(c"mallinfo2")?;
    // SAFETY: glibc alone has a function of this name, with this signature since 2.33.
    let mallinfo2: unsafe extern "C" fn() -> libc::mallinfo2 = unsafe { transmute(address) };
    // Unlike time by the clock, it does not grow while others have the processor.
    let began = thread_cpu_ns();
    let took = || Duration::from_nanos(thread_cpu_ns().saturating_sub(began));
    // SAFETY: no precondition. It takes each arena's lock; this thread holds none of them.
    let info = unsafe { mallinfo2() };
    let is_quick = took() < TOO_LONG_FOR_ARENAS;
    let figures = AllocatorFigures {
        name: "glibc",
        in_use: (info.uordblks as u64).saturating_add(info.hblkhd as u64),
        kept: info.fordblks as u64,
        arenas: if is_quick { arenas() } else { arenas_before },
    };
    Some((figures, took()))
}

/// Returns the number of arenas, or 0 if it cannot be read. `malloc_info` writes them as XML, a `<heap nr="…">` each.
fn arenas() -> u32 {
    let (mut text, mut length) = (core::ptr::null_mut(), 0);
    // SAFETY: both places outlive the stream, which writes to them when it is flushed or closed.
    let stream = unsafe { libc::open_memstream(&raw mut text, &raw mut length) };
    if stream.is_null() {
        return 0;
    }
    // SAFETY: the stream is open and of this function alone. Each arena's lock is taken; this thread holds none of them.
    let failed = unsafe { libc::malloc_info(0, stream) };
    // SAFETY: as above; the stream is not used again.
    let closed = unsafe { libc::fclose(stream) };
    if text.is_null() {
        return 0;
    }
    let arenas = if failed == 0 && closed == 0 {
        // SAFETY: after `fclose` the text is a C string of this function's own.
        let text = unsafe { core::ffi::CStr::from_ptr(text) }.to_bytes();
        let start = b"<heap nr=";
        let found = text.windows(start.len()).filter(|part| *part == start);
        u32::try_from(found.count()).unwrap_or(0)
    } else {
        0
    };
    // SAFETY: the caller of `open_memstream` frees the text, which nothing refers to any more.
    unsafe { libc::free(text.cast()) };
    arenas
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now() -> AllocatorFigures {
        read(0).unwrap().0
    }

    #[test]
    fn it_tells_the_number_of_its_arenas() {
        let arenas = now().arenas;
        assert!((1..10_000).contains(&arenas), "{arenas}");
    }

    #[test]
    fn it_tells_of_a_large_block() {
        let before = now().in_use;
        // Never touched, and much larger than what other tests allocate and free meanwhile.
        let block = std::hint::black_box(vec![0u8; 1 << 30]);
        let grown = now().in_use.saturating_sub(before);
        assert!(
            (768 << 20..1280 << 20).contains(&grown),
            "{grown} for {}",
            block.len()
        );
    }

    #[test]
    fn the_last_figures_stand_for_the_next_ones_until_it_is_time() {
        let begin = Instant::now();
        let mut last = None;
        let mut read = |ms, kept, took_ms| {
            let now = begin + Duration::from_millis(ms);
            let figures = last_or(&mut last, now, |arenas| {
                let (mut figures, _) = super::read(arenas)?;
                figures.kept = kept;
                Some((figures, Duration::from_millis(took_ms)))
            });
            figures.unwrap().kept
        };
        assert_eq!(read(0, 1, 0), 1);
        assert_eq!(read(1, 2, 10), 2, "the first took no time");
        assert_eq!(read(9_000, 3, 10), 2, "the second took ten milliseconds");
        assert_eq!(read(11_000, 4, 10), 4);
    }

    #[test]
    fn what_took_long_is_repeated_seldom() {
        let pause = |ms| pause_after(Duration::from_millis(ms)).as_secs();
        assert_eq!([1, 10, 100, 1_000].map(pause), [0, 10, 1_000, 100_000]);
        assert!(pause_after(Duration::from_micros(20)) < Duration::from_millis(1));
    }
}
