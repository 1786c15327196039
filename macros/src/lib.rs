//! The attributes of heapray, which [re-exports](https://docs.rs/heapray) them; use them from there.
//!
//! What an attribute expands to calls `::heapray::__private` and nothing else, so a function needs no imports for it.

mod parallel;
mod profile;
mod single_thread;

use proc_macro::TokenStream;

/// Prints what each line of a function did to the process's memory.
#[proc_macro_attribute]
pub fn profile(arguments: TokenStream, function: TokenStream) -> TokenStream {
    expanded(profile::expand(arguments.into(), function.into()))
}

/// Samples the CPU time of the calling thread while a function runs.
#[proc_macro_attribute]
pub fn single_thread_profiler(arguments: TokenStream, function: TokenStream) -> TokenStream {
    expanded(single_thread::expand(arguments.into(), function.into()))
}

/// Runs a function on a pool of workers, and writes a page of what they did.
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
