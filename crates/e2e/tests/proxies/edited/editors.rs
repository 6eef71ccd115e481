//! Two editors that are nothing but tests: an overlay and faults.

use std::sync::Arc;
use std::time::Duration;

use proctor_record::message::{Id, Message, MessageKind};
use proctor_wire::edit::{ClientMessageAction, Edit, Editor, Passage, PendingRequests};

/// What the overlay looks for, and what it puts in its place.
pub const OLD: &str = r#""description":"Adds two numbers.""#;
pub const NEW: &str = r#""description":"Adds \"two\" numbers, or says why not: \ud83d\ude00""#;

/// Replaces the description of one tool wherever a server lists its tools.
pub struct Overlay;

impl Editor for Overlay {
    fn begin(self: Arc<Self>) -> Box<dyn Edit> {
        Box::new(OverlaidTools::default())
    }
}

#[derive(Default)]
struct OverlaidTools(PendingRequests<()>);

impl Edit for OverlaidTools {
    fn on_client_message(&mut self, message: &[u8]) -> ClientMessageAction {
        if let Some((id, "tools/list")) = request(message).as_ref().map(|(id, m)| (id, m.as_str()))
        {
            self.0.add(id.clone(), ());
        }
        ClientMessageAction::Forward(Passage::Pass)
    }

    fn on_server_message(&mut self, message: &[u8]) -> Passage {
        match self.0.answered(message) {
            Some(()) => Passage::Replace(swapped(message, OLD, NEW)),
            None => Passage::Pass,
        }
    }

    fn reads_server(&self) -> bool {
        !self.0.is_empty()
    }
}

/// How long a delayed answer takes at least.
pub const DELAY: Duration = Duration::from_millis(300);

/// Does to a request, or to its answer, what the id of the request says.
pub struct Faults;

impl Editor for Faults {
    fn begin(self: Arc<Self>) -> Box<dyn Edit> {
        Box::new(FaultyAnswers::default())
    }
}

#[derive(Default)]
struct FaultyAnswers(PendingRequests<String>);

impl Edit for FaultyAnswers {
    fn on_client_message(&mut self, message: &[u8]) -> ClientMessageAction {
        let Some((Id::Value(id), _)) = request(message) else {
            return ClientMessageAction::Forward(Passage::Pass);
        };
        self.0.add(Id::Value(id.clone()), id.clone());
        match id.as_str() {
            r#""lost request""# => ClientMessageAction::Forward(Passage::Drop),
            r#""changed request""# => {
                ClientMessageAction::Forward(Passage::Replace(swapped(message, "before", "after")))
            }
            r#""own answer""# => {
                let answer = r#"{"jsonrpc":"2.0","id":"own answer","result":{"x":1.50}}"#;
                ClientMessageAction::Answer(answer.into())
            }
            _ => ClientMessageAction::Forward(Passage::Pass),
        }
    }

    fn on_server_message(&mut self, message: &[u8]) -> Passage {
        match self.0.answered(message).as_deref() {
            Some(r#""lost answer""#) => Passage::Drop,
            Some(r#""late answer""#) => Passage::Delay(DELAY),
            _ => Passage::Pass,
        }
    }
}

fn request(message: &[u8]) -> Option<(Id, String)> {
    let message: Message<'_> = serde_json::from_slice(message).ok()?;
    match message.kind() {
        MessageKind::Request { id, method } => Some((id, method.to_owned())),
        _ => None,
    }
}

fn swapped(message: &[u8], old: &str, new: &str) -> Vec<u8> {
    let message = std::str::from_utf8(message).expect("the fixture writes text");
    message.replace(old, new).into_bytes()
}
