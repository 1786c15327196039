//! Tests of kept reports over HTTP, of files for other tools, of marks, of the live stream and of tickets.

use std::fs;
use std::os::unix::fs::symlink;
use std::time::Duration;

use crate::bench::{Answer, BASE, Bench, call, fresh_dir, send, watch};
use axum::Router;
use axum::body::Body;
use axum::http::{Method, Request};
use heapray_report::memray;
use http_body_util::BodyExt;
use serde_json::Value;
use tower::ServiceExt;

/// Records a session in which a block of `bytes` stays live.
async fn record(app: &Router, bytes: usize) -> Vec<u8> {
    assert_eq!(call(app, "start").await.status, 200);
    let block = keep(bytes);
    assert_eq!(call(app, "stop").await.status, 200);
    block
}

#[inline(never)]
fn keep(bytes: usize) -> Vec<u8> {
    std::hint::black_box(vec![1; bytes])
}

async fn list(app: &Router) -> Vec<Value> {
    let list = call(app, "reports").await.json();
    list.as_array().unwrap().clone()
}

fn id(report: &Value) -> &str {
    report["id"].as_str().unwrap()
}

async fn delete(app: &Router, id: &str) -> Answer {
    send(app, Method::DELETE, &format!("{BASE}/reports/{id}"), &[]).await
}

#[tokio::test]
async fn a_former_sessions_report_is_kept_and_every_view_of_it_is_served() {
    let bench = Bench::new();
    let app = bench.app();
    assert!(list(&app).await.is_empty());
    let _one = record(&app, 1_234_567).await;
    let former = call(&app, "report").await;
    let stats = call(&app, "stats").await;
    let page = call(&app, "flamegraph").await;
    let _two = record(&app, 10).await;

    let kept = list(&app).await;
    assert_eq!(kept.len(), 2);
    assert_eq!(
        (&kept[0]["present"], &kept[1]["present"]),
        (&true.into(), &false.into())
    );
    assert_eq!(
        (&kept[0]["session"], &kept[1]["session"]),
        (&2.into(), &1.into())
    );
    let leak = &kept[1]["largest"];
    assert!(
        leak["live"]["bytes"].as_u64().unwrap() >= 1_234_567,
        "{leak}"
    );
    assert!(
        leak["function"].as_str().unwrap().contains("keep"),
        "{leak}"
    );
    assert!(
        leak["file"]
            .as_str()
            .unwrap()
            .ends_with("tests/http/reports.rs"),
        "{leak}"
    );
    assert_eq!(kept[1]["report_bytes"], former.body.len());

    let id = id(&kept[1]);
    let again = call(&app, &format!("reports/{id}/report")).await;
    assert_eq!(again.body, former.body);
    assert_eq!(again.header("etag"), former.header("etag"));
    assert_eq!(
        again.header("last-modified"),
        former.header("last-modified")
    );
    let text = call(&app, &format!("reports/{id}/stats")).await;
    assert_eq!(text.text(), stats.text());
    // The page still has the blocks of every range of time.
    let kept_page = call(&app, &format!("reports/{id}/flamegraph")).await;
    assert_eq!(kept_page.text(), page.text());
    let old = call(&app, &format!("reports/{id}/report?version=12")).await;
    let old = memray::read(&old.body[..]).unwrap();
    assert_eq!(old.version, memray::Version::V12);
    assert!(old.complete);
    assert_eq!(call(&app, &format!("reports/{id}")).await.json(), kept[1]);
    // A browser fetches a long file in ranges.
    let path = format!("{BASE}/reports/{id}/flamegraph");
    let part = send(&app, Method::GET, &path, &[("range", "bytes=0-14")]).await;
    assert_eq!(
        (part.status.as_u16(), part.text()),
        (206, "<!doctype html>")
    );
    let same = send(
        &app,
        Method::GET,
        &path,
        &[("if-none-match", part.header("etag"))],
    )
    .await;
    assert_eq!(same.status, 304);
    for query in ["full=1", "threads=each"] {
        let answer = call(&app, &format!("reports/{id}/stats?{query}")).await;
        answer.fails_with(400, "BadRequest");
    }
    let present = kept[0]["id"].as_str().unwrap();
    assert_eq!(
        call(&app, &format!("reports/{present}/stats?full=1"))
            .await
            .status,
        200
    );
}

