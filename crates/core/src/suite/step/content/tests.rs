//! Expectations beside what was found: they pass, they fail with a reason.

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::suite::template::Template;

fn pattern(text: &str) -> PatternTemplate {
    PatternTemplate(Template::parse(text).expect("a template"))
}

fn field(path: &str) -> Field {
    Field {
        path: path.split('.').map(str::to_owned).collect(),
        equals: None,
        kind: None,
        pattern: None,
        exists: None,
    }
}

fn equals(path: &str, value: &Value) -> Field {
    Field {
        equals: Some(TemplateValue::parse(value).expect("templates")),
        ..field(path)
    }
}

fn of_type(path: &str, kind: JsonType) -> Field {
    Field {
        kind: Some(kind),
        ..field(path)
    }
}

fn matches(path: &str, text: &str) -> Field {
    Field {
        pattern: Some(pattern(text)),
        ..field(path)
    }
}

fn exists(path: &str, exists: bool) -> Field {
    Field {
        exists: Some(exists),
        ..field(path)
    }
}

fn values() -> TemplateValues {
    let mut values = TemplateValues::default();
    let outputs = [("count", "3"), ("name", "ann"), ("flag", "true")];
    let outputs = outputs.map(|(name, value)| (name.to_owned(), value.to_owned()));
    values.add_outputs("made", "script", outputs.into());
    values
}

fn failures(content: &ContentCheck, text: &str) -> Vec<String> {
    let documents: Vec<Value> = serde_json::from_str(text).into_iter().collect();
    let expected = content.expected(&values()).expect("templates are known");
    expected.failures(ObservedContent {
        name: "the body",
        text,
        documents: &documents,
        redactor: &Redactor::default(),
    })
}

const DOCUMENT: &str = r#"{
    "user": {"name": "ann", "tags": ["a", {"b": null}]},
    "count": 3.0, "big": 9007199254740993, "half": 0.5, "on": true, "0": "zero", "": 1
}"#;

#[track_caller]
fn check_field(field: Field, expected: &[&str]) {
    let content = ContentCheck {
        pattern: None,
        fields: vec![field],
    };
    assert_eq!(failures(&content, DOCUMENT), expected);
}

