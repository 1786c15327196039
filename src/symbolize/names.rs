//! Names of functions as people write them.

use std::borrow::Cow;

/// `symbol` demangled: Rust (v0, and legacy without its hash) or C++; any other name as it is.
///
/// C names are told apart by their prefix, since to a C++ demangler `f` is the type `float`.
pub(crate) fn demangle(symbol: &str) -> Cow<'_, str> {
    if let Ok(name) = rustc_demangle::try_demangle(symbol) {
        return Cow::Owned(format!("{name:#}"));
    }
    if symbol.starts_with("_Z") || symbol.starts_with("__Z") {
        let name = cpp_demangle::Symbol::new(symbol)
            .ok()
            .and_then(|name| name.demangle().ok());
        if let Some(name) = name {
            return Cow::Owned(name);
        }
    }
    Cow::Borrowed(symbol)
}

#[cfg(test)]
mod tests {
    use super::demangle;

    #[test]
    fn names_of_each_language_are_demangled() {
        let cases = [
            // Rust, legacy: the hash goes.
            (
                "_ZN4core9panicking9panic_fmt17h5f1a6fd39197ad62E",
                "core::panicking::panic_fmt",
            ),
            (
                "_ZN60_$LT$alloc..string..String$u20$as$u20$core..fmt..Display$GT$3fmt17h0123456789abcdefE",
                "<alloc::string::String as core::fmt::Display>::fmt",
            ),
            // Rust, v0: the crate's disambiguator goes.
            ("_RNvCs1234_7mycrate3foo", "mycrate::foo"),
            (
                "_RNvCshp2wtCDdZ6T_7___rustc12___rust_alloc",
                "__rustc::__rust_alloc",
            ),
            ("_ZN3foo3barEv", "foo::bar()"),
            ("_Znwm", "operator new(unsigned long)"),
            ("__libc_start_main", "__libc_start_main"),
            ("malloc", "malloc"),
        ];
        for (symbol, name) in cases {
            assert_eq!(demangle(symbol), name, "{symbol}");
        }
    }

    #[test]
    fn a_c_name_that_is_also_a_mangled_type_stays() {
        for symbol in ["f", "i", "v", "Pc", "a"] {
            assert_eq!(demangle(symbol), symbol);
        }
    }

    #[test]
    fn broken_symbols_stay() {
        for symbol in ["_R", "_RNv", "_ZN", "_ZN9foo", "_Z", "", "_ZN3foo"] {
            assert_eq!(demangle(symbol), symbol);
        }
    }
}
