//! The service of the README, word for word. A test runs it.

use axum::{Router, routing::get};

#[tokio::main]
async fn main() -> std::io::Result<()> {
    heapray::init(); // before anything else

    let app = Router::new().route("/", get(|| async { "hello" }));
    let app = heapray::mount(app); // adds the endpoints to the service's own routes

    let listener = tokio::net::TcpListener::bind("0.0.0.0:8000").await?;
    axum::serve(listener, app).await
}
