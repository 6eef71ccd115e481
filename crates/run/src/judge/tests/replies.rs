//! Replies are parsed strictly.

use super::*;

fn reply(text: &str, calls: &[(&str, Value)], stop: StopReason) -> Reply {
    let calls = calls.iter().map(|(name, arguments)| ToolCall {
        id: "1".to_owned(),
        name: (*name).to_owned(),
        arguments: match arguments.as_object() {
            Some(map) => Arguments::Object(map.clone()),
            None => Arguments::Malformed {
                text: arguments.to_string(),
                reason: "not a JSON object".to_owned(),
            },
        },
    });
    Reply {
        turn: Turn {
            text: text.to_owned(),
            calls: calls.collect(),
            ..Turn::default()
        },
        stop,
        usage: Usage::default(),
        raw: None,
    }
}

/// The arguments of a valid verdict.
fn good() -> Value {
    json!({"reason": "r", "evidence": ["q"], "verdict": "pass"})
}

#[test]
fn a_verdict_is_read_from_one_call_of_its_tool() {
    let check = |calls: &[(&str, Value)], problem: &'static str| {
        let read = ballot::read(&reply("", calls, StopReason::Calls));
        assert_eq!(read, ParsedBallot::Malformed(problem));
    };
    let read = ballot::read(&reply("so: fail", &[("verdict", good())], StopReason::Done));
    assert_eq!(
        read,
        ParsedBallot::Ballot(Ballot {
            reason: "r".to_owned(),
            ..ballot(BallotVerdict::Pass, &["q"])
        })
    );
    check(
        &[("verdict", good()), ("verdict", good())],
        "more than one tool call was made",
    );
    check(
        &[("verdicts", good())],
        "a tool other than `verdict` was called",
    );
}

#[test]
fn a_verdict_is_parsed_strictly() {
    let with = |key: &str, value: Value| {
        let mut changed = good();
        changed[key] = value;
        changed
    };
    let check = |arguments: Value, problem: &'static str| {
        let read = ballot::read(&reply("", &[("verdict", arguments)], StopReason::Calls));
        assert_eq!(read, ParsedBallot::Malformed(problem));
    };
    for verdict in [
        json!("PASS"),
        json!("passed"),
        json!(" pass"),
        json!(true),
        json!(["pass"]),
        json!(null),
    ] {
        check(
            with("verdict", verdict),
            "`verdict` must be `pass`, `fail` or `unknown`",
        );
    }
    check(
        with("reason", json!(" ")),
        "`reason` must be a text that is not empty",
    );
    check(
        with("reason", json!(1)),
        "`reason` must be a text that is not empty",
    );
    check(
        with("evidence", json!("q")),
        "`evidence` must be a list of texts",
    );
    check(
        with("evidence", json!(["q", " "])),
        "every quote in `evidence` must be a text that is not empty",
    );
    check(
        with("confidence", json!(1)),
        "the only keys are `reason`, `evidence` and `verdict`",
    );
    check(json!({}), "`reason` must be a text that is not empty");
    check(
        json!([]),
        "the arguments were not a JSON object with each key once",
    );
}

#[test]
fn a_verdict_in_plain_text_must_be_the_json_object_alone() {
    let passes = |text: &str| {
        matches!(
            ballot::read(&reply(text, &[], StopReason::Done)),
            ParsedBallot::Ballot(Ballot {
                choice: BallotVerdict::Pass,
                ..
            })
        )
    };
    let good = r#"{"reason": "r", "evidence": ["q"], "verdict": "pass"}"#;
    assert!(passes(good));
    for text in [
        "pass",
        "",
        &format!("Here: {good}"),
        &format!("{good} {good}"),
        &format!("[{good}]"),
        &format!("```json\n{good}\n```\n"),
        &format!("```\n{good}\n```"),
        r#"{"reason": "r", "evidence": ["q"], "verdict": "fail", "verdict": "pass"}"#,
        r#"{"reason": "r", "evidence": ["q"], "verdict": "pass", "x": 1}"#,
        r#"{"reason": "r", "verdict": "pass"}"#,
    ] {
        assert!(!passes(text), "{text}");
    }
}

#[test]
fn a_refused_or_cut_off_reply_is_not_a_verdict() {
    let good = json!({"reason": "r", "evidence": ["q"], "verdict": "pass"});
    let check = |stop: StopReason, reason: &str| {
        let read = ballot::read(&reply("", &[("verdict", good.clone())], stop));
        assert_eq!(read, ParsedBallot::None(reason.to_owned()));
    };
    check(StopReason::Refusal, "the judge declined");
    check(StopReason::Length, "the judge's reply was cut off");
    check(
        StopReason::Other("pause".to_owned()),
        "the judge stopped with the reason `pause`",
    );
}
