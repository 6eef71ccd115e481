//! Tables of requests and the replies of rules.

mod generated;
mod mistakes;

use std::cell::RefCell;

use proctor_record::model::{ModelMessage, Tool, ToolResult};
use proctor_record::problem::Problems;
use serde_json::{Value, json};

use super::*;
use crate::decode::{Context, Decode};
use crate::document;
use crate::script::script_file::ScriptFile;

/// Loads rules, with all that is wrong with them.
fn load(rules: &str) -> (Option<Script>, Problems) {
    let text = format!("kind: Script\nrules:\n{rules}\n");
    let source = SourceText::new("model.yaml", text);
    let mut problems = Problems::default();
    let Some(document) = document::parse(&source, &mut problems) else {
        return (None, problems);
    };
    let problems = RefCell::new(problems);
    let cx = Context::new(source, &problems);
    let file = ScriptFile::decode(&document.root, &cx);
    let script = file.and_then(|file| resolve(&file, &cx));
    (script, problems.into_inner())
}

fn script(rules: &str) -> Script {
    let (script, problems) = load(rules);
    let errors: Vec<_> = problems.iter().map(ToString::to_string).collect();
    assert!(errors.is_empty(), "{errors:?}");
    script.expect("a script")
}

fn result(text: &str) -> ToolResult {
    ToolResult {
        id: "1".to_owned(),
        name: "t".to_owned(),
        text: text.to_owned(),
        is_error: text.starts_with("error"),
        media: Vec::new(),
    }
}

/// A conversation: the prompt, then a round of results for each list.
fn asked(prompt: &str, rounds: &[&[&str]]) -> ModelRequest {
    let mut messages = vec![ModelMessage::User(prompt.to_owned())];
    for round in rounds {
        messages.push(ModelMessage::Assistant(Turn::default()));
        messages.push(ModelMessage::Results(
            round.iter().map(|text| result(text)).collect(),
        ));
    }
    let tool = |name: &str| Tool {
        name: name.to_owned(),
        description: None,
        schema: json!({"type": "object"}),
    };
    ModelRequest {
        system: Some("be brief".to_owned()),
        messages,
        tools: vec![
            tool("weather__get"),
            tool("clock"),
            tool("fs__a_b"),
            tool("t_1st"),
        ]
        .into(),
        must_call: Some("clock".to_owned()),
        ..ModelRequest::default()
    }
}

fn turn(rules: &str, request: &ModelRequest) -> Turn {
    let scripted = script(rules).reply(request).expect("a rule fits");
    scripted.answer.expect("an answer").turn
}

#[test]
fn the_first_rule_that_fits_answers() {
    let check = |when: &str, request: &ModelRequest, fits: bool| {
        let rules =
            format!("- when: {when}\n  reply: {{text: yes it is}}\n- reply: {{text: 'no'}}");
        let expected = if fits { "yes it is" } else { "no" };
        assert_eq!(turn(&rules, request).text, expected, "{when}");
    };
    let first = asked("what is the weather", &[]);
    let later = asked("what is the weather", &[&["5"], &["ok", "error: gone"]]);
    check("{turn: 1}", &first, true);
    check("{turn: 2}", &first, false);
    check("{turn: 3}", &later, true);
    check("{results: 0}", &first, true);
    check("{results: 3}", &later, true);
    check("{results: 2}", &later, false);
    check("{prompt: weather$}", &first, true);
    check("{user: ^weather}", &first, false);
    check("{system: brief}", &first, true);
    check("{result: gone}", &later, true);
    check("{result: ^ok$}", &later, true);
    check("{result: '5'}", &later, false);
    check("{result: .*}", &first, false);
    check("{error: true}", &later, true);
    check("{error: false}", &later, false);
    check("{error: false}", &asked("x", &[&["fine"]]), true);
    check("{error: false}", &first, false);
    check("{tool: clock}", &first, true);
    check("{tool: get}", &first, true);
    check("{tool: et}", &first, false);
    check("{tool: a.b}", &first, true);
    check("{tool: 1st}", &first, true);
    check("{tool: st}", &first, false);
    check("{tool: put}", &first, false);
    check("{toolPattern: ^weather}", &first, true);
    check("{mustCall: clock}", &first, true);
    check("{mustCall: get}", &first, false);
    check("{turn: 1, user: weather, tool: clock}", &first, true);
    check("{turn: 1, user: weather, tool: put}", &first, false);
}

#[test]
fn the_last_user_text_is_not_the_first() {
    let mut request = asked("add 2 and 3", &[]);
    request
        .messages
        .push(ModelMessage::User("again".to_owned()));
    assert_eq!(
        turn("- reply: {text: '{prompt}/{user}'}", &request).text,
        "add 2 and 3/again"
    );
}

