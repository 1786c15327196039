//! The address of the service's sources.

use heapray_report::sources::is_template;

use super::values::Values;

/// What stands for the version of the sources in a setting.
pub(crate) const COMMIT: &str = "{commit}";

/// Kind of setting: a template of addresses, empty for none.
pub(crate) struct SourceUrls;

impl Values for SourceUrls {
    type Given = String;
    type Value = String;

    fn allowed(&self) -> String {
        "an address such as https://github.com/acme/shop/blob/{commit}/{file}#L{line}, with {file} in it".into()
    }

    fn bounds(&self) -> String {
        "an address with `{file}`, and with `{commit}` and `{line}` where wanted".into()
    }

    fn parse(&self, text: &str) -> Option<String> {
        let text = text.trim();
        let is_good = text.is_empty() || is_template(&text.replace(COMMIT, ""));
        is_good.then(|| text.to_owned())
    }

    fn accept(&self, given: String) -> Result<String, String> {
        self.parse(&given).ok_or(given)
    }
}

/// Kind of setting: a commit, a tag or a branch.
pub(crate) struct Commits;

impl Values for Commits {
    type Given = String;
    type Value = String;

    fn allowed(&self) -> String {
        "a commit, a tag or a branch: letters, digits and any of . _ / - +".into()
    }

    fn bounds(&self) -> String {
        "a commit, a tag or a branch".into()
    }

    fn parse(&self, text: &str) -> Option<String> {
        let text = text.trim();
        let is_good =
            |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '/' | '-' | '+');
        (!text.is_empty() && text.chars().all(is_good)).then(|| text.to_owned())
    }

    fn accept(&self, given: String) -> Result<String, String> {
        self.parse(&given).ok_or(given)
    }
}

/// Returns the template of a report, in which the commit is no longer open.
pub(crate) fn template(url: &str, commit: &str) -> String {
    url.replace(COMMIT, commit)
}

#[cfg(test)]
mod tests {
    use super::{Commits, SourceUrls, Values as _, template};

    #[test]
    fn an_address_has_a_place_for_the_file() {
        let url = "https://github.com/acme/shop/blob/{commit}/{file}#L{line}";
        let parsed = SourceUrls.parse(&format!(" {url} ")).unwrap();
        assert_eq!(
            template(&parsed, "v1.2"),
            "https://github.com/acme/shop/blob/v1.2/{file}#L{line}"
        );
        assert_eq!(SourceUrls.parse(""), Some(String::new()));
        for wrong in ["ftp://x/{file}", "https://x/", "https://x/{version}/{file}"] {
            assert_eq!(SourceUrls.parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_commit_is_one_word() {
        assert_eq!(Commits.parse("feature/a-1").as_deref(), Some("feature/a-1"));
        for wrong in ["", " ", "a b", "{file}", "a?b"] {
            assert_eq!(Commits.parse(wrong), None, "{wrong}");
        }
    }
}
