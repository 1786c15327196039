use super::*;

fn origins(about: About, frames: &[(&str, &str)]) -> Vec<(String, Kind)> {
    let mut report = Report {
        about,
        ..Report::default()
    };
    for (function, file) in frames {
        report.add_frame(function, file, 1);
    }
    let origins = Origins::of(&report);
    (0..)
        .map_while(|frame| origins.index(FrameId(frame)))
        .map(|index| origins.packages()[index as usize].clone())
        .map(|package| (package.name, package.kind))
        .collect()
}

fn one(function: &str, file: &str) -> (String, Kind) {
    let about = About {
        command_line: "/usr/bin/memory-leak --port 7000".to_owned(),
        package_dirs: vec!["/opt/crates".to_owned()],
        source_dirs: vec!["/build/vendor/shop".to_owned()],
        library_dir: "/opt/rust/library".to_owned(),
        ..About::default()
    };
    origins(about, &[(function, file)]).remove(0)
}

#[test]
fn a_source_path_tells_whose_code_it_is() {
    let cases = [
        (
            "/rustc/0a1b/library/alloc/src/vec/mod.rs",
            "alloc",
            Kind::Language,
        ),
        ("/opt/rust/library/std/src/io.rs", "std", Kind::Language),
        (
            "/home/dev/.rustup/toolchains/x/lib/rustlib/src/rust/library/core/src/x.rs",
            "core",
            Kind::Language,
        ),
        (
            "/rust/deps/hashbrown-0.15.2/src/raw.rs",
            "std",
            Kind::Language,
        ),
        (
            "/usr/src/rustc-1.97.1/library/std/src/sys/backtrace.rs",
            "std",
            Kind::Language,
        ),
        (
            "/home/dev/.cargo/registry/src/index-1949/tokio-1.54.1/src/lib.rs",
            "tokio",
            Kind::Package,
        ),
        (
            "/u/.cargo/registry/src/i-1/sha-1-0.10.0-rc.1/src/lib.rs",
            "sha_1",
            Kind::Package,
        ),
        (
            "/u/.cargo/git/checkouts/my-lib-0a1b2c/77aa/src/lib.rs",
            "name",
            Kind::Package,
        ),
        (
            "/opt/crates/serde_json-1.0.1/src/de.rs",
            "serde_json",
            Kind::Package,
        ),
        (
            "/opt/crates/index-9/http-1.3.1/src/map.rs",
            "http",
            Kind::Package,
        ),
        (
            "/srv/vendor/axum-core/src/body.rs",
            "axum_core",
            Kind::Package,
        ),
        ("vendor/axum-core/src/body.rs", "axum_core", Kind::Package),
        ("/build/vendor/shop/src/cart.rs", "name", Kind::Own),
        ("src/main.rs", "name", Kind::Own),
        ("/home/me/shop/src/main.rs", "name", Kind::Own),
        ("./malloc/malloc.c", "native", Kind::Native),
        ("/lib/x86_64-linux-gnu/libc.so.6", "libc", Kind::Native),
        (
            "/usr/lib/python3/dist-packages/numpy/core.py",
            "numpy",
            Kind::Package,
        ),
        (
            "/usr/lib/python3.11/json/decoder.py",
            "python",
            Kind::Language,
        ),
        ("<frozen runpy>", "python", Kind::Language),
        ("/srv/app/leak.py", "app", Kind::Own),
    ];
    for (file, name, kind) in cases {
        assert_eq!(one("name::run", file), (name.to_owned(), kind), "{file}");
    }
}

#[test]
fn without_a_path_the_function_name_decides() {
    let exe = "/usr/bin/memory-leak";
    let cases = [
        ("memory_leak::main", "memory_leak", Kind::Own),
        ("tokio::runtime::park", "tokio", Kind::Package),
        ("slice::to_vec", "slice", Kind::Language),
        (
            "<alloc::vec::Vec<T> as Clone>::clone",
            "alloc",
            Kind::Language,
        ),
        ("<&mut dyn std::io::Write>::write", "std", Kind::Language),
        ("memory-leak+0x1234", "memory-leak", Kind::Native),
        ("main", "memory-leak", Kind::Native),
    ];
    for (function, name, kind) in cases {
        assert_eq!(one(function, exe), (name.to_owned(), kind), "{function}");
    }
}

#[test]
fn the_profiler_is_not_the_service_it_is_in() {
    let poll = "<heapray::endpoints::MountFuture<F> as core::future::Future>::poll";
    let found = origins(About::default(), &[(poll, "/home/me/shop/src/mounted.rs")]);
    assert_eq!(found, [("heapray".to_owned(), Kind::Package)]);
}

#[test]
fn a_trait_method_of_foreign_types_counts_for_the_crate_that_wrote_it() {
    let file = "/home/me/shop-backend/src/cart.rs";
    let found = origins(
        About::default(),
        &[
            ("<alloc::vec::Vec<T> as shop::Total>::total", file),
            ("shop::cart::add", file),
            ("{closure#0}", "/home/me/shop-backend/src/main.rs"),
        ],
    );
    assert!(
        found.iter().all(|o| *o == ("shop".to_owned(), Kind::Own)),
        "{found:?}"
    );
}

#[test]
fn a_method_of_a_type_without_a_crate_belongs_to_its_file() {
    let found = origins(
        About::default(),
        &[
            ("tuple::into_response", "/w/vendor/axum-core/src/body.rs"),
            ("tuple::register_dtor", "/rustc/0a/library/std/src/lazy.rs"),
        ],
    );
    let expected = [("axum_core", Kind::Package), ("std", Kind::Language)];
    assert_eq!(found, expected.map(|(name, kind)| (name.to_owned(), kind)));
}

#[test]
fn generated_code_belongs_to_the_crate_in_its_name() {
    // The file is that of the code that was inlined there.
    let library = "/rustc/0a/library/core/src/ops/range.rs";
    let mut report = Report::default();
    for (function, file, line) in [
        ("shop::run", "/w/src/main.rs", 3),
        ("shop::main", library, 0),
        ("alloc::vec::Vec::new", "/w/src/main.rs", 0),
        ("other::f", library, 0),
    ] {
        report.add_frame(function, file, line);
    }
    let origins = Origins::of(&report);
    let kinds = (0..4).map(|frame| origins.kind(FrameId(frame)));
    let expected = [Kind::Own, Kind::Own, Kind::Language, Kind::Language];
    assert_eq!(kinds.collect::<Vec<_>>(), expected);
}
