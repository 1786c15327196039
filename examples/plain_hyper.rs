//! A server on plain hyper, without axum, that carries the profiler inside.
//!
//! `MEMRAY_PROFILER=true cargo run --example plain_hyper`, then `curl localhost:3000/api/v1/profiler/memray/status`.

use std::convert::Infallible;

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tower::{Layer, ServiceExt, service_fn};

#[tokio::main(flavor = "current_thread")]
async fn main() -> std::io::Result<()> {
    let profiler = heapray::init();
    // The app's own routes, and the profiler's beside them.
    let service = profiler.layer().layer(service_fn(hello));

    let listener = tokio::net::TcpListener::bind("127.0.0.1:3000").await?;
    loop {
        let (stream, peer) = listener.accept().await?;
        let service = service.clone();
        // A guard for everything goes here, too: it sees each request to the app and to the profiler.
        let service = hyper::service::service_fn(move |mut request: Request<Incoming>| {
            // The client's address. With it, a stranger's page in a browser on this machine cannot call the profiler.
            request.extensions_mut().insert(peer);
            service.clone().oneshot(request)
        });
        tokio::spawn(async move {
            let served = http1::Builder::new().serve_connection(TokioIo::new(stream), service);
            if let Err(error) = served.await {
                eprintln!("a connection failed: {error}");
            }
        });
    }
}

async fn hello(_: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    Ok(Response::new(Full::from("hello\n")))
}
