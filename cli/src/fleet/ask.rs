//! Asks all replicas, so many at once, until a deadline that is the same for everything.

use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::figures::Replica;
use super::live;
use super::targets::Target;
use crate::failure::Failure;
use crate::remote::Remote;

/// Bounds of asking many.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds {
    /// Most replicas at once.
    pub(crate) at_once: usize,
    /// Longest time for the state of a replica.
    pub(crate) answer: Duration,
    /// When all of it must be over.
    pub(crate) deadline: Instant,
    /// The same from the start, for messages.
    pub(crate) max_time: Duration,
}

/// Calls `ask` with each of `all` and the time that is left, and returns the results in the same order.
pub(crate) fn each<T: Sync, R: Send>(
    all: &[T],
    bounds: Bounds,
    ask: impl Fn(&T, Duration) -> Result<R, Failure> + Sync,
) -> Vec<Result<R, Failure>> {
    let next = AtomicUsize::new(0);
    let results: Vec<Mutex<Option<Result<R, Failure>>>> =
        all.iter().map(|_| Mutex::new(None)).collect();
    let work = || {
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let (Some(one), Some(result)) = (all.get(at), results.get(at)) else {
                return;
            };
            let left = || bounds.deadline.saturating_duration_since(Instant::now());
            let over = |what: &str| {
                let seconds = bounds.max_time.as_secs();
                Failure::Other(format!(
                    "{what}, since {seconds} s were over: allow more with --max-time"
                ))
            };
            let answer = match left() {
                Duration::ZERO => Err(over("not asked")),
                // What was cut off at the end has failed for that reason.
                time => ask(one, time).map_err(|failure| match left() {
                    Duration::ZERO => over("given up"),
                    _ => failure,
                }),
            };
            *result.lock().unwrap_or_else(PoisonError::into_inner) = Some(answer);
        }
    };
    thread::scope(|scope| {
        for _ in 0..bounds.at_once.min(all.len()) {
            scope.spawn(work);
        }
    });
    let taken = results
        .into_iter()
        .map(|result| result.into_inner().unwrap_or_else(PoisonError::into_inner));
    taken
        .map(|result| result.unwrap_or_else(|| Err(Failure::Other("it was not asked".into()))))
        .collect()
}

/// Asks a replica for its state, which takes no longer than `within`.
pub(crate) fn state(
    target: &Target,
    remote: &Remote,
    within: Duration,
) -> Result<Replica, Failure> {
    let state = live::read(remote.live(within)?)?;
    Ok(Replica::of(target.name.clone(), &state))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bounds(left: Duration) -> Bounds {
        Bounds {
            at_once: 3,
            answer: left,
            deadline: Instant::now() + left,
            max_time: left,
        }
    }

    #[test]
    fn results_are_in_order_and_never_more_than_so_many_are_asked_at_once() {
        let (now, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let numbers: Vec<u32> = (0..50).collect();
        let results = each(&numbers, bounds(Duration::from_secs(60)), |number, _| {
            most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            thread::sleep(Duration::from_millis(1));
            now.fetch_sub(1, Ordering::SeqCst);
            Ok(number * 2)
        });
        let doubled: Vec<u32> = results.into_iter().map(Result::unwrap).collect();
        assert_eq!(
            doubled,
            (0..50).map(|number| number * 2).collect::<Vec<_>>()
        );
        assert!(most.load(Ordering::SeqCst) <= 3);
    }

    #[test]
    fn after_the_deadline_nobody_is_asked() {
        let results = each(
            &[1, 2],
            bounds(Duration::ZERO),
            |_, _| -> Result<(), Failure> { panic!("it was asked") },
        );
        assert!(results.iter().all(
            |result| matches!(result, Err(Failure::Other(text)) if text.contains("--max-time"))
        ));
    }

    #[test]
    fn what_fails_at_the_deadline_fails_because_of_it() {
        let soon = bounds(Duration::from_millis(20));
        let results = each(&[1], soon, |_, left| -> Result<(), Failure> {
            assert!(left <= Duration::from_millis(20));
            thread::sleep(left);
            Err(Failure::Other("it does not answer in time".into()))
        });
        let [Err(failure)] = &results[..] else {
            panic!("it has not failed");
        };
        assert!(failure.to_string().contains("given up"), "{failure}");
    }
}
