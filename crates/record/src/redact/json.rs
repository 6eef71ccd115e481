//! Redacts JSON so that it stays valid JSON.
//!
//! A search in plain text ignores tokens: replacing a secret that is a number, or that starts
//! within an escape, would leave invalid JSON.

use crate::json::is_json;

/// Whether the bytes are one JSON object or array.
pub(super) fn is_valid(bytes: &[u8]) -> bool {
    matches!(bytes.trim_ascii_start().first(), Some(b'{' | b'[')) && is_json(bytes)
}

/// Redacts valid JSON token by token. Keeps the order, duplicate keys and whitespace.
pub(super) fn redact(json: &[u8], redact: &dyn Fn(&[u8]) -> Vec<u8>) -> Vec<u8> {
    let mut out = Vec::with_capacity(json.len());
    let mut at = 0;
    while at < json.len() {
        let end = token_end(json, at);
        let token = &json[at..end];
        match token[0] {
            b'"' => redact_string(token, redact, &mut out),
            b'-' | b'0'..=b'9' => {
                let redacted = redact(token);
                let quote: &[u8] = if redacted == token { b"" } else { b"\"" };
                out.extend_from_slice(quote);
                out.extend_from_slice(&redacted);
                out.extend_from_slice(quote);
            }
            _ => out.extend_from_slice(token),
        }
        at = end;
    }
    out
}

/// The end of the token that starts at `at`: a string, a number, or any other single byte.
fn token_end(json: &[u8], at: usize) -> usize {
    let rest = &json[at + 1..];
    let length = match json[at] {
        b'"' => {
            let mut escaped = false;
            let closing = rest.iter().position(|byte| {
                let closes = *byte == b'"' && !escaped;
                escaped = *byte == b'\\' && !escaped;
                closes
            });
            closing.map_or(rest.len(), |closing| closing + 1)
        }
        b'-' | b'0'..=b'9' => rest
            .iter()
            .take_while(|b| matches!(b, b'0'..=b'9' | b'+' | b'-' | b'.' | b'e' | b'E'))
            .count(),
        _ => 0,
    };
    at + 1 + length
}

fn redact_string(token: &[u8], redact: &dyn Fn(&[u8]) -> Vec<u8>, out: &mut Vec<u8>) {
    let inside = redact(&token[1..token.len() - 1]);
    let text = [b"\"", inside.as_slice(), b"\""].concat();
    if is_json(&text) {
        out.extend_from_slice(&text);
    } else {
        // The secret covers a part of an escape, so the whole string is replaced.
        out.extend_from_slice(b"\"[redacted:string]\"");
    }
}
