use serde_json::json;

use super::*;

fn parse_text(text: &str) -> (Option<Document>, Vec<String>) {
    let mut problems = Problems::default();
    let document = parse(&SourceText::new("a.yaml", text.to_owned()), &mut problems);
    let messages = problems
        .iter()
        .map(|p| {
            let place = p
                .place
                .as_ref()
                .map(|p| format!("{}:{} ", p.line, p.column));
            format!("{}{}", place.unwrap_or_default(), p.message)
        })
        .collect();
    (document, messages)
}

#[track_caller]
fn check(text: &str, expected: &Value) {
    let (document, problems) = parse_text(text);
    assert_eq!(problems, Vec::<String>::new(), "{text}");
    assert_eq!(&document.unwrap().root.to_json(), expected, "{text}");
}

#[track_caller]
fn check_error(text: &str, expected: &str) {
    let (_, problems) = parse_text(text);
    assert_eq!(
        problems.first().map(String::as_str),
        Some(expected),
        "{}",
        &text[..text.len().min(80)]
    );
}

#[test]
fn scalars_mean_what_the_core_schema_says() {
    check("", &json!(null));
    check("# nothing", &json!(null));
    check("~", &json!(null));
    check("True", &json!(true));
    check("yes", &json!("yes"));
    check("12", &json!(12));
    check("+012", &json!(12));
    check("0x1F", &json!(31));
    check("0o17", &json!(15));
    check("1.50", &serde_json::from_str("1.50").unwrap());
    check(".5", &serde_json::from_str("0.5").unwrap());
    check("1e3", &serde_json::from_str("1e3").unwrap());
    check("1.", &json!(1));
    check(
        "9007199254740993",
        &serde_json::from_str("9007199254740993").unwrap(),
    );
    check(
        "123456789012345678901234567890",
        &serde_json::from_str("123456789012345678901234567890").unwrap(),
    );
    check(".inf", &json!(".inf"));
    check("1.2.3", &json!("1.2.3"));
    check("1_000", &json!("1_000"));
    check("-", &json!([null]));
    check("+", &json!("+"));
    check("1e", &json!("1e"));
    check("'12'", &json!("12"));
    check("!!str 12", &json!("12"));
}

#[test]
fn json_is_read_as_json() {
    check(
        "{\n\t\"a\": [1,\t2],\n\t\"b\": {\"c\": \"x\\/y\"}\n}",
        &json!({"a": [1, 2], "b": {"c": "x/y"}}),
    );
    check(
        r#"{"a": "\ud83d\ude00 \\ud83d"}"#,
        &json!({"a": "😀 \\ud83d"}),
    );
    check("\u{feff}{\"a\": 1}\r\n", &json!({"a": 1}));
}

#[test]
fn aliases_and_merge_keys_expand() {
    check(
        "a: &x {b: 1}\nc: *x\n",
        &json!({"a": {"b": 1}, "c": {"b": 1}}),
    );
    check(
        "a: &x {b: 1, c: 2}\nd:\n  <<: *x\n  c: 3\n",
        &json!({"a": {"b": 1, "c": 2}, "d": {"b": 1, "c": 3}}),
    );
    check(
        "- &x {a: 1}\n- &y {a: 2, b: 2}\n- <<: [*x, *y]\n",
        &json!([{"a": 1}, {"a": 2, "b": 2}, {"a": 1, "b": 2}]),
    );
    check("'<<': {a: 1}", &json!({"<<": {"a": 1}}));
}

#[test]
fn only_the_first_document_counts_and_the_second_is_pointed_at() {
    let (document, problems) = parse_text("a: 1\n---\nb: 2\n");
    let document = document.unwrap();
    assert_eq!(document.root.to_json(), json!({"a": 1}));
    assert_eq!(document.second.unwrap().line, 2);
    assert!(problems.is_empty());
}

