//! Tasks from `tracing` spans.

use std::borrow::Cow;

use tracing::span::Id;
use tracing::{Dispatch, Subscriber, dispatcher, subscriber::NoSubscriber};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt as _};
use tracing_subscriber::registry::{LookupSpan, Registry};

use super::tasks;

/// Layer for the service's subscriber that makes each span a task while a function is profiled. Otherwise it costs one load
/// each time that a span is entered or left.
///
/// ```
/// use tracing_subscriber::layer::SubscriberExt as _;
///
/// let subscriber = tracing_subscriber::registry().with(heapray::parallel_profile::TaskLayer);
/// # tracing::subscriber::with_default(subscriber, || tracing::info_span!("load").in_scope(|| ()));
/// ```
///
/// The layer enables every span. If there are too many, add it with a filter (`Layer::with_filter`).
#[derive(Debug, Clone, Copy, Default)]
pub struct TaskLayer;

impl<S: Subscriber + for<'l> LookupSpan<'l>> Layer<S> for TaskLayer {
    fn on_enter(&self, id: &Id, context: Context<'_, S>) {
        if tasks::is_recording()
            && let Some(metadata) = context.metadata(id)
        {
            tasks::enter(Cow::Borrowed(metadata.name()), Some(id.into_u64()));
        }
    }

    fn on_exit(&self, id: &Id, _context: Context<'_, S>) {
        if tasks::is_recording() {
            tasks::exit(Some(id.into_u64()));
        }
    }
}

/// Subscriber that has only the layer, for threads that have no subscriber.
#[derive(Clone)]
pub(super) struct Spare(Dispatch);

impl Spare {
    pub(super) fn new() -> Spare {
        let _untracked = crate::capture::untracked::enter();
        Spare(Dispatch::new(Registry::default().with(TaskLayer)))
    }

    /// Calls `f`, and receives its spans if no other subscriber does.
    pub(super) fn around<R>(&self, f: impl FnOnce() -> R) -> R {
        match Spare::is_needed() {
            true => dispatcher::with_default(&self.0, f),
            false => f(),
        }
    }

    /// Receives the spans of this thread from now on, as long as the guard lives, if no other subscriber does.
    pub(super) fn stay(&self) -> Option<dispatcher::DefaultGuard> {
        Spare::is_needed().then(|| dispatcher::set_default(&self.0))
    }

    fn is_needed() -> bool {
        dispatcher::get_default(|present| present.is::<NoSubscriber>())
    }
}
