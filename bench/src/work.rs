//! The measured service: axum, and a handler that does what handlers do. About 155 allocations and 20 µs a request,
//! hyper's and tokio's own included.

use axum::routing::get;
use axum::{Json, Router};
use serde_json::{Value, json};

/// Orders as a client might have sent them.
const ORDERS: &str = r#"[
    {"id": 71, "customer": "Ada", "lines": [{"item": "bolt M4", "count": 200, "price": 3}, {"item": "nut M4", "count": 200, "price": 2}]},
    {"id": 72, "customer": "Grace", "lines": [{"item": "washer", "count": 1000, "price": 1}, {"item": "rod 1 m", "count": 4, "price": 850}]},
    {"id": 73, "customer": "Edsger", "lines": [{"item": "screw 3x20", "count": 500, "price": 4}, {"item": "hook", "count": 12, "price": 40}]}
]"#;

/// The service's routes.
pub(crate) fn app() -> Router {
    Router::new()
        .route("/orders", get(orders))
        .route("/events", get(|| async { "" }))
}

async fn orders() -> Json<Value> {
    Json(summary().unwrap_or(Value::Null))
}

/// Reads the orders, sums them up, and writes a line for each.
fn summary() -> Option<Value> {
    let orders: Vec<Value> = serde_json::from_str(ORDERS).ok()?;
    let mut rows = Vec::new();
    for order in &orders {
        let lines = order.get("lines")?.as_array()?;
        let texts: Vec<String> = lines.iter().map(line).collect();
        let total: i64 = lines.iter().filter_map(cost).sum();
        rows.push(json!({ "customer": order.get("customer")?.as_str()?.to_uppercase(), "total": total, "lines": texts }));
    }
    Some(json!({ "orders": rows, "count": orders.len() }))
}

fn line(line: &Value) -> String {
    let (item, count) = (line["item"].to_string(), line["count"].to_string());
    format!("{count} × {item}")
}

fn cost(line: &Value) -> Option<i64> {
    Some(line["count"].as_i64()? * line["price"].as_i64()?)
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_handler_really_does_its_work() {
        let summary = super::summary().expect("the orders can be read");
        assert_eq!(summary["count"], 3);
        assert_eq!(summary["orders"][1]["total"], 1000 + 4 * 850);
        assert_eq!(summary["orders"][0]["lines"][0], "200 × \"bolt M4\"");
    }
}
