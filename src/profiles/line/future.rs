//! The calls of `async` functions, which are on the thread's list while they are polled.

use std::pin::Pin;
use std::task::{Context, Poll};

use pin_project_lite::pin_project;

use super::calls::{self, Ended, Suspended};
use super::function::Function;

pin_project! {
    /// Future whose polls are one call of a profiled function. The call begins with the first poll.
    #[derive(Debug)]
    #[must_use = "futures do nothing unless polled"]
    pub struct Profiled<F> {
        function: &'static Function,
        call: State,
        #[pin]
        body: Option<F>,
    }

    impl<F> PinnedDrop for Profiled<F> {
        fn drop(this: Pin<&mut Self>) {
            let mut this = this.project();
            if let State::Suspended(call) = std::mem::replace(this.call, State::Over) {
                // Frees by the drop of the body still belong to the call.
                let polled = Polled::resume(call);
                this.body.set(None);
                polled.end(Ended::Dropped);
            }
        }
    }
}

#[derive(Debug)]
enum State {
    New,
    Suspended(Suspended),
    Over,
}

impl<F> Profiled<F> {
    pub(super) fn new(function: &'static Function, body: F) -> Profiled<F> {
        Profiled {
            function,
            call: State::New,
            body: Some(body),
        }
    }
}

impl<F: Future> Future for Profiled<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let mut this = self.project();
        let polled = match std::mem::replace(this.call, State::Over) {
            State::New => Polled {
                begun: calls::begin(this.function),
            },
            State::Suspended(call) => Polled::resume(call),
            State::Over => Polled { begun: false },
        };
        let body = this.body.as_mut().as_pin_mut();
        let result = body
            .expect("a future is not polled after it has given its result")
            .poll(context);
        if result.is_pending() {
            *this.call = polled.suspend();
        } else {
            // The body is dropped before the call ends, like a function's locals.
            this.body.set(None);
            polled.end(Ended::Returned);
        }
        result
    }
}

/// Call during a poll. If this is dropped, the body has panicked, and the call ends.
struct Polled {
    begun: bool,
}

impl Polled {
    fn resume(call: Suspended) -> Polled {
        Polled {
            begun: calls::resume(call),
        }
    }

    fn suspend(mut self) -> State {
        let suspended = std::mem::take(&mut self.begun).then(calls::suspend);
        suspended.flatten().map_or(State::Over, State::Suspended)
    }

    fn end(mut self, ended: Ended) {
        if std::mem::take(&mut self.begun) {
            calls::end(ended);
        }
    }
}

impl Drop for Polled {
    fn drop(&mut self) {
        if self.begun {
            calls::end(Ended::Panicked);
        }
    }
}
