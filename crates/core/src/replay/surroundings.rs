//! What an external agent saw in a trial besides its model's replies: its task, the tools of its
//! servers and the results of its calls.
//!
//! The main type is [`Surroundings`]. Such an agent adds dates, folders and its own instructions to
//! its model requests, so two requests are never equal. The record also holds these inputs
//! separately, without such additions.

use std::collections::BTreeMap;
use std::collections::HashMap;

use proctor_record::event::{Actor, ConnectionId, Direction, Event, EventKind, Purpose};
use proctor_record::json;
use proctor_record::message::{self, Id, Message, MessageKind};
use proctor_record::record::{Blobs, RecordError};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::replay::without_folder;

/// What an external agent saw in one trial.
#[derive(Debug, Default)]
pub struct Surroundings {
    /// The numbers of its model requests for the task.
    pub asks: Vec<u64>,
    prompt: Option<String>,
    /// The tools, by server and name.
    tools: BTreeMap<(String, String), String>,
    /// The results, by server and call.
    results: BTreeMap<(String, String), Vec<String>>,
    /// The trial's folder, whose path does not count.
    folder: Option<String>,
    connections: HashMap<ConnectionId, String>,
    waiting: HashMap<(ConnectionId, Id), AwaitedReply>,
}

/// How the inputs of an agent differ from those of the recorded run.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Drift {
    /// Differences in the task and the tools, which affect every request.
    pub of_task: Vec<String>,
    /// Differences in the results of calls.
    pub of_results: Vec<String>,
}

#[derive(Debug)]
enum AwaitedReply {
    Tools,
    Call(String),
}

impl Surroundings {
    /// Reads the surroundings from the events of a trial.
    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "other events don't affect the comparison"
    )]
    pub fn of(
        events: impl Iterator<Item = Result<Event, RecordError>>,
        blobs: &Blobs,
        folder: Option<&str>,
    ) -> Result<Self, RecordError> {
        let mut all = Self {
            folder: folder.map(str::to_owned),
            ..Self::default()
        };
        for event in events {
            match event?.event {
                EventKind::Prompted { text, turn: None } => {
                    let text = blobs.body_bytes(&text)?;
                    all.prompt = text.map(|text| all.hash(&String::from_utf8_lossy(&text)));
                }
                EventKind::ModelAsked(asked) if asked.purpose == Purpose::Agent => {
                    all.asks.push(asked.ask);
                }
                EventKind::ConnectionOpened(opened) if opened.actor == Actor::Agent => {
                    all.connections.insert(opened.conn, opened.server);
                }
                EventKind::Frame(frame) if all.connections.contains_key(&frame.conn) => {
                    if let Some(bytes) = blobs.body_bytes(&frame.body)? {
                        // Invalid messages are reported elsewhere.
                        let _ = message::each(&bytes, &mut |message| {
                            all.message(frame.conn, frame.direction, message);
                        });
                    }
                }
                _ => {}
            }
        }
        Ok(all)
    }

    fn message(&mut self, conn: ConnectionId, direction: Direction, message: &Message<'_>) {
        match (message.kind(), direction) {
            (MessageKind::Request { id, method }, Direction::ToServer) => {
                let waiting = match method {
                    "tools/list" => AwaitedReply::Tools,
                    "tools/call" => {
                        let call = called(message.params);
                        let call = without_folder(&call, self.folder.as_deref());
                        AwaitedReply::Call(call.into_owned())
                    }
                    _ => return,
                };
                self.waiting.insert((conn, id), waiting);
            }
            (MessageKind::Answer { id }, Direction::ToClient) => {
                let server = self.connections.get(&conn).cloned().unwrap_or_default();
                match self.waiting.remove(&(conn, id)) {
                    Some(AwaitedReply::Tools) => self.listed(&server, message.result),
                    Some(AwaitedReply::Call(call)) => {
                        let said = message.result.or(message.error).map(canonical);
                        let said = self.hash(&said.unwrap_or_default());
                        self.results.entry((server, call)).or_default().push(said);
                    }
                    None => {}
                }
            }
            _ => {}
        }
    }

    fn listed(&mut self, server: &str, result: Option<&RawValue>) {
        let result = result.and_then(|raw| json::from_str::<Value>(raw.get()).ok());
        let tools = result
            .as_ref()
            .and_then(|result| result["tools"].as_array());
        for tool in tools.into_iter().flatten() {
            let name = tool["name"].as_str().unwrap_or_default().to_owned();
            let said = self.hash(&json::canonical(tool));
            self.tools.insert((server.to_owned(), name), said);
        }
    }

    fn hash(&self, text: &str) -> String {
        super::hash(&without_folder(text, self.folder.as_deref()))
    }

    /// The differences of `now`. Data that only one of the two has is not compared.
    pub fn drift(&self, now: &Self) -> Drift {
        let mut drift = Drift::default();
        if self.prompt != now.prompt {
            drift.of_task.push("the prompt has changed".to_owned());
        }
        let is_listed = |all: &Self, server: &str| all.tools.keys().any(|(of, _)| of == server);
        for (place @ (server, tool), said) in &now.tools {
            let how = match self.tools.get(place) {
                Some(then) if then == said => continue,
                Some(_) => "has changed",
                None if is_listed(self, server) => "is new",
                None => continue,
            };
            drift
                .of_task
                .push(format!("the tool `{server}.{tool}` {how}"));
        }
        for place @ (server, tool) in self.tools.keys() {
            if !now.tools.contains_key(place) && is_listed(now, server) {
                drift
                    .of_task
                    .push(format!("the tool `{server}.{tool}` was removed"));
            }
        }
        for (place @ (server, call), results) in &now.results {
            let then = self.results.get(place);
            let is_known = |said: &String| then.is_some_and(|then| then.contains(said));
            if !results.iter().all(is_known) {
                let tool = call.split_once(' ').map_or(call.as_str(), |(tool, _)| tool);
                drift
                    .of_results
                    .push(format!("the result of `{server}.{tool}` has changed"));
            }
        }
        drift
    }
}

impl Drift {
    pub fn is_none(&self) -> bool {
        self.of_task.is_empty() && self.of_results.is_empty()
    }

    /// The first differences, in one line.
    pub fn brief(&self) -> String {
        const SHOWN: usize = 3;
        let all: Vec<&str> = self
            .of_task
            .iter()
            .chain(&self.of_results)
            .map(String::as_str)
            .collect();
        let mut text = all[..all.len().min(SHOWN)].join(", ");
        if all.len() > SHOWN {
            text.push_str(&format!(", and {} more differences", all.len() - SHOWN));
        }
        text
    }
}

/// The tool and its arguments, as one text.
fn called(params: Option<&RawValue>) -> String {
    let params = params.and_then(|raw| json::from_str::<Value>(raw.get()).ok());
    let params = params.unwrap_or_default();
    let tool = params["name"].as_str().unwrap_or_default();
    format!("{tool} {}", json::canonical(&params["arguments"]))
}

fn canonical(raw: &RawValue) -> String {
    match json::from_str::<Value>(raw.get()) {
        Ok(mut value) => {
            // The agent does not see what a transport adds.
            if let Some(object) = value.as_object_mut() {
                object.remove("_meta");
            }
            json::canonical(&value)
        }
        Err(_) => raw.get().to_owned(),
    }
}
