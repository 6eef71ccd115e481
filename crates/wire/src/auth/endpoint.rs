//! Requests to the endpoints of an authorization server.
//!
//! Its main types are [`TokenEndpoint`] and [`Grant`]. Errors show what the server says about the
//! error, never the request.

use std::time::Duration;

use data_encoding::BASE64;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use proctor_record::json;
use proctor_record::redact::Redactor;
use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderValue};
use reqwest::{Client, Method, Request, StatusCode, Url};
use serde_json::Value;

use super::AuthError;
use super::challenge::shown;
use crate::http_client::{client, parse_url};
use crate::network::{reason, shown_address};

/// How long a request may take.
const TIMEOUT: Duration = Duration::from_secs(20);
/// The maximum length of a response.
const MAX_RESPONSE: usize = 1 << 20;
/// The characters that a form leaves as they are.
const FORM: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

const TOKEN_ENDPOINT: &str = "token endpoint";

/// A token with what belongs to it.
pub(super) struct Grant {
    pub(super) access_token: String,
    pub(super) refresh_token: Option<String>,
    pub(super) lifetime: Option<Duration>,
    id_token: Option<String>,
}

impl Grant {
    /// A token alone.
    pub(super) fn new(token: &str, lifetime: Option<Duration>) -> Self {
        Self {
            access_token: token.to_owned(),
            refresh_token: None,
            lifetime,
            id_token: None,
        }
    }

    /// Reads a token response. The error continues a sentence, and quotes nothing of the response.
    pub(super) fn parse(json: &[u8]) -> Result<Self, &'static str> {
        let Ok(Value::Object(response)) = json::from_slice(json) else {
            return Err("can't be parsed");
        };
        let text = |name: &str| response.get(name)?.as_str().map(str::to_owned);
        let kind = text("token_type");
        if kind.is_some_and(|kind| !kind.eq_ignore_ascii_case("bearer")) {
            return Err("has a token of another type than `Bearer`");
        }
        let token = text("access_token").or_else(|| text("token"));
        let lifetime = match response.get("expires_in") {
            None | Some(Value::Null) => None,
            Some(Value::String(seconds)) => Some(seconds.parse().ok()),
            Some(seconds) => Some(seconds.as_f64()),
        };
        let lifetime = match lifetime {
            None => None,
            Some(seconds) => {
                let lifetime = seconds.and_then(|s| Duration::try_from_secs_f64(s).ok());
                Some(lifetime.ok_or("has an invalid `expires_in`")?)
            }
        };
        Ok(Self {
            access_token: token.ok_or("has neither `access_token` nor `token`")?,
            refresh_token: text("refresh_token"),
            lifetime,
            id_token: text("id_token"),
        })
    }

    /// Every secret of the response, as names and values.
    pub(super) fn secrets(&self) -> Vec<(String, String)> {
        let named = |name: &str, value: &String| (name.to_owned(), value.clone());
        let mut secrets = vec![named("access-token", &self.access_token)];
        let refresh = self.refresh_token.iter();
        secrets.extend(refresh.map(|value| named("refresh-token", value)));
        secrets.extend(self.id_token.iter().map(|value| named("id-token", value)));
        secrets
    }
}

/// A client, as the authorization server knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct OauthClient {
    pub(super) id: String,
    pub(super) secret: Option<String>,
    /// Whether the secret is part of the form; otherwise it is a header.
    in_form: bool,
}

impl OauthClient {
    /// Creates a client from the authentication methods that the server supports; none means all.
    pub(super) fn new(id: &str, secret: Option<String>, methods: &[String]) -> Self {
        let has = |method: &str| methods.iter().any(|known| known == method);
        Self {
            id: id.to_owned(),
            secret,
            in_form: has("client_secret_post") && !has("client_secret_basic"),
        }
    }
}

/// A token endpoint with the client that uses it.
pub(super) struct TokenEndpoint {
    url: Url,
    client: OauthClient,
}

impl TokenEndpoint {
    pub(super) fn new(url: Url, client: OauthClient) -> Self {
        Self { url, client }
    }

