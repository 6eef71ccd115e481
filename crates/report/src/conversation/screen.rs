//! Lines for a terminal, wrapped to its width. Long texts lose their middle.
//!
//! Its main type is [`Screen`]. It makes everything printable that it is given.

use anstyle::Style;
use proctor_core::printable::printable;
use unicode_width::UnicodeWidthStr;

use super::{ConversationOptions, FAINT};
use crate::terminal::lines::{cut, defused, fits, fitting};
use crate::words;

/// How many lines of a text are shown by default.
const LINES: usize = 24;

/// How many bytes of a text are wrapped at all, unless it is shown whole.
const WRAPPED: usize = 64 * 1024;

/// The width of the column with the numbers of events.
const NUMBER: usize = 6;

/// Text in the making.
#[expect(
    clippy::struct_excessive_bools,
    reason = "two of them are options, two say where the text stands"
)]
pub(super) struct Screen {
    /// The text that was not taken.
    out: String,
    /// Whether there was any text so far.
    is_empty: bool,
    /// Whether the text so far ends with an empty line.
    ends_blank: bool,
    width: usize,
    colour: bool,
    full: bool,
    /// How many lines of a text are shown before the part that is left out, and after it.
    head: usize,
    tail: usize,
}

impl Screen {
    pub(super) fn new(options: &ConversationOptions) -> Self {
        let lines = options.max_lines.unwrap_or(LINES);
        Self {
            out: String::new(),
            is_empty: true,
            ends_blank: false,
            width: options.style.width.max(40),
            colour: options.style.colour,
            full: options.full,
            head: lines - lines / 3,
            tail: lines / 3,
        }
    }

    /// The text since the last call of this function.
    pub(super) fn take(&mut self) -> String {
        std::mem::take(&mut self.out)
    }

    /// The length of the text that was not taken.
    pub(super) fn waiting_bytes(&self) -> usize {
        self.out.len()
    }

    /// The columns behind an indent.
    pub(super) fn room(&self, indent: usize) -> usize {
        self.width - indent
    }

    /// Whether a text from outside fits in one line.
    pub(super) fn fits(&self, indent: usize, text: &str) -> bool {
        fits(&printable(text), self.room(indent) - 1)
    }

    /// An empty line, unless there is one already or nothing yet.
    pub(super) fn blank(&mut self) {
        if !self.is_empty && !self.ends_blank {
            self.out.push('\n');
            self.ends_blank = true;
        }
    }

    /// One line from outside, wrapped.
    pub(super) fn line(&mut self, indent: usize, text: &str, style: Option<Style>) {
        for line in wrap(&printable(text), self.room(indent)) {
            self.push(indent, &line, style);
        }
    }

    /// A text from outside, cut to one line.
    pub(super) fn shortened(&self, indent: usize, text: &str) -> String {
        cut(&printable(text), self.room(indent) - 1)
    }

    /// What came of something, and what it is.
    pub(super) fn title(&mut self, label: &str, style: Style, text: &str) {
        let indent = label.width() + 2;
        let lines = wrap(&printable(text), self.room(indent));
        for (index, line) in lines.iter().enumerate() {
            if index == 0 {
                let label = self.painted(label, Some(style));
                self.push(0, &format!("{label}  {line}"), None);
            } else {
                self.push(indent, line, None);
            }
        }
    }

    /// The title of an event, with its number and facts about it.
    pub(super) fn numbered(&mut self, seq: u64, title: &str, style: Style, facts: &str) {
        let number = format!("{:<NUMBER$}", format!("#{seq}"));
        let facts = match facts {
            "" => String::new(),
            facts => format!("  {facts}"),
        };
        // The title is styled after wrapping, so that its escapes don't count.
        let text = format!("{}{}", printable(title), printable(&facts));
        let lines = wrap(&text, self.room(number.width()));
        for (index, line) in lines.iter().enumerate() {
            if index > 0 {
                self.push(number.width(), line, Some(FAINT));
                continue;
            }
            let end = printable(title).len().min(line.len());
            let (title, facts) = line.split_at(line.floor_char_boundary(end));
            let title = self.painted(title, Some(style));
            let facts = self.painted(facts, Some(FAINT));
            self.push(0, &format!("{number}{title}{facts}"), None);
        }
    }

