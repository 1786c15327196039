use super::*;

fn unit(root: &str, directory: &str, crate_name: &str) -> Unit {
    Unit {
        root: root.to_owned(),
        directory: directory.to_owned(),
        crate_name: (!crate_name.is_empty()).then(|| crate_name.to_owned()),
    }
}

fn found(units: &[Unit], program: &str, files: &[&str]) -> (String, Vec<String>, Vec<String>) {
    let units = units.iter().cloned().collect();
    let dirs = Directories::of(files.iter().copied(), &units, program);
    (
        dirs.library,
        dirs.packages.into_iter().collect(),
        dirs.sources.into_iter().collect(),
    )
}

fn owned(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|&text| text.to_owned()).collect()
}

#[test]
fn directories_are_grouped_by_kind() {
    let (library, packages, sources) = found(
        &[],
        "app",
        &[
            "/rustc/1.95.0/library/core/src/fmt/mod.rs",
            "/rust/deps/hashbrown-0.15.5/src/raw/mod.rs",
            "/home/dev/.cargo/registry/src/index-19/bytes-1.11.0/src/lib.rs",
            "/home/dev/.cargo/registry/src/index-19/tokio-1.54.1/src/runtime/mod.rs",
            "/home/dev/.cargo/git/checkouts/axum-1a/2b3c/axum/src/lib.rs",
            "/home/me/app/src/main.rs",
            "/home/me/app/src/routes/perform.rs",
            "/home/me/src/other/src/lib.rs",
            "/home/me/app/tests/it.rs",
            "/usr/lib/x86_64-linux-gnu/libc.so.6",
            "malloc.c",
            "lib.rs",
            "",
        ],
    );
    assert_eq!(library, "/rustc/1.95.0/library");
    let expected = [
        "/home/dev/.cargo/git/checkouts/axum-1a/2b3c",
        "/home/dev/.cargo/registry/src/index-19",
    ];
    assert_eq!(packages, owned(&expected));
    let expected = [
        "/home/me/app/src",
        "/home/me/app/tests",
        "/home/me/src/other/src",
    ];
    assert_eq!(sources, owned(&expected));
}

#[test]
fn a_vendored_package_is_known_by_the_directory_it_was_compiled_in() {
    // Cargo compiles a vendored package in its own directory, also below the workspace's.
    let units = [
        unit("crates/shop/src/main.rs", "/w", "shop"),
        unit("crates/core/src/lib.rs", "/w", "shop_core"),
        unit("/w/crates-io/slab/src/lib.rs", "/w/crates-io/slab", "slab"),
        unit("/srv/shared/src/lib.rs", "/srv/shared", "shared"),
    ];
    let (_, packages, sources) = found(
        &units,
        "shop",
        &[
            "/w/crates/shop/src/main.rs",
            "/w/crates/core/src/lib.rs",
            "/w/crates-io/slab/src/lib.rs",
            "/srv/shared/src/lib.rs",
        ],
    );
    assert_eq!(packages, owned(&["/w/crates-io"]));
    let own = [
        "/srv/shared/src",
        "/w/crates/core/src",
        "/w/crates/shop/src",
    ];
    assert_eq!(sources, owned(&own));
}

#[test]
fn a_directory_with_the_usual_packages_contains_packages() {
    let units = [
        unit("src/main.rs", "/w", "shop"),
        unit("/opt/crates/gimli/src/lib.rs", "/opt/crates/gimli", "gimli"),
        unit("/opt/crates/libc/src/lib.rs", "/opt/crates/libc", "libc"),
        unit("/opt/crates/slab/src/lib.rs", "/opt/crates/slab", "slab"),
        // One of them alone is somebody's own copy.
        unit("/home/me/serde/src/lib.rs", "/home/me/serde", "serde"),
    ];
    let files = ["/opt/crates/slab/src/lib.rs", "/home/me/serde/src/lib.rs"];
    let (_, packages, sources) = found(&units, "shop", &files);
    assert_eq!(packages, owned(&["/opt/crates"]));
    assert_eq!(sources, owned(&["/home/me/serde/src"]));
}

#[test]
fn the_library_is_known_by_its_units_below_any_root() {
    let file = "/b/rust/library/alloc/src/slice.rs";
    let units = [unit("/b/rust/library/std/src/lib.rs", "/b/rust", "std")];
    assert_eq!(found(&units, "app", &[file]).0, "/b/rust/library");
    // A crate of another name in such a directory is not the library.
    let units = [unit("/b/rust/library/std/src/lib.rs", "/b/rust", "books")];
    let (library, _, sources) = found(&units, "app", &[file]);
    assert_eq!(
        (library.as_str(), sources),
        ("", owned(&["/b/rust/library/alloc/src"]))
    );
}

#[test]
fn the_programs_crate_is_found_by_its_name_or_root_file() {
    let directory = |units: &[Unit], program: &str| {
        let units: BTreeSet<Unit> = units.iter().cloned().collect();
        program_unit(&units, program).map(|unit| unit.directory.clone())
    };
    let lib = unit("/v/x/src/lib.rs", "/v/x", "x");
    for (own, program) in [
        (unit("server.rs", "/w", "my_shop"), "my-shop"),
        (
            unit("src/lib.rs", "/w", "my_shop"),
            "my_shop-0123456789abcdef",
        ),
        (unit("src/bin/my-shop.rs", "/w", ""), "my-shop"),
        (unit("src/main.rs", "/w", ""), "renamed"),
    ] {
        let found = directory(&[lib.clone(), own.clone()], program);
        assert_eq!(found.as_deref(), Some("/w"), "{own:?}");
    }
    assert_eq!(directory(&[lib], "renamed"), None);
}

#[test]
fn a_program_in_an_odd_place_is_its_own() {
    for (root, directory) in [
        ("src/main.rs", "/home/vendor/shop"),
        ("src/main.rs", "/build/shop-1.2.3"),
        (
            "/r/registry/src/i/shop-1.2.3/src/main.rs",
            "/r/registry/src/i/shop-1.2.3",
        ),
    ] {
        let file = match root.starts_with('/') {
            true => root.to_owned(),
            false => format!("{directory}/{root}"),
        };
        let (_, packages, sources) = found(&[unit(root, directory, "shop")], "shop", &[&file]);
        assert_eq!((packages, sources.len()), (owned(&[]), 1), "{file}");
    }
}

#[test]
fn a_crate_of_the_workspace_may_lie_beside_vendored_ones() {
    let file = "/w/services/vendor/api/src/main.rs";
    let own = unit("services/vendor/api/src/main.rs", "/w", "api");
    let slab = unit("/w/vendor/slab/src/lib.rs", "/w/vendor/slab", "slab");
    let (_, packages, sources) = found(&[own.clone(), slab], "api", &[file]);
    assert_eq!((packages, sources.len()), (owned(&[]), 1));
    // Where all crates are compiled in one directory, only the path can show it.
    let slab = unit("vendor/slab/src/lib.rs", "/w", "slab");
    let (_, packages, _) = found(&[own, slab], "api", &["/w/vendor/slab/src/lib.rs"]);
    assert_eq!(packages, owned(&["/w/vendor"]));
}