#[tokio::test]
async fn kept_reports_are_limited_in_number_and_in_bytes() {
    let bench = Bench::with(|builder| builder.keep(2));
    let app = bench.app();
    for _ in 0..4 {
        drop(record(&app, 100).await);
    }
    let sessions: Vec<u64> = list(&app)
        .await
        .iter()
        .map(|kept| kept["session"].as_u64().unwrap())
        .collect();
    assert_eq!(sessions, [4, 3]);
    assert_eq!(
        fs::read_dir(bench.path("heapray-reports")).unwrap().count(),
        4
    );
    drop(bench);
    for none in [
        |builder: heapray::Builder| builder.keep(0),
        |builder: heapray::Builder| builder.keep_bytes(10),
    ] {
        let bench = Bench::with(none);
        let app = bench.app();
        drop(record(&app, 100).await);
        assert!(list(&app).await.is_empty());
        assert_eq!(
            call(&app, "report").await.status,
            200,
            "the present session's report exists nevertheless"
        );
    }
}

#[tokio::test]
async fn a_service_that_starts_again_in_the_same_directory_has_its_former_reports() {
    let dir = fresh_dir();
    let bench = Bench::with(|builder| builder.dir(&dir));
    let app = bench.app();
    drop(record(&app, 100).await);
    let former = call(&app, "report").await.body;
    let before = list(&app).await;
    drop(bench);
    let bench = Bench::with(|builder| builder.dir(&dir));
    let app = bench.app();
    let after = list(&app).await;
    assert_eq!((after.len(), id(&after[0])), (1, id(&before[0])));
    assert_eq!(after[0]["present"], false);
    let report = call(&app, &format!("reports/{}/report", id(&after[0]))).await;
    assert_eq!(report.body, former);
    call(&app, "report").await.fails_with(404, "ReportNotFound");
    fs::remove_dir_all(dir).unwrap();
}

#[tokio::test]
async fn a_kept_report_that_was_damaged_or_replaced_is_not_served() {
    let bench = Bench::new();
    let app = bench.app();
    drop(record(&app, 100).await);
    let kept = list(&app).await;
    let id = id(&kept[0]).to_owned();
    call(&app, "start").await;
    let path = bench.path(&format!("heapray-reports/{id}.bin"));
    let mut bytes = fs::read(&path).unwrap();
    let served = format!("reports/{id}/report");
    assert_eq!(call(&app, &served).await.body, bytes);
    bytes[20] ^= 1;
    fs::write(&path, &bytes).unwrap();
    for view in ["report", "stats", "flamegraph", "pprof"] {
        let answer = call(&app, &format!("reports/{id}/{view}")).await;
        answer.fails_with(500, "ReportDamaged");
    }
    fs::remove_file(&path).unwrap();
    symlink("/etc/passwd", &path).unwrap();
    call(&app, &served).await.fails_with(404, "ReportNotFound");
    assert!(list(&app).await.is_empty());
}

#[tokio::test]
async fn a_deleted_report_is_gone_and_an_unknown_one_is_404() {
    let bench = Bench::new();
    let app = bench.app();
    for _ in 0..2 {
        drop(record(&app, 100).await);
    }
    call(&app, "flamegraph").await;
    let kept = list(&app).await;
    let (present, former) = (id(&kept[0]), id(&kept[1]));
    assert_eq!(delete(&app, former).await.status, 204);
    delete(&app, former).await.fails_with(404, "ReportNotFound");
    call(&app, &format!("reports/{former}"))
        .await
        .fails_with(404, "ReportNotFound");
    call(&app, &format!("reports/{former}/stats"))
        .await
        .fails_with(404, "ReportNotFound");
    assert_eq!(call(&app, "report").await.status, 200);

    assert_eq!(delete(&app, present).await.status, 204);
    call(&app, "report").await.fails_with(404, "ReportNotFound");
    assert_eq!(call(&app, "status").await.json()["report"], Value::Null);
    assert!(list(&app).await.is_empty());
    let left: Vec<_> = fs::read_dir(&bench.dir)
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert_eq!(left, ["heapray-reports"], "nothing but an empty directory");
    drop(record(&app, 100).await);
    assert_eq!(list(&app).await.len(), 1);
}

