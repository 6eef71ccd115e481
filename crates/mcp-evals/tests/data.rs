//! The data: what is read is what was written, with every field, and nothing makes reading panic.

use mcp_evals::{
    Content, Contents, Eval, EvalFile, Expected, FindingRule, GradingType, Input, Level,
    ListParams, ListResult, ListedEval, Message, Role, matching, validate, validate_with_tools,
};
use proptest::prelude::*;
use serde_json::{Value, json};

fn eval(input: &Value, expected: &Value) -> Value {
    json!({
        "id": "e", "name": "E", "gradingType": expected["type"], "input": input, "expected": expected,
    })
}

fn samples() -> Vec<Value> {
    let judge = json!({"type": "llm-as-judge", "rubric": "is polite", "x": 1});
    let text =
        json!({"role": "user", "content": {"type": "text", "text": "hi", "_meta": {"a": 1}}});
    let many = json!({"role": "assistant", "z": [], "content": [
        {"type": "text", "text": "one", "annotations": {"priority": 0.5}},
        {"type": "image", "data": "AA==", "mimeType": "image/png", "x": null},
        {"type": "audio", "data": "AA==", "mimeType": "audio/wav"},
        {"type": "tool_use", "id": "t", "name": "add", "input": {"a": 12_345_678_901_234_567_890_u64}},
        {"type": "hologram", "depth": 3},
    ]});
    let result = json!({"role": "user", "content": [{
        "type": "tool_result", "toolUseId": "t", "content": [{"type": "text", "text": "3"}],
        "structuredContent": {"sum": 3}, "isError": false, "later": true,
    }]});
    vec![
        eval(
            &json!({"type": "invocation", "messages": [text, many, result], "y": {}}),
            &judge,
        ),
        eval(
            &json!({"type": "invocation", "messages": [text]}),
            &json!({"type": "exact-match", "toolName": "add", "arguments": {"a": 1}, "w": "w"}),
        ),
        eval(
            &json!({"type": "execution", "toolName": "add", "arguments": {"a": [1, {"b": null}]}}),
            &json!({"type": "exact-match", "content": null}),
        ),
        eval(
            &json!({"type": "scenario", "messages": [text], "maxTurns": 4}),
            &judge,
        ),
        eval(
            &json!({"type": "quiz", "questions": [1]}),
            &json!({"type": "regex", "re": "."}),
        ),
    ]
}

#[test]
fn e8_unknown_fields_survive_at_every_level() {
    for sample in samples() {
        let mut sample = sample;
        sample["_meta"] = json!({"deep": [{"er": 1.50}]});
        let ListedEval::Eval(eval) = ListedEval::from(sample.clone()) else {
            panic!("not read: {sample}");
        };
        assert_eq!(eval.to_value(), sample);
        assert_eq!(serde_json::to_value(&eval).unwrap(), sample);
        assert_eq!(serde_json::from_value::<Eval>(sample).unwrap(), *eval);
    }
}

#[test]
fn e8_numbers_keep_their_digits() {
    let text = r#"[{"id":"e","name":"E","gradingType":"exact-match","input":{"type":"execution","toolName":"t",
        "arguments":{"n":123456789012345678901234567890,"f":1.10}},
        "expected":{"type":"exact-match","content":[1e2]}}]"#;
    let written = EvalFile::from_json(text).unwrap().to_value().to_string();
    for digits in ["123456789012345678901234567890", "1.10"] {
        assert!(written.contains(digits), "{digits} in {written}");
    }
}

#[test]
fn e10_e11_the_fields_of_an_eval() {
    let read: Vec<ListedEval> = samples().into_iter().map(ListedEval::from).collect();
    let levels: Vec<Option<Level>> = read
        .iter()
        .map(|item| item.eval().unwrap().level())
        .collect();
    assert_eq!(
        levels,
        [
            Some(Level::Invocation),
            Some(Level::Invocation),
            Some(Level::Execution),
            Some(Level::Scenario),
            None
        ]
    );
    let last = read[4].eval().unwrap();
    assert_eq!(last.grading_type, GradingType::Other("regex".to_owned()));
    assert!(matches!(last.input, Input::Other(_)));
    assert!(matches!(last.expected, Expected::Other(_)));
}

