//! An agent that works: its call is in the record, and so is all that the provider gave.

use super::*;

/// The call is in the record, the answer is right, tokens and turns are those that the provider counts,
/// and the key is the provider's business alone.
fn works(agent: TappedRun) {
    let suite = agent.suite();
    let provider = ServedScript::start(suite.folder(), RULES);
    let session = agent.on(suite.check(&[]), provider.url()).within(BOUND);
    let (seen, found) = run(session);
    let place = format!("{}\n{}\n{}", agent.name, seen.stdout, seen.stderr);
    expect(&seen, Outcome::Passed, None, "");
    assert_eq!(answer(&seen), Some("It said hello."), "{place}");
    // What was looked at was there: the guard, the agent, the relay and the server, and files.
    assert!(found.programs.len() >= 4, "{:?}", found.programs);
    assert!(found.files >= 1, "{place}");
    let keys = provider.keys();
    assert!(!keys.is_empty(), "nobody had the key: {place}");
    for (name, value) in &keys {
        assert_eq!(value.trim_start_matches("Bearer "), KEY, "{name}: {place}");
    }
    let given = provider.end();
    assert!(keys.len() as u64 >= given.questions, "{keys:?}");
    let folded = folded(&seen);
    assert_eq!(folded.transcript.calls.len(), 1, "{place}");
    let asked = &folded.work.agent;
    let told = (asked.usage.input, asked.usage.output);
    assert_eq!(told, (Some(given.input), Some(given.output)), "{place}");
    assert_eq!(
        u64::from(asked.turns),
        given.questions - given.sides,
        "{place}"
    );
    assert_eq!(
        (asked.turns, asked.unmetered, asked.failures),
        (2, 0, 0),
        "{place}"
    );
}

/// A tool that is not allowed is not called, whatever the model wants.
fn is_denied(agent: TappedRun) {
    let suite = agent.suite();
    let server = everything(&json!({"alwaysAllow": ["echo"]}));
    suite.write(
        "mcp.json",
        &json!({"mcpServers": {"ev": server}}).to_string(),
    );
    let rules = RULES.replace(
        "tool: echo, arguments: {message: hello}",
        "tool: toggle-simulated-logging",
    );
    let provider = ServedScript::start(suite.folder(), &rules);
    let (seen, _) = run(agent.on(suite.check(&[]), provider.url()).within(BOUND));
    expect(
        &seen,
        Outcome::Failed,
        Some(Blame::Agent),
        "toggle-simulated-logging",
    );
    assert_eq!(folded(&seen).transcript.calls.len(), 0);
}

/// The flag does what the file does.
#[test]
fn claude_code_is_tapped_by_a_flag() {
    let suite = CLAUDE_CODE.suite();
    let used = json!({"toolsUsed": [{"server": "ev", "tool": "echo"}]});
    let agent = json!({"agent": {"type": "builtin.claude-code"}});
    suite.eval(&agent, &json!({"assertions": used}));
    let provider = ServedScript::start(suite.folder(), RULES);
    let session = CLAUDE_CODE.on(suite.check(&["--model-tap"]), provider.url());
    let (seen, _) = run(session.within(BOUND));
    expect(&seen, Outcome::Passed, None, "");
    let given = provider.end();
    let usage = folded(&seen).work.agent.usage;
    assert_eq!(
        (usage.input, usage.output),
        (Some(given.input), Some(given.output))
    );
}

/// The search would find a key: without the tap, an agent has it.
#[test]
fn without_the_tap_the_key_is_found() {
    let suite = CLAUDE_CODE.suite();
    let agent = json!({"agent": {"type": "builtin.claude-code"}});
    suite.eval(&agent, &json!({"assertions": {"minToolCalls": 1}}));
    let provider = ServedScript::start(suite.folder(), RULES);
    let temporary = tempfile::tempdir().unwrap();
    let session = CLAUDE_CODE
        .on(suite.check(&[]), provider.url())
        .within(BOUND);
    let running = session
        .env("TMPDIR", &temporary.path().display().to_string())
        .start();
    let search = Search::start(running.id(), temporary.path(), KEY);
    running.finish();
    let found = search.end();
    let is_agents = |leak: &String| leak.starts_with("environ of") && leak.contains("claude");
    assert!(found.leaks.iter().any(is_agents), "{found:?}");
}

/// The tests of an agent.
macro_rules! agent {
    ($module:ident, $agent:expr, $always:expr) => {
        mod $module {
            use super::*;

            #[test]
            fn works() {
                if $always || is_extended() {
                    super::works($agent);
                }
            }

            #[test]
            fn is_denied_a_tool() {
                if $always || is_extended() {
                    super::is_denied($agent);
                }
            }
        }
    };
}

agent!(claude_code, CLAUDE_CODE, true);
agent!(goose, GOOSE, true);
agent!(codex, CODEX, false);
agent!(copilot, COPILOT, false);
agent!(claude_acp, CLAUDE_ACP, false);
agent!(codex_acp, CODEX_ACP, false);
agent!(gemini, GEMINI, false);
agent!(opencode, OPENCODE, false);
