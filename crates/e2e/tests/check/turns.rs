//! Tasks with several messages of the user: fixed ones, and a user that a model plays.

use proctor_e2e::session::SessionOutcome;
use proctor_e2e::suite::SuiteFixture;
use proctor_record::event::{Blame, EventKind, Outcome, Purpose, TrialEnded};
use serde_json::{Value, json};

/// Echoes what the user says last, then is done; does nothing if the user says so.
const RULES: &str = r"
  - when: {user: nothing}
    reply: {text: I did nothing.}
  - when: {user: be silent}
    reply: {text: ' '}
  - when: {user: be brief, results: 1}
    reply: {calls: [{tool: add, arguments: {a: 1, b: 2}}]}
  - when: {user: be brief}
    reply: {text: ''}
  - when: {user: give up}
    reply: {refuse: I give up.}
  - when: {results: 0}
    reply: {calls: [{tool: echo, arguments: {text: '{user}'}}]}
  - when: {results: 1, user: second}
    reply: {calls: [{tool: add, arguments: {a: 1, b: 2}}]}
  - when: {results: 2, user: third}
    reply: {calls: [{tool: echo, arguments: {text: third}}]}
  - reply: {text: 'done with {user}', usage: {input: 10, output: 1}}
";

fn suite() -> SuiteFixture {
    let suite = SuiteFixture::new(RULES, &[]);
    suite.eval(&json!({}), &json!({"assertions": {"minToolCalls": 1}}));
    suite
}

fn said(text: &str, assertions: &Value) -> Value {
    let mut turn = json!({"prompt": {"inline": text}});
    if !assertions.is_null() {
        turn["assertions"] = assertions.clone();
    }
    turn
}

fn used(tool: &str) -> Value {
    json!({"toolsUsed": [{"server": "fixture", "tool": tool}]})
}

fn unused(tool: &str) -> Value {
    json!({"toolsNotUsed": [{"server": "fixture", "tool": tool}]})
}

fn run(suite: &SuiteFixture, turns: &Value) -> SessionOutcome {
    suite.task("first", &json!({"turns": turns}));
    suite.check(&[]).run()
}

fn ended(seen: &SessionOutcome) -> TrialEnded {
    match seen.events.last().map(|event| &event.event) {
        Some(EventKind::TrialEnded(ended)) => ended.clone(),
        other => panic!("the trial has no end but {other:?}\n{}", seen.stderr),
    }
}

#[track_caller]
fn ends(seen: &SessionOutcome, outcome: Outcome, blame: Option<Blame>, part: &str) {
    let ended = ended(seen);
    assert_eq!(ended.outcome, outcome, "{ended:?}\n{}", seen.stderr);
    assert_eq!(ended.blame, blame, "{ended:?}");
    let reason = ended.reason.unwrap_or_default();
    assert!(reason.contains(part), "{reason}");
}

fn prompts(seen: &SessionOutcome) -> Vec<Option<u32>> {
    let prompts = seen.events.iter().filter_map(|event| match &event.event {
        EventKind::Prompted { turn, .. } => Some(*turn),
        _ => None,
    });
    prompts.collect()
}

#[test]
fn each_turn_has_its_own_checks() {
    let seen = run(
        &suite(),
        &json!([
            said("second", &used("add")),
            said(
                "third",
                &json!({"toolsUsed": used("echo")["toolsUsed"], "toolsNotUsed": unused("add")["toolsNotUsed"]})
            ),
        ]),
    );
    ends(&seen, Outcome::Passed, None, "");
    assert_eq!(prompts(&seen), [None, Some(2), Some(3)]);
}

#[test]
fn a_call_of_another_turn_meets_no_check_of_this_one() {
    // `echo` is called in turn 1 only.
    let seen = run(&suite(), &json!([said("second", &used("echo"))]));
    ends(
        &seen,
        Outcome::Failed,
        Some(Blame::Agent),
        "turn 2: toolsUsed: `fixture` `echo` was never called",
    );
    // `add` is called in turn 2, so only turn 3 is without it.
    let seen = run(&suite(), &json!([said("second", &unused("add"))]));
    ends(
        &seen,
        Outcome::Failed,
        Some(Blame::Agent),
        "turn 2: toolsNotUsed",
    );
}

#[test]
fn an_agent_that_stops_early_passes_no_later_turn() {
    let turns = json!([said("give up", &Value::Null), said("third", &unused("add"))]);
    let seen = run(&suite(), &turns);
    ends(
        &seen,
        Outcome::Failed,
        Some(Blame::Agent),
        "refused to answer",
    );
    assert_eq!(prompts(&seen), [None, Some(2)]);
}

