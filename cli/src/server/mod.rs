//! A small HTTP server for one person's browser: GET and HEAD of a few fixed paths, on loopback only.
//!
//! Whatever the browser of that person loads from elsewhere can send requests here too. So the `Host` header must be a
//! name of loopback, or a page could have its own name resolve to 127.0.0.1 and read the answers (DNS rebinding); and
//! answers say that no other site may embed them. Connections are few, short and bounded in time and size.

mod answers;
mod request;

use std::io::{self, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

pub(crate) use answers::Answers;
use request::{Refusal, Request};

use crate::failure::Failure;

/// Connections at a time. A browser opens six.
const MOST_CONNECTIONS: usize = 32;

/// How long a request's head or a stretch of its answer may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// A port on loopback.
#[derive(Debug)]
pub(crate) struct Server {
    listener: TcpListener,
}

impl Server {
    /// Takes `port`, or any that is free for 0.
    pub(crate) fn bind(port: u16) -> Result<Server, Failure> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))
            .map_err(|error| Failure::io(format!("cannot listen on 127.0.0.1:{port}"), error))?;
        Ok(Server { listener })
    }

    /// Where it is reached.
    pub(crate) fn url(&self) -> Result<String, Failure> {
        let address = self.listener.local_addr();
        let address = address.map_err(|error| Failure::io("cannot listen", error))?;
        Ok(format!("http://{address}/"))
    }

    /// Answers until the process ends.
    pub(crate) fn serve(self, answers: Answers) -> Result<(), Failure> {
        let answers = Arc::new(answers);
        let open = Arc::new(AtomicUsize::new(0));
        for connection in self.listener.incoming() {
            let Ok(connection) = connection else {
                // Too many open files, or a peer that is gone already: neither lasts.
                thread::sleep(Duration::from_millis(50));
                continue;
            };
            if open.load(Ordering::Relaxed) >= MOST_CONNECTIONS {
                continue;
            }
            open.fetch_add(1, Ordering::Relaxed);
            let (answers, closing) = (Arc::clone(&answers), Open(Arc::clone(&open)));
            let started = thread::Builder::new().spawn(move || {
                let _closing = closing;
                // A peer that went away is nobody's concern.
                let _ = converse(connection, &answers);
            });
            // Without a thread the connection is closed, as if there were too many.
            drop(started);
        }
        Ok(())
    }
}

/// Counts a connection until it is dropped, wherever that is.
struct Open(Arc<AtomicUsize>);

impl Drop for Open {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// One request, one answer.
fn converse(mut connection: TcpStream, answers: &Answers) -> io::Result<()> {
    connection.set_read_timeout(Some(PATIENCE))?;
    connection.set_write_timeout(Some(PATIENCE))?;
    match Request::read(&mut connection)? {
        Ok(request) => match answers.get(&request.path) {
            Some(answer) => {
                let (kind, body) = answer?;
                put(&mut connection, "200 OK", kind, &body, request.head_only)?;
            }
            None => refuse(&mut connection, &Refusal::NotFound)?,
        },
        Err(refusal) => refuse(&mut connection, &refusal)?,
    }
    connection.shutdown(Shutdown::Write)
}

fn refuse(out: &mut impl Write, refusal: &Refusal) -> io::Result<()> {
    let body = format!("{}\n", refusal.reason());
    let kind = "text/plain; charset=utf-8";
    put(out, refusal.status(), kind, body.as_bytes(), false)
}

fn put(
    out: &mut impl Write,
    status: &str,
    kind: &str,
    body: &[u8],
    head_only: bool,
) -> io::Result<()> {
    let length = body.len();
    write!(
        out,
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n\
         Connection: close\r\nCache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n\
         X-Frame-Options: DENY\r\nCross-Origin-Resource-Policy: same-origin\r\n\
         Referrer-Policy: no-referrer\r\n\r\n"
    )?;
    if !head_only {
        out.write_all(body)?;
    }
    out.flush()
}
