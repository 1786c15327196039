//! The routes on a thread of their own, for programs without HTTP, and for services that are stuck.

use std::fmt;
use std::io;
use std::net::{SocketAddr, TcpListener, ToSocketAddrs};
use std::sync::{Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use axum::Router;
use tokio::sync::oneshot;

use crate::profiler::Profiler;
use crate::quiet;

/// The profiler's own listener could not be opened.
#[derive(Debug)]
pub struct ServeError {
    address: String,
    source: io::Error,
}

impl fmt::Display for ServeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "the profiler cannot listen on {}: {}",
            self.address, self.source
        )
    }
}

impl std::error::Error for ServeError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.source)
    }
}

/// The listeners that are open.
#[derive(Debug, Default)]
pub(crate) struct Servers {
    open: Mutex<Vec<Server>>,
}

#[derive(Debug)]
struct Server {
    close: oneshot::Sender<()>,
    thread: JoinHandle<()>,
}

impl Servers {
    /// Closes every listener. Downloads under way get two seconds to finish.
    pub(crate) fn close(&self) {
        let open = std::mem::take(&mut *self.open.lock().unwrap_or_else(PoisonError::into_inner));
        for server in open {
            // Its thread is gone already: so much the better.
            let _ = server.close.send(());
            let _ = server.thread.join();
        }
    }
}

const GRACE: Duration = Duration::from_secs(2);

impl Profiler {
    /// Serves the profiler's routes at `address`, at the root and below the job prefix, on a thread and a single-threaded
    /// tokio runtime of its own: it answers even while the service's runtime is stuck. Returns where it
    /// listens (with port 0 the system chooses one); `None`, and no listener, where the profiler is disabled.
    /// [`shutdown`](Profiler::shutdown) closes it.
    ///
    /// Whoever can reach the address can call it: listen on `127.0.0.1`, or set a token.
    ///
    /// # Errors
    ///
    /// The address is taken, not allowed or not this machine's; or there can be no more threads.
    pub fn serve(&self, address: impl ToSocketAddrs) -> Result<Option<SocketAddr>, ServeError> {
        let Ok(core) = self.core() else {
            return Ok(None);
        };
        let _quiet = quiet::enter();
        let listener = listen(address)?;
        let fail = |source| ServeError {
            address: String::from("its own thread"),
            source,
        };
        let bound = listener.local_addr().map_err(fail)?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        let runtime = runtime.map_err(fail)?;
        let (close, closed) = oneshot::channel();
        let app = Router::new().fallback_service(self.service());
        let thread = thread::Builder::new()
            .name("heapray-http".into())
            .spawn(move || {
                quiet::for_good();
                if let Err(error) = runtime.block_on(run(listener, app, closed)) {
                    tracing::error!(%error, "the profiler's own listener failed");
                }
            });
        let thread = thread.map_err(fail)?;
        let mut open = core
            .servers
            .open
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        open.push(Server { close, thread });
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

async fn run(listener: TcpListener, app: Router, closed: oneshot::Receiver<()>) -> io::Result<()> {
    let listener = tokio::net::TcpListener::from_std(listener)?;
    let (begin, begun) = oneshot::channel();
    let server = axum::serve(listener, app).with_graceful_shutdown(async move {
        // Closed, or the profiler itself is gone.
        let _ = closed.await;
        let _ = begin.send(());
    });
    let patience = async move {
        // No end has begun: the server failed by itself, which the other arm tells.
        if begun.await.is_err() {
            std::future::pending::<()>().await;
        }
        tokio::time::sleep(GRACE).await;
    };
    tokio::select! {
        served = server => served,
        () = patience => Ok(()),
    }
}
