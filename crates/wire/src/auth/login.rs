//! A login in the browser: authorization code with PKCE, and a redirect to this machine.
//!
//! Its main type is [`PendingLogin`].

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use data_encoding::BASE64URL_NOPAD;
use http::{Method, StatusCode};
use percent_encoding::percent_decode_str;
use proctor_record::json;
use reqwest::header::{CONTENT_TYPE, HOST, HeaderValue};
use reqwest::{Request, Url};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tokio::sync::oneshot;

use super::AuthError;
use super::challenge::shown;
use super::discovery::{Discovered, discover};
use super::endpoint::{
    OauthClient, TokenEndpoint, encoded, exchange, http, oauth_error, protected, unusable,
};
use super::store::StoredLogin;
use crate::web::{IncomingRequest, ListenAddress, OutgoingResponse, Web, WebLimits, whole};

const CALLBACK: &str = "/callback";
const REGISTRATION: &str = "registration endpoint";
const DONE: &str = "<!doctype html><meta charset=utf-8><title>Proctor</title>\
    <p>You can close this window and return to the terminal.";
const FAILED: &str = "<!doctype html><meta charset=utf-8><title>Proctor</title>\
    <p>The login failed. The terminal shows the reason.";
const LIMITS: WebLimits = WebLimits {
    connections: 16,
    head: Duration::from_secs(10),
    unread: Some(Duration::from_secs(10)),
};

/// What the user chose for a login.
#[derive(Debug, Clone, Default)]
pub struct LoginOptions {
    /// The id of a registered client; by default Proctor registers one.
    pub client_id: Option<String>,
    /// The scopes to ask for; by default those that the server names.
    pub scopes: Vec<String>,
    /// The only authorization server that may be used.
    pub issuer: Option<String>,
}

/// A login that waits for the user.
pub struct PendingLogin {
    page: String,
    verifier: String,
    redirect: String,
    client: OauthClient,
    found: Discovered,
    answer: oneshot::Receiver<Result<String, AuthError>>,
    _listener: Web,
}

/// Where the browser arrives after the login.
struct Callback {
    state: String,
    issuer: String,
    names_issuer: bool,
    answer: Mutex<Option<oneshot::Sender<Result<String, AuthError>>>>,
}

impl PendingLogin {
    /// Finds the authorization server, registers a client, and waits on a port of this machine.
    pub async fn start(server: &Url, options: &LoginOptions) -> Result<Self, AuthError> {
        protected("server", server.as_str(), server)?;
        let http = http()?;
        let found = discover(&http, server, options.issuer.as_deref()).await?;
        let Some(authorization) = found.authorization.clone() else {
            return Err(unsupported("the authorization server has no login page"));
        };
        if !found.has_pkce {
            return Err(unsupported(
                "the authorization server does not support PKCE with S256",
            ));
        }
        let (state, verifier) = (random()?, random()?);
        let (answer, answered) = oneshot::channel();
        let callback = Arc::new(Callback {
            state: state.clone(),
            issuer: found.issuer.clone(),
            names_issuer: found.names_issuer,
            answer: Mutex::new(Some(answer)),
        });
        let listening = Web::limited(0, LIMITS, move |request| {
            let callback = callback.clone();
            async move { Ok(callback.serve(&request)) }
        });
        let listener = listening.await;
        let listener = listener
            .map_err(|error| unsupported(&format!("can't listen on 127.0.0.1: {error}")))?;
        let redirect = format!("http://{}{CALLBACK}", listener.address());
        let client = match &options.client_id {
            Some(id) => OauthClient::new(id, None, &found.client_methods),
            None => register(&http, &found, &redirect, server).await?,
        };
        let challenge = BASE64URL_NOPAD.encode(&Sha256::digest(verifier.as_bytes()));
        let page = login_page(
            authorization,
            &found,
            options,
            &[
                ("response_type", "code"),
                ("client_id", &client.id),
                ("redirect_uri", &redirect),
                ("state", &state),
                ("code_challenge", &challenge),
                ("code_challenge_method", "S256"),
                ("resource", &found.resource),
            ],
        );
        Ok(Self {
            page,
            verifier,
            redirect,
            client,
            found,
            answer: answered,
            _listener: listener,
        })
    }

    /// The page that the user has to open.
    pub fn page(&self) -> &str {
        &self.page
    }

