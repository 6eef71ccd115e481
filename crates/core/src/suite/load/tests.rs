use super::*;
use crate::suite::agent::AgentKind;

fn loaded(text: &str, model: Option<&str>) -> Result<Agent, String> {
    let mut problems = Problems::default();
    let agent = load_agent(text, model, &mut problems);
    agent.ok_or_else(|| problems.iter().map(ToString::to_string).collect())
}

#[test]
fn an_agent_of_the_command_line_is_a_name_or_a_file_with_a_model() {
    let check = |text: &str, model: Option<&str>, expected: (&str, Option<&str>)| {
        let agent = loaded(text, model).unwrap();
        let AgentKind::Builtin { builtin, model, .. } = agent.kind else {
            panic!("{agent:?}");
        };
        let model = model.map(|model| model.to_string());
        assert_eq!((builtin.name(), model.as_deref()), expected, "{text}");
    };
    check("builtin.claude-code", None, ("claude-code", None));
    check("goose", None, ("goose", None));
    check("goose=openai:gpt-5", None, ("goose", Some("openai:gpt-5")));
    check(
        "codex",
        Some("openai:gpt-5"),
        ("codex", Some("openai:gpt-5")),
    );
    check("codex=a", Some("b"), ("codex", Some("a")));
    // The old names of the loop mean OpenAI's models.
    for old in ["openai-agent", "openai-acp"] {
        check(old, Some("gpt-5"), (old, Some("openai:gpt-5")));
    }
    check(
        "llm-agent=openai:a=b",
        None,
        ("llm-agent", Some("openai:a=b")),
    );
    for (text, wrong) in [
        ("builtin.claud-code", "unknown agent type"),
        ("no-such-file.yaml", "neither a built-in agent nor a file"),
        ("llm-agent", "`model` is missing"),
        ("openai-acp", "`model` is missing"),
    ] {
        let said = loaded(text, None).unwrap_err();
        assert!(said.contains(wrong), "{text}: {said}");
    }
}
