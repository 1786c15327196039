//! What is served: bodies that are there, and bodies that are made when they are asked for.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::{fmt, io};

type Make = Box<dyn Fn() -> io::Result<Vec<u8>> + Send + Sync>;

enum Body {
    Ready(Arc<[u8]>),
    /// Made once, for the first who asks: it takes its memory once, however many ask.
    Made(Make, Mutex<Option<Arc<[u8]>>>),
}

/// Media type and body.
pub(super) type Answer = (&'static str, Arc<[u8]>);

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
        let body = Body::Ready(body.into());
        self.by_path.insert(path.into(), (kind, body));
    }

    /// Answers requests of `path` with what `make` gives.
    pub(crate) fn make(
        &mut self,
        path: &str,
        kind: &'static str,
        make: impl Fn() -> io::Result<Vec<u8>> + Send + Sync + 'static,
    ) {
        let body = Body::Made(Box::new(make), Mutex::default());
        self.by_path.insert(path.into(), (kind, body));
    }

    /// The answer to a request of `path`, if there is one.
    pub(super) fn get(&self, path: &str) -> Option<io::Result<Answer>> {
        let (kind, body) = self.by_path.get(path)?;
        Some(body.get().map(|body| (*kind, body)))
    }
}

impl Body {
    fn get(&self) -> io::Result<Arc<[u8]>> {
        match self {
            Body::Ready(body) => Ok(Arc::clone(body)),
            Body::Made(make, made) => {
                let mut made = made.lock().unwrap_or_else(PoisonError::into_inner);
                if let Some(body) = &*made {
                    return Ok(Arc::clone(body));
                }
                let body: Arc<[u8]> = make()?.into();
                Ok(Arc::clone(made.insert(body)))
            }
        }
    }
}
