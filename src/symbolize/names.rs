//! Names of functions in the form that people read.

use std::borrow::Cow;

use heapray_report::views::{plain_name, short_name, trait_name};

use super::v0;

/// The longest name that is kept, in bytes. Nested generic code can have names of megabytes.
const LONGEST: usize = 64 << 10;

/// The name of a function in a report.
#[derive(Debug, Clone, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
pub(crate) struct FunctionName {
    /// The full name, as the compiler writes it.
    pub(crate) full: String,
    /// The plain name: the same for both manglings, and short enough to be shown.
    pub(crate) plain: String,
    /// The name with the trait in place of the type, if `full` names only the type that the trait's code was instantiated
    /// for. Else empty.
    pub(crate) by_trait: String,
}

impl FunctionName {
    /// Returns the name of `symbol`, mangled or not.
    pub(crate) fn of(symbol: &str) -> FunctionName {
        let mut full = demangle(symbol).into_owned();
        if full.len() > LONGEST {
            let end = (0..=LONGEST).rev().find(|&at| full.is_char_boundary(at));
            full.truncate(end.unwrap_or(0));
            full.push('…');
        }
        let by_trait = v0::is_of_any_type(symbol, &full).then(|| trait_name(&full));
        let by_trait = by_trait.flatten().unwrap_or_default();
        let plain = if by_trait.is_empty() {
            plain_name(&full)
        } else {
            Cow::Borrowed(&*by_trait)
        };
        FunctionName {
            plain: short_name(&plain).into_owned(),
            by_trait,
            full,
        }
    }

    /// Returns the name that a report has as `full` and `plain`.
    pub(crate) fn of_report(full: &str, plain: &str) -> FunctionName {
        let is_shown = |name: &str| short_name(name) == plain;
        let by_trait = if is_shown(&plain_name(full)) {
            None
        } else {
            trait_name(full).filter(|name| is_shown(name))
        };
        FunctionName {
            full: full.to_owned(),
            plain: plain.to_owned(),
            by_trait: by_trait.unwrap_or_default(),
        }
    }

    /// Returns a name that does not come from a symbol.
    pub(crate) fn plain(name: String) -> FunctionName {
        FunctionName {
            plain: name.clone(),
            full: name,
            by_trait: String::new(),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.full.is_empty()
    }

    /// Returns the name that shows whether the code is the library's or the program's.
    pub(crate) fn for_role(&self) -> &str {
        if self.by_trait.is_empty() {
            &self.full
        } else {
            &self.by_trait
        }
    }
}

/// Demangles `symbol`: Rust (v0, and legacy without its hash) or C++. Returns any other name unchanged.
///
/// Only names with the prefix of C++ are demangled as C++, because a C++ demangler takes the C name `f` for the type
/// `float`.
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
    use super::{FunctionName, LONGEST, demangle};
    use heapray_report::views::LONGEST_SHOWN;

    /// Functions with both manglings of rustc 1.95 and their plain name.
    #[test]
    fn a_function_has_one_plain_name_whatever_the_mangling() {
        let cases = [
            (
                "_ZN4shop5inner4each17hcdf437e5042e8a20E",
                "_RINvNtCskK9ONXSS8Nz_4shop5inner4eachReKj1_EB4_",
                "shop::inner::each",
            ),
            (
                "_ZN4shop12Row$LT$T$GT$4keep17h03dd8aceafa362cfE",
                "_RNvMs3_CskK9ONXSS8Nz_4shopINtB5_3RowhE4keepB5_",
                "shop::Row::keep",
            ),
            (
                "_ZN4shop5inner38_$LT$impl$u20$shop..Row$LT$u64$GT$$GT$3out17he8ce10e7e34a702cE",
                "_RNvMNtCskK9ONXSS8Nz_4shop5innerINtB4_3RowyE3out",
                "shop::Row::out",
            ),
            (
                "_ZN48_$LT$shop..Row$LT$T$GT$$u20$as$u20$shop..Job$GT$3run17h1635faba81d6a9b9E",
                "_RNvXs_CskK9ONXSS8Nz_4shopINtB4_3RowhENtB4_3Job3runB4_",
                "shop::Row::run",
            ),
            (
                "_ZN32_$LT$u8$u20$as$u20$shop..Job$GT$3run17hff468553ce5689acE",
                "_RNvXs0_CskK9ONXSS8Nz_4shophNtB5_3Job3run",
                "u8::run",
            ),
            (
                "_ZN58_$LT$shop..Row$LT$u8$GT$$u20$as$u20$core..fmt..Display$GT$3fmt17h52bf4b3aecf44f2dE",
                "_RNvXs2_CskK9ONXSS8Nz_4shopINtB5_3RowhENtNtCsgEmfK2I1SDS_4core3fmt7Display3fmt",
                "shop::Row::fmt",
            ),
            // A default method of the trait.
            (
                "_ZN4shop3Job5twice17h71f168dc59508da6E",
                "_RNvYINtCskK9ONXSS8Nz_4shop3RowhENtB5_3Job5twiceB5_",
                "shop::Job::twice",
            ),
            // Generic over the type. The type is a function, then a closure.
            (
                "_ZN35_$LT$F$u20$as$u20$shop..Handler$GT$4call17h7bdcb287119f7c4cE",
                "_RNvXs1_CskK9ONXSS8Nz_4shopNvB5_5fortyNtB5_7Handler4callB5_",
                "shop::Handler::call",
            ),
            (
                "_ZN35_$LT$F$u20$as$u20$shop..Handler$GT$4call17hc73ec562286f685fE",
                "_RNvXs1_CskK9ONXSS8Nz_4shopNCNvB5_3alls0_0NtB5_7Handler4callB5_",
                "shop::Handler::call",
            ),
            (
                "_ZN5alloc7raw_vec20RawVecInner$LT$A$GT$11finish_grow17h821bb1a23e0ac061E",
                "_RNvMs4_NtCslNYArtu3iFV_5alloc7raw_vecNtB5_11RawVecInner11finish_growCskK9ONXSS8Nz_4shop",
                "alloc::raw_vec::RawVecInner::finish_grow",
            ),
        ];
        for (legacy, v0, plain) in cases {
            assert_eq!(FunctionName::of(legacy).plain, plain, "{legacy}");
            assert_eq!(FunctionName::of(v0).plain, plain, "{v0}");
        }
        // Generic over the type, and the type has a name. The v0 symbol does not show that the code is generic.
        let legacy =
            FunctionName::of("_ZN33_$LT$T$u20$as$u20$shop..Spawn$GT$5spawn17h91d5c3d5e82998f4E");
        let v0 = FunctionName::of("_RNvXCskK9ONXSS8Nz_4shopINtB2_3RowhENtB2_5Spawn5spawnB2_");
        assert_eq!(legacy.plain, "shop::Spawn::spawn");
        assert_eq!(v0.plain, "shop::Row::spawn");
    }

