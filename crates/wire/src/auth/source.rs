//! The current token of one server.
//!
//! Its main type is [`TokenSource`]. One request at a time gets a token; the others wait for it. A
//! request goes on if its caller is dropped: with rotating refresh tokens, a lost response would
//! lose the login.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use proctor_core::suite::auth::{Auth, ClientCredentials};
use proctor_record::redact::{Redactor, SharedSecrets};
use reqwest::Url;
use reqwest::header::HeaderValue;
use tokio::sync::{Mutex, OwnedMutexGuard};

use super::command::TokenCommand;
use super::discovery::{self, Discovered};
use super::endpoint::{Grant, OauthClient, TokenEndpoint, protected};
use super::store::LoginStore;
use super::{AuthError, ProgramOptions};
use crate::http_client::client;
use crate::network::shown_address;

/// A token is renewed this long before its end, or in the last tenth of its life.
const EARLY: Duration = Duration::from_secs(30);

/// A token with its state. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Token(Arc<TokenState>);

struct TokenState {
    header: HeaderValue,
    value: String,
    expires: Option<Instant>,
    /// Whether it replaces a token that the server refused.
    is_renewed: bool,
    is_accepted: AtomicBool,
}

impl Token {
    /// The value of the `Authorization` header.
    pub(crate) fn header(&self) -> HeaderValue {
        self.0.header.clone()
    }

    /// Notes that the server accepted the token, so that a later refusal means that it has expired.
    pub(crate) fn accepted(&self) {
        self.0.is_accepted.store(true, Ordering::Relaxed);
    }

    fn is_fresh(&self) -> bool {
        self.0.expires.is_none_or(|end| Instant::now() < end)
    }

    fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Whether another token would be refused too.
    fn is_hopeless(&self) -> bool {
        self.0.is_renewed && !self.0.is_accepted.load(Ordering::Relaxed)
    }
}

/// Gets and renews the tokens of one server.
pub(crate) struct TokenSource {
    url: Url,
    auth: Auth,
    way: Arc<TokenWay>,
    secrets: SharedSecrets,
    current: Arc<Mutex<CurrentToken>>,
}

#[derive(Default)]
struct CurrentToken {
    token: Option<Token>,
    /// The token endpoint, once it is known.
    endpoint: Option<Arc<ClientEndpoint>>,
    /// Why there will be no other token. Asking again would only be refused again.
    refusal: Option<AuthError>,
}

/// The token endpoint of a client, and what it is asked for.
struct ClientEndpoint {
    endpoint: TokenEndpoint,
    scope: String,
    resource: String,
}

/// How a token is got.
enum TokenWay {
    Command(TokenCommand),
    Client(ClientCredentials),
    Login(Option<LoginStore>),
}

impl TokenSource {
    pub(super) fn new(
        url: Url,
        auth: &Auth,
        options: ProgramOptions<'_>,
        secrets: &SharedSecrets,
        logins: Option<LoginStore>,
    ) -> Self {
        let way = match auth {
            Auth::Command {
                command,
                args,
                env,
                folder,
            } => TokenWay::Command(TokenCommand::new(command, args, env, folder, options)),
            Auth::ClientCredentials(client) => TokenWay::Client(client.clone()),
            Auth::Login { .. } => TokenWay::Login(logins),
        };
        Self {
            url,
            auth: auth.clone(),
            way: Arc::new(way),
            secrets: secrets.clone(),
            current: Arc::default(),
        }
    }

    pub(super) fn is_for(&self, url: &Url, auth: &Auth) -> bool {
        self.url == *url && self.auth == *auth
    }

    /// The current token, or a new one if it is about to expire.
    pub(crate) async fn token(&self) -> Result<Token, AuthError> {
        let current = self.current.clone().lock_owned().await;
        match &current.token {
            Some(token) if token.is_fresh() => Ok(token.clone()),
            _ => self.obtain(current, None).await,
        }
    }

    /// A token in place of one that the server refused with this reason.
    pub(crate) async fn renewed(&self, refused: &Token, why: &str) -> Result<Token, AuthError> {
        let current = self.current.clone().lock_owned().await;
        match &current.token {
            // Another request has renewed it meanwhile.
            Some(token) if !token.is_same(refused) && token.is_fresh() => Ok(token.clone()),
            _ if refused.is_hopeless() => Err(AuthError::TokenRefused(why.to_owned())),
            _ => self.obtain(current, Some(refused.clone())).await,
        }
    }

