//! Error messages for network failures: the URL, the operation, and the reason of the system.
//!
//! Messages of HTTP and TLS libraries are replaced where a plain one is known, and an HTML error
//! page is reduced to its text. URLs are shown without user name, password and query, which may be
//! secret.

mod page;

use std::error::Error;
use std::io;

use proctor_core::printable::printable;
use reqwest::Url;
use rustls::CertificateError;

pub use self::page::page_text;
use crate::recorder::ConnectionTap;

/// The maximum length of a failure's reason.
const MAX_REASON: usize = 1_000;
/// The maximum length of a response body in a message.
const MAX_BODY: usize = 500;

/// Returns a URL without its secret parts.
pub(crate) fn shown_address(url: &Url) -> String {
    let mut url = url.clone();
    // These can't fail for a URL that has a host.
    let _ = url.set_username("");
    let _ = url.set_password(None);
    url.set_query(None);
    url.set_fragment(None);
    url.to_string()
}

/// Describes a failure: `could not connect to URL while sending X: connection refused`. Without a
/// request, it is a failure of the event stream.
pub(crate) fn failed(
    error: &reqwest::Error,
    url: &Url,
    request: Option<&str>,
    tap: &ConnectionTap,
) -> String {
    let address = shown_address(url);
    let reason = reason(error);
    let text = match (error.is_connect(), request) {
        (true, Some(request)) => {
            format!("could not connect to {address} while sending `{request}`: {reason}")
        }
        (true, None) => {
            format!("could not connect to {address} while opening the event stream: {reason}")
        }
        (false, Some(request)) => {
            format!("no response to `{request}` from {address}: {reason}")
        }
        (false, None) => format!("the event stream from {address} failed: {reason}"),
    };
    tap.head(text.as_bytes(), MAX_REASON)
}

/// Returns the start of a response body on one line, without secrets and control characters. Of an
/// HTML page only the text is shown.
pub(crate) fn shown_body(body: &[u8], tap: &ConnectionTap) -> String {
    let head = tap.head(&page_text(body), MAX_BODY);
    let words: Vec<&str> = head.split_whitespace().collect();
    printable(&words.join(" ")).into_owned()
}

/// Returns the reason of a failure: the innermost cause that has a plain description.
pub fn reason(error: &(dyn Error + 'static)) -> String {
    let mut known = None;
    let mut last = error;
    let mut next = Some(error);
    while let Some(cause) = next {
        known = plain(cause).or(known);
        last = cause;
        next = inner(cause);
    }
    known.unwrap_or_else(|| printable(&last.to_string()).into_owned())
}

/// Returns the cause of an error. An I/O error holds an error that it does not return as its
/// source.
fn inner<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a (dyn Error + 'static)> {
    let held = error
        .downcast_ref::<io::Error>()
        .and_then(io::Error::get_ref);
    match held {
        Some(held) => Some(held),
        None => error.source(),
    }
}

fn plain(error: &(dyn Error + 'static)) -> Option<String> {
    if let Some(error) = error.downcast_ref::<io::Error>() {
        return of_system(error);
    }
    if let Some(error) = error.downcast_ref::<rustls::Error>() {
        return Some(format!("the TLS handshake failed: {}", of_tls(error)));
    }
    if let Some(error) = error.downcast_ref::<hyper::Error>() {
        return of_http(error).map(str::to_owned);
    }
    let error = error.downcast_ref::<reqwest::Error>()?;
    error.is_timeout().then(|| "timed out".to_owned())
}

fn of_system(error: &io::Error) -> Option<String> {
    let text = error.to_string();
    if let Some(detail) = text.strip_prefix("failed to lookup address information: ") {
        return Some(format!("the DNS lookup failed: {}", lower(detail)));
    }
    let known = match error.kind() {
        io::ErrorKind::ConnectionRefused => "connection refused",
        io::ErrorKind::ConnectionReset => "the server reset the connection",
        io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionAborted => {
            "the server closed the connection"
        }
        io::ErrorKind::UnexpectedEof => "the server closed the connection too early",
        io::ErrorKind::TimedOut => "timed out",
        // The error inside says more.
        _ if error.get_ref().is_some() => return None,
        _ => return Some(lower(text.split(" (os error").next().unwrap_or(&text))),
    };
    Some(known.to_owned())
}

fn of_http(error: &hyper::Error) -> Option<&'static str> {
    if error.is_incomplete_message() {
        Some("the server closed the connection without a response")
    } else if error.is_parse_too_large() {
        Some("the headers of the response are too large")
    } else if error.is_parse() {
        Some("the response is not valid HTTP")
    } else if error.is_canceled() || error.is_closed() {
        Some("the connection was closed")
    } else {
        None
    }
}

fn of_tls(error: &rustls::Error) -> String {
    let known = match error {
        rustls::Error::InvalidMessage(_) => "the server does not speak TLS at this port",
        rustls::Error::InvalidCertificate(why) => match why {
            CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
                "the certificate has expired"
            }
            CertificateError::UnknownIssuer => "the issuer of the certificate is not trusted",
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
                "the certificate is for another host"
            }
            _ => return printable(&error.to_string()).into_owned(),
        },
        _ => return printable(&error.to_string()).into_owned(),
    };
    known.to_owned()
}

/// Returns the text with its first letter in lower case.
fn lower(text: &str) -> String {
    let mut chars = text.chars();
    let first = chars.next().map(|c| c.to_ascii_lowercase());
    first.into_iter().chain(chars).collect()
}

#[cfg(test)]
mod tests;
