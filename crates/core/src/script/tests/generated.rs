//! No request and no script causes a panic.

use proctor_record::model::{ModelMessage, ModelRequest, ToolResult, Turn};
use proctor_record::problem::Severity;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{asked, load};

fn any_message() -> impl Strategy<Value = ModelMessage> {
    let text = || prop_oneof![".{0,12}", Just(r#"{"a": [1, {"b": "x"}]}"#.to_owned())];
    let result = (text(), any::<bool>()).prop_map(|(text, is_error)| ToolResult {
        is_error,
        media: Vec::new(),
        ..super::result(&text)
    });
    prop_oneof![
        text().prop_map(ModelMessage::User),
        text().prop_map(|text| ModelMessage::Assistant(Turn {
            text,
            ..Turn::default()
        })),
        prop::collection::vec(result, 0..3).prop_map(ModelMessage::Results),
    ]
}

fn any_rule() -> impl Strategy<Value = Value> {
    let text = || {
        let word = prop::sample::select(vec![
            "{prompt}",
            "{user}",
            "{result}",
            "{result.a[1].b}",
            "{results.1}",
            "{results.9.a}",
            "{match.1}",
            "{match.0}",
            "{",
            "}",
            "é",
            "{results.99999999999999999999}",
            "{result[}",
        ]);
        prop::collection::vec(word, 0..4).prop_map(|words| words.concat())
    };
    let when = prop::sample::select(vec![
        json!({}),
        json!({"turn": 2}),
        json!({"user": "(.)"}),
        json!({"result": "(a)|b"}),
        json!({"error": true}),
        json!({"results": 1}),
        json!({"tool": "t"}),
        json!({"prompt": "(", "turn": 0}),
    ]);
    (when, text(), text()).prop_map(|(when, said, argument)| {
        json!({"when": when, "reply": {"text": said, "calls": [{"tool": "t", "arguments": {"a": argument}}]}})
    })
}

proptest! {
    #[test]
    fn no_script_and_no_question_panics_and_the_same_question_gets_the_same_reply(
        rules in prop::collection::vec(any_rule(), 1..4),
        messages in prop::collection::vec(any_message(), 0..6),
    ) {
        let lines: Vec<String> = rules.iter().map(|rule| format!("- {rule}")).collect();
        let (script, problems) = load(&lines.join("\n"));
        if let Some(script) = script {
            let request = ModelRequest { messages, ..ModelRequest::default() };
            let reply = script.reply(&request);
            prop_assert_eq!(&reply, &script.reply(&request));
        } else {
            prop_assert!(problems.iter().any(|p| p.severity == Severity::Error));
        }
    }

    #[test]
    fn no_text_panics(text in ".{0,200}") {
        let (script, _) = load(&text);
        if let Some(script) = script {
            let _ = script.reply(&asked("go", &[&["x"]]));
        }
    }
}
