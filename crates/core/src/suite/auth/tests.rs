use proctor_record::problem::Problems;

use super::*;
use crate::suite::{Environment, Inputs, LoadedFile, load_any};

/// The `auth` of a server with these lines, and the problems of the file.
fn loaded(lines: &str) -> (Option<Auth>, Vec<String>) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mcp.yaml");
    let text = format!("mcpServers:\n  api:\n{lines}");
    std::fs::write(&path, text).unwrap();
    let env = Environment::from([("SECRET".to_owned(), "s3cret-value".to_owned())]);
    let inputs = Inputs {
        env: &env,
        source_roots: &BTreeMap::new(),
        runs: None,
        mcp_config: None,
        judge_given: false,
    };
    let mut problems = Problems::default();
    let loaded = load_any(&path, &inputs, &mut problems);
    let found = problems.iter().map(|problem| problem.message.clone());
    let found = found.collect();
    match loaded {
        Some(LoadedFile::Servers(servers)) => {
            (servers.into_iter().next().and_then(|s| s.auth), found)
        }
        _ => (None, found),
    }
}

fn at_url(auth: &str) -> (Option<Auth>, Vec<String>) {
    loaded(&format!(
        "    url: https://api.example/mcp\n    auth: {auth}\n"
    ))
}

#[test]
fn each_way_to_get_a_token_is_resolved() {
    let (auth, problems) = at_url("{command: get-token, args: [--for, '${SECRET}']}");
    assert_eq!(problems, [""; 0]);
    let Some(Auth::Command { command, args, .. }) = auth else {
        panic!("{auth:?}");
    };
    assert_eq!(
        (command.as_str(), args[1].as_str()),
        ("get-token", "s3cret-value")
    );

    let (auth, problems) = at_url("{clientId: me, clientSecret: '${SECRET}', scopes: [a, b]}");
    assert_eq!(problems, [""; 0]);
    let Some(Auth::ClientCredentials(client)) = auth else {
        panic!("{auth:?}");
    };
    assert_eq!(client.client_secret, "s3cret-value");
    assert_eq!(client.scopes, ["a", "b"]);

    let (auth, problems) = at_url("{login: true}");
    assert_eq!(problems, [""; 0]);
    assert_eq!(auth, Some(Auth::Login { is_required: true }));
}

#[test]
fn keys_that_contradict_each_other_are_reported() {
    let check = |auth: &str, expected: &str| {
        let (_, problems) = at_url(auth);
        assert_eq!(problems, [expected], "{auth}");
    };
    check(
        "{command: a, login: true}",
        "only one of `command`, `login` is allowed",
    );
    check(
        "{command: a, scopes: [b]}",
        "`scopes` has no effect with `command`",
    );
    check(
        "{login: true, issuer: 'https://a'}",
        "`issuer` has no effect with `login`",
    );
    check("{login: false}", "`login` can only be `true`");
    check("{clientId: a}", "`clientSecret` is missing");
    check(
        "{clientId: a, clientSecret: abcdefgh}",
        "the client's secret is written in the file",
    );
    check(
        "{clientId: a, clientSecret: '${SECRET}', tokenUrl: 'https://a/t', issuer: 'https://a'}",
        "`issuer` has no effect with `tokenUrl`",
    );
    check(
        "{clientId: a, clientSecret: '${SECRET}', tokenUrl: 'http://a/t'}",
        "unprotected URL `http://a/t`",
    );
}

#[test]
fn a_token_needs_a_url_and_no_other_authorization() {
    let (_, problems) = loaded("    command: server\n    auth: {login: true}\n");
    let expected = "`auth` has no effect for a server with a `command`";
    assert_eq!(problems, [expected]);
    let (_, problems) =
        loaded("    url: https://a\n    headers: {authorization: b}\n    auth: {login: true}\n");
    assert_eq!(problems, ["`authorization` conflicts with `auth`"]);
    let (_, problems) = loaded("    url: http://a/mcp\n    auth: {login: true}\n");
    assert_eq!(problems, ["the token is sent unencrypted"]);
}

#[test]
fn plain_http_is_only_protected_on_this_machine() {
    for url in [
        "https://a",
        "http://localhost:80/",
        "http://127.0.0.1/t",
        "http://127.8.9.1",
        "http://[::1]:9/t",
    ] {
        assert!(is_protected(url), "{url}");
    }
    for url in [
        "http://a",
        "http://127.0.0.1.evil.example/",
        "http://localhost.evil.example",
        "http://localhost@evil.example",
        "http://user:127.0.0.1@evil.example",
        "ftp://localhost",
        "http://",
    ] {
        assert!(!is_protected(url), "{url}");
    }
}
