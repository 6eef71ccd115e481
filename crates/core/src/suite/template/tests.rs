use super::*;

fn references(text: &str) -> Vec<Reference> {
    let template = Template::parse(text).unwrap();
    template.references().cloned().collect()
}

fn step(step: &str, output: &str) -> Reference {
    Reference::Step {
        step: step.to_owned(),
        output: output.to_owned(),
    }
}

#[test]
fn references_are_found_among_other_braces() {
    assert_eq!(
        references("{agent.output}{agent.prompt}"),
        [Reference::AgentOutput, Reference::AgentPrompt]
    );
    assert_eq!(
        references("a{random.id}-{random.port}"),
        [Reference::RandomId, Reference::RandomPort]
    );
    assert_eq!(
        references("{trial.dir}/{trial.id}"),
        [Reference::TrialDir, Reference::TrialId]
    );
    assert_eq!(
        references("{env.HOME}"),
        [Reference::Env("HOME".to_owned())]
    );
    assert_eq!(
        references("{steps.script.output}"),
        [step("script", "output")]
    );
    assert_eq!(
        references("{steps.k8s.create.name}"),
        [step("k8s.create", "name")]
    );
    assert_eq!(references("{{agent.output}}"), [Reference::AgentOutput]);
}

#[test]
fn other_braces_are_text() {
    for text in [
        "{}",
        "{",
        "}",
        "{name}",
        "${HOME}",
        "{\"a\": 1}",
        "awk '{print $1}'",
        "{agent output}",
        "{agent.output",
        "x{2,3}",
        "{agents.output}",
        "{agent.a b}",
    ] {
        assert_eq!(Template::parse(text).unwrap().as_literal(), Some(text));
    }
    assert_eq!(Template::parse("").unwrap().as_literal(), Some(""));
}

#[test]
fn an_unknown_name_is_an_error_that_helps() {
    let check = |text: &str, message: &str, hint: Option<&str>| {
        let errors = Template::parse(text).unwrap_err();
        assert_eq!(errors.len(), 1);
        assert_eq!(
            (errors[0].message.as_str(), errors[0].hint.as_deref()),
            (message, hint)
        );
    };
    check(
        "{agent.outptu}",
        "unknown template `{agent.outptu}`",
        Some("did you mean `output`?"),
    );
    check(
        "{random.}",
        "unknown template `{random.}`",
        Some("known: `id`, `port`"),
    );
    check("{env.}", "unknown template `{env.}`", None);
    check(
        "{steps.a}",
        "`{steps.a}` names no output",
        Some("write `{steps.STEP.OUTPUT}`"),
    );
}

#[test]
fn a_value_is_filled_in_its_strings_only() {
    let value = serde_json::json!({"{random.id}": ["{random.id}", 1, {"a": "x{agent.output}"}]});
    let template = TemplateValue::parse(&value).unwrap();
    let filled = template.fill(&mut |t: &Template| Ok::<_, ()>(format!("<{}>", t.parts.len())));
    assert_eq!(
        filled.unwrap(),
        serde_json::json!({"{random.id}": ["<1>", 1, {"a": "<2>"}]})
    );
    assert_eq!(
        template.references(),
        [&Reference::RandomId, &Reference::AgentOutput]
    );
}

proptest::proptest! {
    #[test]
    fn what_is_parsed_writes_back(text in r"([{}.a-z ]|\{agent\.output\}|\{env\.X\}|\{steps\.a\.b\.c\}){0,12}") {
        if let Ok(template) = Template::parse(&text) {
            let written = template.to_string();
            proptest::prop_assert_eq!(written, text);
        }
    }
}
