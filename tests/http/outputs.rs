//! Tests of reports, flame graphs and statistics over HTTP: the answers, the files on disk, and failures of the disk.

use std::fs;
use std::hint::black_box;
use std::os::unix::fs::{MetadataExt, symlink};

use crate::bench::{Answer, BASE, Bench, call, fresh_dir, send, try_send};
use axum::Router;
use axum::http::Method;
use heapray::{Error, State};

const OUTPUTS: [(&str, &str, &str); 3] = [
    (
        "report",
        "memray-report.bin",
        "inline; filename=\"memray-report.bin\"",
    ),
    (
        "flamegraph",
        "memray-flamegraph.html",
        "inline; filename=\"memray-flamegraph.html\"",
    ),
    ("stats", "memray-stats.txt", ""),
];

async fn fetch(app: &Router, endpoint: &str, headers: &[(&str, &str)]) -> Answer {
    send(app, Method::GET, &format!("{BASE}/{endpoint}"), headers).await
}

/// Records a session, so that a report exists.
async fn record(app: &Router) {
    assert_eq!(call(app, "start").await.status, 200);
    assert_eq!(call(app, "stop").await.status, 200);
}

#[tokio::test]
async fn before_the_first_session_every_output_is_404_and_says_why() {
    let bench = Bench::new();
    let app = bench.app();
    for (endpoint, _, _) in OUTPUTS {
        let text = call(&app, endpoint).await.fails_with(404, "ReportNotFound");
        assert!(text.contains("start"), "{text}");
    }
    assert_eq!(
        call(&app, "stop").await.json()["state"],
        "stopped",
        "a stop without a session is not an error"
    );
    assert!(matches!(bench.profiler.report(), Err(Error::NoReport)));
}

#[tokio::test]
async fn a_finished_sessions_outputs_are_files_that_are_sent_as_they_are() {
    let bench = Bench::new();
    let app = bench.app();
    record(&app).await;
    for (endpoint, file, disposition) in OUTPUTS {
        let answer = call(&app, endpoint).await;
        assert_eq!(answer.status, 200);
        assert_eq!(
            answer.body,
            fs::read(bench.path(file)).unwrap(),
            "{endpoint}"
        );
        assert_eq!(answer.header("content-disposition"), disposition);
        assert_eq!(
            answer.header("content-length"),
            answer.body.len().to_string()
        );
        assert_eq!(answer.header("cache-control"), "private, no-cache");
        assert_eq!(answer.header("x-heapray-snapshot"), "");
        let mode = fs::metadata(bench.path(file)).unwrap().mode();
        assert_eq!(mode & 0o777, 0o600, "{file} can be read by its owner alone");
    }
    let report = call(&app, "status").await.json()["report"]["bytes"]
        .as_u64()
        .unwrap();
    assert_eq!(
        report,
        fs::metadata(bench.path("memray-report.bin")).unwrap().len()
    );
    let policy = call(&app, "flamegraph").await;
    assert!(
        policy
            .header("content-security-policy")
            .starts_with("default-src 'none'")
    );
}

#[tokio::test]
async fn every_build_has_the_picture_and_the_picture_can_load_and_send_nothing() {
    let bench = Bench::new();
    let app = bench.app();
    record(&app).await;
    let leaf_first = "by the code that allocated";
    for (endpoint, accept, is_leaf_first) in [
        ("flamegraph.svg", "*/*", false),
        ("report?format=svg", "*/*", false),
        ("report", "image/svg+xml", false),
        (
            "flamegraph.svg?inverted=true&unit=count&measure=live",
            "*/*",
            true,
        ),
    ] {
        let answer = fetch(&app, endpoint, &[("accept", accept)]).await;
        assert_eq!(answer.status, 200, "{endpoint}");
        assert_eq!(answer.header("content-type"), "image/svg+xml");
        let policy = answer.header("content-security-policy");
        assert!(policy.starts_with("default-src 'none'"), "{endpoint}");
        let picture = String::from_utf8(answer.body).unwrap();
        assert!(picture.starts_with("<?xml") && picture.ends_with("</svg>\n"));
        assert_eq!(picture.contains(leaf_first), is_leaf_first, "{endpoint}");
    }
}

