//! Tests of parallel profiles: a profiled function returns its own result, and the page shows the work of the pool.
#![cfg(all(heapray_native, target_env = "gnu"))]

use std::hint::black_box;
use std::num::ParseIntError;
use std::sync::Mutex;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use crate::cpu_samples::sampled;
use crate::page::{Page, page_path};
use crate::support::turn;
use heapray::cpu_profile::Stats;
use heapray::parallel_profile::{TaskLayer, builder, task};
use rayon::prelude::*;
use tracing_subscriber::layer::SubscriberExt as _;

fn burns(ms: u64) -> u64 {
    let now = || Duration::from_nanos(heapray::capture::arch::thread_cpu_ns());
    let end = now() + Duration::from_millis(ms);
    let mut sum = 0u64;
    while now() < end {
        sum = (0..20_000u64).fold(sum, |sum, n| black_box(sum).wrapping_add(n));
    }
    sum
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .unwrap()
}

/// CPU time of each of the eight tasks of [`on_tokio`], in milliseconds.
static CRUNCHES_FOR: AtomicU64 = AtomicU64::new(0);

#[heapray::parallel_profiler(n_workers = 2, threads_per_worker = 2, report_name = page_path("tokio"))]
async fn on_tokio(texts: &[&str]) -> Result<u64, ParseIntError> {
    let parts: Vec<_> = (0..8)
        .map(|part| {
            tokio::spawn(async move {
                let _task = task("crunch");
                black_box(burns(CRUNCHES_FOR.load(Relaxed)));
                part
            })
        })
        .collect();
    let mut sum = 0;
    for part in parts {
        sum += part.await.expect("no part panics");
    }
    for text in texts {
        sum += text.parse::<u64>()?;
    }
    Ok(sum)
}

#[test]
fn an_async_function_spawns_on_a_pool_of_its_size_and_keeps_its_result() {
    let _turn = turn();
    let run = |cpu: Duration| {
        CRUNCHES_FOR.store(cpu.as_millis() as u64 / 8, Relaxed);
        assert_eq!(runtime().block_on(on_tokio(&["2", "3"])), Ok(33));
        Page::read(&page_path("tokio"))
    };
    let page = sampled(run, |page| page.share_of("burns") > 0.5);
    assert!(
        page.data["title"]
            .as_str()
            .unwrap()
            .ends_with("parallel_profile::on_tokio")
    );
    assert_eq!(page.data["pool"], "tokio, 2 workers of 2 threads");
    assert_eq!(page.data["outcome"], "returned");
    // On a busy machine, one thread may do all that its worker has to do.
    let workers = page.workers();
    for worker in ["worker-0.", "worker-1."] {
        let threads = workers.iter().filter(|name| name.starts_with(worker));
        assert!((1..=2).contains(&threads.count()), "{workers:?}");
    }
    let crunched = page.tasks("crunch");
    assert_eq!(crunched.len(), 8);
    assert!(
        crunched
            .iter()
            .all(|task| task.worker.starts_with("worker-"))
    );
    assert!(crunched.iter().all(|task| task.length_ms >= 25.0));
    // Each poll of the function itself runs on the thread that awaits it.
    let own = page.tasks("parallel_profile::on_tokio");
    assert!(!own.is_empty() && own.iter().all(|task| !task.worker.starts_with("worker-")));
    assert!(page.cpu_ms("worker-") >= 200.0);
    assert!(page.data["allocations"].is_null());

    let failed = runtime().block_on(on_tokio(&["none"]));
    assert!(failed.is_err());
    assert_eq!(Page::read(&page_path("tokio")).tasks("crunch").len(), 8);
}

#[heapray::parallel_profiler(n_workers = 2, report_name = page_path("rayon"))]
fn on_rayon(numbers: &mut Vec<u64>) -> Result<u64, ParseIntError> {
    numbers.par_iter_mut().for_each(|number| {
        let _task = task("square");
        black_box(burns(10));
        *number *= *number;
    });
    let more = "1".parse::<u64>()?;
    Ok(numbers.iter().sum::<u64>() + more)
}

#[test]
fn a_plain_function_runs_on_a_rayon_pool_of_its_size() {
    let _turn = turn();
    let mut numbers = vec![1, 2, 3, 4];
    assert_eq!(on_rayon(&mut numbers), Ok(31));
    assert_eq!(numbers, [1, 4, 9, 16]);
    let page = Page::read(&page_path("rayon"));
    assert_eq!(page.data["pool"], "rayon, 2 workers of 1 thread");
    let squares = page.tasks("square");
    assert_eq!(squares.len(), 4);
    assert!(
        squares
            .iter()
            .all(|task| task.worker.starts_with("worker-"))
    );
    // The function itself runs on one of the workers, and squares on that worker are below it.
    assert_eq!(page.tasks("parallel_profile::on_rayon").len(), 1);
}

