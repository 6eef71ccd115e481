//! The cells of a row, quoted as RFC 4180 says.
//!
//! The main type is [`Cells`]. Texts come from servers and models, and spreadsheets run a cell that starts
//! like a formula. Such a text gets an apostrophe in front, as does one that starts with an apostrophe, so a
//! reader can undo it. Control characters other than line feeds and tabs are escaped.

use std::borrow::Cow;
use std::fmt::Display;
use std::io::{self, Write};

use proctor_core::printable::push_printable;

/// The cells of the current row.
#[derive(Debug, Default)]
pub(super) struct Cells {
    row: String,
    is_begun: bool,
}

impl Cells {
    pub(super) fn text(&mut self, text: &str) {
        let text = inert(text);
        if text.contains(['"', ',', '\n', '\r']) || text.trim() != text {
            self.raw(&format!("\"{}\"", text.replace('"', "\"\"")));
        } else {
            self.raw(&text);
        }
    }

    pub(super) fn optional_text(&mut self, text: Option<&str>) {
        self.text(text.unwrap_or_default());
    }

    pub(super) fn number(&mut self, number: impl Display) {
        self.raw(&number.to_string());
    }

    pub(super) fn optional(&mut self, number: Option<impl Display>) {
        match number {
            Some(number) => self.number(number),
            None => self.raw(""),
        }
    }

    /// Writes the row, and begins the next.
    pub(super) fn end(&mut self, out: &mut dyn Write) -> io::Result<()> {
        self.row.push('\n');
        out.write_all(self.row.as_bytes())?;
        self.row.clear();
        self.is_begun = false;
        Ok(())
    }

    fn raw(&mut self, cell: &str) {
        if self.is_begun {
            self.row.push(',');
        }
        self.is_begun = true;
        self.row.push_str(cell);
    }
}

/// The text without control characters that a terminal would obey, and without the start of a formula.
fn inert(text: &str) -> Cow<'_, str> {
    let is_control = |c: char| c.is_control() && c != '\n' && c != '\t';
    let is_formula = text.starts_with(['=', '+', '-', '@', '\t', '\'']);
    if !is_formula && !text.contains(is_control) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    if is_formula {
        out.push('\'');
    }
    for c in text.chars() {
        if is_control(c) {
            push_printable(&mut out, c);
        } else {
            out.push(c);
        }
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        let mut cells = Cells::default();
        cells.text(text);
        assert_eq!(cells.row, expected);
    }

    #[test]
    fn texts_are_quoted_where_needed() {
        check("plain text", "plain text");
        check("a,b", "\"a,b\"");
        check("say \"x\"", "\"say \"\"x\"\"\"");
        check("two\nlines", "\"two\nlines\"");
        check(" padded ", "\" padded \"");
        check("", "");
    }

    #[test]
    fn a_text_is_never_a_formula() {
        check("=1+1", "'=1+1");
        check("@SUM(A1)", "'@SUM(A1)");
        check("-1", "'-1");
        check("+x,y", "\"'+x,y\"");
        check("'quoted", "''quoted");
        check("\tx", "'\tx");
    }

    #[test]
    fn control_characters_are_escaped() {
        check("a\0b\x1b[1m", "a\\u{0}b\\u{1b}[1m");
        check("\r\n", "\"\\r\n\"");
        check("a\tb", "a\tb");
    }

    #[test]
    fn a_row_ends_with_a_line_feed() {
        let (mut cells, mut out) = (Cells::default(), Vec::new());
        cells.number(-1);
        cells.optional(None::<u64>);
        cells.text("x");
        cells.end(&mut out).unwrap();
        cells.text("y");
        cells.end(&mut out).unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), "-1,,x\ny\n");
    }
}
