//! What goes wrong around an agent, and who is blamed for it.

use super::*;

fn claude(server: &Value) -> SessionOutcome {
    let suite = suite(&scripted("claude-code"), server, RULES);
    run(suite.check(&[]), &path_with("claude-code"))
}

#[test]
fn a_server_that_dies_while_the_agent_works_fails_the_trial() {
    let seen = claude(&fixture(&["--mode", "exit-in-call=7"]));
    let reason = "the server `ev` failed while the agent worked: it exited with code 7";
    expect(&seen, Outcome::Failed, Some(Blame::Server), reason);
    assert_eq!(seen.code, Some(1));
}

/// Comes up for the preflight, and never again.
#[test]
fn a_server_that_does_not_come_up_for_the_agent_is_blamed() {
    let folder = tempfile::tempdir().unwrap();
    let script = "if [ -e seen ]; then echo gone >&2; exit 5; fi; touch seen; exec \"$0\"";
    let fixture = proctor_e2e::fixture();
    let flag = folder.path().join("seen").display().to_string();
    let script = script.replace("seen", &flag);
    let seen = claude(&json!({"command": "sh", "args": ["-c", script, fixture]}));
    let reason = "the server `ev` failed to start for the agent: it exited with code 5";
    expect(&seen, Outcome::Errored, Some(Blame::Server), reason);
}

#[test]
fn a_question_that_the_script_has_no_answer_to_is_the_suites_mistake() {
    let rules = "  - when: {prompt: something else}\n    reply: {text: hi}\n";
    let suite = suite(&scripted("claude-code"), &fixture(&[]), rules);
    let seen = run(suite.check(&[]), &path_with("claude-code"));
    expect(
        &seen,
        Outcome::Errored,
        Some(Blame::Suite),
        "the script has no reply",
    );
}

#[test]
fn too_many_turns_are_a_time_out() {
    let rules = "  - reply: {calls: [{tool: echo, arguments: {text: again}}]}\n";
    let suite = suite(&scripted("claude-code"), &fixture(&[]), rules);
    suite.task("say-hello", &json!({"limits": {"maxTurns": 2}}));
    let seen = run(suite.check(&[]), &path_with("claude-code"));
    expect(&seen, Outcome::TimedOut, None, "after 2 turns");
}

#[test]
fn an_agent_that_takes_too_long_is_timed_out() {
    let rules = "  - reply: {text: late, delay: 5m}\n";
    let suite = suite(&scripted("claude-code"), &fixture(&[]), rules);
    suite.task("say-hello", &json!({"limits": {"timeout": "4s"}}));
    let seen = run(suite.check(&[]), &path_with("claude-code"));
    expect(
        &seen,
        Outcome::TimedOut,
        None,
        "after 4s: it was in the drive phase",
    );
}

/// Whatever can be known before is said before, and nothing is started.
fn is_refused(agent: &Value, config: &Value, words: &[&str]) {
    let suite = suite(agent, &fixture(&[]), RULES);
    let mut all = json!({"agent": agent});
    for (key, value) in config.as_object().into_iter().flatten() {
        all[key] = value.clone();
    }
    suite.eval(&all, &json!({"assertions": {"minToolCalls": 1}}));
    let seen = suite.check(&[]).env("PATH", "/usr/bin:/bin").run();
    assert_eq!(seen.code, Some(2), "{}", seen.stderr);
    for word in words {
        assert!(seen.stderr.contains(word), "{}", seen.stderr);
    }
}

#[test]
fn a_missing_program_is_told_with_how_to_install_it() {
    let words = [
        "the agent `claude-code` can't be run: program `claude` was not found in PATH",
        "npm install -g @anthropic-ai/claude-code",
    ];
    is_refused(&json!({"type": "builtin.claude-code"}), &json!({}), &words);
    let words = ["`codex`", "npm install -g @openai/codex"];
    is_refused(&scripted("codex"), &json!({}), &words);
}

#[test]
fn servers_that_are_shared_are_not_for_agents_that_start_them() {
    let words = ["`isolation: run` is not supported", "`ev`"];
    is_refused(
        &scripted("claude-code"),
        &json!({"isolation": "run"}),
        &words,
    );
}

#[test]
fn a_missing_key_is_told_before_anything_starts() {
    let suite = suite(
        &json!({"type": "builtin.claude-code"}),
        &fixture(&[]),
        RULES,
    );
    let seen = suite
        .check(&[])
        .env("PATH", &path_with("claude-code"))
        .run();
    assert_eq!(seen.code, Some(2), "{}", seen.stderr);
    assert!(
        seen.stderr.contains("`ANTHROPIC_API_KEY`"),
        "{}",
        seen.stderr
    );
}

/// Nobody sees what such an agent asks its model, so these limits would never be reached.
#[test]
fn limits_that_need_the_model_tap_are_refused_without_it() {
    let refused = |agent: &str, limits: &Value, words: &[&str], limit: &str| {
        let agent = json!({"type": format!("builtin.{agent}")});
        let suite = suite(&agent, &fixture(&[]), RULES);
        suite.task("say-hello", &json!({"limits": limits}));
        let name = agent["type"]
            .as_str()
            .unwrap()
            .trim_start_matches("builtin.");
        let seen = suite
            .check(words)
            .env("PATH", &path_with(name))
            .env("ANTHROPIC_API_KEY", "none-of-your-business")
            .env("OPENAI_API_KEY", "none-of-your-business")
            .run();
        assert_eq!(seen.code, Some(2), "{}", seen.stderr);
        let said =
            format!("{limit} can't be enforced for the agent `{name}` without the model tap");
        assert!(seen.stderr.contains(&said), "{}", seen.stderr);
        assert!(seen.stderr.contains("modelTap: true"), "{}", seen.stderr);
    };
    let none = json!({});
    refused(
        "claude-code",
        &json!({"maxTokens": 9}),
        &[],
        "`maxTokens` of `say-hello`",
    );
    refused(
        "claude-code",
        &none,
        &["--budget-tokens", "9"],
        "`--budget-tokens`",
    );
    refused(
        "claude-code",
        &none,
        &["--budget-usd", "9"],
        "`--budget-usd`",
    );
    if is_extended() {
        refused(
            "codex",
            &json!({"maxTurns": 9}),
            &[],
            "`maxTurns` of `say-hello`",
        );
    }
}
