//! Texts from outside as inline code.
//!
//! In a code span Markdown has no elements, links, emphasis or entities, and GitHub no mentions. What is
//! left are backticks, which end the span, pipes, which end the cell of a table, and line breaks, which
//! end the paragraph.

use proctor_core::printable::printable;

/// The maximum number of characters of a name.
const NAME: usize = 120;

/// The maximum number of characters of a reason.
const REASON: usize = 300;

/// A name, a path or a command.
pub(crate) fn code(text: &str) -> String {
    spans(text, NAME)
}

/// A reason, which may be longer.
pub(crate) fn reason(text: &str) -> String {
    spans(text, REASON)
}

fn spans(text: &str, limit: usize) -> String {
    let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    let shown = lines.join(" ");
    let shown = printable(shown.trim_matches(' '));
    let shown = match shown.char_indices().nth(limit) {
        Some((end, _)) => format!("{}…", &shown[..end]),
        None => shown.into_owned(),
    };
    if shown.is_empty() {
        return "(empty)".to_owned();
    }
    // A pipe can be escaped in a code span, but parsers differ on a backslash before it.
    let spans: Vec<String> = shown.split('|').map(span).collect();
    spans.join("&#124;")
}

/// One code span, in more backticks than the text has in a row.
fn span(text: &str) -> String {
    if text.is_empty() {
        return String::new();
    }
    let mut longest = 0;
    let mut here = 0;
    for c in text.chars() {
        here = if c == '`' { here + 1 } else { 0 };
        longest = longest.max(here);
    }
    let fence = "`".repeat(longest + 1);
    // Markdown removes one space at both ends, unless there are only spaces.
    let is_blank = text.chars().all(|c| c == ' ');
    let is_edgy = |c: char| c == '`' || c == ' ';
    let pad = if !is_blank && (text.starts_with(is_edgy) || text.ends_with(is_edgy)) {
        " "
    } else {
        ""
    };
    format!("{fence}{pad}{text}{pad}{fence}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_code_that_it_can_not_end() {
        let check = |text: &str, expected: &str| assert_eq!(code(text), expected);
        check("list-pods", "`list-pods`");
        check("", "(empty)");
        check("  \n", "(empty)");
        check("a `b` c", "``a `b` c``");
        check("`b", "`` `b ``");
        check("a|b", "`a`&#124;`b`");
        check("a\\|", "`a\\`&#124;");
        check("||", "&#124;&#124;");
        check("a | b", "` a  `&#124;`  b `");
        check("one\ntwo", "`one two`");
        check("\u{1b}[1m\u{202e}", "`\\u{1b}[1m\\u{202e}`");
        let long = code(&"é".repeat(NAME + 1));
        assert_eq!(long, format!("`{}…`", "é".repeat(NAME)));
    }
}
