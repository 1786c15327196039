//! A job that leaks with every call, to practise finding a leak.
//!
//! Start it with `MEMRAY_PROFILER=true` and follow the printed instructions.

mod health;
mod leak;
mod options;
mod shop;

use std::future::IntoFuture;
use std::io::IsTerminal;
use std::net::{Ipv4Addr, SocketAddr};
use std::process::ExitCode;
use std::time::Duration;

use axum::Router;
use axum::routing::{get, post};
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};

use leak::Cache;
use options::{Command, Options};
use shop::Shop;

fn main() -> ExitCode {
    let command = options::read(std::env::args().skip(1), std::env::var("PORT").ok());
    let done = match command {
        // The first line of a service: from here on every allocation is recorded. Racetrack calls a job below a prefix, so
        // the job's own routes must be there as well as the profiler's.
        Ok(Command::Run(options)) => {
            let profiler = heapray::builder().routes_below_prefix(true).init();
            run(profiler, options)
        }
        // A separate process, every few seconds. It is not the service, so it must not record, or write to the service's
        // files.
        Ok(Command::HealthCheck(options)) => health::check(options.port),
        Ok(Command::Help) => {
            say(options::HELP);
            Ok(())
        }
        Err(error) => Err(error.into()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("memory-leak: {error}");
            let mut source = error.source();
            while let Some(error) = source {
                eprintln!("  because: {error}");
                source = error.source();
            }
            ExitCode::FAILURE
        }
    }
}

fn run(profiler: heapray::Profiler, options: Options) -> Result<(), Box<dyn std::error::Error>> {
    tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .init();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    // They outlive the server, so that the last report shows the leaked memory as live.
    let (cache, shop) = (Cache::default(), Shop::default());
    let served = runtime.block_on(serve(
        profiler.clone(),
        cache.clone(),
        shop.clone(),
        options,
    ));
    // After success or failure: the recorded session becomes a report.
    profiler.shutdown()?;
    drop((cache, shop));
    served?;
    Ok(())
}

async fn serve(
    profiler: heapray::Profiler,
    cache: Cache,
    shop: Shop,
    options: Options,
) -> std::io::Result<()> {
    let routes = Router::new()
        .route("/health", get(health::health))
        .route("/live", get(health::live))
        .route("/ready", get(health::ready))
        .route("/api/v1/perform", post(leak::perform))
        .with_state(cache)
        .merge(shop::routes(shop));
    let app = match profiler.is_enabled() {
        true => profiler.mount(routes),
        // Without the profiler, a prefix must work too.
        false => Router::new()
            .nest("/pub/job/{name}/{version}", routes.clone())
            .merge(routes),
    };

    let listener = TcpListener::bind((Ipv4Addr::UNSPECIFIED, options.port)).await?;
    say(&options::what_next(
        listener.local_addr()?.port(),
        profiler.is_enabled(),
    ));
    let mut stop = (
        signal(SignalKind::terminate())?,
        signal(SignalKind::interrupt())?,
    );
    let (closed, telling) = tokio::sync::oneshot::channel();
    // With the client's address, so that a stranger's page in a browser on this machine cannot call the profiler.
    let app = app.into_make_service_with_connect_info::<SocketAddr>();
    let server = axum::serve(listener, app).with_graceful_shutdown(async move {
        tokio::select! {
            _ = stop.0.recv() => {}
            _ = stop.1.recv() => {}
        }
        // The receiver waits as long as the server runs.
        let _ = closed.send(());
    });
    tokio::select! {
        served = server.into_future() => served,
        () = grace_after(telling) => Ok(()),
    }
}

/// Requests that are running get three seconds to finish, as in a Racetrack job.
async fn grace_after(closed: tokio::sync::oneshot::Receiver<()>) {
    if closed.await.is_err() {
        std::future::pending::<()>().await;
    }
    tokio::time::sleep(Duration::from_secs(3)).await;
}

#[allow(clippy::print_stdout)] // what a person at a terminal is to read
fn say(text: &str) {
    println!("{text}");
}
