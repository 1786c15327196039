//! Expands `single_thread_profiler`: a guard before the body of a function, a future around that of an `async fn`. The
//! function keeps its signature, its result, its errors and its panics.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{Error, ItemFn, Result, parse_quote, parse2};

use crate::arguments::{Arguments, must_run, typed};

const KNOWN: [&str; 8] = [
    "report_name",
    "enable",
    "sort_by",
    "limit",
    "print",
    "strip_dirs",
    "interval_us",
    "callback",
];

/// Names of `cpu_profile::SortBy::named` in heapray.
const ORDERS: [&str; 11] = [
    "cumulative",
    "cumtime",
    "time",
    "tottime",
    "own",
    "calls",
    "ncalls",
    "samples",
    "name",
    "file",
    "filename",
];

pub(crate) fn expand(arguments: TokenStream, function: TokenStream) -> Result<TokenStream> {
    let arguments = Arguments::parse(arguments, &KNOWN)?;
    let mut function: ItemFn = parse2(function)?;
    let options = options(&arguments)?;
    if arguments.is_disabled() {
        return Ok(quote! { #function });
    }
    must_run(&function)?;
    let name = function.sig.ident.to_string();
    let enable = match arguments.get("enable") {
        Some(enable) => quote! { #enable },
        None => quote! { true },
    };
    let begin = quote! {
        ::heapray::__private::SingleThread::options(#enable, || {
            ::heapray::__private::SingleThread::named(::core::concat!(::core::module_path!(), "::", #name)) #options
        })
    };
    let body = &function.block.stmts;
    *function.block = if function.sig.asyncness.is_some() {
        let typed = typed(&function.sig.output);
        parse_quote! {{
            ::heapray::__private::SingleThread::around(#begin, async move { #typed #(#body)* }).await
        }}
    } else {
        parse_quote! {{
            let __heapray_profile = ::heapray::__private::SingleThread::begin(#begin);
            #(#body)*
        }}
    };
    Ok(quote! { #function })
}

/// Returns calls that set the given options.
fn options(arguments: &Arguments) -> Result<TokenStream> {
    let mut options = TokenStream::new();
    if let Some((order, span)) = arguments.text("sort_by")? {
        if !ORDERS.contains(&order.as_str()) {
            let orders = ORDERS.join("`, `");
            return Err(Error::new(
                span,
                format!("unknown order; the orders are `{orders}`"),
            ));
        }
        options.extend(quote! { .sort_by(#order) });
    }
    for name in [
        "report_name",
        "limit",
        "print",
        "strip_dirs",
        "interval_us",
        "callback",
    ] {
        if let Some(value) = arguments.get(name) {
            let set = syn::Ident::new(name, proc_macro2::Span::call_site());
            options.extend(quote! { .#set(#value) });
        }
    }
    Ok(options)
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
    fn a_function_that_is_not_profiled_is_itself() {
        let function = quote! { pub fn f<T: Clone>(x: &T) -> T { x.clone() } };
        assert_eq!(
            expanded(quote! { enable = false }, function.clone()),
            function.to_string()
        );
    }

    #[test]
    fn the_signature_stays() {
        let expansion = expanded(
            quote! { report_name = "f.pstats" },
            quote! { pub(crate) fn f<'a>(&'a mut self) -> impl Iterator<Item = u8> + 'a { self.0.drain(..) } },
        );
        let signature =
            quote! { pub(crate) fn f<'a>(&'a mut self) -> impl Iterator<Item = u8> + 'a };
        assert!(expansion.starts_with(&signature.to_string()), "{expansion}");
    }

    #[test]
    fn what_is_wrong_is_said() {
        let f = quote! { fn f() {} };
        let cases = [
            (quote! { name = 1 }, f.clone(), "unknown argument"),
            (quote! { limit = 1, limit = 2 }, f.clone(), "given before"),
            (quote! { sort_by = "weight" }, f.clone(), "unknown order"),
            (quote! {}, quote! { const fn f() {} }, "const fn"),
        ];
        for (arguments, function, expected) in cases {
            let found = expanded(arguments, function);
            assert!(
                found.starts_with("error") && found.contains(expected),
                "{found}"
            );
        }
    }
}
