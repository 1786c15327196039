//! Truth values in words: those of Racetrack, and `on`.

/// Parses a truth value. Yes: `true t yes y on 1`. No: `false f no n off 0`, or nothing at all. Any case. Returns `None` for
/// other text.
pub(crate) fn parse(text: &str) -> Option<bool> {
    const YES: [&str; 6] = ["true", "t", "yes", "y", "on", "1"];
    const NO: [&str; 7] = ["false", "f", "no", "n", "off", "0", ""];
    let is = |word: &&str| text.trim().eq_ignore_ascii_case(word);
    if YES.iter().any(is) {
        Some(true)
    } else {
        NO.iter().any(is).then_some(false)
    }
}

/// Description of the words that [`parse`] accepts, for error messages.
pub(crate) const ALLOWED: &str = "true, t, yes, y, on or 1, or false, f, no, n, off, 0 or empty";

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn racetracks_five_words_and_on_say_yes_in_any_case() {
        for word in [
            "true", "t", "yes", "y", "1", "TRUE", "True", "T", "yEs", "Y", " true ", "on", "ON",
        ] {
            assert_eq!(parse(word), Some(true), "{word:?}");
        }
    }

    #[test]
    fn everything_else_does_not_say_yes() {
        for word in ["false", "F", "no", "n", "0", "off", "", " "] {
            assert_eq!(parse(word), Some(false), "{word:?}");
        }
        for word in ["2", "ja", "truee", "10", "onn"] {
            assert_eq!(parse(word), None, "{word:?}");
        }
    }
}
