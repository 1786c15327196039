//! The arguments in the attribute's parentheses.

use proc_macro2::TokenStream;
use quote::quote;
use syn::parse::Parser as _;
use syn::punctuated::Punctuated;
use syn::spanned::Spanned as _;
use syn::{Error, Expr, ExprLit, Lit, MetaNameValue, Token};

/// Options, each with its default.
#[derive(Debug)]
pub(super) struct Arguments {
    pub(super) enable: bool,
    metric: &'static str,
    semantics: &'static str,
    format: &'static str,
    unit: &'static str,
    precision: Option<u8>,
    full_report: bool,
    sum: bool,
    held: bool,
}

/// Word of an option, and its variant in the enum of the run-time part.
type Word = (&'static str, &'static str);

const METRICS: &[Word] = &[("rss", "Rss"), ("heap", "Heap")];
const SEMANTICS: &[Word] = &[
    ("readings", "Readings"),
    ("memory_profiler", "MemoryProfiler"),
];
const FORMATS: &[Word] = &[
    ("memory_profiler", "MemoryProfiler"),
    ("pycompss", "Pycompss"),
];
const UNITS: &[Word] = &[("MiB", "Mebibytes"), ("KiB", "Kibibytes"), ("B", "Bytes")];

const NAMES: &str = "enable, metric, semantics, precision, unit, sum, full_report, format and held";

impl Arguments {
    pub(super) fn parse(tokens: TokenStream) -> syn::Result<Arguments> {
        let mut arguments = Arguments {
            enable: true,
            metric: METRICS[0].1,
            semantics: SEMANTICS[0].1,
            format: FORMATS[0].1,
            unit: UNITS[0].1,
            precision: None,
            full_report: true,
            sum: false,
            held: false,
        };
        let list = Punctuated::<MetaNameValue, Token![,]>::parse_terminated.parse2(tokens)?;
        let mut seen = Vec::new();
        for MetaNameValue { path, value, .. } in &list {
            let name = path
                .get_ident()
                .map(ToString::to_string)
                .unwrap_or_default();
            match name.as_str() {
                "enable" => arguments.enable = truth(value)?,
                "metric" => arguments.metric = word(value, METRICS)?,
                "semantics" => arguments.semantics = word(value, SEMANTICS)?,
                "format" => arguments.format = word(value, FORMATS)?,
                "unit" => arguments.unit = word(value, UNITS)?,
                "precision" => arguments.precision = Some(precision(value)?),
                "full_report" => arguments.full_report = truth(value)?,
                "sum" => arguments.sum = truth(value)?,
                "held" => arguments.held = truth(value)?,
                _ => {
                    let message = format!("unknown option; the options are {NAMES}");
                    return Err(Error::new(path.span(), message));
                }
            }
            if seen.contains(&name) {
                return Err(Error::new(path.span(), "this option was given before"));
            }
            seen.push(name);
        }
        arguments.check(&list)?;
        Ok(arguments)
    }

    /// Refuses options that cannot be combined.
    fn check(&self, list: &Punctuated<MetaNameValue, Token![,]>) -> syn::Result<()> {
        let given = |name: &str| list.iter().find(|given| given.path.is_ident(name));
        let refuse = |name: &str, why: &str| match given(name) {
            Some(given) => Err(Error::new(given.span(), why)),
            None => Ok(()),
        };
        if self.held && self.metric != "Heap" {
            refuse("held", "`held = true` needs `metric = \"heap\"`")?;
        }
        if self.sum && self.held {
            refuse(
                "held",
                "`held` is reported for each call: it cannot be combined with `sum = true`",
            )?;
        }
        if self.sum && !self.full_report {
            refuse(
                "full_report",
                "the short line is for one call: `full_report = false` cannot be combined with `sum = true`",
            )?;
        }
        Ok(())
    }

    /// Returns the options of the run-time part.
    pub(super) fn options(&self) -> TokenStream {
        let ident = |name: &str| syn::Ident::new(name, proc_macro2::Span::mixed_site());
        let metric = ident(self.metric);
        let semantics = ident(self.semantics);
        let format = ident(self.format);
        let unit = ident(self.unit);
        let precision = match (self.precision, self.unit) {
            (Some(precision), _) => precision,
            (None, "Bytes") => 0,
            (None, _) => 1,
        };
        let (full_report, sum, held) = (self.full_report, self.sum, self.held);
        quote! {
            ::heapray::__private::line_profile::Options {
                metric: ::heapray::__private::line_profile::Metric::#metric,
                semantics: ::heapray::__private::line_profile::Semantics::#semantics,
                format: ::heapray::__private::line_profile::Format::#format,
                unit: ::heapray::__private::line_profile::Unit::#unit,
                precision: #precision,
                full_report: #full_report,
                sum: #sum,
                held: #held,
            }
        }
    }
}

fn truth(value: &Expr) -> syn::Result<bool> {
    match literal(value) {
        Some(Lit::Bool(value)) => Ok(value.value),
        _ => Err(Error::new(value.span(), "expected `true` or `false`")),
    }
}

fn word(value: &Expr, words: &[Word]) -> syn::Result<&'static str> {
    if let Some(Lit::Str(text)) = literal(value) {
        let text = text.value();
        if let Some((_, variant)) = words.iter().find(|(word, _)| *word == text) {
            return Ok(variant);
        }
    }
    let words: Vec<String> = words.iter().map(|(word, _)| format!("{word:?}")).collect();
    let message = format!("expected {}", words.join(" or "));
    Err(Error::new(value.span(), message))
}

fn precision(value: &Expr) -> syn::Result<u8> {
    let number = match literal(value) {
        Some(Lit::Int(number)) => number.base10_parse().ok(),
        _ => None,
    };
    number
        .filter(|&number| number <= 9)
        .ok_or_else(|| Error::new(value.span(), "expected a number of decimals from 0 to 9"))
}

fn literal(value: &Expr) -> Option<&Lit> {
    match value {
        Expr::Lit(ExprLit { lit, .. }) => Some(lit),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<String, String> {
        let parsed = Arguments::parse(text.parse().unwrap());
        parsed
            .map(|arguments| {
                let options = arguments.options().to_string();
                options.replace(" :: heapray :: __private :: line_profile :: ", "")
            })
            .map_err(|error| error.to_string())
    }

    #[test]
    fn options_have_defaults() {
        let options = parse("").unwrap();
        for part in [
            "Metric :: Rss",
            "Semantics :: Readings",
            "Format :: MemoryProfiler",
            "Unit :: Mebibytes",
            "precision : 1u8",
            "full_report : true",
            "sum : false",
            "held : false",
        ] {
            assert!(options.contains(part), "{part} in {options}");
        }
        assert!(parse("unit = \"B\"").unwrap().contains("precision : 0u8"));
        let options = parse("unit = \"B\", precision = 2,").unwrap();
        assert!(options.contains("precision : 2u8"));
    }

    #[test]
    fn errors_say_what_is_wrong() {
        for (text, error) in [
            ("rss", "expected `=`"),
            ("metric = rss", "expected \"rss\" or \"heap\""),
            ("a::b = 1", "unknown option"),
            ("precision = -1", "expected a number of decimals"),
            ("sum = true, held = true", "`held = true` needs"),
        ] {
            let told = parse(text).unwrap_err();
            assert!(told.contains(error), "{text}: {told}");
        }
    }
}
