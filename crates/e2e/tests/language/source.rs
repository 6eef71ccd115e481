//! The texts of Rust source that users can read: string literals, and doc comments where they are help.
//!
//! Its main type is [`Token`]. It splits source as far as that needs, and skips items for tests.

/// A part of Rust source.
#[derive(Debug, PartialEq)]
pub(crate) enum Token {
    /// The value of a string literal.
    Literal(String),
    /// A line of a doc comment.
    Doc(String),
    Word(String),
    Mark(char),
}

/// The string literals of source outside of tests; its doc comments too, if they are help.
pub(crate) fn texts(source: &str, is_help: bool) -> Vec<String> {
    let (mut texts, mut doc) = (Vec::new(), Vec::new());
    for token in without_tests(tokens(source)) {
        if let Token::Doc(line) = token {
            doc.push(line);
            continue;
        }
        if is_help && !doc.is_empty() {
            texts.push(doc.join(" "));
        }
        doc.clear();
        if let Token::Literal(text) = token {
            texts.push(text);
        }
    }
    texts
}

fn without_tests(tokens: Vec<Token>) -> Vec<Token> {
    let marker = tokens_of_marker();
    let mut kept = Vec::new();
    let mut rest = tokens.into_iter().peekable();
    while let Some(token) = rest.next() {
        kept.push(token);
        if kept.ends_with(&marker) {
            kept.truncate(kept.len() - marker.len());
            let mut depth = 0;
            for token in rest.by_ref() {
                match token {
                    Token::Mark('{' | '(' | '[') => depth += 1,
                    Token::Mark(')' | ']') => depth -= 1,
                    Token::Mark('}') => {
                        depth -= 1;
                        if depth == 0 {
                            break;
                        }
                    }
                    Token::Mark(';') if depth == 0 => break,
                    _ => {}
                }
            }
        }
    }
    kept
}

fn tokens_of_marker() -> Vec<Token> {
    tokens("#[cfg(test)]")
}

fn tokens(source: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut rest = source;
    while let Some(letter) = rest.chars().next() {
        rest = if letter.is_whitespace() {
            &rest[letter.len_utf8()..]
        } else if let Some(comment) = rest.strip_prefix("//") {
            let (line, after) = comment.split_once('\n').unwrap_or((comment, ""));
            let doc = line.strip_prefix('/').filter(|line| !line.starts_with('/'));
            if let Some(line) = doc.or_else(|| line.strip_prefix('!')) {
                tokens.push(Token::Doc(line.trim().to_owned()));
            }
            after
        } else if let Some(block) = rest.strip_prefix("/*") {
            block.split_once("*/").map_or("", |(_, after)| after)
        } else if let Some((text, after)) = literal(rest) {
            tokens.push(Token::Literal(text));
            after
        } else if let Some(after) = character(rest) {
            after
        } else if is_word(letter) {
            let end = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
            tokens.push(Token::Word(rest[..end].to_owned()));
            &rest[end..]
        } else {
            tokens.push(Token::Mark(letter));
            &rest[letter.len_utf8()..]
        };
    }
    tokens
}

/// The string literal that source starts with, and what is behind it.
fn literal(source: &str) -> Option<(String, &str)> {
    let plain = source.strip_prefix(['b', 'c']).unwrap_or(source);
    if let Some(raw) = plain.strip_prefix('r') {
        let inside = raw.trim_start_matches('#');
        let end = format!("\"{}", "#".repeat(raw.len() - inside.len()));
        let (text, after) = inside.strip_prefix('"')?.split_once(&end)?;
        return Some((text.to_owned(), after));
    }
    let inside = plain.strip_prefix('"')?;
    let mut text = String::new();
    let mut letters = inside.char_indices();
    while let Some((at, letter)) = letters.next() {
        match letter {
            '"' => return Some((text, &inside[at + 1..])),
            '\\' => match letters.next()?.1 {
                'n' | 'r' | 't' => text.push(' '),
                // The line break and the indentation that follow a backslash are not part of the text.
                '\n' => {
                    let behind = letters.as_str();
                    let indentation = behind.len() - behind.trim_start().len();
                    for _ in 0..indentation {
                        letters.next();
                    }
                }
                escaped => text.push(escaped),
            },
            letter => text.push(letter),
        }
    }
    None
}

/// What is behind the character literal that source starts with; a lifetime is not one.
fn character(source: &str) -> Option<&str> {
    let inside = source.strip_prefix('\'')?;
    let mut letters = inside.chars();
    if letters.next()? == '\\' {
        letters.next()?;
        return letters.as_str().split_once('\'').map(|(_, after)| after);
    }
    letters.as_str().strip_prefix('\'')
}

fn is_word(letter: char) -> bool {
    letter.is_alphanumeric() || letter == '_'
}
