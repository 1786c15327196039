//! Contexts: on whose behalf memory was allocated.

use super::Runs;

/// Index into [`Report::contexts`](super::Report::contexts).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct ContextId(pub u32);

impl ContextId {
    /// No context.
    pub const NONE: ContextId = ContextId(0);
}

/// Labels that say on whose behalf memory was allocated, such as `route = GET /users/{id}` or `tenant = acme`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Context {
    /// Pairs of a key and a value, sorted by key. Each key is there once.
    pub labels: Vec<(String, String)>,
    /// What was done by its requests and futures.
    pub runs: Runs,
}

impl Context {
    /// Returns the value of `key`, if the context has it.
    #[must_use]
    pub fn value(&self, key: &str) -> Option<&str> {
        let found = self.labels.iter().find(|(known, _)| known == key);
        found.map(|(_, value)| &**value)
    }
}
