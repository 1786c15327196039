//! An axum service with a typical handler: JSON in, a map of strings, JSON out. About 160 allocations and reallocations per
//! request, including hyper's and tokio's own.

use std::collections::HashMap;
use std::io::Read;

use axum::routing::post;
use axum::{Json, Router};
use serde_json::{Value, json};

use crate::measure::Result;
use crate::profiler::Profiler;

/// Body that clients send to `POST /orders`.
pub const REQUEST: &str = r#"[
    {"id": 71, "customer": "Ada", "lines": [{"item": "bolt M4", "count": 200, "price": 3}, {"item": "nut M4", "count": 200, "price": 2}, {"item": "hook", "count": 12, "price": 40}]},
    {"id": 72, "customer": "Grace", "lines": [{"item": "washer", "count": 1000, "price": 1}, {"item": "rod 1 m", "count": 4, "price": 850}]}
]"#;

/// Serves in this process until its input is closed.
pub(crate) fn run(profiler: &mut dyn Profiler) -> Result<()> {
    let app = profiler.mount(Router::new().route("/orders", post(orders)));
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_io()
        .build()?;
    let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0"))?;
    println!("address={}", listener.local_addr()?);
    runtime.spawn(async move { axum::serve(listener, app).await });
    std::io::stdin().read_to_end(&mut Vec::new())?;
    profiler.settle();
    Ok(())
}

async fn orders(Json(orders): Json<Vec<Value>>) -> Json<Value> {
    Json(summary(&orders).unwrap_or(Value::Null))
}

/// Sums the orders up by customer, and writes a line for each order line.
fn summary(orders: &[Value]) -> Option<Value> {
    let mut totals: HashMap<String, String> = HashMap::new();
    let mut rows = Vec::new();
    for order in orders {
        let lines = order.get("lines")?.as_array()?;
        let customer = order.get("customer")?.as_str()?.to_uppercase();
        let texts: Vec<String> = lines.iter().map(line).collect();
        let total: i64 = lines.iter().filter_map(cost).sum();
        totals.insert(customer.clone(), total.to_string());
        rows.push(json!({ "customer": customer, "lines": texts }));
    }
    Some(json!({ "orders": rows, "totals": totals }))
}

fn line(line: &Value) -> String {
    format!("{} × {}", line["count"], line["item"])
}

fn cost(line: &Value) -> Option<i64> {
    Some(line["count"].as_i64()? * line["price"].as_i64()?)
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_handler_really_does_its_work() {
        let orders: Vec<serde_json::Value> =
            serde_json::from_str(super::REQUEST).expect("the orders can be read");
        let summary = super::summary(&orders).expect("the orders can be summed up");
        assert_eq!(summary["totals"]["GRACE"], (1000 + 4 * 850).to_string());
        assert_eq!(summary["orders"][0]["lines"][0], "200 × \"bolt M4\"");
    }
}
