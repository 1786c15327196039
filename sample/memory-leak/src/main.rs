//! A job that leaks a little with every call, for finding out where.
//!
//! Start it with `MEMRAY_PROFILER=true` and do what it prints.

mod health;
mod leak;
mod options;

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

fn main() -> ExitCode {
    let command = options::read(std::env::args().skip(1), std::env::var("PORT").ok());
    let done = match command {
        // First of all that a service does: from here on every allocation is seen. Racetrack calls a job below a prefix: its
        // own routes are to be there as well as the profiler's.
        Ok(Command::Run(options)) => {
            let profiler = heapray::builder().routes_below_prefix(true).init();
            run(profiler, options)
        }
        // A process of its own, every few seconds: it is not the service, and must not record, or write where that does.
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
    // It outlives the server: the last report shows what was held, not what went with the process.
    let cache = Cache::default();
    let served = runtime.block_on(serve(profiler.clone(), cache.clone(), options));
    // Whatever came of it: what was recorded becomes a report.
    profiler.shutdown()?;
    drop(cache);
    served?;
    Ok(())
}

async fn serve(profiler: heapray::Profiler, cache: Cache, options: Options) -> std::io::Result<()> {
    let routes = Router::new()
        .route("/health", get(health::health))
        .route("/live", get(health::live))
        .route("/ready", get(health::ready))
        .route("/api/v1/perform", post(leak::perform))
        .with_state(cache);
    let app = match profiler.is_enabled() {
        true => profiler.mount(routes),
        // Not profiled it is called there, too.
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
    let (told, telling) = tokio::sync::oneshot::channel();
    // With the caller's address, so that a stranger's page in a browser on this machine cannot call the profiler.
    let app = app.into_make_service_with_connect_info::<SocketAddr>();
    let server = axum::serve(listener, app).with_graceful_shutdown(async move {
        tokio::select! {
            _ = stop.0.recv() => {}
            _ = stop.1.recv() => {}
        }
        // The other end waits as long as the server runs.
        let _ = told.send(());
    });
    tokio::select! {
        served = server.into_future() => served,
        () = patience_after(telling) => Ok(()),
    }
}

/// Requests under way get three seconds to finish, as in a Racetrack job.
async fn patience_after(told: tokio::sync::oneshot::Receiver<()>) {
    if told.await.is_err() {
        std::future::pending::<()>().await;
    }
    tokio::time::sleep(Duration::from_secs(3)).await;
}

#[allow(clippy::print_stdout)] // what a person at a terminal is to read
fn say(text: &str) {
    println!("{text}");
}
