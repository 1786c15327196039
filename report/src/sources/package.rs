//! Source files of packages that somebody else wrote, by their path alone.

/// Returns the directory that contains the package of `file`, or `None` if the path shows no package. The result is empty
/// for a relative path that begins with the package.
///
/// `root` is the directory in which the program was compiled. What is above it says nothing about the files below it: a
/// program may itself lie in `/home/vendor` or `/build/shop-1.2.3`.
#[must_use]
pub fn package_dir<'f>(file: &'f str, root: &str) -> Option<&'f str> {
    let start = below(file, root).map_or(0, |rest| file.len() - rest.len());
    unpacked(file, start)
        .or_else(|| checked_out(file, start))
        .or_else(|| versioned(file, start))
        .or_else(|| vendored(file, start))
}

/// Cargo unpacks packages below `$CARGO_HOME/registry/src/<index>`.
fn unpacked(file: &str, start: usize) -> Option<&str> {
    below_marker(file, start, "/registry/src/", 1)
}

/// Cargo checks git dependencies out below `$CARGO_HOME/git/checkouts/<repository>-<hash>/<commit>`. If it trims paths, only
/// the last two are left.
fn checked_out(file: &str, start: usize) -> Option<&str> {
    let trimmed = || {
        let (repository, rest) = file[start..].split_once('/')?;
        let (commit, _) = rest.split_once('/')?;
        let (_, hash) = repository.rsplit_once('-')?;
        let is_trimmed = start == 0 && is_hex(hash, 16) && is_hex(commit, 7);
        is_trimmed.then(|| &file[..repository.len() + 1 + commit.len()])
    };
    below_marker(file, start, "/git/checkouts/", 2).or_else(trimmed)
}

fn is_hex(text: &str, length: usize) -> bool {
    text.len() == length && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn below_marker<'f>(file: &'f str, start: usize, marker: &str, depth: usize) -> Option<&'f str> {
    // The slash before a directory at the start is the last character of the root.
    let from = start.saturating_sub(1);
    let at = from + file[from..].find(marker)? + marker.len();
    let end = file[at..].match_indices('/').nth(depth - 1)?.0;
    Some(&file[..at + end])
}

/// `…/tokio-1.40.0/src/lib.rs`: unpacked by another tool than cargo (Bazel, Nix, Debian, `cargo vendor --versioned-dirs`), or
/// by cargo with its paths trimmed.
///
/// Trimmed paths may contain the directory of the crate that was compiled, and then that of the source: the last one counts.
fn versioned(file: &str, start: usize) -> Option<&str> {
    let end = file.ends_with(".rs").then(|| source_root(file).len());
    let mut at = start;
    let mut found = None;
    for part in file[start..].split('/') {
        let is_dir = at + part.len() < file.len();
        if is_dir
            && version_at(part).is_some()
            && (found.is_none() || end.is_some_and(|end| at < end))
        {
            found = Some(file[..at].trim_end_matches('/'));
        }
        at += part.len() + 1;
    }
    found
}

/// Directories in which projects keep the code of others, by custom. `cargo vendor` proposes the first.
const VENDORED: [&str; 4] = ["vendor", "third_party", "third-party", "cargo-vendor-dir"];

fn vendored(file: &str, start: usize) -> Option<&str> {
    let source_root = source_root(file);
    let mut at = start;
    for part in file[start..].split('/') {
        let end = at + part.len();
        // A crate that is itself called `vendor` has its `src` in that directory.
        if VENDORED.contains(&part) && end < source_root.len() {
            return Some(&file[..end]);
        }
        at = end + 1;
    }
    None
}

/// Returns the directory of a crate: the part before its `src`, or else its `examples`, `tests` or `benches`. People keep
/// crates below `~/src`, so the last `src` counts.
#[must_use]
pub fn source_root(file: &str) -> &str {
    let others = || {
        let found = ["/examples/", "/tests/", "/benches/"].map(|dir| file.find(dir));
        found.into_iter().flatten().min()
    };
    match file.rfind("/src/").or_else(others) {
        Some(cut) => &file[..cut],
        None => file.rsplit_once('/').map_or("", |(dir, _)| dir),
    }
}

/// Returns the part of `file` after `dir/`.
#[must_use]
pub fn below<'f>(file: &'f str, dir: &str) -> Option<&'f str> {
    file.strip_prefix(dir)?.strip_prefix('/')
}

