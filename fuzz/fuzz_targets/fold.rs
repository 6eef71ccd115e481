//! The fold: a record without an end has none, a call has a message of the agent behind it, events of a newer version change
//! nothing, and a trial without calls meets no check that asks for one.
#![no_main]

use std::path::Path;
use std::sync::Arc;

use libfuzzer_sys::fuzz_target;
use proctor_core::check::Check;
use proctor_core::grading::CaseChecks;
use proctor_fuzz::{graded_generously, tool_used};
use proctor_record::decision;
use proctor_record::event::{
    Actor, Body, ConnectionClosed, ConnectionId, ConnectionOpened, Direction, Event, EventKind,
    Frame, Outcome, UnknownEvent, WireKind,
};
use proctor_record::fold::{FoldOptions, FoldedTrial, fold};
use proctor_record::record::Blobs;
use proctor_record::verdict::Verdict;

fuzz_target!(|data: &[u8]| {
    let events: Vec<Event> = data
        .split(|byte| *byte == b'\n')
        .take(64)
        .filter_map(kind)
        .enumerate()
        .map(|(index, event)| Event {
            seq: index as u64 + 1,
            at: index as u64 * 1000,
            event,
        })
        .collect();
    let Some(folded) = folded(&events) else {
        return;
    };
    ends_as_recorded(&events, &folded);
    comes_from_messages(&events, &folded);
    is_stable(&events, &folded);
    asks_for_calls(&folded);
    let _ = decision::server_failure(&folded.conduct);
    let _ = decision::blame_for_failure(&folded);
});

/// An event from a line: a letter and a text, or the JSON of an event.
fn kind(line: &[u8]) -> Option<EventKind> {
    let (&[letter, connection], text) = line.split_first_chunk::<2>()?;
    let conn = ConnectionId(u32::from(connection & 3));
    let frame = |direction| {
        let body = match std::str::from_utf8(text) {
            Ok(text) => Body::Text(text.to_owned()),
            Err(_) => Body::Base64(data_encoding::BASE64.encode(text)),
        };
        let exchange = (connection & 4 != 0).then_some(u64::from(connection >> 5));
        EventKind::Frame(Frame {
            conn,
            exchange,
            direction,
            body,
        })
    };
    Some(match letter {
        b'>' => frame(Direction::ToServer),
        b'<' => frame(Direction::ToClient),
        b'o' => EventKind::ConnectionOpened(ConnectionOpened {
            conn,
            server: "s".to_owned(),
            actor: match text.first() {
                Some(b's') => Actor::Step,
                Some(b'l') => Actor::Loop,
                _ => Actor::Agent,
            },
            transport: if connection & 4 == 0 {
                WireKind::Stdio
            } else {
                WireKind::Http
            },
            target: String::new(),
        }),
        b'c' => EventKind::ConnectionClosed(ConnectionClosed {
            conn,
            reason: String::from_utf8_lossy(text).into_owned(),
            stderr: None,
            end: None,
        }),
        _ => serde_json::from_slice(line).ok()?,
    })
}

fn folded(events: &[Event]) -> Option<FoldedTrial> {
    let blobs = Blobs::of_run(Path::new("/nonexistent"));
    let options = FoldOptions {
        turns: true,
        ..FoldOptions::for_checks()
    };
    fold(events.iter().cloned().map(Ok), &blobs, &options).ok()
}

fn ends_as_recorded(events: &[Event], folded: &FoldedTrial) {
    let ends: Vec<_> = events
        .iter()
        .filter_map(|event| match &event.event {
            EventKind::TrialEnded(ended) => Some(ended),
            _ => None,
        })
        .collect();
    match &folded.ended {
        None => assert_eq!(ends, Vec::<&_>::new()),
        Some(ended) => assert!(ends.contains(&ended)),
    }
    let passes = |event: &Event| match &event.event {
        EventKind::Graded(graded) => graded.verdict == Verdict::Pass,
        _ => false,
    };
    let recorded = events.iter().filter(|event| passes(event)).count();
    let checks = &folded.work.checks;
    let shown = checks.iter().filter(|check| check.verdict == Verdict::Pass);
    assert!(shown.count() <= recorded);
}

fn comes_from_messages(events: &[Event], folded: &FoldedTrial) {
    let calls = &folded.transcript.calls;
    assert_eq!(calls.len(), folded.made_at.len());
    assert_eq!(calls.len(), folded.in_error.len());
    let is_sent = |seq: u64| {
        let event = usize::try_from(seq)
            .ok()
            .and_then(|seq| events.get(seq.checked_sub(1)?));
        matches!(
            event.map(|event| &event.event),
            Some(EventKind::Frame(Frame {
                direction: Direction::ToServer,
                ..
            }))
        )
    };
    assert!(calls.iter().all(|call| is_sent(call.seq)));
    assert!(calls.is_sorted_by_key(|call| call.seq));
}

fn is_stable(events: &[Event], folded_once: &FoldedTrial) {
    let lines: Vec<String> = events
        .iter()
        .map(|event| serde_json::to_string(event).expect("a line"))
        .collect();
    let again: Vec<Event> = lines
        .iter()
        .map(|line| serde_json::from_str(line).expect("an event"))
        .collect();
    assert_eq!(folded(&again).as_ref(), Some(folded_once));
    let mut newer = events.to_vec();
    newer.push(Event {
        seq: events.len() as u64 + 1,
        at: events.last().map_or(0, |event| event.at),
        event: EventKind::Unknown(UnknownEvent {
            name: "later".to_owned(),
            content: None,
        }),
    });
    let newer = folded(&newer).expect("a fold");
    assert_eq!(newer.transcript, folded_once.transcript);
    assert_eq!(newer.ended, folded_once.ended);
    assert_eq!(newer.work.checks, folded_once.work.checks);
}

/// Checks that ask for something, on whatever the agent did.
fn asks_for_calls(folded: &FoldedTrial) {
    let asked = [
        tool_used(None),
        Check::MinToolCalls(1),
        Check::CallOrder(Vec::new()),
        Check::ToolsUsed(Vec::new()),
        Check::ToolsNotUsed(Vec::new()),
    ];
    let has_calls = !folded.transcript.calls.is_empty();
    for check in asked {
        let result = check.evaluate(&folded.transcript);
        let asks_nothing = !matches!(&check, Check::ToolsUsed(list) if !list.is_empty())
            && !matches!(check, Check::MinToolCalls(_));
        if result.verdict == Verdict::Pass {
            assert!(has_calls && !asks_nothing, "{check:?} passes");
        }
        let checks = [Arc::new(check)];
        let checks = CaseChecks {
            assertions: &checks,
            verify: &[],
            is_shipped: false,
        };
        let ended = graded_generously(checks, folded);
        assert!(ended.outcome != Outcome::Passed || has_calls, "{ended:?}");
    }
}
