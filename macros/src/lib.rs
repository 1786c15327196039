//! The attributes of heapray, which [re-exports](https://docs.rs/heapray) them; use them from there.
//!
//! What an attribute expands to calls `::heapray::__private` and nothing else, so a function needs no imports for it.

#[cfg(feature = "expand")]
mod parallel;
#[cfg(feature = "expand")]
mod profile;
#[cfg(feature = "expand")]
mod single_thread;

use proc_macro::TokenStream;

/// Prints what each line of a function did to the process's memory.
#[proc_macro_attribute]
pub fn profile(arguments: TokenStream, function: TokenStream) -> TokenStream {
    expand!(profile, arguments, function)
}

/// Samples the CPU time of the calling thread while a function runs.
#[proc_macro_attribute]
pub fn single_thread_profiler(arguments: TokenStream, function: TokenStream) -> TokenStream {
    expand!(single_thread, arguments, function)
}

/// Runs a function on a pool of workers, and writes a page of what they did.
#[proc_macro_attribute]
pub fn parallel_profiler(arguments: TokenStream, function: TokenStream) -> TokenStream {
    expand!(parallel, arguments, function)
}

/// What the module makes of the function; without the feature, the function itself.
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

/// The expansion, or the error in its place.
#[cfg(feature = "expand")]
fn expanded(expansion: syn::Result<proc_macro2::TokenStream>) -> TokenStream {
    expansion
        .unwrap_or_else(|error| error.to_compile_error())
        .into()
}
