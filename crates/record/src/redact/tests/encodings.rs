//! A known secret in every encoding that it may have.

use data_encoding::{BASE64, BASE64URL_NOPAD};

use super::{Redactor, SECRET, redactor};

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
