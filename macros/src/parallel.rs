//! Expands `parallel_profiler`: a guard before the body of a function, a future around that of an `async fn`, or a call
//! on a rayon pool. The function keeps its signature, its result, its errors and its panics.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{Error, ItemFn, Result, ReturnType, parse_quote, parse2};

use crate::arguments::{Arguments, has_unnamed, must_run, typed};

const KNOWN: [&str; 6] = [
    "n_workers",
    "threads_per_worker",
    "report_name",
    "display_report",
    "enable",
    "pool",
];

pub(crate) fn expand(arguments: TokenStream, function: TokenStream) -> Result<TokenStream> {
    let arguments = Arguments::parse(arguments, &KNOWN)?;
    let mut function: ItemFn = parse2(function)?;
    let is_async = function.sig.asyncness.is_some();
    let pool = pool(&arguments, is_async)?;
    if arguments.is_disabled() {
        return Ok(quote! { #function });
    }
    must_run(&function)?;
    let mut options = TokenStream::new();
    for name in [
        "n_workers",
        "threads_per_worker",
        "report_name",
        "display_report",
    ] {
        if let Some(value) = arguments.get(name) {
            let set = syn::Ident::new(name, proc_macro2::Span::call_site());
            options.extend(quote! { .#set(#value) });
        }
    }
    let name = function.sig.ident.to_string();
    let enable = match arguments.get("enable") {
        Some(enable) => quote! { #enable },
        None => quote! { true },
    };
    let begin = quote! {
        ::heapray::__private::Parallel::options(#enable, || {
            ::heapray::__private::Parallel::named(::core::concat!(::core::module_path!(), "::", #name)) #options
        })
    };
    let typed = typed(&function.sig.output);
    let body = &function.block.stmts;
    *function.block = if is_async {
        parse_quote! {{
            ::heapray::__private::Parallel::around(#begin, async move { #typed #(#body)* }).await
        }}
    } else if pool != Pool::Present {
        if let ReturnType::Type(_, of) = &function.sig.output
            && has_unnamed(of)
        {
            return Err(Error::new_spanned(
                of,
                "what runs on a pool must return a type that can be named; `pool = \"present\"` runs it in its place",
            ));
        }
        let run = match pool {
            Pool::Rayon => quote! { on_rayon },
            _ => quote! { here },
        };
        parse_quote! {{
            ::heapray::__private::Parallel::#run(#begin, move || { #typed #(#body)* })
        }}
    } else {
        parse_quote! {{
            let __heapray_profile = ::heapray::__private::Parallel::begin(#begin);
            #(#body)*
        }}
    };
    Ok(quote! { #function })
}

/// Pool that a function runs on.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Pool {
    Present,
    Tokio,
    Rayon,
}

fn pool(arguments: &Arguments, is_async: bool) -> Result<Pool> {
    let sized = arguments.get("n_workers").is_some();
    let Some((pool, span)) = arguments.text("pool")? else {
        return Ok(match (sized, is_async) {
            (false, _) => Pool::Present,
            (true, true) => Pool::Tokio,
            (true, false) => Pool::Rayon,
        });
    };
    match pool.as_str() {
        "rayon" if is_async => Err(Error::new(
            span,
            "an `async fn` can't run on a rayon pool; leave `pool` out for one of tokio's",
        )),
        "rayon" => Ok(Pool::Rayon),
        "tokio" => Ok(Pool::Tokio),
        "present" if sized => Err(Error::new(
            span,
            "the present threads are as many as they are; leave `n_workers` out",
        )),
        "present" => Ok(Pool::Present),
        _ => Err(Error::new(
            span,
            "unknown pool; the pools are `tokio`, `rayon` and `present`",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expanded(arguments: TokenStream, function: TokenStream) -> String {
        match expand(arguments, function) {
            Ok(expansion) => expansion.to_string(),
            Err(error) => format!("error: {error}"),
        }
    }

    #[test]
    fn a_sync_function_of_a_size_runs_on_rayon_and_an_async_one_on_tokio() {
        let sized = quote! { n_workers = 2 };
        let sync = expanded(sized.clone(), quote! { fn f() -> u8 { 1 } });
        assert!(sync.contains("on_rayon"), "{sync}");
        let task = expanded(sized, quote! { async fn f() -> u8 { 1 } });
        assert!(task.contains("around"), "{task}");
        let here = expanded(quote! {}, quote! { fn f() -> u8 { 1 } });
        assert!(here.contains("begin"), "{here}");
    }

    #[test]
    fn what_is_wrong_is_said() {
        let cases = [
            (
                quote! { workers = 1 },
                quote! { fn f() {} },
                "unknown argument",
            ),
            (
                quote! { pool = "threads" },
                quote! { fn f() {} },
                "unknown pool",
            ),
            (
                quote! { pool = "rayon" },
                quote! { async fn f() {} },
                "async fn",
            ),
            (
                quote! { n_workers = 2 },
                quote! { fn f() -> impl Sized {} },
                "can be named",
            ),
        ];
        for (arguments, function, expected) in cases {
            let found = expanded(arguments, function);
            assert!(
                found.starts_with("error") && found.contains(expected),
                "{found}"
            );
        }
    }

    #[test]
    fn a_function_that_is_not_profiled_is_itself() {
        let function = quote! { async fn f() -> Result<(), E> { g().await?; Ok(()) } };
        let arguments = quote! { n_workers = 2, threads_per_worker = 2, enable = false };
        assert_eq!(expanded(arguments, function.clone()), function.to_string());
    }
}
