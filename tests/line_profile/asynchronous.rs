//! Tests of `async` functions: all polls of one task are one call.

use std::future::{poll_fn, ready};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

use crate::expected::check;

struct Nobody;

impl Wake for Nobody {
    fn wake(self: Arc<Self>) {}
}

/// Polls the tasks in turn until all are ready.
fn interleave<T>(mut tasks: Vec<Pin<Box<dyn Future<Output = T> + '_>>>) -> Vec<T> {
    let waker = Waker::from(Arc::new(Nobody));
    let mut context = Context::from_waker(&waker);
    let mut results: Vec<Option<T>> = tasks.iter().map(|_| None).collect();
    while results.iter().any(Option::is_none) {
        for (task, result) in tasks.iter_mut().zip(&mut results) {
            if result.is_none()
                && let Poll::Ready(value) = task.as_mut().poll(&mut context)
            {
                *result = Some(value);
            }
        }
    }
    results.into_iter().flatten().collect()
}

fn run<T>(task: impl Future<Output = T>) -> T {
    interleave(vec![Box::pin(task)]).remove(0)
}

/// Is pending `times` times.
async fn pause(mut times: u32) {
    poll_fn(|_| {
        let ready = times == 0;
        times = times.saturating_sub(1);
        if ready {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    })
    .await;
}

#[heapray::profile]
async fn waiting(mut text: String, times: u32) -> Result<usize, String> {
    text.push('x');
    pause(times).await;
    for _ in 0..times {
        pause(1).await;
    }
    if times > 5 {
        return Err(text);
    }
    let length = ready(text.len()).await;
    Ok(length)
}

#[test]
fn a_call_goes_on_over_its_polls() {
    assert_eq!(check("async", || run(waiting("a".into(), 2))), Ok(2));
}

#[test]
fn tasks_interleave_without_mixing() {
    let results = check("interleaved", || {
        interleave(vec![
            Box::pin(waiting("a".into(), 1)),
            Box::pin(waiting("bcd".into(), 3)),
        ])
    });
    assert_eq!(results, [Ok(2), Ok(4)]);
}

#[heapray::profile]
async fn inside(n: u32) -> u32 {
    if n == 0 {
        return 0;
    }
    pause(1).await;
    let below = Box::pin(inside(n - 1)).await;
    below + 1
}

#[heapray::profile]
async fn outside() -> u32 {
    let first = inside(1);
    let first = first.await;
    let second = async {
        pause(1).await;
        first + 1
    };
    second.await
}

#[test]
fn async_calls_nest_and_recurse() {
    assert_eq!(check("async_nested", || run(outside())), 2);
}

#[test]
fn a_task_that_is_dropped_has_a_table_too() {
    check("async_dropped", || {
        let waker = Waker::from(Arc::new(Nobody));
        let mut task = pin!(waiting("a".into(), 2));
        let polled = task.as_mut().poll(&mut Context::from_waker(&waker));
        assert!(polled.is_pending());
    });
    check("async_never_polled", || drop(waiting("a".into(), 2)));
}

#[heapray::profile]
async fn panics_later() {
    pause(1).await;
    panic!("later");
}

#[test]
fn a_task_that_panics_says_so() {
    let caught = check("async_panic", || {
        std::panic::catch_unwind(|| run(panics_later()))
    });
    assert!(caught.is_err());
}

struct Server {
    name: String,
}

trait Answer {
    fn boxed<'a>(&'a self, n: u32) -> Pin<Box<dyn Future<Output = String> + Send + 'a>>;
    async fn native(&self) -> usize;
}

impl Answer for Server {
    // In the form that `async_trait` generates.
    #[heapray::profile]
    fn boxed<'a>(&'a self, n: u32) -> Pin<Box<dyn Future<Output = String> + Send + 'a>> {
        Box::pin(async move {
            pause(n).await;
            format!("{}{n}", self.name)
        })
    }

    #[heapray::profile]
    async fn native(&self) -> usize {
        pause(1).await;
        self.name.len()
    }
}

impl Server {
    #[heapray::profile]
    fn written_out(&self) -> impl Future<Output = usize> {
        async {
            pause(1).await;
            self.name.len()
        }
    }

    #[heapray::profile]
    async fn into_name(self) -> String {
        pause(1).await;
        self.name
    }
}

#[test]
fn functions_that_return_futures_are_measured_too() {
    let server = Server { name: "s".into() };
    assert_eq!(check("async_boxed", || run(server.boxed(1))), "s1");
    assert_eq!(check("async_in_trait", || run(server.native())), 1);
    assert_eq!(check("async_written_out", || run(server.written_out())), 1);
    assert_eq!(check("async_by_value", || run(server.into_name())), "s");
}

#[heapray::profile]
async fn handler(
    axum::extract::Path(name): axum::extract::Path<String>,
    axum::Json(mut numbers): axum::Json<Vec<u32>>,
) -> impl axum::response::IntoResponse {
    numbers.push(1);
    tokio::task::yield_now().await;
    axum::Json(serde_json::json!({ "name": name, "sum": numbers.iter().sum::<u32>() }))
}

#[test]
fn a_profiled_axum_handler_is_still_a_handler() {
    use axum::body::Body;
    use http_body_util::BodyExt as _;
    use tower::ServiceExt as _;

    let body = check("handler", || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap();
        runtime.block_on(async {
            let app = axum::Router::new().route("/{name}", axum::routing::post(handler));
            let request = axum::http::Request::post("/x")
                .header("content-type", "application/json")
                .body(Body::from("[2, 3]"))
                .unwrap();
            let response = app.oneshot(request).await.unwrap();
            response.into_body().collect().await.unwrap().to_bytes()
        })
    });
    assert_eq!(&body[..], br#"{"name":"x","sum":6}"#);
}

#[test]
fn a_task_may_move_from_thread_to_thread() {
    // A task that is not `Send` would not compile.
    let task = Box::pin(waiting("a".into(), 1));
    let printed = std::thread::spawn(move || {
        let outcome = heapray::__private::line_profile::testing::run([1 << 20], || run(task));
        assert_eq!(outcome.result, Ok(2));
        outcome.printed
    });
    assert!(printed.join().unwrap().contains("Ok(length)"));
}
