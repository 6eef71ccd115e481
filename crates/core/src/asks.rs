//! Tracks the model requests of a trial's record: their number, and which parts of a conversation
//! are already recorded.
//!
//! The main type is [`ModelRequestLog`]. It changes only while the record is locked, so that a
//! request and its tools are recorded together.

use crate::event::{Body, EventKind, ModelAsked, Purpose};
use crate::model::{ModelMessage, ModelRequest};
use data_encoding::HEXLOWER;
use serde_json::Value;
use sha2::{Digest, Sha256};

/// The model requests of one trial.
#[derive(Default)]
pub struct ModelRequestLog {
    count: u64,
    /// A digest of the tools of the latest request.
    offered: Option<String>,
    agent: LatestRequest,
    side: LatestRequest,
    judge: LatestRequest,
    sampling: LatestRequest,
    user: LatestRequest,
}

/// The latest request for one purpose.
#[derive(Default)]
struct LatestRequest {
    messages: usize,
    digest: String,
}

impl ModelRequestLog {
    /// Numbers a request, and returns the events to record for it.
    pub fn next(
        &mut self,
        purpose: Purpose,
        model: &str,
        request: &ModelRequest,
        digest: &str,
    ) -> (u64, Vec<EventKind>) {
        self.count += 1;
        let mut events: Vec<EventKind> = self.offer(request).into_iter().collect();
        let latest = match purpose {
            Purpose::Agent => &mut self.agent,
            Purpose::Side => &mut self.side,
            Purpose::Judge => &mut self.judge,
            Purpose::Sampling => &mut self.sampling,
            Purpose::User => &mut self.user,
        };
        let known = latest.go_on(&request.messages);
        let written = ModelRequest {
            system: request.system.clone(),
            messages: request.messages[known..].to_vec(),
            tools: Vec::new(),
            must_call: request.must_call.clone(),
            max_tokens: request.max_tokens,
            temperature: request.temperature,
        };
        events.push(EventKind::ModelAsked(ModelAsked {
            ask: self.count,
            purpose,
            model: model.to_owned(),
            known: known as u64,
            request: Body::Text(text(&written)),
            digest: digest.to_owned(),
        }));
        (self.count, events)
    }

    /// The tools, if they differ from those of the latest request.
    fn offer(&mut self, request: &ModelRequest) -> Option<EventKind> {
        if request.tools.is_empty() && self.offered.is_none() {
            return None;
        }
        let tools = text(&request.tools);
        let digest = hash(tools.as_bytes());
        if self.offered.as_ref() == Some(&digest) {
            return None;
        }
        self.offered = Some(digest);
        Some(EventKind::ToolsOffered {
            tools: Body::Text(tools),
        })
    }
}

impl LatestRequest {
    /// Stores the messages of a new request, and returns how many of them continue the latest
    /// request: a continued conversation has more messages, and starts with the same.
    fn go_on(&mut self, messages: &[ModelMessage]) -> usize {
        let mut hash = Sha256::new();
        let mut known = 0;
        for (at, message) in messages.iter().enumerate() {
            if at == self.messages && at > 0 && hex(hash.clone()) == self.digest {
                known = at;
            }
            hash.update(text(message));
            hash.update([0]);
        }
        self.messages = messages.len();
        self.digest = hex(hash);
        known
    }
}

/// The value as JSON. All maps have texts as keys, so this can't fail.
pub fn text<T: serde::Serialize>(value: &T) -> String {
    serde_json::to_string(value).unwrap_or_else(|_| Value::Null.to_string())
}

fn hash(bytes: &[u8]) -> String {
    hex(Sha256::new_with_prefix(bytes))
}