#[test]
fn an_agent_that_is_silent_in_one_turn_does_not_pass() {
    let suite = suite();
    let forbids = json!({"maxToolCalls": 0});
    for turns in [
        json!([said("be silent", &forbids)]),
        json!([
            said("be silent", &unused("add")),
            said("nothing", &Value::Null)
        ]),
    ] {
        let seen = run(&suite, &turns);
        let reason = "the agent gave no answer and made no calls in turn 2";
        ends(&seen, Outcome::Failed, Some(Blame::Agent), reason);
        assert_eq!(prompts(&seen), [None, Some(2)]);
        assert_eq!(seen.code, Some(1));
        let folder = seen.record.display().to_string();
        let output = suite.proctor(&["result", "regrade", &folder]);
        let text = String::from_utf8(output.stdout).unwrap();
        assert_eq!(output.status.code(), Some(1), "{text}");
    }
    // A call alone is an answer.
    let seen = run(&suite, &json!([said("be brief", &used("add"))]));
    ends(&seen, Outcome::Passed, None, "");
}

#[test]
fn limits_apply_to_all_turns_together() {
    let suite = suite();
    let turns = json!([said("second", &Value::Null), said("third", &Value::Null)]);
    suite.task("first", &json!({"turns": turns, "limits": {"maxTurns": 5}}));
    let seen = suite.check(&[]).run();
    ends(&seen, Outcome::TimedOut, None, "not done after 5 turns");
}

/// A turn with a user that follows these rules.
fn user(suite: &SuiteFixture, rules: &str, more: &Value) -> Value {
    suite.write("user.yaml", &format!("kind: Script\nrules:\n{rules}"));
    let mut user = json!({"model": "scripted:../user.yaml", "goal": "Make it do things."});
    for (key, value) in more.as_object().unwrap() {
        user[key] = value.clone();
    }
    json!({"user": user})
}

const SECOND_THEN_END: &str = r"
  - when: {system: 'Make it do things', user: done with first, turn: 1}
    reply: {text: second, usage: {input: 500, output: 50}}
  - when: {user: done with second}
    reply: {text: 'Thanks. [end]'}
";

#[test]
fn a_model_plays_the_user_until_it_ends_the_conversation() {
    let suite = suite();
    let mut turn = user(&suite, SECOND_THEN_END, &json!({}));
    turn["assertions"] = used("add");
    let seen = run(&suite, &json!([turn]));
    ends(&seen, Outcome::Passed, None, "");
    assert_eq!(prompts(&seen), [None, Some(2)]);
    let asks = seen.events.iter().filter_map(|event| match &event.event {
        EventKind::ModelAsked(asked) => Some(asked.purpose),
        _ => None,
    });
    assert_eq!(asks.filter(|purpose| *purpose == Purpose::User).count(), 2);
    // The user's tokens count into the usage of the trial.
    let tokens = seen.stdout.lines().find(|line| line.starts_with("Tokens"));
    assert!(tokens.unwrap().ends_with(" in, 62 out"), "{}", seen.stdout);
}

#[test]
fn a_user_that_never_stops_times_the_trial_out() {
    let suite = suite();
    let turn = user(
        &suite,
        "  - reply: {text: second}\n",
        &json!({"maxTurns": 3}),
    );
    let seen = run(&suite, &json!([turn]));
    ends(
        &seen,
        Outcome::TimedOut,
        None,
        "the user of turn 2 was not done after 3 messages",
    );
}

#[test]
fn a_user_without_a_message_passes_no_check_of_its_turn() {
    let suite = suite();
    let mut turn = user(&suite, "  - reply: {text: '[end]'}\n", &json!({}));
    turn["assertions"] = unused("add");
    let seen = run(&suite, &json!([turn]));
    let reason = "turn 2: toolsNotUsed: the user sent no message of turn 2";
    ends(&seen, Outcome::Failed, Some(Blame::Agent), reason);
    let turn = user(&suite, "  - reply: {text: ' '}\n", &json!({}));
    let seen = run(&suite, &json!([turn]));
    ends(
        &seen,
        Outcome::Errored,
        Some(Blame::Suite),
        "wrote no message",
    );
    let turn = user(
        &suite,
        "  - {when: {user: x}, reply: {text: a}}\n",
        &json!({}),
    );
    let seen = run(&suite, &json!([turn]));
    ends(
        &seen,
        Outcome::Errored,
        Some(Blame::Suite),
        "user.yaml: no rule matches",
    );
}

