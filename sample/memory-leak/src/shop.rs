//! A small shop. Its routes use memory in different ways: one for a moment, one for a cache with a limit, and one leaks a little
//! with every call.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use axum::extract::{Path, State};
use axum::routing::{get, post};
use axum::{Json, Router};

/// Items that the cache holds at most.
const MOST_ITEMS: usize = 50;
/// Bytes of an item's description.
const DESCRIPTION: usize = 20_000;
/// Events of a visit.
const EVENTS: usize = 128;

/// The events of a visit: each a time and a page.
type Visit = Vec<(u64, u64)>;

/// What the shop remembers.
#[derive(Clone, Default)]
pub(crate) struct Shop {
    items: Arc<Mutex<BTreeMap<u32, String>>>,
    /// Nothing ever removes one.
    visits: Arc<Mutex<Vec<Visit>>>,
}

pub(crate) fn routes(shop: Shop) -> Router {
    Router::new()
        .route("/api/v1/quote", get(quote))
        .route("/api/v1/items/{id}", get(item))
        .route("/api/v1/visits", post(visit))
        .with_state(shop)
}

/// `GET /api/v1/quote`: adds up a table of prices, which is gone afterwards.
async fn quote() -> Json<u64> {
    let prices: Vec<u64> = (1..=100_000).collect();
    let with_tax: Vec<u64> = prices.iter().map(|price| price * 119 / 100).collect();
    Json(with_tax.iter().sum())
}

/// `GET /api/v1/items/{id}`: returns the length of the item's description, which is cached.
async fn item(State(shop): State<Shop>, Path(id): Path<u32>) -> Json<usize> {
    let mut items = shop.items.lock().unwrap_or_else(PoisonError::into_inner);
    if items.len() >= MOST_ITEMS && !items.contains_key(&id) {
        items.pop_first();
    }
    let described = items.entry(id).or_insert_with(|| "x".repeat(DESCRIPTION));
    Json(described.len())
}

/// `POST /api/v1/visits`: remembers the events of one more visit, and returns how many visits there are.
async fn visit(State(shop): State<Shop>) -> Json<usize> {
    let mut visits = shop.visits.lock().unwrap_or_else(PoisonError::into_inner);
    let number = visits.len() as u64;
    visits.push(vec![(number, 0); EVENTS]); // <- this line leaks, too
    Json(visits.len())
}
