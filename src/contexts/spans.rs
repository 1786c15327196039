//! Contexts from `tracing` spans.

use std::cell::RefCell;
use std::fmt;

use tracing::Subscriber;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing_subscriber::layer::{Context as Spans, Layer};
use tracing_subscriber::registry::{LookupSpan, SpanRef};

use super::{table, tasks};
use crate::capture::context;
use crate::capture::thread::Busy;

/// The key of a chosen span's name.
const KEY: &str = "span";

/// Layer for the service's subscriber that puts code into a context while it is in one of the chosen spans, or in a span with
/// one of the chosen fields. So code that is instrumented already needs no other line.
///
/// A chosen field is a label of its own name, and the name of a chosen span is the label `span`. Spans within have these labels
/// too, on whichever thread they are entered.
///
/// ```
/// use tracing_subscriber::layer::SubscriberExt as _;
///
/// let contexts = heapray::SpanContexts::new().field("tenant").span("import");
/// let subscriber = tracing_subscriber::registry().with(contexts);
/// # tracing::subscriber::with_default(subscriber, || {
/// let import = tracing::info_span!("import", tenant = "acme", file = "a.csv");
/// import.in_scope(|| {
///     let labels = heapray::Context::current().labels();
///     let expected = [("span", "import"), ("tenant", "acme")];
///     assert_eq!(labels, expected.map(|(key, value)| (key.to_owned(), value.to_owned())));
/// });
/// # });
/// ```
///
/// The number of [contexts](crate::context()) is limited: do not choose fields that have other values in each request. A field
/// that is recorded after its span was made counts from then on, but not in spans within that were made before.
///
/// The layer enables every span. If there are too many, add it with a filter (`Layer::with_filter`). A filter of the whole
/// subscriber, such as an `EnvFilter` beside the other layers, takes spans away from this one as well.
#[derive(Debug, Clone, Default)]
pub struct SpanContexts {
    spans: Vec<String>,
    fields: Vec<String>,
    tasks: bool,
}

impl SpanContexts {
    /// Returns a layer that chooses nothing yet.
    #[must_use]
    pub fn new() -> SpanContexts {
        SpanContexts::default()
    }

    /// Also chooses the spans of this name.
    #[must_use]
    pub fn span(mut self, name: impl Into<String>) -> SpanContexts {
        self.spans.push(name.into());
        self
    }

    /// Also chooses the fields of this name, in any span.
    #[must_use]
    pub fn field(mut self, name: impl Into<String>) -> SpanContexts {
        self.fields.push(name.into());
        self
    }

    /// Also chooses tokio's tasks: the label `task` is a task's name, and `spawned` is the place that spawned it, such as
    /// `src/jobs.rs:12`. A task has the labels of the code that spawns it, too.
    ///
    /// Tokio makes spans for its tasks with its feature `tracing` and `RUSTFLAGS="--cfg tokio_unstable"`. It makes others, for
    /// each timer and lock, which a filter can leave out: target `tokio::task`, level `TRACE`.
    #[must_use]
    pub fn tasks(mut self) -> SpanContexts {
        self.tasks = true;
        self
    }
}

/// The number of a span's context, kept with the span.
struct OfSpan(u32);

thread_local! {
    /// The spans that the thread has entered, and the context that it was in before each.
    static ENTERED: RefCell<Vec<(Id, u32)>> = const { RefCell::new(Vec::new()) };
}

/// Returns the context of the innermost span from `span` outwards, or that of the calling thread.
fn context_around<'l, S: LookupSpan<'l>>(span: Option<SpanRef<'l, S>>) -> u32 {
    let known = span.and_then(|span| number_of(&span));
    known.unwrap_or_else(context::current)
}

fn number_of<'l, S: LookupSpan<'l>>(span: &SpanRef<'l, S>) -> Option<u32> {
    span.extensions().get::<OfSpan>().map(|of| of.0)
}

impl<S: Subscriber + for<'l> LookupSpan<'l>> Layer<S> for SpanContexts {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, spans: Spans<'_, S>) {
        let Some(span) = spans.span(id) else {
            return;
        };
        let _busy = Busy::enter();
        let mut labels = Labels::of(&self.fields);
        attributes.record(&mut labels);
        let name = attributes.metadata().name();
        if self.spans.iter().any(|chosen| chosen == name) {
            labels.found.push((KEY.to_owned(), name.to_owned()));
        }
        if self.tasks {
            labels.found.extend(tasks::labels(attributes));
        }
        let around = if attributes.is_contextual() {
            // That of the span around it, or one that was entered within that.
            context::current()
        } else {
            context_around(span.parent())
        };
        let number = table::number(around, labels.found);
        if number != 0 {
            span.extensions_mut().replace(OfSpan(number));
        }
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, spans: Spans<'_, S>) {
        let Some(span) = spans.span(id) else {
            return;
        };
        let _busy = Busy::enter();
        let mut labels = Labels::of(&self.fields);
        values.record(&mut labels);
        if labels.found.is_empty() {
            return;
        }
        let before = number_of(&span).unwrap_or_else(|| context_around(span.parent()));
        let number = table::number(before, labels.found);
        span.extensions_mut().replace(OfSpan(number));
        let is_innermost = ENTERED.try_with(|entered| {
            let entered = entered.borrow();
            entered.last().is_some_and(|(last, _)| last == id)
        });
        if is_innermost == Ok(true) {
            context::replace(number);
        }
    }

    fn on_enter(&self, id: &Id, spans: Spans<'_, S>) {
        let number = spans.span(id).and_then(|span| number_of(&span));
        let _busy = Busy::enter();
        // Also without a context of its own: one may be recorded while the thread is in it.
        let _ = ENTERED.try_with(|entered| {
            let before = number.map_or_else(context::current, context::replace);
            entered.borrow_mut().push((id.clone(), before));
        });
    }

    fn on_exit(&self, id: &Id, _spans: Spans<'_, S>) {
        let _busy = Busy::enter();
        let _ = ENTERED.try_with(|entered| {
            let mut entered = entered.borrow_mut();
            let Some(at) = entered.iter().rposition(|(known, _)| known == id) else {
                return;
            };
            let (_, before) = entered.remove(at);
            match entered.get_mut(at) {
                // Spans that overlap: the one that was entered after it goes back to where it came from.
                Some((_, next)) => *next = before,
                None => drop(context::replace(before)),
            }
        });
    }
}

