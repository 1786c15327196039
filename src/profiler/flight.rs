//! Single flight: who asks for what is already being made waits for that instead of having it made twice.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Mutex, PoisonError};

/// Gets the result; runs on the thread that made it, so it only hands it on.
pub(crate) type Waiter<V> = Box<dyn FnOnce(V) + Send>;

/// The works in the air, each with those who wait for it.
pub(crate) struct Flight<K, V> {
    waiting: Mutex<HashMap<K, Vec<Waiter<V>>>>,
}

impl<K, V> std::fmt::Debug for Flight<K, V> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Flight").finish_non_exhaustive()
    }
}

impl<K: Hash + Eq, V: Clone> Flight<K, V> {
    pub(crate) fn new() -> Flight<K, V> {
        Flight {
            waiting: Mutex::new(HashMap::new()),
        }
    }

    /// Adds a waiter. True for the first one: the caller now has to do the work and [`land`](Flight::land) it,
    /// whatever becomes of it.
    #[must_use]
    pub(crate) fn board(&self, key: K, waiter: Waiter<V>) -> bool {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let waiters = waiting.entry(key).or_default();
        waiters.push(waiter);
        waiters.len() == 1
    }

    /// Gives the result to all who wait. Who asks from now on has it made anew.
    pub(crate) fn land(&self, key: &K, value: &V) {
        let waiters = self
            .waiting
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(key);
        for waiter in waiters.into_iter().flatten() {
            waiter(value.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Flight;
    use std::sync::mpsc;

    #[test]
    fn many_who_ask_at_once_have_it_made_once_and_all_get_it() {
        let flight = Flight::new();
        let (tell, told) = mpsc::channel();
        let board = |key| {
            let tell = tell.clone();
            flight.board(
                key,
                Box::new(move |value: u32| tell.send((key, value)).unwrap()),
            )
        };
        let works = (0..20).filter(|_| board("flame graph")).count();
        assert_eq!(works, 1);
        assert!(board("stats"), "another key is another work");
        flight.land(&"flame graph", &7);
        assert_eq!(
            told.try_iter().collect::<Vec<_>>(),
            [("flame graph", 7); 20]
        );
        assert!(board("flame graph"), "after the landing it is made anew");
    }
}
