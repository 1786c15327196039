//! A future and a body whose every poll is quiet: what they allocate is not recorded.

use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::{Body, HttpBody};
use axum::http::Response;
use bytes::Bytes;
use http_body::{Frame, SizeHint};

use crate::quiet;

type Boxed = Pin<Box<dyn Future<Output = Response<Body>> + Send>>;

/// A handler's future. Its response's body is quiet too.
pub(crate) struct Quietly(Boxed);

impl Quietly {
    /// `make` is called quietly, so that the future's own box is not recorded either.
    pub(crate) fn new<F>(make: impl FnOnce() -> F) -> Quietly
    where
        F: Future<Output = Response<Body>> + Send + 'static,
    {
        let _quiet = quiet::enter();
        Quietly(Box::pin(make()))
    }
}

impl Future for Quietly {
    type Output = Response<Body>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Response<Body>> {
        let _quiet = quiet::enter();
        let response = self.0.as_mut().poll(context);
        response.map(|response| response.map(|body| Body::new(QuietBody(body))))
    }
}

struct QuietBody(Body);

impl HttpBody for QuietBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let _quiet = quiet::enter();
        Pin::new(&mut self.0).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.0.size_hint()
    }
}
