//! A trial that is followed while it goes on.

use std::sync::Arc;

use proctor_record::event::{
    Actor, Body, ConnectionId, ConnectionOpened, Direction, Event, EventKind, Frame, Outcome,
    TrialEnded, TrialStarted, WireKind,
};
use proctor_record::fold::Fold;
use proctor_report::conversation::{ConversationOptions, Follower, TrialHeading};
use proctor_report::terminal::TerminalStyle;
use serde_json::json;

use crate::sample::Sample;

const OPTIONS: ConversationOptions = ConversationOptions {
    style: TerminalStyle {
        width: 80,
        colour: false,
    },
    full: false,
    turns: true,
    max_items: None,
    max_lines: None,
};

/// A trial that is followed, event by event.
struct Followed {
    sample: Sample,
    fold: Fold,
    follower: Follower,
    seq: u64,
}

impl Followed {
    fn new() -> Self {
        let mut followed = Self {
            sample: Sample::without_trials(),
            fold: Fold::new(OPTIONS.fold_options()),
            follower: Follower::default(),
            seq: 0,
        };
        followed.push(EventKind::TrialStarted(TrialStarted {
            case: "one".to_owned(),
            agent: None,
            repeat: 1,
            attempt: 1,
        }));
        followed.push(EventKind::ConnectionOpened(ConnectionOpened {
            conn: ConnectionId(1),
            server: "desk".to_owned(),
            actor: Actor::Loop,
            transport: WireKind::Stdio,
            target: "desk".to_owned(),
        }));
        followed
    }

    /// Adds an event, and returns what is new.
    fn push(&mut self, event: EventKind) -> String {
        self.seq += 1;
        let event = Event {
            seq: self.seq,
            at: self.seq * 1_000,
            event,
        };
        let pushed = self.fold.push(&event, self.sample.run.blobs());
        pushed.expect("a fold");
        let heading = TrialHeading {
            case: "one".to_owned(),
            agent: None,
            repeat: 1,
            runs: 1,
            attempt: 1,
            places: Arc::default(),
        };
        let folded = self.fold.clone().finish();
        self.follower.update(&heading, folded, &OPTIONS)
    }

    fn message(&mut self, direction: Direction, message: &serde_json::Value) -> String {
        self.push(EventKind::Frame(Frame {
            conn: ConnectionId(1),
            exchange: None,
            direction,
            body: Body::Text(message.to_string()),
        }))
    }

    fn calls(&mut self, id: u64, tool: &str) -> String {
        let params = json!({"name": tool, "arguments": {}});
        let request = json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params});
        self.message(Direction::ToServer, &request)
    }

    fn gets(&mut self, id: u64, text: &str) -> String {
        let result = json!({"content": [{"type": "text", "text": text}]});
        let response = json!({"jsonrpc": "2.0", "id": id, "result": result});
        self.message(Direction::ToClient, &response)
    }

    fn ends(&mut self) -> String {
        self.push(EventKind::TrialEnded(TrialEnded {
            outcome: Outcome::Failed,
            reason: Some("no response".to_owned()),
            blame: None,
        }))
    }
}

#[test]
fn a_call_without_a_response_does_not_hold_back_the_next() {
    let mut trial = Followed::new();
    assert_eq!(trial.calls(1, "print"), "");
    assert_eq!(trial.calls(2, "echo"), "");
    let text = trial.gets(2, "hello");
    let open = text.find("desk.print").expect("the first call");
    let next = text.find("desk.echo").expect("the second call");
    assert!(open < next, "{text}");
    assert!(text[open..next].contains("→ no response yet"), "{text}");
    assert!(text[next..].contains("hello"), "{text}");
    // What comes next does not show it again.
    trial.calls(3, "echo");
    let text = trial.gets(3, "again");
    assert!(text.contains("again") && !text.contains("print"), "{text}");
    let text = trial.ends();
    assert_eq!(text.matches("desk.print").count(), 1, "{text}");
    assert!(text.contains("→ no response\n"), "{text}");
    assert!(!text.contains("desk.echo"), "{text}");
}

#[test]
fn a_late_response_is_shown_with_its_call() {
    let mut trial = Followed::new();
    trial.calls(1, "print");
    trial.calls(2, "echo");
    trial.gets(2, "hello");
    let text = trial.gets(1, "printed");
    assert!(
        text.starts_with("#3 ") && text.contains("desk.print"),
        "{text}"
    );
    assert!(text.contains("printed"), "{text}");
    let text = trial.ends();
    assert!(!text.contains("desk."), "{text}");
}

#[test]
fn the_last_call_waits_for_its_response() {
    let mut trial = Followed::new();
    assert_eq!(trial.calls(1, "print"), "");
    let text = trial.gets(1, "printed");
    assert_eq!(text.matches("desk.print").count(), 1, "{text}");
    assert!(!text.contains("no response"), "{text}");
}
