//! The HTTP server behind a proxy.
//!
//! Its main type is [`Upstream`]. It sends requests to that server only, and adds nothing but the
//! configured headers and the token. It does not follow redirects, and does not record.

mod authorizing;
mod connecting;
mod pool;
mod sending;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::header::{
    ACCEPT_ENCODING, AUTHORIZATION, CONNECTION, CONTENT_LENGTH, HOST, HeaderName, HeaderValue,
    ORIGIN, PROXY_AUTHENTICATE, PROXY_AUTHORIZATION, TE, TRAILER, TRANSFER_ENCODING, UPGRADE,
};
use http::uri::PathAndQuery;
use http::{HeaderMap, Uri, Version};
use http_body::Body;
use http_body_util::BodyExt;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::connect::HttpConnector;
use percent_encoding::percent_decode_str;
use reqwest::Url;
use rustls::{ClientConfig, RootCertStore};
use tokio::sync::Notify;

pub(crate) use self::authorizing::TokenNote;
use self::connecting::PromptConnector;
pub use self::pool::PooledBody;
use self::pool::{ConnectionPool, PoolError};
use self::sending::{NotifyingBody, PendingSend};
use crate::auth::TokenSource;
use crate::http_client::{AddressError, parse_headers, parse_url};
use crate::network::{reason, shown_address};
use crate::web::{ConnectionAbort, ResponseBody};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// The headers that belong to one connection, and are not forwarded.
const HOP: [HeaderName; 9] = [
    CONNECTION,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
    PROXY_AUTHENTICATE,
    PROXY_AUTHORIZATION,
    TE,
    TRAILER,
    TRANSFER_ENCODING,
    UPGRADE,
];

/// A server with its connection pool.
pub struct Upstream {
    url: Url,
    /// Scheme, host and port.
    origin: String,
    host: HeaderValue,
    headers: HeaderMap,
    tokens: Option<Arc<TokenSource>>,
    pool: Arc<ConnectionPool>,
    is_closing: Arc<AtomicBool>,
}

/// Why there is no response.
#[derive(Debug, thiserror::Error)]
pub enum UpstreamError {
    /// The request target is not a valid path.
    #[error("invalid path `{0}`")]
    Target(String),
    /// The server can't be reached, or its connection broke.
    #[error("{0}")]
    Broken(String),
    /// There is no token for the server.
    #[error("{0}")]
    Unauthorized(String),
}

impl From<ConnectionAbort> for UpstreamError {
    fn from(ConnectionAbort(why): ConnectionAbort) -> Self {
        Self::Broken(why)
    }
}

impl Upstream {
    /// Creates the client of a server from its URL and configured headers.
    pub fn new<'a>(
        url: &str,
        headers: impl IntoIterator<Item = (&'a String, &'a String)>,
    ) -> Result<Self, AddressError> {
        let not_an_address = || AddressError::Url(url.to_owned());
        let parsed = parse_url(url)?;
        let name = parsed.host_str().ok_or_else(not_an_address)?;
        let host = match parsed.port() {
            Some(port) => format!("{name}:{port}"),
            None => name.to_owned(),
        };
        let mut all = HeaderMap::new();
        all.extend(credentials(&parsed).map(|value| (AUTHORIZATION, value)));
        // A configured header wins over credentials in the URL.
        for (name, value) in &parse_headers(headers)? {
            all.insert(name, value.clone());
        }
        Ok(Self {
            pool: Arc::new(ConnectionPool::new(
                server(&parsed, &host).ok_or_else(not_an_address)?,
                connector(parsed.scheme() == "https")?,
            )),
            origin: parsed.origin().ascii_serialization(),
            host: HeaderValue::try_from(host).map_err(|_| not_an_address())?,
            headers: all,
            tokens: None,
            url: parsed,
            is_closing: Arc::default(),
        })
    }

    /// Sends these tokens instead of what clients send as `Authorization`.
    #[must_use]
    pub(crate) fn authorized(self, tokens: Option<Arc<TokenSource>>) -> Self {
        Self { tokens, ..self }
    }

    /// From now on, requests of disconnected clients are no longer sent.
    pub(crate) fn closing(&self) {
        self.is_closing.store(true, Ordering::Relaxed);
    }

    /// Returns the URL, which may contain a user name and password.
    pub(crate) fn url(&self) -> &Url {
        &self.url
    }

    /// Returns scheme, host and port, without secrets.
    pub(crate) fn origin(&self) -> &str {
        &self.origin
    }

    /// Sends a request to a path of the server. The response can be forwarded unchanged.
    pub async fn send(
        &self,
        mut request: http::Request<ResponseBody>,
        path_and_query: &str,
    ) -> Result<http::Response<PooledBody>, UpstreamError> {
        self.prepare(&mut request, path_and_query)?;
        self.exchange(request).await
    }

    /// Turns a client's request into one for the server.
    pub(crate) fn prepare<B>(
        &self,
        request: &mut http::Request<B>,
        path_and_query: &str,
    ) -> Result<(), UpstreamError> {
        let target = PathAndQuery::try_from(path_and_query);
        let target = target.map_err(|_| UpstreamError::Target(path_and_query.to_owned()))?;
        *request.uri_mut() = target.into();
        *request.version_mut() = Version::HTTP_11;
        let headers = request.headers_mut();
        remove_hops(headers);
        // The record could not show an encoded response.
        headers.remove(ACCEPT_ENCODING);
        headers.insert(HOST, self.host.clone());
        if headers.contains_key(ORIGIN)
            && let Ok(origin) = HeaderValue::try_from(self.origin())
        {
            headers.insert(ORIGIN, origin);
        }
        for (name, value) in &self.headers {
            headers.insert(name, value.clone());
        }
        if self.tokens.is_some() {
            headers.remove(AUTHORIZATION);
        }
        Ok(())
    }

    /// Sends a request without a token. It is sent even if the client disconnects.
    async fn transmit(
        &self,
        request: http::Request<ResponseBody>,
    ) -> Result<http::Response<PooledBody>, UpstreamError> {
        let said = Arc::new(Notify::new());
        let request = request.map(|inner| {
            let said = said.clone();
            NotifyingBody { inner, said }.boxed_unsync()
        });
        let answer = Box::pin(self.pool.clone().send(request));
        let sent = PendingSend::new(answer, said, &self.is_closing).await;
        let mut response = sent.map_err(|error| {
            let (address, reason) = (shown_address(&self.url), reason(&error));
            UpstreamError::Broken(match error {
                PoolError::Connect(_) => format!("could not connect to {address}: {reason}"),
                PoolError::Send(_) => format!("no response from {address}: {reason}"),
            })
        })?;
        let is_last = closes(&response);
        *response.version_mut() = Version::HTTP_11;
        remove_hops(response.headers_mut());
        if is_last {
            // On a connection that was used before, clients repeat a request that gets no response.
            let close = HeaderValue::from_static("close");
            response.headers_mut().insert(CONNECTION, close);
        }
        Ok(response)
    }
}

