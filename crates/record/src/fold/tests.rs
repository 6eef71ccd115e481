//! Folding messages into calls.

mod answers;
mod conduct;
mod rounds;
mod timeline;
mod work;

use std::path::Path;

use crate::event::{Body, Direction, Frame, WireKind};
use crate::transcript::{Call, CallOutcome, CallRequest, Payload};

use super::*;

/// Builds the events of a trial, one per microsecond.
struct Trial {
    events: Vec<Event>,
}

impl Trial {
    /// One connection of the agent, over stdio.
    fn stdio() -> Self {
        Self { events: Vec::new() }.open(1, Actor::Agent, WireKind::Stdio)
    }

    fn http() -> Self {
        Self { events: Vec::new() }.open(1, Actor::Loop, WireKind::Http)
    }

    fn open(self, conn: u32, actor: Actor, transport: WireKind) -> Self {
        self.event(EventKind::ConnectionOpened(ConnectionOpened {
            conn: ConnectionId(conn),
            server: format!("s{conn}"),
            actor,
            transport,
            target: String::new(),
        }))
    }

    fn event(mut self, event: EventKind) -> Self {
        let seq = self.events.len() as u64 + 1;
        self.events.push(Event {
            seq,
            at: seq,
            event,
        });
        self
    }

    fn frame(self, conn: u32, exchange: Option<u64>, direction: Direction, body: Body) -> Self {
        self.event(EventKind::Frame(Frame {
            conn: ConnectionId(conn),
            exchange,
            direction,
            body,
        }))
    }

    fn sends(self, text: &str) -> Self {
        self.frame(1, None, Direction::ToServer, Body::Text(text.to_owned()))
    }

    fn gets(self, text: &str) -> Self {
        self.frame(1, None, Direction::ToClient, Body::Text(text.to_owned()))
    }

    fn posts(self, exchange: u64, text: &str) -> Self {
        let body = Body::Text(text.to_owned());
        self.frame(1, Some(exchange), Direction::ToServer, body)
    }

    fn replies(self, exchange: u64, text: &str) -> Self {
        let body = Body::Text(text.to_owned());
        self.frame(1, Some(exchange), Direction::ToClient, body)
    }

    /// Calls a tool, with the id also as its argument.
    fn calls(self, id: &str, tool: &str) -> Self {
        self.sends(&call(id, tool))
    }

    fn folded(self) -> FoldedTrial {
        self.folded_with(&FoldOptions::default())
    }

    fn folded_with(self, options: &FoldOptions) -> FoldedTrial {
        let blobs = Blobs::of_run(Path::new("none"));
        fold(self.events.into_iter().map(Ok), &blobs, options).unwrap()
    }
}

fn call(id: &str, tool: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"{tool}","arguments":{{"n":{id}}}}}}}"#
    )
}

fn result(id: &str, text: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":"{text}"}}}}"#)
}

/// Each call as `name=content`, `name!code` or `name?`.
fn brief(folded: &FoldedTrial) -> Vec<String> {
    let one = |call: &Call| {
        let name = match &call.request {
            CallRequest::Tool { name, .. } | CallRequest::Prompt { name, .. } => name,
            CallRequest::Resource { uri } => uri,
        };
        match &call.answer {
            CallOutcome::Result(Payload::Value(value)) => {
                format!("{name}={}", value["content"].as_str().unwrap_or("…"))
            }
            CallOutcome::Result(other) => format!("{name}={other:?}"),
            CallOutcome::Error { code, .. } => format!("{name}!{code}"),
            CallOutcome::None => format!("{name}?"),
        }
    };
    folded.transcript.calls.iter().map(one).collect()
}

fn kinds(folded: &FoldedTrial) -> Vec<FindingKind> {
    folded.findings.iter().map(|finding| finding.kind).collect()
}
