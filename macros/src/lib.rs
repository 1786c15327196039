//! The attributes of heapray, which [re-exports](https://docs.rs/heapray) them; use them from there.
//!
//! What an attribute expands to calls `::heapray::__private` and nothing else, so a function needs no imports for it.

mod arguments;
mod parallel;
mod profile;
mod single_thread;

use proc_macro::TokenStream;

/// Prints what each line of a function did to the process's memory.
#[proc_macro_attribute]
pub fn profile(arguments: TokenStream, function: TokenStream) -> TokenStream {
    expanded(profile::expand(arguments.into(), function.into()))
}

/// Samples the CPU time of the calling thread while a function runs, and prints it by function.
///
/// ```ignore
/// #[heapray::single_thread_profiler(report_name = "load.pstats")]
/// fn load(path: &Path) -> io::Result<Catalogue> { … }
/// ```
///
/// The function's result, its errors and its panics stay its own; the profile is written in any case. Of an `async fn`,
/// only the polls are sampled, on whatever thread they are. What is measured and where:
/// [`heapray::cpu_profile`](https://docs.rs/heapray/latest/heapray/cpu_profile/).
///
/// | argument | meaning | default |
/// |---|---|---|
/// | `report_name` | a file for `python -m pstats`, snakeviz and gprof2dot, written anew after each call | none |
/// | `print` | whether the table is printed to the standard output | `true`, `false` with a `callback` |
/// | `sort_by` | `"cumulative"`, `"tottime"`, `"ncalls"`, `"name"`, `"filename"`, as `pstats` has them | `"cumulative"` |
/// | `limit` | how many functions are printed | 40 |
/// | `strip_dirs` | leave the directories of source files out | `false` |
/// | `interval_us` | microseconds of CPU time between two samples, 50 or more | 1000 |
/// | `callback` | a `fn(Stats)` that gets the profile | none |
/// | `enable` | whether there is a profile; a literal `false` leaves the function as it is | `true` |
#[proc_macro_attribute]
pub fn single_thread_profiler(arguments: TokenStream, function: TokenStream) -> TokenStream {
    expanded(single_thread::expand(arguments.into(), function.into()))
}

/// Runs a function on a pool of workers, and writes a page of what they did: which task ran on which thread when, CPU and
/// memory over time, time by function, and allocations by worker and call site.
///
/// ```ignore
/// #[heapray::parallel_profiler(n_workers = 2, threads_per_worker = 2, report_name = "load.html")]
/// async fn load_all(paths: Vec<PathBuf>) -> Result<Vec<Catalogue>, Error> { … }
/// ```
///
/// The function's result, its errors and its panics stay its own; the page is written in any case. Used together with
/// `single_thread_profiler`, that one comes first. More:
/// [`heapray::parallel_profile`](https://docs.rs/heapray/latest/heapray/parallel_profile/).
///
/// | argument | meaning | default |
/// |---|---|---|
/// | `n_workers`, `threads_per_worker` | so many workers of so many threads each: a tokio runtime for what an `async fn` spawns, a rayon pool for a plain function | the present runtime; 1 thread each |
/// | `pool` | `"tokio"`, `"rayon"`, or `"present"` for no pool of its own | as above |
/// | `report_name` | the page's file | `heapray-parallel.html` |
/// | `display_report` | whether the page is opened in the desktop's browser, if there is one | `false` |
/// | `enable` | whether there is a profile; a literal `false` leaves the function as it is | `true` |
#[proc_macro_attribute]
pub fn parallel_profiler(arguments: TokenStream, function: TokenStream) -> TokenStream {
    expanded(parallel::expand(arguments.into(), function.into()))
}

/// The expansion, or the error in its place.
fn expanded(expansion: syn::Result<proc_macro2::TokenStream>) -> TokenStream {
    expansion
        .unwrap_or_else(|error| error.to_compile_error())
        .into()
}