/// Returns the start of `-1.2.3`. Package names may have digits of their own (`sha-1`).
fn version_at(name: &str) -> Option<usize> {
    name.match_indices('-')
        .find(|(at, _)| {
            let major = name[at + 1..].split('.').next().unwrap_or_default();
            let dotted = name.len() > at + 1 + major.len();
            dotted && !major.is_empty() && major.bytes().all(|b| b.is_ascii_digit())
        })
        .map(|(at, _)| at)
}

/// Returns whether `name` ends in a version: `tokio-1.40.0`.
#[must_use]
pub fn has_version(name: &str) -> bool {
    version_at(name).is_some()
}

/// Returns `tokio` for `tokio-1.40.0`.
#[must_use]
pub fn without_version(name: &str) -> &str {
    version_at(name).map_or(name, |at| &name[..at])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_are_known_by_where_cargo_and_others_unpack_them() {
        for (file, dir) in [
            (
                "/home/dev/.cargo/registry/src/index-19/bytes-1.11.0/src/lib.rs",
                "/home/dev/.cargo/registry/src/index-19",
            ),
            (
                "/home/dev/.cargo/git/checkouts/axum-1a/2b3c/axum/src/lib.rs",
                "/home/dev/.cargo/git/checkouts/axum-1a/2b3c",
            ),
            (
                "/usr/share/cargo/registry/tokio-1.40.0/src/lib.rs",
                "/usr/share/cargo/registry",
            ),
            (
                "/nix/store/0a-vendor/tokio-1.40.0/src/lib.rs",
                "/nix/store/0a-vendor",
            ),
            ("external/crates__tokio-1.40.0/src/lib.rs", "external"),
            ("tokio-1.40.0/src/lib.rs", ""),
            (
                "i-19/axum-0.8.9/i-19/http-1.3.1/src/map.rs",
                "i-19/axum-0.8.9/i-19",
            ),
            ("/c/git2-sys-0.18.1/git2-1.9.0/src/odb.c", "/c"),
            (
                "axum-21338169dccaa19b/b2242cf/axum/src/lib.rs",
                "axum-21338169dccaa19b/b2242cf",
            ),
            ("/w/vendor/axum-core/src/body.rs", "/w/vendor"),
            ("vendor/axum-core/src/body.rs", "vendor"),
            (
                "/c/third_party/rust/bytes/v1/crate/src/lib.rs",
                "/c/third_party",
            ),
        ] {
            assert_eq!(package_dir(file, "/elsewhere"), Some(dir), "{file}");
        }
        for file in [
            "/w/src/main.rs",
            "src/main.rs",
            "/w/vendor/src/main.rs",
            "/w/crates/vendor/src/api/list.rs",
            "/w/sha-1/src/lib.rs",
            "/w/vendor.rs",
            "",
        ] {
            assert_eq!(package_dir(file, "/elsewhere"), None, "{file}");
        }
    }

    #[test]
    fn a_crates_directory_is_above_its_sources() {
        for (file, dir) in [
            ("/home/me/src/shop/src/cart/mod.rs", "/home/me/src/shop"),
            ("/w/examples/walk/src/main.rs", "/w/examples/walk"),
            ("/w/shop/tests/it.rs", "/w/shop"),
            ("/w/shop/src/tests/it.rs", "/w/shop"),
            ("/w/shop/server.rs", "/w/shop"),
            ("server.rs", ""),
        ] {
            assert_eq!(source_root(file), dir, "{file}");
        }
    }

    #[test]
    fn what_is_above_the_program_says_nothing_about_it() {
        for (root, file, dir) in [
            ("/home/vendor/shop", "/home/vendor/shop/src/main.rs", None),
            ("/build/shop-1.2.3", "/build/shop-1.2.3/src/main.rs", None),
            (
                "/build/shop-1.2.3",
                "/build/shop-1.2.3/vendor/bytes/src/lib.rs",
                Some("/build/shop-1.2.3/vendor"),
            ),
            (
                "/w",
                "/w/registry/src/index-19/bytes-1.11.0/src/lib.rs",
                Some("/w/registry/src/index-19"),
            ),
            // A package from a registry that is a program itself: `cargo install shop`.
            (
                "/r/registry/src/i/shop-1.2.3",
                "/r/registry/src/i/shop-1.2.3/src/main.rs",
                None,
            ),
        ] {
            assert_eq!(package_dir(file, root), dir, "{file}");
        }
    }
}
