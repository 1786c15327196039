//! The routes on a thread of their own, for programs without HTTP, and for services that hang.

use std::fmt;
use std::io;
use std::net::{SocketAddr, TcpListener, ToSocketAddrs};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use axum::Router;
use axum::serve::Listener;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::sync::{Semaphore, oneshot};

use super::api::BASE;
use super::stall_timeout::StallTimeout;
use crate::announce;
use crate::capture::untracked;
use crate::os::process::check_thread_start;
use crate::profiler::Profiler;

/// Error of [`Profiler::serve`]: the listener could not be opened.
#[derive(Debug)]
pub struct ServeError {
    address: String,
    source: io::Error,
}

impl fmt::Display for ServeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the profiler cannot listen on {}", self.address)
    }
}

impl std::error::Error for ServeError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.source)
    }
}

impl From<ServeError> for io::Error {
    fn from(error: ServeError) -> io::Error {
        io::Error::new(error.source.kind(), error)
    }
}

/// Time that running downloads get to finish when a listener is closed.
const GRACE: Duration = Duration::from_secs(2);

/// Limits of a listener's clients.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    /// Connections at once. Each is a file descriptor that the service may need. Further clients wait.
    connections: usize,
    /// Time after which a client that sends no request loses its connection.
    request_timeout: Duration,
    /// Time after which a client that reads nothing of its answer loses its connection.
    stall_timeout: Duration,
}

pub(super) const LIMITS: Limits = Limits {
    connections: 64,
    request_timeout: Duration::from_secs(30),
    stall_timeout: Duration::from_secs(60),
};

impl Profiler {
    /// Serves the profiler's routes at `address`, at the root and below the job prefix. They run on a thread and a
    /// single-threaded tokio runtime of their own, so that they answer even while the service's runtime hangs. Returns the
    /// address of the listener (with port 0 the system chooses a port), or `None`, without a listener, where the profiler is
    /// disabled. [`shutdown`](Profiler::shutdown) closes the listener.
    ///
    /// Every client that can reach the address can call the profiler: listen on `127.0.0.1`, or set a token. Without a token
    /// the listener answers only under addresses, under names that no stranger can own, and under the configured ones
    /// ([`hosts`](crate::Builder::hosts)). It has 64 connections at once; further clients wait until one ends. A connection
    /// ends if its client sends nothing for 30 seconds, or reads nothing of its answer for 60 seconds.
    ///
    /// # Errors
    ///
    /// The address is taken, not allowed or not one of this machine, or the system allows no further thread.
    pub fn serve(&self, address: impl ToSocketAddrs) -> Result<Option<SocketAddr>, ServeError> {
        let Ok(core) = self.core() else {
            return Ok(None);
        };
        let _untracked = untracked::enter();
        let listener = listen(address)?;
        let fail = |source| ServeError {
            address: String::from("its own thread"),
            source,
        };
        let bound = listener.local_addr().map_err(fail)?;
        check_thread_start().map_err(fail)?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        let runtime = runtime.map_err(fail)?;
        let (close, closed) = oneshot::channel();
        let app = Router::new().fallback_service(self.service_at_own_listener());
        let thread = thread::Builder::new()
            .name("heapray-http".into())
            .spawn(move || {
                untracked::for_good();
                if let Err(error) = runtime.block_on(run(listener, app, closed, LIMITS)) {
                    tracing::error!(%error, "the profiler's own listener failed");
                }
            });
        let thread = thread.map_err(fail)?;
        core.listeners().add(move || {
            // If its thread is gone already, there is nothing to close.
            let _ = close.send(());
            let _ = thread.join();
        });
        announce::info(format_args!("the profiler listens: http://{bound}{BASE}/"));
        Ok(Some(bound))
    }
}

fn listen(address: impl ToSocketAddrs) -> Result<TcpListener, ServeError> {
    let fail = |address: String| move |source| ServeError { address, source };
    let addresses = address
        .to_socket_addrs()
        .map_err(fail("that address".into()))?;
    let addresses: Vec<_> = addresses.collect();
    let names = || {
        let names: Vec<_> = addresses.iter().map(SocketAddr::to_string).collect();
        names.join(", ")
    };
    let listener = TcpListener::bind(&*addresses).map_err(fail(names()))?;
    listener.set_nonblocking(true).map_err(fail(names()))?;
    Ok(listener)
}

/// Serves until `closed` is sent or dropped. Requests that run longer than [`GRACE`] after that are cut off.
pub(super) async fn run(
    listener: TcpListener,
    app: Router,
    mut closed: oneshot::Receiver<()>,
    limits: Limits,
) -> io::Result<()> {
    let mut listener = tokio::net::TcpListener::from_std(listener)?;
    let places = Arc::new(Semaphore::new(limits.connections));
    let connections = GracefulShutdown::new();
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new())
        .header_read_timeout(limits.request_timeout);
    loop {
        let next = async {
            let place = Arc::clone(&places).acquire_owned().await;
            // axum's own: it does not stop at the errors of single clients, and waits while file descriptors are short.
            (Listener::accept(&mut listener).await, place)
        };
        let ((stream, _), place) = tokio::select! {
            next = next => next,
            _ = &mut closed => break,
        };
        let service = TowerToHyperService::new(app.clone());
        let stream = TokioIo::new(StallTimeout::new(stream, limits.stall_timeout));
        let connection = connections.watch(http.serve_connection(stream, service));
        tokio::spawn(async move {
            // A client that has left, or that sends nothing, is not a failure of ours.
            let _ = connection.await;
            drop(place);
        });
    }
    drop(listener);
    let _ = tokio::time::timeout(GRACE, connections.shutdown()).await;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{Limits, listen, run};
    use axum::Router;
    use axum::routing::get;
    use bytes::Bytes;
    use std::io::{Read, Write};
    use std::net::TcpStream;
    use std::time::Duration;
    use tokio::sync::oneshot;

    /// More bytes than the system buffers for a connection whose client reads nothing.
    static LONG: [u8; 32 << 20] = [b'x'; 32 << 20];

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn clients_that_take_nothing_of_their_answers_give_up_their_places() {
        let app = Router::new()
            .route("/long", get(|| async { Bytes::from_static(&LONG) }))
            .route("/short", get(|| async { "short" }));
        let listener = listen("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let limits = Limits {
            connections: 3,
            request_timeout: Duration::from_secs(600),
            stall_timeout: Duration::from_millis(50),
        };
        let (close, closed) = oneshot::channel();
        let server = tokio::spawn(run(listener, app, closed, limits));
        let clients = tokio::task::spawn_blocking(move || {
            let ask = |path: &str| {
                let mut client = TcpStream::connect(address).unwrap();
                let request =
                    format!("GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
                client.write_all(request.as_bytes()).unwrap();
                client
            };
            // These clients hold every connection, and never read.
            let idle: Vec<_> = (0..limits.connections).map(|_| ask("/long")).collect();
            let mut answer = String::new();
            ask("/short").read_to_string(&mut answer).unwrap();
            assert!(answer.ends_with("short"), "{answer}");
            drop(idle);
        });
        clients.await.unwrap();
        drop(close);
        server.await.unwrap().unwrap();
    }
}
