//! Finds the authorization server of an MCP server: RFC 9728, then RFC 8414 or the discovery of
//! `OpenID` Connect.
//!
//! Its main function is [`discover`]. What a server says about itself must match its URL, and what an
//! authorization server says must match its issuer: otherwise one could pose as another.

use proctor_record::json;
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderValue};
use reqwest::{Client, Method, Request, StatusCode, Url};
use serde_json::{Map, Value};

use super::AuthError;
use super::challenge::{Challenge, shown};
use super::endpoint::{exchange, protected, unusable};
use crate::network::{reason, shown_address};

const METADATA: &str = "metadata URL";

/// What is known of an authorization server, and of the resource that it protects.
#[derive(Debug)]
pub(super) struct Discovered {
    pub(super) issuer: String,
    pub(super) token: Url,
    pub(super) authorization: Option<Url>,
    pub(super) registration: Option<Url>,
    /// How clients may authenticate at the token endpoint.
    pub(super) client_methods: Vec<String>,
    pub(super) has_pkce: bool,
    /// Whether the authorization response names the issuer.
    pub(super) names_issuer: bool,
    /// Whether `offline_access` is a scope, which gives a refresh token.
    pub(super) has_offline_access: bool,
    pub(super) scopes: Vec<String>,
    pub(super) resource: String,
}

/// Finds the authorization server; if an issuer is given, it must be that one.
pub(super) async fn discover(
    http: &Client,
    server: &Url,
    issuer: Option<&str>,
) -> Result<Discovered, AuthError> {
    let challenge = challenge(http, server).await?;
    let metadata = resource_metadata(http, server, &challenge).await?;
    let (named, resource, supported) = match &metadata {
        Some(metadata) => of_resource(metadata, server)?,
        // Servers before June 2025 are their own authorization servers.
        None => (
            server.origin().ascii_serialization(),
            resource_of(server),
            Vec::new(),
        ),
    };
    if let Some(issuer) = issuer.filter(|issuer| !is_same(issuer, &named)) {
        return Err(AuthError::Mismatch(format!(
            "the server names the authorization server `{}`, but `issuer` is `{issuer}`",
            shown(&named)
        )));
    }
    let metadata = issuer_metadata(http, server, &named).await?;
    let scopes = match challenge.scope {
        Some(scope) => scope.split_whitespace().map(str::to_owned).collect(),
        None => supported,
    };
    of_issuer(&metadata, &named, server, (scopes, resource))
}

/// The resource identifier of a server: its URL without user, query and fragment.
pub(super) fn resource_of(server: &Url) -> String {
    let address = shown_address(server);
    match server.path() {
        "/" => address.trim_end_matches('/').to_owned(),
        _ => address,
    }
}

