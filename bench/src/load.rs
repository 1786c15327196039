//! Load on loopback: keep-alive connections, one request under way on each, driven by the calling thread alone.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use crate::measure::Result;

const CONNECTIONS: usize = 8;

/// Sends `GET path` again and again for `duration`; gives the number of answers.
pub(crate) fn drive(address: SocketAddr, path: &str, duration: Duration) -> Result<u64> {
    let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\n\r\n");
    let mut connections = Vec::new();
    for _ in 0..CONNECTIONS {
        connections.push(Connection::open(address, request.as_bytes())?);
    }
    let (start, mut answers) = (Instant::now(), 0);
    while start.elapsed() < duration {
        for connection in &mut connections {
            connection.receive()?;
            answers += 1;
            connection.send()?;
        }
    }
    Ok(answers)
}

/// Waits until a service that was just started accepts connections.
pub(crate) fn wait_for(address: SocketAddr) -> Result<()> {
    let start = Instant::now();
    while let Err(error) = TcpStream::connect(address) {
        if start.elapsed() > Duration::from_secs(20) {
            return Err(format!("nothing listens on {address}: {error}").into());
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    Ok(())
}

/// Sends `POST path` once.
pub(crate) fn post(address: SocketAddr, path: &str) -> Result<()> {
    let request = format!("POST {path} HTTP/1.1\r\nHost: {address}\r\nContent-Length: 0\r\n\r\n");
    Connection::open(address, request.as_bytes())?.receive()
}

/// A connection whose answers are all of one length.
#[derive(Debug)]
struct Connection<'a> {
    stream: TcpStream,
    request: &'a [u8],
    answer: Vec<u8>,
    /// Bytes of an answer, once one was seen.
    length: usize,
}

impl<'a> Connection<'a> {
    fn open(address: SocketAddr, request: &'a [u8]) -> Result<Connection<'a>> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(Duration::from_secs(20)))?;
        let mut connection = Connection {
            stream,
            request,
            answer: vec![0; 64 << 10],
            length: 0,
        };
        connection.send()?;
        Ok(connection)
    }

    fn send(&mut self) -> Result<()> {
        Ok(self.stream.write_all(self.request)?)
    }

    fn receive(&mut self) -> Result<()> {
        let mut read = 0;
        while self.length == 0 || read < self.length {
            let got = self.stream.read(&mut self.answer[read..])?;
            if got == 0 {
                return Err("the service closed the connection".into());
            }
            read += got;
            if self.length == 0
                && let Some(length) = whole_length(&self.answer[..read])?
            {
                self.length = length;
            }
        }
        if !self.answer.starts_with(b"HTTP/1.1 200") {
            return Err("the service did not answer with 200".into());
        }
        Ok(())
    }
}

/// Bytes of head and body, once the head is there.
fn whole_length(answer: &[u8]) -> Result<Option<usize>> {
    let Some(head) = answer.windows(4).position(|end| end == b"\r\n\r\n") else {
        return Ok(None);
    };
    let text = std::str::from_utf8(&answer[..head])?.to_ascii_lowercase();
    let body = text.lines().find_map(|line| {
        line.strip_prefix("content-length:")?
            .trim()
            .parse::<usize>()
            .ok()
    });
    Ok(Some(head + 4 + body.ok_or("an answer without a length")?))
}

#[cfg(test)]
mod tests {
    use super::whole_length;

    #[test]
    fn an_answer_is_as_long_as_its_head_says() {
        assert_eq!(
            whole_length(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nab").unwrap(),
            Some(41)
        );
        assert_eq!(whole_length(b"HTTP/1.1 200 OK\r\nConte").unwrap(), None);
        assert!(whole_length(b"HTTP/1.1 200 OK\r\n\r\n").is_err());
    }
}
