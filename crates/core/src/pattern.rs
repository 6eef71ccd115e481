//! Regular expressions of the suite format: RE2 syntax, unanchored.
//!
//! Its main type is [`Pattern`]. RE2 (Go) and this crate's engine agree on almost everything;
//! what differs is translated here, so that a pattern selects the same names in both.

use std::fmt::{self, Write as _};

use regex::{Regex, RegexBuilder};

/// The maximum memory of a compiled pattern, since patterns come from untrusted files.
const COMPILED_BYTES: usize = 1 << 20;

/// A compiled pattern, with its source.
#[derive(Clone)]
pub struct Pattern {
    written: String,
    regex: Regex,
}

impl serde::Serialize for Pattern {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&self.written)
    }
}

/// Why a pattern does not compile.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PatternError {
    /// The syntax is wrong.
    #[error("{0}")]
    Syntax(String),
    /// Compiled, it would be too large.
    #[error("the compiled pattern needs more than {COMPILED_BYTES} bytes")]
    TooLarge,
    /// RE2 supports it, but this engine does not.
    #[error("`{0}` is not supported")]
    Unsupported(&'static str),
}

impl Pattern {
    pub fn compile(written: &str) -> Result<Self, PatternError> {
        let regex = RegexBuilder::new(&translate(written)?)
            .size_limit(COMPILED_BYTES)
            .build()
            .map_err(|error| match error {
                regex::Error::CompiledTooBig(_) => PatternError::TooLarge,
                other => PatternError::Syntax(last_line(&other.to_string())),
            })?;
        Ok(Self {
            written: written.to_owned(),
            regex,
        })
    }

    /// A pattern for exactly this text.
    pub fn escape(text: &str) -> String {
        regex::escape(text)
    }

    /// Whether the pattern occurs anywhere in `text`.
    pub fn is_match(&self, text: &str) -> bool {
        self.regex.is_match(text)
    }

    /// Whether every string seems to match, tested with strings that have nothing in common.
    pub fn matches_every_text(&self) -> bool {
        let odd = ["", "\n", "a b", "\u{1}\n\u{e000}", "7", "{\"é\": -0.5}\r\n"];
        odd.iter().all(|text| self.is_match(text))
    }

    /// The captured groups, the whole match first; `None` if the pattern does not occur in `text`.
    pub fn captures<'t>(&self, text: &'t str) -> Option<Vec<Option<&'t str>>> {
        let captures = self.regex.captures(text)?;
        let groups = captures.iter().map(|group| group.map(|m| m.as_str()));
        Some(groups.collect())
    }

    /// The number of a group, by its number or name, if the pattern has it.
    pub fn group(&self, name: &str) -> Option<usize> {
        let by_name = self
            .regex
            .capture_names()
            .position(|known| known == Some(name));
        by_name.or_else(|| name.parse().ok().filter(|n| *n < self.regex.captures_len()))
    }

    /// Whether it has a part in parentheses that is captured.
    pub fn has_groups(&self) -> bool {
        self.regex.captures_len() > 1
    }

    /// The pattern as it was written.
    pub fn as_str(&self) -> &str {
        &self.written
    }
}

impl fmt::Debug for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Pattern({:?})", self.written)
    }
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.written == other.written
    }
}

/// The engine draws the pattern over several lines; the last one says what is wrong.
fn last_line(message: &str) -> String {
    let line = message.lines().last().unwrap_or(message).trim();
    line.strip_prefix("error: ").unwrap_or(line).to_owned()
}