/// Asks the server what it wants, by a request without a token.
async fn challenge(http: &Client, server: &Url) -> Result<Challenge, AuthError> {
    let mut request = Request::new(Method::POST, server.clone());
    let both = HeaderValue::from_static("application/json, text/event-stream");
    request.headers_mut().insert(ACCEPT, both);
    let json = HeaderValue::from_static("application/json");
    request.headers_mut().insert(CONTENT_TYPE, json);
    *request.body_mut() = Some(r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#.into());
    *request.timeout_mut() = Some(std::time::Duration::from_secs(20));
    let response = http.execute(request).await;
    let response = response.map_err(|error| unusable("server", server, &reason(&error)))?;
    Ok(Challenge::of(response.headers()))
}

/// The metadata of the protected resource, from the URL that the server names or a well-known one.
async fn resource_metadata(
    http: &Client,
    server: &Url,
    challenge: &Challenge,
) -> Result<Option<Map<String, Value>>, AuthError> {
    if let Some(named) = &challenge.resource_metadata {
        let url = protected(METADATA, named, server)?;
        if url.origin() != server.origin() {
            return Err(AuthError::Mismatch(format!(
                "the metadata of the server is on another server: `{}`",
                shown(named)
            )));
        }
        return Ok(Some(required(http, &url).await?));
    }
    for path in [server.path(), "/"] {
        let mut url = server.clone();
        let path = path.trim_end_matches('/');
        url.set_path(&format!("/.well-known/oauth-protected-resource{path}"));
        url.set_query(None);
        if let Some(found) = fetch(http, &url).await? {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

/// The authorization server, the resource and the scopes in the metadata of a resource.
fn of_resource(
    metadata: &Map<String, Value>,
    server: &Url,
) -> Result<(String, String, Vec<String>), AuthError> {
    let resource = metadata.get("resource").and_then(Value::as_str);
    let Some(resource) = resource.filter(|resource| covers(resource, server)) else {
        return Err(AuthError::Mismatch(format!(
            "the metadata of {} is for another resource: `{}`",
            shown_address(server),
            shown(resource.unwrap_or("none"))
        )));
    };
    let issuers = texts(metadata, "authorization_servers");
    let Some(issuer) = issuers.first() else {
        let text = "the metadata of the server names no authorization server";
        return Err(AuthError::Unsupported(text.to_owned()));
    };
    let scopes = texts(metadata, "scopes_supported");
    Ok((issuer.clone(), resource.to_owned(), scopes))
}

/// Whether a resource is the server, or a path above it on the same host.
fn covers(resource: &str, server: &Url) -> bool {
    let Ok(resource) = Url::parse(resource) else {
        return false;
    };
    let above = resource.path().trim_end_matches('/');
    let rest = server.path().strip_prefix(above);
    resource.origin() == server.origin()
        && rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// The metadata of an authorization server.
async fn issuer_metadata(
    http: &Client,
    server: &Url,
    issuer: &str,
) -> Result<Map<String, Value>, AuthError> {
    let url = protected("authorization server", issuer, server)?;
    let path = url.path().trim_end_matches('/').to_owned();
    let mut paths = vec![
        format!("/.well-known/oauth-authorization-server{path}"),
        format!("/.well-known/openid-configuration{path}"),
    ];
    if !path.is_empty() {
        paths.push(format!("{path}/.well-known/openid-configuration"));
    }
    for path in paths {
        let mut url = url.clone();
        url.set_path(&path);
        if let Some(found) = fetch(http, &url).await? {
            return Ok(found);
        }
    }
    Err(unusable("authorization server", &url, "it has no metadata"))
}

fn of_issuer(
    metadata: &Map<String, Value>,
    issuer: &str,
    server: &Url,
    (scopes, resource): (Vec<String>, String),
) -> Result<Discovered, AuthError> {
    let text = |name: &str| metadata.get(name).and_then(Value::as_str);
    let own = text("issuer").unwrap_or("none");
    if !is_same(own, issuer) {
        return Err(AuthError::Mismatch(format!(
            "the metadata of the authorization server `{}` is of another issuer: `{}`",
            shown(issuer),
            shown(own)
        )));
    }
    let url = |what: &'static str, name: &str| {
        let text = text(name);
        text.map(|text| protected(what, text, server)).transpose()
    };
    let Some(token) = url("token endpoint", "token_endpoint")? else {
        let text = "the authorization server has no token endpoint";
        return Err(AuthError::Unsupported(text.to_owned()));
    };
    let has = |name: &str, value: &str| texts(metadata, name).iter().any(|text| text == value);
    let flag = |name: &str| metadata.get(name).and_then(Value::as_bool) == Some(true);
    Ok(Discovered {
        // As the authorization response has it.
        issuer: own.to_owned(),
        token,
        authorization: url("authorization endpoint", "authorization_endpoint")?,
        registration: url("registration endpoint", "registration_endpoint")?,
        client_methods: texts(metadata, "token_endpoint_auth_methods_supported"),
        has_pkce: has("code_challenge_methods_supported", "S256"),
        names_issuer: flag("authorization_response_iss_parameter_supported"),
        has_offline_access: has("scopes_supported", "offline_access"),
        scopes,
        resource,
    })
}

/// Whether two issuers are the same; a slash at the end makes no difference.
fn is_same(one: &str, other: &str) -> bool {
    one.trim_end_matches('/') == other.trim_end_matches('/')
}

fn texts(metadata: &Map<String, Value>, name: &str) -> Vec<String> {
    let list = metadata.get(name).and_then(Value::as_array);
    let texts = list.into_iter().flatten().filter_map(Value::as_str);
    texts.map(str::to_owned).collect()
}

/// A document that must exist.
async fn required(http: &Client, url: &Url) -> Result<Map<String, Value>, AuthError> {
    let found = fetch(http, url).await?;
    found.ok_or_else(|| unusable(METADATA, url, "it has no metadata"))
}

/// A JSON document; `None` if there is none.
async fn fetch(http: &Client, url: &Url) -> Result<Option<Map<String, Value>>, AuthError> {
    let request = Request::new(Method::GET, url.clone());
    let (status, body) = exchange(http, request, METADATA).await?;
    if status != StatusCode::OK {
        return Ok(None);
    }
    // Some servers answer every path with a page.
    Ok(json::from_slice(&body).ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn map(value: &Value) -> Map<String, Value> {
        value.as_object().cloned().unwrap()
    }

    #[test]
    fn metadata_must_be_for_the_server() {
        let server = Url::parse("https://api.example/a/mcp").unwrap();
        for resource in [
            "https://api.example/a/mcp",
            "https://api.example/a",
            "https://api.example",
            "https://api.example/",
        ] {
            assert!(covers(resource, &server), "{resource}");
        }
        for resource in [
            "https://other.example/a/mcp",
            "http://api.example/a/mcp",
            "https://api.example:8443/a/mcp",
            "https://api.example/a/mcp/b",
            "https://api.example/a/m",
            "api",
        ] {
            assert!(!covers(resource, &server), "{resource}");
        }
        let metadata = json!({"resource": "https://evil.example", "authorization_servers": ["a"]});
        let error = of_resource(&map(&metadata), &server).unwrap_err();
        assert_eq!(
            error.to_string(),
            "the metadata of https://api.example/a/mcp is for another resource: \
             `https://evil.example`"
        );
    }

    #[test]
    fn metadata_of_another_issuer_or_with_unprotected_endpoints_is_refused() {
        let server = Url::parse("https://api.example/mcp").unwrap();
        let check = |metadata: &Value, expected: &str| {
            let found = of_issuer(
                &map(metadata),
                "https://as.example",
                &server,
                (Vec::new(), String::new()),
            );
            assert_eq!(found.unwrap_err().to_string(), expected);
        };
        check(
            &json!({"issuer": "https://evil.example", "token_endpoint": "https://as.example/t"}),
            "the metadata of the authorization server `https://as.example` is of another issuer: \
             `https://evil.example`",
        );
        check(
            &json!({"issuer": "https://as.example", "token_endpoint": "http://as.example/t"}),
            "the token endpoint `http://as.example/t` is not protected: expected `https://`",
        );
        check(
            &json!({"issuer": "https://as.example/"}),
            "the authorization server has no token endpoint",
        );
    }

    #[test]
    fn a_resource_has_neither_query_nor_user() {
        let check = |url: &str, expected: &str| {
            assert_eq!(resource_of(&Url::parse(url).unwrap()), expected);
        };
        check(
            "https://u:p@api.example/mcp?key=1#f",
            "https://api.example/mcp",
        );
        check("https://api.example/", "https://api.example");
        check("https://api.example/mcp/", "https://api.example/mcp/");
    }
}
