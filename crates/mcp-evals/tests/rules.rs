//! What `validate` finds, rule by rule.

#![expect(
    clippy::needless_pass_by_value,
    reason = "the values are written where they are used"
)]

use mcp_evals::{
    EvalStatus, FindingRule, ListedEval, Severity, ValidationReport, validate, validate_with_tools,
};
use serde_json::{Value, json};

fn invocation(expected: Value) -> Value {
    json!({
        "id": "i", "name": "I", "gradingType": expected["type"], "expected": expected,
        "input": {"type": "invocation", "messages": [{"role": "user", "content": {"type": "text", "text": "hi"}}]},
    })
}

fn execution(arguments: Value, expected: Value) -> Value {
    json!({
        "id": "x", "name": "X", "gradingType": expected["type"], "expected": expected,
        "input": {"type": "execution", "toolName": "add", "arguments": arguments},
    })
}

fn scenario(max_turns: Value) -> Value {
    let mut eval = invocation(json!({"type": "llm-as-judge", "rubric": "is good"}));
    eval["input"]["type"] = "scenario".into();
    if !max_turns.is_null() {
        eval["input"]["maxTurns"] = max_turns;
    }
    eval
}

fn content() -> Value {
    json!({"type": "exact-match", "content": []})
}

fn report(values: Vec<Value>) -> ValidationReport {
    let items: Vec<ListedEval> = values.into_iter().map(ListedEval::from).collect();
    validate(&items)
}

/// Checks what is found in one eval: severity, rule and path of each finding.
fn check(eval: Value, findings: &[(Severity, FindingRule, &str)]) {
    let shown = eval.to_string();
    let report = report(vec![eval]);
    let found: Vec<_> = report
        .findings
        .iter()
        .map(|finding| (finding.severity, finding.rule, finding.path.as_str()))
        .collect();
    assert_eq!(found, findings, "{shown}\n{report}");
}

#[test]
fn good_evals_have_no_findings() {
    check(
        invocation(json!({"type": "exact-match", "toolName": "add"})),
        &[],
    );
    check(
        invocation(json!({"type": "exact-match", "arguments": {}})),
        &[],
    );
    check(
        invocation(json!({"type": "llm-as-judge", "rubric": "r"})),
        &[],
    );
    check(execution(json!({}), content()), &[]);
    check(
        execution(json!({}), json!({"type": "llm-as-judge", "rubric": "r"})),
        &[],
    );
    check(scenario(Value::Null), &[]);
}

#[test]
fn e10_e16_of_two_evals_with_one_id_both_are_invalid() {
    let mut other = execution(json!({}), content());
    other["id"] = "other".into();
    let broken = json!({"id": "x"});
    let report = report(vec![
        execution(json!({}), content()),
        other,
        execution(json!({}), content()),
        broken,
    ]);
    let statuses: Vec<EvalStatus> = (0..4).map(|index| report.status(index)).collect();
    assert_eq!(
        statuses,
        [
            EvalStatus::Invalid,
            EvalStatus::Valid,
            EvalStatus::Invalid,
            EvalStatus::Invalid
        ]
    );
    assert!(
        report.findings[0]
            .to_string()
            .contains("eval `x`, `/id`: 3 evals have this id")
    );
}

#[test]
fn e13_the_types_must_be_equal() {
    let mismatch = |path| (Severity::Error, FindingRule::TypeMismatch, path);
    let mut eval = invocation(json!({"type": "exact-match", "toolName": "add"}));
    eval["gradingType"] = "llm-as-judge".into();
    check(eval.clone(), &[mismatch("/expected/type")]);
    eval["gradingType"] = "exact-match".into();
    eval["expected"]["type"] = "exact_match".into();
    check(eval, &[mismatch("/expected/type")]);
}

#[test]
fn e13_fields_without_meaning_are_warned_of() {
    let useless = |path| (Severity::Warning, FindingRule::NoEffect, path);
    check(
        invocation(json!({"type": "exact-match", "toolName": "add", "content": []})),
        &[useless("/expected/content")],
    );
    let expected =
        json!({"type": "exact-match", "toolName": "add", "arguments": {}, "content": []});
    check(
        execution(json!({}), expected),
        &[
            useless("/expected/toolName"),
            useless("/expected/arguments"),
        ],
    );
}

