//! Names for the memory of no request: that of connections, of the start, and of the background.

use crate::Report;
use crate::model::{Context, ContextId, FrameId, Runs};
use crate::views::Origins;

/// The key of routes.
const ROUTE: &str = "route";
/// Buffers and state of a connection, which serves many requests.
const CONNECTION: &str = "connection";
/// What `main` allocates besides: configuration, the service's set-up.
const STARTUP: &str = "startup";
/// Everything else: tasks, timers, threads.
const BACKGROUND: &str = "background";

/// Packages whose code serves connections.
const SERVERS: [&str; 4] = ["hyper", "hyper_util", "h2", "tonic"];
/// The function of axum that accepts connections.
const ACCEPTS: &str = "axum::serve";
/// Functions that only the main thread runs: C's, and the start of a Rust program.
const MAIN: [&str; 3] = ["main", "__libc_start_main", "std::rt::lang_start"];

/// Gives call sites of no context the route `connection`, `startup` or `background`, by their call stack. Does nothing if the
/// report has no routes.
///
/// A call stack through a server of HTTP (hyper, h2, tonic) is of a connection. Of the rest, that of `main` is of the start, and that
/// of other threads of the background.
///
/// Returns the context of each call stack's allocations in no context, for events: by the stack's number, or nothing if the
/// report has no routes. Stacks without such sites have none.
pub fn name_memory_without_route(report: &mut Report) -> Vec<ContextId> {
    let mut contexts = report.contexts.iter();
    if !contexts.any(|context| context.value(ROUTE).is_some()) {
        return Vec::new();
    }
    let names = names_of_stacks(report);
    let mut numbers: Vec<(&str, ContextId)> = Vec::new();
    for site in &mut report.sites {
        if site.context != ContextId::NONE {
            continue;
        }
        let name = names.get(site.stack.0 as usize).copied();
        let name = name.unwrap_or(BACKGROUND);
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
    let known = |name: &&str| {
        let mut numbers = numbers.iter();
        let number = numbers.find(|(known, _)| known == name);
        number.map_or(ContextId::NONE, |(_, number)| *number)
    };
    names.iter().map(known).collect()
}

/// Undoes [`name_memory_without_route`], for a report whose call stacks will have other names. Returns the number of contexts
/// that are left: the others stood for memory of no request.
pub fn forget_memory_without_route(report: &mut Report) -> usize {
    let is_named = |context: &Context| match &context.labels[..] {
        [(key, value)] => {
            let names = [CONNECTION, STARTUP, BACKGROUND];
            key == ROUTE && names.contains(&value.as_str()) && context.runs == Runs::default()
        }
        _ => false,
    };
    while report
        .contexts
        .pop_if(|context| is_named(context))
        .is_some()
    {}
    let left = report.contexts.len();
    for site in &mut report.sites {
        if site.context.0 as usize >= left {
            site.context = ContextId::NONE;
        }
    }
    left
}

/// Returns the name of each call stack's memory.
fn names_of_stacks(report: &Report) -> Vec<&'static str> {
    let origins = Origins::of(report);
    let frames: Vec<Option<&str>> = (0..)
        .map(FrameId)
        .zip(&report.frames)
        .map(|(id, frame)| {
            let package = origins.index(id);
            let package = package.and_then(|at| origins.packages().get(at as usize));
            let function = report.strings.get(frame.function);
            if package.is_some_and(|package| SERVERS.contains(&package.name.as_str()))
                || function.contains(ACCEPTS)
            {
                Some(CONNECTION)
            } else {
                let is_main = MAIN.iter().any(|main| is_function(function, main));
                is_main.then_some(STARTUP)
            }
        })
        .collect();
    let mut stacks = vec![BACKGROUND; report.stacks.len() + 1];
    for (stack, node) in report.stacks.iter() {
        let caller = stacks[node.parent.0 as usize];
        let frame = frames.get(node.frame.0 as usize).copied().flatten();
        stacks[stack.0 as usize] = match (caller, frame) {
            (CONNECTION, _) | (_, None) => caller,
            (_, Some(name)) => name,
        };
    }
    stacks
}

/// Returns whether `name` is that of the function: with or without a version, generic arguments or closures.
fn is_function(name: &str, function: &str) -> bool {
    let rest = name.strip_prefix(function);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['@', '<', ':', '_']))
}

#[cfg(test)]
mod tests {
    use super::super::testing::report;
    use super::*;
    use crate::model::StackId;
    use crate::views::context_rows;

    fn rows(report: &Report) -> Vec<(String, u64)> {
        let rows = context_rows(report, ROUTE).into_iter();
        rows.map(|row| (row.value.unwrap_or_default(), row.live.bytes))
            .collect()
    }

    #[test]
    fn what_belongs_to_no_request_has_a_name() {
        let mut report = report();
        report.add_frame(
            "hyper::proto::h1::dispatch::Dispatcher<D,Bs,I,T>::poll_loop",
            "/vendored/hyper/src/proto/h1/dispatch.rs",
            3,
        );
        let stack = report.stacks.child(StackId::EMPTY, FrameId(2));
        let below = report.stacks.child(stack, FrameId(0));
        let other = report.stacks.child(StackId::EMPTY, FrameId(1));
        for (stack, bytes) in [(other, 100), (below, 1000)] {
            let mut site = report.sites[0];
            site.stack = stack;
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
    fn main_is_found_by_each_of_its_names() {
        for name in [
            "main",
            "__libc_start_main@@GLIBC_2.34",
            "std::rt::lang_start<()>",
        ] {
            assert!(MAIN.iter().any(|main| is_function(name, main)), "{name}");
        }
        for name in ["mainly", "shop::main", "start_thread"] {
            assert!(!MAIN.iter().any(|main| is_function(name, main)), "{name}");
        }
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
