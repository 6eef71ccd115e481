//! Sends one request over HTTP, with timeouts and a size limit.
//!
//! The main type is [`ModelEndpoint`]. It does not follow redirects, which could send the key
//! elsewhere. The key is only in a header, and in no message.

use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

use proctor_record::json;
use proctor_record::json::repeats_a_key;
use proctor_record::model::{Arguments, ModelRequest, Reply};
use proctor_record::redact::Redactor;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, StatusCode, Url};
use serde_json::Value;
use tokio::time::Instant;

use super::ModelError;
use super::failure;
use super::open_error::ModelOpenError;
use super::pace::ProviderAccount;
use super::timeouts::ModelTimeouts;
use super::turns;
use super::wire::{self, FormatError, WireFormat};
use proctor_wire::transport::MAX_MESSAGE;
use proctor_wire::transport::frames::BodyCollector;
use proctor_wire::worker;

/// How many bytes of a provider's response are shown in a message.
const SHOWN: usize = 500;

/// The headers in which keys are sent.
const KEYS: [&str; 3] = ["authorization", "x-api-key", "x-goog-api-key"];

/// The endpoint of a model.
pub(super) struct ModelEndpoint {
    client: Client,
    url: Url,
    headers: HeaderMap,
    redactor: Redactor,
    timeouts: ModelTimeouts,
}

/// How a key is sent.
pub(super) enum KeyHeader {
    /// Sends the key as `authorization: Bearer KEY`.
    Bearer,
    /// Sends the key as `x-api-key: KEY`.
    Plain,
    /// Sends the key as `x-goog-api-key: KEY`.
    Google,
}

/// A key, and the variable that holds it.
pub(super) struct ApiKey {
    pub(super) variable: String,
    pub(super) value: String,
}

/// A response as received.
pub(super) struct RawResponse {
    pub(super) body: Vec<u8>,
    /// The body for the record, with secrets redacted.
    pub(super) raw: Vec<u8>,
}

impl RawResponse {
    /// Parses the reply, or returns what is wrong with it.
    pub(super) fn read(
        self,
        format: WireFormat,
        asked: &ModelRequest,
        endpoint: &ModelEndpoint,
    ) -> Result<Reply, ModelError> {
        worker::on_body(self.body.len(), || self.understood(format, asked, endpoint))
    }

    fn understood(
        self,
        format: WireFormat,
        asked: &ModelRequest,
        endpoint: &ModelEndpoint,
    ) -> Result<Reply, ModelError> {
        let malformed = |detail: String| ModelError::Malformed { detail };
        let Ok(body) = json::from_slice::<Value>(&self.body) else {
            let said = endpoint.shown(&String::from_utf8_lossy(&self.body));
            return Err(malformed(format!("not JSON: {said}")));
        };
        let reply = wire::reply(format, &body, asked).map_err(|unread| match unread {
            FormatError::Error(error) => failure::in_success(&error, |text| endpoint.shown(text)),
            FormatError::Odd(why) => {
                malformed(format!("{why}: {}", endpoint.shown(&body.to_string())))
            }
        })?;
        let reply = unambiguous(reply, &self.body).map_err(malformed)?;
        Ok(Reply {
            raw: Some(self.raw),
            ..reply
        })
    }
}

/// The reply, if it is unambiguous. Calls in a body with a duplicate key become malformed, so that
/// the model gets an error and can repeat them.
fn unambiguous(mut reply: Reply, body: &[u8]) -> Result<Reply, String> {
    if !repeats_a_key(body) {
        return Ok(reply);
    }
    if reply.turn.calls.is_empty() {
        return Err("duplicate key in its JSON".to_owned());
    }
    for call in &mut reply.turn.calls {
        if let Arguments::Object(arguments) = &call.arguments {
            call.arguments = turns::repeated(&Value::Object(arguments.clone()).to_string());
        }
    }
    Ok(reply)
}

impl fmt::Debug for ModelEndpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Endpoint")
            .field("host", &self.host())
            .finish_non_exhaustive()
    }
}

impl ModelEndpoint {
    pub(super) fn new(
        url: Url,
        key: Option<(KeyHeader, ApiKey)>,
        timeouts: ModelTimeouts,
        proxy: Option<reqwest::Proxy>,
    ) -> Result<Self, ModelOpenError> {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let mut secrets = Vec::new();
        if let Some((how, key)) = key {
            let (name, value) = match how {
                KeyHeader::Bearer => (KEYS[0], format!("Bearer {}", key.value)),
                KeyHeader::Plain => (KEYS[1], key.value.clone()),
                KeyHeader::Google => (KEYS[2], key.value.clone()),
            };
            let Ok(mut value) = HeaderValue::from_str(&value) else {
                return Err(ModelOpenError::BadKey(key.variable));
            };
            value.set_sensitive(true);
            headers.insert(HeaderName::from_static(name), value);
            secrets.push((key.variable, key.value));
        }
        if let Some(password) = url.password() {
            secrets.push(("password".to_owned(), password.to_owned()));
        }
        Ok(Self {
            client: client(timeouts, proxy)?,
            url,
            headers,
            redactor: Redactor::new(secrets),
            timeouts,
        })
    }

