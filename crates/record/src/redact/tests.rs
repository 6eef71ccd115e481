//! Secrets in every form, and text that has none.

mod encodings;
mod generated;
mod shapes;

use std::collections::BTreeMap;

use data_encoding::BASE64;
use serde_json::Value;

use crate::event::{Body, ConnectionId, Direction, Event, EventKind, Frame, HttpHead};

use super::*;

const SECRET: &str = "p4ss/w\"ö<rd & more";

fn redactor() -> Redactor {
    Redactor::new([
        ("PGPASSWORD".to_owned(), SECRET.to_owned()),
        ("DIGITS".to_owned(), "8675309123".to_owned()),
        ("NEWLINE".to_owned(), "nabcdefgh".to_owned()),
        ("QUOTE".to_owned(), "abcdefgh\\".to_owned()),
    ])
}

#[test]
fn secrets_that_arrive_later_are_replaced_by_every_redactor_that_shares_them() {
    let obtained = SharedSecrets::default();
    let run = redactor().sharing(&obtained);
    let trials = [run.scoped(), run.scoped()];
    let other = redactor().sharing(&obtained);
    obtained.learn([("token".to_owned(), "fresh-token-4711".to_owned())]);
    obtained.learn([("token".to_owned(), "renewed-token-4712".to_owned())]);
    for redactor in [&run, &trials[0], &trials[1], &other, &trials[0].scoped()] {
        let text = redactor.text("fresh-token-4711 renewed-token-4712");
        assert_eq!(text, "[redacted:token] [redacted:token]");
    }
    assert_eq!(redactor().text("fresh-token-4711"), "fresh-token-4711");
    assert!(!format!("{obtained:?}{run:?}").contains("4711"));
}

#[test]
fn learned_secrets_are_replaced_from_then_on() {
    let known = redactor();
    let trial = known.scoped();
    let clone = trial.clone();
    let text = "a fresh-token-4711 b p4ss/w\"ö<rd & more";
    assert_eq!(
        trial.text(text),
        "a fresh-token-4711 b [redacted:PGPASSWORD]"
    );
    trial.learn([("TOKEN".to_owned(), "fresh-token-4711".to_owned())]);
    trial.learn([("SHORT".to_owned(), "b".to_owned())]);
    for redactor in [&trial, &clone, &trial.scoped()] {
        let expected = "a [redacted:TOKEN] b [redacted:PGPASSWORD]";
        assert_eq!(redactor.text(text), expected);
    }
    assert_eq!(
        known.text(text),
        "a fresh-token-4711 b [redacted:PGPASSWORD]",
        "what a trial learns is its own"
    );
}

