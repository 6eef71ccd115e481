//! Runs of agents that are heard again: no provider, no key, the same verdicts and calls.

use std::path::Path;

use super::*;

/// Every trial, without what differs from run to run.
fn verdicts(stdout: &str) -> Vec<Value> {
    let document: Value =
        serde_json::from_str(stdout).unwrap_or_else(|error| panic!("{error}: {stdout}"));
    let results = document["results"].as_array().expect("a list");
    let one = |trial: &Value| {
        let checks = trial["proctor"]["checks"].as_array().expect("a list");
        let calls = trial["callHistory"]["ToolCalls"].as_array();
        json!({
            "task": trial["taskName"],
            "passed": trial["taskPassed"],
            "outcome": trial["proctor"]["outcome"],
            "reason": trial["proctor"]["reason"],
            "checks": checks.iter().map(|check| json!([check["check"], check["verdict"], check["reason"]])).collect::<Vec<_>>(),
            "calls": calls.into_iter().flatten().map(|call| json!([call["name"], call["request"], call["result"]])).collect::<Vec<_>>(),
        })
    };
    results.iter().map(one).collect()
}

/// Two tasks of which one fails.
fn suite(agent: &Value) -> SuiteFixture {
    let suite = SuiteFixture::on(
        "  - reply: {text: gone}\n",
        &json!({"ev": everything(&json!({}))}),
    );
    let used = json!({"toolsUsed": [{"server": "ev", "tool": "echo"}]});
    suite.eval(&json!({"agent": agent}), &json!({"assertions": used}));
    suite.task("say-hello", &json!({}));
    suite.task("say-nothing", &json!({}));
    suite
}

const TWO: &str = r"
  - when: {results: 0, prompt: say-hello}
    reply: {calls: [{tool: echo, arguments: {message: hello}}], usage: {input: 1000, output: 10}}
  - reply: {text: It said hello., usage: {input: 2000, output: 20}}
";

/// `check --replay`, with nothing that could ask anybody.
fn again(agent: TappedRun, record: &Path, words: &[&str]) -> SessionOutcome {
    let record = record.display().to_string();
    let mut all = vec!["check", "--replay", &record, "-o", "json"];
    all.extend(words);
    let session = Session::new(&all).env("PATH", &path_with(agent.name));
    run(session.within(BOUND)).0
}

fn tokens(seen: &SessionOutcome) -> (String, String) {
    let document: Value = serde_json::from_str(&seen.stdout).expect("the result is JSON");
    let agent = &document["proctor"]["usage"]["agent"];
    (agent["tokens"].to_string(), agent["drifted"].to_string())
}

/// The same verdicts, calls and tokens, from the record alone.
fn replays(agent: TappedRun) {
    let suite = suite(&agent.agent());
    let provider = ServedScript::start(suite.folder(), TWO);
    let session = agent.on(suite.check(&["-o", "json"]), provider.url());
    let (first, _) = run(session.within(BOUND));
    assert_eq!(first.code, Some(1), "{}", first.stderr);
    let given = provider.end();
    let then = verdicts(&first.stdout);
    assert_eq!(then.len(), 2);
    assert_eq!(then[0]["outcome"], "passed", "{then:?}");
    assert_eq!(then[0]["calls"].as_array().map(Vec::len), Some(1));
    assert_eq!(then[1]["outcome"], "failed", "{then:?}");
    let seen = again(agent, &first.record, &["--replay-strict"]);
    assert_eq!(seen.code, Some(1), "{}", seen.stderr);
    assert_eq!(verdicts(&seen.stdout), then);
    let (total, drifted) = tokens(&seen);
    assert_eq!((total, "0"), (tokens(&first).0, drifted.as_str()));
    let asked = |seen: &SessionOutcome| {
        let asked =
            |event: &&proctor_record::event::Event| matches!(event.event, EventKind::ModelAsked(_));
        seen.events.iter().filter(asked).count() as u64
    };
    assert_eq!(
        (asked(&first), asked(&seen)),
        (given.questions, given.questions)
    );
}

#[test]
fn claude_code_replays_without_its_provider() {
    replays(CLAUDE_CODE);
}

#[test]
fn goose_replays_without_its_provider() {
    replays(GOOSE);
}

