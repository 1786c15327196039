//! The path prefix below which everything is reachable a second time.

/// A template such as `/pub/job/{name}/{version}`: literal segments, and segments in braces that any text matches.
/// `/` (or nothing) is no prefix.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prefix {
    segments: Vec<Segment>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Segment {
    Literal(String),
    Any(String),
}

/// What [`Prefix::parse`] takes, for error messages.
pub(crate) const ALLOWED: &str = "a path such as /pub/job/{name}/{version}: each segment plain text or a word in braces; / for no prefix";

impl Prefix {
    /// Where Racetrack has its jobs.
    pub const DEFAULT: &'static str = "/pub/job/{name}/{version}";

    /// Reads a template. `None`: it is none.
    pub(crate) fn parse(text: &str) -> Option<Prefix> {
        let path = text.strip_suffix('/').unwrap_or(text);
        if path.is_empty() {
            return Some(Prefix { segments: vec![] });
        }
        let segments = path.strip_prefix('/')?.split('/').map(segment);
        Some(Prefix {
            segments: segments.collect::<Option<_>>()?,
        })
    }

    /// What follows the prefix in `path`: empty, or a path that begins with `/`. `None` where `path` is not below it.
    #[must_use]
    pub fn strip<'p>(&self, path: &'p str) -> Option<&'p str> {
        if self.segments.is_empty() {
            return None;
        }
        let mut rest = path;
        for segment in &self.segments {
            rest = rest.strip_prefix('/')?;
            let end = rest.find('/').unwrap_or(rest.len());
            let (text, tail) = rest.split_at(end);
            match segment {
                Segment::Literal(literal) if text != literal => return None,
                Segment::Any(_) if text.is_empty() => return None,
                _ => rest = tail,
            }
        }
        Some(rest)
    }

    /// A path at the prefix: any word of it is `x`. Empty for no prefix.
    #[cfg(feature = "http")]
    pub(crate) fn example(&self) -> String {
        let text = |segment: &Segment| match segment {
            Segment::Literal(text) => format!("/{text}"),
            Segment::Any(_) => "/x".into(),
        };
        self.segments.iter().map(text).collect()
    }

    /// The prefix with `{name}` and `{version}` filled in, percent-encoded; other words stay as they are. Empty for
    /// no prefix.
    #[must_use]
    pub fn filled(&self, name: &str, version: &str) -> String {
        let mut path = String::new();
        for segment in &self.segments {
            path.push('/');
            match segment {
                Segment::Literal(text) => path.push_str(text),
                Segment::Any(word) if word == "name" => encode(name, &mut path),
                Segment::Any(word) if word == "version" => encode(version, &mut path),
                Segment::Any(word) => path.extend(["{", word, "}"]),
            }
        }
        path
    }
}

/// Appends `text` as one segment of a path: all but RFC 3986's unreserved characters are percent-encoded.
fn encode(text: &str, path: &mut String) {
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            path.push(char::from(byte));
        } else {
            path.push_str(&format!("%{byte:02X}"));
        }
    }
}

fn segment(text: &str) -> Option<Segment> {
    if let Some(word) = text.strip_prefix('{').and_then(|t| t.strip_suffix('}')) {
        let legal = |c: char| c.is_ascii_alphanumeric() || c == '_';
        return (!word.is_empty() && word.chars().all(legal)).then(|| Segment::Any(word.into()));
    }
    // What may stand in a path (RFC 3986, section 3.3) and means itself when it comes back in a request; `.` and
    // `..` are taken out by browsers before they ask.
    let legal = |c: char| c.is_ascii_alphanumeric() || "-._~!$&'()*+,;=:@%".contains(c);
    let whole = !text.is_empty() && text != "." && text != ".." && text.chars().all(legal);
    whole.then(|| Segment::Literal(text.into()))
}

#[cfg(test)]
mod tests {
    use super::Prefix;

    #[test]
    fn a_path_below_the_prefix_loses_it() {
        let prefix = Prefix::parse(Prefix::DEFAULT).unwrap();
        for (path, rest) in [
            ("/pub/job/a/1", Some("")),
            ("/pub/job/a/1/", Some("/")),
            ("/pub/job/a/1/health", Some("/health")),
            ("/pub/job/a/latest/x//y/", Some("/x//y/")),
            ("/pub/job/%C3%A4/1.0/x", Some("/x")),
            ("/pub/job/a", None),
            ("/pub/job/a/", None),
            ("/pub/job//1/x", None),
            ("/pub/jobs/a/1/x", None),
            ("//pub/job/a/1/x", None),
            ("/health", None),
            ("/", None),
            ("", None),
            ("*", None),
        ] {
            assert_eq!(prefix.strip(path), rest, "{path:?}");
        }
    }

    #[test]
    fn no_prefix_matches_nothing() {
        for text in ["", "/"] {
            let prefix = Prefix::parse(text).unwrap();
            assert_eq!(prefix.strip("/health"), None);
            assert_eq!(prefix.filled("a", "1"), "");
        }
    }

    #[test]
    fn name_and_version_are_filled_in() {
        let prefix = Prefix::parse("/a/{name}/b/{version}/{other}/").unwrap();
        assert_eq!(prefix.filled("n", "1.0"), "/a/n/b/1.0/{other}");
        assert_eq!(
            prefix.filled("a/b ü", "1?"),
            "/a/a%2Fb%20%C3%BC/b/1%3F/{other}"
        );
    }

    #[test]
    fn what_is_no_template_is_refused() {
        for text in [
            "pub", "//", "/a//b", "/{", "/{}", "/a{b}", "/{a b}", "/a?b", "/a#b", "/*{x}/ ", "/..",
            "/a/./b",
        ] {
            assert_eq!(Prefix::parse(text), None, "{text:?}");
        }
    }
}
