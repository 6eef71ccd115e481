//! The trial's folder in requests and replies: its path differs by trial, and nothing else about it
//! does.

use proctor_record::json;
use std::borrow::Cow;

use super::RecordedReply;
use crate::suite::template::Reference;

/// The text with the template in place of the path, so that texts of two trials can be compared.
pub fn without_folder<'a>(text: &'a str, folder: Option<&str>) -> Cow<'a, str> {
    match folder {
        Some(folder) if !folder.is_empty() && text.contains(folder) => {
            Cow::Owned(text.replace(folder, &Reference::TrialDir.to_string()))
        }
        _ => Cow::Borrowed(text),
    }
}

impl RecordedReply {
    /// The reply in another trial: what it says of the one's folder is about the other's.
    #[must_use]
    pub fn moved(mut self, from: Option<&str>, to: Option<&str>) -> Self {
        let (Some(from), Some(to)) = (from.filter(|from| !from.is_empty()), to) else {
            return self;
        };
        let Ok(text) = serde_json::to_string(&self.turn) else {
            return self;
        };
        if text.contains(from)
            && let Ok(turn) = json::from_str(&text.replace(from, to))
        {
            self.turn = turn;
            // A stream may have split the path anywhere, so it is written anew.
            self.raw = None;
        }
        self
    }
}
