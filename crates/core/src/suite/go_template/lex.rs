//! Splits a template into text and actions, which are lists of tokens. Blanks beside `{{-` and `-}}`
//! are removed, and so are comments.

use super::TemplateFault;

/// A part of a template, in the order of the text.
#[derive(Debug, PartialEq)]
pub(super) enum TemplateItem {
    Text(String),
    Action {
        at: usize,
        tokens: Vec<LocatedToken>,
    },
}

/// A token and its byte range.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct LocatedToken {
    pub(super) token: TemplateToken,
    pub(super) at: usize,
    pub(super) len: usize,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum TemplateToken {
    /// `.Name`, or `$.Name`.
    Field {
        name: String,
        of_root: bool,
    },
    Dot,
    /// A keyword or a function.
    Word(String),
    Text(String),
    Number(i64),
    Pipe,
    Open,
    Close,
}

/// The parts of a template.
pub(super) fn items(text: &str) -> Result<Vec<TemplateItem>, TemplateFault> {
    let mut items = Vec::new();
    let mut at = 0;
    let mut trims = false;
    while let Some(found) = text[at..].find("{{") {
        let start = at + found;
        let mut lexer = TemplateLexer {
            text,
            action: start,
            at: start + 2,
        };
        let before = &text[at..start];
        let before = if trims {
            before.trim_start_matches(blank)
        } else {
            before
        };
        let before = if lexer.trims_left() {
            before.trim_end_matches(blank)
        } else {
            before
        };
        if !before.is_empty() {
            items.push(TemplateItem::Text(before.to_owned()));
        }
        let tokens = lexer.action(&mut trims)?;
        if let Some(tokens) = tokens {
            items.push(TemplateItem::Action { at: start, tokens });
        }
        at = lexer.at;
    }
    let rest = &text[at..];
    let rest = if trims {
        rest.trim_start_matches(blank)
    } else {
        rest
    };
    if !rest.is_empty() {
        items.push(TemplateItem::Text(rest.to_owned()));
    }
    Ok(items)
}

fn blank(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\r' | '\n')
}

struct TemplateLexer<'a> {
    text: &'a str,
    action: usize,
    at: usize,
}

