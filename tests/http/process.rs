//! Tests that need a process of their own: of the environment, the process's own profiler, a full disk, a fork, a listener.
//!
//! Each test starts this program again with itself alone.

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Output};
use std::time::Duration;

use crate::bench::{BASE, fresh_dir};
use crate::support::process::{is_alone, passed, play, test_name, text};
use crate::support::{threads, turn};
use heapray::{Error, InitError, State};
use heapray_report::error_chain;

/// Runs the test `scenario` in a new process with these variables, in a shell that runs `before` first.
fn run(scenario: &str, before: &str, variables: &[(&str, &str)]) -> Output {
    let mut command = Command::new("sh");
    command.args(["-c", &format!("{before} exec \"$0\" \"$@\"")]);
    command.arg(std::env::current_exe().unwrap());
    play(&mut command, scenario);
    command.env("RUST_BACKTRACE", "0");
    for (name, _) in std::env::vars_os() {
        let name = name.to_string_lossy();
        if name.starts_with("MEMRAY_") || name.starts_with("JOB_") {
            command.env_remove(&*name);
        }
    }
    // Files in the profiler's private directory are removed with cargo's directory.
    command.env("TMPDIR", fresh_dir());
    command.envs(variables.iter().copied());
    let _turn = turn();
    passed(command)
}