#[test]
fn json_stays_json() {
    let check = |text: &str, expected: &str| {
        assert_eq!(redactor().text(text), expected);
        serde_json::from_str::<Value>(expected).unwrap();
    };
    // A number that is a secret.
    check(
        r#"{"a":[8675309123, 1]}"#,
        r#"{"a":["[redacted:DIGITS]", 1]}"#,
    );
    // `\n` before `abcdefgh` reads as the secret; so does `abcdefgh` before an escaped quote.
    check(r#"{"a":"x\nabcdefgh"}"#, r#"{"a":"x[redacted:NEWLINE]"}"#);
    check(r#"{"a":"abcdefgh\"b"}"#, r#"{"a":"[redacted:QUOTE]b"}"#);
    check(
        r#"{"a":"\u86758675309123"}"#,
        r#"{"a":"\u8675[redacted:DIGITS]"}"#,
    );
    let redactor = Redactor::new([("ODD".to_owned(), "\":12345679".to_owned())]);
    let text = r#"{"a":12345679,"a":"\":12345679"}"#;
    let expected = r#"{"a":12345679,"a":"[redacted:ODD]"}"#;
    assert_eq!(redactor.text(text), expected);
}

#[test]
fn headers_are_redacted_by_name() {
    let check = |name: &str, value: &str, expected: &str| {
        assert_eq!(redactor().header(name, value), expected);
    };
    check("Authorization", "Bearer x", "[redacted:authorization]");
    check("COOKIE", "a=b", "[redacted:cookie]");
    check("set-cookie", "a=b", "[redacted:set-cookie]");
    check("X-Api-Key", "k", "[redacted:x-api-key]");
    check("x-custom-token", "k", "[redacted:x-custom-token]");
    check("cookie", "[redacted:cookie]", "[redacted:cookie]");
    check("cookie", "", "");
    check("content-type", "text/html", "text/html");
    check("x-note", "p4ss/w\"ö<rd & more", "[redacted:PGPASSWORD]");
}

#[test]
fn addresses_lose_passwords_and_secret_parameters() {
    let check = |text: &str, expected: &str| {
        assert_eq!(Redactor::default().address(text), expected);
        assert_eq!(Redactor::default().address(expected), expected);
    };
    check(
        "POST https://u:p@h/mcp?a=1&api_key=k#f",
        "POST https://u:[redacted:password]@h/mcp?a=1&api_key=[redacted:api_key]#f",
    );
    check(
        "npx server --url http://h/?token=abc --b",
        "npx server --url http://h/?token=[redacted:token] --b",
    );
    check(
        "https://h:8080/a?page=2&max_tokens=9",
        "https://h:8080/a?page=2&max_tokens=9",
    );
}

#[test]
fn command_lines_lose_what_follows_a_secret_option() {
    let check = |words: &str, expected: &str| {
        let redact = |words: &str| {
            Redactor::default()
                .command(words.split(' ').map(str::to_owned).collect())
                .join(" ")
        };
        assert_eq!(redact(words), expected);
        assert_eq!(redact(expected), expected);
    };
    check(
        "run --api-key abc --x y",
        "run --api-key [redacted:api-key] --x y",
    );
    check("run --token=abc -v", "run --token=[redacted:token] -v");
    check("run --auth --verbose a", "run --auth --verbose a");
    check("run --max-tokens 9 token b", "run --max-tokens 9 token b");
}

#[test]
fn a_cut_leaves_no_part_of_a_secret() {
    let redactor = Redactor::new([("KEY".to_owned(), "0123456789abcdef".to_owned())]);
    let check = |text: &str, limit: usize, expected: &str| {
        assert_eq!(redactor.head(text.as_bytes(), limit), expected, "{text}");
    };
    check("short", 8, "short");
    check("not so short", 8, "not so s…");
    check("key 0123456789abcdef", 8, "key [red…");
    check("key 0123456789abcdef", 18, "key [redacted:KEY]");
    check(&"x".repeat(100_000), 3, "xxx…");
}

#[test]
fn a_name_that_shows_a_secret_is_not_shown() {
    let secrets = [
        ("A_KEY".to_owned(), "B_SECRET_KEY".to_owned()),
        ("B_SECRET_KEY".to_owned(), "12345abcde".to_owned()),
    ];
    let redactor = Redactor::new(secrets);
    assert_eq!(redactor.text("12345abcde"), "[redacted:secret]");
}

#[test]
fn every_string_of_an_event_is_redacted() {
    let http = EventKind::Http(HttpHead {
        conn: ConnectionId(1),
        exchange: 1,
        direction: Direction::ToServer,
        line: "GET /?q=8675309123".to_owned(),
        headers: BTreeMap::from([
            ("Cookie".to_owned(), "a".to_owned()),
            ("x".to_owned(), "8675309123".to_owned()),
        ]),
        failure: None,
    });
    let base64 = EventKind::Frame(Frame {
        conn: ConnectionId(1),
        exchange: None,
        direction: Direction::ToServer,
        body: Body::Base64(BASE64.encode(b"\xff8675309123\xff")),
    });
    for what in [http, base64] {
        let event = redactor().event(Event {
            seq: 1,
            at: 2,
            event: what,
        });
        let text = serde_json::to_string(&event).unwrap();
        assert!(!text.contains("8675309123"), "{text}");
        if let EventKind::Frame(Frame {
            body: Body::Base64(body),
            ..
        }) = event.event
        {
            assert_eq!(
                BASE64.decode(body.as_bytes()).unwrap(),
                b"\xff[redacted:DIGITS]\xff"
            );
        }
    }
}

#[test]
fn hostile_text_takes_no_longer_than_other_text() {
    for part in [
        "sk-",
        "Bearer ",
        "Basic aaaaaaaa ",
        "authorization:",
        "\\",
        "[redacted:",
        "eyJaaaaaa.",
        "\\u0041",
        "\\\\",
        "%25",
        "\\u0025",
        "\\\\u005c",
        "%",
    ] {
        let text = part.repeat(1_000_000 / part.len());
        redactor().text(&text);
    }
}