#[test]
fn a_field_is_found_by_its_path() {
    check_field(exists("user.name", true), &[]);
    check_field(exists("user.tags.1.b", true), &[]);
    check_field(exists("0", true), &[]);
    check_field(exists("user.mail", false), &[]);
    check_field(exists("user.tags.2", false), &[]);
    check_field(exists("user.tags.x", false), &[]);
    check_field(exists("count.x", false), &[]);
    check_field(
        exists("user.mail", true),
        &["`user.mail` is missing: `user` has name, tags"],
    );
    check_field(
        exists("user.tags.2", true),
        &["`user.tags.2` is missing: `user.tags` is a list of 2"],
    );
    check_field(
        exists("on.off", true),
        &["`on.off` is missing: `on` is true"],
    );
    check_field(
        exists("user.name", false),
        &[r#"`user.name`: expected no value, found "ann""#],
    );
}

#[test]
fn a_field_equals_a_value() {
    check_field(equals("count", &json!(3)), &[]);
    check_field(equals("user.tags", &json!(["a", {"b": null}])), &[]);
    check_field(equals("user.tags.1.b", &Value::Null), &[]);
    check_field(
        equals("big", &json!(9_007_199_254_740_992_u64)),
        &["`big`: expected 9007199254740992, found 9007199254740993"],
    );
    check_field(
        equals("user.name", &json!("bob")),
        &[r#"`user.name`: expected "bob", found "ann""#],
    );
    // A text that is written as such is a text.
    check_field(
        equals("count", &json!("3")),
        &[r#"`count`: expected "3", found 3.0"#],
    );
    check_field(
        equals("user.mail", &json!("x")),
        &["`user.mail` is missing: `user` has name, tags"],
    );
}

#[test]
fn what_a_template_gave_equals_a_text_or_what_it_stands_for() {
    check_field(equals("count", &json!("{steps.made.count}")), &[]);
    check_field(equals("user.name", &json!("{steps.made.name}")), &[]);
    check_field(equals("on", &json!("{steps.made.flag}")), &[]);
    check_field(
        equals(
            "user",
            &json!({"name": "{steps.made.name}", "tags": ["a", {"b": null}]}),
        ),
        &[],
    );
    check_field(
        equals("half", &json!("{steps.made.count}")),
        &[r#"`half`: expected "3", found 0.5"#],
    );
    check_field(
        equals("user.name", &json!("{steps.made.name}!")),
        &[r#"`user.name`: expected "ann!", found "ann""#],
    );
}

#[test]
fn a_field_is_of_a_type() {
    check_field(of_type("user", JsonType::Object), &[]);
    check_field(of_type("user.tags", JsonType::Array), &[]);
    check_field(of_type("user.name", JsonType::String), &[]);
    check_field(of_type("user.tags.1.b", JsonType::Null), &[]);
    check_field(of_type("on", JsonType::Bool), &[]);
    check_field(of_type("on", JsonType::Boolean), &[]);
    check_field(of_type("half", JsonType::Number), &[]);
    check_field(of_type("count", JsonType::Integer), &[]);
    check_field(
        of_type("half", JsonType::Integer),
        &["`half`: expected type integer, found a number: 0.5"],
    );
    check_field(
        of_type("user.name", JsonType::Number),
        &[r#"`user.name`: expected type number, found a string: "ann""#],
    );
}

#[test]
fn a_field_matches_a_pattern() {
    check_field(matches("user.name", "^an+$"), &[]);
    check_field(matches("count", r"^3\.0$"), &[]);
    check_field(matches("on", "^true$"), &[]);
    check_field(matches("user.name", "^{steps.made.name}$"), &[]);
    check_field(
        matches("user.name", "^b"),
        &[r#"`user.name`: expected a match of `^b`, found "ann""#],
    );
    check_field(
        matches("user.tags", "a"),
        &["`user.tags`: expected a match of `a`, found an array"],
    );
    check_field(
        matches("user.tags.1.b", "null"),
        &["`user.tags.1.b`: expected a match of `null`, found null"],
    );
}

#[test]
fn all_differences_are_reported() {
    let content = ContentCheck {
        pattern: Some(pattern("^none$")),
        fields: vec![
            Field {
                exists: Some(true),
                kind: Some(JsonType::String),
                pattern: Some(pattern("^4")),
                ..equals("count", &json!(4))
            },
            exists("nowhere", true),
        ],
    };
    assert_eq!(failures(&content, DOCUMENT).len(), 5);
    assert_eq!(
        failures(&content, " "),
        [
            "the body does not match `^none$`: it is empty",
            "the body is not JSON, so it has no fields: it is empty",
        ]
    );
    let plain = ContentCheck {
        pattern: Some(pattern("pong")),
        fields: Vec::new(),
    };
    assert!(failures(&plain, "ping pong").is_empty());
    assert_eq!(
        failures(&plain, "ping"),
        ["the body does not match `pong`: `ping`"]
    );
}

#[test]
fn a_field_is_looked_up_in_one_document_after_another() {
    let documents = [json!({"a": 1}), json!({"a": 2, "b": 3})];
    let check = |field: Field, passes: bool| {
        let content = ContentCheck {
            pattern: None,
            fields: vec![field],
        };
        let found = ObservedContent {
            name: "the result",
            text: "",
            documents: &documents,
            redactor: &Redactor::default(),
        };
        let expected = content.expected(&values()).unwrap();
        assert_eq!(expected.failures(found).is_empty(), passes);
    };
    check(equals("a", &json!(1)), true);
    check(equals("a", &json!(2)), false);
    check(equals("b", &json!(3)), true);
    check(exists("b", false), false);
    check(exists("c", false), true);
}

#[test]
fn no_part_of_a_secret_is_shown() {
    let secret = "s3cr3t-".repeat(40);
    let redactor = Redactor::new([("TOKEN".to_owned(), secret.clone())]);
    let document = json!({"a": secret, "b": [secret]});
    let content = ContentCheck {
        pattern: Some(pattern("^none$")),
        fields: vec![
            equals("a", &json!("x")),
            exists("b", false),
            matches("a", "^x"),
            exists("a.c", true),
        ],
    };
    let text = document.to_string();
    let found = ObservedContent {
        name: "the body",
        text: &text,
        documents: &[document],
        redactor: &redactor,
    };
    let failures = content.expected(&values()).unwrap().failures(found);
    assert_eq!(failures.len(), 5);
    assert!(!failures.concat().contains("s3cr3t"), "{failures:?}");
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        "[a-z{}.]{0,6}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("[a-z]{1,3}", inner, 0..4)
                .prop_map(|map| map.into_iter().collect()),
        ]
    })
}

/// Every value of a document with its path.
fn all_paths(value: &Value, path: &[String], out: &mut Vec<(Vec<String>, Value)>) {
    out.push((path.to_vec(), value.clone()));
    let members: Vec<(String, &Value)> = match value {
        Value::Array(items) => items
            .iter()
            .enumerate()
            .map(|(at, item)| (at.to_string(), item))
            .collect(),
        Value::Object(map) => map.iter().map(|(key, item)| (key.clone(), item)).collect(),
        _ => Vec::new(),
    };
    for (part, member) in members {
        all_paths(member, &[path, &[part]].concat(), out);
    }
}

fn only<'a>(document: &'a Value, redactor: &'a Redactor) -> ObservedContent<'a> {
    ObservedContent {
        name: "the body",
        text: "",
        documents: std::slice::from_ref(document),
        redactor,
    }
}

proptest! {
    #[test]
    fn every_value_equals_itself_at_its_path_and_nothing_else(document in any_json(), other in any_json()) {
        let redactor = Redactor::default();
        let mut all = Vec::new();
        all_paths(&document, &[], &mut all);
        for (path, value) in all {
            let check = |wanted: &Value| {
                let field = ExpectedField {
                    path: path.clone(),
                    equals: Some(ExpectedValue::Plain(wanted.clone())),
                    kind: None,
                    pattern: None,
                    exists: Some(true),
                };
                field.failures(only(&document, &redactor)).is_empty()
            };
            prop_assert!(check(&value));
            prop_assert_eq!(check(&other), json::equal(&value, &other));
        }
    }

    #[test]
    fn a_field_is_there_or_not(document in any_json(), path in prop::collection::vec("[a-z0-2]{1,2}", 1..4)) {
        let redactor = Redactor::default();
        let is = |exists| {
            let field = ExpectedField { path: path.clone(), equals: None, kind: None, pattern: None, exists: Some(exists) };
            field.failures(only(&document, &redactor)).is_empty()
        };
        prop_assert_ne!(is(true), is(false));
    }
}
