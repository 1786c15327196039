//! Source files as people read them.

/// Returns `path` without the part that is the same for all packages: the directory of cargo's registry or git checkouts,
/// and of the standard library's sources.
#[must_use]
pub fn short_path(path: &str) -> &str {
    for (root, skipped) in [
        ("/registry/src/", 1),
        ("/git/checkouts/", 0),
        ("/rustc/", 1),
    ] {
        if let Some((_, below)) = path.split_once(root) {
            let short = below.splitn(skipped + 1, '/').nth(skipped);
            return short.filter(|short| !short.is_empty()).unwrap_or(path);
        }
    }
    path
}

#[cfg(test)]
mod tests {
    use super::short_path;

    #[test]
    fn paths_of_packages_begin_with_the_package() {
        for (path, short) in [
            (
                "/home/dev/.cargo/registry/src/index-1949/tokio-1.5/src/lib.rs",
                "tokio-1.5/src/lib.rs",
            ),
            (
                "/home/dev/.cargo/git/checkouts/axum-12/3f/src/lib.rs",
                "axum-12/3f/src/lib.rs",
            ),
            (
                "/rustc/0123/library/alloc/src/vec/mod.rs",
                "library/alloc/src/vec/mod.rs",
            ),
            ("/srv/rustc/x", "/srv/rustc/x"),
            ("/rustc/0123/", "/rustc/0123/"),
            ("src/main.rs", "src/main.rs"),
        ] {
            assert_eq!(short_path(path), short);
        }
    }
}
