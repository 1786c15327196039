//! Tests that the command takes no more memory, disk or time than allowed, for any file and any server, and that it leaves
//! nothing behind.
#![allow(clippy::unwrap_used)]

mod support;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use lz4_flex::frame::FrameEncoder;
use support::{Folder, all, bare, err, heapray, run, run_with};

/// Makes a small capture of `blocks` allocations that are never freed, with a few bytes for each thousand of them.
fn many_live_blocks(blocks: usize) -> Vec<u8> {
    let whole = bare(&all());
    let at = |text: &[u8]| whole.windows(text.len()).rposition(|w| w == text).unwrap();
    // The end mark is before heapray's extension.
    let mut head = whole[..at(b"heapray\0\x0d\0\0\0") - 1].to_vec();
    head.push(0x0C);
    head.extend(100u64.to_le_bytes());
    let mut encoder = FrameEncoder::new(Vec::new());
    encoder.write_all(&head).unwrap();
    // An allocation of one byte, eight bytes after the previous one.
    let thousand = [0xFE, 2, 1].repeat(1000);
    for _ in 0..blocks / 1000 {
        encoder.write_all(&thousand).unwrap();
    }
    encoder.finish().unwrap()
}

#[test]
fn a_capture_that_needs_more_memory_than_allowed_is_refused_with_the_way_to_allow_more() {
    let folder = Folder::new();
    let capture = many_live_blocks(3_000_000);
    assert!(capture.len() < 100_000);
    let file = folder.put("many.bin", &capture);
    for arguments in [
        &["stats", &*file][..],
        &["leaks", &file],
        &["table", &file],
        &["flamegraph", &file],
    ] {
        let limited = [arguments, &["--memory-limit", "32MiB"]].concat();
        let refused = run(&limited);
        assert_eq!(refused.status.code(), Some(1));
        let said = err(&refused);
        assert!(
            said.contains("32.000MiB") || said.contains("33.554MB"),
            "{said}"
        );
        assert!(said.contains("allow more with --memory-limit"), "{said}");
        assert_eq!(folder.files(), ["many.bin"]);
    }
    let refused = run_with(&["stats", "-", "--memory-limit", "32MiB"], &capture);
    assert!(err(&refused).contains("--memory-limit"));
    // The capture has no end, so there is another error, but it is read.
    let read = run(&["stats", &file, "--memory-limit", "512MiB"]);
    assert_eq!(read.status.code(), Some(2), "{}", err(&read));
    assert!(!err(&read).contains("--memory-limit"), "{}", err(&read));
    for nonsense in ["0", "1KiB", "lots", "-1"] {
        let refused = run(&["stats", &file, "--memory-limit", nonsense]);
        assert_eq!(refused.status.code(), Some(64), "{nonsense}");
    }
}

#[test]
fn no_file_name_reaches_the_terminal_with_characters_that_act_on_it() {
    let folder = Folder::new();
    let strange = "a\u{1b}[31m\u{9b}2J\u{202e}\u{2066}b\nc.bin";
    let (missing, broken, good) = (
        folder.name(strange),
        folder.put(&format!("broken{strange}"), b"nothing"),
        folder.put(&format!("good{strange}"), &all()),
    );
    let output = folder.name(&format!("out{strange}"));
    let acts = |text: &str| {
        let acts = |c: char| {
            (c.is_control() && c != '\n')
                || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
        };
        text.contains(acts)
    };
    for arguments in [
        &["stats", &*missing][..],
        &["stats", &broken],
        &["info", &good],
        &["leaks", &good],
        &["recover", &broken],
        &["memory", "plot", &broken],
        &["memory", "run", "-o", &good, "true"],
        &["memory", "run", "-o", &output, "true"],
        &["memory", "run", &missing],
        &["flamegraph", &good],
        &["flamegraph", &good],
        &["convert", "collapsed", &good],
        &[
            "merge",
            &good,
            &good,
            "-o",
            &folder.name(&format!("merged{strange}")),
        ],
        &["stats", &good, &missing],
        &[&missing],
        &["convert", &missing, &good],
        &["table", &good, "--thread", strange],
        &["fetch", &format!("http://127.0.0.1:1/{strange}")],
        &["fetch", "http://127.0.0.1:1", "-H", strange],
    ] {
        let output = run(arguments);
        for text in [&output.stdout, &output.stderr] {
            let text = String::from_utf8_lossy(text);
            assert!(!acts(&text), "{arguments:?}: {text:?}");
        }
    }
}

/// Starts a server that answers `stop` with 200, and passes the connection of a request for the report to `report`.
fn service(report: impl Fn(&mut TcpStream) -> std::io::Result<()> + Send + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    thread::spawn(move || {
        for connection in listener.incoming() {
            let mut connection = connection.unwrap();
            let mut head = BufReader::new(connection.try_clone().unwrap()).lines();
            let first = head.next().unwrap().unwrap();
            while head
                .next()
                .is_some_and(|line| line.is_ok_and(|line| !line.is_empty()))
            {}
            if first.starts_with("POST") {
                connection
                    .write_all(
                        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}",
                    )
                    .unwrap();
            } else {
                // The command may have ended already.
                let _ = report(&mut connection);
            }
        }
    });
    address
}