#[test]
fn a_conversation_is_shown_replayed_and_regraded() {
    let suite = suite();
    let mut turn = user(&suite, SECOND_THEN_END, &json!({}));
    turn["assertions"] = used("add");
    suite.task(
        "first",
        &json!({"turns": [turn, said("third", &unused("add"))]}),
    );
    let seen = suite.check(&[]).run();
    let folder = seen.record.display().to_string();
    ends(&seen, Outcome::Passed, None, "");

    let view = suite.proctor(&["result", "view", &folder]);
    let text = String::from_utf8(view.stdout).unwrap();
    let mut rest = text.as_str();
    for part in [
        "Prompt\n  first",
        "User  turn 2\n  second",
        "User  turn 3\n  third",
        "turn 3: toolsNotUsed",
    ] {
        let at = rest
            .find(part)
            .unwrap_or_else(|| panic!("no {part:?} in\n{text}"));
        rest = &rest[at + part.len()..];
    }

    suite.write(
        "user.yaml",
        "kind: Script\nrules:\n  - reply: {text: never}\n",
    );
    let replayed = suite.check(&["--replay", &folder]).run();
    ends(&replayed, Outcome::Passed, None, "");
    assert_eq!(prompts(&replayed), [None, Some(2), Some(3)]);

    let regrade = |turns: Value| {
        suite.task("first", &json!({"turns": turns}));
        let output = suite.proctor(&["result", "regrade", &folder]);
        let text = String::from_utf8(output.stdout).unwrap();
        (output.status.code(), text)
    };
    suite.write(
        "user.yaml",
        &format!("kind: Script\nrules:\n{SECOND_THEN_END}"),
    );
    let mut stricter = user(&suite, SECOND_THEN_END, &json!({}));
    stricter["assertions"] = unused("add");
    let (code, text) = regrade(json!([stricter, said("third", &unused("add"))]));
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("turn 2: toolsNotUsed"), "{text}");
    // Another message of the user would have led to other calls.
    let mut other = user(&suite, SECOND_THEN_END, &json!({}));
    other["assertions"] = used("add");
    let (code, text) = regrade(json!([other, said("fourth", &unused("add"))]));
    assert_eq!(code, Some(3), "{text}");
}

#[test]
fn rows_fill_the_messages_of_turns() {
    let suite = suite();
    let turns = json!([said("{row.next}", &used("add"))]);
    suite.task(
        "first",
        &json!({"turns": turns, "rows": [{"id": "a", "next": "second"}]}),
    );
    let seen = suite.check(&[]).run();
    ends(&seen, Outcome::Passed, None, "");
}

#[test]
fn mistakes_in_turns_are_found_before_anything_starts() {
    let check = |turns: Value, part: &str| {
        let seen = run(&suite(), &turns);
        assert_eq!(seen.code, Some(2), "{}", seen.stderr);
        assert!(seen.stderr.contains(part), "{}", seen.stderr);
    };
    check(json!([]), "the list is empty");
    check(json!([{"prompt": {"inline": " "}}]), "the prompt is empty");
    check(
        json!([{"promt": {"inline": "a"}}]),
        "did you mean `prompt`?",
    );
    check(json!([said("a", &json!({}))]), "this checks nothing");
    check(
        json!([said("a", &json!({"toolUsed": []}))]),
        "did you mean `toolsUsed`?",
    );
    check(
        json!([said("a", &json!({"minToolCalls": "{row.n}"}))]),
        "can't contain `{row.NAME}`",
    );
    let other = json!({"toolsUsed": [{"server": "fixtur", "tool": "echo"}]});
    check(json!([said("a", &other)]), "did you mean `fixture`?");
    check(
        json!([{"user": {"model": "scripted:none.yaml", "goal": "g"}}]),
        "none.yaml",
    );
}

#[test]
fn external_agents_take_one_message() {
    let suite = suite();
    suite.task("first", &json!({"turns": [said("second", &Value::Null)]}));
    let seen = suite.check(&["--agent", "claude-code"]).run();
    assert_eq!(seen.code, Some(2), "{}", seen.stderr);
    assert!(
        seen.stderr
            .contains("only `builtin.llm-agent` takes more than one"),
        "{}",
        seen.stderr
    );
}
