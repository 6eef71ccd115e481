//! Questions that agents ask for themselves: titles, summaries, guesses of what is asked next.

use proctor_core::model::{ModelMessage, ModelRequest};

/// How an agent asks what its user may say next, with all tools and the whole conversation.
const GUESS: &str = "[SUGGESTION MODE";

/// Whether a question is none of the task. Whoever has no tools at all asks for such questions only
/// beside others, so that nothing can be told from one question alone where an agent has no tools.
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
