//! `proctor evals validate`, and the schema of its files.

use serde_json::{Value, json};

use super::canned::CannedServer;
use crate::proctor::{Output, proctor, write_files};

const BROKEN: &str = r"# Evals with mistakes.
evals:
  - id: adds
    name: Adds
    gradingType: exact-match
    input: {type: execution, toolName: add, arguments: {api_key: k3y-of-mine}}
    expected:
      type: exact-match
      toolName: add
      content: []
  - id: works
    name: Works
    gradingType: exact-match
    input:
      type: scenario
      messages: [{role: user, content: {type: text, text: Go}}]
      maxTurns: 0
    expected: {type: exact-match}
  - id: guesses
    gradingType: vote
    input: {type: telepathy}
  - name: NoName
    input: 5
";

fn validate(text: &str, words: &[&str]) -> Output {
    let folder = tempfile::tempdir().expect("a folder can be made");
    write_files(folder.path(), &[("evals.yaml", text)]);
    let fixed = ["evals", "validate", "evals.yaml"];
    proctor(fixed.iter().chain(words))
        .current_dir(folder.path())
        .output()
}

#[test]
fn e36_all_mistakes_are_shown_at_once_each_with_its_place() {
    insta::assert_snapshot!(validate(BROKEN, &[]).to_string());
}

#[test]
fn e36_a_valid_file_may_have_warnings_unless_it_must_not() {
    let text = r#"[{"id": "a", "name": "A", "gradingType": "exact-match",
        "input": {"type": "execution", "toolName": "t", "arguments": {}},
        "expected": {"type": "exact-match", "content": "ghp_0123456789012345678901234567890123456789"}}]"#;
    let output = validate(text, &[]);
    assert_eq!(output.code, Some(0), "{output}");
    assert!(
        output.stdout.contains("seems to contain a GitHub token"),
        "{output}"
    );
    assert!(
        output.stdout.ends_with("1 eval (1 execution)\n1 warning\n"),
        "{output}"
    );
    let output = validate(text, &["--strict", "-o", "json"]);
    assert_eq!(output.code, Some(2), "{output}");
    let document: Value = serde_json::from_str(&output.stdout).unwrap();
    assert_eq!(document["errors"], 1);
    assert_eq!(document["problems"][0]["code"], "secret");
    assert_eq!(document["problems"][0]["place"]["line"], 3);
    for (text, expected) in [
        ("", "expected a list of evals, or a map with a list `evals`"),
        (
            "kind: Eval",
            "expected a list of evals, or a map with a list `evals`",
        ),
        ("[", "invalid YAML"),
    ] {
        let output = validate(text, &[]);
        assert_eq!(output.code, Some(2), "{output}");
        assert!(output.stdout.contains(expected), "{output}");
    }
    assert_eq!(validate("[]", &[]).code, Some(2));
    let folder = tempfile::tempdir().unwrap();
    write_files(folder.path(), &[("evals.yaml", "evals: []")]);
    let output = proctor(["validate", "evals.yaml"])
        .current_dir(folder.path())
        .output();
    assert_eq!(output.code, Some(2), "{output}");
    assert!(
        output
            .stdout
            .contains("hint: check it with `proctor evals validate`"),
        "{output}"
    );
}

const MISTYPED: &str = r"evals:
  - id: calls
    name: Calls
    descripton: Typo
    gradingType: exact-match
    input: {type: invocation, messages: [{role: user, content: {type: text, text: Go}}], maxTurns: 3}
    expected: {type: exact-match, toolName: add, argument: {a: 1}}
  - id: judged
    name: Judged
    gradingType: llm-as-judge
    grading: {threshold: 0.9}
    input: {type: scenario, messages: [{role: user, content: {type: text, text: Go}}]}
    expected: {type: llm-as-judge, rubric: is good, _meta: {a: 1}, rubrics: [x]}
  - id: word
    name: Word
    gradingType: exact-match
    input: {type: executoin, toolName: add, arguments: {}}
    expected: {type: exact-match, content: []}
  - id: grade
    name: Grade
    gradingType: exact_match
    input: {type: execution, toolName: add, arguments: {}}
    expected: {type: exact_match, content: []}
";

#[test]
fn e36_unknown_keys_and_wrong_words_are_named_with_what_was_meant() {
    insta::assert_snapshot!(validate(MISTYPED, &[]).to_string());
    let blank = MISTYPED.replace("content: {type: text, text: Go}", "content: []");
    let output = validate(&blank, &[]);
    assert!(
        output
            .stdout
            .contains("the list is empty, so the message has no content"),
        "{output}"
    );
    for text in ["evals: []", "[]"] {
        let output = validate(text, &[]);
        assert_eq!(output.code, Some(2), "{output}");
        assert!(
            output.stdout.contains("the list of evals is empty"),
            "{output}"
        );
    }
}

