//! A reason without the parts that differ from trial to trial: numbers, quoted values and ids.
//!
//! The main function is [`pattern`]. Names in backticks stay: a call of another tool is another cause.

/// What stands for a part that was removed.
const GAP: &str = "…";

/// A part of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Piece {
    pub(super) text: String,
    /// Whether it is a number, a quoted value or an id.
    pub(super) is_gap: bool,
}

/// The text with `…` for each number, quoted value and id.
pub fn pattern(text: &str) -> String {
    shown(&pieces(text), |_| true)
}

/// The text of some pieces, with `…` for the gaps that are hidden.
pub(super) fn shown(pieces: &[Piece], is_hidden: impl Fn(usize) -> bool) -> String {
    let texts = pieces.iter().enumerate().map(|(index, piece)| {
        if piece.is_gap && is_hidden(index) {
            GAP
        } else {
            piece.text.as_str()
        }
    });
    texts.collect()
}

/// The pieces of a text. Two gaps are never next to each other.
pub(super) fn pieces(text: &str) -> Vec<Piece> {
    let mut out = Pieces(Vec::new());
    let mut rest = text;
    let mut before = None;
    while let Some(first) = rest.chars().next() {
        let quote = matches!(first, '"' | '\'').then(|| quoted(rest, before));
        let end = if let Some(Some(end)) = quote {
            out.fixed(&rest[..1]);
            out.gap(&rest[1..end - 1]);
            out.fixed(&rest[end - 1..end]);
            end
        } else if is_word(first) && first != '.' {
            let end = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
            // A full stop after a word does not belong to it.
            let end = rest[..end].trim_end_matches('.').len();
            out.word(&rest[..end]);
            end
        } else {
            out.fixed(&rest[..first.len_utf8()]);
            first.len_utf8()
        };
        before = rest[..end].chars().next_back();
        rest = &rest[end..];
    }
    out.0
}

struct Pieces(Vec<Piece>);

impl Pieces {
    fn fixed(&mut self, text: &str) {
        self.add(text, false);
    }

    fn gap(&mut self, text: &str) {
        self.add(text, true);
    }

    fn add(&mut self, text: &str, is_gap: bool) {
        match self.0.last_mut() {
            Some(last) if last.is_gap == is_gap => last.text.push_str(text),
            _ => self.0.push(Piece {
                text: text.to_owned(),
                is_gap,
            }),
        }
    }

    /// Adds a word with its numbers as gaps, or as one gap if it is an id or a duration.
    fn word(&mut self, word: &str) {
        if is_uuid(word) || is_duration(word) {
            self.gap(word);
            return;
        }
        for part in word.split_inclusive(['-', '_', '.']) {
            let (name, separator) = match part.char_indices().next_back() {
                Some((at, '-' | '_' | '.')) => part.split_at(at),
                _ => (part, ""),
            };
            if is_id(name) {
                self.gap(name);
            } else {
                for c in name.chars() {
                    self.add(c.encode_utf8(&mut [0; 4]), c.is_ascii_digit());
                }
            }
            // `1.5` is one gap.
            let in_number = separator == "." && self.0.last().is_some_and(|last| last.is_gap);
            if !separator.is_empty() {
                self.add(separator, in_number);
            }
        }
    }
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '-' | '.')
}

/// The length of the quoted value that a text begins with. An apostrophe in a word quotes nothing.
fn quoted(text: &str, before: Option<char>) -> Option<usize> {
    let quote = text.chars().next()?;
    if quote == '\'' && before.is_some_and(char::is_alphanumeric) {
        return None;
    }
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        let ends = c == quote && !escaped;
        let is_apostrophe = || {
            let next = text[at + 1..].chars().next();
            quote == '\'' && next.is_some_and(char::is_alphanumeric)
        };
        if ends && !is_apostrophe() {
            return Some(at + 1);
        }
        escaped = c == '\\' && !escaped;
    }
    None
}

fn is_uuid(word: &str) -> bool {
    let parts: Vec<&str> = word.split('-').collect();
    let lengths: Vec<usize> = parts.iter().map(|part| part.len()).collect();
    lengths == [8, 4, 4, 4, 12] && parts.iter().all(|part| is_hex(part))
}

/// Whether a word is a number with a unit of time: the same wait is `980ms` or `1.2s`.
fn is_duration(word: &str) -> bool {
    let unit = word.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
    unit.len() < word.len() && matches!(unit, "ns" | "µs" | "us" | "ms" | "s" | "m" | "min" | "h")
}

/// Whether a part of a word is generated: a hash, or letters and digits in turns.
fn is_id(part: &str) -> bool {
    let digits = part.bytes().filter(u8::is_ascii_digit).count();
    if digits == 0 {
        return false;
    }
    let bytes = part.as_bytes();
    let turns = bytes
        .windows(2)
        .filter(|pair| pair[0].is_ascii_digit() != pair[1].is_ascii_digit());
    let turns = turns.count();
    (part.len() >= 6 && is_hex(part)) || (part.len() >= 5 && digits >= 2 && turns >= 2)
}

fn is_hex(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_hexdigit())
}
