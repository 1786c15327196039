//! The leak.

use std::sync::{Arc, Mutex, PoisonError};

use axum::Json;
use axum::extract::State;

/// Results so far. Nothing ever removes one.
pub(crate) type Cache = Arc<Mutex<Vec<Vec<u64>>>>;

/// `POST /api/v1/perform`: caches one more result, and returns how many there are.
pub(crate) async fn perform(State(cache): State<Cache>) -> Json<usize> {
    Json(leak_a_million_numbers(&cache))
}

/// Leaks eight million bytes per call.
#[inline(never)]
fn leak_a_million_numbers(cache: &Cache) -> usize {
    let mut cache = cache.lock().unwrap_or_else(PoisonError::into_inner);
    let number = cache.len() as u64;
    cache.push(vec![number + 1; 1_000_000]); // <- this line leaks
    cache.len()
}
