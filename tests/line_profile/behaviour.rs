//! Tests that the attribute does not change a function's behaviour: the order of drops, and the lifetimes of temporaries.

use std::cell::RefCell;

use heapray::__private::line_profile::testing;

thread_local! {
    static LOG: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

fn note(what: impl Into<String>) {
    LOG.with_borrow_mut(|log| log.push(what.into()));
}

/// Notes its drop.
struct D(&'static str);

impl Drop for D {
    fn drop(&mut self) {
        note(format!("drop {}", self.0));
    }
}

impl D {
    fn see(&self) -> usize {
        note(format!("see {}", self.0));
        self.0.len()
    }

    fn maybe(&self) -> Option<usize> {
        (self.0 != "no").then(|| self.see())
    }
}

macro_rules! both {
    ($(fn $name:ident($($argument:ident: $type:ty),*) $(-> $result:ty)? $body:block)*) => {
        mod plain {
            #[allow(unused_imports)]
            use super::*;
            $(pub(super) fn $name($($argument: $type),*) $(-> $result)? $body)*
        }
        mod profiled {
            #[allow(unused_imports)]
            use super::*;
            $(
                #[heapray::profile]
                pub(super) fn $name($($argument: $type),*) $(-> $result)? $body
            )*
        }
    };
}

both! {
    fn locals(a: D, b: D) -> usize {
        let c = D("c");
        let _ = D("at once");
        let _kept = D("kept");
        {
            let _inner = D("inner");
            c.see();
        }
        a.see() + D("tail").see() + b.see()
    }

    fn temporaries(a: D) -> usize {
        let extended = &D("extended");
        let of_match = match D("scrutinee").maybe() {
            Some(n) => n + D("arm").see(),
            None =>
                D("other").see(),
        };
        if D("condition").see() > 3 {
            note("then");
        } else {
            note("else");
        }
        if let Some(n) = D("let").maybe() {
            note(n.to_string());
        }
        extended.see() + of_match + a.see()
    }

    fn loops(rounds: usize) -> usize {
        let mut sum = 0;
        for n in 0..rounds {
            let _each = D("each");
            if n == 1 {
                continue;
            }
            sum += D("in").see();
            if n == 3 {
                break;
            }
        }
        while let Some(n) = D("no").maybe() {
            sum += n;
        }
        let found = loop {
            let _turn = D("turn");
            if sum > 5 {
                break D("value").see();
            }
            sum += 1;
        };
        found
    }

    fn leaves(early: bool) -> Option<usize> {
        let _first = D("first");
        let n = if early { D("no").maybe()? } else { D("yes").maybe()? };
        let each = |d: D| {
            let _closure = D("closure");
            d.see()
        };
        Some(each(D("given")) + n)
    }
}

#[track_caller]
fn same<T: PartialEq + std::fmt::Debug>(plain: impl FnOnce() -> T, profiled: impl FnOnce() -> T) {
    let logged = |work: Box<dyn FnOnce() -> T + '_>| {
        LOG.take();
        let result = testing::run([1], work).result;
        (result, LOG.take())
    };
    let (plain, profiled) = (logged(Box::new(plain)), logged(Box::new(profiled)));
    assert!(!plain.1.is_empty());
    assert_eq!(plain, profiled);
}

#[test]
fn values_are_dropped_in_the_same_order() {
    same(
        || plain::locals(D("a"), D("b")),
        || profiled::locals(D("a"), D("b")),
    );
    same(
        || plain::temporaries(D("a")),
        || profiled::temporaries(D("a")),
    );
    same(|| plain::loops(5), || profiled::loops(5));
    same(|| plain::leaves(true), || profiled::leaves(true));
    same(|| plain::leaves(false), || profiled::leaves(false));
}

async fn plain_async(a: D, b: D, _: D, (c, d): (D, D)) -> usize {
    let _local = D("local");
    b.see() + D("tail").see() + d.see() + c.see() + a.see()
}

#[heapray::profile]
async fn profiled_async(a: D, b: D, _: D, (c, d): (D, D)) -> usize {
    let _local = D("local");
    b.see() + D("tail").see() + d.see() + c.see() + a.see()
}

#[test]
fn an_async_functions_arguments_are_dropped_in_the_same_order() {
    let arguments = || (D("a"), D("b"), D("unnamed"), (D("c"), D("d")));
    let runtime = || {
        tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap()
    };
    same(
        || {
            let (a, b, c, d) = arguments();
            runtime().block_on(plain_async(a, b, c, d))
        },
        || {
            let (a, b, c, d) = arguments();
            runtime().block_on(profiled_async(a, b, c, d))
        },
    );
}

/// A function with inference, coercion and borrows.
#[heapray::profile]
fn inferred(text: &mut String) -> Result<Box<dyn Fn(u32) -> u32>, Box<dyn std::error::Error>> {
    let mut numbers = Vec::new();
    let borrowed = &mut *text;
    for word in borrowed.split(' ') {
        numbers.push(word.parse()?);
    }
    text.push('!');
    let choose: fn(u32) -> u32 = match numbers.len() {
        0 => |n| n,
        _ => |n| n + 1,
    };
    let first: u32 = numbers.first().copied().unwrap_or_default();
    Ok(Box::new(move |n: u32| choose(n) + first))
}

#[test]
fn types_are_inferred_as_without_the_attribute() {
    let mut text = "3 4".to_owned();
    let function = testing::run([1], || inferred(&mut text).unwrap()).result;
    assert_eq!((function(1), text.as_str()), (5, "3 4!"));
    assert!(testing::run([1], || inferred(&mut "x".to_owned()).is_err()).result);
}
