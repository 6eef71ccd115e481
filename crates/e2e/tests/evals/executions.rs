//! Calls of tools: what passes, what fails, and what a judge is shown.

use std::time::Duration;

use proctor_record::event::{Blame, Purpose};
use proctor_wire::client::Era;
use serde_json::{Value, json};

use crate::shipping::{JUDGE, calls, content, eval, rubric};
use crate::stage::{Stage, Wire};

#[tokio::test]
async fn e21_content_is_equal_by_value_in_order_and_whole() {
    let block = |unknown: &str| format!(r#"[{{"x-unknown":{unknown},"text":"hi","type":"text"}}]"#);
    let table = [
        (
            "passed",
            "as it is",
            block(r#"{"n":12345678901234567890,"z":1.50,"a":1e2}"#),
        ),
        (
            "passed",
            "other spelling",
            block(r#"{"a":100.0,"n":12345678901234567890.0,"z":15e-1}"#),
        ),
        (
            "failed",
            "one more",
            block(r#"{"n":12345678901234567891,"z":1.5,"a":100}"#),
        ),
        (
            "failed",
            "a float's neighbour",
            block(r#"{"n":12345678901234567000,"z":1.5,"a":100}"#),
        ),
        (
            "failed",
            "a key less",
            r#"[{"type":"text","text":"hi"}]"#.to_owned(),
        ),
        ("failed", "no block", "[]".to_owned()),
        (
            "failed",
            "a number as text",
            block(r#"{"n":"12345678901234567890","z":1.5,"a":100}"#),
        ),
        ("failed", "null", "null".to_owned()),
    ];
    let input = calls("echo", &json!({"text": "hi"}));
    let evals: Vec<Value> = table
        .iter()
        .map(|(_, id, expected)| eval(id, &input, &content(expected)))
        .collect();
    let ran = Stage::plain(&json!(evals), &[]).run().await;
    for (end, id, _) in &table {
        let blame = (*end == "failed").then_some(Blame::Server);
        ran.assert(id, end, blame);
        // E25: a failure has its reason.
        assert_eq!(ran.reason(id).is_empty(), *end == "passed");
        assert_eq!(ran.records[*id].graded.len(), 1);
        assert!(ran.records[*id].asked.is_empty(), "nobody is asked");
    }
}

#[tokio::test]
async fn e21_an_error_of_the_tool_with_equal_content_passes() {
    let failing = calls("fail", &json!({}));
    let ran = Stage::plain(
        &json!([
            eval(
                "equal",
                &failing,
                &content(r#"[{"text":"this always fails","type":"text"}]"#)
            ),
            eval(
                "other",
                &failing,
                &content(r#"[{"text":"this never fails","type":"text"}]"#)
            ),
        ]),
        &[],
    );
    let ran = ran.run().await;
    ran.assert("equal", "passed", None);
    ran.assert("other", "failed", Some(Blame::Server));
}

/// For both gradings, and the judge is not asked.
async fn fails_in_the_call(words: &[&str], tool: &str, wire: Wire, era: Era, told: &str) {
    let input = calls(tool, &json!({"text": "hi"}));
    let evals = json!([
        eval("exact", &input, &content("[]")),
        eval("judged", &input, &rubric("there is [hi]")),
    ]);
    let mut stage = Stage::new(&evals, wire, era, words);
    stage.judge = JUDGE;
    let ran = stage.run().await;
    for id in ["exact", "judged"] {
        ran.assert(id, "failed", Some(Blame::Server));
        assert!(ran.reason(id).contains(told), "{}", ran.reason(id));
        assert!(ran.records[id].asked.is_empty());
    }
}

#[tokio::test]
async fn e21_an_error_to_the_call_fails_and_the_server_is_to_blame() {
    for wire in [Wire::Stdio, Wire::Http] {
        for era in [Era::Handshake, Era::Stateless] {
            let told = "error -32602: unknown tool `nothing`";
            fails_in_the_call(&[], "nothing", wire, era, told).await;
        }
    }
}

#[tokio::test]
async fn e21_a_server_that_dies_in_the_call_fails_it() {
    for era in [Era::Handshake, Era::Stateless] {
        let words = ["--mode", "exit-in-call=7"];
        fails_in_the_call(&words, "echo", Wire::Stdio, era, "exited with code 7").await;
        let words = ["--mode", "kill-in-call"];
        fails_in_the_call(&words, "echo", Wire::Stdio, era, "SIGKILL").await;
        let words = ["--mode", "truncated-body"];
        fails_in_the_call(&words, "echo", Wire::Http, era, "").await;
    }
}

#[tokio::test]
async fn e21_answers_that_make_no_sense_fail_the_call() {
    let input = calls("echo", &json!({"text": "hi"}));
    for mode in [
        "wrong-shape",
        "wrong-shape=content",
        "wrong-shape=empty",
        "torn-line",
    ] {
        let evals = json!([eval("x", &input, &content("null"))]);
        let ran = Stage::plain(&evals, &["--mode", mode]).run().await;
        ran.assert("x", "failed", Some(Blame::Server));
    }
}

#[tokio::test]
async fn e33_a_call_that_is_never_answered_ends_by_its_limit() {
    let evals = json!([eval(
        "x",
        &calls("echo", &json!({"text": "hi"})),
        &content("[]")
    )]);
    let mut stage = Stage::plain(&evals, &["--mode", "never-answer"]);
    stage.limits.timeout = Some(Duration::from_millis(300));
    stage.run().await.assert("x", "timed out", None);
}

#[tokio::test]
async fn e21_what_the_server_asks_for_in_a_call_is_part_of_it() {
    let input = calls("add", &json!({"a": 1, "b": 2}));
    let expected = |sum: u8| {
        let unknown = r#"{"n":12345678901234567890,"z":1.5,"a":100}"#;
        content(&format!(
            r#"[{{"type":"text","text":"{sum}","x-unknown":{unknown}}}]"#
        ))
    };
    for wire in [Wire::Stdio, Wire::Http] {
        for era in [Era::Handshake, Era::Stateless] {
            let evals = json!([
                eval("exact", &input, &expected(3)),
                eval("other", &input, &expected(4)),
                eval("judged", &input, &rubric(r#"there is [3 {"sum":3}]"#)),
            ]);
            let words = ["--mode", "asks-client=elicitation"];
            let mut stage = Stage::new(&evals, wire, era, &words);
            stage.judge = JUDGE;
            let ran = stage.run().await;
            ran.assert("exact", "passed", None);
            ran.assert("other", "failed", Some(Blame::Server));
            ran.assert("judged", "passed", None);
        }
    }
}

#[tokio::test]
async fn e22_a_judge_gets_content_structured_content_and_is_error() {
    for (wire, era) in [(Wire::Stdio, Era::Handshake), (Wire::Http, Era::Stateless)] {
        let evals = json!([
            eval(
                "structured",
                &calls("add", &json!({"a": 1, "b": 2})),
                &rubric(r#"there is [3 {"sum":3}]"#)
            ),
            eval(
                "error",
                &calls("fail", &json!({})),
                &rubric("there is [(the tool says that it failed)]")
            ),
            eval(
                "text",
                &calls("fail", &json!({})),
                &rubric("there is [this always fails]")
            ),
            eval("fail", &calls("fail", &json!({})), &rubric("it fails")),
        ]);
        let mut stage = Stage::new(&evals, wire, era, &[]);
        stage.judge = JUDGE;
        let ran = stage.run().await;
        for id in ["structured", "error", "text"] {
            ran.assert(id, "passed", None);
            assert!(ran.asked(id, Purpose::Agent).is_empty());
        }
        ran.assert("fail", "failed", Some(Blame::Server));
    }
}