/// The chosen fields of a span.
struct Labels<'l> {
    chosen: &'l [String],
    found: Vec<(String, String)>,
}

impl Labels<'_> {
    fn of(chosen: &[String]) -> Labels<'_> {
        Labels {
            chosen,
            found: Vec::new(),
        }
    }

    fn add(&mut self, field: &Field, value: impl FnOnce() -> String) {
        if self.chosen.iter().any(|chosen| chosen == field.name()) {
            self.found.push((field.name().to_owned(), value()));
        }
    }
}

impl Visit for Labels<'_> {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.add(field, || value.to_owned());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.add(field, || format!("{value:?}"));
    }
}

#[cfg(test)]
mod tests {
    use tracing::field::Empty;
    use tracing::info_span;
    use tracing_subscriber::layer::SubscriberExt as _;

    use super::*;
    use crate::contexts::{Context, context};

    fn labels() -> String {
        let labels = Context::current().labels();
        let labels: Vec<String> = labels.iter().map(|(k, v)| format!("{k}={v}")).collect();
        labels.join(" ")
    }

    fn with_spans(work: impl FnOnce()) {
        let layer = SpanContexts::new()
            .span("job")
            .field("tenant")
            .field("shard");
        let subscriber = tracing_subscriber::registry().with(layer);
        tracing::subscriber::with_default(subscriber, work);
        assert_eq!(labels(), "", "the context of before is restored");
    }

    #[test]
    fn chosen_spans_and_fields_are_labels_also_in_spans_within() {
        with_spans(|| {
            let outer = info_span!("request", tenant = "acme", path = "/x").entered();
            assert_eq!(labels(), "tenant=acme");
            let inner = info_span!("job", shard = 7).entered();
            assert_eq!(labels(), "shard=7 span=job tenant=acme");
            let other = info_span!("other");
            drop(inner);
            assert_eq!(labels(), "tenant=acme");
            drop(outer);
            assert_eq!(labels(), "");
            // It was made within both.
            other.in_scope(|| assert_eq!(labels(), "shard=7 span=job tenant=acme"));
        });
    }

    #[test]
    fn another_thread_that_enters_a_span_is_in_its_context() {
        with_spans(|| {
            let span = info_span!("job", tenant = "acme");
            let entered = std::thread::scope(|scope| {
                let thread = scope.spawn(|| span.in_scope(labels));
                thread.join().unwrap()
            });
            // Its subscriber is that of this thread alone, but spans know theirs.
            assert_eq!(entered, "span=job tenant=acme");
        });
    }

    #[test]
    fn a_field_that_is_recorded_later_counts_from_then_on() {
        with_spans(|| {
            let span = info_span!("request", tenant = Empty);
            let entered = span.clone().entered();
            assert_eq!(labels(), "");
            span.record("tenant", "acme");
            assert_eq!(labels(), "tenant=acme");
            drop(entered);
            span.in_scope(|| assert_eq!(labels(), "tenant=acme"));
        });
    }

    #[test]
    fn spans_may_overlap_and_stand_in_another_context() {
        with_spans(|| {
            let route = context([("route", "GET /")]);
            route.run(|| {
                let [first, second] = ["a", "b"].map(|tenant| info_span!("request", tenant));
                let first = first.entered();
                assert_eq!(labels(), "route=GET / tenant=a");
                let second = second.entered();
                drop(first);
                assert_eq!(labels(), "route=GET / tenant=b");
                drop(second);
                assert_eq!(labels(), "route=GET /");
            });
        });
    }

    #[test]
    fn a_span_has_the_labels_of_a_context_that_was_entered_within_the_span_around_it() {
        with_spans(|| {
            let _outer = info_span!("request", tenant = "acme").entered();
            context([("route", "GET /")]).run(|| {
                let inner = info_span!("job").entered();
                assert_eq!(labels(), "route=GET / span=job tenant=acme");
                drop(inner);
                let late = info_span!("step", shard = Empty).entered();
                late.record("shard", 7);
                assert_eq!(labels(), "route=GET / shard=7 tenant=acme");
            });
        });
    }
}
