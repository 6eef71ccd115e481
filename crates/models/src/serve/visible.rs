//! The part of a request that a script sees: the texts of the user and the tools, without the
//! context that agents add. This makes one script work for all agents.

use proctor_record::model::{ModelMessage, ModelRequest};

use crate::wire::looks_like_error;

/// The elements that agents add before or after a text.
const PUT_IN: [&str; 8] = [
    "current_datetime",
    "environment_context",
    "reminder",
    "session_context",
    "system-reminder",
    "total_tokens",
    "turn-context",
    "user_instructions",
];

/// The request without the context that agents add. Besides the user's text, texts that consist of
/// a single element are also removed.
pub(super) fn visible_part(request: &ModelRequest) -> ModelRequest {
    let mut visible = request.clone();
    for message in &mut visible.messages {
        match message {
            ModelMessage::User(text) => *text = stripped(text).to_owned(),
            ModelMessage::Results(results) => {
                for result in results {
                    result.text = unwrapped(&result.text).to_owned();
                    result.is_error |= looks_like_error(&result.text);
                }
            }
            ModelMessage::Media(_) | ModelMessage::Assistant(_) => {}
        }
    }
    let is_said =
        |message: &ModelMessage| !matches!(message, ModelMessage::User(text) if is_element(text));
    let is_user = |message: &&ModelMessage| matches!(message, ModelMessage::User(_));
    if visible.messages.iter().filter(is_user).any(is_said) {
        visible.messages.retain(is_said);
    }
    visible
}

/// A text without the elements that agents add before or after it, unless the text has nothing
/// else.
fn stripped(text: &str) -> &str {
    let mut left = text;
    loop {
        let before = left;
        let trimmed = left.trim_start();
        if let Some((tag, _, rest)) = element(trimmed)
            && PUT_IN.contains(&tag)
            && !rest.trim().is_empty()
        {
            left = rest.trim_start();
        }
        let trimmed = left.trim_end();
        let open = PUT_IN.iter().find_map(|tag| {
            trimmed
                .strip_suffix(&format!("</{tag}>"))?
                .rfind(&format!("<{tag}>"))
        });
        if let Some(open) = open.filter(|open| !left[..*open].trim().is_empty()) {
            left = left[..open].trim_end();
        }
        if left.len() == before.len() {
            return left;
        }
    }
}

/// Whether a text consists of a single element.
fn is_element(text: &str) -> bool {
    element(text.trim()).is_some_and(|(_, _, rest)| rest.trim().is_empty())
}

/// Splits `<tag>inside</tag>rest` into its parts.
fn element(text: &str) -> Option<(&str, &str, &str)> {
    let (open, after) = text.strip_prefix('<')?.split_once('>')?;
    let tag = open.split_whitespace().next()?;
    let is_name = tag
        .chars()
        .all(|c| c.is_ascii_alphanumeric() || "_-".contains(c));
    if !is_name || open.ends_with('/') {
        return None;
    }
    let (inside, rest) = after.split_once(&format!("</{tag}>"))?;
    Some((tag, inside, rest))
}

/// The result of a tool, without the text that an agent adds.
fn unwrapped(text: &str) -> &str {
    let mut text = text;
    // Codex adds the duration.
    if text.starts_with("Wall time: ")
        && let Some((_, output)) = text.split_once("\nOutput:\n")
    {
        text = output;
    }
    // Gemini CLI adds a warning about untrusted content.
    if let Some(("untrusted_context", inside, rest)) = element(text.trim())
        && rest.trim().is_empty()
    {
        text = inside.trim_matches('\n');
    }
    stripped(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(texts: &[&str]) -> Vec<String> {
        let user = |text: &&str| ModelMessage::User((*text).to_owned());
        let request = ModelRequest {
            messages: texts.iter().map(user).collect(),
            ..ModelRequest::default()
        };
        let text = |message| match message {
            ModelMessage::User(text) => text,
            other => panic!("{other:?}"),
        };
        visible_part(&request)
            .messages
            .into_iter()
            .map(text)
            .collect()
    }

    #[test]
    fn context_that_agents_add_is_removed() {
        let reminder = "<system-reminder>\nbe nice\n</system-reminder>\n";
        let context = "<environment_context>\n  <cwd>/</cwd>\n</environment_context>";
        let time = "<current_datetime>2026-11-15</current_datetime>\n\nhello";
        let turn = "hello\n<turn-context>\n<a>b</a>\n</turn-context>";
        let both = format!("{reminder}{turn}\n{reminder}");
        assert_eq!(said(&[reminder, "hello", reminder]), ["hello"]);
        assert_eq!(said(&[context, "hello"]), ["hello"]);
        assert_eq!(said(&["<anything>x</anything>", "hello"]), ["hello"]);
        for text in [time, turn, &both] {
            assert_eq!(said(&[text]), ["hello"]);
        }
    }

    #[test]
    fn the_text_of_the_user_is_kept() {
        // The user may write XML too.
        assert_eq!(said(&["<a>b</a>"]), ["<a>b</a>"]);
        for plain in [
            "a < b > c",
            "<a>b</a> and more",
            "<b>x</b> and <b>y</b>",
            "<br/>",
            "<>",
            "<a b",
            "",
            "  indented\n",
        ] {
            assert_eq!(said(&[plain, "x"]), [plain, "x"]);
        }
    }

    #[test]
    fn text_that_agents_add_to_results_is_removed() {
        for (text, expected) in [
            ("plain", "plain"),
            ("Wall time: 0.1 seconds\nOutput:\n{\"a\": 1}", "{\"a\": 1}"),
            ("<untrusted_context>\nhi\n</untrusted_context>", "hi"),
            (
                "hi\n<system-reminder><total_tokens>9</total_tokens></system-reminder>",
                "hi",
            ),
            (
                "<system-reminder>all</system-reminder>",
                "<system-reminder>all</system-reminder>",
            ),
            ("Wall time: none", "Wall time: none"),
        ] {
            assert_eq!(unwrapped(text), expected);
        }
    }
}
