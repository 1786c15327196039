//! A response body that is read from disk in pieces, on the profiler's own thread.

use std::io;
use std::ops::Range;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use tokio::sync::oneshot;

use crate::profiler::store::Output;
use crate::profiler::{Reader, Reports};

/// Bytes per read. A slow client costs this much memory.
const PIECE: u64 = 256 << 10;

/// Error in the service's log at most: for the client the connection simply ends.
const TOO_SLOW: &str = "the client took nothing for too long";

type Piece = oneshot::Receiver<io::Result<Bytes>>;

/// Body made of a range of an output. The first poll starts the reading.
#[derive(Debug)]
pub(crate) struct FileBody {
    reports: Arc<Reports>,
    reader: Arc<Reader>,
    /// Bytes that have not been requested yet.
    rest: Range<u64>,
    /// The requested piece, and its length.
    pending: Option<(Piece, u64)>,
}

impl FileBody {
    pub(crate) fn new(reports: Arc<Reports>, output: Output, range: Range<u64>) -> FileBody {
        let reader = reports.open(output);
        FileBody {
            reports,
            reader,
            rest: range,
            pending: None,
        }
    }

    fn left(&self) -> u64 {
        let pending = self.pending.as_ref().map_or(0, |(_, len)| *len);
        self.rest.end - self.rest.start + pending
    }

    fn ask(&mut self) -> (Piece, u64) {
        let (start, end) = (self.rest.start, self.rest.end.min(self.rest.start + PIECE));
        self.rest.start = end;
        let (answer, piece) = oneshot::channel();
        self.reader.takes(end - start);
        let reader = Arc::clone(&self.reader);
        self.reports.read(move || {
            if answer.is_closed() {
                return;
            }
            let Some(output) = reader.output() else {
                let _ = answer.send(Err(io::Error::other(TOO_SLOW)));
                return;
            };
            let mut buffer = vec![0; usize::try_from(end - start).expect("a piece is small")];
            let read = output.read_at(&mut buffer, start);
            // If the client is gone, nobody needs the bytes.
            let _ = answer.send(read.map(|()| buffer.into()));
        });
        (piece, end - start)
    }
}

impl Body for FileBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        let body = &mut *self;
        let (mut piece, len) = match body.pending.take() {
            Some(pending) => pending,
            None if body.rest.is_empty() => return Poll::Ready(None),
            None => body.ask(),
        };
        match Pin::new(&mut piece).poll(context) {
            Poll::Pending => {
                body.pending = Some((piece, len));
                Poll::Pending
            }
            Poll::Ready(read) => {
                let gone = |_| io::Error::other("the profiler's reader is gone");
                let read = read.map_err(gone).and_then(|read| read);
                if read.is_err() {
                    body.rest.start = body.rest.end;
                }
                Poll::Ready(Some(read.map(Frame::data)))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.left() == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left())
    }
}
