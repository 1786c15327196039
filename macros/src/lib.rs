//! The attributes of heapray, which [re-exports](https://docs.rs/heapray) them. Use them from there.
//!
//! The code that an attribute expands to calls only `::heapray::__private`, so a function needs no imports for it.

#[cfg(feature = "expand")]
mod arguments;
#[cfg(feature = "expand")]
mod parallel;
#[cfg(feature = "expand")]
mod profile;
#[cfg(feature = "expand")]
mod single_thread;

use proc_macro::TokenStream;

/// Prints how each line of a function changed the process's memory: the table of Python's memory_profiler, whenever a call
/// ends.
///
/// ```
/// #[heapray::profile]
/// fn load(text: &str) -> usize {
///     let words: Vec<String> = text.split(' ').map(str::to_owned).collect();
///     words.len()
/// }
///
/// assert_eq!(load("a b"), 2);
/// ```
///
/// It can be put on free functions, methods, generic and `async` functions (axum handlers stay handlers), and on functions
/// that return an `async` block. They behave in the same way as without it.
///
/// | option | values | default | |
/// |---|---|---|---|
/// | `metric` | `"rss"`, `"heap"` | `"rss"` | the process's resident memory; or exactly what the call allocated and has not freed, while a session records every allocation |
/// | `semantics` | `"readings"`, `"memory_profiler"` | `"readings"` | increments are differences to the reading before; or memory_profiler's, to the highest reading of the line before |
/// | `unit` | `"MiB"`, `"KiB"`, `"B"` | `"MiB"` | |
/// | `precision` | 0 to 9 | 1 (0 for `"B"`) | decimals |
/// | `sum` | `true`, `false` | `false` | all calls together, when the process exits or on demand |
/// | `full_report` | `true`, `false` | `true` | without: one line, `file function peak MiB` |
/// | `format` | `"memory_profiler"`, `"pycompss"` | `"memory_profiler"` | |
/// | `held` | `true`, `false` | `false` | what is live at the end, by call site; needs `metric = "heap"` |
/// | `enable` | `true`, `false` | `true` | without: the function itself |
///
/// ```
/// struct Cache(Vec<Vec<u8>>);
///
/// impl Cache {
///     #[heapray::profile(metric = "heap", unit = "KiB", held = true)]
///     async fn fill(&mut self, blocks: usize) {
///         for _ in 0..blocks {
///             self.0.push(vec![0; 4096]);
///         }
///     }
///
///     // One table for all calls.
///     #[heapray::profile(sum = true, precision = 3)]
///     fn get(&self, nth: usize) -> Option<&[u8]> {
///         let block = self.0.get(nth)?;
///         Some(block)
///     }
/// }
/// # assert!(Cache(Vec::new()).get(0).is_none());
/// # heapray::print_profiles();
/// ```
///
/// Reports go to standard output, or to the file that `MEMRAY_PROFILER_FUNCTION_FILE` names, or PyCOMPSs' own
/// `COMPSS_PROFILING_FILE`. `docs/line-profile.md` explains the table, and its differences from memory_profiler's.
///
/// A `const fn` can't be profiled:
///
/// ```compile_fail
/// #[heapray::profile]
/// const fn answer() -> u32 {
///     42
/// }
/// ```
#[proc_macro_attribute]
pub fn profile(arguments: TokenStream, function: TokenStream) -> TokenStream {
    expand!(profile, arguments, function)
}

/// Samples the CPU time of the calling thread while a function runs, and prints it by function.
///
/// ```ignore
/// #[heapray::single_thread_profiler(report_name = "load.pstats")]
/// fn load(path: &Path) -> io::Result<Catalogue> { /* … */ }
/// ```
///
/// The function's result, its errors and its panics stay its own; the profile is written in any case. For an `async fn`,
/// only the polls are sampled, on any thread. For what is measured, and on which systems, see
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
    expand!(single_thread, arguments, function)
}

/// Runs a function on a pool of workers, and writes a page about their work: which task ran on which thread when, CPU and
/// memory over time, time by function, and allocations by worker and call site.
///
/// ```ignore
/// #[heapray::parallel_profiler(n_workers = 2, threads_per_worker = 2, report_name = "load.html")]
/// async fn load_all(paths: Vec<PathBuf>) -> Result<Vec<Catalogue>, Error> { /* … */ }
/// ```
///
/// The function's result, its errors and its panics stay its own; the page is written in any case. If it is used together
/// with `single_thread_profiler`, that one comes first. See
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
    expand!(parallel, arguments, function)
}

/// Expands to the module's expansion of the function, or, without the feature, to the function itself.
macro_rules! expand {
    ($module:ident, $arguments:ident, $function:ident) => {{
        #[cfg(feature = "expand")]
        let expansion = expanded($module::expand($arguments.into(), $function.into()));
        #[cfg(not(feature = "expand"))]
        let (_, expansion) = ($arguments, $function);
        expansion
    }};
}
use expand;

/// Returns the expansion, or the error in its place.
#[cfg(feature = "expand")]
fn expanded(expansion: syn::Result<proc_macro2::TokenStream>) -> TokenStream {
    expansion
        .unwrap_or_else(|error| error.to_compile_error())
        .into()
}