/// Sends a request over a real socket.
fn ask(address: SocketAddr, request: &str) -> String {
    let mut socket = TcpStream::connect(address).unwrap();
    write!(
        socket,
        "{request} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n"
    )
    .unwrap();
    let mut answer = String::new();
    socket.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn without_the_variable_no_thread_no_directory_and_no_listener_is_made() {
    let scenario = test_name!();
    if !is_alone(scenario) {
        let tmp = fresh_dir();
        for value in [None, Some("false"), Some("0"), Some("")] {
            let mut variables = vec![("TMPDIR", tmp.to_str().unwrap())];
            variables.extend(value.map(|value| ("MEMRAY_PROFILER", value)));
            run(scenario, "", &variables);
        }
        assert_eq!(fs::read_dir(tmp).unwrap().count(), 0);
        return;
    }
    let before = threads().len();
    let profiler = heapray::init();
    assert!(!profiler.is_enabled());
    assert_eq!(heapray::status().state, State::Disabled);
    assert!(matches!(heapray::start(), Err(Error::Disabled)));
    assert!(matches!(heapray::report(), Err(Error::Disabled)));
    assert_eq!(heapray::serve("127.0.0.1:0").unwrap(), None);
    assert_eq!(threads().len(), before);
}

#[test]
fn with_the_variable_set_it_records_when_init_returns() {
    let scenario = test_name!();
    if !is_alone(scenario) {
        let tmp = fresh_dir();
        let variables = [
            ("MEMRAY_PROFILER", "True"),
            ("TMPDIR", tmp.to_str().unwrap()),
        ];
        run(scenario, "", &variables);
        // The report outlives the process, in a private directory.
        let private: Vec<_> = fs::read_dir(&tmp)
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .collect();
        assert_eq!(private.len(), 1, "{private:?}");
        assert!(private[0].join("memray-report.bin").exists());
        return;
    }
    let profiler = heapray::init();
    assert_eq!(profiler.status().state, State::Recording);
    let again = heapray::try_init().unwrap();
    assert_eq!(
        again.status().recording_since,
        profiler.status().recording_since
    );
    let other = heapray::builder().log_limit(1).init();
    assert_eq!(
        other.status().recording_since,
        profiler.status().recording_since
    );
    assert_eq!(heapray::shutdown().unwrap().state, State::Stopped);
}

#[test]
fn a_bad_setting_is_reported_on_standard_error_and_the_profiler_stays_off() {
    let scenario = test_name!();
    if !is_alone(scenario) {
        for (name, value) in [
            ("MEMRAY_PROFILER", "maybe"),
            ("MEMRAY_PROFILER_LOG_LIMIT", "lots"),
            ("MEMRAY_PROFILER_PREFIX", "no-slash"),
            ("MEMRAY_PROFILER_TOKEN", ""),
        ] {
            let variables = [("MEMRAY_PROFILER", "1"), (name, value)];
            let output = run(scenario, "", &variables);
            let told = String::from_utf8_lossy(&output.stderr).into_owned();
            assert_eq!(
                told.matches(name).count(),
                1,
                "the message must be printed once for all calls: {told}"
            );
            assert!(told.contains("must be"), "{told}");
        }
        return;
    }
    assert!(matches!(heapray::try_init(), Err(InitError::Config(_))));
    assert!(!heapray::init().is_enabled());
    assert!(!heapray::init().is_enabled());
}

#[test]
fn a_start_that_fails_in_init_leaves_a_profiler_that_says_why() {
    let scenario = test_name!();
    if !is_alone(scenario) {
        let blocked = fresh_dir().join("file");
        fs::write(&blocked, "in the way").unwrap();
        let variables = [
            ("MEMRAY_PROFILER", "1"),
            ("MEMRAY_PROFILER_DIR", blocked.to_str().unwrap()),
        ];
        let output = run(scenario, "", &variables);
        assert!(
            text(&output).contains("set another one with MEMRAY_PROFILER_DIR"),
            "{}",
            text(&output)
        );
        return;
    }
    let profiler = heapray::init();
    assert!(profiler.is_enabled());
    let status = profiler.status();
    assert_eq!(status.state, State::Stopped);
    assert!(status.trouble.unwrap().contains("cannot be written to"));
    // A start succeeds after the obstacle is removed.
    fs::remove_file(std::env::var("MEMRAY_PROFILER_DIR").unwrap()).unwrap();
    assert_eq!(profiler.start().unwrap().state, State::Recording);
    assert_eq!(profiler.status().trouble, None);
}

#[test]
fn a_full_disk_is_a_clear_error_and_nothing_is_lost() {
    let scenario = test_name!();
    if !is_alone(scenario) {
        let dir = fresh_dir();
        let variables = [
            ("MEMRAY_PROFILER", "1"),
            ("MEMRAY_PROFILER_DIR", dir.to_str().unwrap()),
        ];
        // No file may grow, and a write that would grow one raises SIGXFSZ. `prlimit` of util-linux lifts the limit later.
        run(scenario, "ulimit -S -f 0;", &variables);
        return;
    }
    let profiler = heapray::init();
    assert_eq!(profiler.status().state, State::Recording);
    assert!(matches!(profiler.report(), Err(Error::Output { .. })));
    assert!(matches!(profiler.stop(), Err(Error::Output { .. })));
    let status = profiler.status();
    assert_eq!((status.state, status.report), (State::Stopped, None));
    let failure = error_chain(&profiler.report().unwrap_err()).to_string();
    assert!(failure.contains("File too large"), "{failure}");
    let app = profiler.router();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let answer = runtime.block_on(crate::bench::call(&app, "flamegraph"));
    answer.fails_with(507, "StorageFull");

    let pid = std::process::id().to_string();
    let lifted = Command::new("prlimit")
        .args(["--fsize=unlimited", "--pid", &pid])
        .status();
    if !lifted.is_ok_and(|status| status.success()) {
        assert!(std::env::var_os("CI").is_none(), "prlimit is missing");
        println!("skipped: no prlimit here, so the disk stays full");
        return;
    }
    assert!(
        !profiler.report().unwrap().is_empty(),
        "the recorded session is still available"
    );
    assert!(profiler.status().report.is_some());
}

#[test]
fn a_full_file_system_is_a_clear_error() {
    let scenario = test_name!();
    if !is_alone(scenario) {
        let mounted = Command::new("unshare").args(["-m", "true"]).status();
        if !mounted.is_ok_and(|status| status.success()) {
            assert!(std::env::var_os("CI").is_none(), "unshare -m needs root");
            println!("skipped: no right to mount a small tmpfs");
            return;
        }
        let dir = fresh_dir();
        let dir = dir.to_str().unwrap();
        let mount = format!(
            "exec unshare -m sh -c 'mount -t tmpfs -o size=64k tmpfs {dir} && exec \"$0\" \"$@\"' \"$0\" \"$@\";"
        );
        run(
            scenario,
            &mount,
            &[("MEMRAY_PROFILER", "1"), ("MEMRAY_PROFILER_DIR", dir)],
        );
        return;
    }
    let profiler = heapray::init();
    let ballast = Path::new(&std::env::var("MEMRAY_PROFILER_DIR").unwrap()).join("ballast");
    fs::write(&ballast, vec![0; 64 << 10]).unwrap_or_default();
    assert!(matches!(profiler.stop(), Err(Error::Output { .. })));
    let failure = error_chain(&profiler.report().unwrap_err()).to_string();
    assert!(failure.contains("No space left on device"), "{failure}");
    assert!(matches!(
        profiler.start(),
        Ok(_) | Err(Error::Directory { .. } | Error::Start(_))
    ));
    fs::remove_file(ballast).unwrap();
    profiler.start().unwrap();
    profiler.stop().unwrap();
    assert!(!profiler.report().unwrap().is_empty());
}

#[test]
fn its_own_listener_answers_while_the_services_runtime_is_stuck_and_closes_at_shutdown() {
    let scenario = test_name!();
    if !is_alone(scenario) {
        run(scenario, "", &[("MEMRAY_PROFILER", "1")]);
        return;
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    // All of this runs on the only thread of the service's runtime, so the runtime cannot serve requests meanwhile.
    runtime.block_on(async {
        let address = heapray::serve("127.0.0.1:0").unwrap().unwrap();
        for prefix in ["", "/pub/job/a/1"] {
            let answer = ask(address, &format!("GET {prefix}{BASE}/status"));
            assert!(
                answer.starts_with("HTTP/1.1 200") && answer.contains("recording"),
                "{answer}"
            );
        }
        assert!(ask(address, &format!("POST {BASE}/stop")).contains("\"state\":\"stopped\""));
        assert!(ask(address, &format!("GET {BASE}/stats")).contains("Total allocations"));
        assert!(ask(address, "GET /openapi.json").contains("\"openapi\":\"3.1.0\""));
        assert!(ask(address, "GET /nothing").starts_with("HTTP/1.1 404"));

        let taken = error_chain(&heapray::serve(address).unwrap_err()).to_string();
        assert!(
            taken.contains(&address.to_string()) && taken.contains("in use"),
            "{taken}"
        );
        // The shutdown does not wait for a client that never finishes its request.
        let mut idle = TcpStream::connect(address).unwrap();
        idle.write_all(b"GET / HT").unwrap();
        heapray::shutdown().unwrap();
        assert!(TcpStream::connect(address).is_err());
        TcpListener::bind(address).unwrap();
        assert!(!threads().contains(&"heapray-http".to_owned()));
    });
}

#[test]
fn open_connections_do_not_take_all_of_the_services_file_descriptors() {
    let scenario = test_name!();
    if !is_alone(scenario) {
        run(scenario, "", &[("MEMRAY_PROFILER", "1")]);
        return;
    }
    let address = heapray::serve("127.0.0.1:0").unwrap().unwrap();
    let connect = || {
        let mut stream = TcpStream::connect(address).unwrap();
        write!(stream, "GET {BASE}/status HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
        stream
    };
    let mut strangers: Vec<_> = (0..64).map(|_| connect()).collect();
    let mut byte = [0];
    for stranger in &mut strangers {
        stranger.read_exact(&mut byte).unwrap();
    }
    // These clients stay connected. The next client is answered when one of them disconnects.
    let mut next = connect();
    let briefly = Some(Duration::from_millis(100));
    next.set_read_timeout(briefly).unwrap();
    assert!(next.read(&mut byte).is_err());
    strangers.pop();
    next.set_read_timeout(None).unwrap();
    next.read_exact(&mut byte).unwrap();
    drop(strangers);
    heapray::shutdown().unwrap();
}

#[test]
fn a_forked_child_reports_the_fork_and_touches_nothing_of_its_parent() {
    let scenario = test_name!();
    if !is_alone(scenario) {
        run(scenario, "", &[("MEMRAY_PROFILER", "1")]);
        return;
    }
    let profiler = heapray::init();
    // SAFETY: the child only calls the profiler, which takes no lock and waits for no thread in a child, and ends by
    // `_exit`. glibc makes its allocator usable in the child of a threaded process.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let right = profiler.status().state == State::Forked
            && matches!(profiler.start(), Err(Error::Forked))
            && matches!(profiler.stop(), Err(Error::Forked))
            && matches!(profiler.report(), Err(Error::Forked))
            && matches!(profiler.shutdown(), Err(Error::Forked))
            && matches!(profiler.serve("127.0.0.1:0"), Ok(None));
        drop(profiler);
        // SAFETY: ends the child without running code of the parent's.
        unsafe { libc::_exit(if right { 0 } else { 1 }) };
    }
    let mut status = -1;
    // SAFETY: `status` lives until the call returns, and the child belongs to this process.
    let waited = unsafe { libc::waitpid(child, &raw mut status, 0) };
    assert_eq!((waited, status), (child, 0));
    assert_eq!(profiler.status().state, State::Recording);
    assert_eq!(profiler.shutdown().unwrap().state, State::Stopped);
    assert!(!profiler.report().unwrap().is_empty());
}

#[test]
fn nothing_that_a_request_does_is_recorded() {
    let scenario = test_name!();
    if !is_alone(scenario) {
        run(scenario, "", &[("MEMRAY_PROFILER", "1")]);
        return;
    }
    let profiler = heapray::init();
    let mut service = profiler.service();
    let allocated = || profiler.status().allocated.count;
    // Wait until the test harness's own thread has been set up.
    while (0..100).any(|_| {
        let before = allocated();
        std::thread::yield_now();
        allocated() != before
    }) {}
    for endpoint in [
        "status",
        "stats",
        "flamegraph",
        "report?full=1",
        "nothing",
        "start",
    ] {
        let request = {
            let _untracked = heapray::capture::untracked::enter();
            let method = if endpoint == "start" { "POST" } else { "GET" };
            let request = axum::http::Request::builder().method(method);
            request
                .uri(format!("/pub/job/a/1{BASE}/{endpoint}"))
                .body(())
                .unwrap()
        };
        let waker = {
            let _untracked = heapray::capture::untracked::enter();
            std::task::Waker::from(std::sync::Arc::new(Unpark(std::thread::current())))
        };
        let before = allocated();
        // This is the service's own thread, and it is not untracked.
        let response = wait(
            &waker,
            std::pin::pin!(tower::Service::call(&mut service, request)),
        );
        let mut body = std::pin::pin!(response.unwrap().into_body());
        let mut bytes = 0;
        while let Some(frame) = wait(&waker, http_body_util::BodyExt::frame(&mut body.as_mut())) {
            bytes += frame.unwrap().into_data().unwrap().len();
        }
        assert_eq!(allocated(), before, "{endpoint}");
        assert!(bytes > 0, "{endpoint}");
    }
    let before = allocated();
    drop(std::hint::black_box(Box::new(7)));
    assert_eq!(
        allocated(),
        before + 1,
        "an allocation outside of a request is recorded"
    );
}

struct Unpark(std::thread::Thread);

impl std::task::Wake for Unpark {
    fn wake(self: std::sync::Arc<Self>) {
        self.0.unpark();
    }
}

/// Waits for a future on this thread, without a runtime and without an allocation.
fn wait<F: Future + Unpin>(waker: &std::task::Waker, mut future: F) -> F::Output {
    let mut context = std::task::Context::from_waker(waker);
    loop {
        match std::pin::Pin::new(&mut future).poll(&mut context) {
            std::task::Poll::Ready(output) => return output,
            std::task::Poll::Pending => std::thread::park(),
        }
    }
}
