//! Tests of `fleet` with replicas that answer, refuse, are slow, or are not there.
#![allow(clippy::unwrap_used)]

mod support;

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::process::Output;
use std::thread;
use std::time::{Duration, Instant};

use parquet::file::reader::{FileReader, SerializedFileReader};
use serde_json::{Value, json};
use support::{Folder, all, err, heapray, out, run};

const MIB: u64 = 1 << 20;

/// Starts a server of many replicas, each below a path of its own, `/r/MEBIBYTES`, which holds so much. Returns its address.
fn replicas() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    thread::spawn(move || {
        for connection in listener.incoming() {
            thread::spawn(move || answer(connection.unwrap()));
        }
    });
    address
}

fn answer(mut connection: TcpStream) {
    let mut lines = BufReader::new(connection.try_clone().unwrap()).lines();
    let head: Vec<String> = lines
        .by_ref()
        .map_while(Result::ok)
        .take_while(|line| !line.is_empty())
        .collect();
    let path = head
        .first()
        .map_or("", |line| line.split(' ').nth(1).unwrap());
    // What is not a whole answer.
    match path.split('/').collect::<Vec<_>>()[..] {
        ["", "r", "drips", ..] => return drip(connection),
        ["", "r", "endless", ..] => return flood(connection),
        ["", "r", "elsewhere", port, ..] => return redirect(connection, port),
        _ => {}
    }
    let (status, body) = match path.split('/').collect::<Vec<_>>()[..] {
        ["", "r", "slow", ..] => return thread::park(),
        ["", "r", "refuses", ..] => ("403 Forbidden", br#"{"error":"not from here"}"#.to_vec()),
        ["", "r", "page", ..] => ("200 OK", b"<!DOCTYPE html><title>Log in</title>\n".to_vec()),
        ["", "r", "bytes", ..] => ("200 OK", b"event: status\ndata: \xff\xfe\n".to_vec()),
        ["", "r", "other", ..] => ("200 OK", b"event: status\ndata: [1]\n\n".to_vec()),
        ["", "r", "idle", .., "live"] => ("200 OK", idle().into_bytes()),
        ["", "r", "broken", .., "live"] => ("200 OK", live(900).into_bytes()),
        ["", "r", "broken", ..] => ("200 OK", b"<!DOCTYPE html>".to_vec()),
        ["", "r", mib, .., "live"] => ("200 OK", live(mib.parse().unwrap()).into_bytes()),
        ["", "r", _, .., "report?session=running"] => ("200 OK", all()),
        _ => ("404 Not Found", Vec::new()),
    };
    let length = body.len();
    let head =
        format!("HTTP/1.1 {status}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n");
    let _ = connection.write_all(&[head.as_bytes(), &body].concat());
}

fn drip(mut connection: TcpStream) {
    let head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n";
    let _ = connection.write_all(head);
    while connection.write_all(b"retry: 1\n").is_ok() {
        thread::sleep(Duration::from_millis(50));
    }
}

fn flood(mut connection: TcpStream) {
    let head = b"HTTP/1.1 200 OK\r\n\r\nevent: status\ndata: [";
    let _ = connection.write_all(head);
    while connection.write_all(&[b'['; 1 << 16]).is_ok() {}
}

fn redirect(mut connection: TcpStream, port: &str) {
    let to = format!("http://127.0.0.1:{port}/");
    let head = format!("HTTP/1.1 302 Found\r\nLocation: {to}\r\nContent-Length: 0\r\n\r\n");
    let _ = connection.write_all(head.as_bytes());
}

/// Returns the first events of a replica that has never recorded.
fn idle() -> String {
    let status = json!({ "program": "shop", "state": "stopped", "sampling": null, "report": null, "live": { "bytes": 0, "count": 0 } });
    format!(
        "event: status\ndata: {status}\n\nevent: curve\ndata: {{\"points\":[]}}\n\nevent: top\ndata: null\n\n"
    )
}

/// Returns the first events of a live page.
fn live(mib: u64) -> String {
    let live = mib * MIB;
    let status = json!({ "job_name": "shop", "job_version": "2", "host": "node", "pid": mib, "state": "background", "sampling": null, "live": { "bytes": live, "count": 1 } });
    let curve = json!({ "points": [[0, live, 0, 0], [7_200_000, 2 * live, live, 0]], "marks": [] });
    let top = json!({ "lines": [{ "function": "shop::cart", "file": "src/cart.rs", "line": 9, "live": { "bytes": live, "count": 1 } }] });
    format!(
        "retry: 500\nevent: status\ndata: {status}\n\nevent: curve\ndata: {curve}\n\nevent: top\ndata: {top}\n\n"
    )
}

fn urls(address: &str, names: &[&str]) -> Vec<String> {
    names
        .iter()
        .map(|name| format!("http://{address}/r/{name}"))
        .collect()
}

#[test]
fn replicas_are_listed_and_the_largest_is_compared_with_the_median() {
    let address = replicas();
    let mut command = heapray();
    command
        .arg("fleet")
        .args(urls(&address, &["100", "310", "101", "refuses"]));
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", err(&output));
    let text = out(&output);
    let rows: Vec<&str> = text.lines().collect();
    assert!(
        rows[1].starts_with(&format!("!  {address}/r/310  shop 2  ")),
        "{text}"
    );
    assert!(
        rows[1].ends_with("shop::cart src/cart.rs:9") && rows[1].contains('*'),
        "{text}"
    );
    assert!(
        rows[2].starts_with(&format!("   {address}/r/101")),
        "{text}"
    );
    assert!(text.contains("3 of 4 replicas answered."), "{text}");
    // Both have the same report.
    assert!(text.contains(&format!("of {address}/r/101.")), "{text}");
    assert!(
        text.contains(&format!("No answer: {address}/r/refuses: "))
            && text.contains("not from here"),
        "{text}"
    );
}

#[test]
fn all_reports_become_one_and_the_result_a_page() {
    let (address, folder) = (replicas(), Folder::new());
    let groups = json!([
        { "targets": [format!("{address}/r/5")], "labels": { "pod": "shop-5" } },
        { "targets": [format!("{address}/r/6"), format!("{address}/r/7")], "labels": { "pod": "shop", "__metrics_path__": "/metrics" } },
    ]);
    fs::write(folder.path("targets.json"), groups.to_string()).unwrap();
    let output = heapray()
        .current_dir(folder.root())
        .args([
            "fleet",
            "--file",
            "targets.json",
            "--json",
            "--merge",
            "all.bin",
            "--html",
            "fleet.html",
        ])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", err(&output));
    assert_eq!(folder.files(), ["all.bin", "fleet.html", "targets.json"]);
    let values = serde_json::Deserializer::from_slice(&output.stdout).into_iter::<Value>();
    let fleet = values.last().unwrap().unwrap();
    let names: Vec<_> = fleet["replicas"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["name"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(
        names,
        [
            format!("{address}/r/7"),
            format!("{address}/r/6"),
            "shop-5".into()
        ]
    );
    // The later half of the curve: one point.
    assert!(fleet["replicas"][2]["growth_bytes_per_hour"].is_null());
    let page = fs::read_to_string(folder.path("fleet.html")).unwrap();
    assert!(page.contains("shop-5") && page.contains("src/cart.rs:9"));
    let merged = run(&["stats", &folder.name("all.bin"), "--json"]);
    assert!(merged.status.success(), "{}", err(&merged));
    let parts = run(&["table", "--split-threads", &folder.name("all.bin")]);
    assert!(out(&parts).contains("shop-5/"), "{}", out(&parts));
}

#[test]
fn a_replica_that_does_not_answer_in_time_is_left_out() {
    let address = replicas();
    let mut command = heapray();
    command
        .args(["fleet", "--timeout", "1", "--no-diff"])
        .args(urls(&address, &["slow", "3"]));
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", err(&output));
    assert!(
        out(&output).contains("1 of 2 replicas answered."),
        "{}",
        out(&output)
    );
    assert!(out(&output).contains("/r/slow: "), "{}", out(&output));
}

#[test]
fn pods_are_found_with_kubectl() {
    let (address, folder) = (replicas(), Folder::new());
    let (host, port) = address.split_once(':').unwrap();
    let pod = |name: &str, phase: &str| {
        json!({
            "metadata": { "name": name, "annotations": { "prometheus.io/path": "/r/9/api/v1/profiler/memray/metrics" } },
            "spec": { "containers": [{ "ports": [{ "containerPort": port.parse::<u16>().unwrap() }] }] },
            "status": { "phase": phase, "podIP": host },
        })
    };
    let pods = json!({ "items": [pod("shop-a", "Running"), pod("shop-b", "Pending")] });
    let kubectl = folder.path("kubectl");
    let script = format!(
        "#!/bin/sh\ncase \"$*\" in *--selector=app=shop*--namespace=prod) cat <<'EOF'\n{pods}\nEOF\n;; *) echo 'no such thing' >&2; exit 1;; esac\n"
    );
    fs::write(&kubectl, script).unwrap();
    fs::set_permissions(&kubectl, fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!(
        "{}:{}",
        folder.root().display(),
        std::env::var("PATH").unwrap()
    );
    let fleet = |selector: &str| {
        let arguments = ["fleet", "--kubernetes", selector, "--namespace", "prod"];
        heapray()
            .env("PATH", &path)
            .args(arguments)
            .output()
            .unwrap()
    };
    let output = fleet("app=shop");
    assert!(output.status.success(), "{}", err(&output));
    assert!(
        out(&output).contains("1 of 1 replica answered."),
        "{}",
        out(&output)
    );
    assert!(
        out(&output).lines().nth(1).unwrap().contains("shop-a"),
        "{}",
        out(&output)
    );
    let output = fleet("app=other");
    assert_eq!(output.status.code(), Some(1));
    assert!(
        err(&output).contains("kubectl fails: no such thing"),
        "{}",
        err(&output)
    );
}

#[test]
fn what_cannot_be_asked_is_an_error() {
    let folder = Folder::new();
    for (content, problem) in [
        ("{", "EOF"),
        ("{}", "it is not a list"),
        ("[{}]", "no list of targets"),
        ("[{\"targets\":[1]}]", "not a text"),
    ] {
        fs::write(folder.path("bad.json"), content).unwrap();
        let output = run(&["fleet", "--file", &folder.name("bad.json")]);
        assert_eq!(output.status.code(), Some(64), "{content}");
        assert!(err(&output).contains(problem), "{}", err(&output));
    }
    assert_eq!(run(&["fleet"]).status.code(), Some(64));
    assert_eq!(run(&["fleet", "ftp://h"]).status.code(), Some(64));
    let nobody = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let output = run(&["fleet", &nobody.to_string()]);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        err(&output).contains("none of 1 replica has answered"),
        "{}",
        err(&output)
    );
    assert!(
        out(&output).contains(&format!("No answer: {nobody}: "))
            && out(&output).contains("refused"),
        "{}",
        out(&output)
    );
    let output = run(&["fleet", &nobody.to_string(), "--merge", "-", "--html", "-"]);
    assert_eq!(output.status.code(), Some(64));
}

fn fleet(arguments: &[&str], urls: &[String]) -> Output {
    heapray()
        .arg("fleet")
        .args(arguments)
        .args(urls)
        .output()
        .unwrap()
}

/// Returns the last value that was printed.
fn result(output: &Output) -> Value {
    let values = serde_json::Deserializer::from_slice(&output.stdout).into_iter::<Value>();
    values.last().unwrap().unwrap()
}

#[test]
fn replicas_that_answer_with_anything_else_are_named_and_cost_little() {
    let address = replicas();
    let problems = [
        ("page", "is not heapray"),
        ("bytes", "UTF-8"),
        ("other", "not that of heapray"),
        ("drips", "in time"),
        ("endless", "not that of heapray"),
    ];
    let names: Vec<&str> = problems.iter().map(|(name, _)| *name).collect();
    let names = [&names[..], &["3", "4", "idle"]].concat();
    let began = Instant::now();
    let output = fleet(
        &["--timeout", "2", "--memory-limit", "64MiB"],
        &urls(&address, &names),
    );
    assert!(began.elapsed() < Duration::from_secs(20));
    assert!(output.status.success(), "{}", err(&output));
    let text = out(&output);
    assert!(text.contains("3 of 8 replicas answered."), "{text}");
    for (name, problem) in problems {
        let start = format!("No answer: {address}/r/{name}: ");
        let line = text.lines().find(|line| line.starts_with(&start));
        assert!(line.is_some_and(|line| line.contains(problem)), "{text}");
    }
    // It has no part in the median.
    assert!(text.contains(&format!("of {address}/r/3.")), "{text}");
}

#[test]
fn a_token_does_not_follow_a_redirect() {
    let address = replicas();
    let elsewhere = TcpListener::bind("127.0.0.1:0").unwrap();
    elsewhere.set_nonblocking(true).unwrap();
    let name = format!("elsewhere/{}", elsewhere.local_addr().unwrap().port());
    let output = fleet(&["--token", "secret"], &urls(&address, &[&name, "3"]));
    assert!(
        out(&output).contains("answers 302 Found to"),
        "{}",
        out(&output)
    );
    assert!(elsewhere.accept().is_err(), "it was asked");
}

#[test]
fn the_whole_command_ends_in_time() {
    let address = replicas();
    let began = Instant::now();
    let arguments = ["--max-time", "1", "--timeout", "3600", "--parallel", "1"];
    let urls = ["3", "slow/1", "slow/2"].map(|name| format!("http://{address}/r/{name}"));
    let output = fleet(&arguments, &urls);
    assert!(began.elapsed() < Duration::from_secs(10));
    let text = out(&output);
    assert!(
        text.contains("/r/slow/1: given up, since 1 s were over: allow more with --max-time"),
        "{text}"
    );
    assert!(text.contains("/r/slow/2: not asked"), "{text}");
}

#[test]
fn a_report_that_cannot_be_read_leaves_the_rest_whole() {
    let (address, folder) = (replicas(), Folder::new());
    let urls = urls(&address, &["5", "6", "broken", "idle"]);
    let output = fleet(&["--json", "--merge", &folder.name("all.bin")], &urls);
    assert!(output.status.success(), "{}", err(&output));
    let merged = result(&output)["not_merged"].as_array().unwrap().clone();
    let names: Vec<&str> = merged
        .iter()
        .map(|one| one["name"].as_str().unwrap())
        .collect();
    assert_eq!(
        names,
        ["broken", "idle"].map(|name| format!("{address}/r/{name}"))
    );
    assert!(folder.path("all.bin").exists());
    // The one that holds the most has no report.
    let output = fleet(&[], &urls);
    assert!(output.status.success(), "{}", err(&output));
    let start = format!("No comparison: {address}/r/broken: its report: ");
    assert!(out(&output).contains(&start), "{}", out(&output));
    let output = fleet(&["--json"], &urls);
    let why = result(&output)["no_comparison"].clone();
    assert!(why.as_str().unwrap().contains("/r/broken"), "{why}");
}

#[test]
fn a_merged_capture_keeps_its_replicas_in_every_format() {
    let (address, folder) = (replicas(), Folder::new());
    let targets: Vec<Value> = ["5", "6"]
        .iter()
        .map(|name| json!({ "targets": [format!("{address}/r/{name}")], "labels": { "pod": format!("shop-{name}") } }))
        .collect();
    // The prefix of each is in its address.
    fs::write(folder.path("targets.json"), json!(targets).to_string()).unwrap();
    let file = folder.name("targets.json");
    let output = fleet(&["--file", &file, "--merge", "-"], &[]);
    assert!(output.status.success(), "{}", err(&output));
    let capture = folder.put("all.bin", &output.stdout);
    let table = folder.name("all.parquet");
    let converted = run(&["convert", "parquet", &capture, "-o", &table]);
    assert!(converted.status.success(), "{}", err(&converted));
    let reader = SerializedFileReader::new(fs::File::open(&table).unwrap()).unwrap();
    let mut found: Vec<[String; 2]> = Vec::new();
    for row in reader.get_row_iter(None).unwrap() {
        let row = row.unwrap();
        let text = |column: &str| {
            let mut columns = row.get_column_iter();
            let (_, value) = columns.find(|(name, _)| *name == column).unwrap();
            value.to_string().trim_matches('"').to_owned()
        };
        found.push([text("replica"), text("thread")]);
    }
    found.sort();
    found.dedup();
    assert!(
        found.iter().any(|[replica, _]| replica == "shop-5")
            && found.iter().any(|[replica, _]| replica == "shop-6"),
        "{found:?}"
    );
    assert!(
        found.iter().all(|[_, thread]| !thread.contains("shop")),
        "{found:?}"
    );
}

#[test]
fn an_address_is_asked_once_however_it_is_written() {
    let address = replicas();
    let port = address.split_once(':').unwrap().1;
    let urls = [
        format!("{address}/r/3"),
        format!("http://{address}/r/3/api/v1/profiler/memray/metrics"),
    ];
    let output = fleet(&["--dns", &format!("127.0.0.1:{port}")], &urls);
    let text = out(&output);
    assert!(text.contains("1 of 2 replicas answered."), "{text}");
    assert!(text.contains(&format!("No answer: {address}: ")), "{text}");
}
