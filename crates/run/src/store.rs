//! A store for the shards of a run: S3, Google Cloud Storage, Azure Blob Storage, or a folder.
//!
//! The main type is [`RunStore`]. Under `<prefix>/<run id>`, a shard's files are in `shards/<n>/` as in the folder of
//! a run, and all shards share `blobs/`. A trial's file is created only if it does not exist, so of two workers on
//! the same shard the first counts. [`Uploader`] uploads a shard, [`RunStore::restore`] gets what earlier workers
//! uploaded, and [`RunStore::fetch`] gets a whole run.

mod fetch;
mod upload;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use data_encoding::HEXLOWER;
use object_store::path::Path as ObjectPath;
use object_store::{
    Error, ListResult, ObjectStore, ObjectStoreExt, PutMode, PutOptions, PutPayload,
};
use reqwest::Url;
use sha2::{Digest, Sha256};
use tokio::time::Instant;

pub use self::upload::{Conflict, UploadReport, Uploader};

/// The first pause between two tries, and the longest one.
const PAUSES: (Duration, Duration) = (Duration::from_millis(200), Duration::from_secs(10));

/// The schemes of stores.
pub const SCHEMES: [&str; 4] = ["s3", "gs", "az", "file"];

/// The beginnings of the variables that configure a store, with its credentials.
pub const VARIABLES: [&str; 3] = ["AWS_", "GOOGLE_", "AZURE_"];

/// Why a store can't be used.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    #[error(
        "invalid store URL `{url}`: {reason}; write `s3://BUCKET/PREFIX`, `gs://…`, `az://…` or `file:///FOLDER`"
    )]
    Url { url: String, reason: String },
    #[error(
        "the store refused to {doing} `{path}`: check its credentials and permissions: {reason}"
    )]
    Denied {
        doing: &'static str,
        path: String,
        reason: String,
    },
    #[error(
        "`{path}` is not in the store: the bucket does not exist, or the object was removed: {reason}"
    )]
    Absent { path: String, reason: String },
    #[error("could not {doing} `{path}` in the store within {}: {reason}", proctor_record::duration::render(*.patience))]
    Unavailable {
        doing: &'static str,
        path: String,
        patience: Duration,
        reason: String,
    },
    #[error("the store has `{path}`, which no run has")]
    Foreign { path: String },
    #[error("`{path}` in the store is damaged: {reason}")]
    Damaged { path: String, reason: String },
    #[error("could not write `{path}`")]
    Local {
        path: String,
        #[source]
        source: std::io::Error,
    },
    #[error("can't start the uploads")]
    Thread(#[source] std::io::Error),
    #[error(transparent)]
    Record(#[from] proctor_record::record::RecordError),
    #[error("the store has no shards at `{url}`; name the run: `STORE/RUN-ID`")]
    Empty { url: String },
}

impl StoreError {
    /// Whether trying again later may help.
    pub fn is_temporary(&self) -> bool {
        matches!(self, Self::Unavailable { .. })
    }

    fn local(path: &Path) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.display().to_string();
        move |source| Self::Local { path, source }
    }
}

/// The folder of a run in a store.
#[derive(Debug, Clone)]
pub struct RunStore {
    objects: Arc<dyn ObjectStore>,
    root: ObjectPath,
    url: String,
    /// How long an operation is tried.
    patience: Duration,
}

/// What became of a file that is created only if it does not exist.
enum Created {
    New,
    Exists,
}

