//! A small service whose binary size is measured: with heapray.

use axum::Router;
use axum::routing::get;

fn main() -> std::io::Result<()> {
    let app = Router::new().route("/", get(|| async { "hello" }));
    let app = heapray::mount(app);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_io()
        .build()?;
    runtime.block_on(async {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
        axum::serve(listener, app).await
    })
}