#[heapray::parallel_profiler(report_name = page_path("panic"))]
fn panics() -> u8 {
    let _task = task("last");
    panic!("expected");
}

#[test]
fn a_panic_goes_on_and_its_page_says_so() {
    let _turn = turn();
    std::panic::set_hook(Box::new(|_| {}));
    let caught = std::panic::catch_unwind(panics).unwrap_err();
    let _ = std::panic::take_hook();
    assert_eq!(caught.downcast_ref::<&str>(), Some(&"expected"));
    let page = Page::read(&page_path("panic"));
    assert_eq!(page.data["outcome"], "panicked");
    assert_eq!(page.tasks("last").len(), 1);
}

#[test]
fn a_future_that_is_dropped_half_way_has_a_page_too() {
    let _turn = turn();
    let never = builder("never")
        .report_name(page_path("dropped"))
        .run_async(async {
            drop(task("begin"));
            std::future::pending::<()>().await;
        });
    let outcome =
        runtime().block_on(async { tokio::time::timeout(Duration::from_millis(1), never).await });
    assert!(outcome.is_err());
    let page = Page::read(&page_path("dropped"));
    assert_eq!(page.data["outcome"], "cancelled");
    assert_eq!(page.tasks("begin").len(), 1);
}

#[test]
fn spans_are_tasks_with_the_layer_and_without_any_subscriber() {
    let _turn = turn();
    let load = || {
        tracing::info_span!("load").in_scope(|| {
            for _ in 0..3 {
                tracing::info_span!("decode").in_scope(|| black_box(burns(1)));
            }
        });
    };
    let layered = tracing_subscriber::registry().with(TaskLayer);
    tracing::subscriber::with_default(layered, || {
        builder("layered")
            .report_name(page_path("layered"))
            .run(load);
    });
    builder("bare").report_name(page_path("bare")).run(load);
    for name in ["layered", "bare"] {
        let page = Page::read(&page_path(name));
        assert_eq!(page.tasks("load").len(), 1, "{name}");
        let decoded = page.tasks("decode");
        assert_eq!(decoded.len(), 3, "{name}");
        // Depth 0 is the function, 1 the span, 2 the inner span.
        assert!(decoded.iter().all(|task| task.depth == 2), "{name}");
        assert_eq!(page.tasks(name)[0].depth, 0);
    }
    // Spans on the pool's threads are tasks as well.
    runtime().block_on(
        builder("pool")
            .n_workers(1)
            .report_name(page_path("pool"))
            .run_async(async {
                tokio::spawn(async {
                    tracing::info_span!("there").in_scope(|| black_box(burns(1)))
                })
                .await
                .unwrap()
            }),
    );
    assert_eq!(
        Page::read(&page_path("pool")).tasks("there")[0].worker,
        "worker-0"
    );
}

static STACKED: Mutex<Option<Stats>> = Mutex::new(None);

#[heapray::single_thread_profiler(callback = |stats| *STACKED.lock().unwrap() = Some(stats))]
#[heapray::parallel_profiler(n_workers = 1, report_name = page_path("stacked"))]
async fn stacked(ms: u64) -> u64 {
    let there = tokio::spawn(async move { burns(ms) });
    burns(ms) ^ there.await.unwrap_or(0)
}

#[test]
fn both_attributes_stack_and_the_future_can_be_sent() {
    let _turn = turn();
    fn sent<F: Future + Send>(future: F) -> F {
        future
    }
    let run = |cpu: Duration| {
        black_box(runtime().block_on(sent(stacked(cpu.as_millis() as u64))));
        let stats = STACKED.lock().unwrap().take().unwrap();
        // The CPU profile has the caller's half, and not the pool's.
        assert!(stats.cpu_time() >= cpu, "{stats}");
        let there = Page::read(&page_path("stacked")).cpu_ms("worker-0");
        assert!(there >= cpu.as_millis() as f64);
        stats
    };
    sampled(run, |stats| {
        let mut functions = stats.functions();
        functions.any(|function| function.name.ends_with("burns"))
    });
}

#[test]
fn a_profiled_function_inside_another_runs_without_a_profile_of_its_own() {
    let _turn = turn();
    let (outer, inner) = (page_path("outer"), page_path("inner"));
    let _ = std::fs::remove_file(&inner);
    let sum = builder("outer").report_name(&outer).run(|| {
        builder("inner").report_name(&inner).run(|| {
            drop(task("work"));
            7
        })
    });
    assert_eq!(sum, 7);
    assert!(!inner.exists());
    assert_eq!(Page::read(&outer).tasks("work").len(), 1);
}

#[test]
fn a_page_that_cannot_be_written_is_not_a_failure() {
    let _turn = turn();
    let sum = builder("nowhere")
        .report_name("/nowhere/page.html")
        .display_report(true)
        .run(|| 5);
    assert_eq!(sum, 5);
}
