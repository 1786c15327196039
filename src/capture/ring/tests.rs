//! Tests of single rings. The models (`loom_tests`) test every order of two threads' steps.

use std::thread;

use super::*;

fn push(ring: &Ring, stamp: u64, size: u64) -> bool {
    // SAFETY: the test's one producer.
    unsafe {
        if !ring.reserve() {
            return false;
        }
        ring.push(Kind::Malloc, 0x1000 + stamp, size, 7, || stamp);
    }
    true
}

fn take(reader: &mut Reader<'_>) -> Option<Decoded> {
    let mut decoded = decode(reader.peek()?);
    reader.advance();
    if decoded.more {
        decoded.add(reader.peek()?);
        reader.advance();
    }
    Some(decoded)
}

#[test]
fn events_come_out_as_they_went_in_through_every_segment() {
    let ring = Ring::new().unwrap();
    let mut reader = ring.reader().unwrap();
    let mut pushed = 0;
    while push(
        &ring,
        pushed,
        if pushed % 3 == 0 {
            pushed << 31
        } else {
            pushed
        },
    ) {
        pushed += 1;
    }
    assert!(
        pushed > 6000,
        "a full ring is of several segments: {pushed}"
    );
    reader.bound();
    for stamp in 0..pushed {
        let event = take(&mut reader).unwrap();
        let size = if stamp.is_multiple_of(3) {
            stamp << 31
        } else {
            stamp
        };
        let expected = Decoded {
            stamp,
            kind: Kind::Malloc,
            address: 0x1000 + stamp,
            size,
            node: 7,
            more: event.more,
        };
        assert_eq!(event, expected);
    }
    assert_eq!(take(&mut reader), None);
    reader.commit();
    assert!(push(&ring, 1, 1));
}

#[test]
fn a_full_ring_has_room_again_once_the_reader_says_so() {
    let ring = Ring::new().unwrap();
    let mut reader = ring.reader().unwrap();
    while push(&ring, 0, 1) {}
    reader.bound();
    while take(&mut reader).is_some() {}
    reader.commit();
    let mut more = 0;
    while push(&ring, 0, 1) {
        more += 1;
    }
    assert_eq!(
        more,
        MOST_SLOTS - 1,
        "the last slot is kept free for a second half"
    );
}

#[test]
fn a_producer_that_sleeps_is_woken_once_a_quarter_of_the_ring_is_free() {
    let ring = Ring::new().unwrap();
    let mut reader = ring.reader().unwrap();
    while push(&ring, 0, 1) {}
    reader.bound();
    let mut take_some = |slots| {
        for _ in 0..slots {
            take(&mut reader).unwrap();
        }
        reader.commit()
    };
    // The smaller segments that came before the last one.
    assert!(!take_some(FIRST_SLOTS * 5 - 2), "nobody sleeps");
    let (falls_asleep, asleep) = std::sync::mpsc::channel();
    std::thread::scope(|scope| {
        // SAFETY: the one producer from now on.
        let producer =
            scope.spawn(|| unsafe { ring.wait(u64::MAX, || falls_asleep.send(()).unwrap()) });
        asleep.recv().unwrap();
        assert!(!take_some(MOST_SLOTS / 4 - 2));
        assert!(take_some(2));
        ring.wake();
        assert!(producer.join().unwrap());
    });
}

#[test]
fn the_consumer_is_called_at_half_and_not_at_each_event_after() {
    let ring = Ring::new().unwrap();
    let mut calls = 0;
    for stamp in 0..4000 {
        // SAFETY: the test's one producer.
        unsafe {
            assert!(ring.reserve());
            calls += u32::from(ring.push(Kind::Free, stamp, 0, 0, || stamp));
        }
    }
    assert!((1..20).contains(&calls), "{calls}");
}

#[test]
fn a_reader_on_another_thread_gets_every_event_in_order() {
    const EVENTS: u64 = if cfg!(miri) { 3_000 } else { 300_000 };
    let size = |stamp: u64| {
        if stamp.is_multiple_of(3) {
            stamp << 31
        } else {
            stamp
        }
    };
    let ring = Ring::new().unwrap();
    thread::scope(|scope| {
        scope.spawn(|| {
            for stamp in 0..EVENTS {
                while !push(&ring, stamp, size(stamp)) {
                    thread::yield_now();
                }
            }
        });
        let mut reader = ring.reader().unwrap();
        let mut seen = 0;
        while seen < EVENTS {
            reader.bound();
            while let Some(event) = take(&mut reader) {
                assert_eq!((event.stamp, event.size), (seen, size(seen)));
                seen += 1;
            }
            reader.commit();
            thread::yield_now();
        }
    });
}

#[test]
fn a_name_takes_its_sixteen_bytes() {
    let ring = Ring::new().unwrap();
    // SAFETY: the test's one producer.
    unsafe {
        assert!(ring.reserve());
        ring.push_name(*b"sixteen letters!", || 5);
    }
    let mut reader = ring.reader().unwrap();
    reader.bound();
    assert_eq!(decode(reader.peek().unwrap()).kind, Kind::ThreadName);
    reader.advance();
    let [first, last, _] = reader.peek().unwrap();
    assert_eq!(
        [first.to_le_bytes(), last.to_le_bytes()].concat(),
        b"sixteen letters!"
    );
}

#[test]
fn a_ring_that_was_full_is_small_again_when_its_thread_has_ended_and_keeps_what_is_in_it() {
    let ring = Ring::new().unwrap();
    let mut reader = ring.reader().unwrap();
    let mut pushed = 0;
    let mut push = |count: u64| {
        for _ in 0..count {
            // SAFETY: this thread owns the ring, and asks for room before each push.
            unsafe {
                assert!(ring.reserve());
                ring.push(Kind::Free, 0x1000, 0, 0, || pushed);
            }
            pushed += 1;
        }
    };
    push(FIRST_SLOTS * 5 + MOST_SLOTS / 2);
    // SAFETY: as above.
    unsafe { ring.shorten() };
    push(3);
    reader.bound();
    let mut read = 0;
    while let Some(event) = take(&mut reader) {
        assert_eq!(event.stamp, read);
        read += 1;
    }
    assert_eq!(read, pushed);
    // SAFETY: the segment is the reader's, and live.
    assert_eq!(unsafe { (*reader.segment).capacity }, FIRST_SLOTS);
}

#[test]
fn threads_that_come_and_go_have_to_wait_for_the_reader_too() {
    let ring = Ring::new().unwrap();
    let mut reader = ring.reader().unwrap();
    let fill = || {
        let mut pushed = 0;
        // SAFETY: this thread owns the ring, and asks for room before each push.
        unsafe {
            while ring.reserve() {
                ring.push(Kind::Free, 0x1000, 0, 0, || 0);
                pushed += 1;
            }
            ring.shorten();
        }
        pushed
    };
    let most = FIRST_SLOTS * 5 + MOST_SLOTS;
    assert!((most - 8..=most).contains(&fill()));
    assert!((most - 8..=most).contains(&fill()));
    // Nothing was read: no further segment is added.
    assert_eq!((fill(), fill()), (0, 0));
    reader.bound();
    while take(&mut reader).is_some() {}
    reader.commit();
    assert!(fill() > FIRST_SLOTS);
}
