//! Downloads extension packages from releases on GitHub, or from a mirror.
//!
//! Its main type is [`Releases`].

use std::time::Duration;

use proctor_core::suite::{Environment, ReleasePackage, is_release};
use proctor_models::{ModelOpenError, Settings, proxy};
use proctor_record::duration;
use proctor_record::json;
use proctor_wire::network::reason;
use reqwest::header::{ACCEPT, USER_AGENT};
use reqwest::redirect::Policy;
use reqwest::{Client, Response, StatusCode, Url};
use serde_json::Value;
use tokio::time::timeout;

/// The variable with the URL of GitHub Enterprise or of a mirror.
pub const GITHUB_URL: &str = "PROCTOR_GITHUB_URL";

const GITHUB: &str = "https://github.com";
const API: &str = "https://api.github.com";

/// The maximum size of an archive.
const MAX_ARCHIVE: usize = 256 << 20;
/// The maximum size of the description of a release.
const MAX_RELEASE: usize = 8 << 20;
const MAX_REDIRECTS: usize = 5;
const CONNECT: Duration = Duration::from_secs(30);
/// The time between two parts of a download.
const PAUSE: Duration = Duration::from_mins(1);
const TOTAL: Duration = Duration::from_mins(30);

/// Why a package can't be downloaded.
#[derive(Debug, thiserror::Error)]
pub enum DownloadError {
    #[error("invalid URL `{0}` in `{GITHUB_URL}`")]
    Url(String),
    #[error(transparent)]
    Proxy(#[from] ModelOpenError),
    #[error("no response from {url}: {reason}")]
    Broken { url: String, reason: String },
    #[error("{url} does not exist (404){hint}")]
    Absent { url: String, hint: String },
    #[error("{url} responded with status {status}")]
    Status { url: String, status: u16 },
    #[error("{url} is larger than {} MiB", .most >> 20)]
    TooLarge { url: String, most: usize },
    #[error(
        "the download of {url} is not complete after {}",
        duration::render(TOTAL)
    )]
    TimedOut { url: String },
    #[error("{url} has no usable `tag_name`")]
    NoTag { url: String },
}

/// The releases of a host.
pub(super) struct Releases {
    client: Client,
    base: String,
    api: String,
}

impl Releases {
    pub(super) fn new(env: &Environment) -> Result<Self, DownloadError> {
        let own = env.get(GITHUB_URL).filter(|url| !url.is_empty());
        let (base, api) = match own {
            None => (GITHUB.to_owned(), API.to_owned()),
            Some(url) => {
                let base = url.trim_end_matches('/').to_owned();
                let is_known = |url: Url| ["http", "https"].contains(&url.scheme());
                if !Url::parse(&base).is_ok_and(is_known) {
                    return Err(DownloadError::Url(url.clone()));
                }
                // As GitHub Enterprise has it.
                let api = format!("{base}/api/v3");
                (base, api)
            }
        };
        // Another part of the process may have installed one already.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mut builder = Client::builder()
            .connect_timeout(CONNECT)
            .read_timeout(PAUSE)
            .redirect(Policy::limited(MAX_REDIRECTS))
            // A redirect must not leave TLS, except from a mirror that has none.
            .https_only(base.starts_with("https://"))
            .no_proxy();
        if let Some(proxy) = proxy(&Settings::of(env))? {
            builder = builder.proxy(proxy);
        }
        let client = builder.build().map_err(|error| DownloadError::Broken {
            url: base.clone(),
            reason: reason(&error),
        })?;
        Ok(Self { client, base, api })
    }

    /// The tag of the latest release.
    pub(super) async fn latest(&self, package: &ReleasePackage) -> Result<String, DownloadError> {
        let ReleasePackage { owner, repo, .. } = package;
        let url = format!("{}/repos/{owner}/{repo}/releases/latest", self.api);
        let hint = "; the repository has no release";
        let body = self.get(&url, MAX_RELEASE, hint).await?;
        let release: Value = json::from_slice(&body).unwrap_or_default();
        let tag = release["tag_name"].as_str().filter(|tag| is_release(tag));
        tag.map(str::to_owned).ok_or(DownloadError::NoTag { url })
    }

    /// The archive for this platform.
    pub(super) async fn archive(
        &self,
        package: &ReleasePackage,
        release: &str,
    ) -> Result<Vec<u8>, DownloadError> {
        let url = self.asset(package, release);
        let hint = "; the release has no package for this platform";
        self.get(&url, MAX_ARCHIVE, hint).await
    }

    /// The published signature of the archive.
    pub(super) async fn bundle(
        &self,
        package: &ReleasePackage,
        release: &str,
    ) -> Result<Option<Vec<u8>>, DownloadError> {
        let url = format!("{}.bundle", self.asset(package, release));
        match self.get(&url, MAX_RELEASE, "").await {
            Ok(bundle) => Ok(Some(bundle)),
            Err(DownloadError::Absent { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn asset(&self, package: &ReleasePackage, release: &str) -> String {
        let ReleasePackage { owner, repo, .. } = package;
        let name = package.program_name();
        let base = &self.base;
        format!("{base}/{owner}/{repo}/releases/download/{release}/{name}.zip")
    }

    async fn get(&self, url: &str, most: usize, hint: &str) -> Result<Vec<u8>, DownloadError> {
        let url = url.to_owned();
        let limited = timeout(TOTAL, self.body(&url, most, hint)).await;
        limited.map_err(|_| DownloadError::TimedOut { url: url.clone() })?
    }

    async fn body(&self, url: &str, most: usize, hint: &str) -> Result<Vec<u8>, DownloadError> {
        let broken = |error: reqwest::Error| DownloadError::Broken {
            url: url.to_owned(),
            reason: reason(&error),
        };
        let request = self.client.get(url).header(USER_AGENT, "proctor");
        let request = request.header(ACCEPT, "*/*");
        let mut response: Response = request.send().await.map_err(broken)?;
        match response.status() {
            StatusCode::OK => {}
            StatusCode::NOT_FOUND => {
                return Err(DownloadError::Absent {
                    url: url.to_owned(),
                    hint: hint.to_owned(),
                });
            }
            other => {
                return Err(DownloadError::Status {
                    url: url.to_owned(),
                    status: other.as_u16(),
                });
            }
        }
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(broken)? {
            body.extend(&chunk);
            if body.len() > most {
                return Err(DownloadError::TooLarge {
                    url: url.to_owned(),
                    most,
                });
            }
        }
        Ok(body)
    }
}
