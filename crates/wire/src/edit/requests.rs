//! Requests whose responses an edit waits for.

use std::collections::VecDeque;

use proctor_record::json;
use proctor_record::message::{Id, Message, MessageKind};

/// The maximum number of unanswered requests; older ones are forgotten.
const MOST: usize = 64;

/// Requests without a response, each with the state that is needed when the response arrives.
#[derive(Debug)]
pub struct PendingRequests<T>(VecDeque<(Id, T)>);

impl<T> Default for PendingRequests<T> {
    fn default() -> Self {
        Self(VecDeque::new())
    }
}

impl<T> PendingRequests<T> {
    /// Adds a request that goes to the server.
    pub fn add(&mut self, id: Id, about: T) {
        if self.0.len() == MOST {
            self.0.pop_front();
        }
        self.0.push_back((id, about));
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Removes and returns the state of the request that a server message answers.
    pub fn answered(&mut self, message: &[u8]) -> Option<T> {
        if self.is_empty() {
            return None;
        }
        let message = json::from_slice::<Message<'_>>(message).ok()?;
        let MessageKind::Answer { id } = message.kind() else {
            return None;
        };
        let at = self.0.iter().position(|(known, _)| *known == id)?;
        self.0.remove(at).map(|(_, about)| about)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(text: &str) -> Id {
        Id::of(serde_json::from_str(text).unwrap())
    }

    #[test]
    fn a_response_matches_its_request_once() {
        let mut pending = PendingRequests::default();
        pending.add(id("1"), "one");
        pending.add(id("\"1\""), "text");
        let check = |pending: &mut PendingRequests<&'static str>, message: &str, expected| {
            assert_eq!(pending.answered(message.as_bytes()), expected, "{message}");
        };
        check(&mut pending, r#"{"id":1,"method":"roots/list"}"#, None);
        check(&mut pending, r#"[{"id":1,"result":{}}]"#, None);
        check(&mut pending, "noise", None);
        check(&mut pending, r#"{"id":1.0,"error":{}}"#, Some("one"));
        check(&mut pending, r#"{"id":1,"result":{}}"#, None);
        check(&mut pending, r#"{"id":"1","result":{}}"#, Some("text"));
        assert!(pending.is_empty());
    }

    #[test]
    fn answers_may_come_in_any_order() {
        let mut pending = PendingRequests::default();
        for number in 1..=3 {
            pending.add(id(&number.to_string()), number);
        }
        assert_eq!(pending.answered(br#"{"id":2,"result":{}}"#), Some(2));
        assert_eq!(pending.answered(br#"{"id":3,"result":{}}"#), Some(3));
        assert_eq!(pending.answered(br#"{"id":1,"result":{}}"#), Some(1));
        assert!(pending.is_empty());
    }

    #[test]
    fn the_oldest_requests_are_forgotten() {
        let mut pending = PendingRequests::default();
        for number in 0..=MOST {
            pending.add(id(&number.to_string()), number);
        }
        assert_eq!(pending.answered(br#"{"id":0,"result":1}"#), None);
        assert_eq!(pending.answered(br#"{"id":1,"result":1}"#), Some(1));
    }
}