    /// The authorization server that shows the page.
    pub fn issuer(&self) -> &str {
        &self.found.issuer
    }

    /// Waits until the user has logged in, and gets the first token.
    pub async fn complete(self) -> Result<StoredLogin, AuthError> {
        let answer = self.answer.await;
        let code = answer.map_err(|_| unsupported("the login was abandoned"))??;
        let endpoint = TokenEndpoint::new(self.found.token.clone(), self.client.clone());
        let grant = endpoint
            .ask(&[
                ("grant_type", "authorization_code"),
                ("code", &code),
                ("redirect_uri", &self.redirect),
                ("code_verifier", &self.verifier),
                ("resource", &self.found.resource),
            ])
            .await?;
        let Discovered {
            issuer,
            token,
            client_methods,
            resource,
            ..
        } = &self.found;
        Ok(StoredLogin::new(
            issuer,
            token,
            &self.client,
            client_methods,
            resource,
            &grant,
        ))
    }
}

impl Callback {
    fn serve(&self, request: &IncomingRequest) -> OutgoingResponse {
        let address = request.extensions().get::<ListenAddress>();
        let address = address.map(|ListenAddress(address)| address.to_string());
        let host = request.headers().get(HOST).map(HeaderValue::as_bytes);
        // A page that uses DNS rebinding sends its own name.
        let is_own = host.is_some() && host == address.as_deref().map(str::as_bytes);
        let uri = request.uri();
        if *request.method() != Method::GET || uri.path() != CALLBACK || !is_own {
            return whole(StatusCode::NOT_FOUND, "text/plain", "not found\n");
        }
        let query = uri.query().unwrap_or_default();
        // Another page could send anything here, so only the answer to this login ends the wait.
        if parameter(query, "state").as_deref() != Some(self.state.as_str()) {
            return whole(StatusCode::BAD_REQUEST, "text/html", FAILED);
        }
        let answer = self.read(query);
        let page = match answer {
            Ok(_) => DONE,
            Err(_) => FAILED,
        };
        let mut waiting = self.answer.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(waiting) = waiting.take() {
            // Nobody waits if the command was stopped.
            let _ = waiting.send(answer);
        }
        whole(StatusCode::OK, "text/html", page)
    }

    fn read(&self, query: &str) -> Result<String, AuthError> {
        let issuer = parameter(query, "iss");
        let is_expected = match &issuer {
            Some(issuer) => *issuer == self.issuer,
            None => !self.names_issuer,
        };
        if !is_expected {
            return Err(AuthError::Mismatch(format!(
                "the answer to the login is from `{}`, not from `{}`",
                shown(issuer.as_deref().unwrap_or("an unknown issuer")),
                shown(&self.issuer)
            )));
        }
        if let Some(error) = parameter(query, "error") {
            let why = parameter(query, "error_description");
            let why = why.map_or(String::new(), |why| format!(" ({})", shown(&why)));
            return Err(AuthError::Refused(format!("{}{why}", shown(&error))));
        }
        parameter(query, "code").ok_or_else(|| unsupported("the answer to the login has no code"))
    }
}

/// Registers a public client with one redirect URL.
async fn register(
    http: &reqwest::Client,
    found: &Discovered,
    redirect: &str,
    server: &Url,
) -> Result<OauthClient, AuthError> {
    let Some(url) = found.registration.clone() else {
        return Err(unsupported(
            "the authorization server does not register clients; pass `--client-id`",
        ));
    };
    protected(REGISTRATION, url.as_str(), server)?;
    let client = json!({
        "client_name": "Proctor",
        "application_type": "native",
        "redirect_uris": [redirect],
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": "none",
    });
    let mut request = Request::new(Method::POST, url.clone());
    let kind = HeaderValue::from_static("application/json");
    request.headers_mut().insert(CONTENT_TYPE, kind);
    *request.body_mut() = Some(client.to_string().into());
    let (status, answer) = exchange(http, request, REGISTRATION).await?;
    if !status.is_success() {
        let reason = oauth_error(&answer).unwrap_or_else(|| format!("HTTP status {status}"));
        return Err(unusable(REGISTRATION, &url, &reason));
    }
    let answer: Value = json::from_slice(&answer).unwrap_or_default();
    let text = |name: &str| answer.get(name)?.as_str().map(str::to_owned);
    let id = text("client_id");
    let id = id.ok_or_else(|| unusable(REGISTRATION, &url, "its response has no client id"))?;
    let is_public = text("token_endpoint_auth_method").is_none_or(|method| method == "none");
    let secret = text("client_secret").filter(|_| !is_public);
    Ok(OauthClient::new(&id, secret, &found.client_methods))
}

