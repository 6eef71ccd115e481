//! Recognizes side calls: requests that agents send for themselves, such as titles, summaries and
//! suggestions.

use proctor_record::model::{ModelMessage, ModelRequest};

/// How an agent asks for a suggestion of the user's next prompt, with all tools and the whole
/// conversation.
const GUESS: &str = "[SUGGESTION MODE";

/// Whether a request does not belong to the task: it offers no tools, or asks for a suggestion. All
/// requests of an agent without tools look like side calls.
pub fn is_side_call(request: &ModelRequest) -> bool {
    if request.tools.is_empty() {
        return true;
    }
    let last = request
        .messages
        .iter()
        .rev()
        .find_map(|message| match message {
            ModelMessage::User(text) => Some(text.trim_start()),
            _ => None,
        });
    last.is_some_and(|text| text.starts_with(GUESS))
}
