//! Extracts the text of an HTML page for error messages. It is not a full parser.

use std::borrow::Cow;

const MARK: &[u8] = "\u{feff}".as_bytes();
/// The maximum size of a page.
const MAX_PAGE: usize = 256 << 10;
/// The maximum length of the extracted text; messages show far less.
const MAX_TEXT: usize = 8 << 10;
/// How far into a body an HTML page is detected.
const MAX_START: usize = 1 << 10;

/// Tags that occur near the start of every HTML page.
const MARKS: [&str; 5] = ["<!doctype html", "<html", "<body", "<title", "<h1"];
/// The maximum length of a known character entity, with its delimiters.
const MAX_NAME: usize = 12;

/// Returns the text of an HTML page without its markup; any other body unchanged.
pub fn page_text(body: &[u8]) -> Cow<'_, [u8]> {
    if !is_page(body) {
        return Cow::Borrowed(body);
    }
    let body = body.strip_prefix(MARK).unwrap_or(body);
    let page = &body[..body.len().min(MAX_PAGE)];
    let mut pieces: Vec<String> = Vec::new();
    let mut length = 0;
    let mut rest = page;
    while length < MAX_TEXT {
        let Some(open) = memchr::memchr(b'<', rest) else {
            // Truncated text may end in half a secret, which redaction would not find.
            if page.len() == body.len() {
                add(&mut pieces, rest);
            }
            break;
        };
        length += add(&mut pieces, &rest[..open]);
        rest = after_tag(&rest[open..]);
    }
    Cow::Owned(pieces.join(" ").into_bytes())
}

fn is_page(body: &[u8]) -> bool {
    let start = String::from_utf8_lossy(&body[..body.len().min(MAX_START)]).to_ascii_lowercase();
    let start = start.trim_start_matches('\u{feff}').trim_start();
    start.starts_with('<') && MARKS.iter().any(|mark| start.contains(mark))
}

/// Adds a piece of text, unless it repeats the last one (such as the title).
fn add(pieces: &mut Vec<String>, text: &[u8]) -> usize {
    let text = unescaped(&String::from_utf8_lossy(text));
    let words: Vec<&str> = text.split_whitespace().collect();
    let piece = words.join(" ");
    let length = piece.len();
    if !piece.is_empty() && pieces.last() != Some(&piece) {
        pieces.push(piece);
    }
    length
}

/// Returns the rest after a tag; after a comment, script or style element, the rest after its end.
fn after_tag(tag: &[u8]) -> &[u8] {
    if tag.starts_with(b"<!--") {
        return after(tag, b"-->");
    }
    for (name, end) in [(&b"<script"[..], &b"</script"[..]), (b"<style", b"</style")] {
        let is_this = tag.len() >= name.len() && tag[..name.len()].eq_ignore_ascii_case(name);
        if is_this {
            let at = tag
                .windows(end.len())
                .position(|part| part.eq_ignore_ascii_case(end));
            return at.map_or(&[], |at| after(&tag[at..], b">"));
        }
    }
    after(tag, b">")
}

fn after<'a>(text: &'a [u8], end: &[u8]) -> &'a [u8] {
    let at = memchr::memmem::find(text, end);
    at.map_or(&[], |at| &text[at + end.len()..])
}

fn unescaped(text: &str) -> String {
    if !text.contains('&') {
        return text.to_owned();
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('&') {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let end = rest.bytes().take(MAX_NAME).position(|byte| byte == b';');
        let named = end.and_then(|end| Some((character(&rest[1..end])?, end + 1)));
        let (c, length) = named.unwrap_or(('&', 1));
        out.push(c);
        rest = &rest[length..];
    }
    out.push_str(rest);
    out
}

fn character(name: &str) -> Option<char> {
    match name {
        "amp" => return Some('&'),
        "lt" => return Some('<'),
        "gt" => return Some('>'),
        "quot" => return Some('"'),
        "apos" => return Some('\''),
        "nbsp" => return Some(' '),
        _ => {}
    }
    let number = name.strip_prefix('#')?;
    let code = match number.strip_prefix(['x', 'X']) {
        Some(digits) => u32::from_str_radix(digits, 16).ok()?,
        None => number.parse().ok()?,
    };
    char::from_u32(code)
}