    async fn obtain(
        &self,
        mut current: OwnedMutexGuard<CurrentToken>,
        refused: Option<Token>,
    ) -> Result<Token, AuthError> {
        if let Some(refusal) = &current.refusal {
            return Err(refusal.clone());
        }
        let (way, url, secrets) = (self.way.clone(), self.url.clone(), self.secrets.clone());
        let obtaining = tokio::spawn(async move {
            let is_renewed = refused.is_some();
            let obtained = match ask(&way, &url, refused.as_ref(), &mut current, &secrets).await {
                Ok(grant) => accept(grant, is_renewed, &secrets),
                Err(error) => Err(error),
            };
            match &obtained {
                Ok(token) => current.token = Some(token.clone()),
                Err(error) if error.is_final() => current.refusal = Some(error.clone()),
                // Another attempt may succeed.
                Err(_) => {}
            }
            obtained
        });
        match obtaining.await {
            Ok(obtained) => obtained,
            Err(error) => Err(AuthError::Unsupported(format!("interrupted: {error}"))),
        }
    }
}

/// Gets a token, in place of one that the server refused.
async fn ask(
    way: &TokenWay,
    url: &Url,
    refused: Option<&Token>,
    current: &mut CurrentToken,
    secrets: &SharedSecrets,
) -> Result<Grant, AuthError> {
    match way {
        TokenWay::Command(command) => command.run(secrets).await,
        TokenWay::Client(client) => {
            secrets.learn([("client-secret".to_owned(), client.client_secret.clone())]);
            let endpoint = match &current.endpoint {
                Some(endpoint) => endpoint.clone(),
                None => Arc::new(client_endpoint(client, url).await?),
            };
            current.endpoint = Some(endpoint.clone());
            endpoint.ask().await
        }
        TokenWay::Login(logins) => {
            let refused = refused.map(|token| token.0.value.clone());
            let logins = logins.as_ref().ok_or_else(|| no_login(url))?;
            logins.grant(url, refused.as_deref(), secrets).await
        }
    }
}

/// Makes the secrets of a grant known, and checks that its token can be sent and redacted.
fn accept(grant: Grant, is_renewed: bool, secrets: &SharedSecrets) -> Result<Token, AuthError> {
    secrets.learn(grant.secrets());
    let value = grant.access_token;
    let header = HeaderValue::from_str(&format!("Bearer {value}"));
    let is_sendable = value.bytes().all(|byte| byte.is_ascii_graphic());
    let (Ok(mut header), true, true) = (header, is_sendable, Redactor::can_hide(&value)) else {
        let reason = "the token is invalid: expected 8 to 16384 visible ASCII characters";
        return Err(AuthError::Unsupported(reason.to_owned()));
    };
    header.set_sensitive(true);
    let expires = grant.lifetime.and_then(|lifetime| {
        let early = EARLY.min(lifetime / 10);
        Instant::now().checked_add(lifetime.saturating_sub(early))
    });
    Ok(Token(Arc::new(TokenState {
        header,
        value,
        expires,
        is_renewed,
        is_accepted: AtomicBool::new(false),
    })))
}

pub(super) fn no_login(url: &Url) -> AuthError {
    AuthError::NoLogin(shown_address(url))
}

/// The token endpoint of a client, given or discovered.
async fn client_endpoint(
    credentials: &ClientCredentials,
    url: &Url,
) -> Result<ClientEndpoint, AuthError> {
    let oauth_client = |methods: &[String]| {
        let secret = Some(credentials.client_secret.clone());
        OauthClient::new(&credentials.client_id, secret, methods)
    };
    let own_resource = credentials.resource.clone();
    if let Some(given) = &credentials.token_url {
        let endpoint = protected("token endpoint", given, url)?;
        return Ok(ClientEndpoint {
            endpoint: TokenEndpoint::new(endpoint, oauth_client(&[])),
            scope: credentials.scopes.join(" "),
            resource: own_resource.unwrap_or_else(|| discovery::resource_of(url)),
        });
    }
    let http = client().map_err(|error| AuthError::Unsupported(error.to_string()))?;
    let found: Discovered = discovery::discover(&http, url, credentials.issuer.as_deref()).await?;
    let scope = match &credentials.scopes[..] {
        [] => found.scopes.join(" "),
        own => own.join(" "),
    };
    Ok(ClientEndpoint {
        endpoint: TokenEndpoint::new(found.token, oauth_client(&found.client_methods)),
        scope,
        resource: own_resource.unwrap_or(found.resource),
    })
}

impl ClientEndpoint {
    async fn ask(&self) -> Result<Grant, AuthError> {
        let mut form = vec![("grant_type", "client_credentials")];
        if !self.scope.is_empty() {
            form.push(("scope", &self.scope));
        }
        form.push(("resource", &self.resource));
        self.endpoint.ask(&form).await
    }
}

#[cfg(test)]
mod tests;
