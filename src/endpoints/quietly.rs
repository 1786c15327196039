//! A future and a body whose every poll is quiet: what they allocate is not recorded.

use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::{Body, HttpBody};
use axum::http::Response;
use bytes::Bytes;
use http_body::{Frame, SizeHint};

use crate::capture::quiet;

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

#[cfg(test)]
mod tests {
    use std::future::{pending, poll_fn, ready};
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::pin::Pin;
    use std::task::{Context, Poll, Waker};

    use axum::body::{Body, HttpBody};
    use axum::http::Response;
    use bytes::Bytes;
    use http_body::Frame;

    use super::{QuietBody, Quietly};
    use crate::capture::thread::with_local;

    fn is_quiet() -> bool {
        with_local(|local| local.is_quiet())
    }

    fn poll(future: &mut Quietly) -> Poll<Response<Body>> {
        Pin::new(future).poll(&mut Context::from_waker(Waker::noop()))
    }

    /// Whether `work` panicked; on purpose, so nobody need read of it.
    fn panics(work: impl FnOnce()) -> bool {
        catch_unwind(AssertUnwindSafe(work)).is_err()
    }

    #[test]
    fn a_poll_is_quiet_and_the_time_between_polls_is_not() {
        let mut polls = 0;
        let mut future = Quietly::new(move || {
            assert!(is_quiet());
            poll_fn(move |_| {
                assert!(is_quiet());
                polls += 1;
                match polls {
                    1 => Poll::Pending,
                    _ => Poll::Ready(Response::default()),
                }
            })
        });
        assert!(!is_quiet());
        assert!(poll(&mut future).is_pending());
        assert!(!is_quiet());
        assert!(poll(&mut future).is_ready());
        assert!(!is_quiet());
    }

    #[test]
    fn a_future_that_is_dropped_leaves_the_thread_as_it_was() {
        let mut future = Quietly::new(pending);
        assert!(poll(&mut future).is_pending());
        drop(future);
        assert!(!is_quiet());
    }

    #[test]
    fn a_panic_leaves_the_thread_as_it_was() {
        assert!(panics(|| drop(Quietly::new(|| {
            if is_quiet() {
                panic!("on purpose");
            }
            ready(Response::default())
        }))));
        assert!(!is_quiet());
        let mut future = Quietly::new(|| async { panic!("on purpose") });
        assert!(panics(|| drop(poll(&mut future))));
        assert!(!is_quiet());
    }

    struct Faulty;

    impl HttpBody for Faulty {
        type Data = Bytes;
        type Error = axum::Error;

        fn poll_frame(
            self: Pin<&mut Self>,
            _: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
            assert!(!is_quiet(), "on purpose");
            Poll::Ready(None)
        }
    }

    #[test]
    fn a_body_that_panics_leaves_the_thread_as_it_was() {
        let mut body = QuietBody(Body::new(Faulty));
        let mut context = Context::from_waker(Waker::noop());
        assert!(panics(|| drop(
            Pin::new(&mut body).poll_frame(&mut context)
        )));
        assert!(!is_quiet());
    }
}
