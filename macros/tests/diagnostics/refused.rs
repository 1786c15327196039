//! Functions that cannot be profiled, and wrong options.

#[heapray::profile]
struct NoFunction; //~ only a function with a body can be profiled (expected `fn`)

#[heapray::profile]
const fn constant() -> u32 { 1 } //~ a const fn can't be profiled: it may run while the program is compiled, where there is no memory to measure

trait Trait {
    #[heapray::profile]
    fn declared(&self); //~ only a function with a body can be profiled (expected curly braces)
}

#[heapray::profile(metrics = "heap")] //~ unknown option; the options are enable, metric, semantics, precision, unit, sum, full_report, format and held
fn no_such_option() {}

#[heapray::profile(metric = "pss")] //~ expected "rss" or "heap"
fn no_such_metric() {}

#[heapray::profile(unit = 1)] //~ expected "MiB" or "KiB" or "B"
fn no_such_unit() {}

#[heapray::profile(precision = 10)] //~ expected a number of decimals from 0 to 9
fn too_precise() {}

#[heapray::profile(sum = "yes")] //~ expected `true` or `false`
fn no_truth() {}

#[heapray::profile(sum = true, sum = false)] //~ this option was given before
fn twice() {}

#[heapray::profile(held = true)] //~ `held = true` needs `metric = "heap"`
fn held_what() {}

#[heapray::profile(sum = true, full_report = false)] //~ the short line is for one call: `full_report = false` cannot be combined with `sum = true`
fn short_sum() {}

#[heapray::profile(metric = "heap", held = true, sum = true)] //~ `held` is reported for each call: it cannot be combined with `sum = true`
fn held_sum() {}

#[heapray::profile(enable = false)]
const fn not_enabled() -> u32 {
    1
}

fn main() {
    let _ = (constant(), not_enabled(), NoFunction);
    no_such_option();
}
