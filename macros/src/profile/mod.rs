//! `#[profile]`: inserts statements between those of the function that note which line begins.
//!
//! No code of the function is wrapped or moved. There is only a *marker* before a statement, and a guard where the end of a
//! block is to be noted. So types, borrows, temporaries and the order of drops stay the same. The one exception is `async`,
//! whose body becomes a block of its own, since its polls have to be measured.
//!
//! ```text
//! arguments ─▶ what is measured, how it is shown     source ─▶ the function's text
//! markers   ─▶ the body with its markers             asynchronous ─▶ the body as a future
//! ```

mod arguments;
mod asynchronous;
mod markers;
mod source;

use proc_macro2::{Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::spanned::Spanned as _;
use syn::{Error, ItemFn, Stmt};

use arguments::Arguments;
use markers::Markers;
use source::Source;

/// Returns the function with its markers. If it cannot be profiled, returns the error and the unchanged function, so that
/// nothing else in the crate fails because the function is missing.
pub(crate) fn expand(arguments: TokenStream, function: TokenStream) -> syn::Result<TokenStream> {
    let profiled = Arguments::parse(arguments).and_then(|arguments| {
        if arguments.enable {
            profiled(&arguments, function.clone())
        } else {
            Ok(function.clone())
        }
    });
    Ok(profiled.unwrap_or_else(|error| {
        let error = error.to_compile_error();
        quote!(#error #function)
    }))
}

fn profiled(arguments: &Arguments, function: TokenStream) -> syn::Result<TokenStream> {
    let mut function = parse(function)?;
    let source = Source::of(&function);
    let mut markers = Markers::new(source.first_line, source.last_line);
    let is_async = function.sig.asyncness.is_some();
    if is_async {
        markers.body(&mut function.block);
        asynchronous::wrap_body(&mut function);
    } else if let Some(block) = asynchronous::returned_block(&mut function.block) {
        markers.body(&mut block.block);
        asynchronous::wrap_returned(&mut function.block);
    } else {
        let span = Span::mixed_site();
        markers.body(&mut function.block);
        // The outermost local, so the last to be dropped: frees by the others are measured. It stands after items at the
        // start, because clippy wants those first.
        let items = leading_items(&function.block.stmts);
        let call =
            syn::parse_quote_spanned!(span=> let __heapray_call = __HEAPRAY_FUNCTION.enter(););
        function.block.stmts.insert(items, call);
    }
    let declaration = declaration(arguments, &source, &function.sig.ident);
    function.block.stmts.insert(0, declaration);
    Ok(quote!(#function))
}

fn parse(function: TokenStream) -> syn::Result<ItemFn> {
    let span = function.clone().into_iter().next();
    let function: ItemFn = syn::parse2(function).map_err(|error| {
        let at = span.map_or_else(Span::call_site, |token| token.span());
        Error::new(
            at,
            format!("only a function with a body can be profiled ({error})"),
        )
    })?;
    if let Some(token) = &function.sig.constness {
        return Err(Error::new(
            token.span(),
            "a const fn can't be profiled: it may run while the program is compiled, where there is no memory to measure",
        ));
    }
    if let Some(naked) = function.attrs.iter().find(|attribute| is_naked(attribute)) {
        return Err(Error::new(
            naked.span(),
            "a naked function can't be profiled: it consists of assembly alone",
        ));
    }
    Ok(function)
}

fn is_naked(attribute: &syn::Attribute) -> bool {
    let tokens = match &attribute.meta {
        syn::Meta::Path(path) => return path.is_ident("naked"),
        syn::Meta::List(list) if list.path.is_ident("unsafe") => list.tokens.to_string(),
        _ => return false,
    };
    tokens == "naked"
}

fn leading_items(statements: &[Stmt]) -> usize {
    let items = statements
        .iter()
        .take_while(|statement| matches!(statement, Stmt::Item(_)));
    items.count()
}

/// Returns the declaration for the run-time part, once for all calls of the function.
fn declaration(arguments: &Arguments, source: &Source, name: &syn::Ident) -> Stmt {
    let name = name.to_string();
    let text = &source.text;
    let first_line = u32::try_from(source.first_line).unwrap_or(1);
    let lines = u32::try_from(source.last_line - source.first_line + 1).unwrap_or(1);
    let options = arguments.options();
    let tokens = quote_spanned! {Span::mixed_site()=>
        static __HEAPRAY_FUNCTION: ::heapray::__private::line_profile::Function =
            ::heapray::__private::line_profile::Function::new(
                ::heapray::__private::line_profile::Source {
                    file: ::core::file!(),
                    path: ::core::concat!(::core::module_path!(), "::", #name),
                    name: #name,
                    first_line: #first_line,
                    lines: #lines,
                    text: #text,
                },
                #options,
            );
    };
    Stmt::Item(syn::Item::Verbatim(tokens))
}
