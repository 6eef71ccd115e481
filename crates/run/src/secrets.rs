//! Finds the secrets in the configuration of servers and steps.
//!
//! Their values are redacted everywhere, also where a server repeats them.

use std::collections::BTreeMap;

use data_encoding::BASE64;
use percent_encoding::percent_decode_str;
use std::sync::Arc;

use proctor_core::suite::auth::Auth;
use proctor_core::suite::server::Transport;
use proctor_core::suite::step::Action;
use proctor_core::suite::step::values::TemplateValues;
use proctor_core::suite::template::Template;
use proctor_core::suite::{Environment, Server, Suite};
use proctor_record::redact::{is_secret_name, secrets_of};

/// The secrets of a server, as names and values.
pub(crate) fn of_server(server: &Server) -> Vec<(String, String)> {
    let mut secrets = of_transport(&server.transport);
    match &server.auth {
        Some(Auth::Command { args, env, .. }) => {
            secrets.extend(secrets_of(env));
            secrets.extend(of_words(args));
        }
        Some(Auth::ClientCredentials(client)) => {
            secrets.push(("clientSecret".to_owned(), client.client_secret.clone()));
        }
        // Stored logins are known when they are used.
        Some(Auth::Login { .. }) | None => {}
    }
    secrets
}

fn of_transport(transport: &Transport) -> Vec<(String, String)> {
    match transport {
        Transport::Stdio { args, env, .. } => {
            let mut secrets = secrets_of(env);
            secrets.extend(of_words(args));
            secrets
        }
        Transport::Http { url, headers } | Transport::Sse { url, headers } => {
            let mut secrets = of_address(url);
            secrets.extend(
                headers
                    .iter()
                    .flat_map(|(name, value)| of_header(name, value)),
            );
            secrets
        }
    }
}

/// The secrets of a suite's steps and extensions: in their environment, and in the headers and URLs
/// of their requests. Values that only a trial knows are missing.
pub(crate) fn of_steps(suite: &Suite, env: &Environment) -> Vec<(String, String)> {
    let mut values = TemplateValues::default();
    values.env = Arc::new(env.clone());
    let filled = |template: &Template| values.fill(template).ok();
    let mut secrets: Vec<(String, String)> = Vec::new();
    let cases = suite.cases.iter();
    let of_cases =
        cases.flat_map(|case| case.setup.iter().chain(&case.verify).chain(&case.cleanup));
    for step in of_cases.chain(&suite.setup).chain(&suite.cleanup) {
        match &step.action {
            Action::Script(script) => {
                let given = script.env.iter();
                let given = given.filter_map(|(name, value)| Some((name.clone(), filled(value)?)));
                secrets.extend(secrets_of(&given.collect()));
            }
            Action::Http(http) => {
                let headers = http.headers.iter();
                let headers = headers.filter_map(|(name, value)| Some((name, filled(value)?)));
                let headers = headers.map(|(name, value)| (name.clone(), value));
                let url = filled(&http.url).unwrap_or_default();
                secrets.extend(of_request(&url, &headers.collect()));
            }
            Action::Judge(_) | Action::CallTool(_) | Action::Extension { .. } => {}
        }
    }
    let extensions = suite.extensions.iter();
    secrets.extend(extensions.flat_map(|extension| secrets_of(&extension.env)));
    secrets
}

/// The secrets in the URL and the headers of a request.
pub(crate) fn of_request(url: &str, headers: &BTreeMap<String, String>) -> Vec<(String, String)> {
    let of_headers = headers
        .iter()
        .flat_map(|(name, value)| of_header(name, value));
    of_address(url).into_iter().chain(of_headers).collect()
}

/// Outputs of a step that are secret by their name, such as a response header or the output
/// `token`.
pub(crate) fn of_outputs(outputs: &BTreeMap<String, String>) -> Vec<(String, String)> {
    let each = outputs
        .iter()
        .flat_map(|(name, value)| match name.strip_prefix("header-") {
            // The attributes after the cookie are not secret.
            Some("set-cookie") => {
                let cookie = value.split(';').next().unwrap_or_default();
                of_header("set-cookie", cookie.trim())
            }
            Some(header) => of_header(header, value),
            None if is_secret_name(name) => vec![(name.clone(), value.clone())],
            None => Vec::new(),
        });
    each.collect()
}

/// The values of options such as `--api-key` or `--token=`.
fn of_words(words: &[String]) -> Vec<(String, String)> {
    let is_option = |word: &str| word.starts_with('-') && is_secret_name(word);
    let named =
        |name: &str, value: &str| (name.trim_start_matches('-').to_owned(), value.to_owned());
    let joined = words
        .iter()
        .filter_map(|word| word.split_once('='))
        .filter(|(name, _)| is_option(name))
        .map(|(name, value)| named(name, value));
    let apart = words
        .windows(2)
        .filter(|pair| is_option(&pair[0]) && !pair[0].contains('=') && !pair[1].starts_with('-'))
        .map(|pair| named(&pair[0], &pair[1]));
    joined.chain(apart).collect()
}

