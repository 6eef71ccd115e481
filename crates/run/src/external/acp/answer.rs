//! Assembles the final answer of an agent, which is its last message.
//!
//! Main type: [`AnswerAssembler`]. Agents write notes before they answer, some before their first
//! call and some between calls. A message ends where a call or another message begins.

/// The maximum length of an answer.
const LONGEST: usize = 4 << 20;

/// Assembles the last message from its chunks.
#[derive(Debug, Default)]
pub(super) struct AnswerAssembler {
    message: String,
    /// The previous message, which is the answer if the last one is blank.
    before: String,
    id: Option<String>,
    is_over: bool,
    is_cut: bool,
}

impl AnswerAssembler {
    /// Adds a chunk of a message.
    pub(super) fn piece(&mut self, id: Option<&str>, text: &str) {
        if self.is_over || id != self.id.as_deref() {
            let message = std::mem::take(&mut self.message);
            if !message.trim().is_empty() {
                self.before = message;
            }
            self.id = id.map(str::to_owned);
            self.is_over = false;
            self.is_cut = false;
        }
        let room = LONGEST - self.message.len();
        self.is_cut |= text.len() > room;
        let end = text.floor_char_boundary(room);
        self.message.push_str(&text[..end]);
    }

    /// Ends the message, because something else began.
    pub(super) fn over(&mut self) {
        self.is_over = true;
    }

    /// Whether the last message exceeded the maximum length.
    pub(super) fn is_cut(&self) -> bool {
        self.is_cut
    }

    /// The last message that is not blank.
    pub(super) fn text(&self) -> Option<String> {
        [&self.message, &self.before]
            .into_iter()
            .map(|text| text.trim())
            .find(|text| !text.is_empty())
            .map(str::to_owned)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_message_is_the_answer() {
        const CALL: (Option<&str>, &str) = (None, "|");
        let check = |pieces: &[(Option<&str>, &str)], expected: Option<&str>| {
            let mut answer = AnswerAssembler::default();
            for piece in pieces {
                if *piece == CALL {
                    answer.over();
                } else {
                    answer.piece(piece.0, piece.1);
                }
            }
            assert_eq!(answer.text().as_deref(), expected, "{pieces:?}");
        };
        check(&[], None);
        check(&[(None, " \n")], None);
        check(&[(None, "4"), (None, "2")], Some("42"));
        // The adapter's own note has no id, and no call follows.
        check(&[(None, "Warning!"), (Some("m1"), "42")], Some("42"));
        check(
            &[(Some("m1"), "I will look."), CALL, (Some("m1"), "42")],
            Some("42"),
        );
        check(
            &[
                (Some("m1"), "I will look."),
                (Some("m2"), "4"),
                (Some("m2"), "2"),
            ],
            Some("42"),
        );
        check(&[(None, "42"), CALL], Some("42"));
        check(&[(None, "42"), CALL, (None, "\n")], Some("42"));
    }

    #[test]
    fn an_endless_message_is_cut_at_a_character() {
        let mut answer = AnswerAssembler::default();
        for _ in 0..3 {
            answer.piece(None, &"ä".repeat(1 << 20));
        }
        assert!(answer.is_cut());
        assert_eq!(answer.text().map(|text| text.len()), Some(LONGEST));
        answer.over();
        answer.piece(None, "42");
        assert!(!answer.is_cut());
    }
}
