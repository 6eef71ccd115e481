//! Templates: what is parsed is written back unchanged, a mistake lies inside the text, and text that comes from a prompt never
//! counts as the author's, which a shell would run.
#![no_main]

use libfuzzer_sys::fuzz_target;
use proctor_core::suite::go_template::{
    FieldValue, GoTemplate, RenderedPiece, TemplateUse, TextOrigin,
};
use proctor_core::suite::template::{Template, TemplateValue};
use serde_json::json;

/// Characters of the prompt and of other values that no author writes here.
const PROMPT: char = '\u{e000}';
const VALUE: char = '\u{e001}';

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    of_steps(text);
    for usage in [
        TemplateUse::RunPrompt,
        TemplateUse::McpServer,
        TemplateUse::AllowedTools,
    ] {
        of_agents(text, usage);
    }
    let piece = RenderedPiece {
        quoted: true,
        ..RenderedPiece::new(text, TextOrigin::Prompt)
    };
    let quoted = format!("{{{{ {} }}}}", piece.written());
    let template = GoTemplate::parse(&quoted, TemplateUse::RunPrompt).expect("a quoted string");
    assert_eq!(rendered(&template), text, "what is quoted is read again");
});

fn of_steps(text: &str) {
    let value = json!({ "key": [text] });
    match Template::parse(text) {
        Ok(template) => {
            assert_eq!(template.to_string(), text);
            let again = Template::parse(&template.to_string());
            assert_eq!(again, Ok(template));
            let template = TemplateValue::parse(&value).expect("its only text is a template");
            let same = template.fill(&mut |template: &Template| Ok::<_, ()>(template.to_string()));
            assert_eq!(same, Ok(value));
        }
        Err(errors) => {
            assert!(!errors.is_empty());
            assert!(TemplateValue::parse(&value).is_err());
        }
    }
}

fn of_agents(text: &str, usage: TemplateUse) {
    match GoTemplate::parse(text, usage) {
        Ok(template) => {
            for piece in template.render(&mut field) {
                let least = if piece.text.contains(PROMPT) {
                    TextOrigin::Prompt
                } else if piece.text.contains(VALUE) {
                    TextOrigin::Value
                } else {
                    TextOrigin::Author
                };
                // The author may write these characters too.
                let is_own = text.contains([PROMPT, VALUE, '\\']);
                assert!(is_own || piece.origin >= least, "{piece:?}");
            }
            let same = GoTemplate::parse(text, usage);
            assert_eq!(same.map(|same| rendered(&same)), Ok(rendered(&template)));
        }
        Err(faults) => {
            assert!(!faults.is_empty());
            for fault in faults {
                let place = text.get(fault.at..fault.at + fault.len);
                assert!(place.is_some(), "{fault:?} is outside");
            }
        }
    }
}

fn rendered(template: &GoTemplate) -> String {
    let pieces = template.render(&mut field);
    pieces.iter().map(RenderedPiece::written).collect()
}

fn field(name: &str) -> FieldValue {
    let text = |text: char, origin| {
        FieldValue::Text(vec![RenderedPiece::new(format!("a{text}'\"$"), origin)])
    };
    match name {
        "Prompt" => text(PROMPT, TextOrigin::Prompt),
        "DangerouslySkipPermissions" => FieldValue::Truth(true),
        _ => text(VALUE, TextOrigin::Value),
    }
}
