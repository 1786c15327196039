//! The path prefix below which the profiler is reachable a second time.

use super::values::Values;

/// Template such as `/pub/job/{name}/{version}`: literal segments, and segments in braces that any text matches. `/` (or
/// nothing) means no prefix.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Prefix {
    segments: Vec<Segment>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Segment {
    Literal(String),
    Any(String),
}

/// Kind of setting: a prefix template.
pub(crate) struct Prefixes;

impl Values for Prefixes {
    type Given = String;
    type Value = Prefix;

    fn allowed(&self) -> String {
        "a path such as /pub/job/{name}/{version}: each segment plain text or a word in braces; / for no prefix"
            .into()
    }

    fn bounds(&self) -> String {
        "a path of plain text and words in braces".into()
    }

    fn parse(&self, text: &str) -> Option<Prefix> {
        Prefix::parse(text)
    }

    fn accept(&self, given: String) -> Result<Prefix, String> {
        self.parse(&given).ok_or(given)
    }
}

impl Prefix {
    /// Parses a template. Returns `None` if the text is not one.
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

    /// Returns the part of `path` after the prefix: empty, or a path that begins with `/`. Returns `None` if `path` is not
    /// below the prefix.
    ///
    /// A path with a dot segment in it (`..`, `%2e%2e`, `a%2F..`) is not below any prefix: a server that removes such
    /// segments sees another path than we do.
    #[must_use]
    pub fn strip<'p>(&self, path: &'p str) -> Option<&'p str> {
        if self.segments.is_empty() || path.split('/').any(is_dots) {
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

    /// Returns a path at the prefix, in which every word is `x`. Empty for no prefix.
    #[cfg(feature = "http")]
    pub(crate) fn example(&self) -> String {
        let text = |segment: &Segment| match segment {
            Segment::Literal(text) => format!("/{text}"),
            Segment::Any(_) => "/x".into(),
        };
        self.segments.iter().map(text).collect()
    }

    /// Returns the prefix with `{name}` and `{version}` filled in, percent-encoded; other words stay as they are. Empty for
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

/// Returns whether a server could read a segment of a path as `.` or `..`: as it stands, or percent-decoded, where a slash
/// (or, on some servers, a backslash) may split it.
fn is_dots(segment: &str) -> bool {
    // Nearly every segment: nothing to decode, no dot at the beginning.
    if !segment.starts_with('.') && !segment.contains(['%', '\\']) {
        return false;
    }
    let mut parts = decoded(segment.as_bytes()).peekable();
    while parts.peek().is_some() {
        let (mut dots, mut others) = (0, 0);
        for byte in parts.by_ref().take_while(|byte| !b"/\\".contains(byte)) {
            *(if byte == b'.' { &mut dots } else { &mut others }) += 1;
        }
        if others == 0 && (dots == 1 || dots == 2) {
            return true;
        }
    }
    false
}

/// Percent-decodes `text` once. A `%` without two digits after it stands for itself.
fn decoded(text: &[u8]) -> impl Iterator<Item = u8> + '_ {
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let mut rest = text;
    std::iter::from_fn(move || {
        let (&first, tail) = rest.split_first()?;
        let encoded = match *tail {
            [high, low, ..] if first == b'%' => digit(high).zip(digit(low)),
            _ => None,
        };
        let Some((high, low)) = encoded else {
            rest = tail;
            return Some(first);
        };
        rest = &tail[2..];
        u8::try_from(high * 16 + low).ok()
    })
}

fn segment(text: &str) -> Option<Segment> {
    if let Some(word) = text.strip_prefix('{').and_then(|t| t.strip_suffix('}')) {
        let legal = |c: char| c.is_ascii_alphanumeric() || c == '_';
        return (!word.is_empty() && word.chars().all(legal)).then(|| Segment::Any(word.into()));
    }
    // Characters that may stand in a path (RFC 3986, section 3.3) and mean themselves in a request. Browsers remove `.` and
    // `..` before they send the request.
    let legal = |c: char| c.is_ascii_alphanumeric() || "-._~!$&'()*+,;=:@%".contains(c);
    let whole = !text.is_empty() && text != "." && text != ".." && text.chars().all(legal);
    whole.then(|| Segment::Literal(text.into()))
}

#[cfg(test)]
mod tests {
    use super::Prefix;

    #[test]
    fn a_path_below_the_prefix_loses_it() {
        let prefix = Prefix::parse("/pub/job/{name}/{version}").unwrap();
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
            ("/pub/job/a./.1/x..y/...", Some("/x..y/...")),
            ("/pub/job/a/1/x%2Fy%zz%", Some("/x%2Fy%zz%")),
            ("/health", None),
            ("/", None),
            ("", None),
            ("*", None),
        ] {
            assert_eq!(prefix.strip(path), rest, "{path:?}");
        }
    }

    #[test]
    fn a_path_with_a_dot_segment_is_not_below_a_prefix() {
        let prefix = Prefix::parse("/pub/job/{name}/{version}").unwrap();
        for dots in [
            ".",
            "..",
            "%2e",
            "%2E%2e",
            ".%2e",
            "%2e.",
            "a%2f..",
            "..%2Fa",
            "a%2f%2e%2e%2fb",
            "a%5c..",
            "..\\a",
            "%2e%2e%5C",
        ] {
            for path in [
                format!("/pub/job/{dots}/1/x"),
                format!("/pub/job/a/{dots}/x"),
                format!("/pub/job/a/1/{dots}"),
                format!("/pub/job/a/1/{dots}/x"),
                format!("/pub/job/a/1/x/{dots}/y"),
            ] {
                assert_eq!(prefix.strip(&path), None, "{path:?}");
            }
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
    fn text_that_is_not_a_template_is_refused() {
        for text in [
            "pub", "//", "/a//b", "/{", "/{}", "/a{b}", "/{a b}", "/a?b", "/a#b", "/*{x}/ ", "/..",
            "/a/./b",
        ] {
            assert_eq!(Prefix::parse(text), None, "{text:?}");
        }
    }
}
