//! Secrets that are recognized by their shape or by their name.

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::{Redactor, is_secret_name};

#[test]
fn keys_are_recognized_within_escapes() {
    let check = |text: &str, expected: &str| assert_eq!(Redactor::default().text(text), expected);
    check(
        r#"{"a":"Bearer 0123456789abcdefgh\u002Bijklm\u003d"}"#,
        r#"{"a":"Bearer [redacted:authorization]"}"#,
    );
    check(
        r#"{"a":"{\"x-api-key\":\"abc123\u002Bdef\"}"}"#,
        r#"{"a":"{\"x-api-key\":\"[redacted:authorization]\"}"}"#,
    );
    check(r"\u0073k-proj-abcDEF0123456789abcd!", "[redacted:token]!");
}

#[test]
fn text_that_looks_like_a_key_is_replaced() {
    let check = |text: &str, expected: &str| assert_eq!(Redactor::default().text(text), expected);
    check("key sk-proj-abcDEF0123456789abcd!", "key [redacted:token]!");
    check(
        r#""a:\nsk-live-abcdefghijklmnop0123456789""#,
        r#""a:\n[redacted:token]""#,
    );
    check(
        "ghp_0123456789abcdefghijABCDEFGHIJ012345",
        "[redacted:token]",
    );
    check(
        "x=github_pat_11ABCDEFG0123456789_abcdefghij;",
        "x=[redacted:token];",
    );
    check("xoxb-123456789012-abcdef", "[redacted:token]");
    check("id AKIAIOSFODNN7EXAMPLE.", "id [redacted:token].");
    check(
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl x",
        "[redacted:jwt] x",
    );
    check(
        "Authorization: Bearer abcdef",
        "Authorization: Bearer [redacted:authorization]",
    );
    check("Authorization: Basic dTpw", "Authorization: Basic dTpw");
    check(
        "authorization=Basic dXNlcjpw",
        "authorization=Basic [redacted:authorization]",
    );
    check(
        "send Basic dXNlcjpwYXNz now",
        "send Basic [redacted:authorization] now",
    );
    check(
        r#"{"Authorization":"Bearer xyzxyz"}"#,
        r#"{"Authorization":"Bearer [redacted:authorization]"}"#,
    );
    check(
        r#"{\"x-api-key\": \"abc12345\"}"#,
        r#"{\"x-api-key\": \"[redacted:authorization]\"}"#,
    );
    check(
        "curl -H 'Bearer 0123456789abcdef'",
        "curl -H 'Bearer [redacted:authorization]'",
    );
}

#[test]
fn text_that_only_resembles_a_key_stays() {
    for text in [
        "a Basic understanding of tokens",
        "sk-loading-indicator-wrapper-element",
        "task-0123456789012345678901234567",
        "the bearer of this letter-of-introduction",
        "authorization: required",
        "Authorization: Bearer",
        "AKIA is a prefix, eyJ too",
        "{\"key\": \"value\", \"n\": 1.50}",
        "",
    ] {
        assert!(
            matches!(Redactor::default().text(text), Cow::Borrowed(_)),
            "{text}"
        );
    }
}

#[test]
fn secrets_are_recognized_by_name() {
    for name in [
        "OPENAI_API_KEY",
        "PGPASSWORD",
        "x-api-key",
        "Authorization",
        "Proxy-Authorization",
        "Cookie",
        "Set-Cookie",
        "githubToken",
        "AWS_SECRET_ACCESS_KEY",
        "DOCKER_AUTH_CONFIG",
        "PRIVATE_PEM",
        "GOOGLE_CREDENTIALS",
        "X-Auth-Token",
        "mysql_passwd",
    ] {
        assert!(is_secret_name(name), "{name}");
    }
    for name in [
        "PATH",
        "MONKEY",
        "AUTHOR",
        "MAX_TOKENS",
        "KEYBOARD",
        "Content-Type",
        "Mcp-Session-Id",
        "PWD",
        "x-ratelimit-remaining-tokens",
        "XAUTHORITY",
        "",
    ] {
        assert!(!is_secret_name(name), "{name}");
    }
}

#[test]
fn an_environment_gives_its_secrets() {
    let variables = BTreeMap::from(
        [
            ("API_KEY", "abcdefgh-1"),
            ("SHORT_KEY", "abc"),
            ("COMMON_PASSWORD", "changeme"),
            ("SAME_TOKEN", "xxxxxxxxxx"),
            ("TOKEN_FILE", "/run/secrets/token"),
            ("SSH_AUTH_SOCK", "/tmp/ssh/agent.1"),
            ("HOME", "/home/somebody"),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned())),
    );
    let redactor = Redactor::from_environment(&variables);
    let text =
        "abcdefgh-1 abc changeme xxxxxxxxxx /run/secrets/token /tmp/ssh/agent.1 /home/somebody";
    let expected = text.replace("abcdefgh-1", "[redacted:API_KEY]");
    assert_eq!(redactor.text(text), expected);
}