#[test]
fn invalid_yaml_is_refused_with_its_place() {
    check_error("a: 1\na: 2\n", "2:1 duplicate key `a`");
    check_error("1: a\n'1': b\n", "2:1 duplicate key `1`");
    check_error("[a]: 1\n", "1:1 a key must be a string");
    check_error(
        "a: &x [*x]\n",
        "1:8 recursive alias: it stands inside the value that it refers to",
    );
    check_error(
        "a: *x\n",
        "1:4 invalid YAML: while parsing node, found unknown anchor",
    );
    check_error("a: !include x\n", "1:4 unsupported YAML tag `!include`");
    check_error("a: !!binary x\n", "1:4 unsupported YAML tag `!!binary`");
    check_error(
        "a:\n\tb: 1\n",
        "2:2 invalid YAML: tabs disallowed within this context (block indentation)",
    );
    check_error(
        "<<: 5\n",
        "1:5 `<<` merges maps, but this value is not a map",
    );
}

#[test]
fn bombs_end_at_a_limit() {
    let deep = "lists and maps are nested deeper than 100 levels";
    for text in [
        "[".repeat(10_000),
        "- ".repeat(10_000),
        "{a: ".repeat(10_000),
        "? ".repeat(10_000),
    ] {
        let (_, problems) = parse_text(&text);
        assert!(problems[0].ends_with(deep), "{problems:?}");
    }
    let mut block = String::new();
    for level in 0..300 {
        block.push_str(&format!("{}a:\n", " ".repeat(level)));
    }
    assert!(parse_text(&block).1[0].ends_with(deep));

    let mut laughs = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..30 {
        let alias = format!("*a{}, ", level - 1).repeat(10);
        laughs.push_str(&format!("a{level}: &a{level} [{alias}]\n"));
    }
    check_error(&laughs, "5:60 the file contains more than 200000 values");

    let mut nested = "a0: &a0 [x]\n".to_owned();
    for level in 1..200 {
        nested.push_str(&format!("a{level}: &a{level} [*a{}]\n", level - 1));
    }
    assert!(parse_text(&nested).1[0].ends_with(deep));

    let mut anchored = String::new();
    for level in 0..90 {
        anchored.push_str(&format!("{}- &a{level}\n", "  ".repeat(level)));
    }
    let anchored = format!("{anchored}{}- [{}]\n", "  ".repeat(90), "a,".repeat(50_000));
    assert!(parse_text(&anchored).1[0].ends_with("more than 200000 values"));

    let wide = format!("[{}]", "a,".repeat(4 << 20));
    assert!(parse_text(&wide).1[0].ends_with("more than 200000 values"));
}

proptest::proptest! {
    #[test]
    fn every_json_value_reads_back(text in json_text()) {
        let expected: Value = serde_json::from_str(&text).unwrap();
        let (document, problems) = parse_text(&text);
        proptest::prop_assert_eq!(problems, Vec::<String>::new());
        proptest::prop_assert_eq!(document.unwrap().root.to_json(), expected);
    }

    #[test]
    fn no_text_panics(text in r"[\[\]{}&*!|>'%@`,?:# a-c0-9<\n\t\\u-]{0,60}|\PC{0,40}") {
        let (document, problems) = parse_text(&text);
        proptest::prop_assert!(document.is_some() || !problems.is_empty());
    }
}

fn json_text() -> impl proptest::strategy::Strategy<Value = String> {
    use proptest::prelude::*;
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        "\\PC{0,12}|[ -~]{0,12}".prop_map(Value::from),
    ];
    let tree = leaf.prop_recursive(4, 40, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::btree_map("[a-z \"\\\\]{0,6}", inner, 0..5)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    });
    (tree, any::<bool>()).prop_map(|(value, pretty)| {
        let value = serde_json::json!([value]);
        if pretty {
            serde_json::to_string_pretty(&value).unwrap()
        } else {
            value.to_string()
        }
    })
}
