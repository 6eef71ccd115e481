//! Formats of `printf`, and Go's ways to escape a text.

use std::fmt::Write;

/// A part of a format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FormatVerb {
    /// `%s`.
    Text,
    /// `%q`.
    Quoted,
    /// `%v`.
    Any,
    /// `%d`.
    Number,
    /// `%t`.
    Truth,
}

/// A part of a format.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum FormatPart {
    Text(String),
    Verb(FormatVerb),
}

impl FormatVerb {
    /// The verb as it is written.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Text => "%s",
            Self::Quoted => "%q",
            Self::Any => "%v",
            Self::Number => "%d",
            Self::Truth => "%t",
        }
    }
}

/// Parses a format. The error is an unsupported verb.
pub(super) fn parse(format: &str) -> Result<Vec<FormatPart>, String> {
    let mut parts = Vec::new();
    let mut text = String::new();
    let mut chars = format.chars();
    while let Some(c) = chars.next() {
        if c != '%' {
            text.push(c);
            continue;
        }
        let verb = match chars.next() {
            Some('%') => {
                text.push('%');
                continue;
            }
            Some('s') => FormatVerb::Text,
            Some('q') => FormatVerb::Quoted,
            Some('v') => FormatVerb::Any,
            Some('d') => FormatVerb::Number,
            Some('t') => FormatVerb::Truth,
            Some(other) => return Err(format!("%{other}")),
            None => return Err("%".to_owned()),
        };
        if !text.is_empty() {
            parts.push(FormatPart::Text(std::mem::take(&mut text)));
        }
        parts.push(FormatPart::Verb(verb));
    }
    if !text.is_empty() {
        parts.push(FormatPart::Text(text));
    }
    Ok(parts)
}

/// A text as Go's `%q` writes it.
pub(super) fn go_quote(text: &str) -> String {
    let mut out = String::from('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\x07' => out.push_str("\\a"),
            '\x08' => out.push_str("\\b"),
            '\x0c' => out.push_str("\\f"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\x0b' => out.push_str("\\v"),
            c if is_printable(c) => out.push(c),
            c if c.is_ascii() => push(&mut out, format_args!("\\x{:02x}", u32::from(c))),
            c if u32::from(c) < 0x1_0000 => push(&mut out, format_args!("\\u{:04x}", u32::from(c))),
            c => push(&mut out, format_args!("\\U{:08x}", u32::from(c))),
        }
    }
    out.push('"');
    out
}

fn is_printable(c: char) -> bool {
    matches!(c, ' ' | '\'') || c.escape_debug().count() == 1
}

/// A text as Go's `js` writes it: for the inside of a JavaScript string.
pub(super) fn js(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        match c {
            '\\' => out.push_str("\\\\"),
            '\'' => out.push_str("\\'"),
            '"' => out.push_str("\\\""),
            '<' | '>' | '&' | '=' => push(&mut out, format_args!("\\u{:04X}", u32::from(c))),
            c if u32::from(c) < 0x20 => push(&mut out, format_args!("\\u{:04X}", u32::from(c))),
            c if c.is_ascii() || is_printable(c) => out.push(c),
            c => push(&mut out, format_args!("\\u{:04X}", u32::from(c))),
        }
    }
    out
}

/// A text as Go's `html` writes it.
pub(super) fn html(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        match c {
            '"' => out.push_str("&#34;"),
            '\'' => out.push_str("&#39;"),
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '\0' => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

/// A text as Go's `urlquery` writes it: for the query of a URL.
pub(super) fn urlquery(text: &str) -> String {
    let mut out = String::new();
    for byte in text.bytes() {
        match byte {
            b' ' => out.push('+'),
            b if b.is_ascii_alphanumeric() || b"-_.~".contains(&b) => out.push(char::from(b)),
            b => push(&mut out, format_args!("%{b:02X}")),
        }
    }
    out
}

fn push(out: &mut String, text: std::fmt::Arguments<'_>) {
    // A string takes everything.
    let _ = out.write_fmt(text);
}