impl<'a> TemplateLexer<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn fault(&self, at: usize, len: usize, message: impl Into<String>) -> TemplateFault {
        TemplateFault {
            at,
            len,
            action: self.action,
            message: message.into(),
            hint: None,
        }
    }

    fn unclosed(&self) -> TemplateFault {
        self.fault(self.action, 2, "unclosed `{{`")
    }

    /// Consumes a trim marker, which is followed by a blank.
    fn trims_left(&mut self) -> bool {
        let trims = self
            .rest()
            .strip_prefix('-')
            .is_some_and(|rest| rest.starts_with(blank));
        self.at += usize::from(trims);
        trims
    }

    /// The tokens of an action; `None` for a comment.
    fn action(&mut self, trims: &mut bool) -> Result<Option<Vec<LocatedToken>>, TemplateFault> {
        let inside = self.rest().trim_start_matches(blank);
        if inside.starts_with("/*") {
            return self.comment(trims).map(|()| None);
        }
        let mut tokens = Vec::new();
        loop {
            let trimmed = self.rest().trim_start_matches(blank);
            let blanks = self.rest().len() - trimmed.len();
            self.at += blanks;
            *trims = blanks > 0 && trimmed.starts_with("-}}");
            if *trims || trimmed.starts_with("}}") {
                self.at += if *trims { 3 } else { 2 };
                return Ok(Some(tokens));
            }
            let at = self.at;
            let token = self.token()?;
            let len = self.at - at;
            tokens.push(LocatedToken { token, at, len });
        }
    }

    fn comment(&mut self, trims: &mut bool) -> Result<(), TemplateFault> {
        let Some(end) = self.rest().find("*/") else {
            return Err(self.unclosed());
        };
        self.at += end + 2;
        *trims = self.rest().starts_with(blank)
            && self.rest().trim_start_matches(blank).starts_with("-}}");
        let close = if *trims { "-}}" } else { "}}" };
        let rest = self.rest().trim_start_matches(blank);
        if !rest.starts_with(close) {
            return Err(self.fault(self.action, 2, "a comment must be alone in its braces"));
        }
        self.at = self.text.len() - rest.len() + close.len();
        Ok(())
    }

    fn token(&mut self) -> Result<TemplateToken, TemplateFault> {
        let rest = self.rest();
        let Some(first) = rest.chars().next() else {
            return Err(self.unclosed());
        };
        match first {
            '|' => Ok(self.take(1, TemplateToken::Pipe)),
            '(' => Ok(self.take(1, TemplateToken::Open)),
            ')' => Ok(self.take(1, TemplateToken::Close)),
            '.' => self.field(rest, false),
            '$' if rest[1..].starts_with('.') => self.field(&rest[1..], true),
            '$' => {
                let message = "variables are not supported in the templates of agent files";
                Err(self.fault(self.at, name_len(&rest[1..]) + 1, message))
            }
            '"' => self.quoted(rest),
            '`' => match rest[1..].split_once('`') {
                Some((text, _)) => {
                    Ok(self.take(text.len() + 2, TemplateToken::Text(text.to_owned())))
                }
                None => Err(self.fault(self.at, 1, "unclosed string in backticks")),
            },
            c if c.is_ascii_digit()
                || (c == '-' && rest[1..].starts_with(|c: char| c.is_ascii_digit())) =>
            {
                self.number(rest)
            }
            c if c.is_alphabetic() || c == '_' => {
                let len = name_len(rest);
                Ok(self.take(len, TemplateToken::Word(rest[..len].to_owned())))
            }
            c => Err(self.fault(
                self.at,
                c.len_utf8(),
                format!("unexpected `{c}` in a template"),
            )),
        }
    }

    fn take(&mut self, len: usize, token: TemplateToken) -> TemplateToken {
        self.at += len;
        token
    }

    fn field(&mut self, rest: &str, of_root: bool) -> Result<TemplateToken, TemplateFault> {
        let len = name_len(&rest[1..]);
        let skipped = usize::from(of_root) + 1 + len;
        if rest[1 + len..].starts_with('.') {
            let message = format!("`{}` has no fields", &rest[..=len]);
            return Err(self.fault(self.at, skipped + 1, message));
        }
        let name = rest[1..=len].to_owned();
        let token = match (name.is_empty(), of_root) {
            (true, false) => TemplateToken::Dot,
            _ => TemplateToken::Field { name, of_root },
        };
        Ok(self.take(skipped, token))
    }

    fn number(&mut self, rest: &str) -> Result<TemplateToken, TemplateFault> {
        let digits = rest[1..].find(|c: char| !c.is_ascii_alphanumeric() && c != '.');
        let len = digits.map_or(rest.len(), |len| len + 1);
        let written = &rest[..len];
        let number = written.parse().map_err(|_| {
            let message = format!("`{written}` is not an integer");
            self.fault(self.at, len, message)
        })?;
        Ok(self.take(len, TemplateToken::Number(number)))
    }

    /// A text in double quotes, with Go's escapes.
    fn quoted(&mut self, rest: &str) -> Result<TemplateToken, TemplateFault> {
        let mut text = String::new();
        let mut chars = rest.char_indices().skip(1);
        while let Some((at, c)) = chars.next() {
            match c {
                '"' => return Ok(self.take(at + 1, TemplateToken::Text(text))),
                '\n' => break,
                '\\' => {
                    let Some((c, len)) = escape(&rest[at + 1..]) else {
                        let message = "unknown escape sequence in a string";
                        return Err(self.fault(self.at + at, 1, message));
                    };
                    text.push(c);
                    // Escapes are ASCII, so this many characters.
                    for _ in 0..len {
                        chars.next();
                    }
                }
                c => text.push(c),
            }
        }
        Err(self.fault(self.at, 1, "unclosed string in quotes"))
    }
}

/// The character of an escape, and its number of bytes after the backslash.
fn escape(rest: &str) -> Option<(char, usize)> {
    let plain = match rest.chars().next()? {
        'a' => '\x07',
        'b' => '\x08',
        'f' => '\x0c',
        'n' => '\n',
        'r' => '\r',
        't' => '\t',
        'v' => '\x0b',
        c @ ('\\' | '"' | '\'') => c,
        'x' => return hex(rest, 2),
        'u' => return hex(rest, 4),
        'U' => return hex(rest, 8),
        _ => return None,
    };
    Some((plain, 1))
}

fn hex(rest: &str, digits: usize) -> Option<(char, usize)> {
    let digits_given = rest.get(1..=digits)?;
    let code = u32::from_str_radix(digits_given, 16).ok()?;
    Some((char::from_u32(code)?, digits + 1))
}

fn name_len(text: &str) -> usize {
    let end = text.find(|c: char| !c.is_alphanumeric() && c != '_');
    end.unwrap_or(text.len())
}