#[tokio::test]
async fn a_report_is_also_a_file_for_another_tool_by_query_or_by_accept() {
    let bench = Bench::new();
    let app = bench.app();
    let _block = record(&app, 7_000_000).await;
    let former = id(&list(&app).await[0]).to_owned();
    for (query, accept, content_type, file) in [
        (
            "?format=pprof",
            "",
            "application/octet-stream",
            "memray-report.pb.gz",
        ),
        (
            "",
            "application/x-protobuf",
            "application/octet-stream",
            "memray-report.pb.gz",
        ),
        (
            "?format=speedscope",
            "",
            "application/json",
            "memray-report.speedscope.json",
        ),
        (
            "",
            "application/json",
            "application/json",
            "memray-report.json",
        ),
        (
            "",
            "text/csv, */*;q=0.1",
            "text/csv; charset=utf-8",
            "memray-report.csv",
        ),
        (
            "?format=collapsed&measure=live",
            "text/csv",
            "text/plain; charset=utf-8",
            "memray-report.folded",
        ),
        (
            "?format=gprof2dot",
            "",
            "application/json",
            "memray-report.gprof2dot.json",
        ),
        (
            "?format=mprof",
            "",
            "text/plain; charset=utf-8",
            "memray-report.dat",
        ),
        (
            "?format=memray",
            "text/csv",
            "application/octet-stream",
            "memray-report.bin",
        ),
        (
            "",
            "text/html,*/*;q=0.8",
            "application/octet-stream",
            "memray-report.bin",
        ),
    ] {
        for base in ["report".to_owned(), format!("reports/{former}/report")] {
            let path = format!("{BASE}/{base}{query}");
            let answer = send(&app, Method::GET, &path, &[("accept", accept)]).await;
            assert_eq!(answer.status, 200, "{path} {accept}");
            assert_eq!(answer.header("content-type"), content_type);
            assert_eq!(
                answer.header("content-disposition"),
                format!("inline; filename=\"{file}\"")
            );
            assert_eq!(answer.header("vary"), "Accept");
            let again = send(&app, Method::GET, &path, &[("accept", accept)]).await;
            assert_eq!(again.header("etag"), answer.header("etag"), "made once");
        }
    }
    let live = call(&app, "report?format=collapsed&measure=live").await;
    let line = live
        .text()
        .lines()
        .max_by_key(|line| line.rsplit(' ').next().unwrap().parse::<u64>().unwrap());
    assert!(line.unwrap().ends_with(" 7000000"), "{line:?}");
    let text = call(&app, "report?format=xml")
        .await
        .fails_with(400, "BadRequest");
    assert!(text.contains("pprof, speedscope"), "{text}");
    let names = fs::read_dir(&bench.dir)
        .unwrap()
        .map(|entry| entry.unwrap().file_name());
    assert_eq!(
        names
            .filter(|name| name.to_string_lossy().contains("folded"))
            .count(),
        0,
        "a text for another tool is not left on disk"
    );
}

#[tokio::test]
async fn marks_are_in_the_report_and_bad_ones_are_refused() {
    let bench = Bench::new();
    let app = bench.app();
    call(&app, "mark?name=early")
        .await
        .fails_with(409, "NotRecording");
    call(&app, "start").await;
    let block = keep(3_000_000);
    let mark = call(&app, "mark?name=after+the+first%20%C3%BC")
        .await
        .json();
    assert_eq!(mark["name"], "after the first ü");
    assert!(
        mark["live"]["bytes"].as_u64().unwrap() >= 3_000_000,
        "{mark}"
    );
    let long = "x".repeat(201);
    for name in [
        "",
        "?name=",
        "?name=%0a",
        "?name=%ff",
        "?name=%",
        &format!("?name={long}"),
    ] {
        call(&app, &format!("mark{name}"))
            .await
            .fails_with(400, "BadRequest");
    }
    assert_eq!(
        call(&app, &format!("mark?name={}", &long[1..]))
            .await
            .status,
        200
    );
    drop(block);
    call(&app, "stop").await;
    call(&app, "mark?name=late")
        .await
        .fails_with(409, "NotRecording");
    let report = memray::read(&call(&app, "report").await.body[..])
        .unwrap()
        .report;
    assert_eq!(report.marks.len(), 2);
    assert_eq!(report.marks[0].name, "after the first ü");
    assert_eq!(report.marks[0].at_ms, mark["at_ms"].as_u64().unwrap());
}

