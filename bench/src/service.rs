//! Requests per second of a service: off, enabled but stopped, recording, and below a peer.

use std::io::Read;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use crate::child::Measured;
use crate::measure::{Result, median, thread_times};
use crate::mode::Mode;
use crate::{load, work};

/// Each mode is measured this often, in turns, so that other load on the machine meets all alike.
const ROUNDS: usize = 5;
const WARM_UP: Duration = Duration::from_millis(500);
const DURATION: Duration = Duration::from_secs(2);

/// What one round gives.
#[derive(Debug, Clone, Copy)]
struct Round {
    per_second: f64,
    /// CPU time of the service's own threads.
    service_us: f64,
    /// CPU time of heapray's threads.
    heapray_us: f64,
}

/// Prints both tables.
pub(crate) fn section() -> Result<()> {
    println!("\n## Requests per second\n");
    println!(
        "One worker thread, 8 connections on loopback, the load's own thread beside it; medians of {ROUNDS} rounds in turns."
    );
    println!("\n### An axum service with JSON\n");
    let start = |mode| {
        let mut child = Measured::start(&[], "serve", mode, &[])?;
        let address = child.next("address")?.parse()?;
        Ok((child, address))
    };
    table(&Mode::available(), "/orders", start, true)?;
    println!("\n### The sample, `GET /live`\n");
    let sample = build_sample()?;
    table(
        &Mode::available(),
        "/live",
        |mode| start_sample(&sample, mode),
        false,
    )?;
    Ok(std::fs::remove_dir_all(sample_directory())?)
}

fn table(
    modes: &[Mode],
    path: &str,
    start: impl Fn(Mode) -> Result<(Measured, SocketAddr)>,
    counts: bool,
) -> Result<()> {
    let mut rounds: Vec<Vec<Round>> = vec![Vec::new(); modes.len()];
    let mut allocations = f64::NAN;
    for _ in 0..ROUNDS {
        for (&mode, rounds) in modes.iter().zip(&mut rounds) {
            let (child, address) = start(mode)?;
            let warm = load::drive(address, path, WARM_UP)?;
            let before = thread_times(child.id())?;
            let answers = load::drive(address, path, DURATION)? as f64;
            let after = thread_times(child.id())?;
            let each = |before: Duration, after: Duration| {
                (after.saturating_sub(before)).as_secs_f64() * 1e6 / answers
            };
            rounds.push(Round {
                per_second: answers / DURATION.as_secs_f64(),
                service_us: each(before.service, after.service),
                heapray_us: each(before.heapray, after.heapray),
            });
            if counts {
                let values = child.finish()?;
                if mode == Mode::Recording {
                    allocations = values.get("allocations") / (answers + warm as f64);
                }
            } else {
                child.kill()?;
            }
        }
    }
    println!("| | requests/s | of off | service's CPU a request | heapray's CPU a request |");
    println!("|---|---|---|---|---|");
    let middle = |rounds: &[Round], of: fn(&Round) -> f64| median(rounds.iter().map(of).collect());
    let off = rounds
        .first()
        .map_or(f64::NAN, |rounds| middle(rounds, |round| round.per_second));
    for (mode, rounds) in modes.iter().zip(&rounds) {
        let per_second = middle(rounds, |round| round.per_second);
        println!(
            "| {} | {per_second:.0} | {:.0} % | {:.1} µs | {:.1} µs |",
            mode.name(),
            100.0 * per_second / off,
            middle(rounds, |round| round.service_us),
            middle(rounds, |round| round.heapray_us),
        );
    }
    if allocations.is_finite() {
        println!("\n{allocations:.0} allocations a request.");
    }
    Ok(())
}

/// Serves in this process until the input is closed.
pub(crate) fn child(mode: Mode) -> Result<()> {
    let profiler = mode.enter()?;
    let app = profiler.mount(work::app());
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_io()
        .build()?;
    let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0"))?;
    println!("address={}", listener.local_addr()?);
    runtime.spawn(async move { axum::serve(listener, app).await });
    drop(std::io::stdin().read_to_end(&mut Vec::new()));
    println!("allocations={}", profiler.status().allocated.count);
    Ok(())
}

fn build_sample() -> Result<PathBuf> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let built = Command::new(cargo)
        .args(["build", "--release", "--quiet", "--package", "memory-leak"])
        .status()?;
    if !built.success() {
        return Err("the sample could not be built".into());
    }
    Ok(std::env::current_exe()?.with_file_name("memory-leak"))
}

fn start_sample(program: &PathBuf, mode: Mode) -> Result<(Measured, SocketAddr)> {
    // A port that was free a moment ago.
    let address = std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?;
    let enabled = matches!(mode, Mode::Stopped | Mode::Recording);
    let mut command = Command::new(program);
    command
        .env("PORT", address.port().to_string())
        .env("TOKIO_WORKER_THREADS", "1")
        .env("MEMRAY_PROFILER", enabled.to_string())
        .env("MEMRAY_PROFILER_DIR", sample_directory());
    let child = Measured::spawn(command, mode)?;
    load::wait_for(address)?;
    if mode == Mode::Stopped {
        load::post(address, "/api/v1/profiler/memray/stop")?;
    }
    Ok((child, address))
}

fn sample_directory() -> PathBuf {
    std::env::temp_dir().join(format!("heapray-bench-sample-{}", std::process::id()))
}
