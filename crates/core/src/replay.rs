//! Replays a record: the model replies of one run, for use in another.
//!
//! Main types: [`Cassette`], a run, and [`Tape`], one trial of it. A reply is found by the purpose
//! of the request and the number of tool results in it, so that retries and side calls get the
//! matching reply. Whether the request is unchanged is reported separately.

#![warn(
    clippy::wildcard_enum_match_arm,
    reason = "a new variant must not pass by default"
)]

mod boundary;
mod folder;
mod surroundings;

use std::collections::HashMap;
use std::path::Path;

use data_encoding::HEXLOWER;
use serde_json::json;
use sha2::{Digest, Sha256};

use proctor_record::event::{Body, EventKind, ModelReplied, Purpose};
use proctor_record::index;
use proctor_record::json;
use proctor_record::model::{Arguments, ModelMessage, ModelRequest, StopReason, Turn, Usage};
use proctor_record::record::{Blobs, RecordError, RunReader, TrialFile};

pub use self::folder::without_folder;
pub use self::surroundings::{Drift, Surroundings};

/// A run whose model replies can be replayed.
#[derive(Debug)]
pub struct Cassette {
    run: RunReader,
    /// The file of each trial's latest ended attempt, by case, agent and repeat.
    files: HashMap<(String, Option<String>, u32), (u32, String)>,
}

/// The model replies of one trial.
#[derive(Debug, Default)]
pub struct Tape {
    takes: HashMap<(Purpose, usize), Track>,
    /// The trial's folder.
    folder: Option<String>,
}

/// The replies to requests of one kind, in order.
#[derive(Debug, Default)]
struct Track {
    takes: Vec<RecordedReply>,
    used: usize,
}

/// A reply that can be replayed for the same request.
#[derive(Debug, Clone, PartialEq)]
pub struct RecordedReply {
    /// The digest of the request that it answered.
    pub digest: String,
    pub turn: Turn,
    /// The original reply of the provider, if it was recorded.
    pub raw: Option<Vec<u8>>,
    pub stop: StopReason,
    pub usage: Usage,
}

/// Why the record has no reply to a request.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReplayGap {
    /// The record has no such trial.
    #[error("the record has no finished trial of this case by this agent")]
    Trial,
    /// The record has no model replies, since there was no model tap.
    #[error(
        "the record has no model replies for this trial; record external agents with `modelTap`"
    )]
    Silence,
    /// The record has no such request.
    #[error(
        "the record has no {} after {results} tool results{}", asker(*.purpose),
        if known.is_empty() { String::new() } else { format!("; it has some after {known}") }
    )]
    Question {
        purpose: Purpose,
        /// The number of tool results in the request.
        results: usize,
        /// The numbers of tool results for which the record has replies.
        known: String,
    },
}

fn asker(purpose: Purpose) -> &'static str {
    match purpose {
        Purpose::Agent => "model request of the agent",
        Purpose::Side => "side request",
        Purpose::Judge => "judge request",
        Purpose::Sampling => "sampling request",
        Purpose::User => "model request of the user",
    }
}

impl Cassette {
    /// Opens the run in a folder.
    pub fn open(folder: &Path) -> Result<Self, RecordError> {
        let run = RunReader::open(folder)?;
        let mut files: HashMap<_, (u32, String)> = HashMap::new();
        for entry in index::ended(&run)? {
            // A trial whose end only a newer version knows has not ended.
            let (Some(started), Some(_)) = (entry.attempt.trial, entry.attempt.ended) else {
                continue;
            };
            let key = (started.case, started.agent, started.repeat);
            let known = files.get(&key).map_or(0, |(attempt, _)| *attempt);
            if started.attempt > known {
                files.insert(key, (started.attempt, entry.file));
            }
        }
        Ok(Self { run, files })
    }

    /// What an external agent saw in a trial; `None` if no attempt ended.
    pub fn surroundings(
        &self,
        case: &str,
        agent: &str,
        repeat: u32,
    ) -> Result<Option<Surroundings>, RecordError> {
        let Some(file) = self.file(case, agent, repeat) else {
            return Ok(None);
        };
        // The folder is the last event but one.
        let mut folder = None;
        for event in self.run.trial(&file)? {
            if let EventKind::TrialFolder(found) = event?.event {
                folder = Some(found.path);
            }
        }
        let events = self.run.trial(&file)?;
        Surroundings::of(events, self.run.blobs(), folder.as_deref()).map(Some)
    }

    fn file(&self, case: &str, agent: &str, repeat: u32) -> Option<TrialFile> {
        let key = (case.to_owned(), Some(agent.to_owned()), repeat);
        let (_, name) = self.files.get(&key)?;
        self.run.trial_file(name)
    }