#[tokio::test]
async fn two_kept_reports_are_compared() {
    let bench = Bench::new();
    let app = bench.app();
    let mut held = Vec::new();
    for bytes in [1_000_000, 5_000_000] {
        held.push(record(&app, bytes).await);
    }
    let kept = list(&app).await;
    let [after, before] = [0, 1].map(|nth| kept[nth]["id"].as_str().unwrap().to_owned());
    let live = |bytes: f64, answer: &Value| {
        let live = answer["heapray"]["live"]["bytes"].as_f64().unwrap();
        assert!((live - bytes).abs() < 100_000.0, "{live} of {bytes}");
    };
    let of = |id: &str, since: &str| {
        let path = format!("reports/{id}/stats?format=json{since}");
        let app = app.clone();
        async move { call(&app, &path).await.json() }
    };
    live(5e6, &of(&after, "").await);
    let grown = of(&after, &format!("&since={before}")).await;
    live(4e6, &grown);
    let notes = grown["heapray"]["notes"].to_string();
    assert!(
        notes.contains("only what grew is shown") && notes.contains(&before),
        "{notes}"
    );
    live(0.0, &of(&before, &format!("&since={after}")).await);
    // The page and memray's file are those of the growth too.
    let page = call(&app, &format!("reports/{after}/flamegraph?since={before}")).await;
    assert!(page.text().contains("</html>"));
    let file = call(&app, &format!("reports/{after}/report?since={before}")).await;
    let file = memray::read(std::io::Cursor::new(file.body)).unwrap();
    assert!(file.report.totals.live.bytes < 4_100_000);
    // For the present session it does not matter.
    let present = call(&app, &format!("stats?format=json&since={before}")).await;
    live(5e6, &present.json());
    call(&app, &format!("reports/{after}/stats?since=x"))
        .await
        .fails_with(400, "BadRequest");
    call(&app, &format!("reports/{after}/stats?since=17"))
        .await
        .fails_with(404, "ReportNotFound");
    // What was made of a deleted report is gone with it.
    assert_eq!(delete(&app, &before).await.status, 204);
    call(&app, &format!("reports/{after}/flamegraph?since={before}"))
        .await
        .fails_with(404, "ReportNotFound");
}

#[tokio::test]
async fn a_session_takes_a_thousand_marks_and_no_more() {
    let bench = Bench::new();
    bench.profiler.start().unwrap();
    for number in 0..1_000 {
        bench.profiler.mark(&number.to_string()).unwrap();
    }
    assert!(matches!(
        bench.profiler.mark("more"),
        Err(heapray::Error::TooManyMarks)
    ));
    call(&bench.app(), "mark?name=more")
        .await
        .fails_with(409, "TooManyMarks");
}