#[test]
fn e8_a_key_that_may_change_what_is_tested_makes_an_eval_be_skipped() {
    let unknown = |path| (Severity::Skip, FindingRule::UnknownKey, path);
    let with = |path: &str, key: &str, value: Value| {
        let mut eval = execution(json!({}), content());
        let place = eval.pointer_mut(path).and_then(Value::as_object_mut);
        place.unwrap().insert(key.to_owned(), value);
        eval
    };
    check(
        with("/expected", "contents", json!([])),
        &[unknown("/expected/contents")],
    );
    check(
        with("", "grading", json!({"strict": true})),
        &[unknown("/grading/strict")],
    );
    check(with("", "grading", json!("strict")), &[unknown("/grading")]);
    let judged = json!({"type": "llm-as-judge", "rubric": "r", "a/b": 1});
    check(invocation(judged), &[unknown("/expected/a~1b")]);
    // Elsewhere they are kept, and mean nothing.
    check(with("", "since", json!("1.2")), &[]);
    check(with("", "grading", json!({})), &[]);
    check(with("/input", "note", json!(1)), &[]);
    check(with("/expected", "_meta", json!({"a": 1})), &[]);
    let report = report(vec![with("/expected", "contents", json!([]))]);
    assert_eq!(report.status(0), EvalStatus::Skipped);
    assert!(report.to_string().contains("unknown key `contents`"));
}

#[test]
fn e14_a_scenario_with_exact_match_is_invalid() {
    let mut eval = scenario(Value::Null);
    eval["gradingType"] = "exact-match".into();
    eval["expected"] = json!({"type": "exact-match", "toolName": "add"});
    check(
        eval,
        &[(
            Severity::Error,
            FindingRule::ScenarioExactMatch,
            "/expected/type",
        )],
    );
}

#[test]
fn e15_what_can_not_fail_is_invalid() {
    let useless = |path| (Severity::Error, FindingRule::CannotFail, path);
    check(
        invocation(json!({"type": "exact-match"})),
        &[useless("/expected")],
    );
    check(
        execution(json!({}), json!({"type": "exact-match"})),
        &[useless("/expected")],
    );
    for rubric in ["", " \n\t"] {
        let eval = invocation(json!({"type": "llm-as-judge", "rubric": rubric}));
        check(eval, &[useless("/expected/rubric")]);
    }
}

#[test]
fn e16_a_broken_eval_is_reported_with_its_id_and_all_that_is_wrong() {
    let shape = |path| (Severity::Error, FindingRule::Shape, path);
    let eval = json!({
        "id": "b", "name": "B", "description": 3, "gradingType": "exact-match",
        "input": {"type": "invocation", "messages": [{"role": "system", "content": {"type": "text"}}, 7]},
        "expected": {"type": "exact-match", "arguments": []},
    });
    let findings = [
        shape("/description"),
        shape("/input/messages/0/role"),
        shape("/input/messages/0/content/text"),
        shape("/input/messages/1"),
        shape("/expected/arguments"),
    ];
    check(eval.clone(), &findings);
    let report = report(vec![eval]);
    assert_eq!(report.status(0), EvalStatus::Invalid);
    assert!(
        report
            .findings
            .iter()
            .all(|finding| finding.id.as_deref() == Some("b"))
    );
    check(json!(3), &[shape("")]);
}

#[test]
fn e17_unknown_types_are_skipped() {
    let skip = |path| (Severity::Skip, FindingRule::UnknownType, path);
    let mut eval = invocation(json!({"type": "exact-match", "toolName": "add"}));
    eval["input"] = json!({"type": "quiz"});
    check(eval.clone(), &[skip("/input/type")]);
    assert_eq!(report(vec![eval.clone()]).status(0), EvalStatus::Skipped);
    assert!(report(vec![eval.clone()]).is_valid());
    // What a newer version leaves out or changes is no fault.
    eval.as_object_mut().unwrap().remove("expected");
    check(eval, &[skip("")]);
    check(
        invocation(json!({"type": "regex", "re": "."})),
        &[skip("/gradingType")],
    );
    check(json!({"id": "n", "gradingType": "regex"}), &[skip("")]);
    let mut eval = scenario(Value::Null);
    eval["input"]["messages"][0]["content"] = json!([{"type": "hologram"}]);
    check(eval, &[skip("/input/messages")]);
    // Without an id nobody could be told about it.
    let report = report(vec![json!({"gradingType": "regex"})]);
    assert_eq!(report.status(0), EvalStatus::Invalid);
}

#[test]
fn e11_max_turns_is_a_whole_number_of_at_least_one() {
    let wrong = [(Severity::Error, FindingRule::MaxTurns, "/input/maxTurns")];
    for written in ["0", "-3", "2.5", "0.0", "-0", "1e-3"] {
        check(scenario(serde_json::from_str(written).unwrap()), &wrong);
    }
    for written in ["1", "1.0", "1e1", "99999999999999999999999"] {
        check(scenario(serde_json::from_str(written).unwrap()), &[]);
    }
    check(
        scenario("3".into()),
        &[(Severity::Error, FindingRule::Shape, "/input/maxTurns")],
    );
}