    /// Adds a header to every request.
    pub(super) fn with_header(mut self, name: &'static str, value: &'static str) -> Self {
        let name = HeaderName::from_static(name);
        self.headers.insert(name, HeaderValue::from_static(value));
        self
    }

    pub(super) async fn post(&self, body: &Value) -> Result<RawResponse, ModelError> {
        let started = Instant::now();
        let exchange = self.exchange(body);
        let answered = tokio::time::timeout(self.timeouts.total, exchange).await;
        answered.unwrap_or_else(|_| Err(timed_out(started)))
    }

    async fn exchange(&self, body: &Value) -> Result<RawResponse, ModelError> {
        let started = Instant::now();
        let request = self
            .client
            .post(self.url.clone())
            .headers(self.headers.clone())
            .body(body.to_string());
        let sent = tokio::time::timeout(self.timeouts.first_byte, request.send()).await;
        let response = match sent {
            Err(_) => return Err(timed_out(started)),
            Ok(Err(error)) => return Err(self.broken(&error, started)),
            Ok(Ok(response)) => response,
        };
        let (status, headers) = (response.status(), response.headers().clone());
        let body = self.read(response, started).await?;
        if status != StatusCode::OK {
            return Err(failure::of_status(status, &headers, &body, |said| {
                self.shown(said)
            }));
        }
        let raw = worker::on_body(body.len(), || self.redactor.bytes(&body).into_owned());
        Ok(RawResponse { body, raw })
    }

    async fn read(
        &self,
        mut response: reqwest::Response,
        started: Instant,
    ) -> Result<Vec<u8>, ModelError> {
        let mut body = BodyCollector::new(MAX_MESSAGE);
        loop {
            let part = tokio::time::timeout(self.timeouts.idle, response.chunk()).await;
            match part {
                Err(_) => return Err(timed_out(started)),
                Ok(Err(error)) => return Err(self.broken(&error, started)),
                Ok(Ok(None)) => break,
                Ok(Ok(Some(part))) => body.take(&part),
            }
            if body.is_over() {
                let detail = format!("it is larger than {} MiB", MAX_MESSAGE >> 20);
                return Err(ModelError::Malformed { detail });
            }
        }
        body.end().map_err(|cut| ModelError::Malformed {
            detail: format!("it is too large: {} bytes", cut.bytes),
        })
    }

    fn broken(&self, error: &reqwest::Error, started: Instant) -> ModelError {
        if error.is_timeout() {
            return timed_out(started);
        }
        let cause = proctor_wire::network::reason(error);
        let what = if error.is_connect() {
            "no connection to"
        } else {
            "the connection closed early:"
        };
        let detail = self.shown(&format!("{what} {}: {cause}", self.host()));
        ModelError::Unavailable {
            retry_after: None,
            is_overload: false,
            detail,
        }
    }

    /// A provider's text on one line, shortened and without the key.
    pub(super) fn shown(&self, text: &str) -> String {
        let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
        self.redactor.head(line.as_bytes(), SHOWN)
    }

    /// The account whose rate limits apply.
    pub(super) fn account(&self) -> ProviderAccount {
        let key = KEYS.iter().find_map(|name| self.headers.get(*name));
        ProviderAccount {
            host: self.host(),
            key: key.map(|key| {
                let mut hasher = DefaultHasher::new();
                key.as_bytes().hash(&mut hasher);
                hasher.finish()
            }),
        }
    }

    /// The host, without the parts of the URL that may be secret.
    fn host(&self) -> String {
        let host = self.url.host_str().unwrap_or("nowhere");
        match self.url.port() {
            Some(port) => format!("{host}:{port}"),
            None => host.to_owned(),
        }
    }
}

fn timed_out(started: Instant) -> ModelError {
    ModelError::TimedOut {
        after: started.elapsed(),
    }
}

fn client(
    timeouts: ModelTimeouts,
    proxy: Option<reqwest::Proxy>,
) -> Result<Client, ModelOpenError> {
    // Another thread may have installed one already, which works too.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mut builder = Client::builder()
        .connect_timeout(timeouts.connect)
        .redirect(reqwest::redirect::Policy::none())
        .pool_idle_timeout(Duration::from_mins(1))
        .tcp_nodelay(true)
        .no_proxy();
    if let Some(proxy) = proxy {
        builder = builder.proxy(proxy);
    }
    builder
        .build()
        .map_err(|error| ModelOpenError::Setup(error.to_string()))
}
