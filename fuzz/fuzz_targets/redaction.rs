//! Redaction: a secret in none of its usual forms is left, redacting twice changes nothing more, JSON stays JSON, and the same
//! holds for an event that is stored.
#![no_main]

use std::sync::LazyLock;

use data_encoding::{BASE64, BASE64URL_NOPAD, HEXLOWER};
use libfuzzer_sys::fuzz_target;
use proctor_fuzz::halves;
use proctor_record::event::{Body, ConnectionId, Direction, Event, EventKind, Frame};
use proctor_record::redact::Redactor;
use serde_json::Value;

const MARKER: &str = "[redacted:";

fuzz_target!(|data: &[u8]| {
    let Some((secret, text)) = halves(data) else {
        return;
    };
    let (Ok(secret), Ok(text)) = (std::str::from_utf8(secret), std::str::from_utf8(text)) else {
        return;
    };
    let shown = secret.to_lowercase();
    // A secret that looks like a replacement is in every replacement.
    if !Redactor::can_hide(secret) || shown.contains("reda") || shown.contains("acted") {
        return;
    }
    let forms = forms(secret);
    let text = filled_in(text, &forms);
    let redactor = with_secret(secret);
    let redacted = redactor.text(&text).into_owned();
    hides(&redacted, &forms);
    assert_eq!(redactor.text(&redacted), redacted, "redacted twice");
    assert_eq!(redactor.bytes(text.as_bytes()), redacted.as_bytes());
    if serde_json::from_str::<Value>(&text).is_ok() {
        let json = serde_json::from_str::<Value>(&redacted);
        json.expect("JSON stays JSON");
    }
    if data[0] % 64 == 0 {
        let from_start = Redactor::new([("NAME".to_owned(), secret.to_owned())]);
        assert_eq!(from_start.text(&text), redacted, "known from the start");
    }
    let bodies = [
        Body::Text(text.clone()),
        Body::Base64(BASE64.encode(text.as_bytes())),
    ];
    for body in bodies {
        let stored = redactor.event(Event {
            seq: 1,
            at: 0,
            event: EventKind::Frame(Frame {
                conn: ConnectionId(1),
                exchange: None,
                direction: Direction::ToServer,
                body,
            }),
        });
        let EventKind::Frame(Frame { body, .. }) = stored.event else {
            panic!("a message stays a message");
        };
        match body {
            Body::Text(text) => hides(&text, &forms),
            Body::Base64(text) => {
                let bytes = BASE64.decode(text.as_bytes()).expect("base64");
                hides(&String::from_utf8_lossy(&bytes), &forms);
            }
            Body::Blob { .. } | Body::Cut { .. } => panic!("the text is kept"),
        }
    }
});

/// A redactor that learned the secret. The shapes of keys, which take long to compile, are compiled once.
fn with_secret(secret: &str) -> Redactor {
    static PLAIN: LazyLock<Redactor> = LazyLock::new(Redactor::default);
    let redactor = PLAIN.scoped();
    redactor.learn([("NAME".to_owned(), secret.to_owned())]);
    redactor
}

/// The secret as it is, in base64, in hexadecimal, as JSON escapes and percent-encoded.
fn forms(secret: &str) -> [String; 6] {
    let escaped: String = secret
        .encode_utf16()
        .map(|unit| format!("\\u{unit:04x}"))
        .collect();
    let percent: String = secret.bytes().map(|byte| format!("%{byte:02X}")).collect();
    [
        secret.to_owned(),
        BASE64.encode(secret.as_bytes()),
        BASE64URL_NOPAD.encode(secret.as_bytes()),
        HEXLOWER.encode(secret.as_bytes()),
        escaped,
        percent,
    ]
}

/// The text with a form of the secret for each of the first control characters.
fn filled_in(text: &str, forms: &[String; 6]) -> String {
    let mut filled = String::new();
    for character in text.chars() {
        match forms.get((character as usize).wrapping_sub(1)) {
            // A backslash or percent sign before an escape would make it another one.
            Some(form) if form.starts_with(['\\', '%']) => {
                filled.push(' ');
                filled.push_str(form);
            }
            Some(form) => filled.push_str(form),
            None => filled.push(character),
        }
    }
    filled
}

/// No form stands between the replacements.
fn hides(redacted: &str, forms: &[String]) {
    let mut rest = redacted;
    while !rest.is_empty() {
        let (part, after) = match rest.find(MARKER) {
            Some(at) => {
                let end = rest[at..].find(']').map_or(rest.len(), |end| at + end + 1);
                (&rest[..at], &rest[end..])
            }
            None => (rest, ""),
        };
        let left = forms.iter().find(|form| part.contains(form.as_str()));
        assert_eq!(left, None, "{redacted:?}");
        rest = after;
    }
}
