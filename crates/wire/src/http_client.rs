//! The HTTP client of every request that Proctor makes for itself, and the parsing of URLs and headers.

use std::time::Duration;

use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, Url};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Why a URL or header can't be used.
#[derive(Debug, thiserror::Error)]
pub enum AddressError {
    #[error("invalid URL `{0}`: expected `http://` or `https://`")]
    Url(String),
    #[error("invalid HTTP header `{0}`")]
    Header(String),
    /// The HTTP client could not be created, for example because of TLS.
    #[error("can't set up HTTP: {0}")]
    Setup(String),
}

/// Creates an HTTP client without redirects, system proxies and default timeouts.
pub fn client() -> Result<Client, AddressError> {
    // Another part of the process may have installed a provider already.
    let _ = rustls::crypto::ring::default_provider().install_default();
    Client::builder()
        .connect_timeout(CONNECT_TIMEOUT)
        .redirect(reqwest::redirect::Policy::none())
        .no_proxy()
        .tcp_nodelay(true)
        .build()
        .map_err(|error| AddressError::Setup(error.to_string()))
}

pub fn parse_url(url: &str) -> Result<Url, AddressError> {
    match Url::parse(url) {
        Ok(parsed) if ["http", "https"].contains(&parsed.scheme()) => Ok(parsed),
        _ => Err(AddressError::Url(url.to_owned())),
    }
}

pub fn parse_headers<'a>(
    headers: impl IntoIterator<Item = (&'a String, &'a String)>,
) -> Result<HeaderMap, AddressError> {
    let mut parsed = HeaderMap::new();
    for (name, value) in headers {
        let refused = || AddressError::Header(name.clone());
        let header = HeaderName::from_bytes(name.as_bytes()).map_err(|_| refused())?;
        let value = HeaderValue::from_str(value).map_err(|_| refused())?;
        parsed.insert(header, value);
    }
    Ok(parsed)
}