#[test]
fn e12_messages_are_sampling_messages() {
    let read = ListedEval::from(samples().remove(0));
    let messages = read.eval().unwrap().input.messages();
    assert!(matches!(
        messages[0].content,
        Contents::One(Content::Text(_))
    ));
    let kinds: Vec<&str> = messages[1]
        .content
        .blocks()
        .iter()
        .map(Content::kind)
        .collect();
    assert_eq!(kinds, ["text", "image", "audio", "tool_use", "hologram"]);
    assert_eq!(messages[1].role, Role::Assistant);
    assert!(matches!(&messages[2].content, Contents::Many(blocks)
        if matches!(&blocks[0], Content::ToolResult(result) if result.is_error == Some(false))));
}

#[test]
fn e4_list_params_are_optional_and_the_empty_cursor_is_one() {
    let params: ListParams = serde_json::from_value(json!({})).unwrap();
    assert_eq!(params, ListParams::default());
    let written = json!({"cursor": "", "level": "scenario", "_meta": {"a": 1}});
    let params: ListParams = serde_json::from_value(written.clone()).unwrap();
    assert_eq!(params.cursor.as_deref(), Some(""));
    assert_eq!(params.level, Some(Level::Scenario));
    assert_eq!(serde_json::to_value(&params).unwrap(), written);
    for bad in [
        json!([]),
        json!({"cursor": 1}),
        json!({"level": "unit"}),
        json!({"level": null}),
    ] {
        assert!(serde_json::from_value::<ListParams>(bad).is_err());
    }
}

#[test]
fn e16_one_broken_eval_does_not_lose_the_list() {
    let written = json!({
        "evals": [samples()[1], {"id": "odd", "name": 3, "gradingType": "exact-match"}, "what"],
        "nextCursor": "",
        "ttlMs": 5,
    });
    let list: ListResult = serde_json::from_value(written.clone()).unwrap();
    assert_eq!(list.next_cursor.as_deref(), Some(""));
    assert!(list.evals[0].eval().is_some());
    assert_eq!(list.evals[1].id(), Some("odd"));
    let ListedEval::Broken(broken) = &list.evals[1] else {
        panic!("read as an eval");
    };
    let paths: Vec<&str> = broken
        .faults
        .iter()
        .map(|fault| fault.path.as_str())
        .collect();
    assert_eq!(paths, ["/name", "/input", "/expected"]);
    assert_eq!(list.evals[2].id(), None);
    assert_eq!(list.to_value(), written);
}

#[test]
fn authors_write_what_is_read() {
    let written = Eval::new(
        "a",
        "A",
        Input::scenario_within([Message::user("go"), Message::assistant("ok")], 3),
        Expected::rubric("went"),
    )
    .describe("d");
    let ListedEval::Eval(read) = ListedEval::from(written.to_value()) else {
        panic!("not read");
    };
    assert_eq!(*read, written);
    assert!(validate(&[written.into()]).findings.is_empty());
}

#[test]
fn a_file_is_an_object_or_a_list() {
    let list = Value::from(samples());
    let bare = EvalFile::from_json(&list.to_string()).unwrap();
    let object = EvalFile::from_value(json!({"evals": list, "$schema": "s"})).unwrap();
    assert_eq!(bare.evals, object.evals);
    assert_eq!(object.to_value()["$schema"], "s");
    for bad in ["3", "{}", r#"{"evals": {}}"#, "[", "null"] {
        assert!(EvalFile::from_json(bad).is_err(), "{bad}");
    }
}

