//! Futures and bodies that are polled and dropped in a context.

use std::pin::Pin;
use std::task::{self, Poll};

use pin_project_lite::pin_project;

use super::Context;
use crate::capture::run::{InRun, Run};

/// Puts a future, or the body of a response, into a context.
pub trait InContext: Sized {
    /// Returns a future (or body) whose every poll, and whose drop, is in `context`. From its first poll to its end it is a run
    /// of that context, unless it is polled within another run.
    ///
    /// ```
    /// use heapray::InContext;
    ///
    /// # async fn work() {}
    /// let job = work().in_context(heapray::context([("job", "nightly")]));
    /// # drop(job);
    /// ```
    fn in_context(self, context: Context) -> WithContext<Self> {
        WithContext {
            context,
            run: None,
            inner: Some(self),
        }
    }

    /// Returns a future (or body) in the context that the calling thread is in now. It is not a run of that context: see
    /// [`context`](crate::context()).
    fn in_current_context(self) -> WithContext<Self> {
        WithContext {
            context: Context::current(),
            run: Some(Run::NONE),
            inner: Some(self),
        }
    }
}

impl<T> InContext for T {}

pin_project! {
    /// Future, or body of a response, that is polled and dropped in a context. See [`InContext`].
    #[derive(Debug)]
    #[must_use = "futures do nothing unless polled"]
    pub struct WithContext<T> {
        context: Context,
        // `None` before the first poll.
        run: Option<Run>,
        // `None` once it was dropped.
        #[pin]
        inner: Option<T>,
    }

    impl<T> PinnedDrop for WithContext<T> {
        fn drop(this: Pin<&mut Self>) {
            let mut this = this.project();
            if this.inner.is_none() {
                return;
            }
            let mut outside = Run::NONE;
            let _guard = this.run.as_mut().unwrap_or(&mut outside).enter(this.context.0);
            this.inner.set(None);
        }
    }
}

/// Enters `context` and the run, which begins with the first call.
fn enter(run: &mut Option<Run>, context: Context) -> InRun<'_> {
    run.get_or_insert_with(|| Run::begin(context.0))
        .enter(context.0)
}

#[cfg(feature = "http")]
impl<T> WithContext<T> {
    /// Returns `inner` in `context`, with a run that has begun.
    pub(crate) fn in_run(inner: T, context: Context, run: Run) -> WithContext<T> {
        WithContext {
            context,
            run: Some(run),
            inner: Some(inner),
        }
    }

    /// Takes the run away, which then does not end here. Returns the context, too.
    pub(crate) fn take_run(self: Pin<&mut Self>) -> (Context, Run) {
        let this = self.project();
        let run = this.run.replace(Run::NONE).unwrap_or(Run::NONE);
        (*this.context, run)
    }
}

impl<F: Future> WithContext<F> {
    /// Polls the future, and drops it when it is ready. The run goes on.
    pub(crate) fn poll_in_run(
        self: Pin<&mut Self>,
        context: &mut task::Context<'_>,
    ) -> Poll<F::Output> {
        let mut this = self.project();
        let _guard = enter(this.run, *this.context);
        let inner = this.inner.as_mut().as_pin_mut();
        let result = inner
            .expect("a future is not polled after it has given its result")
            .poll(context);
        if result.is_ready() {
            this.inner.set(None);
        }
        result
    }
}

impl<F: Future> Future for WithContext<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut task::Context<'_>) -> Poll<F::Output> {
        let result = self.as_mut().poll_in_run(context);
        if result.is_ready() {
            *self.project().run = Some(Run::NONE);
        }
        result
    }
}

#[cfg(feature = "http")]
impl<B: http_body::Body> http_body::Body for WithContext<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut task::Context<'_>,
    ) -> Poll<Option<Result<http_body::Frame<B::Data>, B::Error>>> {
        let this = self.project();
        let _guard = enter(this.run, *this.context);
        match this.inner.as_pin_mut() {
            Some(body) => body.poll_frame(context),
            None => Poll::Ready(None),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.inner.as_ref().is_none_or(B::is_end_stream)
    }

    fn size_hint(&self) -> http_body::SizeHint {
        self.inner.as_ref().map(B::size_hint).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::task::Waker;

    use super::*;
    use crate::context;

    /// Future that notes its context when it is dropped.
    struct Noted<'a>(&'a mut Vec<Context>, bool);

    impl Future for Noted<'_> {
        type Output = ();

        fn poll(mut self: Pin<&mut Self>, _: &mut task::Context<'_>) -> Poll<()> {
            self.0.push(Context::current());
            if self.1 {
                Poll::Ready(())
            } else {
                Poll::Pending
            }
        }
    }

    impl Drop for Noted<'_> {
        fn drop(&mut self) {
            self.0.push(Context::current());
        }
    }

    fn poll<F: Future>(future: Pin<&mut F>) -> Poll<F::Output> {
        future.poll(&mut task::Context::from_waker(Waker::noop()))
    }

    #[test]
    fn a_future_is_polled_and_dropped_in_its_context() {
        let tenant = context([("tenant", "of a future")]);
        for is_ready in [false, true] {
            let mut seen = Vec::new();
            let mut future = Box::pin(Noted(&mut seen, is_ready).in_context(tenant));
            assert_eq!(poll(future.as_mut()).is_ready(), is_ready);
            assert_eq!(Context::current(), Context::NONE);
            drop(future);
            assert_eq!(seen, [tenant; 2]);
        }
    }

    #[test]
    fn a_future_that_panics_leaves_its_context() {
        let tenant = context([("tenant", "of a panic")]);
        let mut future = Box::pin(async { panic!("on purpose") }.in_context(tenant));
        let panic = catch_unwind(AssertUnwindSafe(|| poll::<_>(future.as_mut())));
        assert!(panic.is_err());
        assert_eq!(Context::current(), Context::NONE);
    }
}
