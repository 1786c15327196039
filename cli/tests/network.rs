//! Tests that `fetch` keeps only complete captures.
#![allow(clippy::unwrap_used)]

mod support;

use std::io::{Read, Write};
use std::net::TcpListener;
use std::thread;

use support::{Folder, all, bare, err, heapray, out, run};

/// Starts a server that answers one connection after the other with `answers`. Returns its address and, at its end, the
/// requests.
fn service(answers: Vec<Vec<u8>>) -> (String, thread::JoinHandle<Vec<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let asked = thread::spawn(move || {
        let mut asked = Vec::new();
        for answer in answers {
            let (mut connection, _) = listener.accept().unwrap();
            let mut head = Vec::new();
            let mut byte = [0];
            while !head.ends_with(b"\r\n\r\n") && connection.read(&mut byte).unwrap() == 1 {
                head.push(byte[0]);
            }
            asked.push(String::from_utf8(head).unwrap());
            connection.write_all(&answer).unwrap();
        }
        asked
    });
    (address, asked)
}

fn answer(status: &str, body: &[u8]) -> Vec<u8> {
    let length = body.len();
    let head =
        format!("HTTP/1.1 {status}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n");
    [head.as_bytes(), body].concat()
}

#[test]
fn a_report_is_fetched_with_its_token_and_saved() {
    let folder = Folder::new();
    let (address, asked) = service(vec![answer("200 OK", b"null"), answer("200 OK", &all())]);
    let output = heapray()
        .current_dir(folder.root())
        .env("MEMRAY_PROFILER_TOKEN", "s3cret")
        .args([
            "fetch",
            &format!("http://{address}/pub/job/a/1/"),
            "-H",
            "X-Racetrack-Auth: t",
            "--page",
        ])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", err(&output));
    assert_eq!(
        folder.files(),
        ["memray-flamegraph-report.html", "memray-report.bin"]
    );
    assert_eq!(
        std::fs::read(folder.path("memray-report.bin")).unwrap(),
        all()
    );
    let [report, page] = ["memray-report.bin", "page.html"].map(|name| folder.name(name));
    assert!(run(&["flamegraph", &report, "-o", &page]).status.success());
    assert!(
        std::fs::read(page).unwrap()
            == std::fs::read(folder.path("memray-flamegraph-report.html")).unwrap(),
        "the page equals the page of the saved report"
    );
    let asked = asked.join().unwrap();
    assert!(asked[0].starts_with("POST /pub/job/a/1/api/v1/profiler/memray/stop HTTP/1.1\r\n"));
    assert!(asked[1].starts_with("GET /pub/job/a/1/api/v1/profiler/memray/report HTTP/1.1\r\n"));
    for head in asked {
        let head = head.to_lowercase();
        assert!(
            head.contains("authorization: bearer s3cret") && head.contains("x-racetrack-auth: t"),
            "{head}"
        );
    }
    assert!(!out(&output).contains("s3cret") && !err(&output).contains("s3cret"));
}

#[test]
fn an_answer_that_is_not_a_complete_capture_is_not_kept() {
    let whole = bare(&all());
    let error = br#"{"error":"nothing was recorded yet\u001b[2J","type":"ReportNotFound"}"#;
    let moved =
        b"HTTP/1.1 302 Found\r\nLocation: https://evil.example/\r\nContent-Length: 0\r\n\r\n"
            .to_vec();
    for (answered, code, expected) in [
        (
            answer("404 Not Found", error),
            1,
            "nothing was recorded yet",
        ),
        (moved, 1, "https://evil.example/"),
        (
            answer("200 OK", b"<html>login</html>"),
            2,
            "not a memray capture",
        ),
        // Inside of a record.
        (
            answer("200 OK", &whole[..whole.len() / 3 + 1]),
            2,
            "cut short",
        ),
        (
            b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\nmemray".to_vec(),
            1,
            "cannot download",
        ),
        (b"SSH-2.0-x\r\n".to_vec(), 1, ""),
    ] {
        let folder = Folder::new();
        let (address, asked) = service(vec![answered]);
        let output = heapray()
            .current_dir(folder.root())
            .args(["fetch", "--no-stop", &address])
            .output()
            .unwrap();
        let message = err(&output);
        assert_eq!(output.status.code(), Some(code), "{message}");
        assert!(message.contains(expected), "{message}");
        assert!(
            message.lines().count() == 1 && !message.contains('\x1b'),
            "{message:?}"
        );
        assert!(folder.files().is_empty(), "{:?}", folder.files());
        asked.join().unwrap();
    }
}