fn fetch(folder: &Folder, address: &str) -> Command {
    let mut command = heapray();
    command
        .current_dir(folder.root())
        .args(["fetch", &format!("http://{address}"), "--timeout", "20"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

const ENDLESS: &[u8] = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";

fn chunk(connection: &mut TcpStream, bytes: &[u8]) -> std::io::Result<()> {
    connection.write_all(format!("{:x}\r\n", bytes.len()).as_bytes())?;
    connection.write_all(bytes)?;
    connection.write_all(b"\r\n")
}

#[test]
fn a_report_without_an_end_is_given_up_at_its_largest_size_and_nothing_is_left() {
    let folder = Folder::new();
    let address = service(|connection| {
        connection.write_all(ENDLESS)?;
        loop {
            chunk(connection, &[b'x'; 8192])?;
        }
    });
    let given_up = fetch(&folder, &address)
        .args(["--max-size", "3MiB"])
        .output()
        .unwrap();
    assert_eq!(given_up.status.code(), Some(1));
    assert!(err(&given_up).contains("--max-size"), "{}", err(&given_up));
    assert!(folder.files().is_empty());
}

#[test]
fn a_report_that_claims_to_be_huge_is_not_begun() {
    let folder = Folder::new();
    let address = service(|connection| {
        connection
            .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 18446744073709551615\r\n\r\nmemray")?;
        thread::sleep(Duration::from_secs(60));
        Ok(())
    });
    let refused = fetch(&folder, &address).output().unwrap();
    assert_eq!(refused.status.code(), Some(1));
    assert!(err(&refused).contains("--max-size"), "{}", err(&refused));
    assert!(folder.files().is_empty());
}

#[test]
fn a_report_that_arrives_too_slowly_is_given_up_in_time() {
    let folder = Folder::new();
    // A byte now and then, so that no single read takes too long.
    let address = service(|connection| {
        connection.write_all(ENDLESS)?;
        loop {
            chunk(connection, b"x")?;
            thread::sleep(Duration::from_millis(20));
        }
    });
    let given_up = fetch(&folder, &address)
        .args(["--max-time", "1"])
        .output()
        .unwrap();
    assert_eq!(given_up.status.code(), Some(1));
    assert!(
        err(&given_up).contains("cannot download"),
        "{}",
        err(&given_up)
    );
    assert!(folder.files().is_empty());
}

#[test]
fn a_signal_leaves_no_part_of_a_report_behind() {
    for (name, number) in [("TERM", 15), ("INT", 2), ("HUP", 1)] {
        let folder = Folder::new();
        let address = service(|connection| {
            connection.write_all(ENDLESS)?;
            chunk(connection, b"memray\0")?;
            // Until the command has ended.
            connection.read_to_end(&mut Vec::new()).map(drop)
        });
        // The background jobs of a script ignore some of these signals from the start.
        let fetch = fetch(&folder, &address);
        let child = Command::new("env")
            .current_dir(folder.root())
            .arg("--default-signal")
            .arg(fetch.get_program())
            .args(fetch.get_args())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        while folder.files().is_empty() {
            thread::sleep(Duration::from_millis(5));
        }
        let pid = child.id().to_string();
        assert!(
            Command::new("kill")
                .args(["-s", name, &pid])
                .status()
                .unwrap()
                .success()
        );
        let output = child.wait_with_output().unwrap();
        use std::os::unix::process::ExitStatusExt;
        assert_eq!(output.status.signal(), Some(number));
        assert!(folder.files().is_empty(), "{name}: {:?}", folder.files());
    }
}

#[test]
fn a_signal_that_is_ignored_from_the_start_stays_ignored() {
    let folder = Folder::new();
    let address = service(|connection| {
        connection.write_all(ENDLESS)?;
        chunk(connection, b"x")?;
        thread::sleep(Duration::from_millis(300));
        chunk(connection, b"x")?;
        connection.write_all(b"0\r\n\r\n")
    });
    let mut child = Command::new("sh")
        .current_dir(folder.root())
        .args([
            "-c",
            "trap '' HUP; exec \"$0\" \"$@\"",
            env!("CARGO_BIN_EXE_heapray"),
        ])
        .args(["fetch", &format!("http://{address}")])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    while folder.files().is_empty() {
        thread::sleep(Duration::from_millis(5));
    }
    let pid = child.id().to_string();
    assert!(
        Command::new("kill")
            .args(["-s", "HUP", &pid])
            .status()
            .unwrap()
            .success()
    );
    // The answer was not a capture.
    assert_eq!(child.wait().unwrap().code(), Some(2));
    assert!(folder.files().is_empty());
}
