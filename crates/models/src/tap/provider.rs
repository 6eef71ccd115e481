//! The provider behind the model tap.
//!
//! The main type is [`TapProvider`].

use std::borrow::Cow;
use std::collections::BTreeMap;

use bytes::Bytes;
use proctor_record::redact::Redactor;

use super::super::serve::ApiRoute;
use super::super::wire::WireFormat;
use crate::ModelOpenError;
use crate::open::{self, Settings};
pub use proctor_wire::http_client::AddressError;
use proctor_wire::proxy::Upstream;

/// An API with one wire format.
pub struct TapProvider {
    format: WireFormat,
    /// The part of the URL before the formats' paths: `https://api.openai.com/v1`, without a
    /// version for Anthropic and Gemini.
    base: String,
    /// The header that holds the key.
    headers: BTreeMap<String, String>,
    /// Redacts the key in the provider's error texts.
    redactor: Redactor,
}

impl TapProvider {
    /// The API for an agent of this format, with the user's key; or an error that says what is
    /// missing.
    pub fn open(
        format: WireFormat,
        model: &str,
        settings: &Settings<'_>,
    ) -> Result<Self, ModelOpenError> {
        let (base, key) = open::address_and_key(format, model, settings)?;
        let header = |value: String| match format {
            WireFormat::Chat | WireFormat::Responses => {
                ("authorization".to_owned(), format!("Bearer {value}"))
            }
            WireFormat::Messages => ("x-api-key".to_owned(), value),
            WireFormat::Gemini => ("x-goog-api-key".to_owned(), value),
        };
        let secret = key.clone().map(|key| ("key".to_owned(), key));
        Ok(Self {
            format,
            base: without_version(&base, format),
            redactor: Redactor::new(secret),
            headers: key.map(header).into_iter().collect(),
        })
    }

    /// Proctor's own model server, which supports every format and needs no key.
    pub fn own(address: std::net::SocketAddr, format: WireFormat) -> Self {
        Self {
            format,
            base: format!("http://{address}"),
            headers: BTreeMap::new(),
            redactor: Redactor::default(),
        }
    }

    /// A provider's error text without the key, which some providers repeat.
    pub(super) fn without_key(&self, said: Bytes) -> Bytes {
        match self.redactor.bytes(&said) {
            Cow::Owned(redacted) => redacted.into(),
            Cow::Borrowed(_) => said,
        }
    }

    pub(super) fn upstream(&self) -> Result<Upstream, AddressError> {
        Upstream::new(&self.base, &self.headers)
    }

    /// The provider's path for a route; `None` if it has none.
    pub(super) fn path(&self, route: &ApiRoute, query: Option<&str>) -> Option<String> {
        let base = self
            .base
            .splitn(4, '/')
            .nth(3)
            .map_or(String::new(), |p| format!("/{p}"));
        let version = match self.format {
            WireFormat::Chat | WireFormat::Responses => "",
            WireFormat::Messages => "/v1",
            WireFormat::Gemini => "/v1beta",
        };
        let verb = |ask: &super::CompletionRoute| match ask.format {
            WireFormat::Chat => "/chat/completions".to_owned(),
            WireFormat::Responses => "/responses".to_owned(),
            WireFormat::Messages => "/messages".to_owned(),
            WireFormat::Gemini => {
                let model = ask.model.as_deref().unwrap_or_default();
                let verb = if ask.stream.is_some() {
                    "streamGenerateContent"
                } else {
                    "generateContent"
                };
                format!("/models/{model}:{verb}")
            }
        };
        let rest = match route {
            ApiRoute::Ask(ask) => verb(ask),
            ApiRoute::Count(WireFormat::Messages) => "/messages/count_tokens".to_owned(),
            ApiRoute::Models(_) => "/models".to_owned(),
            ApiRoute::Model(_, id) => format!("/models/{id}"),
            ApiRoute::Count(_) | ApiRoute::Greeting | ApiRoute::Unknown(_) => return None,
        };
        let kept: Vec<&str> = query
            .into_iter()
            .flat_map(|query| query.split('&'))
            .filter(|pair| !pair.starts_with("key=") && !pair.is_empty())
            .collect();
        let query = if kept.is_empty() {
            String::new()
        } else {
            format!("?{}", kept.join("&"))
        };
        Some(format!("{base}{version}{rest}{query}"))
    }
}

/// The base URL without the version that the format's paths start with.
fn without_version(base: &str, format: WireFormat) -> String {
    let base = base.trim_end_matches('/');
    let versions: &[&str] = match format {
        WireFormat::Chat | WireFormat::Responses => &[],
        WireFormat::Messages => &["/v1"],
        WireFormat::Gemini => &["/v1beta", "/v1alpha", "/v1"],
    };
    let shorter = versions
        .iter()
        .find_map(|version| base.strip_suffix(version));
    shorter.unwrap_or(base).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(format: WireFormat, base: &str, line: &str, expected: Option<&str>) {
        let provider = TapProvider {
            format,
            base: without_version(base, format),
            headers: BTreeMap::new(),
            redactor: Redactor::default(),
        };
        let (method, uri) = line.split_once(' ').unwrap();
        let uri: http::Uri = uri.parse().unwrap();
        let route = ApiRoute::of(&method.parse().unwrap(), &uri);
        let path = provider.path(&route, uri.query());
        assert_eq!(path.as_deref(), expected, "{base} {line}");
    }

    #[test]
    fn paths_are_those_of_the_provider() {
        let openai = "https://api.openai.com/v1";
        check(
            WireFormat::Chat,
            openai,
            "POST /v1/chat/completions",
            Some("/v1/chat/completions"),
        );
        check(
            WireFormat::Chat,
            openai,
            "POST /chat/completions",
            Some("/v1/chat/completions"),
        );
        check(
            WireFormat::Chat,
            "http://h:1/a/b/",
            "POST /v1/chat/completions?x=1&key=k",
            Some("/a/b/chat/completions?x=1"),
        );
        check(
            WireFormat::Responses,
            openai,
            "POST /responses",
            Some("/v1/responses"),
        );
        check(
            WireFormat::Chat,
            openai,
            "GET /v1/models",
            Some("/v1/models"),
        );
        for base in ["https://api.anthropic.com", "https://api.anthropic.com/v1"] {
            check(
                WireFormat::Messages,
                base,
                "POST /v1/messages?beta=true",
                Some("/v1/messages?beta=true"),
            );
            check(
                WireFormat::Messages,
                base,
                "POST /v1/messages/count_tokens",
                Some("/v1/messages/count_tokens"),
            );
        }
        check(
            WireFormat::Gemini,
            "https://generativelanguage.googleapis.com",
            "POST /v1beta/models/m:streamGenerateContent?alt=sse&key=k",
            Some("/v1beta/models/m:streamGenerateContent?alt=sse"),
        );
        check(WireFormat::Chat, openai, "GET /", None);
    }
}
