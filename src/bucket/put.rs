//! Puts objects into a bucket.

use std::fmt;
use std::fs;
use std::io::{self, Read};
use std::time::Duration;

use object_store::aws::AmazonS3Builder;
use object_store::azure::MicrosoftAzureBuilder;
use object_store::gcp::GoogleCloudStorageBuilder;
use object_store::local::LocalFileSystem;
use object_store::path::Path;
use object_store::{Attribute, Attributes, ObjectStore, RetryConfig};
use tokio::runtime::{self, Runtime};

use super::ObjectName;
use super::http::Connector;
use crate::capture::untracked;
use crate::config::store::{Scheme, StoreTarget};

/// Bytes of a part of an object. One part is in memory at a time. S3 takes no smaller ones than 5 MiB.
const PART: usize = 5 << 20;

/// A bucket that is open.
#[derive(Debug)]
pub(crate) struct Bucket {
    store: Box<dyn ObjectStore>,
    /// Of all objects.
    prefix: Path,
    /// The address of the prefix.
    url: String,
    /// Whether the storage keeps content types.
    has_content_types: bool,
    runtime: Runtime,
}

/// What an object is.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Content {
    Report,
    Note,
}

impl Content {
    const fn ending(self) -> &'static str {
        match self {
            Content::Report => "bin",
            Content::Note => "json",
        }
    }

    const fn content_type(self) -> &'static str {
        match self {
            Content::Report => "application/octet-stream",
            Content::Note => "application/json",
        }
    }
}

/// Why something was not put into a bucket.
#[derive(Debug)]
pub(crate) enum BucketError {
    /// There can be no runtime, or the directory cannot be made.
    Setup(io::Error),
    /// The variables lack something, or the storage does not take it.
    Storage(object_store::Error),
    /// What was to be put could not be read.
    Read(io::Error),
}

impl fmt::Display for BucketError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BucketError::Setup(_) => f.write_str("the storage cannot be used"),
            // It says all of its sources.
            BucketError::Storage(error) => error.fmt(f),
            BucketError::Read(_) => f.write_str("the report cannot be read"),
        }
    }
}

impl std::error::Error for BucketError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            BucketError::Setup(error) | BucketError::Read(error) => Some(error),
            BucketError::Storage(_) => None,
        }
    }
}

impl From<object_store::Error> for BucketError {
    fn from(error: object_store::Error) -> BucketError {
        BucketError::Storage(error)
    }
}

impl Bucket {
    /// Opens the bucket. Connects to nothing yet.
    pub(crate) fn open(target: &StoreTarget) -> Result<Bucket, BucketError> {
        let runtime = runtime::Builder::new_current_thread()
            .enable_time()
            // Where the storage is a directory, its files are written on such a thread.
            .max_blocking_threads(1)
            .thread_name("heapray-store")
            .on_thread_start(untracked::for_good)
            .build()
            .map_err(BucketError::Setup)?;
        // A try that fails is followed by another one after a longer pause, so these are for moments.
        let retry = RetryConfig {
            max_retries: 2,
            retry_timeout: Duration::from_secs(20),
            ..RetryConfig::default()
        };
        let url = &target.url;
        let store: Box<dyn ObjectStore> = match target.scheme {
            Scheme::S3 => Box::new(
                AmazonS3Builder::from_env()
                    .with_url(url)
                    .with_http_connector(Connector)
                    .with_retry(retry)
                    .build()?,
            ),
            Scheme::Gcs => Box::new(
                GoogleCloudStorageBuilder::from_env()
                    .with_url(url)
                    .with_http_connector(Connector)
                    .with_retry(retry)
                    .build()?,
            ),
            Scheme::Azure => Box::new(
                MicrosoftAzureBuilder::from_env()
                    .with_url(url)
                    .with_http_connector(Connector)
                    .with_retry(retry)
                    .build()?,
            ),
            Scheme::File => {
                let directory = format!("/{}", target.prefix);
                fs::create_dir_all(&directory).map_err(BucketError::Setup)?;
                Box::new(LocalFileSystem::new_with_prefix(directory)?)
            }
        };
        let prefix = match target.scheme {
            Scheme::File => Path::default(),
            _ => Path::from(target.prefix.as_str()),
        };
        Ok(Bucket {
            store,
            prefix,
            url: url.clone(),
            has_content_types: target.scheme != Scheme::File,
            runtime,
        })
    }