/// Rewrites RE2 syntax into this engine's where the two differ.
fn translate(written: &str) -> Result<String, PatternError> {
    let mut out = String::with_capacity(written.len() + 8);
    let mut rest = written;
    let mut class = ClassState::Outside;
    while let Some(c) = rest.chars().next() {
        let after = &rest[c.len_utf8()..];
        rest = match (c, class) {
            ('\\', _) => {
                let in_class = class != ClassState::Outside;
                if in_class {
                    class = ClassState::Inside;
                }
                translate_escape(after, in_class, &mut out)?
            }
            ('[', ClassState::Outside) => {
                class = ClassState::First;
                out.push('[');
                if let Some(negated) = after.strip_prefix('^') {
                    out.push('^');
                    negated
                } else {
                    after
                }
            }
            ('[', _) => {
                class = ClassState::Inside;
                if let Some(end) = posix_class_end(after) {
                    out.push('[');
                    out.push_str(&after[..end]);
                    &after[end..]
                } else {
                    out.push_str(r"\[");
                    after
                }
            }
            (']', ClassState::Inside) => {
                class = ClassState::Outside;
                out.push(']');
                after
            }
            // A `]` in first place is a member of the class.
            (']', ClassState::First) => {
                class = ClassState::Inside;
                out.push_str(r"\]");
                after
            }
            // Doubled, these are set operators in this engine and plain members in RE2.
            ('&' | '~', ClassState::First | ClassState::Inside) => {
                class = ClassState::Inside;
                out.push('\\');
                out.push(c);
                after
            }
            // A member in first place, the lower end of a range behind it perhaps.
            ('-', ClassState::First) => {
                class = ClassState::Inside;
                out.push_str(r"\-");
                after
            }
            // A range that ends in `-`.
            ('-', ClassState::Inside) if after.starts_with('-') => {
                out.push_str(r"-\-");
                &after[1..]
            }
            ('{', ClassState::Outside) if !starts_repetition(after) => {
                out.push_str(r"\{");
                after
            }
            (_, state) => {
                if state == ClassState::First {
                    class = ClassState::Inside;
                }
                out.push(c);
                after
            }
        };
    }
    Ok(out)
}

#[derive(Clone, Copy, PartialEq)]
enum ClassState {
    Outside,
    /// Just after `[` or `[^`.
    First,
    Inside,
}

/// Translates an escape after its backslash, and returns the rest.
fn translate_escape<'a>(
    after: &'a str,
    in_class: bool,
    out: &mut String,
) -> Result<&'a str, PatternError> {
    let Some(c) = after.chars().next() else {
        return Err(PatternError::Syntax(
            "the pattern ends with a single backslash".to_owned(),
        ));
    };
    let rest = &after[c.len_utf8()..];
    match c {
        // These are ASCII in RE2, Unicode here.
        'd' => out.push_str(if in_class { "0-9" } else { "[0-9]" }),
        'w' => out.push_str(if in_class {
            "0-9A-Za-z_"
        } else {
            "[0-9A-Za-z_]"
        }),
        's' => out.push_str(if in_class {
            r"\t\n\f\r "
        } else {
            r"[\t\n\f\r ]"
        }),
        'D' => out.push_str("[^0-9]"),
        'W' => out.push_str("[^0-9A-Za-z_]"),
        'S' => out.push_str(r"[^\t\n\f\r ]"),
        'b' if !in_class => out.push_str(r"(?-u:\b)"),
        'B' if !in_class => out.push_str(r"(?-u:\B)"),
        'Q' if !in_class => {
            let (literal, rest) = rest.split_once(r"\E").unwrap_or((rest, ""));
            out.push_str(&regex::escape(literal));
            return Ok(rest);
        }
        'C' => return Err(PatternError::Unsupported(r"\C")),
        // RE2 reads octal where this engine sees a back reference.
        '0'..='7' if c == '0' || rest.starts_with(|d: char| ('0'..='7').contains(&d)) => {
            let len = after
                .bytes()
                .take(3)
                .take_while(|b| (b'0'..=b'7').contains(b))
                .count();
            let code = u32::from_str_radix(&after[..len], 8).unwrap_or(0);
            let _ = write!(out, r"\x{{{code:x}}}");
            return Ok(&after[len..]);
        }
        // The braces belong to the escape, whatever stands in them.
        'p' | 'P' | 'x' if rest.starts_with('{') => {
            let end = rest.find('}').map_or(rest.len(), |at| at + 1);
            out.push('\\');
            out.push(c);
            out.push_str(&rest[..end]);
            return Ok(&rest[end..]);
        }
        _ => {
            out.push('\\');
            out.push(c);
        }
    }
    Ok(rest)
}

/// The length of `:alpha:]` if the class member that starts here is a POSIX class.
fn posix_class_end(after: &str) -> Option<usize> {
    let name = after.strip_prefix(':')?;
    let end = name.find(":]")?;
    name[..end]
        .bytes()
        .all(|b| b.is_ascii_lowercase() || b == b'^')
        .then_some(end + 3)
}

/// Whether a `{` starts a repetition: `n}`, `n,}` or `n,m}`.
fn starts_repetition(after: &str) -> bool {
    let Some((inside, _)) = after.split_once('}') else {
        return false;
    };
    let (low, high) = inside.split_once(',').unwrap_or((inside, ""));
    let digits = |s: &str| s.bytes().all(|b| b.is_ascii_digit());
    !low.is_empty() && digits(low) && digits(high)
}

#[cfg(test)]
mod tests;