#[tokio::test]
async fn the_live_stream_sends_the_state_the_curve_the_top_lines_and_the_reports() {
    let bench = Bench::new();
    let app = bench.app();
    watch(&app, |event, data| {
        event == "status" && data["state"] == "stopped"
    })
    .await;
    call(&app, "start").await;
    let block = keep(5_000_000);
    call(&app, "mark?name=here").await;
    let mut seen = Vec::new();
    watch(&app, |event, data| {
        seen.push(event.to_owned());
        match event {
            "curve" => {
                assert_eq!(data["marks"][0]["name"], "here");
                assert!(
                    data["points"]
                        .as_array()
                        .unwrap()
                        .iter()
                        .any(|row| row[2].as_u64() >= Some(5_000_000))
                );
            }
            "top" => {
                let first = &data["lines"][0];
                assert!(
                    first["function"].as_str().unwrap().contains("keep"),
                    "{data}"
                );
                assert!(first["live"]["bytes"].as_u64() >= Some(5_000_000), "{data}");
            }
            _ => {}
        }
        event == "now"
    })
    .await;
    for event in ["status", "curve", "top", "reports", "now"] {
        assert!(seen.iter().any(|name| name == event), "{event}: {seen:?}");
    }
    call(&app, "stop").await;
    drop(block);
    // What was shown last stays, for those who come later too.
    let mut held = 0;
    watch(&app, |event, data| {
        if event == "top" {
            held = data["lines"][0]["live"]["bytes"].as_u64().unwrap_or(0);
        }
        event == "reports" && data[0]["present"] == true
    })
    .await;
    assert!(held >= 5_000_000, "{held}");
}

#[tokio::test]
async fn the_state_says_which_process_it_is_of() {
    let bench = Bench::with(|builder| builder.job_name("adder").job_version("2.1"));
    let status = call(&bench.app(), "status").await.json();
    assert_eq!(status["job_name"], "adder");
    assert_eq!(status["job_version"], "2.1");
    assert_eq!(status["pid"], std::process::id());
    let program = status["program"].as_str().unwrap();
    assert!(program.starts_with("http-"), "{program}");
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
    assert_eq!(status["host"], host.trim_end());
    drop(bench);
    let bench = Bench::new();
    let nobody = call(&bench.app(), "status").await.json();
    assert_eq!(
        (&nobody["job_name"], &nobody["job_version"]),
        (&"".into(), &"".into())
    );
}

#[tokio::test]
async fn a_live_stream_ends_by_itself_and_the_number_of_streams_is_limited() {
    let bench = Bench::new();
    let app = bench.app();
    let ask = || {
        let request = Request::get(format!("{BASE}/live"))
            .body(Body::empty())
            .unwrap();
        app.clone().oneshot(request)
    };
    let first = ask().await.unwrap();
    let mut others = Vec::new();
    for _ in 1..32 {
        others.push(ask().await.unwrap());
    }
    call(&app, "live").await.fails_with(503, "TooManyWatchers");
    drop(others);
    assert_eq!(
        send(&app, Method::HEAD, &format!("{BASE}/live"), &[])
            .await
            .status,
        200
    );
    let ended = tokio::time::timeout(Duration::from_secs(60), first.into_body().collect());
    assert!(
        ended.await.is_ok(),
        "the stream ends, so that a service can shut down"
    );
}

#[tokio::test]
async fn a_ticket_opens_its_own_output_and_nothing_else() {
    let bench = Bench::with(|builder| builder.token("s3cret"));
    let app = bench.app();
    let right = [("authorization", "Bearer s3cret")];
    for (method, endpoint) in [(Method::POST, "start"), (Method::POST, "stop")] {
        assert_eq!(
            send(&app, method, &format!("{BASE}/{endpoint}"), &right)
                .await
                .status,
            200
        );
    }
    let ask = |what: &str| {
        let path = format!("{BASE}/ticket?for={what}");
        let app = app.clone();
        async move { send(&app, Method::POST, &path, &right).await }
    };
    let ticket = ask("stats").await.json()["ticket"]
        .as_str()
        .unwrap()
        .to_owned();
    for (method, path, status) in [
        (Method::GET, format!("stats?ticket={ticket}"), 200),
        (Method::HEAD, format!("stats/?full=1&ticket={ticket}"), 200),
        (Method::POST, format!("stats?ticket={ticket}"), 401),
        (Method::GET, format!("report?ticket={ticket}"), 401),
        (Method::GET, format!("reports?ticket={ticket}"), 401),
        (Method::POST, format!("start?ticket={ticket}"), 401),
    ] {
        let answer = send(&app, method, &format!("{BASE}/{path}"), &[]).await;
        assert_eq!(answer.status.as_u16(), status, "{path}");
    }
    for what in ["", "start", "live", "reports", "../stats", "%00"] {
        ask(what).await.fails_with(400, "BadRequest");
    }
}