    /// Puts `len` bytes of `from` as an object of that name, which is replaced if it is there. Returns its address.
    pub(crate) fn put(
        &self,
        name: &ObjectName,
        content: Content,
        from: &mut dyn Read,
        len: u64,
    ) -> Result<String, BucketError> {
        let file = format!("{}.{}", name.stem, content.ending());
        let parts = [name.service.as_str(), name.day.as_str(), &file];
        let below: Path = parts.into_iter().collect();
        let path = self.prefix.parts().chain(below.parts()).collect();
        let put = async {
            if len <= PART as u64 {
                self.put_at_once(&path, content, from).await
            } else {
                self.put_in_parts(&path, content, from).await
            }
        };
        self.runtime.block_on(put)?;
        Ok(format!("{}/{below}", self.url))
    }

    async fn put_at_once(
        &self,
        path: &Path,
        content: Content,
        from: &mut dyn Read,
    ) -> Result<(), BucketError> {
        let whole = part(from)?;
        let options = self.attributes(content).into();
        self.store.put_opts(path, whole.into(), options).await?;
        Ok(())
    }

    async fn put_in_parts(
        &self,
        path: &Path,
        content: Content,
        from: &mut dyn Read,
    ) -> Result<(), BucketError> {
        let options = self.attributes(content).into();
        let mut upload = self.store.put_multipart_opts(path, options).await?;
        let put = async {
            loop {
                let next = part(from)?;
                if next.is_empty() {
                    break;
                }
                upload.put_part(next.into()).await?;
            }
            upload.complete().await?;
            Ok(())
        };
        let put = put.await;
        if put.is_err() {
            // If that fails, too, the storage's own rules for parts that were left behind clear them away.
            let _ = upload.abort().await;
        }
        put
    }

    fn attributes(&self, content: Content) -> Attributes {
        let mut attributes = Attributes::new();
        if self.has_content_types {
            attributes.insert(Attribute::ContentType, content.content_type().into());
        }
        attributes
    }
}

/// Reads the next part; an empty one at the end.
fn part(from: &mut dyn Read) -> Result<Vec<u8>, BucketError> {
    let mut part = Vec::new();
    from.take(PART as u64)
        .read_to_end(&mut part)
        .map_err(BucketError::Read)?;
    Ok(part)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::store::StoreTargets;
    use crate::config::values::Values as _;
    use crate::os::unique::unique;
    use std::time::SystemTime;

    #[test]
    fn an_object_of_any_length_is_put_and_replaced() {
        let directory = std::env::temp_dir().join(format!("heapray-bucket-{:016x}", unique()));
        let url = format!("file://{}", directory.display());
        let bucket = Bucket::open(&StoreTargets.parse(&url).unwrap()).unwrap();
        for len in [0, 5, PART, PART + 1, 2 * PART, 2 * PART + 7] {
            let bytes: Vec<u8> = (0..len).map(|at| (at / 1000) as u8).collect();
            let name = ObjectName::of("../shop", "7", "", 9, SystemTime::UNIX_EPOCH);
            let put = bucket.put(&name, Content::Report, &mut &bytes[..], len as u64);
            let address = put.unwrap();
            let path = address.strip_prefix("file://").unwrap();
            assert!(
                path.ends_with("/1970-01-01/7-0000000000000009.bin"),
                "{path}"
            );
            assert!(fs::read(path).unwrap() == bytes, "{len}");
            assert_eq!(fs::read_dir(&directory).unwrap().count(), 1, "it is below");
        }
        fs::remove_dir_all(directory).unwrap();
    }
}
