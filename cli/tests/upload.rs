//! Tests that `upload-symbols` speaks Parca's protocol and Pyroscope's. Real servers are in tests/e2e.
#![allow(clippy::unwrap_used)]

mod support;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;

use support::{Folder, err, heapray, out};

/// A request: its first line, its headers in lower case, and its body.
struct Asked {
    line: String,
    headers: Vec<String>,
    body: Vec<u8>,
}

impl Asked {
    fn has(&self, header: &str) -> bool {
        self.headers.iter().any(|found| found == header)
    }
}

/// Starts a server that answers one request after the other with `answers`, which may name its address as `{address}`.
fn store(answers: Vec<Vec<u8>>) -> (String, thread::JoinHandle<Vec<Asked>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let asked = thread::spawn(move || {
        let answer = |answer: Vec<u8>| {
            let (connection, _) = listener.accept().unwrap();
            let asked = read(&connection);
            (&connection).write_all(&answer).unwrap();
            asked
        };
        answers.into_iter().map(answer).collect()
    });
    (address, asked)
}

fn read(connection: &TcpStream) -> Asked {
    let mut reader = BufReader::new(connection);
    let mut line = || {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    };
    let first = line();
    let mut headers = Vec::new();
    loop {
        match line() {
            header if header.is_empty() => break,
            header => headers.push(header.to_lowercase()),
        }
    }
    let length = headers
        .iter()
        .find_map(|header| header.strip_prefix("content-length: "));
    let mut body = vec![0; length.map_or(0, |length| length.parse().unwrap())];
    reader.read_exact(&mut body).unwrap();
    while length.is_none() {
        let mut size = String::new();
        reader.read_line(&mut size).unwrap();
        let size = usize::from_str_radix(size.trim_end(), 16).unwrap();
        let mut chunk = vec![0; size + 2];
        reader.read_exact(&mut chunk).unwrap();
        if size == 0 {
            break;
        }
        body.extend(&chunk[..size]);
    }
    Asked {
        line: first,
        headers,
        body,
    }
}

fn answer(status: &str, content_type: &str, body: &[u8]) -> Vec<u8> {
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {content_type}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
    );
    [head.as_bytes(), body].concat()
}

fn json(body: &str) -> Vec<u8> {
    answer("200 OK", "application/json", body.as_bytes())
}

/// Returns an answer of Parca's: a message, and the status.
fn grpc(message: &[u8], status: &str) -> Vec<u8> {
    let framed = |flag: u8, content: &[u8]| {
        [&[flag][..], &(content.len() as u32).to_be_bytes(), content].concat()
    };
    let body = [framed(0, message), framed(0x80, status.as_bytes())].concat();
    answer("200 OK", "application/grpc-web+proto", &body)
}

/// Returns a field of a protobuf message: bytes or a text.
fn text(number: u8, content: &[u8]) -> Vec<u8> {
    [&[number << 3 | 2, content.len() as u8][..], content].concat()
}

const DONE: &str = "grpc-status: 0\r\ngrpc-message:\r\n";
const BUILD_ID: &str = "00112233445566778899aabbccddeeff01234567";

/// Returns a file with a build id and with sections of these names.
fn elf(sections: &[&str]) -> Vec<u8> {
    let mut names = b"\0.shstrtab\0.note.gnu.build-id\0".to_vec();
    let id: Vec<u8> = (0..20)
        .map(|at| u8::from_str_radix(&BUILD_ID[2 * at..2 * at + 2], 16).unwrap())
        .collect();
    let note = [&[4, 0, 0, 0, 20, 0, 0, 0, 3, 0, 0, 0][..], b"GNU\0", &id].concat();
    let mut headers = vec![[0; 64]];
    let header = |name: usize, kind: u32, offset: u64, size: u64| {
        let mut header = [0; 64];
        header[..4].copy_from_slice(&(name as u32).to_le_bytes());
        header[4..8].copy_from_slice(&kind.to_le_bytes());
        header[24..32].copy_from_slice(&offset.to_le_bytes());
        header[32..40].copy_from_slice(&size.to_le_bytes());
        header
    };
    headers.push(header(11, 7, 64, note.len() as u64));
    for name in sections {
        headers.push(header(names.len(), 1, 64, 4));
        names.extend(name.as_bytes());
        names.push(0);
    }
    let at = 64 + note.len() as u64;
    headers.push(header(1, 3, at, names.len() as u64));
    let mut file = vec![0; 64];
    file[..7].copy_from_slice(b"\x7fELF\x02\x01\x01");
    file[16..20].copy_from_slice(&[3, 0, 62, 0]);
    file[20] = 1;
    let table = at + names.len() as u64;
    file[40..48].copy_from_slice(&table.to_le_bytes());
    file[52..54].copy_from_slice(&64u16.to_le_bytes());
    file[58..60].copy_from_slice(&64u16.to_le_bytes());
    file[60..62].copy_from_slice(&(headers.len() as u16).to_le_bytes());
    file[62..64].copy_from_slice(&(headers.len() as u16 - 1).to_le_bytes());
    [file, note, names, headers.concat()].concat()
}

