//! Tests of all kinds of statements and expressions.

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::expected::check;

#[heapray::profile]
fn straight() -> usize {
    let a = vec![1u8; 10];

    // A comment.
    let b = vec![2u8; 10];
    drop(a);
    b.len()
}

#[test]
fn a_line_is_charged_when_control_leaves_it() {
    assert_eq!(check("straight", straight), 10);
}

#[heapray::profile]
fn several_lines(text: &str) -> usize {
    let numbers = [
        1, 2, //
        3,
    ];
    let sum: usize = text
        .split(',')
        .filter_map(|word| word.parse::<usize>().ok())
        .sum();
    sum + numbers.iter().sum::<usize>()
}

#[test]
fn a_statement_over_several_lines_counts_for_its_first() {
    assert_eq!(check("several_lines", || several_lines("4,x,5")), 15);
}

#[heapray::profile]
fn loops(rounds: u32) -> u32 {
    let mut sum = 0;
    for round in 0..rounds {
        sum += round;
    }
    while sum > 2 {
        let half = sum / 2;
        sum = half;
    }
    for round in 0..3 {
        if round == 1 {
            continue;
        }
        sum += 1;
    }
    let mut stack = vec![1, 2];
    while let Some(top) = stack.pop() {
        sum += top
    }
    for _ in 0..2 {
        sum += 1;
    }
    sum
}

#[test]
fn a_loops_head_runs_once_more_than_its_body() {
    assert_eq!(check("loops", || loops(3)), 8);
}

#[heapray::profile]
fn jumps() -> u32 {
    let mut count = 0;
    'outer: for a in 0..3 {
        for b in 0..3 {
            count += 1;
            if b == 1 {
                continue 'outer;
            }
            if a == 2 {
                break 'outer;
            }
        }
    }
    let found = loop {
        count += 1;
        if count > 6 {
            break count * 10;
        }
    };
    let block = 'found: {
        if found > 60 {
            break 'found 1;
        }
        2
    };
    found + block
}

#[test]
fn loops_are_left_and_continued_by_label_and_with_a_value() {
    assert_eq!(check("jumps", jumps), 71);
}

#[heapray::profile]
fn choices(number: u32) -> &'static str {
    let size = match number {
        0 => "none",
        1 | 2 => {
            let _kept = vec![0u8; 3];
            "few"
        }
        n if n > 100 => panic!("too many"),
        _ => "many",
    };
    if number == 0 {
        return "nothing";
    } else if number == 1 {
        let _one = 1;
    } else {
        drop(vec![1]);
    }
    let Some(rest) = number.checked_sub(2) else {
        return size;
    };
    if rest > 0 { size } else { "two" }
}

#[test]
fn only_the_branch_that_is_taken_counts() {
    assert_eq!(check("choices_0", || choices(0)), "nothing");
    assert_eq!(check("choices_1", || choices(1)), "few");
    assert_eq!(check("choices_2", || choices(2)), "two");
    assert_eq!(check("choices_9", || choices(9)), "many");
}

#[heapray::profile]
fn closures(numbers: &[u32]) -> Vec<u32> {
    let double = |n: &u32| n * 2;
    let mut seen = 0;
    let doubled: Vec<u32> = numbers
        .iter()
        .map(|n| {
            seen += 1;
            double(n)
        })
        .filter(|n| n % 3 != 0)
        .collect();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            // On another thread: in nobody's table.
            drop(vec![1u8; 3]);
        });
    });
    assert_eq!(seen, numbers.len());
    doubled
}

#[test]
fn a_closure_counts_if_the_call_itself_runs_it() {
    assert_eq!(check("closures", || closures(&[1, 2, 3])), [2, 4]);
}

#[heapray::profile]
fn fallible(text: &str) -> Result<u32, std::num::ParseIntError> {
    let _kept = vec![0u8; 3];
    let number: u32 = text.parse()?;
    Ok(number + 1)
}

#[test]
fn a_question_mark_leaves_from_its_line() {
    assert_eq!(check("question_mark_ok", || fallible("1")), Ok(2));
    assert!(check("question_mark_err", || fallible("x")).is_err());
}

#[heapray::profile]
fn outer(depth: u32) -> u32 {
    let below = inner(depth);
    below + 1
}

#[heapray::profile]
fn inner(depth: u32) -> u32 {
    if depth == 0 {
        return 0;
    }
    let below = inner(depth - 1);
    below + 1
}

#[test]
fn each_call_has_its_own_table_the_innermost_first() {
    assert_eq!(check("nested_calls", || outer(1)), 2);
}

#[heapray::profile]
fn panicking(divisor: u32) -> u32 {
    let _kept = vec![0u8; 3];
    for round in 0..2 {
        drop(vec![round]);
    }
    let result = 10 / divisor;
    result + 1
}

#[test]
fn the_table_of_a_panic_is_printed_and_says_so() {
    let caught = check("panic", || catch_unwind(|| panicking(0)));
    assert!(caught.is_err());
}

struct Cleaning;

impl Drop for Cleaning {
    fn drop(&mut self) {
        clean();
    }
}

#[heapray::profile]
fn clean() {
    drop(vec![1]);
}

#[test]
fn a_call_during_a_panic_is_not_the_one_that_panicked() {
    let caught = check("call_during_a_panic", || {
        catch_unwind(|| {
            let _cleaning = Cleaning;
            panic!("not in a profiled function");
        })
    });
    assert!(caught.is_err());
}

#[heapray::profile]
fn callback(work: &mut dyn FnMut() -> u32) -> u32 {
    let first = work();
    first + work()
}

#[heapray::profile]
fn with_callback() -> u32 {
    let mut count = 0;
    callback(&mut || {
        count += 1;
        count
    })
}

#[test]
fn a_closure_that_another_profiled_function_calls_counts_for_its_own() {
    assert_eq!(check("callback", with_callback), 3);
}

#[rustfmt::skip]
#[heapray::profile] fn one_line(a: u32) -> u32 { let b = a + 1; b * 2 }

#[heapray::profile]
fn empty() {}

#[heapray::profile]
fn conditional() -> u32 {
    let mut sum = 1;
    #[cfg(any())]
    let mut sum = 2;
    #[cfg(not(any()))]
    {
        sum += 10;
    }
    #[allow(clippy::identity_op)]
    let result = sum + 0;
    result
}

#[test]
fn short_functions_and_lines_that_are_not_compiled() {
    assert_eq!(check("one_line", || one_line(1)), 4);
    check("empty", empty);
    assert_eq!(check("conditional", conditional), 11);
}

macro_rules! made {
    ($name:ident, $result:expr) => {
        #[heapray::profile]
        fn $name() -> u32 {
            let result = $result;
            result + 1
        }
    };
}

made!(by_a_macro, 4);

#[test]
fn a_function_that_a_macro_makes_runs() {
    // Its lines are partly the macro's and partly the call's.
    let outcome = heapray::__private::line_profile::testing::run([1], by_a_macro);
    assert_eq!(outcome.result, 5);
    assert!(outcome.printed.contains("Line Contents"));
}

#[test]
fn a_panic_in_a_call_that_is_caught_inside_another_leaves_the_other_as_it_was() {
    #[heapray::profile]
    fn catching() -> bool {
        let caught = catch_unwind(AssertUnwindSafe(|| panicking(0)));
        caught.is_err()
    }
    assert!(check("caught", catching));
}