    /// A text of several lines from outside, with a mark before each of them.
    pub(super) fn block(&mut self, indent: usize, text: &str, mark: Option<&str>) {
        let mark = mark.unwrap_or_default();
        let room = self.room(indent) - mark.width();
        let (head, skipped, tail) = self.ends(text);
        let mut lines = wrapped_lines(head, room);
        if skipped > 0 {
            lines.push(format!(
                "… {} bytes left out …",
                words::thousands(skipped as u64)
            ));
            lines.extend(wrapped_lines(tail, room));
        }
        let left_out = match lines.len().checked_sub(self.head + self.tail) {
            Some(more) if more > 1 && !self.full => self.head..self.head + more,
            _ => 0..0,
        };
        for (index, line) in lines.iter().enumerate() {
            if index == left_out.start && !left_out.is_empty() {
                let bytes: usize = lines[left_out.clone()].iter().map(String::len).sum();
                let (count, bytes) = (
                    left_out.len() as u64,
                    words::thousands((bytes + skipped) as u64),
                );
                let lines = words::count(count, "line");
                let text = format!("… {lines} ({bytes} bytes) left out; --full shows them …");
                self.push(indent, &text, Some(FAINT));
            }
            if !left_out.contains(&index) {
                self.push(indent, &format!("{mark}{line}"), None);
            }
        }
    }

    /// The beginning and the end of a text, and how many bytes between them are not wrapped.
    fn ends<'a>(&self, text: &'a str) -> (&'a str, usize, &'a str) {
        if self.full || text.len() <= WRAPPED {
            return (text, 0, "");
        }
        let head = text.floor_char_boundary(WRAPPED / 2);
        let tail = text.ceil_char_boundary(text.len() - WRAPPED / 2);
        (&text[..head], tail - head, &text[tail..])
    }

    /// One printable line that fits.
    pub(super) fn push(&mut self, indent: usize, text: &str, style: Option<Style>) {
        let text = defused(text);
        let text = self.painted(text.trim_end(), style);
        self.ends_blank = !self.is_empty && indent == 0 && text.is_empty();
        self.is_empty = false;
        self.out.push_str(&" ".repeat(indent));
        self.out.push_str(&text);
        self.out.push('\n');
    }

    fn painted(&self, text: &str, style: Option<Style>) -> String {
        match style.filter(|_| self.colour && !text.is_empty()) {
            Some(style) => format!("{style}{text}{style:#}"),
            None => text.to_owned(),
        }
    }
}

fn wrapped_lines(text: &str, room: usize) -> Vec<String> {
    let lines = text
        .trim_end()
        .lines()
        .map(|line| line.replace('\t', "    "));
    lines
        .flat_map(|line| wrap(&printable(&line), room))
        .collect()
}

/// Breaks a line at spaces where it can. What follows keeps the indent of the line.
fn wrap(text: &str, room: usize) -> Vec<String> {
    let blanks = text.len() - text.trim_start_matches(' ').len();
    let indent = " ".repeat(blanks.min(room / 2));
    let mut lines = Vec::new();
    let mut rest = text;
    let mut prefix = "";
    loop {
        let room = room - prefix.len();
        if fits(rest, room) {
            lines.push(format!("{prefix}{rest}"));
            return lines;
        }
        // One column is kept for the mark that stops a line from being a command to a CI service. At
        // least one character, so that there is an end.
        let first = rest.chars().next().map_or(1, char::len_utf8);
        let end = fitting(rest, room - 1).max(first);
        let space = rest[..end]
            .rfind(' ')
            .filter(|at| !rest[..*at].trim().is_empty());
        let (line, more) = match space {
            Some(at) => (&rest[..at], &rest[at + 1..]),
            None => rest.split_at(end),
        };
        lines.push(format!("{prefix}{line}"));
        (rest, prefix) = (more, &indent);
    }
}
