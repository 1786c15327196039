//! Tests of the traces that requests belong to, in the metrics of their routes.

use std::ffi::{CStr, CString, c_int, c_void};
use std::hint::black_box;
use std::mem::transmute;

use axum::Router;
use axum::body::Body;
use axum::http::Request;
use axum::routing::get;
use heapray::TraceContext;
use heapray_c_fixtures::THREAD_CONTEXT;
use tower::ServiceExt;

use crate::runtime;
use crate::support::process::{in_own_process, test_name};
use crate::support::{Dir, turn};

/// Bytes that a request allocates: the bucket of up to a mebibyte.
const BYTES: usize = 300_000;
const METRICS: &str = "/api/v1/profiler/memray/metrics?routes=true";
const BUCKET: &str = r#"heapray_route_request_bytes_bucket{route="GET /orders",le="1048576.0"}"#;

fn orders() -> Router {
    Router::new().route(
        "/orders",
        get(|| async { drop(black_box(vec![1_u8; BYTES])) }),
    )
}

async fn answer(app: &Router, path: &str, headers: &[(&str, &str)]) -> String {
    let mut request = Request::get(path);
    for &(name, value) in headers {
        request = request.header(name, value);
    }
    let request = request.body(Body::empty()).unwrap();
    let response = app.clone().oneshot(request).await.unwrap();
    let body = axum::body::to_bytes(response.into_body(), 1 << 20).await;
    String::from_utf8(body.unwrap().to_vec()).unwrap()
}

/// Returns the exemplar of the requests' bucket in `text`: what follows its count, without the time.
fn exemplar(text: &str) -> Option<String> {
    let line = text.lines().find_map(|line| line.strip_prefix(BUCKET));
    let (_, exemplar) = line.expect("there is the bucket").split_once(" # ")?;
    let (exemplar, _time) = exemplar.rsplit_once(' ').unwrap();
    Some(exemplar.to_owned())
}

/// Records `app`, calls `work` with it, and returns the exemplar.
fn exemplar_of(sample: u64, app: Router, work: impl AsyncFnOnce(&Router)) -> Option<String> {
    let dir = Dir::new("contexts-traces");
    let builder = heapray::builder().ignore_environment().enabled(true);
    let builder = builder.wait_for_start().dir(&dir.0).sample(sample);
    let profiler = builder.build().unwrap();
    let app = profiler.mount(app);
    profiler.start().unwrap();
    let text = runtime().block_on(async {
        work(&app).await;
        let plain = answer(&app, METRICS, &[]).await;
        assert_eq!(exemplar(&plain), None, "the older format has no exemplars");
        answer(&app, METRICS, &[("accept", "application/openmetrics-text")]).await
    });
    profiler.shutdown().unwrap();
    exemplar(&text)
}

#[test]
fn the_header_of_a_request_names_its_trace_in_the_metrics_of_its_route() {
    let _turn = turn();
    for sample in [0, 64 << 20] {
        let app = orders().route_layer(heapray::by_route());
        let found = exemplar_of(sample, app, async |app| {
            for span in ["1111111111111111", "b7ad6b7169203331"] {
                let parent = format!("00-0af7651916cd43dd8448eb211c80319c-{span}-01");
                answer(app, "/orders", &[("traceparent", &parent)]).await;
            }
            // A request without a trace does not take the last one's.
            answer(app, "/orders", &[]).await;
        });
        let found = found.unwrap();
        let (trace, bytes) = found.split_once("} ").unwrap();
        assert_eq!(
            trace,
            r#"{trace_id="0af7651916cd43dd8448eb211c80319c",span_id="b7ad6b7169203331""#
        );
        let bytes: f64 = bytes.parse().unwrap();
        assert!(
            (BYTES as f64..BYTES as f64 + 50_000.0).contains(&bytes),
            "{bytes}"
        );
    }
}

#[test]
fn requests_without_a_trace_have_no_exemplar() {
    let _turn = turn();
    let app = orders().route_layer(heapray::by_route());
    let found = exemplar_of(0, app, async |app| {
        answer(app, "/orders", &[]).await;
        answer(app, "/orders", &[("traceparent", "00-zz-1-01")]).await;
    });
    assert_eq!(found, None);
}

