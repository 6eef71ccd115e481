//! An agent at work, within limits.

use proctor_record::event::{Blame, Purpose};
use serde_json::json;

use crate::shipping::{JUDGE, asks, eval, rubric};
use crate::stage::Stage;

const WALKER: &str = "
  - when: {prompt: 'for ever'}
    reply: {text: Once more, please., calls: [{tool: echo, arguments: {text: again}}]}
  - when: {prompt: 'twice', results: 2}
    reply: {text: Done it twice.}
  - when: {prompt: 'twice'}
    reply: {calls: [{tool: echo, arguments: {text: once}}]}
  - when: {prompt: 'refuse'}
    reply: {refuse: I must not do that.}
";

#[tokio::test]
async fn e23_a_scenario_is_judged_on_all_of_it_and_the_limit_is_a_note() {
    let within = |turns: u32, text: &str| {
        let mut input = asks("scenario", text);
        input["maxTurns"] = turns.into();
        input
    };
    let evals = json!([
        eval(
            "done",
            &asks("scenario", "twice"),
            &rubric("there is [Done it twice.]")
        ),
        eval(
            "calls",
            &asks("scenario", "twice"),
            &rubric(r#"there is [{"text":"once"}]"#)
        ),
        eval(
            "limit",
            &within(2, "for ever"),
            &rubric("there is [not done after 2 turns]")
        ),
        eval(
            "cap",
            &within(50, "for ever"),
            &rubric("there is [not done after 4 turns]")
        ),
        eval(
            "default",
            &asks("scenario", "for ever"),
            &rubric("there is [not done after 4 turns]")
        ),
        eval("limit-fails", &within(1, "for ever"), &rubric("it fails")),
        eval(
            "refused",
            &asks("scenario", "refuse"),
            &rubric("there is [I must not do that.]")
        ),
    ]);
    let mut stage = Stage::plain(&evals, &[]);
    stage.model = WALKER;
    stage.judge = JUDGE;
    stage.max_turns = Some(4);
    let ran = stage.run().await;
    let questions = [
        ("done", 3),
        ("calls", 3),
        ("limit", 2),
        ("cap", 4),
        ("default", 4),
        ("refused", 1),
    ];
    for (id, turns) in questions {
        ran.assert(id, "passed", None);
        assert_eq!(ran.asked(id, Purpose::Agent).len(), turns, "{id}");
    }
    ran.assert("limit-fails", "failed", Some(Blame::Agent));
}

#[tokio::test]
async fn e36_a_rubric_that_is_not_written_yet_passes_nothing() {
    let todo = rubric("TODO: there is [Done it twice.]");
    let evals = json!([eval("x", &asks("scenario", "twice"), &todo)]);
    let mut stage = Stage::plain(&evals, &[]);
    stage.model = WALKER;
    stage.judge = JUDGE;
    let ran = stage.run().await;
    ran.assert("x", "errored", Some(Blame::Suite));
    assert!(ran.asked("x", Purpose::Agent).is_empty());
}

#[tokio::test]
async fn e23_a_server_that_dies_in_a_scenario_fails_it() {
    let evals = json!([eval("x", &asks("scenario", "twice"), &rubric("it fails"))]);
    let mut stage = Stage::plain(&evals, &["--mode", "exit-in-call"]);
    stage.model = WALKER;
    stage.judge = JUDGE;
    let ran = stage.run().await;
    ran.assert("x", "failed", Some(Blame::Server));
    assert!(ran.asked("x", Purpose::Judge).is_empty());
}

#[tokio::test]
async fn e33_tokens_end_a_scenario() {
    let evals = json!([eval(
        "x",
        &asks("scenario", "for ever"),
        &rubric("there is [Once more, please.]")
    )]);
    let mut stage = Stage::plain(&evals, &[]);
    stage.model = WALKER;
    stage.judge = JUDGE;
    stage.limits.max_tokens = Some(10);
    stage.run().await.assert("x", "timed out", None);
}

#[tokio::test]
async fn a_model_that_says_and_calls_nothing_fails_before_a_judge_is_asked() {
    let evals = json!([
        eval("plays", &asks("scenario", "go"), &rubric("there is [go]")),
        eval("picks", &asks("invocation", "go"), &rubric("there is [go]")),
    ]);
    let mut stage = Stage::plain(&evals, &[]);
    stage.model = "  - reply: {text: ''}\n";
    stage.judge = JUDGE;
    let ran = stage.run().await;
    for id in ["plays", "picks"] {
        ran.assert(id, "failed", Some(Blame::Agent));
        assert!(ran.asked(id, Purpose::Judge).is_empty(), "{id}");
    }
}