#[tokio::test]
async fn head_sends_the_same_headers_as_get() {
    let bench = Bench::new();
    let app = bench.app();
    record(&app).await;
    for (endpoint, _, _) in OUTPUTS {
        let path = format!("{BASE}/{endpoint}");
        let (head, get) = (
            send(&app, Method::HEAD, &path, &[]).await,
            send(&app, Method::GET, &path, &[]).await,
        );
        assert_eq!(head.headers, get.headers);
        assert!(head.body.is_empty() && !get.body.is_empty());
    }
}

#[tokio::test]
async fn ranges_and_conditional_requests_are_answered_as_in_the_rfc() {
    let bench = Bench::new();
    let app = bench.app();
    record(&app).await;
    let whole = fetch(&app, "report", &[]).await;
    let (len, etag) = (whole.body.len(), whole.header("etag").to_owned());
    assert!(
        len > 20 && etag.starts_with('"') && etag.ends_with('"'),
        "{etag}"
    );
    let modified = whole.header("last-modified").to_owned();

    let part = fetch(&app, "report", &[("range", "bytes=3-7")]).await;
    assert_eq!(
        (part.status.as_u16(), &part.body[..]),
        (206, &whole.body[3..8])
    );
    assert_eq!(part.header("content-range"), format!("bytes 3-7/{len}"));
    assert_eq!(
        (part.header("content-length"), part.header("etag")),
        ("5", &*etag)
    );

    // A client whose transfer broke off fetches the rest.
    let (first, rest) = (
        format!("bytes=0-{}", len / 2),
        format!("bytes={}-", len / 2 + 1),
    );
    let mut joined = fetch(&app, "report", &[("range", &first)]).await.body;
    let resumed = fetch(&app, "report", &[("range", &rest), ("if-range", &etag)]).await;
    assert_eq!(resumed.status, 206);
    joined.extend(resumed.body);
    assert_eq!(joined, whole.body);

    for (headers, status) in [
        (&[("range", "bytes=0-1,4-5")][..], 200),
        (&[("range", "bytes=5-1")], 200),
        (&[("range", "bytes=0-1"), ("if-range", "\"other\"")], 200),
        (&[("if-none-match", &etag)], 304),
        (&[("if-none-match", &format!("\"x\", W/{etag}"))], 304),
        (&[("if-none-match", "\"x\"")], 200),
        (&[("if-modified-since", &modified)], 304),
        (&[("if-none-match", &etag), ("range", "bytes=0-1")], 304),
        (&[("range", "bytes=999999999-")], 416),
    ] {
        let answer = fetch(&app, "report", headers).await;
        assert_eq!(answer.status.as_u16(), status, "{headers:?}");
        match status {
            200 => assert_eq!(answer.body, whole.body),
            304 => assert!(answer.body.is_empty() && answer.header("etag") == etag),
            _ => {
                answer.fails_with(416, "RangeNotSatisfiable");
                assert_eq!(answer.header("content-range"), format!("bytes */{len}"));
            }
        }
    }
}

#[tokio::test]
async fn while_recording_an_output_is_a_marked_snapshot_and_leaves_no_file() {
    let bench = Bench::new();
    let app = bench.app();
    call(&app, "start").await;
    for (endpoint, file, _) in OUTPUTS {
        let answer = call(&app, endpoint).await;
        assert_eq!(answer.status, 200);
        assert_eq!(answer.header("x-heapray-snapshot"), "true");
        assert_eq!(answer.header("cache-control"), "no-store");
        assert!(!bench.path(file).exists());
    }
    let snapshot = bench.profiler.report().unwrap();
    assert!(snapshot.is_snapshot());
    assert_eq!(
        bench.profiler.status().state,
        State::Recording,
        "the recording goes on"
    );
    call(&app, "stop").await;
    let last = bench.profiler.report().unwrap();
    assert!(!last.is_snapshot() && last.taken() > snapshot.taken());
    let names = fs::read_dir(&bench.dir)
        .unwrap()
        .map(|entry| entry.unwrap().file_name());
    let drafts = names.filter(|name| name.to_string_lossy().starts_with(".heapray-"));
    assert_eq!(drafts.count(), 0);
}

