//! Cuts and wraps lines to a width in terminal columns.
//!
//! Its main type is [`Page`]. Its input is already escaped.

use anstyle::Style;
use unicode_width::UnicodeWidthStr;

use super::{LABEL, TerminalStyle};

/// The maximum number of lines of a text from outside.
const WRAPPED: usize = 12;

/// The maximum number of characters per column: combining marks have no width.
const STACKED: usize = 4;

/// The text of a report while it is rendered.
pub(crate) struct Page {
    out: String,
    width: usize,
    colour: bool,
}

impl Page {
    pub(crate) fn new(style: TerminalStyle) -> Self {
        Self {
            out: String::new(),
            width: style.width.max(40),
            colour: style.colour,
        }
    }

    pub(crate) fn into_text(self) -> String {
        self.out
    }

    pub(super) fn width(&self) -> usize {
        self.width
    }

    /// Whether a text fits in one line.
    pub(super) fn fits(&self, indent: usize, text: &str) -> bool {
        fits(text, self.width - indent)
    }

    /// Adds an empty line, except at the start or after another one.
    pub(super) fn blank(&mut self) {
        if !self.out.is_empty() && !self.out.ends_with("\n\n") {
            self.out.push('\n');
        }
    }

    /// Adds one line, cut to the width.
    pub(super) fn cut(&mut self, indent: usize, text: &str, style: Option<Style>) {
        let text = cut(&defused(text.trim_end()), self.width - indent);
        self.line(indent, &self.painted(&text, style));
    }

    /// Adds a text, wrapped to the width, up to a limit of lines.
    pub(crate) fn wrapped(&mut self, indent: usize, text: &str) {
        for line in fitted(text, self.width - indent) {
            self.line(indent, &line);
        }
    }

    /// Adds a label such as `PASS`, a name, and facts in parentheses.
    pub(super) fn labelled(&mut self, label: &str, style: Style, name: &str, facts: &str) {
        let room = self.width - LABEL.max(label.width() + 1);
        // Facts are short; a name may have any length.
        let facts = if facts.is_empty() {
            String::new()
        } else {
            format!("  ({facts})")
        };
        let name = cut(name, (room * 2).saturating_sub(facts.width()).max(20));
        let text = format!("{name}{facts}");
        let lines = fitted(&text, room);
        self.column(label, style, &lines);
    }

    /// Adds a line of the totals: a label, and text that wraps beside it.
    pub(crate) fn fact(&mut self, label: &str, text: &str) {
        let lines = fitted(text, self.width - LABEL);
        self.column(label, Style::new().bold(), &lines);
    }

    /// Adds text below a fact.
    pub(crate) fn more(&mut self, text: &str) {
        self.wrapped(LABEL, text);
    }

    fn column(&mut self, label: &str, style: Style, lines: &[String]) {
        let gap = " ".repeat(LABEL.saturating_sub(label.width()).max(1));
        for (index, line) in lines.iter().enumerate() {
            if index == 0 {
                let label = self.painted(label, Some(style));
                self.line(0, &format!("{label}{gap}{line}"));
            } else {
                self.line(LABEL, line);
            }
        }
    }

    fn line(&mut self, indent: usize, text: &str) {
        self.out.push_str(&" ".repeat(indent));
        self.out.push_str(text.trim_end());
        self.out.push('\n');
    }

    fn painted(&self, text: &str, style: Option<Style>) -> String {
        match style.filter(|_| self.colour) {
            Some(style) => format!("{style}{text}{style:#}"),
            None => text.to_owned(),
        }
    }
}

/// Wraps a text, up to the limit of lines.
fn fitted(text: &str, room: usize) -> Vec<String> {
    let mut lines: Vec<String> = wrap(text, room).iter().map(|l| defused(l)).collect();
    if lines.len() > WRAPPED {
        lines.truncate(WRAPPED);
        if let Some(last) = lines.last_mut() {
            *last = format!("{}…", cut(last, room - 1).trim_end_matches('…'));
        }
    }
    for line in &mut lines {
        *line = cut(line, room);
    }
    lines
}

/// In the log of a CI service, a line may be a command to it: such a line is not left as it is. GitHub takes
/// `##[` anywhere in a line.
pub(crate) fn defused(line: &str) -> String {
    let line = line.replace("##[", "##\\[");
    if line.trim_start().starts_with("::") {
        format!("\\{line}")
    } else {
        line
    }
}

