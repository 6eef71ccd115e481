//! The file format of `auth` in an MCP config.
//!
//! Its main type is [`AuthFile`].

use proctor_record::problem::WithSpan;

use crate::decode::{KeySpans, LooseText, Table, record};

/// The `auth` key of a server, with the places of its keys.
pub type AuthKey = Option<WithSpan<KeySpans<AuthFile>>>;

record! {
    /// How Proctor gets the token that it sends to a server with a URL.
    pub struct AuthFile one_of ["command", "clientId", "login"] {
        /// The program that prints a token, or JSON with `access_token` and `expires_in`.
        "command" => command: Option<WithSpan<String>>,
        /// The arguments of the program. Proctor expands `${VAR}` and `${VAR:-default}`.
        "args" => args: Vec<WithSpan<LooseText>>,
        /// The environment variables of the program. Proctor expands `${VAR}` and `${VAR:-default}`.
        "env" => env: Table<WithSpan<LooseText>>,
        /// The id of an OAuth client, for a token by client credentials. Proctor expands `${VAR}`.
        "clientId" => client_id: Option<WithSpan<LooseText>>,
        /// The secret of the OAuth client. Proctor expands `${VAR}`.
        "clientSecret" => client_secret: Option<WithSpan<LooseText>>,
        /// The URL of the token endpoint. By default Proctor asks the server for its authorization server.
        "tokenUrl" => token_url: Option<WithSpan<LooseText>>,
        /// The only authorization server that may get the client's secret.
        "issuer" => issuer: Option<WithSpan<LooseText>>,
        /// The scopes of the token. By default those that the server names.
        "scopes" => scopes: Vec<WithSpan<LooseText>>,
        /// The resource that the token is for. By default the one that the server names, or its URL.
        "resource" => resource: Option<WithSpan<LooseText>>,
        /// Whether Proctor uses the login that `proctor login URL` stored.
        "login" => login: Option<WithSpan<bool>>,
    }
}