#[tokio::test]
async fn each_set_of_options_has_its_own_file_and_bad_values_are_refused() {
    let bench = Bench::new();
    let app = bench.app();
    record(&app).await;
    for (query, file) in [
        ("report?full=true", "memray-report.full.bin"),
        (
            "report?version=12&threads=each",
            "memray-report.each.v12.bin",
        ),
        ("flamegraph?threads=each", "memray-flamegraph.each.html"),
        ("stats/?full=Y", "memray-stats.full.txt"),
    ] {
        let answer = fetch(&app, query, &[]).await;
        assert_eq!(answer.body, fs::read(bench.path(file)).unwrap(), "{query}");
    }
    for (query, allowed) in [
        ("report?full=perhaps", "true, t, yes"),
        ("stats?threads=all", "name or each"),
        ("report?version=11", "12 or 13"),
    ] {
        let text = fetch(&app, query, &[]).await.fails_with(400, "BadRequest");
        assert!(text.contains(allowed), "{text}");
    }
}

#[tokio::test]
async fn start_and_stop_are_idempotent_and_a_new_session_replaces_the_old_ones_files() {
    let bench = Bench::new();
    let app = bench.app();
    let since = |answer: &Answer| answer.json()["recording_since"].clone();
    let first = call(&app, "start").await;
    let again = call(&app, "start").await;
    assert_eq!(since(&first), since(&again));
    assert_eq!(call(&app, "stop").await.json()["state"], "stopped");
    assert_eq!(call(&app, "stop").await.json()["state"], "stopped");
    let former = fetch(&app, "flamegraph?full=1", &[])
        .await
        .header("etag")
        .to_owned();
    call(&app, "report").await;

    let second = call(&app, "start").await;
    assert_ne!(since(&first), since(&second));
    for file in [
        "memray-report.bin",
        "memray-flamegraph.html",
        "memray-flamegraph.full.html",
    ] {
        assert!(!bench.path(file).exists(), "{file} is stale");
    }
    assert_eq!(second.json()["report"], serde_json::Value::Null);
    call(&app, "stop").await;
    let fresh = fetch(&app, "flamegraph?full=1", &[("if-none-match", &former)]).await;
    assert_eq!(fresh.status, 200, "the former session's tag does not fit");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn many_starts_at_once_begin_one_session_and_many_stops_end_it_once() {
    let bench = Bench::new();
    let app = bench.app();
    for _ in 0..20 {
        for (endpoint, state) in [("start", "recording"), ("stop", "stopped")] {
            let calls = (0..8).map(|_| {
                let app = app.clone();
                tokio::spawn(async move { call(&app, endpoint).await })
            });
            let mut answers = vec![];
            for call in calls.collect::<Vec<_>>() {
                let answer = call.await.unwrap().json();
                assert_eq!(answer["state"], state);
                answers.push((answer["recording_since"].clone(), answer["report"].clone()));
            }
            answers.dedup();
            assert_eq!(
                answers.len(),
                1,
                "all answers are about the same session: {answers:?}"
            );
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn every_call_gets_a_correct_answer_while_sessions_start_and_stop() {
    let bench = Bench::new();
    let app = bench.app();
    record(&app).await;
    let calls = ["start", "stop", "report", "flamegraph", "status", "stats"].map(|endpoint| {
        let app = app.clone();
        tokio::spawn(async move {
            for _ in 0..30 {
                let answer = call(&app, endpoint).await;
                assert_eq!(answer.status, 200, "{endpoint}: {answer:?}");
                if !answer.header("content-length").is_empty() {
                    assert_eq!(
                        answer.header("content-length"),
                        answer.body.len().to_string()
                    );
                }
            }
        })
    });
    for call in calls {
        call.await.unwrap();
    }
}

#[tokio::test]
async fn a_report_that_was_cut_corrupted_removed_or_replaced_is_made_again() {
    let bench = Bench::new();
    let app = bench.app();
    record(&app).await;
    for (endpoint, file, _) in OUTPUTS {
        let whole = call(&app, endpoint).await;
        let path = bench.path(file);
        let damages: [(&str, &dyn Fn()); 5] = [
            ("cut", &|| {
                let file = fs::File::options().write(true).open(&path).unwrap();
                file.set_len(5).unwrap();
            }),
            ("one bit", &|| {
                let mut bytes = fs::read(&path).unwrap();
                bytes[7] ^= 1;
                fs::write(&path, bytes).unwrap();
            }),
            ("removed", &|| fs::remove_file(&path).unwrap()),
            ("emptied", &|| fs::write(&path, "").unwrap()),
            ("replaced by a link", &|| {
                fs::remove_file(&path).unwrap();
                symlink("/etc/passwd", &path).unwrap();
            }),
        ];
        for (damage, strike) in damages {
            strike();
            let answer = call(&app, endpoint).await;
            assert_eq!(
                (answer.status.as_u16(), &answer.body),
                (200, &whole.body),
                "{file} {damage}"
            );
            assert_eq!(
                fs::read(&path).unwrap(),
                whole.body,
                "{file} {damage}: on disk too"
            );
        }
    }
}

#[tokio::test]
async fn a_file_that_was_only_touched_is_not_made_again() {
    let bench = Bench::new();
    let app = bench.app();
    record(&app).await;
    let path = bench.path("memray-report.bin");
    let bytes = fs::read(&path).unwrap();
    fs::write(&path, &bytes).unwrap();
    let inode = fs::metadata(&path).unwrap().ino();
    assert_eq!(call(&app, "report").await.body, bytes);
    assert_eq!(fs::metadata(&path).unwrap().ino(), inode);
}

#[tokio::test]
async fn a_file_that_is_cut_while_it_is_sent_breaks_the_answer_off() {
    use axum::body::Body;
    use axum::http::Request;
    use http_body_util::BodyExt;
    use tower::ServiceExt;
    let bench = Bench::new();
    let app = bench.app();
    record(&app).await;
    let request = Request::get(format!("{BASE}/report"))
        .body(Body::empty())
        .unwrap();
    let response = app.clone().oneshot(request).await.unwrap();
    let file = fs::File::options()
        .write(true)
        .open(bench.path("memray-report.bin"))
        .unwrap();
    file.set_len(5).unwrap();
    // A short answer that looks complete would be worse than an error.
    assert!(response.into_body().collect().await.is_err());
    assert!(
        try_send(&app, Method::GET, &format!("{BASE}/report"), &[])
            .await
            .is_ok()
    );
}

#[tokio::test]
async fn a_directory_that_is_gone_is_made_again() {
    let bench = Bench::new();
    let app = bench.app();
    record(&app).await;
    let whole = call(&app, "report").await;
    fs::remove_dir_all(&bench.dir).unwrap();
    assert_eq!(call(&app, "report").await.body, whole.body);
    fs::remove_dir_all(&bench.dir).unwrap();
    record(&app).await;
    assert_eq!(call(&app, "report").await.status, 200);
}

#[tokio::test]
async fn a_directory_that_cannot_be_written_to_fails_the_start_clearly_and_the_service_runs_on() {
    let blocked = fresh_dir().join("file");
    fs::write(&blocked, "in the way").unwrap();
    for dir in [
        blocked.clone(),
        blocked.join("below"),
        "/proc/heapray".into(),
    ] {
        let bench = Bench::with(|builder| builder.dir(&dir));
        let app = bench.app();
        let text = call(&app, "start")
            .await
            .fails_with(500, "DirectoryNotWritable");
        assert!(text.contains(dir.to_str().unwrap()), "{text}");
        assert!(text.contains("MEMRAY_PROFILER_DIR"), "{text}");
        let status = call(&app, "status").await.json();
        assert_eq!(
            (&status["state"], &status["trouble"]),
            (&"stopped".into(), &text.into())
        );
        assert!(matches!(
            bench.profiler.start(),
            Err(Error::Directory { .. })
        ));
    }
}

#[tokio::test]
async fn a_start_that_fails_leaves_the_former_report_alone() {
    let bench = Bench::new();
    let app = bench.app();
    record(&app).await;
    let report = call(&app, "report").await;
    let aside = bench.dir.with_extension("aside");
    fs::rename(&bench.dir, &aside).unwrap();
    fs::write(&bench.dir, "in the way").unwrap();
    call(&app, "start")
        .await
        .fails_with(500, "DirectoryNotWritable");
    call(&app, "report").await.fails_with(500, "OutputFailed");
    fs::remove_file(&bench.dir).unwrap();
    fs::rename(&aside, &bench.dir).unwrap();
    assert_eq!(call(&app, "report").await.body, report.body);
}

#[tokio::test]
async fn a_report_of_an_earlier_process_is_kept_once() {
    let bench = Bench::new();
    fs::write(bench.path("memray-report.bin"), "from before").unwrap();
    let app = bench.app();
    call(&app, "report").await.fails_with(404, "ReportNotFound");
    record(&app).await;
    let kept = fs::read(bench.path("memray-report.previous.bin")).unwrap();
    assert_eq!(kept, b"from before");
    record(&app).await;
    assert_eq!(
        fs::read(bench.path("memray-report.previous.bin")).unwrap(),
        kept
    );
}

#[test]
fn code_can_do_what_the_endpoints_do() {
    use std::io::Read;
    let bench = Bench::new();
    let profiler = &bench.profiler;
    assert_eq!(profiler.start().unwrap().state, State::Recording);
    assert_eq!(profiler.stop().unwrap().state, State::Stopped);
    let mut report = Vec::new();
    profiler.report().unwrap().read_to_end(&mut report).unwrap();
    assert_eq!(report, fs::read(bench.path("memray-report.bin")).unwrap());
    assert!(profiler.stats().unwrap().contains("Total allocations"));
    assert!(!profiler.flamegraph().unwrap().is_empty());
    profiler.start().unwrap();
    assert_eq!(profiler.shutdown().unwrap().state, State::Stopped);
    assert_eq!(profiler.shutdown().unwrap().state, State::Stopped);
    assert!(
        bench.path("memray-report.bin").exists(),
        "shutdown finishes the report"
    );
    let drafts = fs::read_dir(bench.path(".")).unwrap().filter(|entry| {
        let name = entry.as_ref().unwrap().file_name();
        name.to_string_lossy().starts_with('.')
    });
    assert_eq!(
        drafts.count(),
        0,
        "shutdown waits for files that are being written"
    );
}

#[tokio::test]
async fn outputs_by_a_key_have_the_values_of_contexts() {
    let bench = Bench::new();
    let app = bench.app();
    assert_eq!(call(&app, "start").await.status, 200);
    let keep = || black_box(vec![1_u8; 8_000_000]);
    let blocks = [
        heapray::context([("route", "GET /a")]).run(keep),
        heapray::context([("route", "GET /b")]).run(keep),
        keep(),
    ];
    let by_route = async |app: &Router| {
        let stats = call(app, "stats?by=route&format=json").await.json();
        assert_eq!(stats["key"], "route");
        for value in ["GET /a", "GET /b"] {
            let rows = stats["contexts"].as_array().unwrap();
            let row = rows.iter().find(|row| row["value"] == value).unwrap();
            assert_eq!(row["live"]["bytes"], 8_000_000, "{stats}");
        }
        assert!(
            call(app, "stats?by=route")
                .await
                .text()
                .contains("\nGET /a ")
        );
        for output in [
            "tree?by=route",
            "table?by=route",
            "report?by=route&format=collapsed",
        ] {
            assert_eq!(call(app, output).await.status, 200, "{output}");
        }
        let stacks = call(app, "report?by=route&format=collapsed&measure=live").await;
        for root in ["[GET /a]", "[GET /b]", "[background]"] {
            assert!(
                stacks.text().lines().any(|line| line.starts_with(root)),
                "{root}"
            );
        }
        assert_eq!(call(app, "flamegraph?by=route").await.status, 200);
    };
    by_route(&app).await;
    let running = call(&app, "stats?by=tenant").await;
    let text = running.text();
    assert!(
        text.ends_with("no context has the key tenant; there are route\n"),
        "{text}"
    );
    assert_eq!(call(&app, "stop").await.status, 200);
    drop(blocks);
    by_route(&app).await;
    let sums = call(&app, "report?by=route").await;
    let whole = call(&app, "report").await;
    let read =
        |bytes: &[u8]| heapray_report::memray::read_file(std::io::Cursor::new(bytes)).unwrap();
    assert_eq!(
        read(&sums.body).report.totals.live,
        read(&whole.body).report.totals.live
    );
    assert_eq!(
        fs::read(bench.path("memray-report.bin")).unwrap(),
        whole.body
    );
    let kept = call(&app, "reports").await.json();
    let id = kept[0]["id"].as_str().unwrap().to_owned();
    let table = call(&app, &format!("reports/{id}/stats?by=route")).await;
    assert!(table.text().contains("\nGET /b "), "{}", table.text());
    let refused = call(&app, "stats?by=").await.fails_with(400, "BadRequest");
    assert_eq!(
        refused,
        "by is \"\", but must be the key of a label, such as route"
    );
}
