//! Tests a program whose global allocator is neither hooked nor wrapped: the start fails with an error, instead of an empty
//! report later.
//!
//! The tests are a program of their own, because a program has one global allocator.
mod support;

use heapray::capture::{control, hook};
use heapray::session::{Session, StartError};
use heapray::{Error, InitError};
use support::process::{is_alone, only, passed, test_name};
use support::{Dir, turn};

#[global_allocator]
static GLOBAL: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[test]
fn a_session_does_not_start_and_leaves_nothing_behind() {
    let _turn = turn();
    let dir = Dir::new("unseen");
    let before = hook::got::values();
    for _ in 0..3 {
        let error = Session::start(&dir.options()).unwrap_err();
        assert!(matches!(error, StartError::NothingVisible), "{error}");
        let text = error.to_string();
        assert!(text.contains("heapray::Alloc"), "{text}");
        assert_eq!((control::session(), hook::patched()), (0, 0));
        assert_eq!(hook::got::values(), before);
        assert_eq!(std::fs::read_dir(&dir.0).unwrap().count(), 0);
    }
}

#[test]
fn a_profiler_is_not_built() {
    let _turn = turn();
    let dir = Dir::new("unbuilt");
    let built = heapray::builder()
        .ignore_environment()
        .enabled(true)
        .dir(&dir.0)
        .build();
    let Err(InitError::Start(Error::Start(error))) = built else {
        panic!("{built:?}");
    };
    assert!(matches!(*error, StartError::NothingVisible));
}

/// Runs in a process of its own: `init` prints the error, the service goes on, and a start or a report fails with the same
/// error.
#[test]
fn init_reports_the_error_and_the_service_goes_on() {
    let test = test_name!();
    let dir = Dir::new("init");
    if !is_alone(test) {
        let mut command = only(test);
        command
            .env("MEMRAY_PROFILER", "true")
            .env("MEMRAY_PROFILER_DIR", &dir.0);
        let output = passed(command);
        let text = String::from_utf8_lossy(&output.stderr);
        let told = text.matches("nothing is recorded").count();
        assert!(told == 1 && text.contains("heapray::Alloc"), "{text}");
        return;
    }
    let profiler = heapray::init();
    let again = heapray::init();
    assert!(profiler.is_enabled() && again.is_enabled());
    assert_eq!(profiler.status().state, heapray::State::Stopped);
    let trouble = profiler.status().trouble.unwrap();
    assert!(trouble.contains("heapray::Alloc"), "{trouble}");
    assert!(matches!(profiler.start(), Err(Error::Start(_))));
    assert!(matches!(profiler.report(), Err(Error::NoReport)));
    let served: Vec<String> = (0..1000).map(|number| number.to_string()).collect();
    assert_eq!(served.len(), 1000);
    assert_eq!((control::session(), hook::patched()), (0, 0));
    profiler.shutdown().unwrap();
}
