//! A report by context: the sums of each value of a label, and call stacks below the value's root frame.

mod below;
mod rows;
mod without_route;

pub use below::by_context;
pub(crate) use below::is_of_context;
pub use rows::{ContextRow, context_keys, context_rows};
pub use without_route::{forget_memory_without_route, name_memory_without_route};

#[cfg(test)]
pub(crate) mod testing {
    use crate::Report;
    use crate::model::{
        Allocator, Context, ContextId, Site, StackId, Survivor, Survivors, Tally, Thread, ThreadId,
    };

    fn tally(bytes: u64) -> Tally {
        Tally { count: 1, bytes }
    }

    /// Returns a report of one call stack, `main` and `leaf`, with three sites: 10 bytes in no context, 20 bytes for route
    /// `GET /a`, and 40 bytes for route `GET /b` of tenant `acme`.
    pub(crate) fn report() -> Report {
        let mut report = Report::default();
        report.add_frame("main", "main.rs", 1);
        report.add_frame("leaf", "leaf.rs", 2);
        let main = report
            .stacks
            .child(StackId::EMPTY, crate::model::FrameId(0));
        let stack = report.stacks.child(main, crate::model::FrameId(1));
        report.threads.push(Thread {
            tid: 1,
            name: report.strings.intern("main"),
            threads: 1,
        });
        let labels = |all: &[(&str, &str)]| Context {
            labels: all
                .iter()
                .map(|&(k, v)| (k.to_owned(), v.to_owned()))
                .collect(),
            ..Context::default()
        };
        report.contexts = vec![
            Context::default(),
            labels(&[("route", "GET /a")]),
            labels(&[("route", "GET /b"), ("tenant", "acme")]),
        ];
        for (number, bytes) in [(0, 10), (1, 20), (2, 40)] {
            report.sites.push(Site {
                thread: ThreadId(0),
                stack,
                context: ContextId(number),
                allocator: Allocator::Malloc,
                allocated: tally(2 * bytes),
                high_water: tally(bytes),
                live: tally(bytes),
                temporary: Tally::default(),
                oldest_live_ms: Some(bytes),
            });
        }
        report.survivors = Survivors::of(
            vec![0],
            vec![Survivor {
                site: 2,
                generation: 0,
                live: tally(40),
            }],
        );
        report.totals.live = Tally {
            count: 3,
            bytes: 70,
        };
        report
    }
}
