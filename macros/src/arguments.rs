//! The arguments of the profilers' attributes: `name = value`, in any order, each once.

use proc_macro2::{Span, TokenStream};
use syn::parse::Parser as _;
use syn::punctuated::Punctuated;
use syn::spanned::Spanned as _;
use syn::{Error, Expr, ExprLit, Lit, MetaNameValue, Result, ReturnType, Token, Type};

/// Arguments in an attribute's parentheses.
pub(crate) struct Arguments {
    given: Vec<MetaNameValue>,
}

impl Arguments {
    /// Parses arguments, each of whose names is one of `known`.
    pub(crate) fn parse(tokens: TokenStream, known: &[&str]) -> Result<Arguments> {
        let parser = Punctuated::<MetaNameValue, Token![,]>::parse_terminated;
        let given: Vec<MetaNameValue> = parser.parse2(tokens)?.into_iter().collect();
        for (nth, argument) in given.iter().enumerate() {
            let path = &argument.path;
            if !known.iter().any(|known| path.is_ident(known)) {
                let known = known.join("`, `");
                return Err(Error::new(
                    path.span(),
                    format!("unknown argument; the arguments are `{known}`"),
                ));
            }
            if given[..nth]
                .iter()
                .any(|earlier| earlier.path.get_ident() == path.get_ident())
            {
                return Err(Error::new(path.span(), "this argument was given before"));
            }
        }
        Ok(Arguments { given })
    }

    /// Returns the value of `name`, if it was given.
    pub(crate) fn get(&self, name: &str) -> Option<&Expr> {
        let named = |argument: &&MetaNameValue| argument.path.is_ident(name);
        self.given.iter().find(named).map(|found| &found.value)
    }

    /// Returns the text of `name`, which must be a literal.
    pub(crate) fn text(&self, name: &str) -> Result<Option<(String, Span)>> {
        match self.get(name) {
            None => Ok(None),
            Some(Expr::Lit(ExprLit {
                lit: Lit::Str(text),
                ..
            })) => Ok(Some((text.value(), text.span()))),
            Some(other) => Err(Error::new(other.span(), "this must be a literal text")),
        }
    }

    /// Returns whether the arguments have `enable = false`: then the function stays as it is.
    pub(crate) fn is_disabled(&self) -> bool {
        let value = self.get("enable");
        matches!(value, Some(Expr::Lit(ExprLit { lit: Lit::Bool(enable), .. })) if !enable.value)
    }
}

/// Returns statements that give the compiler the return type of a block of a function's body, so that `?` and `into()` in it
/// are inferred as in the function itself. They never run.
pub(crate) fn typed(output: &ReturnType) -> TokenStream {
    match output {
        ReturnType::Type(_, of) if !has_unnamed(of) => quote::quote! {
            #[allow(
                unreachable_code, clippy::diverging_sub_expression, clippy::empty_loop, clippy::let_unit_value,
                clippy::needless_return, clippy::unreachable, clippy::let_with_type_underscore
            )]
            if false {
                let __heapray_never: #of = loop {};
                return __heapray_never;
            }
        },
        _ => TokenStream::new(),
    }
}

/// Returns whether a type cannot be written for a variable: `impl Trait` somewhere in it, or `!`.
pub(crate) fn has_unnamed(of: &Type) -> bool {
    struct Unnamed(bool);
    impl syn::visit_mut::VisitMut for Unnamed {
        fn visit_type_impl_trait_mut(&mut self, _: &mut syn::TypeImplTrait) {
            self.0 = true;
        }
        fn visit_type_never_mut(&mut self, _: &mut syn::TypeNever) {
            self.0 = true;
        }
    }
    let mut found = Unnamed(false);
    syn::visit_mut::VisitMut::visit_type_mut(&mut found, &mut of.clone());
    found.0
}

/// Refuses functions that cannot be profiled.
pub(crate) fn must_run(function: &syn::ItemFn) -> Result<()> {
    match &function.sig.constness {
        Some(constness) => Err(Error::new(
            constness.span(),
            "a `const fn` may run in the compiler, where nothing can be profiled",
        )),
        None => Ok(()),
    }
}