    /// The model replies of a trial; `None` if no attempt ended.
    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "a tape needs only model requests and replies"
    )]
    pub fn tape(&self, case: &str, agent: &str, repeat: u32) -> Result<Option<Tape>, RecordError> {
        let Some(file) = self.file(case, agent, repeat) else {
            return Ok(None);
        };
        let mut tape = Tape::default();
        let mut asked: HashMap<u64, RecordedRequest> = HashMap::new();
        let mut lengths: HashMap<Purpose, Vec<usize>> = HashMap::new();
        for event in self.run.trial(&file)? {
            match event?.event {
                EventKind::ModelAsked(question) => {
                    let written = self.run.body_bytes(&question.request)?;
                    let written: Option<ModelRequest> =
                        written.and_then(|bytes| json::from_slice(&bytes).ok());
                    let messages = written.map(|request| request.messages).unwrap_or_default();
                    let seen = lengths.entry(question.purpose).or_default();
                    seen.truncate(usize::try_from(question.known).unwrap_or(usize::MAX));
                    seen.extend(messages.iter().map(results_of));
                    let of = RecordedRequest {
                        purpose: question.purpose,
                        results: seen.iter().sum(),
                        digest: question.digest,
                    };
                    asked.insert(question.ask, of);
                }
                EventKind::ModelReplied(reply) => {
                    if let Some(of) = asked.remove(&reply.ask)
                        && let Some(take) = take(&of, reply, self.run.blobs())?
                    {
                        let track = tape.takes.entry(of.place()).or_default();
                        track.takes.push(take);
                    }
                }
                EventKind::TrialFolder(folder) => tape.folder = Some(folder.path),
                _ => {}
            }
        }
        Ok(Some(tape))
    }
}

struct RecordedRequest {
    purpose: Purpose,
    results: usize,
    digest: String,
}

impl RecordedRequest {
    fn place(&self) -> (Purpose, usize) {
        place(self.purpose, self.results)
    }
}

/// Requests of others than the agent hold no tool results, so their order identifies them.
fn place(purpose: Purpose, results: usize) -> (Purpose, usize) {
    if purpose.is_of_agent() {
        (purpose, results)
    } else {
        (purpose, 0)
    }
}

fn take(
    of: &RecordedRequest,
    reply: ModelReplied,
    blobs: &Blobs,
) -> Result<Option<RecordedReply>, RecordError> {
    let bytes = |body: &Body| Ok::<_, RecordError>(blobs.body_bytes(body)?.map(|b| b.to_vec()));
    let turn = bytes(&reply.turn)?.and_then(|turn| json::from_slice(&turn).ok());
    let raw = reply.raw.as_ref().map(bytes).transpose()?.flatten();
    Ok(turn.map(|turn| RecordedReply {
        digest: of.digest.clone(),
        turn,
        raw,
        stop: reply.stop,
        usage: reply.usage,
    }))
}

impl Tape {
    /// The reply to a request of a trial with this folder, and whether the request differs from the
    /// recorded one. Further requests of the same kind get the last reply again.
    pub fn next(
        &mut self,
        purpose: Purpose,
        request: &ModelRequest,
        digest: &str,
        folder: Option<&str>,
    ) -> Result<(RecordedReply, bool), ReplayGap> {
        let results = results(request);
        let Some(track) = self.takes.get_mut(&place(purpose, results)) else {
            return Err(self.missing(purpose, results));
        };
        let take = &track.takes[track.used.min(track.takes.len() - 1)];
        track.used += 1;
        let drifted = take.digest != digest;
        let take = take.clone().moved(self.folder.as_deref(), folder);
        Ok((take, drifted))
    }

    fn missing(&self, purpose: Purpose, results: usize) -> ReplayGap {
        let mut known = self.takes.keys();
        if purpose.is_of_agent() && !known.any(|(known, _)| known.is_of_agent()) {
            return ReplayGap::Silence;
        }
        let places = self.takes.keys().filter(|(known, _)| *known == purpose);
        let mut known: Vec<usize> = places.map(|(_, results)| *results).collect();
        known.sort_unstable();
        let known: Vec<String> = known.iter().map(usize::to_string).collect();
        ReplayGap::Question {
            purpose,
            results,
            known: known.join(", "),
        }
    }
}

/// The number of tool results in a request.
pub fn results(request: &ModelRequest) -> usize {
    request.messages.iter().map(results_of).sum()
}

fn results_of(message: &ModelMessage) -> usize {
    match message {
        ModelMessage::Results(results) => results.len(),
        ModelMessage::User(_) | ModelMessage::Media(_) | ModelMessage::Assistant(_) => 0,
    }
}

/// A digest to compare requests, without the path of the trial's folder and the random part of judge
/// requests.
pub fn digest(request: &ModelRequest, folder: Option<&str>) -> String {
    let text = json!(request).to_string();
    let text = without_folder(&text, folder);
    match request.system.as_deref().map(boundary::tokens) {
        Some(tokens) if !tokens.is_empty() => hash(&boundary::without(&text, &tokens)),
        _ => hash(&text),
    }
}

/// Whether a part of a request is random, which [`digest`] leaves out.
pub fn has_random_part(request: &ModelRequest) -> bool {
    let system = request.system.as_deref();
    system.is_some_and(|system| !boundary::tokens(system).is_empty())
}

/// A digest to compare requests of an external agent: only the tools and the calls, since such
/// agents add dates and folders to the rest. The path of the trial's folder does not count.
pub fn outline(request: &ModelRequest, folder: Option<&str>) -> String {
    let mut tools: Vec<&str> = request.tools.iter().map(|t| t.name.as_str()).collect();
    tools.sort_unstable();
    let mut calls = Vec::new();
    for message in &request.messages {
        if let ModelMessage::Assistant(turn) = message {
            for call in &turn.calls {
                let arguments = match &call.arguments {
                    Arguments::Object(map) => json!(map),
                    Arguments::Malformed { text, .. } => json!(text),
                };
                calls.push(json!([call.name, arguments]));
            }
        }
    }
    let text = json!([tools, calls]).to_string();
    hash(&without_folder(&text, folder))
}

fn hash(text: &str) -> String {
    HEXLOWER.encode(&Sha256::digest(text.as_bytes()))
}

#[cfg(test)]
mod tests;
