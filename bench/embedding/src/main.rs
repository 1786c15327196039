//! The smallest service of axum and tokio as people write it, with heapray and without.

use axum::Router;
use axum::routing::get;

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let app = Router::new().route("/", get(|| async { "hello" }));
    #[cfg(feature = "http")]
    let app = heapray::mount(app);
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    axum::serve(listener, app).await
}
