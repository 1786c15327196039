//! What memory by route does not say by itself, as `docs/contexts.md` describes it: each test shows one surprise.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::{Mutex, OnceLock};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::routing::{get, post};
use heapray::collector::snapshot::Snapshot;
use http_body_util::BodyExt;
use tokio::net::TcpListener;

use crate::support::{record, turn};
use crate::{block, live, of, runtime, value};

/// Sends requests over one connection, one after the other, to `app`, which runs on threads of its own.
fn serve(app: Router, requests: &[&Vec<u8>]) {
    runtime().block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let server = tokio::spawn(async { axum::serve(listener, app).await });
        let requests: Vec<Vec<u8>> = requests.iter().copied().cloned().collect();
        let client = std::thread::spawn(move || send(address, &requests));
        let client = tokio::task::spawn_blocking(move || client.join());
        client.await.unwrap().unwrap();
        server.abort();
    });
}

fn send(address: SocketAddr, requests: &[Vec<u8>]) {
    let mut stream = BufReader::new(TcpStream::connect(address).unwrap());
    for request in requests {
        stream.get_mut().write_all(request).unwrap();
        let mut line = String::new();
        stream.read_line(&mut line).unwrap();
        assert_eq!(line, "HTTP/1.1 200 OK\r\n");
        let mut length = 0;
        while line != "\r\n" {
            line.clear();
            stream.read_line(&mut line).unwrap();
            if let Some(value) = line.strip_prefix("content-length: ") {
                length = value.trim_end().parse().unwrap();
            }
        }
        stream.read_exact(&mut vec![0; length]).unwrap();
    }
}

fn request(line: &str, body: &[u8]) -> Vec<u8> {
    let length = body.len();
    let mut request =
        format!("{line} HTTP/1.1\r\nhost: x\r\ncontent-length: {length}\r\n\r\n").into_bytes();
    request.extend_from_slice(body);
    request
}

/// Returns the live bytes of a route; the empty text stands for none.
fn live_bytes(snapshot: &Snapshot, route: &str) -> u64 {
    let sites = snapshot.stacks.sites.iter();
    let sites = sites.filter(|site| value(snapshot, site.context, "route") == route);
    sites.map(|site| site.live.bytes).sum()
}

#[test]
fn a_cache_is_of_the_route_whose_request_filled_it() {
    static CACHE: OnceLock<Vec<u8>> = OnceLock::new();
    let _turn = turn();
    let cached = || async { CACHE.get_or_init(|| block(0)).len().to_string() };
    let app = Router::new()
        .route("/first", get(cached))
        .route("/second", get(cached))
        .route_layer(heapray::by_route());
    let requests = [request("GET /first", b""), request("GET /second", b"")];
    let requests = [&requests[0], &requests[1], &requests[1]];
    let snapshot = record("pitfalls-cache", || serve(app, &requests));
    let by_route = live(&snapshot, "route").into_iter().collect::<Vec<_>>();
    assert_eq!(by_route, [("GET /first".to_owned(), of(1))]);
}

#[test]
fn bytes_that_travel_are_of_the_route_that_made_them_until_the_last_is_dropped() {
    static TRAVELS: Mutex<Vec<Bytes>> = Mutex::new(Vec::new());
    let _turn = turn();
    let app = || {
        let make = || async { TRAVELS.lock().unwrap().push(Bytes::from(block(0))) };
        // Takes the bytes over: holds a part of them, which is all of the block.
        let take = || async {
            let mut travels = TRAVELS.lock().unwrap();
            let whole = travels.remove(0);
            travels.push(whole.slice(..10));
        };
        let drop = || async { TRAVELS.lock().unwrap().clear() };
        Router::new()
            .route("/make", get(make))
            .route("/take", get(take))
            .route("/drop", get(drop))
            .route_layer(heapray::by_route())
    };
    let [make, take, drop] =
        ["/make", "/take", "/drop"].map(|path| request(&format!("GET {path}"), b""));
    let held = record("pitfalls-bytes", || serve(app(), &[&make, &take]));
    let by_route = live(&held, "route").into_iter().collect::<Vec<_>>();
    assert_eq!(by_route, [("GET /make".to_owned(), of(1))]);
    TRAVELS.lock().unwrap().clear();
    let freed = record("pitfalls-bytes-freed", || {
        serve(app(), &[&make, &take, &drop])
    });
    assert!(live(&freed, "route").is_empty());
}

#[test]
fn the_body_of_a_request_is_of_the_connection_unless_it_is_copied() {
    static KEPT: Mutex<Vec<Bytes>> = Mutex::new(Vec::new());
    const BODY: usize = 300_000;
    let _turn = turn();
    let keep_frames = |mut body: Body| async move {
        while let Some(frame) = body.frame().await {
            let data = frame.unwrap().into_data().unwrap();
            KEPT.lock().unwrap().push(data);
        }
    };
    let keep_copy = |body: Body| async move {
        let mut copy = Vec::with_capacity(BODY);
        copy.extend_from_slice(&body.collect().await.unwrap().to_bytes());
        KEPT.lock().unwrap().push(copy.into());
    };
    let body = vec![1; BODY];
    for (path, of_route) in [("/frames", false), ("/copy", true)] {
        let app = Router::new()
            .route("/frames", post(keep_frames))
            .route("/copy", post(keep_copy))
            .route_layer(heapray::by_route());
        let request = request(&format!("POST {path}"), &body);
        let snapshot = record("pitfalls-body", || serve(app, &[&request; 3]));
        let least = 3 * BODY as u64;
        let route = live_bytes(&snapshot, &format!("POST {path}"));
        let none = live_bytes(&snapshot, "");
        assert_eq!(route >= least, of_route, "{path}: {route} bytes");
        assert_eq!(none >= least, !of_route, "{path}: {none} bytes of no route");
        KEPT.lock().unwrap().clear();
    }
}

#[test]
fn a_task_that_a_request_spawns_is_of_no_route_unless_it_inherits() {
    static KEPT: Mutex<Vec<Vec<u8>>> = Mutex::new(Vec::new());
    let _turn = turn();
    let keep = || async { KEPT.lock().unwrap().push(block(0)) };
    let app = Router::new()
        .route(
            "/alone",
            get(move || async move { tokio::spawn(keep()).await.unwrap() }),
        )
        .route(
            "/inherits",
            get(move || async move { heapray::spawn(keep()).await.unwrap() }),
        )
        .route_layer(heapray::by_route());
    let requests = ["/alone", "/inherits"].map(|path| request(&format!("GET {path}"), b""));
    let snapshot = record("pitfalls-spawn", || serve(app, &requests.each_ref()));
    let by_route = live(&snapshot, "route").into_iter().collect::<Vec<_>>();
    let expected = [("", of(1)), ("GET /inherits", of(1))];
    assert_eq!(
        by_route,
        expected.map(|(name, tally)| (name.to_owned(), tally))
    );
    KEPT.lock().unwrap().clear();
}