    /// Sends a form, and returns the token of the response.
    pub(super) async fn ask(&self, form: &[(&str, &str)]) -> Result<Grant, AuthError> {
        let mut form = form.to_vec();
        let header = match &self.client.secret {
            Some(secret) if !self.client.in_form => {
                let pair = format!("{}:{}", encoded(&self.client.id), encoded(secret));
                HeaderValue::try_from(format!("Basic {}", BASE64.encode(pair.as_bytes()))).ok()
            }
            secret => {
                form.push(("client_id", &self.client.id));
                form.extend(secret.as_deref().map(|secret| ("client_secret", secret)));
                None
            }
        };
        let pairs = form.iter();
        let pairs = pairs.map(|(name, value)| format!("{name}={}", encoded(value)));
        let body = pairs.collect::<Vec<_>>().join("&");
        let mut request = Request::new(Method::POST, self.url.clone());
        let kind = HeaderValue::from_static("application/x-www-form-urlencoded");
        request.headers_mut().insert(CONTENT_TYPE, kind);
        if let Some(mut header) = header {
            header.set_sensitive(true);
            request.headers_mut().insert(AUTHORIZATION, header);
        }
        *request.body_mut() = Some(body.into());
        let http = http()?;
        let (status, answer) = exchange(&http, request, TOKEN_ENDPOINT).await?;
        if !status.is_success() {
            return Err(self.refusal(status, &answer, &form));
        }
        Grant::parse(&answer).map_err(|problem| {
            unusable(
                TOKEN_ENDPOINT,
                &self.url,
                &format!("its response {problem}"),
            )
        })
    }

    /// The error of the authorization server, without what was sent to it.
    fn refusal(&self, status: StatusCode, answer: &[u8], form: &[(&str, &str)]) -> AuthError {
        let Some(error) = oauth_error(answer) else {
            let reason = format!("HTTP status {status}");
            return unusable(TOKEN_ENDPOINT, &self.url, &reason);
        };
        let public = [
            "grant_type",
            "scope",
            "resource",
            "redirect_uri",
            "client_id",
        ];
        let sent = form.iter().filter(|(name, _)| !public.contains(name));
        let sent = sent.map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let secret = self.client.secret.clone();
        let secret = secret.map(|secret| ("client_secret".to_owned(), secret));
        let redactor = Redactor::new(sent.chain(secret));
        AuthError::Refused(redactor.text(&error).into_owned())
    }
}

/// The `error` and `error_description` of a response.
pub(super) fn oauth_error(answer: &[u8]) -> Option<String> {
    let answer: Value = json::from_slice(answer).ok()?;
    let text = |name: &str| answer.get(name)?.as_str().map(shown);
    let error = text("error")?;
    Some(match text("error_description") {
        Some(why) => format!("{error} ({why})"),
        None => error,
    })
}

pub(super) fn http() -> Result<Client, AuthError> {
    client().map_err(|error| AuthError::Unsupported(error.to_string()))
}

/// Sends a request, and reads the response up to a limit.
pub(super) async fn exchange(
    http: &Client,
    mut request: Request,
    what: &'static str,
) -> Result<(StatusCode, Vec<u8>), AuthError> {
    let url = request.url().clone();
    let json = HeaderValue::from_static("application/json");
    request.headers_mut().insert(ACCEPT, json);
    let failed = |error: reqwest::Error| unusable(what, &url, &reason(&error));
    let exchanging = async {
        let mut response = http.execute(request).await.map_err(failed)?;
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(failed)? {
            body.extend_from_slice(&chunk);
            if body.len() > MAX_RESPONSE {
                return Err(unusable(what, &url, "its response is too large"));
            }
        }
        Ok((response.status(), body))
    };
    let exchanged = tokio::time::timeout(TIMEOUT, exchanging).await;
    exchanged.unwrap_or_else(|_| Err(unusable(what, &url, "timed out")))
}

pub(super) fn unusable(what: &'static str, url: &Url, reason: &str) -> AuthError {
    AuthError::Unusable {
        what,
        url: shown_address(url),
        reason: reason.to_owned(),
    }
}

/// Parses a URL that gets secrets. Plain HTTP stays on this machine, and only a server on this
/// machine may name such a URL: another one could make Proctor send secrets to local services.
pub(super) fn protected(what: &'static str, text: &str, server: &Url) -> Result<Url, AuthError> {
    let refused = || AuthError::Unprotected {
        what,
        url: shown(text),
    };
    let url = parse_url(text).map_err(|_| refused())?;
    let is_local = is_loopback(&url) && is_loopback(server);
    if url.scheme() == "https" || is_local {
        Ok(url)
    } else {
        Err(refused())
    }
}

/// Whether a URL is on this machine.
pub(super) fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let address: Option<std::net::IpAddr> = host.trim_matches(['[', ']']).parse().ok();
    host == "localhost" || address.is_some_and(|address| address.is_loopback())
}

/// A value of a form or a query.
pub(super) fn encoded(text: &str) -> String {
    utf8_percent_encode(text, FORM).to_string()
}

#[cfg(test)]
mod tests;
