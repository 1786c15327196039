//! A connection that ends when its client reads nothing for too long.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Instant, Sleep, sleep};

use crate::os::socket;

/// A stream that knows how many of its written bytes are still on their way.
pub(super) trait UnsentBytes {
    /// Returns the bytes that the client has not received yet, or `None` where the system does not report them.
    fn unsent(&self) -> Option<u32>;
}

impl UnsentBytes for TcpStream {
    fn unsent(&self) -> Option<u32> {
        #[cfg(unix)]
        return socket::unsent(std::os::fd::AsRawFd::as_raw_fd(self));
        #[cfg(not(unix))]
        None
    }
}

/// Wrapper of a stream: writes fail once the client has read nothing for `timeout`. A slow client that still reads a little
/// keeps its connection.
#[derive(Debug)]
pub(super) struct StallTimeout<S> {
    stream: S,
    timeout: Duration,
    stall: Option<Stall>,
}

/// A time in which nothing more could be written.
#[derive(Debug)]
struct Stall {
    end: Pin<Box<Sleep>>,
    /// Bytes that were on their way when the wait began.
    unsent: Option<u32>,
}

impl<S: UnsentBytes> StallTimeout<S> {
    pub(super) fn new(stream: S, timeout: Duration) -> StallTimeout<S> {
        StallTimeout {
            stream,
            timeout,
            stall: None,
        }
    }

    /// Returns the result of a write, or an error if the client has read nothing for too long.
    fn wait<T>(
        &mut self,
        context: &mut Context<'_>,
        written: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.stall = None;
            return written;
        }
        let stall = self.stall.get_or_insert_with(|| Stall {
            end: Box::pin(sleep(self.timeout)),
            unsent: self.stream.unsent(),
        });
        loop {
            ready!(stall.end.as_mut().poll(context));
            // Bytes that the system took from us earlier may still be moving.
            let unsent = self.stream.unsent();
            if unsent.is_none() || unsent >= stall.unsent {
                return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
            }
            stall.unsent = unsent;
            stall.end.as_mut().reset(Instant::now() + self.timeout);
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for StallTimeout<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + UnsentBytes + Unpin> AsyncWrite for StallTimeout<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.wait(context, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, parts);
        self.wait(context, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(context);
        self.wait(context, flushed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::{StallTimeout, UnsentBytes};
    use std::cell::RefCell;
    use std::io;
    use std::pin::Pin;
    use std::task::{Context, Poll};
    use std::time::Duration;
    use tokio::io::AsyncWrite;

    /// Always full; returns these numbers of unsent bytes one after the other.
    struct Full(RefCell<Vec<Option<u32>>>);

    impl UnsentBytes for Full {
        fn unsent(&self) -> Option<u32> {
            self.0.borrow_mut().pop().unwrap()
        }
    }

    impl AsyncWrite for Full {
        fn poll_write(
            self: Pin<&mut Self>,
            _: &mut Context<'_>,
            _: &[u8],
        ) -> Poll<io::Result<usize>> {
            Poll::Pending
        }

        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }

        fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
    }

    #[tokio::test]
    async fn a_client_that_moves_is_waited_for_and_one_that_does_not_is_left() {
        for reported in [
            vec![Some(9), Some(8), Some(7), Some(7)],
            vec![Some(9), Some(9)],
            vec![Some(9), None],
            vec![None, None],
        ] {
            let stream = Full(RefCell::new(reported.into_iter().rev().collect()));
            let mut limited = StallTimeout::new(stream, Duration::from_millis(2));
            let write = std::future::poll_fn(|context| {
                Pin::new(&mut limited).poll_write(context, b"bytes")
            });
            let kind = write.await.unwrap_err().kind();
            assert_eq!(kind, io::ErrorKind::TimedOut);
            let left = limited.stream.0.borrow().len();
            assert_eq!(left, 0, "it was given up before it had stopped");
        }
    }
}
