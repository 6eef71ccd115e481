//! Tokens that Proctor sends to HTTP servers.
//!
//! The main types are [`Credentials`], which all connections of a process share, and `TokenSource`,
//! which holds the current token of one server. Every secret that arrives here is known to the
//! redactors before anything can send it. Agents never get a token: the proxies add it.

mod challenge;
mod command;
mod discovery;
mod endpoint;
pub mod login;
mod source;
pub mod store;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use proctor_core::suite::Server;
use proctor_core::suite::auth::Auth;
use proctor_core::suite::server::Transport;
use proctor_record::redact::SharedSecrets;
use reqwest::Url;

pub(crate) use self::challenge::Challenge;
pub(crate) use self::source::{Token, TokenSource};
use self::store::LoginStore;
use crate::http_client::{AddressError, parse_url};

/// The tokens of a process, one source per server. Cheap to clone; all clones share them, so several
/// trials renew a token once.
#[derive(Clone, Default)]
pub struct Credentials {
    inner: Arc<CredentialsState>,
}

#[derive(Default)]
struct CredentialsState {
    sources: Mutex<Vec<Arc<TokenSource>>>,
    secrets: SharedSecrets,
    logins: Option<LoginStore>,
}

/// What a program gets that prints a token: the same as a server.
#[derive(Clone, Copy)]
pub(crate) struct ProgramOptions<'a> {
    pub(crate) inherited: &'a BTreeMap<String, String>,
    pub(crate) pass: &'a [String],
    /// The path of the `proctor` binary, which runs the guard.
    pub(crate) guard: &'a Path,
}

/// Why there is no token.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AuthError {
    #[error("no login for {0} is stored; run `proctor login {0}`")]
    NoLogin(String),
    #[error("the login for {url} has expired: {why}; run `proctor login {url}`")]
    Expired { url: String, why: String },
    /// The stored logins can't be read or written.
    #[error("{0}")]
    Store(String),
    #[error("the command `{command}` {problem}")]
    Command { command: String, problem: String },
    /// A plain HTTP URL that would show secrets to others.
    #[error("the {what} `{url}` is not protected: expected `https://`")]
    Unprotected { what: &'static str, url: String },
    #[error("the {what} {url} can't be used: {reason}")]
    Unusable {
        what: &'static str,
        url: String,
        reason: String,
    },
    /// The authorization server answered with an OAuth error.
    #[error("the authorization server refused the request: {0}")]
    Refused(String),
    /// The server and its authorization server disagree.
    #[error("{0}")]
    Mismatch(String),
    /// Something that the flow needs is not supported.
    #[error("{0}")]
    Unsupported(String),
    /// The server does not accept the token, not even a new one.
    #[error("the server refuses the token: {0}")]
    TokenRefused(String),
}

impl AuthError {
    /// Whether the authorization server would answer the same request in the same way.
    pub(crate) fn is_final(&self) -> bool {
        let (Self::Refused(why) | Self::Expired { why, .. }) = self else {
            return false;
        };
        !["temporarily_unavailable", "server_error", "slow_down"]
            .iter()
            .any(|passing| why.starts_with(passing))
    }
}

impl std::fmt::Debug for Credentials {
    /// Shows no secret.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Credentials")
    }
}

impl Credentials {
    /// Creates the credentials of a process that may use the stored logins of this user.
    pub fn new(environment: &BTreeMap<String, String>) -> Self {
        let inner = CredentialsState {
            logins: LoginStore::of_user(environment),
            ..CredentialsState::default()
        };
        Self {
            inner: Arc::new(inner),
        }
    }

    /// The secrets so far and in future, for redactors.
    pub fn secrets(&self) -> &SharedSecrets {
        &self.inner.secrets
    }

    /// The stored logins; `None` if the user has no home folder.
    pub fn logins(&self) -> Option<&LoginStore> {
        self.inner.logins.as_ref()
    }

    /// The source of the tokens for a server; `None` if it gets none.
    pub(crate) fn source(
        &self,
        server: &Server,
        options: ProgramOptions<'_>,
    ) -> Result<Option<Arc<TokenSource>>, AddressError> {
        let Some(auth) = &server.auth else {
            return Ok(None);
        };
        let (Transport::Http { url, .. } | Transport::Sse { url, .. }) = &server.transport else {
            return Ok(None);
        };
        let url = parse_url(url)?;
        if *auth == (Auth::Login { is_required: false }) && !self.has_login(&url) {
            return Ok(None);
        }
        let mut sources = (self.inner.sources.lock()).unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = sources.iter().find(|known| known.is_for(&url, auth)) {
            return Ok(Some(known.clone()));
        }
        let state = &self.inner;
        let source = TokenSource::new(url, auth, options, &state.secrets, state.logins.clone());
        let source = Arc::new(source);
        sources.push(source.clone());
        Ok(Some(source))
    }

    /// Whether a login is stored for a URL. A file that can't be read is reported when the login is
    /// used.
    fn has_login(&self, url: &Url) -> bool {
        let logins = self.inner.logins.as_ref();
        logins.is_some_and(|logins| !matches!(logins.find(url), Ok(None)))
    }
}
