//! Bodies of answers, from what is read on a thread that may block.

use std::io::{self, Read};
use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::Body;
use bytes::Bytes;
use http_body::Frame;
use tokio::sync::mpsc;

/// Bytes that are read at once.
const PIECE: usize = 64 << 10;
/// Pieces that wait for a slow client.
const WAITING: usize = 4;

/// Where the pieces of a body are put. Blocks while the client is slow.
#[derive(Debug)]
pub(super) struct Pieces(mpsc::Sender<io::Result<Bytes>>);

impl Pieces {
    /// Sends a piece. Returns false if the client is gone.
    pub(super) fn send(&self, piece: impl Into<Bytes>) -> bool {
        self.0.blocking_send(Ok(piece.into())).is_ok()
    }

    /// Breaks the answer off, so that the client knows that it is not complete.
    pub(super) fn fail(&self, error: io::Error) {
        // A client that is gone does not need to know.
        let _ = self.0.blocking_send(Err(error));
    }
}

/// Returns a body that `write` makes on a thread that may block.
pub(super) fn made_by(write: impl FnOnce(&Pieces) + Send + 'static) -> Body {
    let (sender, pieces) = mpsc::channel(WAITING);
    tokio::task::spawn_blocking(move || write(&Pieces(sender)));
    Body::new(Received(pieces))
}

/// Returns what `reader` has as a body.
pub(super) fn read_from(mut reader: impl Read + Send + 'static) -> Body {
    made_by(move |pieces| {
        let mut piece = vec![0; PIECE];
        loop {
            match reader.read(&mut piece) {
                Ok(0) => return,
                Ok(read) => {
                    if !pieces.send(Bytes::copy_from_slice(&piece[..read])) {
                        return;
                    }
                }
                Err(error) => return pieces.fail(error),
            }
        }
    })
}

/// A body of pieces that are received.
struct Received(mpsc::Receiver<io::Result<Bytes>>);

impl http_body::Body for Received {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        let piece = self.0.poll_recv(context);
        piece.map(|piece| piece.map(|piece| piece.map(Frame::data)))
    }
}
