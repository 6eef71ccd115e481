//! Trials as conversations.

use std::sync::Arc;

use proctor_core::trial_names;
use proctor_record::event::{
    AgentClaimed, AgentStarted, Body, Claim, Event, EventKind, ModelAsked, ModelFailed,
    ModelReplied, Purpose, TrialStarted,
};
use proctor_record::fold::{FoldedTrial, TrialOutline, fold, fold_trial};
use proctor_record::model::{StopReason, Usage};
use proctor_record::record::{RecordError, TrialFile};
use proctor_report::conversation::{Conversation, ConversationOptions, TrialHeading};
use proctor_report::terminal::TerminalStyle;
use serde_json::json;
use unicode_width::UnicodeWidthStr;

use crate::sample::{HOSTILE, Sample};

fn options(width: usize, full: bool) -> ConversationOptions {
    let colour = false;
    ConversationOptions {
        style: TerminalStyle { width, colour },
        full,
        turns: true,
        max_items: None,
        max_lines: None,
    }
}

fn render(heading: &TrialHeading, folded: FoldedTrial, options: &ConversationOptions) -> String {
    let (outline, items) = folded.into_timeline();
    let mut conversation = Conversation::new(heading, &outline, options);
    for item in &items {
        conversation.item(item);
    }
    conversation.finish();
    conversation.take()
}

/// Whatever the text holds, it stays inert and within the width.
fn assert_inert(text: &str, width: usize) {
    for line in text.lines() {
        assert!(line.width() <= width, "{} columns: {line}", line.width());
        let hidden = line
            .chars()
            .find(|c| proctor_core::printable::is_hidden(*c));
        assert_eq!(hidden, None, "{line:?}");
        assert!(!line.trim_start().starts_with("::"), "{line:?}");
    }
}

/// The conversation of a trial that is read twice, taken in small pieces.
fn streamed(
    sample: &Sample,
    file: &TrialFile,
    heading: &TrialHeading,
    options: &ConversationOptions,
) -> String {
    let fold = options.fold_options();
    let outline = TrialOutline::read(&sample.run, file, &fold).expect("an outline");
    let mut conversation = Conversation::new(heading, &outline, options);
    let mut out = conversation.take();
    let items = outline.each_item(&sample.run, file, &fold, |item| {
        conversation.item(&item);
        out.push_str(&conversation.take());
        Ok::<(), RecordError>(())
    });
    items.expect("items");
    conversation.finish();
    out + &conversation.take()
}

fn sample(width: usize) -> String {
    let sample = Sample::new();
    let options = options(width, false);
    let mut out = String::new();
    for trial in trial_names::load(&sample.run).expect("trials") {
        let folded = fold_trial(&sample.run, &trial.file, &options.fold_options()).expect("a fold");
        let heading = TrialHeading {
            case: trial.case.clone(),
            agent: trial.agent.clone(),
            repeat: trial.repeat,
            runs: trial.runs,
            attempt: trial.file.attempt,
            places: trial.places,
        };
        let whole = render(&heading, folded, &options);
        assert_eq!(streamed(&sample, &trial.file, &heading, &options), whole);
        out.push_str(&whole);
    }
    assert_inert(&out, width);
    out
}

#[test]
fn every_sort_of_trial_is_a_conversation_at_80_columns() {
    insta::assert_snapshot!(sample(80));
}

#[test]
fn hostile_text_stays_inert_at_every_width() {
    for width in [40, 57, 140] {
        sample(width);
    }
}

fn events(prompt: &str) -> Vec<EventKind> {
    let text = |value: serde_json::Value| Body::Text(value.to_string());
    let asked = |ask| {
        EventKind::ModelAsked(ModelAsked {
            ask,
            purpose: Purpose::Agent,
            model: "openai:gpt-5".to_owned(),
            known: 0,
            request: text(json!({})),
            digest: String::new(),
        })
    };
    let replied = |ask, turn| {
        EventKind::ModelReplied(ModelReplied {
            ask,
            turn,
            raw: None,
            stop: StopReason::Calls,
            usage: Usage::default(),
            cost_usd: None,
        })
    };
    let call = |name: &str, arguments: serde_json::Value| json!({"id": "1", "name": name, "arguments": arguments});
    let calls = json!([
        call("echo", json!({"object": {}})),
        call("launch\u{1b}[31m", json!({"object": {}})),
        call(
            "echo",
            json!({"malformed": {"text": "{", "reason": "EOF at column 1"}})
        ),
    ]);
    vec![
        EventKind::TrialStarted(TrialStarted {
            case: "one".to_owned(),
            agent: None,
            repeat: 1,
            attempt: 1,
        }),
        EventKind::Prompted {
            text: Body::Text(prompt.to_owned()),
            turn: None,
        },
        EventKind::ToolsOffered {
            tools: text(json!([{"name": "echo"}])),
        },
        asked(1),
        EventKind::ModelFailed(ModelFailed {
            ask: 1,
            attempt: 1,
            reason: format!("429 {HOSTILE}"),
            again_in: None,
        }),
        replied(
            1,
            text(json!({"text": "I will.\n::error::x", "calls": calls})),
        ),
        asked(2),
        replied(2, Body::Text("not JSON".to_owned())),
        EventKind::AgentStarted(AgentStarted {
            command: vec!["codex".to_owned()],
            version: None,
            skill_tool: None,
            purpose: Purpose::Agent,
        }),
        EventKind::AgentClaimed(AgentClaimed {
            tool: "mcp__fixture__delete".to_owned(),
            arguments: None,
            status: Claim::Denied,
            detail: Some("denied by the policy".to_owned()),
        }),
        EventKind::AgentAnswered {
            text: Body::Text("done".to_owned()),
        },
    ]
}

fn shown(prompt: &str, options: &ConversationOptions) -> String {
    let sample = Sample::without_trials();
    let events = events(prompt).into_iter().zip(1_u64..).map(|(event, seq)| {
        Ok(Event {
            seq,
            at: seq * 1_000,
            event,
        })
    });
    let folded = fold(events, sample.run.blobs(), &options.fold_options()).expect("a fold");
    let heading = TrialHeading {
        case: "one".to_owned(),
        agent: Some("codex".to_owned()),
        repeat: 4,
        runs: 5,
        attempt: 2,
        places: Arc::default(),
    };
    render(&heading, folded, options)
}

#[test]
fn invented_tools_denials_and_failed_requests_are_shown() {
    let text = shown("Echo.", &options(80, false));
    assert_inert(&text, 80);
    insta::assert_snapshot!(text);
}

#[test]
fn a_long_text_loses_its_middle_unless_it_is_shown_whole() {
    let lines: Vec<String> = (1..=100).map(|n| format!("line {n}\n")).collect();
    let prompt = lines.concat();
    let text = shown(&prompt, &options(80, false));
    assert!(
        text.contains(
            "line 16\n  … 76 lines (532 bytes) left out; --full shows them …\n  line 93\n"
        ),
        "{text}"
    );
    let text = shown(&prompt, &options(80, true));
    assert!(
        text.contains("line 50\n") && !text.contains("left out"),
        "{text}"
    );
    // One line without end is wrapped and cut alike.
    let text = shown(&"x".repeat(1_000_000), &options(80, false));
    assert!(
        text.lines().count() < 70 && text.contains("left out"),
        "{text}"
    );
    assert_inert(&text, 80);
}
