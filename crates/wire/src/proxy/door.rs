//! The HTTP entrance of a proxy: authorizes clients.
//!
//! Its main type is `Door`. It listens on loopback only, requires the trial's token, and refuses
//! requests that a web page could have sent.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use http::header::{HOST, ORIGIN};
use http::uri::PathAndQuery;
use http::{HeaderMap, Method, StatusCode, Uri};

use super::refusals::Refusals;
use super::token::AccessToken;
use crate::web::{ConnectionAbort, IncomingRequest, ListenAddress, OutgoingResponse, Web, whole};

/// The header with the token.
pub(crate) const TOKEN_HEADER: &str = "proctor-token";

/// How a client authorizes itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Admission {
    /// With a header, for clients that can configure one.
    Header,
    /// With the first part of the path, for clients that only accept a URL.
    Path,
    /// Not at all: every process on this machine can connect.
    Open,
}

/// A loopback listener for authorized clients, until it is dropped.
#[derive(Debug)]
pub(crate) struct Door {
    web: Web,
    token: AccessToken,
    admission: Admission,
}

impl Door {
    /// Listens on a port; 0 picks a free port. `serve` gets only authorized requests, without their
    /// token.
    pub(crate) async fn open<S, F>(
        port: u16,
        admission: Admission,
        refusals: Arc<Refusals>,
        serve: S,
    ) -> io::Result<Self>
    where
        S: Fn(IncomingRequest) -> F + Clone + Send + Sync + 'static,
        F: Future<Output = Result<OutgoingResponse, ConnectionAbort>> + Send + 'static,
    {
        let none = || io::Error::other("the system can't generate random numbers");
        let token = AccessToken::random().ok_or_else(none)?;
        let expected = token.clone();
        // The port is only known once the listener is bound, and every request needs it.
        let (tell, told) = tokio::sync::watch::channel(None);
        let web = Web::start(port, move |request: IncomingRequest| {
            let (expected, refusals, serve) = (expected.clone(), refusals.clone(), serve.clone());
            let mut told = told.clone();
            async move {
                let address = told.wait_for(Option::is_some).await.ok().and_then(|a| *a);
                let Some(address) = address else {
                    return Err(ConnectionAbort("the proxy is closed".to_owned()));
                };
                match admit(request, address, admission, &expected) {
                    Ok(request) => serve(request).await,
                    Err(why) => {
                        refusals.refused(&why);
                        let text = format!("refused by Proctor: {why}\n");
                        Ok(whole(StatusCode::FORBIDDEN, "text/plain", text))
                    }
                }
            }
        })
        .await?;
        tell.send_replace(Some(web.address()));
        Ok(Self {
            web,
            token,
            admission,
        })
    }

    /// Returns the URL of a path, which starts with a slash.
    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{}{path}", self.web.address(), self.prefix())
    }

    /// Returns the prefix of every path.
    pub(crate) fn prefix(&self) -> String {
        match self.admission {
            Admission::Path => format!("/{}", self.token.reveal()),
            Admission::Header | Admission::Open => String::new(),
        }
    }

    /// Returns the scheme, host and port of every URL.
    pub(crate) fn origin(&self) -> String {
        format!("http://{}", self.web.address())
    }

    /// Ends every exchange, and waits until all have ended.
    pub(crate) async fn close(self) {
        self.web.close().await;
    }

    /// Returns the headers that a client must send.
    pub(crate) fn headers(&self) -> Vec<(String, String)> {
        match self.admission {
            Admission::Header => {
                vec![(TOKEN_HEADER.to_owned(), self.token.reveal().to_owned())]
            }
            Admission::Path | Admission::Open => Vec::new(),
        }
    }
}

/// Removes the token from a request; returns why the request is refused.
fn admit<B>(
    mut request: http::Request<B>,
    address: SocketAddr,
    admission: Admission,
    token: &AccessToken,
) -> Result<http::Request<B>, String> {
    if *request.method() == Method::CONNECT {
        return Err("CONNECT is not supported".to_owned());
    }
    check_page(&request, address, |_| false)?;
    let headers = request.headers();
    let path = request
        .uri()
        .path_and_query()
        .map_or("/", PathAndQuery::as_str);
    let path = match admission {
        Admission::Open => path.to_owned(),
        Admission::Header => {
            let shown = headers.get(TOKEN_HEADER).map(http::HeaderValue::as_bytes);
            if !shown.is_some_and(|shown| token.is(shown)) {
                return Err(told(shown.is_some(), "headers"));
            }
            path.to_owned()
        }
        Admission::Path => without_token(path, token)?,
    };
    // The server must not see the token.
    remove_token(request.headers_mut(), token);
    let uri = Uri::try_from(path).map_err(|_| "invalid path".to_owned())?;
    *request.uri_mut() = uri;
    Ok(request)
}

