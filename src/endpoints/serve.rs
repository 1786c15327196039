//! The routes on a thread of their own, for programs without HTTP, and for services that are stuck.

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

use super::patient::Patient;
use crate::capture::untracked;
use crate::os::process::check_thread_start;
use crate::profiler::Profiler;

/// The profiler's own listener could not be opened.
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

/// What downloads under way get to finish when a listener is closed.
const GRACE: Duration = Duration::from_secs(2);

/// What clients may take.
#[derive(Debug, Clone, Copy)]
struct Limits {
    /// Connections at once: each is a file descriptor that the service may need. Further clients wait.
    connections: usize,
    /// A client that takes longer to say what it wants next gives up its place.
    asking: Duration,
    /// And so does one that takes nothing of its answer for so long.
    taking: Duration,
}

const LIMITS: Limits = Limits {
    connections: 64,
    asking: Duration::from_secs(30),
    taking: Duration::from_secs(60),
};

impl Profiler {
    /// Serves the profiler's routes at `address`, at the root and below the job prefix, on a thread and a single-threaded
    /// tokio runtime of its own: it answers even while the service's runtime is stuck. Returns where it
    /// listens (with port 0 the system chooses one); `None`, and no listener, where the profiler is disabled.
    /// [`shutdown`](Profiler::shutdown) closes it.
    ///
    /// Whoever can reach the address can call it: listen on `127.0.0.1`, or set a token. Without a token it answers only
    /// under addresses, names that no stranger can own, and those that were listed ([`hosts`](crate::Builder::hosts)). It
    /// has 64 connections at once; further clients wait until one ends, as those do that say nothing for 30 seconds, or
    /// take nothing of their answers for 60.
    ///
    /// # Errors
    ///
    /// The address is taken, not allowed or not this machine's; or there can be no more threads.
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
            // Its thread is gone already: so much the better.
            let _ = close.send(());
            let _ = thread.join();
        });
        tracing::info!(address = %bound, "the profiler listens");
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

/// Serves until `closed` is told or dropped. A client that goes on after that is left after [`GRACE`].
async fn run(
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
        .header_read_timeout(limits.asking);
    loop {
        let next = async {
            let place = Arc::clone(&places).acquire_owned().await;
            // axum's own: it takes no end at the errors of single clients, and waits where file descriptors are short.
            (Listener::accept(&mut listener).await, place)
        };
        let ((stream, _), place) = tokio::select! {
            next = next => next,
            _ = &mut closed => break,
        };
        let service = TowerToHyperService::new(app.clone());
        let stream = TokioIo::new(Patient::new(stream, limits.taking));
        let connection = connections.watch(http.serve_connection(stream, service));
        tokio::spawn(async move {
            // That a client has gone, or says nothing, is no failure of ours.
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

    /// More than the system holds for a connection whose client reads nothing.
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
            asking: Duration::from_secs(600),
            taking: Duration::from_millis(50),
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
            // They hold every place, and never read.
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
