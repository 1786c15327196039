//! A made-up report of an axum service that leaks, of any size and the same at every run.

#[path = "extras.rs"]
pub(crate) mod extras;

use heapray_report::Report;
use heapray_report::model::{
    About, Allocator, Conditions, ContextId, Frame, FrameId, Moment, Overhead, Sampling,
    SamplingRate, Site, StackId, Tally, Thread, ThreadId, Totals,
};

/// Name that would run a script on a page that wrote it as markup.
pub(crate) const HOSTILE: &str =
    "</script><script>alert(\"shop\")</script><img src=x onerror=alert(1)>";

const STD: &str = "/rustc/59807616e1fa2540724bfbac14d7976d7e4a3860/library";
const REGISTRY: &str = "/usr/local/cargo/registry/src/index-1949cf8c6b5b557f";

/// Function, file without its base, and line. The base follows from the function's crate.
type Place = (&'static str, &'static str, u32);

const THREAD: &[Place] = &[
    (
        "__clone3",
        "./misc/../sysdeps/unix/sysv/linux/x86_64/clone3.S",
        81,
    ),
    ("start_thread", "./nptl/pthread_create.c", 442),
    (
        "std::sys::thread::unix::Thread::new::thread_start",
        "std/src/sys/thread/unix.rs",
        130,
    ),
    (
        "<alloc::boxed::Box<dyn core::ops::function::FnOnce<(), Output = ()>> as core::ops::function::FnOnce<()>>::call_once",
        "alloc/src/boxed.rs",
        2206,
    ),
    (
        "core::ops::function::FnOnce::call_once{{vtable.shim}}",
        "core/src/ops/function.rs",
        250,
    ),
    (
        "std::thread::lifecycle::spawn_unchecked::{{closure}}",
        "std/src/thread/lifecycle.rs",
        91,
    ),
    (
        "tokio::runtime::blocking::pool::Inner::run",
        "tokio-1.54.1/src/runtime/blocking/pool.rs",
        492,
    ),
    (
        "tokio::runtime::scheduler::multi_thread::worker::run",
        "tokio-1.54.1/src/runtime/scheduler/multi_thread/worker.rs",
        491,
    ),
    (
        "tokio::runtime::scheduler::multi_thread::worker::Context::run",
        "tokio-1.54.1/src/runtime/scheduler/multi_thread/worker.rs",
        549,
    ),
    (
        "tokio::runtime::scheduler::multi_thread::worker::Context::run_task",
        "tokio-1.54.1/src/runtime/scheduler/multi_thread/worker.rs",
        595,
    ),
    (
        "tokio::runtime::task::harness::Harness<T,S>::poll",
        "tokio-1.54.1/src/runtime/task/harness.rs",
        153,
    ),
];

const CONNECTION: &[Place] = &[
    (
        "<hyper_util::server::conn::auto::UpgradeableConnection<I,S,E> as core::future::future::Future>::poll",
        "hyper-util-0.1.21/src/server/conn/auto/mod.rs",
        709,
    ),
    (
        "hyper::proto::h1::dispatch::Dispatcher<D,Bs,I,T>::poll_catch",
        "hyper-1.12.0/src/proto/h1/dispatch.rs",
        138,
    ),
    (
        "hyper::proto::h1::dispatch::Dispatcher<D,Bs,I,T>::poll_loop",
        "hyper-1.12.0/src/proto/h1/dispatch.rs",
        168,
    ),
    (
        "<axum::routing::route::RouteFuture<E> as core::future::future::Future>::poll",
        "axum-0.8.9/src/routing/route.rs",
        159,
    ),
    (
        "<tower_http::trace::future::ResponseFuture<Fut,C> as core::future::future::Future>::poll",
        "tower-http-0.7.1/src/trace/future.rs",
        54,
    ),
    (
        "<axum::handler::service::HandlerService<H,T,S> as tower_service::Service<http::request::Request<B>>>::call::{{closure}}",
        "axum-0.8.9/src/handler/service.rs",
        168,
    ),
];

