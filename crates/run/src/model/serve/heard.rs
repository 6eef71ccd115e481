//! What a script hears of a question: what the user and the tools said, without what agents wrap
//! around it.

use proctor_core::model::{Message, Request};

/// The question without what agents put in by themselves: texts beside the user's that are nothing
/// but an element, such as `<environment_context>…</environment_context>`.
pub(super) fn heard(request: &Request) -> Request {
    let is_said = |message: &Message| !matches!(message, Message::User(text) if is_element(text));
    let mut heard = request.clone();
    let is_user = |message: &&Message| matches!(message, Message::User(_));
    if request.messages.iter().filter(is_user).any(is_said) {
        heard.messages.retain(is_said);
    }
    for message in &mut heard.messages {
        if let Message::Results(results) = message {
            for result in results {
                result.text = unwrapped(&result.text).to_owned();
            }
        }
    }
    heard
}

/// Whether a text is one element and nothing else.
fn is_element(text: &str) -> bool {
    element(text.trim()).is_some_and(|(_, _, rest)| rest.is_empty())
}

/// `<tag>inside</tag>rest`, taken apart.
fn element(text: &str) -> Option<(&str, &str, &str)> {
    let (open, after) = text.strip_prefix('<')?.split_once('>')?;
    let tag = open.split_whitespace().next()?;
    let is_name = tag
        .chars()
        .all(|c| c.is_ascii_alphanumeric() || "_-".contains(c));
    if !is_name || open.ends_with('/') {
        return None;
    }
    let (inside, rest) = after.rsplit_once(&format!("</{tag}>"))?;
    Some((tag, inside, rest.trim()))
}

/// What a tool gave, without what an agent says around it.
fn unwrapped(text: &str) -> &str {
    let mut text = text;
    // Codex says how long it took.
    if text.starts_with("Wall time: ")
        && let Some((_, output)) = text.split_once("\nOutput:\n")
    {
        text = output;
    }
    // Gemini CLI says where it comes from.
    if let Some(("untrusted_context", inside, "")) = element(text.trim()) {
        text = inside.trim_matches('\n');
    }
    // Claude Code says how much room is left.
    if let Some((before, after)) = text.split_once("<system-reminder>")
        && after.trim_end().ends_with("</system-reminder>")
        && !before.trim().is_empty()
    {
        text = before.trim_end();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_agent_puts_in_is_not_heard() {
        let said = |texts: &[&str]| {
            let user = |text: &&str| Message::User((*text).to_owned());
            let request = Request {
                messages: texts.iter().map(user).collect(),
                ..Request::default()
            };
            let heard = heard(&request).messages.into_iter();
            let text = |message| match message {
                Message::User(text) => text,
                other => panic!("{other:?}"),
            };
            heard.map(text).collect::<Vec<_>>()
        };
        let reminder = "<system-reminder>\nbe nice\n</system-reminder>\n";
        let context = "<environment_context>\n  <cwd>/</cwd>\n</environment_context>";
        assert_eq!(said(&[reminder, "hello", reminder]), ["hello"]);
        assert_eq!(said(&[context, "hello"]), ["hello"]);
        // The user may write XML too.
        assert_eq!(said(&["<a>b</a>"]), ["<a>b</a>"]);
        for plain in ["a < b > c", "<a>b</a> and more", "<br/>", "<>", "<a b", ""] {
            assert_eq!(said(&[plain, "x"]), [plain, "x"]);
        }
    }

    #[test]
    fn what_an_agent_wraps_a_result_in_is_not_heard() {
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
