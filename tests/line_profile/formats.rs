//! Tests of the reports' formats.

use heapray::__private::line_profile::testing;

use crate::expected::{check, compare};

#[heapray::profile(precision = 3, unit = "KiB")]
fn exact() -> u32 {
    let a = 1;
    a + 1
}

#[heapray::profile(precision = 0, unit = "B")]
fn in_bytes() -> u32 {
    1
}

#[test]
fn units_and_decimals() {
    assert_eq!(testing::run([1536, 1024, 3072], exact).result, 2);
    let printed = testing::run([1536, 1024, 3072], exact).printed;
    compare("kibibytes", &printed);
    let printed = testing::run([12_345_678_901, 5], in_bytes).printed;
    compare("bytes", &printed);
}

#[heapray::profile(full_report = false)]
fn short() -> Vec<u8> {
    let bytes = vec![0u8; 3];
    bytes
}

#[test]
fn the_short_report_is_one_line() {
    let printed = testing::run([1 << 20, 207_198_618, 2 << 20], short).printed;
    assert_eq!(
        printed,
        format!("{} short 197.6 MiB\n", file!().replace('\\', "/"))
    );
}

#[heapray::profile(full_report = false, format = "pycompss")]
fn increment(n: u32) -> u32 {
    n + 1
}

#[heapray::profile(format = "pycompss")]
fn decrement(n: u32) -> u32 {
    n - 1
}

#[test]
fn the_line_of_pycompss_has_eight_fields_and_its_unit() {
    let printed = testing::run([100 << 20], || increment(1)).printed;
    assert!(printed.ends_with(" 100.0 MiB\n\n"), "{printed:?}");
    let fields: Vec<&str> = printed.split_whitespace().collect();
    let [start, job, file, function, elapsed, first, last, peak, unit] = fields[..] else {
        panic!("{fields:?}");
    };
    assert!(start.parse::<f64>().unwrap() > 1.6e9);
    assert_eq!(start.split_once('.').unwrap().1.len(), 7);
    assert_eq!((job, file, function), ("master", file!(), "increment"));
    assert!(elapsed.parse::<f64>().unwrap() < 60.0);
    assert!(first.parse::<u64>().unwrap() > 0 && last.parse::<u64>().unwrap() > 0);
    assert_eq!((peak, unit), ("100.0", "MiB"));
}

#[test]
fn the_table_of_pycompss_is_followed_by_five_lines() {
    let printed = testing::run([100 << 20], || decrement(1)).printed;
    let (table, rest) = printed.split_once("\n\n\nJob name: master\n").unwrap();
    assert!(table.starts_with("Filename: ") && table.ends_with("}"));
    let names: Vec<&str> = rest
        .lines()
        .filter_map(|line| Some(line.split_once(": ")?.0))
        .collect();
    assert_eq!(
        names,
        [
            "Task start time",
            "Elapsed time",
            "Initial memory",
            "Final memory"
        ]
    );
}

#[heapray::profile(sum = true)]
fn summed(n: u32) -> u32 {
    if n == 0 {
        return 0;
    }
    summed(n - 1) + 1
}

#[test]
fn calls_are_summed_and_printed_on_demand() {
    check("summed", || {
        assert_eq!(summed(2), 2);
        assert_eq!(summed(1), 1);
        heapray::print_profiles();
        // The second time, there is nothing new to print.
        heapray::print_profiles();
        summed(0);
        heapray::print_profiles();
    });
}

#[heapray::profile(metric = "heap")]
fn unseen() -> u32 {
    let boxed = Box::new(1);
    *boxed
}

#[test]
fn without_a_session_the_table_says_so() {
    let _turn = crate::support::turn();
    assert_eq!(check("unseen", unseen), 1);
}
