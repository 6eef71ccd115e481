//! One turn of a model: what it is shown, what counts as a call, and what a judge is shown.

use proctor_record::event::{Blame, Purpose};
use serde_json::{Value, json};

use crate::shipping::{JUDGE, asks, call, eval, rubric};
use crate::stage::{SHIP, Stage};

const MODEL: &str = "
  - when: {prompt: 'two calls'}
    reply:
      text: Both of them.
      calls:
        - {tool: add, arguments: {a: 1, b: 9007199254740993, more: {deep: [1, 2]}}}
        - {tool: echo, arguments: {text: hi}}
  - when: {prompt: 'no call'}
    reply: {text: I would rather not.}
  - when: {prompt: 'broken call'}
    reply: {calls: [{tool: echo, malformed: '{\"text\": '}]}
  - when: {prompt: 'unknown tool'}
    reply: {calls: [{tool: nothing, arguments: {}}]}
";

/// How a trial ends in which the model makes two calls, and this is expected of them.
fn two_calls() -> Vec<(&'static str, Value)> {
    let tool = |name: &str| json!({"type": "exact-match", "toolName": name});
    vec![
        ("passed", call(Some("echo"), r#"{"text":"hi"}"#)),
        ("passed", call(Some("add"), r#"{"a":1.0}"#)),
        ("passed", call(Some("add"), r#"{"b":9007199254740993}"#)),
        ("failed", call(Some("add"), r#"{"b":9007199254740992}"#)),
        ("failed", call(Some("add"), r#"{"b":9007199254740994}"#)),
        ("passed", call(None, r#"{"text":"hi"}"#)),
        // One call has to have all of it.
        ("failed", call(None, r#"{"text":"hi","a":1}"#)),
        ("failed", call(Some("echo"), r#"{"a":1}"#)),
        ("passed", call(Some("add"), r#"{"more":{"deep":[1.0,2]}}"#)),
        // Equal values are equal as a whole: only the keys at the top may be fewer.
        ("failed", call(Some("add"), r#"{"more":{}}"#)),
        ("failed", call(Some("add"), r#"{"more":{"deep":[2,1]}}"#)),
        ("failed", call(Some("add"), r#"{"c":null}"#)),
        ("passed", tool("add")),
        ("failed", tool("fail")),
    ]
}

#[tokio::test]
async fn e19_some_call_has_the_tool_and_the_arguments_that_are_named() {
    let tool = |name: &str| json!({"type": "exact-match", "toolName": name});
    let two_calls = two_calls().into_iter();
    let mut table: Vec<_> = two_calls
        .map(|(end, expected)| (end, "two calls", expected))
        .collect();
    table.extend([
        ("passed", "unknown tool", tool("nothing")),
        ("failed", "no call", tool("add")),
        // A call that can't be made is none.
        ("failed", "broken call", tool("echo")),
        (
            "failed",
            "broken call",
            call(Some("echo"), r#"{"text":"hi"}"#),
        ),
    ]);
    let ids: Vec<String> = (0..table.len()).map(|at| format!("{at}")).collect();
    let evals: Vec<Value> = table
        .iter()
        .zip(&ids)
        .map(|((_, prompt, expected), id)| eval(id, &asks("invocation", prompt), expected))
        .collect();
    let mut stage = Stage::plain(&json!(evals), &["--mode", "pages=2"]);
    stage.model = MODEL;
    let ran = stage.run().await;
    for ((end, _, _), id) in table.iter().zip(&ids) {
        let blame = (*end == "failed").then_some(Blame::Agent);
        ran.assert(id, end, blame);
        assert_eq!(ran.asked(id, Purpose::Agent).len(), 1, "once");
    }
    let broken = ran.reason(&ids[ids.len() - 1]);
    assert!(
        broken.contains("the arguments of `echo` are not JSON"),
        "{broken}"
    );
    // E18: all pages of tools, and no call.
    let methods = stage.methods(SHIP);
    assert!(!methods.iter().any(|method| method == "tools/call"));
    let lists = methods.iter().filter(|method| *method == "tools/list");
    assert_eq!(lists.count(), 2 * table.len());
}

#[tokio::test]
async fn e18_tools_are_fetched_anew_for_each() {
    let expected = json!({"type": "exact-match", "toolName": "late"});
    let evals = json!([eval("x", &asks("invocation", "go"), &expected)]);
    let count = tempfile::NamedTempFile::new().unwrap();
    let count = count.path().to_str().unwrap();
    let words = ["--mode", "tools-change-after=0", "--count", count];
    let mut stage = Stage::plain(&evals, &words);
    stage.model = "  - when: {tool: late}\n    reply: {calls: [{tool: late, arguments: {}}]}\n";
    stage.run().await.assert("x", "passed", None);
}

#[tokio::test]
async fn e12_messages_of_every_kind_are_shown_or_said_to_be_impossible() {
    let told = json!({"type": "invocation", "messages": [
        {"role": "user", "content": [{"type": "text", "text": "add"}, {"type": "text", "text": "1 and 2"}]},
        {"role": "assistant", "content": {"type": "tool_use", "id": "1", "name": "add", "input": {"a": 1, "b": 2}}},
        {"role": "user", "content": [
            {"type": "tool_result", "toolUseId": "1", "content": [{"type": "text", "text": "3"}]},
            {"type": "text", "text": "and echo it"},
        ]},
    ]});
    let image = |role: &str| {
        json!({"type": "invocation", "messages": [
            {"role": role, "content": {"type": "image", "data": "AAAA", "mimeType": "image/png"}},
        ]})
    };
    let expected = call(Some("echo"), r#"{"text":"3"}"#);
    let evals = json!([
        eval("told", &told, &expected),
        eval("image", &image("user"), &expected),
        eval("drawn", &image("assistant"), &expected)
    ]);
    let mut stage = Stage::plain(&evals, &[]);
    stage.model = "
  - when: {results: 1, turn: 2, user: 'and echo it', prompt: 'add\\n1 and 2'}
    reply: {calls: [{tool: echo, arguments: {text: '3'}}]}
  - when: {results: 0, turn: 1}
    reply: {calls: [{tool: echo, arguments: {text: '3'}}]}
";
    let ran = stage.run().await;
    ran.assert("told", "passed", None);
    ran.assert("image", "passed", None);
    ran.assert("drawn", "errored", Some(Blame::Suite));
    assert!(ran.reason("drawn").contains("an image"));
}

#[tokio::test]
async fn e20_e27_a_judge_gets_the_whole_answer_and_is_named() {
    let evals = json!([
        eval(
            "pass",
            &asks("invocation", "two calls"),
            &rubric("there is [Both of them.]")
        ),
        eval(
            "call",
            &asks("invocation", "two calls"),
            &rubric("there is [9007199254740993]")
        ),
        eval(
            "fail",
            &asks("invocation", "two calls"),
            &rubric("it fails")
        ),
        eval(
            "dodge",
            &asks("invocation", "two calls"),
            &rubric("it dodges")
        ),
        eval(
            "lost",
            &asks("invocation", "two calls"),
            &rubric("nobody knows this")
        ),
        eval(
            "mute",
            &asks("invocation", "what nobody scripted"),
            &rubric("it fails")
        ),
    ]);
    let mut stage = Stage::plain(&evals, &[]);
    stage.model = MODEL;
    stage.judge = JUDGE;
    let ran = stage.run().await;
    ran.assert("pass", "passed", None);
    ran.assert("call", "passed", None);
    ran.assert("fail", "failed", Some(Blame::Agent));
    assert!(
        ran.reason("fail").contains("It must not."),
        "{}",
        ran.reason("fail")
    );
    ran.assert("dodge", "errored", Some(Blame::Judge));
    ran.assert("lost", "errored", Some(Blame::Judge));
    ran.assert("mute", "errored", Some(Blame::Suite));
    for id in ["pass", "call", "fail", "dodge"] {
        let record = &ran.records[id];
        let judged = record.asked.iter().find(|a| a.purpose == Purpose::Judge);
        assert!(judged.unwrap().model.ends_with("judge.yaml"));
        let question = ran.asked(id, Purpose::Judge)[0];
        assert!(question.contains("calls add with") && question.contains("calls echo with"));
    }
    assert!(
        !stage
            .methods(SHIP)
            .iter()
            .any(|method| method == "tools/call")
    );
}
