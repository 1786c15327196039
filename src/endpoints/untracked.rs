//! A future and a body whose every poll is untracked: what they allocate is not recorded.

use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::{Body, HttpBody};
use axum::http::Response;
use bytes::Bytes;
use http_body::{Frame, SizeHint};

use crate::capture::untracked;

type Boxed = Pin<Box<dyn Future<Output = Response<Body>> + Send>>;

/// Future of a handler. The body of its response is untracked too.
pub(crate) struct UntrackedFuture(Boxed);

impl UntrackedFuture {
    /// Calls `make` untracked, so that the future's own box is not recorded either.
    pub(crate) fn new<F>(make: impl FnOnce() -> F) -> UntrackedFuture
    where
        F: Future<Output = Response<Body>> + Send + 'static,
    {
        let _untracked = untracked::enter();
        UntrackedFuture(Box::pin(make()))
    }
}

impl Future for UntrackedFuture {
    type Output = Response<Body>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Response<Body>> {
        let _untracked = untracked::enter();
        let response = self.0.as_mut().poll(context);
        response.map(|response| response.map(|body| Body::new(UntrackedBody(body))))
    }
}

struct UntrackedBody(Body);

impl HttpBody for UntrackedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let _untracked = untracked::enter();
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

    use super::{UntrackedBody, UntrackedFuture};
    use crate::capture::thread::with_local;

    fn is_untracked() -> bool {
        with_local(|local| local.is_untracked())
    }

    fn poll(future: &mut UntrackedFuture) -> Poll<Response<Body>> {
        Pin::new(future).poll(&mut Context::from_waker(Waker::noop()))
    }

    /// Returns whether `work` panicked, without the message of an expected panic.
    fn panics(work: impl FnOnce()) -> bool {
        catch_unwind(AssertUnwindSafe(work)).is_err()
    }

    #[test]
    fn a_poll_is_quiet_and_the_time_between_polls_is_not() {
        let mut polls = 0;
        let mut future = UntrackedFuture::new(move || {
            assert!(is_untracked());
            poll_fn(move |_| {
                assert!(is_untracked());
                polls += 1;
                match polls {
                    1 => Poll::Pending,
                    _ => Poll::Ready(Response::default()),
                }
            })
        });
        assert!(!is_untracked());
        assert!(poll(&mut future).is_pending());
        assert!(!is_untracked());
        assert!(poll(&mut future).is_ready());
        assert!(!is_untracked());
    }

    #[test]
    fn a_future_that_is_dropped_leaves_the_thread_as_it_was() {
        let mut future = UntrackedFuture::new(pending);
        assert!(poll(&mut future).is_pending());
        drop(future);
        assert!(!is_untracked());
    }

    #[test]
    fn a_panic_leaves_the_thread_as_it_was() {
        assert!(panics(|| drop(UntrackedFuture::new(|| {
            if is_untracked() {
                panic!("on purpose");
            }
            ready(Response::default())
        }))));
        assert!(!is_untracked());
        let mut future = UntrackedFuture::new(|| async { panic!("on purpose") });
        assert!(panics(|| drop(poll(&mut future))));
        assert!(!is_untracked());
    }

    struct Faulty;

    impl HttpBody for Faulty {
        type Data = Bytes;
        type Error = axum::Error;

        fn poll_frame(
            self: Pin<&mut Self>,
            _: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
            assert!(!is_untracked(), "on purpose");
            Poll::Ready(None)
        }
    }

    #[test]
    fn a_body_that_panics_leaves_the_thread_as_it_was() {
        let mut body = UntrackedBody(Body::new(Faulty));
        let mut context = Context::from_waker(Waker::noop());
        assert!(panics(|| drop(
            Pin::new(&mut body).poll_frame(&mut context)
        )));
        assert!(!is_untracked());
    }
}