impl RunStore {
    /// Opens the folder of a run, with credentials from these variables. Connects to nothing.
    pub fn open(
        url: &str,
        environment: &BTreeMap<String, String>,
        patience: Duration,
    ) -> Result<Self, StoreError> {
        let invalid = |reason: String| StoreError::Url {
            url: without_credentials(url),
            reason,
        };
        let parsed = Url::parse(url).map_err(|error| invalid(error.to_string()))?;
        if !SCHEMES.contains(&parsed.scheme()) {
            return Err(invalid(format!("unknown scheme `{}`", parsed.scheme())));
        }
        if !parsed.username().is_empty() || parsed.password().is_some() || parsed.query().is_some()
        {
            let reason = "credentials and options belong into the environment";
            return Err(invalid(reason.to_owned()));
        }
        // Fails if a provider is installed already, which is fine.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let options = environment.iter().filter(|(name, value)| {
            !value.is_empty() && VARIABLES.iter().any(|prefix| name.starts_with(prefix))
        });
        let options = options.map(|(name, value)| (name.to_ascii_lowercase(), value.clone()));
        let (objects, root) = object_store::parse_url_opts(&parsed, options)
            .map_err(|error| invalid(error.to_string()))?;
        Ok(Self {
            objects: Arc::from(objects),
            root,
            url: url.trim_end_matches('/').to_owned(),
            patience,
        })
    }

    /// The URL, without credentials.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// A name for it that can be part of a path.
    pub fn key(&self) -> String {
        let hash = HEXLOWER.encode(&Sha256::digest(&self.url));
        hash[..32].to_owned()
    }

    fn path(&self, parts: &[&str]) -> ObjectPath {
        let mut path = self.root.clone();
        for part in parts {
            path = path.join(*part);
        }
        path
    }

    fn shard_path(&self, shard: u32, parts: &[&str]) -> ObjectPath {
        let number = shard.to_string();
        self.path(&[&["shards", number.as_str()], parts].concat())
    }

    async fn create(&self, path: &ObjectPath, bytes: &[u8]) -> Result<Created, StoreError> {
        match self.put(path, bytes, PutMode::Create).await {
            Ok(()) => Ok(Created::New),
            Err(PutError::Exists) => Ok(Created::Exists),
            Err(PutError::Other(error)) => Err(error),
        }
    }

    async fn replace(&self, path: &ObjectPath, bytes: &[u8]) -> Result<(), StoreError> {
        match self.put(path, bytes, PutMode::Overwrite).await {
            Ok(()) | Err(PutError::Exists) => Ok(()),
            Err(PutError::Other(error)) => Err(error),
        }
    }

    async fn put(&self, path: &ObjectPath, bytes: &[u8], mode: PutMode) -> Result<(), PutError> {
        let payload = PutPayload::from(bytes.to_vec());
        let put = || {
            let options = PutOptions::from(mode.clone());
            self.objects.put_opts(path, payload.clone(), options)
        };
        let done = self.persist("write", path, put, is_existing).await;
        match done.map_err(PutError::Other)? {
            Some(_) => Ok(()),
            None => Err(PutError::Exists),
        }
    }

    /// The bytes of an object; `None` if there is none.
    async fn find(&self, path: &ObjectPath) -> Result<Option<Vec<u8>>, StoreError> {
        let get = || async { self.objects.get(path).await?.bytes().await };
        let found = self.persist("read", path, get, is_absent).await?;
        Ok(found.map(|bytes| bytes.to_vec()))
    }

    /// The bytes of an object that was listed.
    async fn get(&self, path: &ObjectPath) -> Result<Vec<u8>, StoreError> {
        let absent = || StoreError::Absent {
            path: path.to_string(),
            reason: "it vanished after it was listed".to_owned(),
        };
        self.find(path).await?.ok_or_else(absent)
    }

    async fn list(&self, path: &ObjectPath) -> Result<ListResult, StoreError> {
        let list = || self.objects.list_with_delimiter(Some(path));
        let listed = self.persist("list", path, list, |_| false).await?;
        listed.ok_or_else(|| StoreError::Absent {
            path: path.to_string(),
            reason: "it can't be listed".to_owned(),
        })
    }

    /// Tries an operation until it succeeds, fails for good, or time is up. `None` if `is_answer` says that the error
    /// is an answer.
    async fn persist<T, F: Future<Output = object_store::Result<T>>>(
        &self,
        doing: &'static str,
        path: &ObjectPath,
        operation: impl Fn() -> F,
        is_answer: fn(&Error) -> bool,
    ) -> Result<Option<T>, StoreError> {
        let deadline = Instant::now() + self.patience;
        let (mut pause, longest) = PAUSES;
        let mut reason = "no answer".to_owned();
        loop {
            match tokio::time::timeout_at(deadline, operation()).await {
                Ok(Ok(done)) => return Ok(Some(done)),
                Ok(Err(error)) if is_answer(&error) => return Ok(None),
                Ok(Err(error)) => {
                    reason = causes(&error);
                    if let Some(error) = final_error(&error, doing, path, &reason) {
                        return Err(error);
                    }
                }
                Err(_) => {}
            }
            if Instant::now() + pause >= deadline {
                return Err(StoreError::Unavailable {
                    doing,
                    path: path.to_string(),
                    patience: self.patience,
                    reason,
                });
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(longest);
        }
    }
}

enum PutError {
    Exists,
    Other(StoreError),
}

/// Whether a file of this name is the record of a trial that has ended.
pub fn is_trial_file(name: &str) -> bool {
    let stem = name.strip_suffix(".jsonl");
    stem.is_some_and(|stem| !stem.is_empty() && !stem.starts_with('.'))
}

fn is_existing(error: &Error) -> bool {
    matches!(
        error,
        Error::AlreadyExists { .. } | Error::Precondition { .. }
    )
}

fn is_absent(error: &Error) -> bool {
    matches!(error, Error::NotFound { .. })
}

/// The error of an operation that would fail again; `None` if it may succeed later.
fn final_error(
    error: &Error,
    doing: &'static str,
    path: &ObjectPath,
    reason: &str,
) -> Option<StoreError> {
    let (path, reason) = (path.to_string(), reason.to_owned());
    match error {
        Error::PermissionDenied { .. } | Error::Unauthenticated { .. } => {
            Some(StoreError::Denied {
                doing,
                path,
                reason,
            })
        }
        Error::NotFound { .. } => Some(StoreError::Absent { path, reason }),
        Error::InvalidPath { .. }
        | Error::NotSupported { .. }
        | Error::NotImplemented { .. }
        | Error::UnknownConfigurationKey { .. } => Some(StoreError::Damaged { path, reason }),
        _ => None,
    }
}

/// The messages of an error and its sources, without repetition.
fn causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let more = error.to_string();
        if !text.contains(&more) {
            text.push_str(&format!(": {more}"));
        }
        cause = error.source();
    }
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A URL as it may be shown, even if someone wrote a password into it.
fn without_credentials(url: &str) -> String {
    match (url.split_once("://"), url.rsplit_once('@')) {
        (Some((scheme, _)), Some((_, rest))) => format!("{scheme}://…@{rest}"),
        _ => url.split('?').next().unwrap_or(url).to_owned(),
    }
}
