//! Finds the members of objects in JSON text that is known to be well-formed.
//!
//! Its main type is [`Object`]. Of two members with one key the last counts, as in most parsers.

use super::Insertion;

/// An object in a message: where its `{` is.
pub(super) struct Object<'a> {
    message: &'a [u8],
    open: usize,
}

impl<'a> Object<'a> {
    /// The message itself, if it is an object.
    pub(super) fn outermost(message: &'a [u8]) -> Option<Self> {
        Self::at(message, skip_space(message, 0))
    }

    fn at(message: &'a [u8], open: usize) -> Option<Self> {
        (message.get(open) == Some(&b'{')).then_some(Self { message, open })
    }

    /// Where the value of a member begins.
    pub(super) fn member(&self, key: &str) -> Option<usize> {
        let message = self.message;
        let mut found = None;
        let mut at = skip_space(message, self.open + 1);
        while message.get(at) == Some(&b'"') {
            let end = skip_string(message, at);
            let name = serde_json::from_slice::<String>(message.get(at..end)?);
            // Over the colon, to the value.
            let value = skip_space(message, skip_space(message, end) + 1);
            if name.is_ok_and(|name| name == key) {
                found = Some(value);
            }
            at = skip_space(message, skip_value(message, value));
            if message.get(at) == Some(&b',') {
                at = skip_space(message, at + 1);
            }
        }
        found
    }

    /// A member that is an object.
    pub(super) fn object(&self, key: &str) -> Option<Self> {
        Self::at(self.message, self.member(key)?)
    }

    /// Puts members at the beginning of the object.
    pub(super) fn insertion(&self, members: &[String]) -> Option<Insertion> {
        if members.is_empty() {
            return None;
        }
        let mut text = members.join(",");
        let next = skip_space(self.message, self.open + 1);
        if self.message.get(next) != Some(&b'}') {
            text.push(',');
        }
        Some(Insertion {
            at: self.open + 1,
            text,
        })
    }
}

fn skip_space(message: &[u8], from: usize) -> usize {
    let space = |byte: &&u8| matches!(byte, b' ' | b'\t' | b'\r' | b'\n');
    let rest = message.get(from..).unwrap_or_default();
    from + rest.iter().take_while(space).count()
}

/// The place after the string that begins here.
fn skip_string(message: &[u8], from: usize) -> usize {
    let mut at = from + 1;
    while let Some(byte) = message.get(at) {
        match byte {
            b'"' => return at + 1,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    message.len()
}

/// The place after the value that begins here.
fn skip_value(message: &[u8], from: usize) -> usize {
    let mut depth = 0_usize;
    let mut at = from;
    while let Some(byte) = message.get(at) {
        match byte {
            b'"' => {
                at = skip_string(message, at);
                if depth == 0 {
                    return at;
                }
                continue;
            }
            b'{' | b'[' => depth += 1,
            b'}' | b']' | b',' | b' ' | b'\t' | b'\r' | b'\n' if depth == 0 => return at,
            b'}' | b']' => {
                depth -= 1;
                if depth == 0 {
                    return at + 1;
                }
            }
            _ => {}
        }
        at += 1;
    }
    at
}