#[test]
fn pyroscope_is_asked_then_sent_the_file_then_told_that_it_is_whole() {
    let folder = Folder::new();
    let file = elf(&[".symtab", ".debug_info"]);
    std::fs::write(folder.path("shop"), &file).unwrap();
    let answers = vec![
        json(r#"{"shouldInitiateUpload":true}"#),
        json(""),
        json("{}"),
    ];
    let (address, asked) = store(answers);
    let output = heapray()
        .args([
            "upload-symbols",
            "--pyroscope",
            &format!("{address}/store/"),
            &folder.name("shop"),
        ])
        .args(["-H", "X-Scope-OrgID: team"])
        .env("MEMRAY_PROFILER_PUSH_TOKEN", "s3cret")
        .env("MEMRAY_PROFILER_TOKEN", "the service's")
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", err(&output));
    assert!(out(&output).contains(BUILD_ID), "{}", out(&output));
    let asked = asked.join().unwrap();
    let service = "POST /store/debuginfo.v1alpha1.DebuginfoService";
    let lines: Vec<&str> = asked.iter().map(|asked| &*asked.line).collect();
    assert_eq!(
        lines,
        [
            format!("{service}/ShouldInitiateUpload HTTP/1.1"),
            format!("{service}/Upload/{BUILD_ID} HTTP/1.1"),
            format!("{service}/UploadFinished HTTP/1.1"),
        ]
    );
    assert!(asked[1].body == file);
    for asked in &asked {
        assert!(asked.has("authorization: bearer s3cret") && asked.has("x-scope-orgid: team"));
    }
    let about: serde_json::Value = serde_json::from_slice(&asked[0].body).unwrap();
    assert_eq!(about["file"]["gnuBuildId"], BUILD_ID);
    assert_eq!(about["file"]["name"], "shop");
}

#[test]
fn parca_gets_the_file_in_chunks() {
    let folder = Folder::new();
    let mut file = elf(&[".symtab", ".debug_info"]);
    file.resize((1 << 20) + 17, 7);
    std::fs::write(folder.path("shop"), &file).unwrap();
    let instructions = [
        text(1, BUILD_ID.as_bytes()),
        text(2, b"id-1"),
        vec![3 << 3, 1],
    ]
    .concat();
    let answers = vec![
        grpc(&[1 << 3, 1], DONE),
        grpc(&text(1, &instructions), DONE),
        grpc(&text(1, BUILD_ID.as_bytes()), DONE),
        grpc(&[], DONE),
    ];
    let (address, asked) = store(answers);
    let output = heapray()
        .args([
            "upload-symbols",
            "--json",
            "--parca",
            &address,
            &folder.name("shop"),
        ])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", err(&output));
    let said: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(said[0]["sent"], true);
    assert_eq!(said[0]["build_id"], BUILD_ID);
    let asked = asked.join().unwrap();
    let service = "POST /parca.debuginfo.v1alpha1.DebuginfoService";
    for (asked, method) in asked.iter().zip([
        "ShouldInitiateUpload",
        "InitiateUpload",
        "Upload",
        "MarkUploadFinished",
    ]) {
        assert_eq!(asked.line, format!("{service}/{method} HTTP/1.1"));
        assert!(asked.has("content-type: application/grpc-web+proto"));
    }
    // Frames: which upload it is, then the file.
    let mut rest = &asked[2].body[..];
    let mut frames = Vec::new();
    while let Some((&[0, a, b, c, d], after)) = rest.split_first_chunk() {
        let (frame, after) = after.split_at(u32::from_be_bytes([a, b, c, d]) as usize);
        frames.push(frame);
        rest = after;
    }
    assert!(rest.is_empty());
    assert_eq!(
        frames[0],
        text(
            1,
            &[text(1, BUILD_ID.as_bytes()), text(2, b"id-1")].concat()
        )
    );
    // The tag and the length of a megabyte, and of the rest.
    let sent = [
        frames[1].strip_prefix(&[0x12, 0x80, 0x80, 0x40]),
        frames[2].strip_prefix(&[0x12, 17]),
    ];
    assert!(sent.map(Option::unwrap).concat() == file);
    assert_eq!(frames.len(), 3);
}

#[test]
fn parca_s_object_storage_gets_the_file_without_the_token() {
    let folder = Folder::new();
    let file = elf(&[".symtab", ".debug_info"]);
    std::fs::write(folder.path("shop"), &file).unwrap();
    let (storage, stored) = store(vec![answer("200 OK", "text/plain", b"")]);
    let url = format!("http://{storage}/bucket/object?signature=s1gned");
    let instructions = [text(2, b"id-1"), vec![3 << 3, 2], text(4, url.as_bytes())].concat();
    let (address, asked) = store(vec![
        grpc(&[1 << 3, 1], DONE),
        grpc(&text(1, &instructions), DONE),
        grpc(&[], DONE),
    ]);
    let output = heapray()
        .args([
            "upload-symbols",
            "--token",
            "s3cret",
            "--parca",
            &address,
            &folder.name("shop"),
        ])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", err(&output));
    assert_eq!(asked.join().unwrap().len(), 3);
    let [stored] = <[Asked; 1]>::try_from(stored.join().unwrap()).ok().unwrap();
    assert_eq!(stored.line, "PUT /bucket/object?signature=s1gned HTTP/1.1");
    assert!(stored.body == file && stored.has(&format!("content-length: {}", file.len())));
    assert!(
        !stored
            .headers
            .iter()
            .any(|header| header.contains("s3cret"))
    );
}

#[test]
fn a_store_that_has_the_names_is_a_success_and_one_that_refuses_is_not() {
    let folder = Folder::new();
    std::fs::write(folder.path("shop"), elf(&[".symtab", ".debug_info"])).unwrap();
    let refusal = |reason: &str| [vec![1 << 3, 0], text(2, reason.as_bytes())].concat();
    for (store_is, answered, code, expected) in [
        (
            "--parca",
            grpc(
                &refusal("Debuginfo already exists and is not marked as invalid"),
                DONE,
            ),
            0,
            "does not need",
        ),
        (
            "--parca",
            grpc(&refusal("A previous upload is still in-progress"), DONE),
            1,
            "--force",
        ),
        (
            "--parca",
            grpc(&[], "grpc-status: 7\r\ngrpc-message: not you\u{1b}[2J\r\n"),
            1,
            "gRPC status 7: not you",
        ),
        (
            "--parca",
            answer("200 OK", "text/html", b"<html>"),
            1,
            "does not answer as Parca does",
        ),
        (
            "--parca",
            answer("200 OK", "application/grpc-web+proto", b"\0\0\0\0\x09"),
            1,
            "does not answer as Parca does",
        ),
        (
            "--pyroscope",
            json(r#"{"shouldInitiateUpload":false,"reason":"Debuginfo already exists"}"#),
            0,
            "does not need",
        ),
        (
            "--pyroscope",
            json(r#"{"shouldInitiateUpload":false,"reason":"DebugInfo upload disabled"}"#),
            1,
            "upload disabled",
        ),
        (
            "--pyroscope",
            json("<html>"),
            1,
            "does not answer as Pyroscope does",
        ),
        (
            "--pyroscope",
            answer(
                "401 Unauthorized",
                "application/json",
                br#"{"message":"no org id"}"#,
            ),
            1,
            "401 Unauthorized: no org id",
        ),
    ] {
        let (address, asked) = store(vec![answered]);
        let output = heapray()
            .args(["upload-symbols", store_is, &address, &folder.name("shop")])
            .output()
            .unwrap();
        let message = err(&output);
        assert_eq!(output.status.code(), Some(code), "{message}");
        assert!(
            message.contains(expected) && message.lines().count() == 1,
            "{message}"
        );
        assert!(!message.contains('\x1b'), "{message:?}");
        asked.join().unwrap();
    }
}

#[test]
fn a_file_of_no_use_is_not_sent() {
    let folder = Folder::new();
    std::fs::write(folder.path("stripped"), elf(&[".text"])).unwrap();
    std::fs::write(folder.path("text"), "shop").unwrap();
    let mut nameless = elf(&[".symtab"]);
    // The type of the note.
    nameless[72] = 9;
    std::fs::write(folder.path("nameless"), nameless).unwrap();
    for (file, expected) in [
        ("stripped", "it is stripped"),
        ("text", "not a 64-bit ELF file"),
        ("nameless", "--build-id"),
        ("missing", "cannot read"),
    ] {
        // Nobody listens there.
        let output = heapray()
            .args([
                "upload-symbols",
                "--parca",
                "127.0.0.1:1",
                &folder.name(file),
            ])
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(1));
        assert!(err(&output).contains(expected), "{}", err(&output));
    }
    let output = heapray()
        .args(["upload-symbols", &folder.name("text")])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(64), "{}", err(&output));
}
