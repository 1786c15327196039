//! A profile store that keeps nothing: it answers each push of Pyroscope's with 200, and counts it. It runs in this process,
//! so its work is not a cost of the service that pushes.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use heapray_bench_workloads::Result;

use crate::load::whole_length;

/// The request of a profile.
const PUSH: &[u8] = b"POST /push.v1.PusherService/Push HTTP/1.1\r\n";
const TAKEN: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
const UNKNOWN: &[u8] = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n";
/// Longest request: Pyroscope itself takes no larger profile than 4 MiB.
const LONGEST: usize = 8 << 20;

/// Profiles so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Received {
    pub(crate) pushes: u64,
    /// Bytes of the requests, with their heads.
    pub(crate) bytes: u64,
}

/// Running store. It listens until this process ends.
#[derive(Debug)]
pub(crate) struct Sink {
    address: SocketAddr,
    received: Arc<Mutex<Received>>,
}

impl Sink {
    /// Listens on a free port of loopback.
    pub(crate) fn start() -> Result<Sink> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let sink = Sink {
            address: listener.local_addr()?,
            received: Arc::default(),
        };
        let received = Arc::clone(&sink.received);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let received = Arc::clone(&received);
                // An error is that of a client which has ended.
                thread::spawn(move || drop(answer(stream, &received)));
            }
        });
        Ok(sink)
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(crate) fn received(&self) -> Received {
        *lock(&self.received)
    }
}

fn lock(received: &Mutex<Received>) -> MutexGuard<'_, Received> {
    received.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Answers the requests of one connection, until the client closes it.
fn answer(mut stream: TcpStream, received: &Mutex<Received>) -> Result<()> {
    let mut bytes = Vec::new();
    loop {
        while let Some(length) = whole_length(&bytes)?.filter(|&length| length <= bytes.len()) {
            let is_push = bytes.starts_with(PUSH);
            if is_push {
                let mut received = lock(received);
                received.pushes += 1;
                received.bytes += length as u64;
            }
            stream.write_all(if is_push { TAKEN } else { UNKNOWN })?;
            bytes.drain(..length);
        }
        let mut piece = [0; 16 << 10];
        let got = stream.read(&mut piece)?;
        if got == 0 {
            return Ok(());
        }
        bytes.extend_from_slice(&piece[..got]);
        if bytes.len() > LONGEST {
            return Err("a request is too long".into());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpStream;

    use super::{Received, Sink, TAKEN, UNKNOWN};

    fn answer(stream: &mut TcpStream, parts: &[&[u8]], length: usize) -> Vec<u8> {
        for part in parts {
            stream.write_all(part).unwrap();
            stream.flush().unwrap();
        }
        let mut answer = vec![0; length];
        stream.read_exact(&mut answer).unwrap();
        answer
    }

    #[test]
    fn pushes_are_answered_and_counted_and_other_requests_are_not() {
        let sink = Sink::start().unwrap();
        let mut stream = TcpStream::connect(sink.address()).unwrap();
        assert_eq!(sink.received(), Received::default());
        let head = b"POST /push.v1.PusherService/Push HTTP/1.1\r\ncontent-length: 5\r\n\r\n";
        // Once in parts, and twice on one connection.
        let parts: &[&[u8]] = &[&head[..20], &head[20..], b"pro", b"to"];
        assert_eq!(answer(&mut stream, parts, TAKEN.len()), TAKEN);
        assert_eq!(answer(&mut stream, &[head, b"proto"], TAKEN.len()), TAKEN);
        let other = b"POST /orders HTTP/1.1\r\nContent-Length: 0\r\n\r\n";
        assert_eq!(answer(&mut stream, &[other], UNKNOWN.len()), UNKNOWN);
        let both = Received {
            pushes: 2,
            bytes: 2 * (head.len() as u64 + 5),
        };
        assert_eq!(sink.received(), both);
    }
}
