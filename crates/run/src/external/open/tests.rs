use std::os::unix::fs::PermissionsExt;

use proctor_core::builtin_agent::BuiltinAgent;
use proctor_core::suite::agent::SkillMount;

use super::*;

/// An agent, as a suite defines it.
fn agent(builtin: &str, base_url: Option<&str>, key: Option<&str>) -> Agent {
    Agent {
        name: "the-agent".to_owned(),
        path: None,
        kind: AgentKind::Builtin {
            builtin: BuiltinAgent::parse(builtin).unwrap(),
            model: Some(ModelRef::parse("openai:gpt-9").unwrap()),
            base_url: base_url.map(str::to_owned),
            api_key_variable: key.map(str::to_owned),
        },
        ..Agent::nobody()
    }
}

fn environment(pairs: &[(&str, &str)]) -> Environment {
    let pairs = pairs.iter();
    pairs
        .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
        .collect()
}

fn access(agent: &Agent, env: &[(&str, &str)]) -> Result<ModelAccess, ExternalError> {
    let external = ExternalAgent {
        agent: agent.clone(),
        version: OnceCell::new(),
    };
    external.access(&environment(env))
}

/// The custom model URL and the key for an agent.
fn endpoint(agent: &Agent, env: &[(&str, &str)]) -> Option<(String, String)> {
    let access = access(agent, env).unwrap();
    assert_eq!(access.model.as_deref(), Some("gpt-9"));
    access
        .endpoint
        .map(|endpoint| (endpoint.base, endpoint.key))
}

#[test]
fn model_access_comes_from_the_file_or_the_environment() {
    let pair = |base: &str, key: &str| Some((base.to_owned(), key.to_owned()));
    let claude = agent("claude-code", None, None);
    // It reads its own variables.
    assert_eq!(endpoint(&claude, &[("ANTHROPIC_API_KEY", "k")]), None);
    assert_eq!(endpoint(&claude, &[("CLAUDE_CODE_OAUTH_TOKEN", "k")]), None);
    // The user's own server may need no key.
    let own = [("ANTHROPIC_BASE_URL", "http://h/v1/")];
    assert_eq!(endpoint(&claude, &own), pair("http://h", "none"));
    let other = agent("claude-code", Some("http://o"), Some("MY_KEY"));
    let keys = [("MY_KEY", "m"), ("ANTHROPIC_API_KEY", "k")];
    assert_eq!(endpoint(&other, &keys), pair("http://o", "m"));
    // Codex reads only its configuration.
    let codex = agent("codex", None, None);
    let usual = pair("https://api.openai.com/v1", "k");
    assert_eq!(endpoint(&codex, &[("OPENAI_API_KEY", "k")]), usual);
    let own = [("OPENAI_API_KEY", "k"), ("OPENAI_BASE_URL", "http://h/v1")];
    assert_eq!(endpoint(&codex, &own), pair("http://h/v1", "k"));
}

#[test]
fn a_missing_key_is_an_error_that_names_its_variables() {
    let claude = agent("claude-code", None, None);
    for env in [
        &[][..],
        &[("ANTHROPIC_API_KEY", "  ")],
        &[("OPENAI_API_KEY", "k")],
    ] {
        let error = access(&claude, env).unwrap_err().to_string();
        assert!(error.contains("`ANTHROPIC_API_KEY`"), "{error}");
        assert!(!error.contains("BASE_URL"), "{error}");
    }
    let own = agent("claude-code", None, Some("MY_KEY"));
    let error = access(&own, &[("ANTHROPIC_API_KEY", "k")]).unwrap_err();
    assert!(error.to_string().contains("`MY_KEY`"), "{error}");
}