/// Refuses requests that a web page could have sent: a page that uses DNS rebinding sends its own
/// host name as Host, and any other page sends its Origin.
fn check_page<B>(
    request: &http::Request<B>,
    address: SocketAddr,
    is_relayed: impl Fn(&str) -> bool,
) -> Result<(), String> {
    let is_own = |host: &str| is_at(host, address);
    if let Some(other) = request.uri().authority().map(http::uri::Authority::as_str)
        && !is_own(other)
        && !is_relayed(other)
    {
        return Err(format!("the request is for another host, `{other}`"));
    }
    let headers = request.headers();
    match only(headers, &HOST)? {
        Some(host) if is_own(host) || is_relayed(host) => {}
        Some(host) => return Err(format!("the Host header is `{host}`")),
        None => return Err("missing Host header".to_owned()),
    }
    if let Some(origin) = only(headers, &ORIGIN)?
        && !origin.strip_prefix("http://").is_some_and(is_own)
    {
        return Err(format!("the Origin header is `{origin}`"));
    }
    Ok(())
}

/// Whether a host with its port is this address, by number or as `localhost`.
fn is_at(host: &str, address: SocketAddr) -> bool {
    let Some((name, port)) = host.rsplit_once(':') else {
        return false;
    };
    let is_number = || name.parse() == Ok(address.ip());
    port.parse() == Ok(address.port()) && (name.eq_ignore_ascii_case("localhost") || is_number())
}

/// Whether a host is this machine, on any port: a port forwarder keeps the original Host.
fn is_loopback(host: &str) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    };
    ["127.0.0.1", "localhost", "[::1]"]
        .iter()
        .any(|own| own.eq_ignore_ascii_case(name))
}

/// Returns the refusal of a request that a web page could have sent; `None` if it is allowed.
pub fn refuse_page<B>(request: &http::Request<B>) -> Option<OutgoingResponse> {
    let refused = match request.extensions().get::<ListenAddress>() {
        Some(ListenAddress(address)) => check_page(request, *address, is_loopback).err()?,
        None => "the listen address is unknown".to_owned(),
    };
    let text = format!("refused by Proctor: {refused}\n");
    Some(whole(StatusCode::FORBIDDEN, "text/plain", text))
}

/// Refuses requests that a web page of another origin could have sent, to a server without a port forwarder.
pub(crate) fn check_own<B>(request: &http::Request<B>) -> Result<(), String> {
    match request.extensions().get::<ListenAddress>() {
        Some(ListenAddress(address)) => check_page(request, *address, |_| false),
        None => Err("the listen address is unknown".to_owned()),
    }
}

/// Returns the path after the token.
fn without_token(path: &str, token: &AccessToken) -> Result<String, String> {
    let rest = path.strip_prefix('/').unwrap_or(path);
    let end = rest.find(['/', '?']).unwrap_or(rest.len());
    let (shown, rest) = rest.split_at(end);
    if !token.is(shown.as_bytes()) {
        return Err(told(!shown.is_empty(), "path"));
    }
    Ok(match rest.chars().next() {
        Some('/') => rest.to_owned(),
        _ => format!("/{rest}"),
    })
}

/// Removes all headers that contain the token, including a Referer.
fn remove_token(headers: &mut HeaderMap, token: &AccessToken) {
    headers.remove(TOKEN_HEADER);
    let token = token.reveal().as_bytes();
    // Most values are too short, and need no search.
    let tells = |value: &http::HeaderValue| {
        value.len() >= token.len() && memchr::memmem::find(value.as_bytes(), token).is_some()
    };
    let telling: Vec<http::HeaderName> = headers
        .iter()
        .filter(|(_, value)| tells(value))
        .map(|(name, _)| name.clone())
        .collect();
    for name in telling {
        headers.remove(name);
    }
}

fn told(is_there: bool, place: &str) -> String {
    if is_there {
        format!("wrong token in the {place}")
    } else {
        format!("missing token in the {place}")
    }
}

/// Returns the value of a header that must occur at most once.
fn only<'a>(headers: &'a HeaderMap, name: &http::HeaderName) -> Result<Option<&'a str>, String> {
    let mut values = headers.get_all(name).iter();
    let (first, second) = (values.next(), values.next());
    match (first.map(|value| value.to_str()), second) {
        (None, _) => Ok(None),
        (Some(Ok(value)), None) => Ok(Some(value)),
        _ => Err(format!("invalid `{name}` header")),
    }
}

#[cfg(test)]
mod tests;
