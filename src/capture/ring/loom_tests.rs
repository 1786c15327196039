//! Models of every order in which the two sides can run, and of every value that they may see then. `scripts/loom` runs
//! them.

use super::*;
use crate::capture::shared::fence;
use loom::sync::Arc;
use loom::thread;

/// Data that both sides may touch, and a clock that orders like the time stamp counter and synchronizes nothing.
struct Shared {
    ring: Ring,
    clock: AtomicU64,
}

fn model(events: u64) {
    loom::model(move || {
        let shared = Arc::new(Shared {
            ring: Ring::new().unwrap(),
            clock: AtomicU64::new(1),
        });
        let producer = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || {
                let mut pushed = 0;
                for number in 0..events {
                    // SAFETY: the one producer.
                    unsafe {
                        if shared.ring.reserve() {
                            let stamp = || shared.clock.fetch_add(1, Ordering::Relaxed);
                            shared.ring.push(Kind::Malloc, number, 0, 0, stamp);
                            pushed += 1;
                        }
                    }
                }
                pushed
            })
        };
        let mut reader = shared.ring.reader().unwrap();
        let now = shared.clock.fetch_add(1, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        let complete = reader.bound() == Bound::All;
        let mut seen = Vec::new();
        let mut drain = |reader: &mut Reader<'_>| {
            while let Some(slot) = reader.peek() {
                seen.push(slot[0]);
                reader.advance();
            }
            seen.len()
        };
        let first = drain(&mut reader);
        reader.commit();
        let pushed = producer.join().unwrap();
        reader.bound();
        drain(&mut reader);
        assert_eq!(seen.len(), pushed, "nothing is lost");
        assert!(
            seen.windows(2).all(|pair| pair[0] < pair[1]),
            "nothing is out of order"
        );
        if complete {
            let late = seen[first..].iter().find(|&&stamp| stamp < now);
            assert_eq!(
                late, None,
                "an event older than the watermark came after it was passed"
            );
        }
    });
}

#[test]
fn a_clear_window_means_that_every_older_event_is_published() {
    model(2);
}

#[test]
fn the_next_segment_is_followed_and_the_drained_one_given_back() {
    model(4);
}