    #[test]
    fn library_code_for_any_type_has_the_name_of_its_trait() {
        // impl<T: Display> ToString for T
        let name = FunctionName::of(
            "_RNvXs_NtCslNYArtu3iFV_5alloc6stringNtCskK9ONXSS8Nz_4shop3RowNtB4_8ToString9to_string",
        );
        assert_eq!(
            name.full,
            "<shop::Row as alloc::string::ToString>::to_string"
        );
        assert_eq!(name.plain, "alloc::string::ToString::to_string");
        assert_eq!(name.for_role(), name.plain);
        assert_eq!(FunctionName::of_report(&name.full, &name.plain), name);
        // The library's code for one of its own types.
        let name = FunctionName::of(
            "_RNvXsZ_NtCslNYArtu3iFV_5alloc6stringNtB5_6StringNtNtCsgEmfK2I1SDS_4core3fmt5Write9write_str",
        );
        assert_eq!(name.plain, "alloc::string::String::write_str");
        assert_eq!(name.for_role(), name.full);
        assert_eq!(FunctionName::of_report(&name.full, &name.plain), name);
    }

    #[test]
    fn long_names_are_short_where_they_are_plain_and_bounded_where_they_are_full() {
        let long = format!("_ZN15000{}3addE", "x".repeat(15_000));
        let name = FunctionName::of(&long);
        assert_eq!(name.full.len(), 15_005);
        assert_eq!(name.plain.chars().count(), LONGEST_SHOWN);
        let name = FunctionName::of(&"x".repeat(LONGEST + 7));
        assert!(name.full.len() <= LONGEST + 4);
    }

    proptest::proptest! {
        #[test]
        fn any_symbol_has_a_short_plain_name(
            parts in proptest::collection::vec(proptest::sample::select(&[
                "_R", "N", "v", "X", "Y", "I", "C", "B", "s", "_", "0", "3foo", "4core", "Nt", "E", "R", "L", "t", "5alloc", "h", "Cs1_", "u",
            ][..]), 0..24),
            any: String,
        ) {
            for symbol in [parts.concat(), format!("_R{}", parts.concat()), format!("_R{any}"), any] {
                let name = FunctionName::of(&symbol);
                let _ = super::v0::is_of_any_type(&symbol, &symbol);
                proptest::prop_assert!(name.plain.chars().count() <= LONGEST_SHOWN);
            }
        }
    }

    #[test]
    fn names_of_each_language_are_demangled() {
        let cases = [
            // Rust, legacy: without the hash.
            (
                "_ZN4core9panicking9panic_fmt17h5f1a6fd39197ad62E",
                "core::panicking::panic_fmt",
            ),
            (
                "_ZN60_$LT$alloc..string..String$u20$as$u20$core..fmt..Display$GT$3fmt17h0123456789abcdefE",
                "<alloc::string::String as core::fmt::Display>::fmt",
            ),
            // Rust, v0: without the crate's disambiguator.
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
