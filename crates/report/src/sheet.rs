//! Lines of labels and texts that fit a width, for terminals with and without UTF-8.
//!
//! Its main type is `Sheet`. It escapes all text, and its lines are never commands to a CI service.

use anstyle::Style;
use proctor_core::printable::printable;
use unicode_width::UnicodeWidthStr;

use crate::terminal::lines::{cut, defused, fits, fitting};

/// The width of the column of labels.
const LABEL: usize = 10;

/// The columns of a row before its name.
const ROW: usize = 10;

/// The maximum number of lines of one text.
const LINES: usize = 4;

/// The space between two columns.
const GAP: &str = "  ";

/// The width of the text, and what the terminal shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SheetStyle {
    /// The number of columns, at least 40.
    pub width: usize,
    pub colour: bool,
    /// Whether characters other than ASCII are shown.
    pub utf8: bool,
}

/// What follows the columns of a row.
#[derive(Debug, Clone, Copy)]
pub(crate) enum RowReason<'a> {
    Absent,
    /// A text that is cut, since another place has it whole.
    Line(&'a str),
    /// A text that wraps.
    Text(&'a str),
}

/// Text in the making.
pub(crate) struct Sheet {
    out: String,
    style: SheetStyle,
}

impl Sheet {
    pub(crate) fn new(style: SheetStyle) -> Self {
        let width = style.width.max(40);
        Self {
            out: String::new(),
            style: SheetStyle { width, ..style },
        }
    }

    pub(crate) fn into_text(self) -> String {
        if self.style.utf8 {
            return self.out;
        }
        // Each character becomes one, so that the columns stay.
        self.out.chars().map(ascii).collect()
    }

    /// Adds an empty line, except at the start or after another one.
    pub(crate) fn blank(&mut self) {
        if !self.out.is_empty() && !self.out.ends_with("\n\n") {
            self.out.push('\n');
        }
    }

    /// Adds a name, and facts beside it that wrap.
    pub(crate) fn title(&mut self, name: &str, facts: &str) {
        let name = cut(&printable(name), self.style.width);
        if name.width() + GAP.len() + 20 > self.style.width {
            self.push(0, &self.painted(&name, Style::new().bold()));
            self.texts(2, None, facts);
        } else {
            let label = (name.as_str(), Style::new().bold());
            self.texts(name.width() + GAP.len(), Some(label), facts);
        }
    }

    /// Adds one line, cut to the width.
    pub(crate) fn line(&mut self, indent: usize, text: &str) {
        let text = cut(&printable(text), self.room(indent) - 1);
        self.push(indent, &defused(&text));
    }

    /// Adds a text that wraps.
    pub(crate) fn text(&mut self, indent: usize, text: &str) {
        self.texts(indent, None, text);
    }

    /// Adds a label, and a text beside it that wraps.
    pub(crate) fn fact(&mut self, label: &str, text: &str) {
        self.texts(LABEL, Some((label, Style::new().bold())), text);
    }

    /// Adds a sentence that begins with an answer in a style. It is never cut: it must be read to its end.
    pub(crate) fn answer(&mut self, sentence: &str, style: Style) {
        let (word, _) = sentence.split_once(':').unwrap_or((sentence, ""));
        for (index, line) in wrap_all(&printable(sentence), self.room(0))
            .iter()
            .enumerate()
        {
            let line = defused(line);
            match line.strip_prefix(word).filter(|_| index == 0) {
                Some(rest) => self.push(0, &format!("{}{rest}", self.painted(word, style))),
                None => self.push(0, &line),
            }
        }
    }

    /// Adds a label, and one word in a style.
    pub(crate) fn fact_in(&mut self, label: &str, word: &str, style: Style) {
        let gap = " ".repeat(LABEL - label.width());
        let label = self.painted(label, Style::new().bold());
        let word = self.painted(word, style);
        self.push(0, &format!("{label}{gap}{word}"));
    }

    /// Adds a label, and a command that is never broken, since people copy it.
    pub(crate) fn command(&mut self, label: &str, command: &str) {
        let gap = " ".repeat(LABEL - label.width());
        let label = self.painted(label, Style::new().bold());
        self.push(0, &format!("{label}{gap}{}", printable(command)));
    }

    /// Adds a label, and a text that wraps in the column of names.
    pub(crate) fn entry(&mut self, (label, style): (&str, Style), text: &str) {
        self.texts(ROW, Some((&format!("  {label}"), style)), text);
    }

    /// Adds a text below a fact.
    pub(crate) fn more(&mut self, text: &str) {
        self.texts(LABEL, None, text);
    }

    /// Adds a row: a label, a name, columns, and a reason that follows them or stands below. A name that is wider than
    /// its room has a line of its own: two shortened names could look the same.
    pub(crate) fn row(
        &mut self,
        (label, style): (&str, Style),
        (name, name_room): (&str, usize),
        columns: &[(String, usize)],
        reason: RowReason<'_>,
    ) {
        let name = cut(&printable(name), self.room(ROW));
        let gap = " ".repeat(ROW - 2 - label.width());
        let head = format!("  {}{gap}", self.painted(label, style));
        let mut line = String::new();
        if name.width() > name_room {
            self.push(0, &format!("{head}{name}"));
            line.push_str(&" ".repeat(ROW + name_room));
        } else {
            line = format!("{head}{name}{}", " ".repeat(name_room - name.width()));
        }
        let mut used = ROW + name_room;
        for (column, room) in columns {
            let gap = " ".repeat(room.saturating_sub(column.width()));
            line.push_str(&format!("{GAP}{gap}{column}"));
            used += GAP.len() + column.width().max(*room);
        }
        let text = match reason {
            RowReason::Absent => "",
            RowReason::Line(text) | RowReason::Text(text) => text,
        };
        let text = printable(text);
        if fits(&text, self.room(used).saturating_sub(GAP.len())) {
            self.push(0, &format!("{line}{GAP}{text}"));
            return;
        }
        self.push(0, &line);
        match reason {
            RowReason::Absent => {}
            RowReason::Line(text) => self.line(ROW, text),
            RowReason::Text(text) => self.text(ROW, text),
        }
    }

    /// The room that these columns leave for the name of their row.
    pub(crate) fn room_beside(&self, columns: &[(String, usize)]) -> usize {
        let width = |(column, room): &(String, usize)| GAP.len() + column.width().max(*room);
        let used: usize = columns.iter().map(width).sum();
        self.style.width.saturating_sub(ROW + used)
    }

    /// Adds a line that is already laid out, without escapes or cuts.
    pub(crate) fn raw(&mut self, text: &str) {
        self.push(0, text);
    }

    /// The columns behind an indent.
    pub(crate) fn room(&self, indent: usize) -> usize {
        self.style.width.saturating_sub(indent).max(1)
    }

    pub(crate) fn painted(&self, text: &str, style: Style) -> String {
        if self.style.colour {
            format!("{style}{text}{style:#}")
        } else {
            text.to_owned()
        }
    }

    fn texts(&mut self, indent: usize, label: Option<(&str, Style)>, text: &str) {
        let mut lines = wrap(&printable(text), self.room(indent) - 1);
        if lines.len() > LINES {
            let rest = lines.split_off(LINES - 1).join(" ");
            lines.push(cut(&rest, self.room(indent) - 1));
        }
        for (index, line) in lines.iter().enumerate() {
            let line = defused(line);
            match label.filter(|_| index == 0) {
                Some((label, style)) => {
                    let gap = " ".repeat(indent - label.width().min(indent));
                    let label = self.painted(label, style);
                    self.push(0, &format!("{label}{gap}{line}"));
                }
                None => self.push(indent, &line),
            }
        }
    }

    fn push(&mut self, indent: usize, text: &str) {
        self.out.push_str(&" ".repeat(indent));
        self.out.push_str(text.trim_end());
        self.out.push('\n');
    }
}

/// The width of a text in columns, once it is escaped.
pub(crate) fn width(text: &str) -> usize {
    printable(text).width()
}

/// Breaks a text between words, and in words that are too long. Only the first lines of a long text are broken.
pub(crate) fn wrap(text: &str, room: usize) -> Vec<String> {
    broken(text, room, LINES)
}

/// The same for a text of any length.
fn wrap_all(text: &str, room: usize) -> Vec<String> {
    broken(text, room, usize::MAX)
}

fn broken(text: &str, room: usize, limit: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let mut rest = text.trim();
    while !fits(rest, room) && lines.len() <= limit {
        // At least one character, so that there is an end.
        let first = rest.chars().next().map_or(1, char::len_utf8);
        let end = fitting(rest, room).max(first);
        // A space right behind the line is a good place, too.
        let space = if rest[end..].starts_with(' ') {
            Some(end)
        } else {
            rest[..end].rfind(' ').filter(|at| *at > 0)
        };
        let (line, more) = rest.split_at(space.unwrap_or(end));
        lines.push(line.trim_end().to_owned());
        rest = more.trim_start();
    }
    lines.push(rest.to_owned());
    lines
}

/// The nearest character that every terminal shows.
fn ascii(c: char) -> char {
    match c {
        c if c.is_ascii() => c,
        '…' => '~',
        '–' | '−' | '·' => '-',
        '→' | '≥' => '>',
        '×' => 'x',
        'µ' => 'u',
        _ => '?',
    }
}
