//! Secrets in every form, and text that has none.

use std::borrow::Cow;
use std::collections::BTreeMap;

use data_encoding::{BASE64, BASE64URL_NOPAD};
use proptest::prelude::*;
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
fn a_secret_is_replaced_in_every_form() {
    let check = |text: &str, expected: &str| assert_eq!(redactor().text(text), expected);
    check("a p4ss/w\"ö<rd & more b", "a [redacted:PGPASSWORD] b");
    check(
        r#"{"a":"p4ss/w\"ö<rd & more"}"#,
        r#"{"a":"[redacted:PGPASSWORD]"}"#,
    );
    check(
        r"p4ss\/w\u0022\u00f6\u003crd",
        r"p4ss\/w\u0022\u00f6\u003crd",
    );
    check(
        r#"p4ss\/w\"\u00F6\u003Crd \u0026 more"#,
        "[redacted:PGPASSWORD]",
    );
    check(r#"p4ss\\/w\\\"\\u00f6<rd & more"#, "[redacted:PGPASSWORD]");
    check(
        "?q=p4ss%2Fw%22%C3%B6%3Crd%20%26%20more&b",
        "?q=[redacted:PGPASSWORD]&b",
    );
    check(
        "?q=p4ss%2fw%22%c3%b6%3crd%20%26%20more&b",
        "?q=[redacted:PGPASSWORD]&b",
    );
    check(
        "?q=p4ss%2Fw%22%C3%B6%3Crd+%26+more&b",
        "?q=[redacted:PGPASSWORD]&b",
    );
    check(&BASE64.encode(SECRET.as_bytes()), "[redacted:PGPASSWORD]");
    check(
        &BASE64URL_NOPAD.encode(SECRET.as_bytes()),
        "[redacted:PGPASSWORD]",
    );
}

#[test]
fn any_character_of_a_secret_may_be_an_escape() {
    const KEY: &str = "aB3+/=😀%41 z9";
    let redactor = Redactor::new([("KEY".to_owned(), KEY.to_owned())]);
    for text in [
        r"aB3\u002B/\u003d😀%41 z9",
        r"aB3\u002b\/\u003D😀%41 z9",
        r"\u0061B\u0033+/=\uD83D\uDe00%41 z9",
        r"aB3\\u002B\\/=\\ud83d\\ude00%41 z9",
        r"aB3\\\\u002B\\\\/=😀%41 z9",
        r"aB3\x2b\x2F=😀\u002541\u0020z9",
        "%61B3%2b%2F%3d%F0%9f%98%80%2541%20z9",
        "aB3%2B/=%F0%9F%98%80%2541+z9",
        "aB3%2B%2F%3D%F0%9F%98%80%2541+z%39",
        r"aB3\u00252B/=\uD83D\uDE00%2541%20z9",
        "aB3%5Cu002B%5C/=%F0%9F%98%80%2541%20z9",
        "aB3%252B%252F%253D%25F0%259F%2598%2580%252541%2520z9",
        "6142332b2f3df09f9880253431207a39",
        "6142332B2F3DF09F9880253431207A39",
        r"6142332b2f3d\u006609f9880253431207a39",
        "YUIzKy898J%2BYgCU0MSB6OQ%3D%3D",
        r"YUIzKy898J\u002BYgCU0MSB6OQ\u003D\u003d",
    ] {
        assert_eq!(redactor.text(text), "[redacted:KEY]", "{text}");
        let around = format!("a {text}, b");
        assert_eq!(redactor.text(&around), "a [redacted:KEY], b", "{text}");
    }
}

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
fn a_secret_is_replaced_inside_larger_base64() {
    for before in ["", "u", "us", "use"] {
        for after in ["", ":", ": ", ": x"] {
            let text = BASE64.encode(format!("{before}{SECRET}{after}").as_bytes());
            let redacted = redactor().text(&text).into_owned();
            let left = redacted.replacen("[redacted:PGPASSWORD]", "", 1);
            // What was put around the secret, and a character at each end that the two share.
            assert!(left.len() <= 12, "{text} became {redacted}");
            assert_ne!(left, redacted);
        }
    }
}

#[test]
fn hexadecimal_is_known_in_any_case() {
    let hex = data_encoding::HEXLOWER.encode(SECRET.as_bytes());
    let (head, tail) = hex.split_at(hex.len() / 2);
    let mixed = format!("{}{tail}", head.to_uppercase());
    assert!(![&hex, &hex.to_uppercase()].contains(&&mixed));
    for text in [hex.clone(), hex.to_uppercase(), mixed] {
        let around = format!("a {text} b");
        let redacted = redactor().text(&around).into_owned();
        assert_eq!(redacted, "a [redacted:PGPASSWORD] b", "{text}");
    }
}

#[test]
fn a_secret_is_replaced_where_its_encoding_is_wrapped() {
    let secret = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    let redactor = Redactor::new([("KEY".to_owned(), secret.to_owned())]);
    let forms = [
        BASE64.encode(secret.as_bytes()),
        BASE64URL_NOPAD.encode(secret.as_bytes()),
        data_encoding::HEXLOWER.encode(secret.as_bytes()),
    ];
    for form in &forms {
        for width in [16, 19, 64, 76] {
            let lines: Vec<&str> = form
                .as_bytes()
                .chunks(width)
                .map(|line| str::from_utf8(line).unwrap())
                .collect();
            for ending in ["\n", "\r\n", "\\n", "\\r\\n", "\\\\n", "%0A", "\n    "] {
                let text = format!("a {} b", lines.join(ending));
                let redacted = redactor.text(&text).into_owned();
                assert_eq!(redacted, "a [redacted:KEY] b", "{width} {ending:?}");
            }
            let json = serde_json::json!({ "pem": lines.join("\n") }).to_string();
            assert_eq!(redactor.text(&json), r#"{"pem":"[redacted:KEY]"}"#);
        }
    }
}

#[test]
fn a_secret_inside_wrapped_base64_is_replaced() {
    let secret = "the-secret-of-somebody-else";
    let redactor = Redactor::new([("KEY".to_owned(), secret.to_owned())]);
    for before in 0..40 {
        let text = format!("{}{secret} and more of it", "x".repeat(before));
        let encoded = BASE64.encode(text.as_bytes());
        let lines = encoded.as_bytes().chunks(16);
        let lines: Vec<&str> = lines.map(|line| str::from_utf8(line).unwrap()).collect();
        let redacted = redactor.text(&lines.join("\n")).into_owned();
        assert!(redacted.contains("[redacted:KEY]"), "{before}: {redacted}");
        let left = redacted.replace("[redacted:KEY]", "").replace('\n', "");
        // Of each end, one character at most is shared with what stands around it.
        assert!(left.len() + 34 <= encoded.len(), "{before}: {redacted}");
    }
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

fn secret() -> impl Strategy<Value = String> {
    // The ends are no letters of an escape, so that no form is found where none was written.
    "[XYZ][ -~äß漢]{8,20}[XYZ]"
}

/// A character in any form that a JSON encoder may use.
fn escaped(c: char, way: u8) -> String {
    let unit = |unit: &u16| match way {
        1 => format!("\\u{unit:04x}"),
        _ => format!("\\u{unit:04X}"),
    };
    match (c, way) {
        ('/', 0) => "\\/".to_owned(),
        (_, 1 | 2) => c.encode_utf16(&mut [0; 2]).iter().map(unit).collect(),
        _ => {
            let quoted = Value::from(c.to_string()).to_string();
            quoted[1..quoted.len() - 1].to_owned()
        }
    }
}

proptest! {
    #[test]
    fn a_secret_never_survives(secret in secret(), before in "[ -~ö]{0,9}", after in "[ -~ö]{0,9}") {
        let redactor = Redactor::new([("NAME".to_owned(), secret.clone())]);
        let forms = forms::plain(&secret).into_iter().chain(forms::base64(&secret));
        for form in forms.chain([forms::hex(&secret)]) {
            // What a percent-encoded secret decodes to may be no text, and then stands in none.
            let Ok(form) = String::from_utf8(form) else { continue };
            let redacted = redactor.text(&format!("{before}{form}{after}")).into_owned();
            prop_assert!(!redacted.contains(&form), "{}", redacted);
        }
        let once = serde_json::to_string(&format!("{before}{secret}{after}")).unwrap();
        let twice = serde_json::to_string(&[&once]).unwrap();
        let redacted = redactor.text(&twice).into_owned();
        let inner: Vec<String> = serde_json::from_str(&redacted).unwrap();
        let value: Value = serde_json::from_str(&inner[0]).unwrap();
        prop_assert!(!value.as_str().unwrap().contains(&secret));
    }

    #[test]
    fn a_secret_never_survives_escapes(
        secret in secret(),
        ways in proptest::collection::vec(0..6_u8, 24),
        before in "[ -~ö]{0,9}",
        after in "[ -~ö]{0,9}",
        layers in 0..3,
    ) {
        let redactor = Redactor::new([("NAME".to_owned(), secret.clone())]);
        let mut json: String = secret.chars().zip(ways.iter().cycle()).map(|(c, way)| escaped(c, *way)).collect();
        for _ in 0..layers {
            let quoted = serde_json::to_string(&json).unwrap();
            json = quoted[1..quoted.len() - 1].to_owned();
        }
        let text = format!("{}{json}{}", Value::from(before.clone()), Value::from(after.clone()));
        let redacted = redactor.text(&text).into_owned();
        prop_assert!(redacted.contains("[redacted:NAME]"), "{} of {}", redacted, text);
        prop_assert!(!redacted.contains(&json), "{}", redacted);
        let percent: String = secret.bytes().zip(ways.iter().cycle()).map(|(byte, way)| match way {
            0..=2 if byte.is_ascii_alphanumeric() => char::from(byte).to_string(),
            3 => format!("%{byte:02x}"),
            _ => format!("%{byte:02X}"),
        }).collect();
        let redacted = redactor.text(&percent).into_owned();
        prop_assert_eq!(redacted, "[redacted:NAME]");
    }

    #[test]
    fn text_without_secrets_is_unchanged(text in "[a-w \n{}\":,0-9]{0,200}") {
        let redactor = Redactor::new([("NAME".to_owned(), "XSECRETX".to_owned())]);
        prop_assert!(matches!(redactor.text(&text), Cow::Borrowed(_)));
    }

    #[test]
    fn json_stays_json_with_any_secret(
        secrets in proptest::collection::vec("[a-cn\\\\\":,{}0-2u]{8,10}", 1..4),
        around in "[a-c\\\\\"0-2un\n]{0,6}",
    ) {
        let redactor = Redactor::new(secrets.iter().map(|secret| ("A".to_owned(), secret.clone())));
        let texts: Vec<String> = secrets.iter().map(|secret| format!("{around}{secret}{around}")).collect();
        let nested = serde_json::to_string(&texts).unwrap();
        let numbers: Vec<String> = secrets.iter().map(|s| s.replace(|c: char| !c.is_ascii_digit(), "1")).collect();
        let json = format!("{{{}:[{},{}]}}", Value::from(around), Value::from(nested), numbers.join(",").replace('0', "1"));
        let redacted = redactor.text(&json).into_owned();
        prop_assert!(serde_json::from_str::<Value>(&redacted).is_ok(), "{} became {}", json, redacted);
        prop_assert_eq!(redactor.text(&redacted).into_owned(), redacted);
    }

    #[test]
    fn redacting_twice_changes_nothing(
        parts in proptest::collection::vec(
            prop_oneof![
                "[ -~\n]{0,12}",
                Just("abcd[redacted:".to_owned()),
                Just("[redacted:A]".to_owned()),
                Just("]12345678".to_owned()),
                Just("Authorization: Bearer abcdef123".to_owned()),
                Just("sk-abcdefghijklmnop0123456789".to_owned()),
                Just("Basic dXNlcjpwYXNz".to_owned()),
                Just("{\"a\":[".to_owned()),
                Just("12345678[".to_owned()),
            ],
            0..12,
        )
    ) {
        let redactor = Redactor::new(
            ["abcd[reda", "]12345678", "12345678["].map(|secret| ("A".to_owned(), secret.to_owned())),
        );
        let once = redactor.text(&parts.concat()).into_owned();
        let twice = redactor.text(&once).into_owned();
        prop_assert_eq!(twice, once);
    }
}
