//! Tracks the model requests of a trial's record: their number, and which parts of a conversation
//! are already recorded.
//!
//! The main type is [`ModelRequestLog`]. It changes only while the record is locked, so that a
//! request and its tools are recorded together. Each turn of a conversation sends all messages again, so the log reads
//! the known ones only to see that they are the same: it serializes and hashes what is new.

#[cfg(test)]
mod tests;

use data_encoding::HEXLOWER;
use proctor_record::event::{Body, EventKind, ModelAsked, Purpose};
use proctor_record::model::{Fingerprints, ModelRequest, Tools};
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::replay;

/// The model requests of one trial.
#[derive(Default)]
pub struct ModelRequestLog {
    count: u64,
    fingerprints: Fingerprints,
    tools: LatestTools,
    /// The fingerprint of the tools of the latest request.
    offered: Option<u64>,
    agent: LatestRequest,
    side: LatestRequest,
    judge: LatestRequest,
    sampling: LatestRequest,
    user: LatestRequest,
}

/// How a replay compares a request with the recorded one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RequestDigest<'a> {
    /// By all of it but the path of the trial's folder, as [`replay::digest`] does.
    Whole { folder: Option<&'a str> },
    /// By this digest.
    Given(String),
}

/// A numbered request.
#[derive(Debug)]
pub struct LoggedRequest {
    pub ask: u64,
    pub digest: String,
    /// The events to record for it.
    pub events: Vec<EventKind>,
}

impl ModelRequestLog {
    /// Numbers a request.
    pub fn next(
        &mut self,
        purpose: Purpose,
        model: &str,
        request: &ModelRequest,
        digest: RequestDigest<'_>,
    ) -> LoggedRequest {
        self.count += 1;
        let tools = self.tools.fingerprint(&request.tools, &self.fingerprints);
        let mut events: Vec<EventKind> = self.offer(request, tools).into_iter().collect();
        let latest = match purpose {
            Purpose::Agent => &mut self.agent,
            Purpose::Side => &mut self.side,
            Purpose::Judge => &mut self.judge,
            Purpose::Sampling => &mut self.sampling,
            Purpose::User => &mut self.user,
        };
        let messages = request.messages.iter();
        let messages = messages.map(|message| self.fingerprints.message(message));
        let messages: Vec<u64> = messages.collect();
        let digest = match digest {
            RequestDigest::Whole { folder } if replay::has_random_part(request) => {
                replay::digest(request, folder)
            }
            RequestDigest::Whole { folder } => {
                let frame = self.fingerprints.frame(request, tools);
                latest.digest.next(request, frame, &messages, folder)
            }
            RequestDigest::Given(digest) => digest,
        };
        let known = latest.go_on(messages);
        let written = ModelRequest {
            system: request.system.clone(),
            messages: request.messages[known..].to_vec(),
            tools: Tools::default(),
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
            digest: digest.clone(),
        }));
        LoggedRequest {
            ask: self.count,
            digest,
            events,
        }
    }

    /// The tools, if they differ from those of the latest request. `tools` is their fingerprint.
    fn offer(&mut self, request: &ModelRequest, tools: u64) -> Option<EventKind> {
        if request.tools.is_empty() && self.offered.is_none() {
            return None;
        }
        if self.offered.replace(tools) == Some(tools) {
            return None;
        }
        Some(EventKind::ToolsOffered {
            tools: Body::Text(request.tools.text().to_owned()),
        })
    }
}

/// The tools of the latest request, and their fingerprint.
#[derive(Default)]
struct LatestTools(Option<(Tools, u64)>);

impl LatestTools {
    /// The fingerprint of tools, which is not computed again for the same list.
    fn fingerprint(&mut self, tools: &Tools, by: &Fingerprints) -> u64 {
        if let Some((latest, fingerprint)) = &self.0
            && latest.is(tools)
        {
            return *fingerprint;
        }
        let fingerprint = by.tools(tools);
        self.0 = Some((tools.clone(), fingerprint));
        fingerprint
    }
}

/// The latest request for one purpose.
#[derive(Default)]
struct LatestRequest {
    /// The fingerprints of its messages.
    messages: Vec<u64>,
    digest: RollingDigest,
}

impl LatestRequest {
    /// Stores the messages of a new request, and returns how many of them continue the latest
    /// request: a continued conversation has more messages, and starts with the same.
    fn go_on(&mut self, messages: Vec<u64>) -> usize {
        let is_longer = messages.len() > self.messages.len();
        let known = if is_longer && messages.starts_with(&self.messages) {
            self.messages.len()
        } else {
            0
        };
        self.messages = messages;
        known
    }
}

/// The digest of a conversation's latest request, ready to go on with the next messages. The JSON of a request is its
/// start, its messages with commas, and its end.
#[derive(Default)]
struct RollingDigest {
    /// The fingerprint of everything besides the messages.
    frame: Option<u64>,
    end: String,
    /// The fingerprints of the messages that are hashed.
    messages: Vec<u64>,
    hash: Sha256,
}

impl RollingDigest {
    /// The digest of a request: that of all its JSON.
    fn next(
        &mut self,
        request: &ModelRequest,
        frame: u64,
        messages: &[u64],
        folder: Option<&str>,
    ) -> String {
        if self.frame != Some(frame) || !messages.starts_with(&self.messages) {
            self.restart(request, frame, folder);
        }
        for (at, message) in request
            .messages
            .iter()
            .enumerate()
            .skip(self.messages.len())
        {
            if at > 0 {
                self.hash.update(b",");
            }
            // A path lies inside of one message.
            let text = text(message);
            self.hash
                .update(replay::without_folder(&text, folder).as_bytes());
        }
        self.messages = messages.to_vec();
        hex(self.hash.clone().chain_update(&self.end))
    }

    fn restart(&mut self, request: &ModelRequest, frame: u64, folder: Option<&str>) {
        const MESSAGES: &str = "\"messages\":[";
        let whole = text(&ModelRequest {
            system: request.system.clone(),
            messages: Vec::new(),
            tools: request.tools.clone(),
            must_call: request.must_call.clone(),
            max_tokens: request.max_tokens,
            temperature: request.temperature,
        });
        // Only `system` comes before, and a quote inside of it is escaped.
        let at = whole.find(MESSAGES).map_or(0, |at| at + MESSAGES.len());
        let without = |part| replay::without_folder(part, folder);
        self.hash = Sha256::new_with_prefix(without(&whole[..at]).as_bytes());
        self.end = without(&whole[at..]).into_owned();
        self.messages.clear();
        self.frame = Some(frame);
    }
}

/// The value as JSON. All maps have texts as keys, so this can't fail.
pub fn text<T: serde::Serialize>(value: &T) -> String {
    serde_json::to_string(value).unwrap_or_else(|_| Value::Null.to_string())
}

fn hex(hash: Sha256) -> String {
    HEXLOWER.encode(&hash.finalize())
}
