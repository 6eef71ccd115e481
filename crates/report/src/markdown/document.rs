//! A document of limited size: sections that lose whole rows if they don't fit.
//!
//! Its main type is [`Document`].

use crate::words;

/// The room for the line about rows that are left out.
const MORE: usize = 80;

/// A part of the document: a table or a list.
pub(super) struct Section {
    pub(super) before: String,
    /// One row each, with its line feed.
    pub(super) rows: Vec<String>,
    /// What a row is about, for the line about rows that are left out.
    pub(super) noun: &'static str,
    pub(super) after: &'static str,
}

/// A document in the making.
pub(super) struct Document {
    text: String,
    foot: String,
    note: String,
    /// The bytes that sections may still take.
    room: usize,
    is_cut: bool,
}

impl Document {
    /// A document with its first and last lines, which are always there, and the note that it is cut.
    pub(super) fn new(limit: usize, head: &str, foot: &str, note: &str) -> Self {
        let fixed = head.len() + foot.len() + note.len();
        Self {
            text: head.to_owned(),
            foot: foot.to_owned(),
            note: note.to_owned(),
            room: limit.saturating_sub(fixed),
            is_cut: false,
        }
    }

    /// Adds a section, as many of its rows as fit. A section without rows is nothing.
    pub(super) fn add(&mut self, section: Section) {
        let Section {
            before,
            rows,
            noun,
            after,
        } = section;
        if rows.is_empty() {
            return;
        }
        let Some(mut room) = self.room.checked_sub(before.len() + after.len() + MORE) else {
            self.is_cut = true;
            return;
        };
        let (start, all) = (self.text.len(), rows.len());
        self.text.push_str(&before);
        let mut shown = 0;
        for row in rows {
            let Some(left) = room.checked_sub(row.len()) else {
                break;
            };
            room = left;
            shown += 1;
            self.text.push_str(&row);
        }
        if shown < all {
            self.is_cut = true;
            let more = words::count((all - shown) as u64, &format!("more {noun}"));
            // An empty line ends a table.
            self.text.push_str(&format!("\n… and {more}\n"));
        }
        self.text.push_str(after);
        self.room -= self.text.len() - start;
    }

    pub(super) fn into_text(mut self) -> String {
        if self.is_cut {
            self.text.push_str(&self.note);
        }
        self.text + &self.foot
    }
}