/// The URL of the login page.
fn login_page(
    mut page: Url,
    found: &Discovered,
    options: &LoginOptions,
    parameters: &[(&str, &str)],
) -> String {
    let mut scopes = match &options.scopes[..] {
        [] => found.scopes.clone(),
        own => own.to_vec(),
    };
    let offline = "offline_access".to_owned();
    let mut parameters = parameters.to_vec();
    if found.has_offline_access && !scopes.contains(&offline) {
        scopes.push(offline);
        // OpenID Connect gives no refresh token without consent.
        parameters.push(("prompt", "consent"));
    }
    let scope = scopes.join(" ");
    if !scope.is_empty() {
        parameters.push(("scope", &scope));
    }
    let pairs = parameters.iter();
    let pairs = pairs.map(|(name, value)| format!("{name}={}", encoded(value)));
    let query: Vec<String> = page
        .query()
        .map(str::to_owned)
        .into_iter()
        .chain(pairs)
        .collect();
    page.set_query(Some(&query.join("&")));
    page.to_string()
}

/// A parameter of a query, decoded.
fn parameter(query: &str, name: &str) -> Option<String> {
    let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    let (_, value) = pairs.find(|(key, _)| *key == name)?;
    let value = value.replace('+', " ");
    let value = percent_decode_str(&value).decode_utf8().ok()?;
    Some(value.into_owned())
}

/// A random text of 256 bits.
fn random() -> Result<String, AuthError> {
    let mut bytes = [0; 32];
    let provider = rustls::crypto::ring::default_provider();
    let filled = provider.secure_random.fill(&mut bytes);
    filled.map_err(|_| unsupported("the system has no random numbers"))?;
    Ok(BASE64URL_NOPAD.encode(&bytes))
}

fn unsupported(text: &str) -> AuthError {
    AuthError::Unsupported(text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn callback(names_issuer: bool) -> Callback {
        Callback {
            state: "state".to_owned(),
            issuer: "https://as.example".to_owned(),
            names_issuer,
            answer: Mutex::default(),
        }
    }

    #[test]
    fn the_answer_to_a_login_must_be_of_the_issuer() {
        let check = |names_issuer, query: &str, expected: Result<&str, &str>| {
            let found = callback(names_issuer).read(query);
            let found = found.map_err(|error| error.to_string());
            let expected = expected.map(str::to_owned).map_err(str::to_owned);
            assert_eq!(found, expected, "{query}");
        };
        let of_other = "the answer to the login is from `https://evil.example`, not from \
                        `https://as.example`";
        check(false, "code=a%2Bb", Ok("a+b"));
        check(false, "code=a&iss=https%3A%2F%2Fas.example", Ok("a"));
        check(
            false,
            "code=a&iss=https%3A%2F%2Fevil.example",
            Err(of_other),
        );
        check(true, "code=a&iss=https%3A%2F%2Fas.example", Ok("a"));
        check(
            true,
            "code=a",
            Err(
                "the answer to the login is from `an unknown issuer`, not from `https://as.example`",
            ),
        );
        check(
            false,
            "error=access_denied&error_description=the+user%1b+said+no",
            Err(
                "the authorization server refused the request: access_denied (the user\\u{1b} said no)",
            ),
        );
        check(false, "x=1", Err("the answer to the login has no code"));
    }

    #[test]
    fn a_login_page_has_all_parameters_and_asks_for_a_refresh_token() {
        let found = Discovered {
            issuer: String::new(),
            token: Url::parse("https://as.example/t").unwrap(),
            authorization: None,
            registration: None,
            client_methods: Vec::new(),
            has_pkce: true,
            names_issuer: false,
            has_offline_access: true,
            scopes: vec!["mcp".to_owned()],
            resource: String::new(),
        };
        let page = Url::parse("https://as.example/auth?tenant=1").unwrap();
        let page = login_page(page, &found, &LoginOptions::default(), &[("state", "a&b")]);
        assert_eq!(
            page,
            "https://as.example/auth?tenant=1&state=a%26b&prompt=consent&scope=mcp%20offline_access"
        );
    }
}
