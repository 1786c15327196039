//! Load on loopback: keep-alive connections with one running request each, all driven by the calling thread.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};

use heapray_bench_workloads::Result;

const CONNECTIONS: usize = 8;

/// Result of a load.
#[derive(Debug, Default)]
pub(crate) struct Answers {
    pub(crate) elapsed: Duration,
    /// Nanoseconds from sending each request to its answer, sorted.
    pub(crate) latencies: Vec<u64>,
}

impl Answers {
    pub(crate) fn per_second(&self) -> f64 {
        self.latencies.len() as f64 / self.elapsed.as_secs_f64()
    }

    /// Returns the latency that `part` of all requests did not exceed.
    pub(crate) fn percentile(&self, part: f64) -> f64 {
        let last = self.latencies.len().saturating_sub(1);
        let place = (self.latencies.len() as f64 * part) as usize;
        self.latencies
            .get(place.min(last))
            .map_or(f64::NAN, |&ns| ns as f64)
    }
}

/// Posts `body` to `path` again and again for `duration`.
pub(crate) fn drive(
    address: SocketAddr,
    path: &str,
    body: &str,
    duration: Duration,
) -> Result<Answers> {
    let request = format!(
        "POST {path} HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    let mut connections = Vec::new();
    for _ in 0..CONNECTIONS {
        connections.push(Connection::open(address, request.as_bytes())?);
    }
    let mut answers = Answers::default();
    let start = Instant::now();
    for connection in &mut connections {
        connection.send()?;
    }
    let mut polled: Vec<libc::pollfd> = connections
        .iter()
        .map(|connection| libc::pollfd {
            fd: connection.stream.as_raw_fd(),
            events: libc::POLLIN,
            revents: 0,
        })
        .collect();
    while start.elapsed() < duration {
        // SAFETY: as many entries as it is told, which live through the call.
        let ready =
            unsafe { libc::poll(polled.as_mut_ptr(), polled.len() as libc::nfds_t, 20_000) };
        if ready <= 0 {
            return Err("the service does not answer".into());
        }
        for (polled, connection) in polled.iter().zip(&mut connections) {
            if polled.revents != 0 && connection.receive()? {
                answers
                    .latencies
                    .push(connection.sent.elapsed().as_nanos() as u64);
                connection.send()?;
            }
        }
    }
    answers.elapsed = start.elapsed();
    answers.latencies.sort_unstable();
    Ok(answers)
}

#[derive(Debug)]
struct Connection<'a> {
    stream: TcpStream,
    request: &'a [u8],
    sent: Instant,
    answer: Vec<u8>,
    read: usize,
    /// Bytes of the present answer, once its head is there.
    length: Option<usize>,
}

impl<'a> Connection<'a> {
    fn open(address: SocketAddr, request: &'a [u8]) -> Result<Connection<'a>> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        Ok(Connection {
            stream,
            request,
            sent: Instant::now(),
            answer: vec![0; 64 << 10],
            read: 0,
            length: None,
        })
    }

    fn send(&mut self) -> Result<()> {
        (self.read, self.length) = (0, None);
        self.sent = Instant::now();
        Ok(self.stream.write_all(self.request)?)
    }

    /// Reads the available bytes. Returns whether that was the end of the answer.
    fn receive(&mut self) -> Result<bool> {
        let got = self.stream.read(&mut self.answer[self.read..])?;
        if got == 0 {
            return Err("the service closed the connection".into());
        }
        self.read += got;
        if self.length.is_none() {
            self.length = whole_length(&self.answer[..self.read])?;
            if self.length.is_some() && !self.answer.starts_with(b"HTTP/1.1 200") {
                return Err("the service did not answer with 200".into());
            }
        }
        Ok(self.length.is_some_and(|length| self.read >= length))
    }
}

/// Returns the bytes of head and body of a request or an answer, once the head is there.
pub(crate) fn whole_length(message: &[u8]) -> Result<Option<usize>> {
    let Some(head) = message.windows(4).position(|end| end == b"\r\n\r\n") else {
        return Ok(None);
    };
    let text = std::str::from_utf8(&message[..head])?;
    let body = text.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        let is_length = name.eq_ignore_ascii_case("content-length");
        is_length
            .then(|| value.trim().parse::<usize>().ok())
            .flatten()
    });
    Ok(Some(
        head + 4 + body.ok_or("an HTTP message without a length")?,
    ))
}

#[cfg(test)]
mod tests {
    use super::{Answers, whole_length};

    #[test]
    fn an_answer_is_as_long_as_its_head_says() {
        assert_eq!(
            whole_length(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nab").unwrap(),
            Some(41)
        );
        assert_eq!(whole_length(b"HTTP/1.1 200 OK\r\nConte").unwrap(), None);
        assert!(whole_length(b"HTTP/1.1 200 OK\r\n\r\n").is_err());
    }

    #[test]
    fn a_percentile_is_not_exceeded_by_that_part() {
        let answers = Answers {
            latencies: (1..=1000).collect(),
            ..Answers::default()
        };
        assert_eq!(answers.percentile(0.5), 501.0);
        assert_eq!(answers.percentile(0.999), 1000.0);
        assert_eq!(answers.percentile(1.0), 1000.0);
    }
}