#[test]
fn e36_with_a_server_arguments_are_checked_against_the_schemas_of_its_tools() {
    let schema = json!({
        "type": "object", "required": ["a", "b"],
        "properties": {"a": {"type": "number"}, "b": {"type": "number"}},
    });
    let annotations = json!({"readOnlyHint": true});
    let tools = json!([{"name": "add", "inputSchema": schema, "annotations": annotations}]);
    let canned = CannedServer::new(&json!({"tools": {}}), &tools, &json!([]));
    let execution = |id: &str, arguments: Value| {
        let mut eval = super::canned::execution(id, "add");
        eval["input"]["arguments"] = arguments;
        eval
    };
    let mut invocation = execution("expects", json!({}));
    invocation["input"] = json!({"type": "invocation", "messages": [{"role": "user", "content": {"type": "text", "text": "Go"}}]});
    invocation["expected"] =
        json!({"type": "exact-match", "toolName": "add", "arguments": {"a": "2"}});
    let run = |evals: Value| {
        write_files(canned.folder(), &[("evals.json", &evals.to_string())]);
        canned.run(&["evals", "validate", "evals.json"])
    };
    let fitting = run(json!([execution("fits", json!({"a": 1, "b": 2}))]));
    assert!(fitting.stdout.ends_with("no problems\n"), "{fitting}");
    let warned = run(json!([execution("lacks", json!({"a": 1, "bb": 2}))]));
    assert_eq!(warned.code, Some(0), "{warned}");
    for expected in [
        "eval `lacks`, `/input/arguments/bb`: `add` has no argument `bb`",
        "did you mean `b`?",
        "eval `lacks`, `/input/arguments`: does not match the schema of `add`: \"b\" is a required property",
    ] {
        assert!(warned.stdout.contains(expected), "{warned}");
    }
    let refused = run(json!([invocation]));
    assert_eq!(refused.code, Some(2), "{refused}");
    let expected =
        "error: eval `expects`, `/expected/arguments/a`: does not match the schema of `add`";
    assert!(refused.stdout.contains(expected), "{refused}");
    assert!(!refused.stdout.contains("required"), "{refused}");
    assert_eq!(canned.asked("tools/call"), [Value::Null; 0]);
}

#[test]
fn e36_with_a_server_its_tools_are_looked_at_and_none_is_called() {
    let tools = json!([
        {"name": "drop", "annotations": {"destructiveHint": true}},
        {"name": "touch"},
        {"name": "look", "annotations": {"readOnlyHint": true}},
    ]);
    let canned = CannedServer::new(&json!({"tools": {}}), &tools, &json!([]));
    let evals = ["drop", "touch", "look", "gone"].map(|tool| super::canned::execution(tool, tool));
    write_files(
        canned.folder(),
        &[("evals.json", &json!({"evals": evals}).to_string())],
    );
    let output = canned.run(&["evals", "validate", "evals.json"]);
    assert_eq!(output.code, Some(0), "{output}");
    for expected in [
        "eval `drop`, `/input/toolName`: `drop` is marked destructive",
        "eval `touch`, `/input/toolName`: `touch` is not marked as safe",
        "eval `gone`, `/input/toolName`: the server has no tool `gone`",
    ] {
        assert!(output.stdout.contains(expected), "{output}");
    }
    assert!(!output.stdout.contains("`look` is"), "{output}");
    assert_eq!(canned.asked("tools/call"), [Value::Null; 0]);
    assert_eq!(
        canned
            .run(&["evals", "validate", "--strict", "evals.json"])
            .code,
        Some(2)
    );
}

#[test]
fn e34_the_schema_of_evals_is_that_of_the_crate() {
    let output = proctor(["schema", "evals"]).output();
    let schema: Value = serde_json::from_str(&output.stdout).unwrap();
    assert_eq!(schema, mcp_evals::schema());
    let validator = jsonschema::validator_for(&schema).unwrap();
    let example = include_str!("../../../../../examples/evals/evals.json");
    assert!(validator.is_valid(&serde_json::from_str(example).unwrap()));
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/evals");
    let output = proctor(["evals", "validate", "--strict", "evals.json"])
        .current_dir(folder)
        .output();
    assert_eq!(output.code, Some(0), "{output}");
}