#[test]
fn the_service_can_say_which_trace_it_is() {
    let _turn = turn();
    let by_route = heapray::by_route().trace(|| TraceContext::from_bytes([0xab; 16], [0xcd; 8]));
    let app = orders().route_layer(by_route);
    let found = exemplar_of(0, app, async |app| {
        let parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
        answer(app, "/orders", &[("traceparent", parent)]).await;
    });
    let (trace, span) = ("ab".repeat(16), "cd".repeat(8));
    let expected = format!(r#"{{trace_id="{trace}",span_id="{span}"}}"#);
    assert!(found.unwrap().starts_with(&expected));
}

fn function(library: *mut c_void, name: &CStr) -> *mut c_void {
    // SAFETY: a handle and a C string.
    let function = unsafe { libc::dlsym(library, name.as_ptr()) };
    assert!(!function.is_null());
    function
}

/// A library that shares traces, for the whole process.
#[derive(Clone, Copy)]
struct Library {
    handle: *mut c_void,
    share: extern "C" fn(u8, u8, c_int),
    share_none: extern "C" fn(),
}

impl Library {
    fn load() -> Library {
        let path = CString::new(THREAD_CONTEXT).unwrap();
        // SAFETY: a C string; the library's functions have these types.
        unsafe {
            let handle = libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_GLOBAL);
            assert!(!handle.is_null());
            Library {
                handle,
                share: transmute::<*mut c_void, extern "C" fn(u8, u8, c_int)>(function(
                    handle,
                    c"share_trace",
                )),
                share_none: transmute::<*mut c_void, extern "C" fn()>(function(
                    handle,
                    c"share_none",
                )),
            }
        }
    }
}

#[test]
fn a_trace_that_another_library_shares_is_read() {
    in_own_process(test_name!(), shared_traces_are_read);
}

fn shared_traces_are_read() {
    let _turn = turn();
    let library = Library::load();
    let Library {
        share, share_none, ..
    } = library;
    let request = |parent: &'static str| {
        let app = orders().route_layer(heapray::by_route());
        exemplar_of(0, app, async move |app| {
            answer(app, "/orders", &[("traceparent", parent)]).await;
        })
    };
    let parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let of_parent = r#"{trace_id="0af7651916cd43dd8448eb211c80319c",span_id="b7ad6b7169203331"}"#;
    let shared = format!(
        r#"{{trace_id="{}",span_id="{}"}}"#,
        "12".repeat(16),
        "34".repeat(8)
    );
    for (trace, span, valid, expected) in [
        (0x12, 0x34, 1, shared.as_str()),
        (0x12, 0x34, 0, of_parent),
        (0, 0, 1, of_parent),
    ] {
        share(trace, span, valid);
        let found = request(parent).unwrap();
        assert!(found.starts_with(expected), "{found}");
    }
    share_none();
    assert!(request(parent).unwrap().starts_with(of_parent));
    // Another thread shares nothing.
    share(0x12, 0x34, 1);
    let there = std::thread::spawn(move || request(parent)).join().unwrap();
    assert!(there.unwrap().starts_with(of_parent));
    // Hooks may read the library's variables, so it is not unloaded.
    // SAFETY: the handle of a loaded library.
    assert_eq!(unsafe { libc::dlclose(library.handle) }, 0);
    share(0x12, 0x34, 1);
    assert!(request(parent).unwrap().starts_with(&shared));
}

#[test]
fn a_trace_is_read_where_the_request_allocates() {
    in_own_process(test_name!(), traces_of_allocations_are_read);
}

/// The service shares the trace behind the layer, for as long as the handler runs.
fn traces_of_allocations_are_read() {
    let _turn = turn();
    let Library {
        share, share_none, ..
    } = Library::load();
    let handler = move || async move {
        for span in [0x34, 0x56] {
            share(0x12, span, 1);
            drop(black_box(vec![1_u8; BYTES / 2]));
            share_none();
            tokio::task::yield_now().await;
        }
    };
    let app = Router::new().route("/orders", get(handler));
    let parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let of = |sample: u64, layer: heapray::ContextLayer<heapray::ByRoute>| {
        let found = exemplar_of(sample, app.clone().route_layer(layer), async |app| {
            answer(app, "/orders", &[("traceparent", parent)]).await;
        });
        found.unwrap()
    };
    // Recording everything, it is read where the thread goes on with the request, and while sampling at each sample.
    let expected = format!(
        r#"{{trace_id="{}",span_id="{}"}}"#,
        "12".repeat(16),
        "56".repeat(8)
    );
    for sample in [0, 1024] {
        let found = of(sample, heapray::by_route());
        assert!(found.starts_with(&expected), "{sample}: {found}");
    }
    // What the service says itself comes first.
    let told = || TraceContext::from_bytes([0xab; 16], [0xcd; 8]);
    let found = of(1024, heapray::by_route().trace(told));
    assert!(found.contains(&"ab".repeat(16)), "{found}");
}
