//! Resolves `auth` of an MCP config: how Proctor gets the token for a server.
//!
//! Its main type is [`Auth`].

use std::collections::BTreeMap;
use std::path::PathBuf;

use proctor_record::problem::{Code, Problem, Span, WithSpan};
use serde::Serialize;

use super::auth_file::{AuthFile, AuthKey};
use super::server::{TextScope, Transport, working_folder};
use crate::decode::{Context, KeySpans, LooseText};

/// Where the token for a server comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Auth {
    /// A program that prints a token.
    Command {
        command: String,
        args: Vec<String>,
        env: BTreeMap<String, String>,
        /// The folder it runs in: that of the MCP config.
        #[serde(skip)]
        folder: PathBuf,
    },
    ClientCredentials(ClientCredentials),
    /// The login that `proctor login` stored for the URL of the server.
    Login {
        /// Whether a server without a stored login is an error.
        is_required: bool,
    },
}

/// An OAuth client that gets tokens for itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ClientCredentials {
    pub client_id: String,
    pub client_secret: String,
    /// The token endpoint; discovered if absent.
    pub token_url: Option<String>,
    /// The only authorization server that may get the secret.
    pub issuer: Option<String>,
    /// The scopes to ask for; those that the server names if empty.
    pub scopes: Vec<String>,
    /// The resource that the token is for; the one that the server names if absent.
    pub resource: Option<String>,
}

/// The keys that belong to each way of getting a token.
const OF_COMMAND: [&str; 3] = ["command", "args", "env"];
const OF_CLIENT: [&str; 6] = [
    "clientId",
    "clientSecret",
    "tokenUrl",
    "issuer",
    "scopes",
    "resource",
];
const OF_LOGIN: [&str; 1] = ["login"];

/// Resolves the `auth` of a server with a URL. `None` if the server has none, or it is invalid.
pub(super) fn resolve(key: &AuthKey, transport: &Transport, scope: TextScope<'_>) -> Option<Auth> {
    let scope = scope.without_templates();
    let cx = scope.cx;
    let auth = key.as_ref()?;
    let file = &auth.value.value;
    if let Transport::Http { url, .. } | Transport::Sse { url, .. } = transport
        && url.starts_with("http://")
        && !is_protected(url)
    {
        let problem = Problem::warning(Code::Value, "the token is sent unencrypted");
        cx.report(auth.span, problem.hint("use an `https://` URL"));
    }
    if let Some(command) = &file.command {
        report_unused(&auth.value, &OF_COMMAND, cx);
        return Some(Auth::Command {
            command: command.value.clone(),
            args: (file.args.iter())
                .map(|arg| scope.expand(&arg.value.0, arg.span))
                .collect(),
            env: scope.expand_table(&file.env),
            folder: working_folder(cx.source.folder()),
        });
    }
    if let Some(login) = &file.login {
        report_unused(&auth.value, &OF_LOGIN, cx);
        if !login.value {
            let problem = Problem::error(Code::Value, "`login` can only be `true`");
            let hint = "remove `auth` if the server needs no token";
            cx.report(login.span, problem.hint(hint));
        }
        return Some(Auth::Login { is_required: true });
    }
    report_unused(&auth.value, &OF_CLIENT, cx);
    client_credentials(file, auth.span, &scope).map(Auth::ClientCredentials)
}

fn client_credentials(
    file: &AuthFile,
    span: Span,
    scope: &TextScope<'_>,
) -> Option<ClientCredentials> {
    let cx = scope.cx;
    let text = |value: &WithSpan<LooseText>| Some(scope.expand(&value.value.0, value.span));
    let url = |value: &WithSpan<LooseText>| {
        let url = text(value)?;
        if !url.is_empty() && !is_protected(&url) {
            let message = format!("unprotected URL `{}`", value.value.0);
            let problem = Problem::error(Code::Value, message);
            let hint = "write an `https://` URL; `http://` is only allowed on this machine";
            cx.report(value.span, problem.hint(hint));
        }
        Some(url)
    };
    let Some(secret) = &file.client_secret else {
        cx.report(
            span,
            Problem::error(Code::Missing, "`clientSecret` is missing"),
        );
        return None;
    };
    if !secret.value.0.contains("${") {
        let problem = Problem::warning(Code::Value, "the client's secret is written in the file");
        cx.report(
            secret.span,
            problem.hint("use a variable: `clientSecret: ${CLIENT_SECRET}`"),
        );
    }
    if let (Some(_), Some(issuer)) = (&file.token_url, &file.issuer) {
        let problem = Problem::error(Code::Conflict, "`issuer` has no effect with `tokenUrl`");
        cx.report(issuer.span, problem.hint("remove one of them"));
    }
    Some(ClientCredentials {
        client_id: file.client_id.as_ref().and_then(text)?,
        client_secret: text(secret)?,
        token_url: file.token_url.as_ref().and_then(url),
        issuer: file.issuer.as_ref().and_then(url),
        scopes: file.scopes.iter().filter_map(text).collect(),
        resource: file.resource.as_ref().and_then(text),
    })
}

/// Reports the keys that have no effect with the chosen way: ignoring a scope or an issuer would get
/// another token than the one that was meant.
fn report_unused(auth: &KeySpans<AuthFile>, used: &[&str], cx: &Context<'_>) {
    let all = OF_COMMAND.iter().chain(&OF_CLIENT).chain(&OF_LOGIN);
    for key in all.filter(|key| !used.contains(key)) {
        // A second way is reported when the file is decoded.
        if ["command", "clientId", "login"].contains(key) {
            continue;
        }
        if let Some((_, span)) = auth.spans.iter().find(|(name, _)| name == key) {
            let message = format!("`{key}` has no effect with `{}`", used[0]);
            cx.report(*span, Problem::error(Code::Conflict, message));
        }
    }
}

/// Reports an `auth` that contradicts another key of the server.
pub(super) fn refuse_conflicts(
    key: &AuthKey,
    has_url: bool,
    headers: &[(WithSpan<String>, WithSpan<LooseText>)],
    cx: &Context<'_>,
) {
    let Some(auth) = key else { return };
    if !has_url {
        let message = "`auth` has no effect for a server with a `command`";
        let problem = Problem::error(Code::Conflict, message);
        cx.report(auth.span, problem.hint("pass the token in `env`"));
    }
    let header = |(name, _): &&(WithSpan<String>, WithSpan<LooseText>)| {
        name.value.eq_ignore_ascii_case("authorization")
    };
    if let Some((name, _)) = headers.iter().find(header) {
        let message = format!("`{}` conflicts with `auth`", name.value);
        let problem = Problem::error(Code::Conflict, message);
        cx.report(name.span, problem.hint("remove one of them"));
    }
}

/// Whether others can't read what is sent to this URL.
fn is_protected(url: &str) -> bool {
    let Some(rest) = url.strip_prefix("http://") else {
        return url.starts_with("https://");
    };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = match authority.strip_prefix('[') {
        Some(six) => six.split(']').next().unwrap_or_default(),
        None => authority.split(':').next().unwrap_or_default(),
    };
    let address: Option<std::net::IpAddr> = host.parse().ok();
    host == "localhost" || address.is_some_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests;
