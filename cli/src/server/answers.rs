//! What is served: bodies that are there, and bodies that are made when they are asked for.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::{fmt, io};

type Make = Box<dyn Fn() -> io::Result<Vec<u8>> + Send + Sync>;

enum Body {
    Ready(Vec<u8>),
    Made(Make),
}

/// Media type and body.
pub(super) type Answer<'a> = (&'static str, Cow<'a, [u8]>);

/// Answers by path.
#[derive(Default)]
pub(crate) struct Answers {
    by_path: BTreeMap<String, (&'static str, Body)>,
}

impl fmt::Debug for Answers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.by_path.keys()).finish()
    }
}

impl Answers {
    /// Answers requests of `path` with `body`.
    pub(crate) fn put(&mut self, path: &str, kind: &'static str, body: Vec<u8>) {
        self.by_path.insert(path.into(), (kind, Body::Ready(body)));
    }

    /// Answers requests of `path` with what `make` gives.
    pub(crate) fn make(
        &mut self,
        path: &str,
        kind: &'static str,
        make: impl Fn() -> io::Result<Vec<u8>> + Send + Sync + 'static,
    ) {
        let body = Body::Made(Box::new(make));
        self.by_path.insert(path.into(), (kind, body));
    }

    /// The answer to a request of `path`, if there is one.
    pub(super) fn get(&self, path: &str) -> Option<io::Result<Answer<'_>>> {
        let (kind, body) = self.by_path.get(path)?;
        Some(match body {
            Body::Ready(body) => Ok((kind, Cow::Borrowed(body))),
            Body::Made(make) => make().map(|body| (*kind, Cow::Owned(body))),
        })
    }
}