/// The text, or its beginning with an ellipsis, no wider than the room.
pub(crate) fn cut(text: &str, room: usize) -> String {
    if fits(text, room) {
        return text.to_owned();
    }
    let end = fitting(text, room.saturating_sub(1));
    format!("{}…", &text[..end])
}

/// Breaks a text between words, and in words that are too long.
fn wrap(text: &str, room: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = String::new();
    for word in text.split(' ') {
        let mut word = word;
        if !line.is_empty() {
            if fits(&format!("{line} {word}"), room) {
                line.push(' ');
                line.push_str(word);
                continue;
            }
            lines.push(std::mem::take(&mut line));
        }
        while !fits(word, room) && lines.len() <= WRAPPED {
            // At least one character, so that there is an end.
            let end = fitting(word, room).max(word.chars().next().map_or(1, char::len_utf8));
            lines.push(word[..end].to_owned());
            word = &word[end..];
        }
        word.clone_into(&mut line);
        if lines.len() > WRAPPED {
            break;
        }
    }
    lines.push(line);
    lines
}

pub(crate) fn fits(text: &str, room: usize) -> bool {
    if is_plain(text, room + 1) {
        return text.len() <= room;
    }
    text.chars().nth(room * STACKED).is_none() && text.width() <= room
}

/// Whether the first bytes of a text are plain characters, which all have the width one. This is true for most texts, and
/// measuring every beginning of a line takes long.
fn is_plain(text: &str, bytes: usize) -> bool {
    let head = &text.as_bytes()[..text.len().min(bytes)];
    head.iter().all(|byte| matches!(byte, b' '..=b'~'))
}

/// Where the longest beginning ends that fits. Widths don't add up character by character: marks
/// can make the one before them wider.
pub(crate) fn fitting(text: &str, room: usize) -> usize {
    if is_plain(text, room + 1) {
        return text.len().min(room);
    }
    let ends = text.char_indices().map(|(at, c)| at + c.len_utf8());
    ends.take(room * STACKED)
        .take_while(|end| text[..*end].width() <= room)
        .last()
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_cut_by_how_wide_it_is_shown() {
        let check = |text: &str, room, shown: &str| assert_eq!(cut(text, room), shown);
        check("abc", 3, "abc");
        check("abcd", 3, "ab…");
        check("漢字漢字", 5, "漢字…");
        check("漢字漢字", 4, "漢…");
        check(&"e\u{301}".repeat(4), 3, "e\u{301}e\u{301}…");
        // A mark right behind the room belongs to the last character in it.
        check("abc\u{301}", 3, "abc\u{301}");
        check("abcd\u{301}", 3, "ab…");
    }

    proptest::proptest! {
        #[test]
        fn plain_text_is_measured_as_any_other(text in "[ -~é漢\u{301}\u{fe0f}#1-3]{0,14}", room in 4_usize..12) {
            let ends = || text.char_indices().map(|(at, c)| at + c.len_utf8());
            let slow = ends().take_while(|end| text[..*end].width() <= room).last();
            proptest::prop_assert_eq!(fitting(&text, room), slow.unwrap_or(0));
            proptest::prop_assert_eq!(fits(&text, room), text.width() <= room);
        }
    }

    #[test]
    fn text_wraps_between_words_and_in_long_ones() {
        let check = |text: &str, lines: &[&str]| assert_eq!(wrap(text, 6), lines);
        check("", &[""]);
        check("a bc def", &["a bc", "def"]);
        check("abcdefgh i", &["abcdef", "gh i"]);
        check("a abcdefgh", &["a", "abcdef", "gh"]);
    }

    proptest::proptest! {
        #[test]
        fn no_line_is_too_wide(text in "(\\PC| |e\u{301}|☺\u{fe0f}){0,300}", room in 40usize..90, indent in 0usize..8) {
            let mut page = Page::new(TerminalStyle { width: room, colour: false });
            page.wrapped(indent, &text);
            page.cut(indent, &text, None);
            page.labelled("FAIL", Style::new(), &text, "1.2s");
            page.fact("Gate", &text);
            for line in page.into_text().lines() {
                proptest::prop_assert!(line.width() <= room, "{} {line:?}", line.width());
            }
        }
    }
}