#[test]
fn missing_requirements_are_reported_before_anything_starts() {
    let folder = tempfile::tempdir().unwrap();
    let open = |agent: &Agent, has_skills: bool| {
        let path = folder.path().display().to_string();
        let env = environment(&[("PATH", &path), ("OPENAI_API_KEY", "k")]);
        ExternalAgent::open(agent, &env, has_skills, false)
            .unwrap()
            .map(drop)
    };
    let codex = agent("codex", None, None);
    let error = open(&codex, false).unwrap_err().to_string();
    assert!(
        error.ends_with("install it with `npm install -g @openai/codex`"),
        "{error}"
    );
    let program = folder.path().join("codex");
    std::fs::write(&program, "").unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    assert_eq!(open(&codex, false), Ok(()));
    let error = open(&codex, true).unwrap_err();
    assert_eq!(error, ExternalError::NoSkills("the-agent".to_owned()));
    let mounted = |path: &str| Agent {
        skills: Some(SkillMount {
            mount_path: Some(path.to_owned()),
            tool_name: None,
        }),
        ..codex.clone()
    };
    assert_eq!(open(&mounted("./my/skills"), true), Ok(()));
    for outside in ["/etc", "../x", "a/../../x"] {
        let error = open(&mounted(outside), true).unwrap_err();
        assert!(
            matches!(error, ExternalError::SkillsOutside { .. }),
            "{error}"
        );
    }
    let tapped = Agent {
        model_tap: true,
        ..codex
    };
    assert_eq!(open(&tapped, false), Ok(()));
    // The tap sends the key, so it needs one; a replay needs none.
    let path = folder.path().display().to_string();
    let keyless = environment(&[("PATH", &path)]);
    let opened = |is_replayed| ExternalAgent::open(&tapped, &keyless, false, is_replayed).unwrap();
    let error = opened(false).map(drop).unwrap_err().to_string();
    assert!(error.contains("`OPENAI_API_KEY`"), "{error}");
    assert!(opened(true).is_ok());
    assert!(ExternalAgent::open(&Agent::nobody(), &environment(&[]), false, false).is_none());
}

#[test]
fn a_key_sent_to_a_custom_url_is_detected() {
    let env = environment(&[
        ("OPENAI_API_KEY", "o"),
        ("GEMINI_API_KEY", "g"),
        ("ANTHROPIC_API_KEY", "a"),
    ]);
    let sent = |builtin, model: &str, url: Option<&str>, key: Option<&str>, tap: bool| {
        let mut agent = agent(builtin, url, key);
        agent.model_tap = tap;
        if let AgentKind::Builtin { model: own, .. } = &mut agent.kind {
            *own = ModelRef::parse(model).ok();
        }
        sent_key(&agent, &env).map(|(_, variable)| variable)
    };
    let url = Some("http://h");
    for (builtin, model, tap, expected) in [
        ("llm-agent", "openai:m", false, "OPENAI_API_KEY"),
        ("llm-agent", "openai-responses:m", false, "OPENAI_API_KEY"),
        ("llm-agent", "anthropic:m", false, "ANTHROPIC_API_KEY"),
        ("llm-agent", "gemini:m", false, "GEMINI_API_KEY"),
        ("gemini", "gemini:m", false, "GEMINI_API_KEY"),
        ("gemini", "gemini:m", true, "GEMINI_API_KEY"),
        ("claude-code", "anthropic:m", false, "ANTHROPIC_API_KEY"),
        ("claude-code", "anthropic:m", true, "ANTHROPIC_API_KEY"),
    ] {
        let found = sent(builtin, model, url, None, tap);
        assert_eq!(found.as_deref(), Some(expected), "{builtin} {model}");
        assert_eq!(sent(builtin, model, None, None, tap), None);
        assert_eq!(sent(builtin, model, url, Some("MY_KEY"), tap), None);
    }
}

#[test]
fn only_claude_code_stops_at_its_turn_limit() {
    for (builtin, expected) in [
        ("claude-code", true),
        ("claude-acp", true),
        ("codex", false),
        ("codex-acp", false),
        ("copilot", false),
        ("gemini", false),
        ("goose", false),
        ("opencode", false),
    ] {
        let external = ExternalAgent::unchecked(&agent(builtin, None, None));
        assert_eq!(external.stops_at_max_turns(), expected, "{builtin}");
        assert!(external.can_be_tapped(), "{builtin}");
    }
}