fn hex(hash: Sha256) -> String {
    HEXLOWER.encode(&hash.finalize())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Tool, Turn};

    fn request(messages: &[&str], tools: &[&str]) -> ModelRequest {
        let tool = |name: &&str| Tool {
            name: (*name).to_owned(),
            description: None,
            schema: serde_json::json!({}),
        };
        ModelRequest {
            messages: messages
                .iter()
                .map(|text| ModelMessage::User((*text).to_owned()))
                .collect(),
            tools: tools.iter().map(tool).collect(),
            ..ModelRequest::default()
        }
    }

    /// How many messages were known, how many were written, and whether tools were.
    fn ask(
        asks: &mut ModelRequestLog,
        purpose: Purpose,
        request: &ModelRequest,
    ) -> (u64, usize, bool) {
        let (_, events) = asks.next(purpose, "m", request, "d");
        let offered = matches!(events[0], EventKind::ToolsOffered { .. });
        let Some(EventKind::ModelAsked(asked)) = events.last() else {
            panic!("{events:?}");
        };
        let Body::Text(text) = &asked.request else {
            panic!("{asked:?}");
        };
        let written: ModelRequest = serde_json::from_str(text).unwrap();
        assert!(written.tools.is_empty());
        (asked.known, written.messages.len(), offered)
    }

    #[test]
    fn a_continued_conversation_is_not_written_again() {
        let mut asks = ModelRequestLog::default();
        let agent = Purpose::Agent;
        assert_eq!(ask(&mut asks, agent, &request(&["a"], &[])), (0, 1, false));
        assert_eq!(
            ask(&mut asks, agent, &request(&["a", "b", "c"], &[])),
            (1, 2, false)
        );
        assert_eq!(
            ask(&mut asks, agent, &request(&["a", "b", "c", "d"], &[])),
            (3, 1, false)
        );
    }

    #[test]
    fn a_new_conversation_is_written_completely() {
        let mut asks = ModelRequestLog::default();
        let agent = Purpose::Agent;
        ask(&mut asks, agent, &request(&["a", "b"], &[]));
        for fresh in [&["a", "b"][..], &["a"], &["x", "b", "c"], &["a", "b", "c"]] {
            // The last one goes on from the second, not from the third.
            assert_eq!(
                ask(&mut asks, agent, &request(fresh, &[])),
                (0, fresh.len(), false)
            );
        }
        assert_eq!(
            ask(
                &mut asks,
                Purpose::Judge,
                &request(&["a", "b", "c", "d"], &[])
            )
            .0,
            0
        );
        assert_eq!(
            ask(&mut asks, agent, &request(&["a", "b", "c", "d"], &[])).0,
            3
        );
    }

    #[test]
    fn an_edited_history_is_written_again() {
        let mut asks = ModelRequestLog::default();
        let mut long = request(&["a"], &[]);
        long.messages.push(ModelMessage::Assistant(Turn::default()));
        ask(&mut asks, Purpose::Agent, &long);
        long.messages[0] = ModelMessage::User("b".to_owned());
        long.messages.push(ModelMessage::User("c".to_owned()));
        assert_eq!(ask(&mut asks, Purpose::Agent, &long), (0, 3, false));
    }

    #[test]
    fn tools_are_written_when_they_change() {
        let mut asks = ModelRequestLog::default();
        let agent = Purpose::Agent;
        let offered = [&["x"][..], &["x"], &["x", "y"], &["x"], &[], &[]]
            .map(|tools| ask(&mut asks, agent, &request(&["a"], tools)).2);
        assert_eq!(offered, [true, false, true, true, true, false]);
    }

    #[test]
    fn requests_have_a_number_and_a_digest() {
        let mut asks = ModelRequestLog::default();
        let all = request(&["a", "b"], &["x"]);
        assert_eq!(asks.next(Purpose::Agent, "m", &all, "d").0, 1);
        let (number, events) = asks.next(Purpose::Judge, "m", &all, "d");
        assert_eq!(number, 2);
        let Some(EventKind::ModelAsked(asked)) = events.last() else {
            panic!("{events:?}");
        };
        assert_eq!(asked.digest, "d");
    }
}