/// Group of allocations of a small service: whether they are below [`CONNECTION`], places, live and allocated blocks, bytes
/// of one.
type Story = (bool, &'static [Place], u64, u64, u64);

const STORIES: &[Story] = &[
    (
        true,
        &[
            (
                "shop::routes::perform::{{closure}}",
                "/build/shop/src/routes/perform.rs",
                41,
            ),
            (
                "shop::cache::SessionCache::remember",
                "/build/shop/src/cache.rs",
                88,
            ),
            ("shop::cache::numbers", "/build/shop/src/cache.rs", 112),
        ],
        3,
        3,
        8_000_000,
    ),
    (
        true,
        &[
            (
                "shop::routes::search::{{closure}}",
                "/build/shop/src/routes/search.rs",
                27,
            ),
            (
                "shop::index::Index::query",
                "/build/shop/src/index/mod.rs",
                203,
            ),
            (
                "<alloc::vec::Vec<T,A> as core::iter::traits::collect::Extend<T>>::extend",
                "alloc/src/vec/mod.rs",
                3321,
            ),
        ],
        214,
        48_210,
        41_984,
    ),
    (
        true,
        &[
            (
                "shop::routes::search::{{closure}}",
                "/build/shop/src/routes/search.rs",
                31,
            ),
            (
                "shop::index::Index::highlight",
                "/build/shop/src/index/mod.rs",
                251,
            ),
            (
                "regex_automata::meta::regex::Regex::create_captures",
                "regex-automata-0.4.13/src/meta/regex.rs",
                1541,
            ),
            (
                "regex_automata::util::captures::Captures::all",
                "regex-automata-0.4.13/src/util/captures.rs",
                193,
            ),
        ],
        1_024,
        96_000,
        1_536,
    ),
    (
        true,
        &[
            (
                "shop::routes::cart::add::{{closure}}",
                "/build/shop/src/routes/cart.rs",
                64,
            ),
            ("shop::store::Store::put", "/build/shop/src/store.rs", 140),
            (
                "serde_json::value::to_value",
                "serde_json-1.0.154/src/value/mod.rs",
                1001,
            ),
            (
                "<serde_json::value::ser::SerializeMap as serde_core::ser::SerializeStruct>::serialize_field",
                "serde_json-1.0.154/src/value/ser.rs",
                684,
            ),
            (
                "indexmap::map::IndexMap<K,V,S>::insert_full",
                "indexmap-2.14.0/src/map.rs",
                480,
            ),
        ],
        5_331,
        83_114,
        640,
    ),
    (
        true,
        &[
            (
                "shop::routes::cart::add::{{closure}}",
                "/build/shop/src/routes/cart.rs",
                71,
            ),
            ("shop::audit::Trail::push", "/build/shop/src/audit.rs", 33),
            ("alloc::fmt::format::format_inner", "alloc/src/fmt.rs", 656),
        ],
        18_400,
        18_400,
        96,
    ),
    (
        true,
        &[
            (
                "shop::routes::health::{{closure}}",
                "/build/shop/src/routes/health.rs",
                9,
            ),
            (
                "axum::json::Json<T>::into_response",
                "axum-0.8.9/src/json.rs",
                188,
            ),
            (
                "bytes::bytes_mut::BytesMut::with_capacity",
                "bytes-1.11.0/src/bytes_mut.rs",
                148,
            ),
        ],
        0,
        220_000,
        128,
    ),
    (
        true,
        &[
            (
                "shop::routes::upload::{{closure}}",
                "/build/shop/src/routes/upload.rs",
                55,
            ),
            (
                HOSTILE,
                "/build/shop/src/\"><img src=x onerror=alert(2)>.rs",
                1,
            ),
        ],
        12,
        40,
        131_072,
    ),
    (
        false,
        &[
            (
                "shop::jobs::rates::refresh::{{closure}}",
                "/build/shop/src/jobs/rates.rs",
                74,
            ),
            (
                "reqwest::async_impl::response::Response::json::{{closure}}",
                "reqwest-0.13.4/src/async_impl/response.rs",
                271,
            ),
            (
                "serde_json::de::from_slice",
                "serde_json-1.0.154/src/de.rs",
                2592,
            ),
            (
                "shop::rates::Table::from_rows",
                "/build/shop/src/rates.rs",
                58,
            ),
            (
                "hashbrown::raw::RawTable<T,A>::reserve_rehash",
                "hashbrown-0.17.0/src/raw.rs",
                1012,
            ),
        ],
        22,
        1_460,
        98_320,
    ),
    (
        false,
        &[
            (
                "shop::jobs::metrics::flush::{{closure}}",
                "/build/shop/src/jobs/metrics.rs",
                30,
            ),
            (
                "prometheus_client::encoding::text::encode",
                "prometheus-client-0.25.2/src/encoding/text.rs",
                62,
            ),
            (
                "alloc::string::String::push_str",
                "alloc/src/string.rs",
                1147,
            ),
        ],
        1,
        8_800,
        65_536,
    ),
    (
        false,
        &[
            (
                "rustls::client::client_conn::ClientConnection::new",
                "rustls-0.23.40/src/client/client_conn.rs",
                815,
            ),
            ("OPENSSL_malloc", "./crypto/mem.c", 201),
        ],
        64,
        2_104,
        17_408,
    ),
    (
        false,
        &[(
            "tokio::runtime::task::core::Cell<T,S>::new",
            "tokio-1.54.1/src/runtime/task/core.rs",
            172,
        )],
        141,
        310_000,
        2_048,
    ),
];

const POOL: &[Place] = &[
    (
        "shop::orders::Order::price",
        "/build/shop/src/orders.rs",
        12,
    ),
    (
        "shop::orders::Order::lines::{{closure}}",
        "/build/shop/src/orders.rs",
        48,
    ),
    (
        "shop::index::tokenize",
        "/build/shop/src/index/tokens.rs",
        20,
    ),
    (
        "shop::index::Postings::merge",
        "/build/shop/src/index/postings.rs",
        77,
    ),
    ("shop::views::render", "/build/shop/src/views.rs", 15),
    (
        "shop_model::Product::from_row",
        "/build/shop-model/src/product.rs",
        33,
    ),
    (
        "shop_model::Money::parse",
        "/build/shop-model/src/money.rs",
        61,
    ),
    (
        "<futures_util::future::try_maybe_done::TryMaybeDone<Fut> as core::future::future::Future>::poll",
        "futures-util-0.3.33/src/future/try_maybe_done.rs",
        70,
    ),
    (
        "<core::pin::Pin<P> as core::future::future::Future>::poll",
        "core/src/future/future.rs",
        133,
    ),
    (
        "<tracing::instrument::Instrumented<T> as core::future::future::Future>::poll",
        "tracing-0.1.44/src/instrument.rs",
        321,
    ),
    (
        "<core::iter::adapters::map::Map<I,F> as core::iter::traits::iterator::Iterator>::fold",
        "core/src/iter/adapters/map.rs",
        128,
    ),
    (
        "sqlx_core::pool::Pool<DB>::acquire::{{closure}}",
        "sqlx-core-0.9.0/src/pool/mod.rs",
        390,
    ),
    (
        "sqlx_postgres::row::PgRow::try_get_raw",
        "sqlx-postgres-0.9.0/src/row.rs",
        31,
    ),
    (
        "<serde_json::de::MapAccess<R> as serde_core::de::MapAccess>::next_value_seed",
        "serde_json-1.0.154/src/de.rs",
        2025,
    ),
    (
        "<alloc::vec::Vec<T> as alloc::vec::spec_from_iter::SpecFromIter<T,I>>::from_iter",
        "alloc/src/vec/spec_from_iter.rs",
        33,
    ),
    (
        "alloc::raw_vec::RawVecInner<A>::reserve::do_reserve_and_handle",
        "alloc/src/raw_vec/mod.rs",
        550,
    ),
];

/// Builds a report of at least `nodes` call tree nodes, or of the built-in stories if `nodes` is 0.
pub(crate) fn sample(nodes: usize) -> Report {
    let mut builder = Builder::default();
    for &(connected, places, live, allocated, size) in STORIES {
        let mut stack = builder.push_all(StackId::EMPTY, THREAD);
        if connected {
            stack = builder.push_all(stack, CONNECTION);
        }
        let stack = builder.push_all(stack, places);
        builder.site(stack, [live, live + live / 8, allocated], size);
    }
    let hub = builder.push_all(StackId::EMPTY, THREAD);
    let hub = builder.push_all(hub, CONNECTION);
    while builder.report.stacks.len() < nodes {
        builder.wander(hub);
    }
    builder.finish()
}

#[derive(Default)]
struct Builder {
    report: Report,
    random: u64,
}

impl Builder {
    fn random(&mut self, below: usize) -> usize {
        self.random = self
            .random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.random >> 33).expect("31 bits") % below
    }

    fn push_all(&mut self, stack: StackId, places: &[Place]) -> StackId {
        places.iter().fold(stack, |stack, &(function, file, line)| {
            self.push(stack, function, file, line)
        })
    }

    fn push(&mut self, stack: StackId, function: &str, file: &str, line: u32) -> StackId {
        let language = ["std/", "core/", "alloc/"];
        let file = if file.starts_with(['/', '.']) {
            file.to_owned()
        } else if language.iter().any(|dir| file.starts_with(dir)) {
            format!("{STD}/{file}")
        } else {
            format!("{REGISTRY}/{file}")
        };
        let frame = Frame {
            function: self.report.strings.intern(function),
            file: self.report.strings.intern(&file),
            line,
        };
        let known = self.report.frames.iter().rposition(|known| *known == frame);
        let id = known.unwrap_or_else(|| {
            self.report.frames.push(frame);
            self.report.frames.len() - 1
        });
        let id = FrameId(u32::try_from(id).expect("few frames"));
        self.report.stacks.child(stack, id)
    }

    /// Adds one random path below `stack`, as deep as async services are, and a site at its end.
    fn wander(&mut self, mut stack: StackId) {
        let handler = self.random(40) * self.random(40) / 40;
        stack = self.push(
            stack,
            &format!("shop::routes::r{handler:02}::handle::{{{{closure}}}}"),
            &format!("/build/shop/src/routes/r{handler:02}.rs"),
            21,
        );
        for _ in 0..4 + self.random(14) {
            // Squared: a few paths are taken often, most rarely, as in real services.
            let pick = self.random(POOL.len()) * (1 + self.random(POOL.len())) / POOL.len();
            let (function, file, line) = POOL[pick];
            let line = line + u32::try_from(self.random(4) * self.random(9)).expect("small");
            stack = self.push(stack, function, file, line);
        }
        let allocated = 1 + self.random(900) as u64;
        let live = allocated / (1 + self.random(60) as u64);
        let size = 16u64 << (self.random(6) + self.random(5));
        self.site(stack, [live, (live + allocated) / 2, allocated], size);
    }

    /// Adds a site. `counts`: live, at the high-water mark, allocated in total. Blocks of collections that grow are mostly
    /// made by `realloc`, and every third call stack runs on two threads.
    fn site(&mut self, stack: StackId, counts: [u64; 3], size: u64) {
        let number = self.report.sites.len();
        let grows = number % 6 == 2;
        let shared = number.is_multiple_of(3);
        let [live, high_water, allocated] = counts;
        let high_water = high_water.min(allocated);
        let thread = ThreadId(u32::from(number % 5 == 4));
        let mut rest = [live, high_water, allocated];
        if grows || shared {
            let first = rest.map(|count| count / 4);
            rest = [0, 1, 2].map(|side| rest[side] - first[side]);
            let second = ThreadId(if shared { 2 } else { thread.0 });
            self.part(second, Allocator::Malloc, stack, first, size);
        }
        let allocator = match (grows, number % 7) {
            (true, _) => Allocator::Realloc,
            (_, 5) => Allocator::Mmap,
            (_, 6) => Allocator::Calloc,
            _ => Allocator::Malloc,
        };
        self.part(thread, allocator, stack, rest, size);
    }

    fn part(
        &mut self,
        thread: ThreadId,
        allocator: Allocator,
        stack: StackId,
        counts: [u64; 3],
        size: u64,
    ) {
        let tally = |count: u64| Tally {
            count,
            bytes: count * size,
        };
        let [live, high_water, allocated] = counts.map(tally);
        let dead = allocated.count - live.count;
        self.report.sites.push(Site {
            context: ContextId::NONE,
            thread,
            stack,
            allocator,
            allocated,
            high_water,
            live,
            temporary: tally(if size <= 2_048 { dead * 9 / 10 } else { 0 }),
            oldest_live_ms: None,
        });
    }

    fn finish(mut self) -> Report {
        for (tid, name, threads) in [
            (4_102, "tokio-runtime-w", 8),
            (4_110, "rates", 1),
            (4_111, "<i>pool</i>", 4),
        ] {
            let name = self.report.strings.intern(name);
            self.report.threads.push(Thread { tid, name, threads });
        }
        let mut totals = Totals {
            high_water_ms: Some(extras::LOAD_MS),
            ..Totals::default()
        };
        for site in &self.report.sites {
            totals.allocated += site.allocated;
            totals.live += site.live;
            totals.high_water += site.high_water;
        }
        totals.freed = Tally {
            count: totals.allocated.count - totals.live.count,
            bytes: totals.allocated.bytes - totals.live.bytes,
        };
        totals.by_allocator = Allocator::ALL
            .map(|kind| (kind, self.by_allocator(kind)))
            .into_iter()
            .filter(|(_, tally)| tally.count > 0)
            .collect();
        self.report.timeline = self.timeline(&totals);
        self.report.about = About {
            command_line: "/usr/local/bin/shop --port 7000 --workers 8".to_owned(),
            pid: 4_102,
            start_ms: 1_795_253_537_000,
            end_ms: 1_795_253_537_000 + i64::try_from(extras::END_MS).expect("three minutes"),
            events: totals.allocated.count + totals.freed.count + 3_412,
            library_dir: STD.to_owned(),
            package_dirs: vec![REGISTRY.to_owned()],
            source_dirs: vec!["/build/shop".to_owned()],
            own_crates: Vec::new(),
            known: Vec::new(),
            source_root: "/build/shop".to_owned(),
            source_url: "https://git.example/shop/blob/v2.1/{file}#L{line}".to_owned(),
            replicas: Vec::new(),
            untrimmed: false,
            producer: "heapray 0.1.0".to_owned(),
            python_allocator: 3,
        };
        self.report.conditions = Conditions {
            still_recording: true,
            hooks: "got".to_owned(),
            unknown_frees: 3_412,
            log_given_up: Some("the event log reached its limit of 512 MiB".to_owned()),
            overhead: Overhead {
                memory_bytes: 5_242_880,
                collector_cpu_ns: 1_310_000_000,
                log_bytes: 0,
            },
            ..Conditions::default()
        };
        self.report.totals = totals;
        extras::add(&mut self.report);
        self.report
    }

    fn by_allocator(&self, kind: Allocator) -> Tally {
        let mut tally = Tally::default();
        for site in self
            .report
            .sites
            .iter()
            .filter(|site| site.allocator == kind)
        {
            tally += site.allocated;
        }
        tally
    }

    /// Returns a rising saw: requests come in waves, and each wave leaves some memory behind.
    fn timeline(&mut self, totals: &Totals) -> Vec<Moment> {
        let mut rss = 21_000_000;
        (0..921u64)
            .map(|step| {
                let at_ms = step * 200;
                let end_ms = extras::LOAD_MS;
                let near_peak = at_ms.min(end_ms);
                let base = totals.live.bytes / 3 + totals.live.bytes * 2 / 3 * near_peak / end_ms;
                let room = totals.high_water.bytes.saturating_sub(totals.live.bytes);
                let wave = room * (near_peak % 23_000) / 23_000 * near_peak / end_ms;
                let noise = self.random(400_000) as u64;
                let heap = match at_ms.cmp(&end_ms) {
                    std::cmp::Ordering::Less => (base + wave + noise).min(totals.high_water.bytes),
                    std::cmp::Ordering::Equal => totals.high_water.bytes,
                    std::cmp::Ordering::Greater => totals.live.bytes,
                };
                rss = (heap + heap / 9 + 18_000_000).max(rss - rss / 400);
                Moment {
                    at_ms,
                    rss,
                    heap,
                    own: 5_242_880,
                }
            })
            .collect()
    }
}

/// Returns a possible sampling of this report.
#[allow(dead_code)] // not everything that includes this file samples
pub(crate) fn sampling() -> Sampling {
    Sampling {
        rates: vec![SamplingRate {
            at_ms: 0,
            mean_bytes: 512 << 10,
        }],
        samples: 1_000,
        asked: Tally {
            count: 2_000_000,
            bytes: 512_000_000,
        },
        allocated: Tally {
            count: 90_000,
            bytes: 32_000_000,
        },
        live: Tally {
            count: 9_000,
            bytes: 3_000_000,
        },
        high_water: Tally {
            count: 12_000,
            bytes: 4_000_000,
        },
    }
}
