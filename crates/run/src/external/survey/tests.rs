use std::os::unix::fs::PermissionsExt;

use super::*;

fn environment(pairs: &[(&str, &str)]) -> Environment {
    let pairs = pairs.iter();
    pairs
        .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
        .collect()
}

fn named<'a>(all: &'a [Survey], name: &str) -> &'a Survey {
    all.iter().find(|one| one.name == name).unwrap()
}

#[test]
fn every_known_agent_is_surveyed() {
    let all = survey_known(&Environment::new());
    for name in BuiltinAgent::names() {
        let is_known = all.iter().any(|one| one.name.starts_with(name));
        // Names that other tools use for Proctor's own loop.
        let is_alias = ["openai-agent", "openai-acp"].contains(&name);
        assert!(is_known != is_alias, "{name}");
    }
    for one in &all {
        assert_eq!(one.is_usable(), one.name.contains("scripted"), "{one:?}");
        assert!(one.can_be_told, "{}", one.name);
        match &one.program {
            Some(program) => assert!(program.install.is_some(), "{}", one.name),
            None => assert!(one.runs_scripts(), "{}", one.name),
        }
    }
}

#[test]
fn keys_are_found_by_their_variables() {
    let env = environment(&[
        ("ANTHROPIC_API_KEY", "sk-1"),
        ("OPENAI_BASE_URL", "http://h/v1"),
        ("GEMINI_API_KEY", " "),
    ]);
    let all = survey_known(&env);
    let check = |name: &str, key: AgentKey| assert_eq!(named(&all, name).key, key, "{name}");
    let found = |name: &str| AgentKey::Found(name.to_owned());
    check("llm-agent (anthropic)", found("ANTHROPIC_API_KEY"));
    check("llm-agent (openai)", found("its URL"));
    check("llm-agent (scripted)", AgentKey::NotNeeded);
    check("claude-code", found("ANTHROPIC_API_KEY"));
    check("codex", found("OPENAI_BASE_URL"));
    check("goose", found("ANTHROPIC_API_KEY"));
    let wanted = ["GEMINI_API_KEY", "GOOGLE_API_KEY"].map(str::to_owned);
    check("gemini", AgentKey::Wanted(wanted.to_vec()));
    assert!(!format!("{all:?}").contains("sk-1"));
}

#[test]
fn a_missing_program_is_reported() {
    let bin = tempfile::tempdir().unwrap();
    let claude = bin.path().join("claude");
    std::fs::write(&claude, "#!/bin/sh\n").unwrap();
    std::fs::set_permissions(&claude, std::fs::Permissions::from_mode(0o755)).unwrap();
    let path = bin.path().display().to_string();
    let all = survey_known(&environment(&[("PATH", &path)]));
    let claude_code = named(&all, "claude-code");
    let found = claude_code.program.as_ref().and_then(|p| p.path.clone());
    assert_eq!(found, Some(claude));
    assert!(!claude_code.is_usable() && claude_code.runs_scripts());
    assert!(!named(&all, "codex").runs_scripts());
}

#[test]
fn needs_of_single_agents_are_reported() {
    let bin = tempfile::tempdir().unwrap();
    let goose = bin.path().join("goose");
    std::fs::write(&goose, "#!/bin/sh\n").unwrap();
    std::fs::set_permissions(&goose, std::fs::Permissions::from_mode(0o755)).unwrap();
    let path = bin.path().display().to_string();
    let mut env = environment(&[("PATH", &path), ("OPENAI_API_KEY", "k")]);
    let problem = named(&survey_known(&env), "goose").problem.clone();
    let problem = problem.unwrap();
    assert!(problem.contains("needs a model"), "{problem}");
    env.insert("GOOSE_MODEL".to_owned(), "gpt-5".to_owned());
    assert!(named(&survey_known(&env), "goose").is_usable());
}
