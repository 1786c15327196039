//! Functions that return a future: their polls are measured.

use proc_macro2::Span;
use quote::quote_spanned;
use syn::spanned::Spanned as _;
use syn::visit_mut::{self, VisitMut};
use syn::{Block, Expr, ExprAsync, FnArg, Ident, ItemFn, Pat, ReturnType, Stmt, Type};

/// `async fn f(a: A) -> R { body }` becomes `async fn f(a: A) -> R { FUNCTION.future(async move { body }).await }`.
pub(super) fn wrap_body(function: &mut ItemFn) {
    let span = Span::mixed_site();
    let rebound = rebound_arguments(function);
    let output = output_hint(&function.sig.output);
    let items = super::leading_items(&function.block.stmts);
    let mut body = std::mem::take(&mut function.block.stmts);
    let rest = body.split_off(items);
    let future: Expr = syn::parse_quote_spanned! {span=>
        __HEAPRAY_FUNCTION.future(async move { #output #(#rebound)* #(#rest)* }).await
    };
    body.push(Stmt::Expr(future, None));
    function.block.stmts = body;
}

/// Returns a statement that gives the compiler the type of the inner block, as the signature does for the body: a `return`
/// that is never reached. If a type is `impl Trait`, the compiler has to infer it.
fn output_hint(output: &ReturnType) -> Stmt {
    let mut output: Type = match output {
        ReturnType::Default => syn::parse_quote!(()),
        ReturnType::Type(_, output) => (**output).clone(),
    };
    // The compiler's messages then name this place as the source of the type.
    let span = Span::mixed_site().located_at(output.span());
    NoImplTrait.visit_type_mut(&mut output);
    let tokens = quote_spanned! {span=>
        #[allow(
            unreachable_code, clippy::diverging_sub_expression, clippy::empty_loop, clippy::let_unit_value,
            clippy::needless_return, clippy::unused_unit
        )]
        if false {
            let __heapray_output: #output = loop {};
            return __heapray_output;
        }
    };
    Stmt::Expr(Expr::Verbatim(tokens), None)
}

struct NoImplTrait;

impl VisitMut for NoImplTrait {
    fn visit_type_mut(&mut self, ty: &mut Type) {
        if let Type::ImplTrait(_) = ty {
            *ty = syn::parse_quote!(_);
        } else {
            visit_mut::visit_type_mut(self, ty);
        }
    }
}

/// Returns `let a = a;` for each argument, in their order, as the compiler does for any `async fn`. So all of them live in
/// the inner block, used or not, and are dropped there, the last first. A pattern is also destructured there.
fn rebound_arguments(function: &mut ItemFn) -> Vec<Stmt> {
    let span = Span::mixed_site();
    let mut rebound = Vec::new();
    for (nth, argument) in function.sig.inputs.iter_mut().enumerate() {
        let FnArg::Typed(argument) = argument else {
            continue;
        };
        match &mut *argument.pat {
            Pat::Ident(pattern) if pattern.by_ref.is_none() && pattern.subpat.is_none() => {
                let name: Ident = pattern.ident.clone();
                let mutability = pattern.mutability.take();
                rebound.push(syn::parse_quote_spanned!(span=> let #mutability #name = #name;));
            }
            pattern => {
                let whole = Ident::new(&format!("argument_{}", nth + 1), span);
                rebound.push(syn::parse_quote_spanned!(span=> let #whole = #whole;));
                rebound.push(syn::parse_quote_spanned!(span=> let #pattern = #whole;));
                *pattern = syn::parse_quote_spanned!(span=> #whole);
            }
        }
    }
    rebound
}

/// Returns the block of a function that ends in `async { … }` or `Box::pin(async { … })`, which `async_trait` makes, too.
pub(super) fn returned_block(block: &mut Block) -> Option<&mut ExprAsync> {
    async_block(tail(block)?)
}

/// Wraps the future of [`returned_block`] in the run-time part's.
pub(super) fn wrap_returned(block: &mut Block) {
    let future = tail(block).and_then(|tail| match tail {
        Expr::Call(call) => call.args.first_mut(),
        _ => Some(tail),
    });
    if let Some(future) = future {
        let span = Span::mixed_site();
        *future = syn::parse_quote_spanned!(span=> __HEAPRAY_FUNCTION.future(#future));
    }
}

fn tail(block: &mut Block) -> Option<&mut Expr> {
    match block.stmts.last_mut()? {
        Stmt::Expr(tail, None) => Some(tail),
        _ => None,
    }
}

fn async_block(tail: &mut Expr) -> Option<&mut ExprAsync> {
    match tail {
        Expr::Async(block) => Some(block),
        Expr::Call(call) => {
            let Expr::Path(function) = &*call.func else {
                return None;
            };
            let names = function.path.segments.iter().rev();
            let mut names = names.map(|segment| segment.ident.to_string());
            let is_pin = names.next()? == "pin" && names.next()? == "Box";
            match call.args.first_mut()? {
                Expr::Async(block) if is_pin => Some(block),
                _ => None,
            }
        }
        _ => None,
    }
}
