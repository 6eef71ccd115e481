//! A web site for the browser of one user on this machine.
//!
//! Its main type is [`Site`]. Only GET requests with the site's own Host and Origin are answered. Everything except
//! the page itself, which holds no data, also needs the token. The token is in the fragment of the URL, which a
//! browser never sends; the page sends it as a bearer token.

mod lines;
mod request;
#[cfg(test)]
mod tests;

use std::future::Future;
use std::io;
use std::time::Duration;

use bytes::Bytes;
use http::header::{
    ALLOW, AUTHORIZATION, CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_SECURITY_POLICY,
    REFERRER_POLICY, WWW_AUTHENTICATE, X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use http::{HeaderName, HeaderValue, Method, StatusCode};
use http_body_util::BodyExt;
use serde_json::json;

pub use self::lines::{Chunk, ChunkBody, ChunkSender, chunks};
pub use self::request::SiteRequest;
use crate::proxy::AccessToken;
use crate::proxy::door::check_own;
use crate::web::{IncomingRequest, OutgoingResponse, Web, WebLimits, whole};

/// Far more than the tabs of one user need.
const LIMITS: WebLimits = WebLimits {
    connections: 200,
    head: Duration::from_secs(10),
    unread: Some(Duration::from_secs(30)),
};

/// The policy of everything that is not the page.
const NOTHING: &str = "default-src 'none'; frame-ancestors 'none'";

/// The headers of every response.
const HEADERS: [(HeaderName, &str); 6] = [
    (CACHE_CONTROL, "no-store"),
    (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (REFERRER_POLICY, "no-referrer"),
    (X_FRAME_OPTIONS, "DENY"),
    (
        HeaderName::from_static("cross-origin-resource-policy"),
        "same-origin",
    ),
    (
        HeaderName::from_static("cross-origin-opener-policy"),
        "same-origin",
    ),
];

/// The answer of a site to a request.
#[derive(Debug)]
pub enum SiteResponse {
    Page {
        html: Chunk,
        /// The value of `Content-Security-Policy`.
        policy: String,
    },
    /// One JSON document.
    Json(Chunk),
    /// Lines of JSON, as they come.
    Lines(ChunkBody),
    /// Bytes to save as a file.
    File(ChunkBody),
    Error(SiteError),
}

/// Why a request has no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SiteError {
    pub kind: SiteErrorKind,
    /// What is wrong, and what to do.
    pub message: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SiteErrorKind {
    /// The request makes no sense.
    Invalid,
    NotFound,
    /// The data exists but can't be read.
    Unreadable,
}

impl SiteError {
    pub fn invalid(message: impl Into<String>) -> Self {
        Self {
            kind: SiteErrorKind::Invalid,
            message: message.into(),
        }
    }

    pub fn not_found(message: impl Into<String>) -> Self {
        Self {
            kind: SiteErrorKind::NotFound,
            message: message.into(),
        }
    }

    pub fn unreadable(message: impl Into<String>) -> Self {
        Self {
            kind: SiteErrorKind::Unreadable,
            message: message.into(),
        }
    }
}

/// A site that is served until this is dropped.
#[derive(Debug)]
pub struct Site {
    web: Web,
    token: AccessToken,
}

impl Site {
    /// Serves on a loopback port; 0 picks a free port. `serve` gets only authorized requests, and requests for the
    /// page, whose path is empty.
    pub async fn start<S, F>(port: u16, serve: S) -> io::Result<Self>
    where
        S: Fn(SiteRequest) -> F + Clone + Send + Sync + 'static,
        F: Future<Output = SiteResponse> + Send + 'static,
    {
        let none = || io::Error::other("the system can't generate random numbers");
        let token = AccessToken::random().ok_or_else(none)?;
        let expected = token.clone();
        let web = Web::limited(port, LIMITS, move |request: IncomingRequest| {
            let admitted = admit(&request, &expected);
            let serve = serve.clone();
            async move {
                Ok(match admitted {
                    Ok(request) => respond(serve(request).await),
                    Err(refusal) => refusal.response(),
                })
            }
        })
        .await?;
        Ok(Self { web, token })
    }

    /// The URL that opens the site, with its token.
    pub fn url(&self) -> String {
        format!("{}/#token={}", self.origin(), self.token.reveal())
    }

    /// The URL of the site without its token.
    pub fn origin(&self) -> String {
        format!("http://{}", self.web.address())
    }

    /// Ends every exchange, and waits until all have ended.
    pub async fn close(self) {
        self.web.close().await;
    }
}

/// Why a request is not passed on.
#[derive(Debug)]
enum Refusal {
    /// The request is not for this site, or from another one.
    Foreign(String),
    Method(Method),
    Token(&'static str),
    Path(&'static str),
}

impl Refusal {
    fn response(self) -> OutgoingResponse {
        let (status, message) = match &self {
            Self::Foreign(why) => (StatusCode::FORBIDDEN, format!("refused by Proctor: {why}")),
            Self::Method(method) => (
                StatusCode::METHOD_NOT_ALLOWED,
                format!("{method} is not supported; use GET"),
            ),
            Self::Token(why) => (
                StatusCode::UNAUTHORIZED,
                format!("{why}; open the URL that `proctor view` printed"),
            ),
            Self::Path(why) => (StatusCode::BAD_REQUEST, (*why).to_owned()),
        };
        let mut response = error(status, &message);
        let headers = response.headers_mut();
        match self {
            Self::Method(_) => drop(headers.insert(ALLOW, HeaderValue::from_static("GET"))),
            Self::Token(_) => {
                headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
            }
            Self::Foreign(_) | Self::Path(_) => {}
        }
        response
    }
}

fn admit<B>(request: &http::Request<B>, token: &AccessToken) -> Result<SiteRequest, Refusal> {
    check_own(request).map_err(Refusal::Foreign)?;
    if *request.method() != Method::GET {
        return Err(Refusal::Method(request.method().clone()));
    }
    let asked = SiteRequest::parse(request.uri()).map_err(Refusal::Path)?;
    if asked.path.is_empty() {
        return Ok(asked);
    }
    let shown = request.headers().get(AUTHORIZATION);
    let shown = shown.and_then(|value| value.as_bytes().strip_prefix(b"Bearer "));
    match shown {
        Some(shown) if token.is(shown) => Ok(asked),
        Some(_) => Err(Refusal::Token("wrong token")),
        None => Err(Refusal::Token("missing token")),
    }
}

fn respond(answer: SiteResponse) -> OutgoingResponse {
    match answer {
        SiteResponse::Page { html, policy } => {
            let page = whole(StatusCode::OK, "text/html; charset=utf-8", html.0);
            hardened(page, &policy)
        }
        SiteResponse::Json(body) => {
            hardened(whole(StatusCode::OK, "application/json", body.0), NOTHING)
        }
        SiteResponse::Lines(body) => streamed(body, "application/x-ndjson"),
        SiteResponse::File(body) => {
            let mut response = streamed(body, "application/octet-stream");
            let saved = HeaderValue::from_static("attachment");
            response.headers_mut().insert(CONTENT_DISPOSITION, saved);
            response
        }
        SiteResponse::Error(SiteError { kind, message }) => {
            let status = match kind {
                SiteErrorKind::Invalid => StatusCode::BAD_REQUEST,
                SiteErrorKind::NotFound => StatusCode::NOT_FOUND,
                SiteErrorKind::Unreadable => StatusCode::INTERNAL_SERVER_ERROR,
            };
            error(status, &message)
        }
    }
}

fn streamed(body: ChunkBody, kind: &'static str) -> OutgoingResponse {
    let mut response = whole(StatusCode::OK, kind, Bytes::new());
    *response.body_mut() = body.boxed_unsync();
    hardened(response, NOTHING)
}

fn error(status: StatusCode, message: &str) -> OutgoingResponse {
    let body = json!({ "error": message }).to_string();
    hardened(whole(status, "application/json", body), NOTHING)
}

/// The response with all headers that protect the site.
fn hardened(mut response: OutgoingResponse, policy: &str) -> OutgoingResponse {
    let headers = response.headers_mut();
    for (name, value) in HEADERS {
        headers.insert(name, HeaderValue::from_static(value));
    }
    // A policy that is no header value would be dropped, and must not leave the page without one.
    let policy = HeaderValue::from_str(policy);
    let policy = policy.unwrap_or(HeaderValue::from_static(NOTHING));
    headers.insert(CONTENT_SECURITY_POLICY, policy);
    response
}