#[test]
fn texts_quote_the_conversation_and_other_braces_stay() {
    let request = asked(
        "add 2 and 3",
        &[&["first"], &[r#"{"a": [1, {"b": "x"}], "n": 1.50}"#]],
    );
    let check = |text: &str, expected: &str| {
        let rules = format!(
            "- when: {{user: 'add (?P<a>\\d+) and (\\d+)'}}\n  reply: {{text: {}}}",
            Value::from(text)
        );
        assert_eq!(turn(&rules, &request).text, expected);
    };
    check("{prompt}", "add 2 and 3");
    check("{results.1}!", "first!");
    check("{result.a[1].b}", "x");
    check("{result.a.0} {result.n}", "1 1.50");
    check("{results.2.a}", r#"[1,{"b":"x"}]"#);
    check(
        "{match.0}: {match.1}, {match.2}, {match.a}",
        "add 2 and 3: 2, 3, 2",
    );
    check("{} {x} {\"a\": 1} {", "{} {x} {\"a\": 1} {");
}

#[test]
fn a_whole_quote_keeps_its_type() {
    let request = asked(
        "go",
        &[&[r#"{"id": 18446744073709551617, "tags": ["a"], "no": null}"#]],
    );
    let rules = "
- reply:
    calls:
      - tool: get
        arguments: {id: '{result.id}', tags: '{result.tags}', no: '{result.no}', text: 'id {result.id}', n: 5, deep: [{x: '{prompt}'}]}
";
    let turn = turn(rules, &request);
    assert_eq!(turn.calls[0].name, "weather__get");
    let Arguments::Object(arguments) = &turn.calls[0].arguments else {
        panic!("an object");
    };
    let written = Value::Object(arguments.clone()).to_string();
    let expected = r#"{"id":18446744073709551617,"tags":["a"],"no":null,"text":"id 18446744073709551617","n":5,"deep":[{"x":"go"}]}"#;
    let [written, expected] =
        [&*written, expected].map(|text| serde_json::from_str::<Value>(text).unwrap());
    assert_eq!(written, expected);
}

#[test]
fn calls_are_sent_as_they_are_written() {
    let rules = "
- reply:
    thinking: hm
    calls:
      - {tool: clock}
      - {tool: nobody, arguments: {a: 1}}
      - {tool: get, malformed: '{\"a\": '}
      - {tool: get, malformed: '[1]'}
";
    let scripted = script(rules).reply(&asked("go", &[&["x"]])).unwrap();
    let reply = scripted.answer.unwrap();
    assert_eq!(reply.stop, StopReason::Calls);
    assert_eq!(reply.turn.thinking[0].text, "hm");
    let calls: Vec<_> = reply
        .turn
        .calls
        .iter()
        .map(|c| (&*c.id, &*c.name))
        .collect();
    assert_eq!(
        calls,
        [
            ("call_2_1", "clock"),
            ("call_2_2", "nobody"),
            ("call_2_3", "weather__get"),
            ("call_2_4", "weather__get")
        ]
    );
    let reason = |call: &ToolCall| match &call.arguments {
        Arguments::Malformed { reason, .. } => reason.clone(),
        Arguments::Object(_) => String::new(),
    };
    assert!(reason(&reply.turn.calls[2]).starts_with("EOF while parsing"));
    assert_eq!(reason(&reply.turn.calls[3]), "not a JSON object");
}

#[test]
fn the_stop_reason_can_be_set() {
    let check = |reply: &str, expected: StopReason| {
        let scripted = script(&format!("- reply: {reply}"));
        let reply = scripted.reply(&asked("go", &[])).unwrap().answer.unwrap();
        assert_eq!(reply.stop, expected);
    };
    check("{text: x}", StopReason::Done);
    check("{text: ''}", StopReason::Done);
    check("{thinking: x}", StopReason::Done);
    check("{text: x, stop: length}", StopReason::Length);
    check("{calls: [{tool: x}]}", StopReason::Calls);
    check("{calls: [{tool: x}], stop: done}", StopReason::Done);
    check("{refuse: no}", StopReason::Refusal);
}

#[test]
fn usage_is_given_or_estimated_from_the_lengths() {
    let usage = |reply: &str, prompt: &str| {
        let script = script(&format!("- reply: {reply}"));
        let reply = script.reply(&asked(prompt, &[])).unwrap().answer.unwrap();
        (reply.usage.input.unwrap(), reply.usage.output.unwrap())
    };
    assert_eq!(
        usage("{text: x, usage: {input: 7, output: 9}}", "go"),
        (7, 9)
    );
    assert_eq!(usage("{text: 12345678}", "go").1, 2);
    let (short, long) = (
        usage("{text: x}", "go").0,
        usage("{text: x}", &"go".repeat(200)).0,
    );
    assert_eq!(long - short, 398 / 4 + 1);
}