/// The password and the secret parameters of a URL as written; the password also decoded, and as
/// part of a `Basic` header.
fn of_address(url: &str) -> Vec<(String, String)> {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let rest = rest.split_once('#').map_or(rest, |(rest, _)| rest);
    let (place, query) = rest.split_once('?').unwrap_or((rest, ""));
    let host = place.split_once('/').map_or(place, |(host, _)| host);
    let pair = host
        .rsplit_once('@')
        .and_then(|(pair, _)| pair.split_once(':'));
    let passwords = pair.into_iter().flat_map(|(user, password)| {
        let meant = percent_decode_str(password).decode_utf8_lossy();
        let user: Vec<u8> = percent_decode_str(user).collect();
        let header = BASE64.encode(&[&user[..], b":", meant.as_bytes()].concat());
        let mut all = vec![password.to_owned(), header];
        all.extend((meant != password).then(|| meant.into_owned()));
        all.into_iter().map(|value| ("password".to_owned(), value))
    });
    let parameters = query
        .split('&')
        .filter_map(|parameter| parameter.split_once('='))
        .filter(|(name, _)| is_secret_name(name))
        .map(|(name, value)| (name.to_owned(), value.to_owned()));
    passwords.chain(parameters).collect()
}

/// The value of a secret header, and its parts: a server may repeat a token without `Bearer`, or a
/// cookie without its name.
fn of_header(name: &str, value: &str) -> Vec<(String, String)> {
    if !is_secret_name(name) {
        return Vec::new();
    }
    let mut parts: Vec<&str> = value
        .split([' ', ';', ','])
        .filter(|part| !part.is_empty())
        .collect();
    // `Bearer` is not secret; the token after it is.
    if parts.len() > 1 && !parts[0].contains('=') {
        parts.remove(0);
    }
    let values = parts
        .iter()
        .flat_map(|part| [Some(*part), part.split_once('=').map(|(_, value)| value)]);
    let values = values
        .flatten()
        .map(|value| value.trim_matches('"').to_owned());
    values
        .chain(basic_password(value))
        .map(|value| (name.to_owned(), value))
        .collect()
}

/// The password in `Basic` credentials.
fn basic_password(value: &str) -> Option<String> {
    let (scheme, pair) = value.split_once(' ')?;
    let pair = BASE64.decode(pair.trim().as_bytes()).ok()?;
    let (_, password) = str::from_utf8(&pair).ok()?.split_once(':')?;
    scheme
        .eq_ignore_ascii_case("basic")
        .then(|| password.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(secrets: &[(String, String)]) -> Vec<&str> {
        secrets.iter().map(|(_, value)| value.as_str()).collect()
    }

    #[test]
    fn the_value_of_a_secret_option_is_secret() {
        let check = |words: &str, expected: &[&str]| {
            let words: Vec<String> = words.split(' ').map(str::to_owned).collect();
            assert_eq!(values(&of_words(&words)), expected, "{words:?}");
        };
        check("server --api-key abc -v", &["abc"]);
        check("--token=abc --name=x", &["abc"]);
        check("--auth --verbose key value", &[]);
    }

    #[test]
    fn passwords_and_secret_parameters_of_a_url_are_secret() {
        let check = |url: &str, expected: &[&str]| {
            assert_eq!(values(&of_address(url)), expected, "{url}");
        };
        check("http://h:80/mcp", &[]);
        check(
            "https://u:p@h/mcp?page=2&api_key=k&token=t#f",
            &["p", "dTpw", "k", "t"],
        );
        check("http://a%20b:p%40w@h", &["p%40w", "YSBiOnBAdw==", "p@w"]);
        check("http://token@h", &[]);
        check("https://h/a:b@c?x=1", &[]);
    }

    #[test]
    fn outputs_are_secret_by_their_names() {
        let check = |name: &str, value: &str, expected: &[&str]| {
            let outputs = BTreeMap::from([(name.to_owned(), value.to_owned())]);
            assert_eq!(values(&of_outputs(&outputs)), expected, "{name}: {value}");
        };
        check("token", "abc def", &["abc def"]);
        check("stdout", "abc", &[]);
        check("header-x-api-key", "abc", &["abc"]);
        check(
            "header-set-cookie",
            "sid=abc; HttpOnly",
            &["sid=abc", "abc"],
        );
        check("header-content-type", "text/html", &[]);
    }

    #[test]
    fn the_parts_of_a_secret_header_are_secret() {
        let check = |name: &str, value: &str, expected: &[&str]| {
            assert_eq!(values(&of_header(name, value)), expected, "{name}: {value}");
        };
        check("Authorization", "Bearer abc", &["abc"]);
        check("Authorization", "basic dTpw", &["dTpw", "p"]);
        check("X-Api-Key", "abc", &["abc"]);
        check("Cookie", "sid=abc; b=c", &["sid=abc", "abc", "b=c", "c"]);
        check("Accept", "text/plain", &[]);
    }
}
