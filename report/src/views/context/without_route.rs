//! Names for the memory of no request: that of connections, of the start, and of the background.

use crate::Report;
use crate::model::{Context, ContextId, FrameId, Site, Thread};
use crate::views::Origins;

/// The key of routes.
const ROUTE: &str = "route";
/// Buffers and state of a connection, which serves many requests.
const CONNECTION: &str = "connection";
/// What the main thread allocates besides: configuration, the service's set-up.
const STARTUP: &str = "startup";
/// Everything else: tasks, timers, threads.
const BACKGROUND: &str = "background";

/// Packages whose code serves connections.
const SERVERS: [&str; 4] = ["hyper", "hyper_util", "h2", "tonic"];
/// The function of axum that accepts connections.
const ACCEPTS: &str = "axum::serve";

/// Gives call sites of no context the route `connection`, `startup` or `background`, by their call stack and thread. Does nothing
/// if the report has no routes.
///
/// A call stack through a server of HTTP (hyper, h2, tonic) is of a connection. Else the main thread's memory is of the start, and
/// that of other threads of the background.
pub fn name_memory_without_route(report: &mut Report) {
    let mut contexts = report.contexts.iter();
    if !contexts.any(|context| context.value(ROUTE).is_some()) {
        return;
    }
    let is_of_connection = stacks_of_connections(report);
    let pid = u64::from(report.about.pid);
    let is_main = |thread: &Thread| thread.tid == pid;
    let main: Vec<bool> = report.threads.iter().map(is_main).collect();
    let name = |site: &Site| {
        let of = |list: &[bool], at: u32| list.get(at as usize).copied().unwrap_or(false);
        if of(&is_of_connection, site.stack.0) {
            CONNECTION
        } else if of(&main, site.thread.0) {
            STARTUP
        } else {
            BACKGROUND
        }
    };
    let mut numbers: Vec<(&str, ContextId)> = Vec::new();
    for site in &mut report.sites {
        if site.context != ContextId::NONE {
            continue;
        }
        let name = name(site);
        let known = numbers.iter().find(|(known, _)| *known == name);
        site.context = known.map(|(_, number)| *number).unwrap_or_else(|| {
            let number = ContextId(u32::try_from(report.contexts.len()).unwrap_or(0));
            report.contexts.push(Context {
                labels: vec![(ROUTE.to_owned(), name.to_owned())],
                ..Context::default()
            });
            numbers.push((name, number));
            number
        });
    }
}

/// Returns, by call stack, whether it goes through the code of a connection.
fn stacks_of_connections(report: &Report) -> Vec<bool> {
    let origins = Origins::of(report);
    let frames: Vec<bool> = (0..)
        .map(FrameId)
        .zip(&report.frames)
        .map(|(id, frame)| {
            let package = origins.index(id);
            let package = package.and_then(|at| origins.packages().get(at as usize));
            package.is_some_and(|package| SERVERS.contains(&package.name.as_str()))
                || report.strings.get(frame.function).contains(ACCEPTS)
        })
        .collect();
    let mut stacks = vec![false; report.stacks.len() + 1];
    for (stack, node) in report.stacks.iter() {
        let frame = frames.get(node.frame.0 as usize).copied();
        stacks[stack.0 as usize] = stacks[node.parent.0 as usize] || frame.unwrap_or(false);
    }
    stacks
}

#[cfg(test)]
mod tests {
    use super::super::testing::report;
    use super::*;
    use crate::model::{StackId, ThreadId};
    use crate::views::context_rows;

    fn rows(report: &Report) -> Vec<(String, u64)> {
        let rows = context_rows(report, ROUTE).into_iter();
        rows.map(|row| (row.value.unwrap_or_default(), row.live.bytes))
            .collect()
    }

    #[test]
    fn what_belongs_to_no_request_has_a_name() {
        let mut report = report();
        report.about.pid = 1;
        let other = Thread {
            tid: 2,
            ..report.threads[0]
        };
        report.threads.push(other);
        report.add_frame(
            "hyper::proto::h1::dispatch::Dispatcher<D,Bs,I,T>::poll_loop",
            "/vendored/hyper/src/proto/h1/dispatch.rs",
            3,
        );
        let stack = report.stacks.child(StackId::EMPTY, FrameId(2));
        let below = report.stacks.child(stack, FrameId(1));
        let first = report.sites[0];
        for (thread, stack, bytes) in [(1, first.stack, 100), (0, below, 1000)] {
            let mut site = Site {
                thread: ThreadId(thread),
                stack,
                ..first
            };
            site.live.bytes = bytes;
            report.sites.push(site);
        }
        name_memory_without_route(&mut report);
        let expected = [
            ("connection", 1000),
            ("background", 100),
            ("GET /b", 40),
            ("GET /a", 20),
            ("startup", 10),
        ];
        let expected = expected.map(|(name, bytes)| (name.to_owned(), bytes));
        assert_eq!(rows(&report), expected);
    }

    #[test]
    fn a_report_without_routes_stays_as_it_is() {
        let mut report = report();
        report.contexts[1].labels.clear();
        report.contexts[2].labels.remove(0);
        let before = report.clone();
        name_memory_without_route(&mut report);
        assert_eq!(report, before);
    }
}
