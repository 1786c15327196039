//! An object storage: `s3://bucket/prefix`.

use std::fmt;

use super::address::without_user;
use super::values::Values;

/// What speaks to an object storage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scheme {
    /// Amazon's S3, and what is compatible with it.
    S3,
    /// Google's Cloud Storage.
    Gcs,
    /// Azure's Blob Storage.
    Azure,
    /// A directory.
    File,
}

impl Scheme {
    fn parse(name: &str) -> Option<Scheme> {
        Some(match name {
            "s3" => Scheme::S3,
            "gs" => Scheme::Gcs,
            "az" | "abfs" | "abfss" => Scheme::Azure,
            "file" => Scheme::File,
            _ => return None,
        })
    }
}

/// An object storage, and the folder in it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(not(feature = "store"), allow(dead_code))] // read by what stores
pub struct StoreTarget {
    pub(crate) scheme: Scheme,
    /// The whole address, without a slash at its end.
    pub(crate) url: String,
    /// The path in the bucket, or the path of the directory; without slashes at either end.
    pub(crate) prefix: String,
}

impl fmt::Display for StoreTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.url)
    }
}

/// Kind of setting: an object storage.
pub(crate) struct StoreTargets;

impl Values for StoreTargets {
    type Given = String;
    type Value = StoreTarget;

    fn allowed(&self) -> String {
        "s3://bucket/prefix, gs://bucket/prefix, az://container/prefix, \
         abfss://container@account.dfs.core.windows.net/prefix, or file:///directory; without a password or a query: keys are \
         in the variables of the storage's own tools, such as AWS_ACCESS_KEY_ID"
            .into()
    }

    fn bounds(&self) -> String {
        "`s3://`, `gs://`, `az://`, `abfss://` or `file://`, and a place".into()
    }

    fn parse(&self, text: &str) -> Option<StoreTarget> {
        let url = text.trim().trim_end_matches('/');
        let (name, rest) = url.split_once("://")?;
        let scheme = Scheme::parse(name)?;
        let (bucket, path) = rest.split_once('/').unwrap_or((rest, ""));
        let (container, account) = match bucket.split_once('@') {
            // Only Azure's addresses have two names.
            Some((container, account)) if name.starts_with("abfs") => (container, Some(account)),
            Some(_) => return None,
            None => (bucket, None),
        };
        let host = |name: &str| {
            let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
            !name.is_empty() && name.chars().all(plain)
        };
        let is_place = match scheme {
            Scheme::File => bucket.is_empty() && !path.is_empty(),
            _ => host(container) && account.is_none_or(host),
        };
        let plain = |c: char| c.is_ascii_graphic() && !"@?#%*\"<>\\^`{|}~[]".contains(c);
        let is_path = path.is_empty()
            || path.split('/').all(|part| {
                !part.is_empty() && part != "." && part != ".." && part.chars().all(plain)
            });
        (is_place && is_path).then(|| StoreTarget {
            scheme,
            url: url.to_owned(),
            prefix: path.to_owned(),
        })
    }

    fn accept(&self, given: String) -> Result<StoreTarget, String> {
        self.parse(&given).ok_or_else(|| without_user(&given))
    }

    fn read(&self, raw: std::ffi::OsString) -> Result<StoreTarget, String> {
        self.accept(raw.to_string_lossy().into_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::{Scheme, StoreTargets, Values as _};

    #[test]
    fn a_bucket_and_a_prefix_are_a_target() {
        for (text, scheme, url, prefix) in [
            (
                " s3://reports/prod/eu/ ",
                Scheme::S3,
                "s3://reports/prod/eu",
                "prod/eu",
            ),
            ("s3://my.bucket-1", Scheme::S3, "s3://my.bucket-1", ""),
            ("gs://b/p", Scheme::Gcs, "gs://b/p", "p"),
            ("az://c/p", Scheme::Azure, "az://c/p", "p"),
            (
                "abfss://c@a.dfs.core.windows.net/p",
                Scheme::Azure,
                "abfss://c@a.dfs.core.windows.net/p",
                "p",
            ),
            (
                "file:///var/reports/",
                Scheme::File,
                "file:///var/reports",
                "var/reports",
            ),
        ] {
            let target = StoreTargets.parse(text).unwrap();
            let found = (target.scheme, target.url.as_str(), target.prefix.as_str());
            assert_eq!(found, (scheme, url, prefix));
        }
        for bad in [
            "",
            "reports",
            "s3://",
            "s3:///p",
            "s3://b//p",
            "s3://b/../p",
            "s3://b/p?x=1",
            "s3://b/a b",
            "s3://b/%2e%2e",
            "https://b.s3.amazonaws.com/p",
            "file://",
            "file://host/p",
            "abfss://c@/p",
        ] {
            assert!(StoreTargets.parse(bad).is_none(), "{bad:?}");
        }
    }

    #[test]
    fn a_key_is_refused_and_not_shown() {
        let refused = StoreTargets.read("s3://AKIA:hunter2@bucket/p".into());
        assert_eq!(refused.unwrap_err(), "s3://(hidden)@bucket/p");
    }
}
