//! Items that are taken while a trial is read are those of the whole trial.

use proptest::prelude::*;

use super::*;
use crate::event::{ModelAsked, ModelReplied, Purpose};
use crate::model::{StopReason, Usage};

fn with_turns() -> FoldOptions {
    FoldOptions {
        turns: true,
        ..FoldOptions::default()
    }
}

impl Trial {
    fn turn(self, ask: u64) -> Self {
        let asked = self.event(EventKind::ModelAsked(ModelAsked {
            ask,
            purpose: Purpose::Agent,
            model: "a:b".to_owned(),
            known: 0,
            request: Body::Text("{}".to_owned()),
            digest: String::new(),
        }));
        let turn = format!(r#"{{"text":"turn {ask}","calls":[]}}"#);
        asked.event(EventKind::ModelReplied(ModelReplied {
            ask,
            turn: Body::Text(turn),
            raw: None,
            stop: StopReason::Done,
            usage: Usage::default(),
            cost_usd: None,
        }))
    }

    fn events(&self) -> impl Iterator<Item = Result<Event, RecordError>> {
        self.events.clone().into_iter().map(Ok)
    }

    /// The outline and the items of two passes.
    fn streamed(&self, options: &FoldOptions) -> (TrialOutline, Vec<TimelineItem>) {
        let blobs = Blobs::of_run(Path::new("none"));
        let outline = TrialOutline::of_events(self.events(), &blobs, options).unwrap();
        let mut items = Vec::new();
        let take = |item| -> Result<(), RecordError> {
            items.push(item);
            Ok(())
        };
        outline
            .each_item_of(self.events(), &blobs, options, take)
            .unwrap();
        (outline, items)
    }
}

/// A trial of these steps; the second number says which of the open calls a step means.
fn trial(steps: &[(u8, usize)]) -> Trial {
    let mut trial = Trial::stdio();
    let mut open: Vec<usize> = Vec::new();
    for (number, (step, which)) in steps.iter().enumerate() {
        let chosen = which % open.len().max(1);
        let id = number.to_string();
        trial = match step {
            0 | 1 => {
                open.push(number);
                trial.calls(&id, ["read", "write"][which % 2])
            }
            2 | 3 if !open.is_empty() => {
                let id = open.remove(chosen).to_string();
                trial.gets(&result(&id, "fine"))
            }
            4 if !open.is_empty() => {
                let id = open.remove(chosen).to_string();
                trial.gets(&format!(
                    r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":-1,"message":"no"}}}}"#
                ))
            }
            5 if !open.is_empty() => {
                let id = open[chosen];
                trial.sends(&format!(
                    r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{id}}}}}"#
                ))
            }
            6 => trial.frame(
                1,
                None,
                Direction::ToClient,
                Body::Cut {
                    bytes: 9,
                    sha256: String::new(),
                },
            ),
            7 => trial.sends(&format!(
                "[{},{}]",
                call(&format!("\"a{id}\""), "read"),
                call(&format!("\"b{id}\""), "list")
            )),
            _ => trial.turn(number as u64),
        };
    }
    trial
}

fn check(trial: Trial) {
    let options = with_turns();
    let (outline, items) = trial.streamed(&options);
    let (whole, all) = trial.folded_with(&options).into_timeline();
    assert_eq!(items, all);
    assert_eq!(outline.calls, whole.calls);
    assert_eq!(outline.tools, whole.tools);
    assert_eq!(outline.last_turn, whole.last_turn);
    assert_eq!(outline.folded.findings, whole.folded.findings);
    assert_eq!(outline.folded.conduct, whole.folded.conduct);
    assert_eq!(outline.folded.work, whole.folded.work);
}

proptest! {
    #[test]
    fn items_of_a_stream_are_those_of_the_whole_trial(
        steps in prop::collection::vec((0_u8..10, 0_usize..8), 0..60),
    ) {
        check(trial(&steps));
    }
}

#[test]
fn a_turn_waits_for_the_calls_before_it() {
    let trial = Trial::stdio()
        .turn(1)
        .calls("1", "read")
        .turn(2)
        .calls("2", "write")
        .gets(&result("2", "b"))
        .gets(&result("1", "a"));
    let (_, items) = trial.streamed(&with_turns());
    let seqs: Vec<u64> = items.iter().map(TimelineItem::seq).collect();
    assert_eq!(seqs, [3, 4, 6, 7]);
    check(trial);
}

#[test]
fn an_answered_call_makes_room_for_the_next() {
    let options = FoldOptions {
        payload_bytes: 200,
        ..with_turns()
    };
    let mut trial = Trial::stdio();
    for id in 0..100 {
        let id = id.to_string();
        trial = trial
            .calls(&id, "read")
            .gets(&result(&id, &"x".repeat(100)));
    }
    let is_read = |item: &TimelineItem| match item {
        TimelineItem::Call(call) => {
            matches!(call.answer, CallOutcome::Result(Payload::Value(_)))
        }
        TimelineItem::Turn(_) | TimelineItem::ServerRequest(_) | TimelineItem::Message(_) => false,
    };
    let (outline, items) = trial.streamed(&options);
    assert_eq!((outline.calls, items.len()), (100, 100));
    assert!(items.iter().all(is_read));
    let (_, whole) = trial.folded_with(&options).into_timeline();
    assert_eq!(whole.iter().filter(|item| is_read(item)).count(), 1);
}

#[test]
fn a_call_without_a_response_holds_up_no_other() {
    let options = FoldOptions {
        payload_bytes: 200,
        ..with_turns()
    };
    let mut trial = Trial::stdio().calls("900", "lost");
    for id in 0..100 {
        let id = id.to_string();
        trial = trial
            .calls(&id, "read")
            .gets(&result(&id, &"x".repeat(100)));
    }
    let (outline, items) = trial.streamed(&options);
    assert_eq!((outline.calls, items.len()), (101, 101));
    let answers: Vec<&CallOutcome> = items
        .iter()
        .filter_map(|item| match item {
            TimelineItem::Call(call) => Some(&call.answer),
            TimelineItem::Turn(_) | TimelineItem::ServerRequest(_) | TimelineItem::Message(_) => {
                None
            }
        })
        .collect();
    assert_eq!(answers[0], &CallOutcome::None);
    // Each result was in memory alone: together they are larger than what is kept.
    let is_read = |answer: &&&CallOutcome| matches!(answer, CallOutcome::Result(Payload::Value(_)));
    assert_eq!(answers[1..].iter().filter(is_read).count(), 100);
}
