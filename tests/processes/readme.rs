//! The service that the README shows, as a reader would copy it: it starts, and it is profiled.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::support::Dir;

/// Where the README's service listens.
const ADDRESS: &str = "127.0.0.1:8000";

const README: &str = include_str!("../../README.md");
const EXAMPLE: &str = include_str!("../../examples/axum_service.rs");

/// A process that is killed on drop.
struct Service(Child);

impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn get(path: &str) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(ADDRESS)?;
    stream.set_read_timeout(Some(Duration::from_secs(10)))?;
    write!(stream, "GET {path} HTTP/1.0\r\nHost: localhost\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}

#[test]
fn the_first_service_of_the_readme_is_the_example() {
    let (_, first) = README.split_once("```rust,no_run\n").unwrap();
    let (first, _) = first.split_once("```").unwrap();
    let (_, example) = EXAMPLE.split_once("\n\n").unwrap();
    assert_eq!(first, example);
}

#[test]
fn the_first_service_of_the_readme_serves_and_is_profiled() {
    // `target/<profile>/deps/processes-…` and `target/<profile>/examples/…`.
    let test = std::env::current_exe().unwrap();
    let profile = test.ancestors().nth(2).unwrap();
    let example = profile.join("examples/axum_service");
    let in_use = TcpStream::connect(ADDRESS).is_ok();
    if in_use || !Path::new(&example).exists() {
        assert!(
            std::env::var_os("CI").is_none(),
            "in use: {in_use}, or no {example:?}"
        );
        println!(
            "skipped: {ADDRESS} is in use: {in_use}, or {} was not built",
            example.display()
        );
        return;
    }
    let dir = Dir::new("readme");
    let mut command = Command::new(example);
    command.env("MEMRAY_PROFILER", "true");
    command.env("MEMRAY_PROFILER_DIR", &dir.0);
    let _service = Service(command.stderr(Stdio::null()).spawn().unwrap());
    let start = Instant::now();
    let hello = loop {
        match get("/") {
            Ok(answer) => break answer,
            Err(error) => assert!(start.elapsed() < Duration::from_secs(30), "{error}"),
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    assert!(hello.ends_with("hello"), "{hello}");
    let status = get("/api/v1/profiler/memray/status").unwrap();
    assert!(status.contains("\"state\":\"recording\""), "{status}");
}