/// Returns a body that is forwarded as it arrives.
pub fn passed<B>(body: B) -> ResponseBody
where
    B: Body<Data = Bytes, Error = hyper::Error> + Send + 'static,
{
    body.map_err(|error| ConnectionAbort(causes(&error)))
        .boxed_unsync()
}

/// Returns why the network failed.
pub fn causes(error: &(dyn std::error::Error + 'static)) -> String {
    reason(error)
}

/// Whether the server closes the connection after this response.
fn closes<B>(response: &http::Response<B>) -> bool {
    let options = || {
        let values = response.headers().get_all(CONNECTION).iter();
        let values = values.filter_map(|value| value.to_str().ok());
        values.flat_map(|value| value.split(',')).map(str::trim)
    };
    let has = |option: &str| options().any(|one| one.eq_ignore_ascii_case(option));
    has("close") || (response.version() < Version::HTTP_11 && !has("keep-alive"))
}

fn remove_hops(headers: &mut HeaderMap) {
    // `Transfer-Encoding` wins over a length, which does not describe the decoded body.
    if headers.contains_key(TRANSFER_ENCODING) {
        headers.remove(CONTENT_LENGTH);
    }
    let named: Vec<HeaderName> = headers
        .get_all(CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| name.trim().parse().ok())
        .collect();
    for name in HOP.iter().chain(&named) {
        headers.remove(name);
    }
}

/// Returns the `Authorization` header for the user name and password of a URL.
fn credentials(url: &Url) -> Option<HeaderValue> {
    if url.username().is_empty() && url.password().is_none() {
        return None;
    }
    let mut both: Vec<u8> = percent_decode_str(url.username()).collect();
    both.push(b':');
    both.extend(percent_decode_str(url.password().unwrap_or_default()));
    let value = format!("Basic {}", data_encoding::BASE64.encode(&both));
    let mut value = HeaderValue::try_from(value).ok()?;
    value.set_sensitive(true);
    Some(value)
}

/// Returns where to connect.
fn server(url: &Url, host: &str) -> Option<Uri> {
    let uri = Uri::builder().scheme(url.scheme()).authority(host);
    uri.path_and_query("/").build().ok()
}

fn connector(is_secure: bool) -> Result<HttpsConnector<PromptConnector>, AddressError> {
    let setup = |error: rustls::Error| AddressError::Setup(error.to_string());
    let mut connector = HttpConnector::new();
    connector.set_nodelay(true);
    connector.set_connect_timeout(Some(CONNECT_TIMEOUT));
    connector.enforce_http(false);
    Ok(HttpsConnectorBuilder::new()
        .with_tls_config(tls(is_secure).map_err(setup)?)
        .https_or_http()
        .enable_http1()
        .wrap_connector(PromptConnector(connector)))
}

/// Loads the certificates that the system trusts; none for plain HTTP, because loading takes time.
fn tls(is_secure: bool) -> Result<ClientConfig, rustls::Error> {
    use hyper_rustls::ConfigBuilderExt;
    let provider = rustls::crypto::ring::default_provider();
    let builder = ClientConfig::builder_with_provider(provider.into())
        .with_safe_default_protocol_versions()?;
    let builder = if is_secure {
        builder.try_with_platform_verifier()?
    } else {
        builder.with_root_certificates(RootCertStore::empty())
    };
    Ok(builder.with_no_client_auth())
}

#[cfg(test)]
mod tests;