fn any_json() -> impl Strategy<Value = Value> {
    let word = prop::sample::select(vec![
        "type",
        "id",
        "name",
        "input",
        "expected",
        "messages",
        "content",
        "role",
        "gradingType",
        "invocation",
        "execution",
        "scenario",
        "exact-match",
        "llm-as-judge",
        "text",
        "user",
        "tool_result",
        "arguments",
        "toolName",
        "maxTurns",
        "rubric",
        "",
        "/~",
        "password",
    ]);
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        word.clone().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 40, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::vec((word.clone(), inner), 0..6).prop_map(|members| {
                Value::Object(
                    members
                        .into_iter()
                        .map(|(k, v)| (k.to_owned(), v))
                        .collect(),
                )
            }),
        ]
    })
}

/// A sample with one place replaced by anything, or with one field gone.
fn spoilt() -> impl Strategy<Value = Value> {
    let parts = (
        prop::sample::select(samples()),
        prop::option::of(any_json()),
        any::<prop::sample::Index>(),
    );
    parts.prop_map(|(mut sample, value, place)| {
        let mut paths = Vec::new();
        collect(&sample, String::new(), &mut paths);
        let path = &paths[place.index(paths.len())];
        match (value, path.rsplit_once('/')) {
            (Some(value), _) => {
                *sample.pointer_mut(path).expect("a path of the sample") = value;
            }
            (None, Some((parent, key))) => {
                let parent = sample.pointer_mut(parent).expect("a path of the sample");
                if let Value::Object(members) = parent {
                    members.remove(key);
                }
            }
            (None, None) => {}
        }
        sample
    })
}

fn collect(value: &Value, path: String, paths: &mut Vec<String>) {
    match value {
        Value::Array(elements) => {
            for (index, element) in elements.iter().enumerate() {
                collect(element, format!("{path}/{index}"), paths);
            }
        }
        Value::Object(members) => {
            for (key, member) in members {
                collect(member, format!("{path}/{key}"), paths);
            }
        }
        _ => {}
    }
    paths.push(path);
}

proptest! {
    #[test]
    fn reading_and_writing_keep_everything(value in prop_oneof![any_json(), spoilt()]) {
        let item = ListedEval::from(value.clone());
        prop_assert_eq!(item.to_value(), value);
    }

    #[test]
    fn nothing_panics(values in prop::collection::vec(prop_oneof![any_json(), spoilt()], 0..4)) {
        let items: Vec<ListedEval> = values.iter().cloned().map(ListedEval::from).collect();
        let report = validate_with_tools(&items, &values);
        for finding in &report.findings {
            prop_assert!(finding.index < items.len());
            prop_assert!(!finding.to_string().is_empty());
        }
        for (a, b) in values.iter().zip(values.iter().skip(1)) {
            prop_assert!(matching::equal(a, a));
            prop_assert_eq!(matching::equal(a, b), matching::difference(a, b).is_none());
            prop_assert_eq!(matching::equal(a, b), matching::equal(b, a));
        }
    }

    #[test]
    fn e34_the_schema_agrees_with_validate(value in prop_oneof![4 => spoilt(), 1 => any_json()]) {
        thread_local! {
            static SCHEMA: jsonschema::Validator =
                jsonschema::draft202012::new(&mcp_evals::eval_schema()).unwrap();
            static LIST: jsonschema::Validator =
                jsonschema::draft202012::new(&mcp_evals::schema()).unwrap();
        }
        let report = validate(&[ListedEval::from(value.clone())]);
        let valid = SCHEMA.with(|schema| schema.is_valid(&value));
        // A key that changes what is tested makes clients skip the eval, and editors refuse it.
        let is_plain = report.findings.iter().all(|finding| finding.rule != FindingRule::UnknownKey);
        prop_assert_eq!(valid, report.is_valid() && is_plain, "{} {}", value, report);
        for list in [json!([value]), json!({"evals": [value]})] {
            prop_assert_eq!(valid, LIST.with(|schema| schema.is_valid(&list)));
        }
    }
}

#[test]
fn the_evals_in_the_readme_are_valid() {
    let readme = include_str!("../README.md");
    let json = readme.split("```json").nth(1).unwrap();
    let file = EvalFile::from_json(json.split("```").next().unwrap()).unwrap();
    assert!(validate(&file.evals).findings.is_empty());
    assert_eq!(file.into_suite().unwrap().items().len(), 2);
}