/// The script is part of the suite there, and may be gone as well.
#[test]
fn claude_code_on_a_script_replays_without_it() {
    let agent = json!({"type": "builtin.claude-code", "model": "scripted:model.yaml"});
    let suite = suite(&agent);
    suite.write("model.yaml", &format!("kind: Script\nrules:\n{TWO}"));
    let session = suite
        .check(&["-o", "json"])
        .env("PATH", &path_with("claude-code"));
    let (first, _) = run(session.within(BOUND));
    assert_eq!(first.code, Some(1), "{}", first.stderr);
    let gone = "kind: Script\nrules: [{reply: {error: {kind: key, detail: gone}}}]\n";
    suite.write("model.yaml", gone);
    let seen = again(CLAUDE_CODE, &first.record, &["--replay-strict"]);
    assert_eq!(
        verdicts(&seen.stdout),
        verdicts(&first.stdout),
        "{}",
        seen.stderr
    );
}

/// What the record lacks is said; another server is noticed, and an error where it matters.
#[test]
fn what_the_record_lacks_is_said() {
    let suite = suite(&CLAUDE_CODE.agent());
    let provider = ServedScript::start(suite.folder(), TWO);
    let session = CLAUDE_CODE.on(suite.check(&["-o", "json"]), provider.url());
    let (first, _) = run(session.within(BOUND));
    drop(provider);
    suite.task("new", &json!({}));
    let eval = suite.path("eval.yaml").display().to_string();
    let seen = again(CLAUDE_CODE, &first.record, &[&eval]);
    let lacks = "the record has no finished trial of this case by this agent";
    assert!(seen.stderr.contains(lacks), "{}", seen.stderr);
    let fixture = json!({"command": proctor_e2e::fixture()});
    suite.write(
        "mcp.json",
        &json!({"mcpServers": {"ev": fixture}}).to_string(),
    );
    let changed = "the request differs from the recorded one";
    let seen = again(CLAUDE_CODE, &first.record, &[&eval]);
    assert!(!seen.stderr.contains(changed), "{}", seen.stderr);
    assert_ne!(tokens(&seen).1, "0", "it is noticed");
    let seen = again(CLAUDE_CODE, &first.record, &[&eval, "--replay-strict"]);
    assert!(seen.stderr.contains(changed), "{}", seen.stderr);
}

/// An agent that asked its model itself left nothing to hear again.
#[test]
fn a_run_without_the_tap_can_t_be_replayed() {
    let suite = suite(&json!({"type": "builtin.claude-code"}));
    let provider = ServedScript::start(suite.folder(), TWO);
    let session = CLAUDE_CODE.on(suite.check(&["-o", "json"]), provider.url());
    let first = session
        .env("TMPDIR", &suite.folder().display().to_string())
        .within(BOUND)
        .run();
    assert_eq!(first.code, Some(1), "{}", first.stderr);
    let seen = again(CLAUDE_CODE, &first.record, &[]);
    assert_ne!(seen.code, Some(0), "{}", seen.stdout);
    let lacks =
        "the record has no model replies for this trial; record external agents with `modelTap`";
    assert!(seen.stderr.contains(lacks), "{}", seen.stderr);
}

/// What the agent is asked to do has changed, and it asks its model all the same.
#[test]
fn a_changed_prompt_of_an_external_agent_is_counted_and_with_strict_an_error() {
    let suite = suite(&CLAUDE_CODE.agent());
    let provider = ServedScript::start(suite.folder(), TWO);
    let session = CLAUDE_CODE.on(suite.check(&["-o", "json"]), provider.url());
    let (first, _) = run(session.within(BOUND));
    drop(provider);
    let prompt = json!({"prompt": {"inline": "say-hello, and mean it"}});
    suite.task("say-hello", &prompt);
    let eval = suite.path("eval.yaml").display().to_string();
    let seen = again(CLAUDE_CODE, &first.record, &[&eval]);
    assert_eq!(verdicts(&seen.stdout)[0]["outcome"], "passed");
    assert_ne!(tokens(&seen).1, "0", "it is counted");
    let seen = again(CLAUDE_CODE, &first.record, &[&eval, "--replay-strict"]);
    let trial = &verdicts(&seen.stdout)[0];
    assert_eq!(trial["outcome"], "errored");
    let reason = trial["reason"].as_str().unwrap_or_default();
    assert!(reason.contains("the prompt has changed"), "{reason}");
}