#[test]
fn e36_a_todo_note_is_not_a_prompt() {
    let mut eval = scenario(Value::Null);
    let content = json!({"type": "text", "text": "TODO: ask for something"});
    eval["input"]["messages"] = json!([{"role": "user", "content": content}]);
    check(
        eval,
        &[(
            Severity::Warning,
            FindingRule::Unfinished,
            "/input/messages",
        )],
    );
}

#[test]
fn e36_a_todo_note_is_not_a_rubric() {
    let rubric = json!({"type": "llm-as-judge", "rubric": " TODO: what must hold"});
    check(
        invocation(rubric),
        &[(
            Severity::Warning,
            FindingRule::Unfinished,
            "/expected/rubric",
        )],
    );
}

#[test]
fn messages_and_ids_must_not_be_empty() {
    let mut eval = scenario(Value::Null);
    eval["input"]["messages"] = json!([]);
    check(
        eval,
        &[(Severity::Error, FindingRule::NoMessages, "/input/messages")],
    );
    let mut eval = scenario(Value::Null);
    eval["id"] = "".into();
    check(eval, &[(Severity::Warning, FindingRule::EmptyId, "/id")]);
}

#[test]
fn e36_what_looks_like_a_secret_is_warned_of_and_not_repeated() {
    let digits = "0a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8s9T";
    let texts = [
        format!("sk-{digits}"),
        format!("use ghp_{digits}, please"),
        format!("AKIA{}", &digits[..16].to_uppercase()),
        format!("xoxb-{digits}"),
        format!("eyJ{digits}.eyJ{digits}.{digits}"),
        "-----BEGIN RSA PRIVATE KEY-----\nAAAA".to_owned(),
        "postgres://admin:hunter2@db/x".to_owned(),
    ];
    for text in texts {
        let warning = |path| [(Severity::Warning, FindingRule::Secret, path)];
        check(
            execution(json!({"q": [text]}), content()),
            &warning("/input/arguments/q/0"),
        );
        let expected = json!({"type": "exact-match", "content": [{"type": "text", "text": text}]});
        check(
            execution(json!({}), expected),
            &warning("/expected/content/0/text"),
        );
        let rubric = json!({"type": "llm-as-judge", "rubric": format!("says {text}")});
        check(invocation(rubric), &warning("/expected/rubric"));
        let eval = execution(json!({"q": text}), content());
        assert!(!report(vec![eval]).to_string().contains(&text));
    }
    let by_key = execution(
        json!({"apiKey": "abc", "nested": {"client-secret": "s3"}}),
        content(),
    );
    let warning = |path| (Severity::Warning, FindingRule::Secret, path);
    check(
        by_key,
        &[
            warning("/input/arguments/apiKey"),
            warning("/input/arguments/nested/client-secret"),
        ],
    );
}

#[test]
fn e36_ordinary_values_are_no_secrets() {
    let arguments = json!({
        "password": "", "secret": "<your secret>", "api_key": "xxxxxxxx", "token_count": "12",
        "authorization": "example-only", "url": "https://user@example.com/a:b@c",
        "text": "ask-me-anything sk-learn sk-this-is-a-long-kebab-case-name 0123456789abcdef0123456789abcdef",
        "time": "eyJ", "n": 5,
    });
    check(execution(arguments, content()), &[]);
}

#[test]
fn e36_tools_that_may_destroy_are_warned_of() {
    let tool = |annotations: Value| json!({"name": "add", "annotations": annotations});
    let cases = [
        (json!({"readOnlyHint": true}), None),
        (json!({"destructiveHint": false}), None),
        (
            json!({"readOnlyHint": false, "destructiveHint": false}),
            None,
        ),
        (
            json!({"destructiveHint": true}),
            Some(FindingRule::DestructiveTool),
        ),
        (
            json!({"readOnlyHint": false}),
            Some(FindingRule::UnannotatedTool),
        ),
        (json!({}), Some(FindingRule::UnannotatedTool)),
        (Value::Null, Some(FindingRule::UnannotatedTool)),
    ];
    let items = [ListedEval::from(execution(json!({}), content()))];
    for (annotations, rule) in cases {
        let report = validate_with_tools(&items, &[tool(annotations)]);
        let found: Vec<FindingRule> = report.findings.iter().map(|finding| finding.rule).collect();
        assert_eq!(found, Vec::from_iter(rule));
        assert!(report.is_valid());
    }
    let unknown = validate_with_tools(&items, &[json!({"name": "sub"}), json!(3)]);
    assert_eq!(unknown.findings[0].rule, FindingRule::UnknownTool);
    let items = [ListedEval::from(invocation(
        json!({"type": "exact-match", "toolName": "mul"}),
    ))];
    let unknown = validate_with_tools(&items, &[json!({"name": "add"})]);
    assert_eq!(unknown.findings[0].path, "/expected/toolName");
}
