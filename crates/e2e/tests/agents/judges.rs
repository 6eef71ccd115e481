//! Programs that judge: Claude Code on a script, and any command.

use proctor_e2e::session::SessionOutcome;
use proctor_e2e::suite::SuiteFixture;
use proctor_record::event::{AgentStarted, Blame, EventKind, Outcome, Purpose};
use serde_json::{Value, json};

use crate::cli::{RULES, expect, fixture, folded, path_with, run, scripted};

const PASS: &str =
    r#"{"reason": "It says so.", "evidence": ["It said hello."], "verdict": "pass"}"#;
const FAIL: &str = r#"{"reason": "It does not say so.", "evidence": [], "verdict": "fail"}"#;

/// A suite whose answer is judged.
fn judged(agent: &Value, judge: &Value) -> SuiteFixture {
    let suite = SuiteFixture::on(RULES, &json!({"ev": fixture(&[])}));
    suite.eval(
        &json!({"agent": agent, "llmJudge": {"ref": judge}}),
        &json!({}),
    );
    let verify = json!([{"llmJudge": {"contains": "hello"}}]);
    suite.task("say-hello", &json!({"verify": verify}));
    suite
}

/// A judge that is a command.
fn by_command(command: &str) -> SuiteFixture {
    let suite = judged(
        &scripted("llm-agent"),
        &json!({"type": "file", "path": "judge.yaml"}),
    );
    let agent = json!({
        "kind": "Agent",
        "metadata": {"name": "a-command"},
        "commands": {"runPrompt": command, "useVirtualHome": true},
    });
    suite.write("judge.yaml", &agent.to_string());
    suite
}

fn own_path() -> String {
    std::env::var("PATH").expect("there is a PATH")
}

/// The judges that were started.
fn started(seen: &SessionOutcome) -> Vec<&AgentStarted> {
    let events = seen.events.iter();
    let started = events.filter_map(|event| match &event.event {
        EventKind::AgentStarted(started) if started.purpose == Purpose::Judge => Some(started),
        _ => None,
    });
    started.collect()
}

fn with_script(suite: &SuiteFixture, said: &[&str]) {
    let mut rules = String::new();
    for text in said {
        let reply = json!({"text": text, "usage": {"input": 500, "output": 50}});
        rules.push_str(&format!("  - {}\n", json!({"reply": reply})));
    }
    suite.write("verdicts.yaml", &format!("kind: Script\nrules:\n{rules}"));
}

#[test]
fn claude_code_judges() {
    let claude = json!({"type": "builtin.claude-code", "model": "scripted:verdicts.yaml"});
    let path = path_with("claude-code");
    for (said, outcome, blame, reason) in [
        (PASS, Outcome::Passed, None, ""),
        (
            FAIL,
            Outcome::Failed,
            Some(Blame::Agent),
            "It does not say so.",
        ),
    ] {
        let suite = judged(&scripted("llm-agent"), &claude);
        with_script(&suite, &[said]);
        let seen = run(suite.check(&[]), &path);
        expect(&seen, outcome, blame, reason);
        let judges = started(&seen);
        assert_eq!(judges.len(), 1, "{}", seen.stderr);
        assert!(judges[0].version.is_some());
        let work = folded(&seen).work;
        assert_eq!(work.external, None, "the judge is not the agent");
        let judge = (work.judge.usage.input, work.judge.usage.output);
        assert!(judge >= (Some(500), Some(50)), "{judge:?}");
        assert_eq!(work.agent.usage.input, Some(3000));
    }
    // A verdict in a code block is malformed, however often it is given.
    let fenced = format!("```json\n{PASS}\n```");
    let suite = judged(&scripted("llm-agent"), &claude);
    with_script(&suite, &[&fenced]);
    let seen = run(suite.check(&[]), &path);
    let reason = "stood in a code block";
    expect(&seen, Outcome::Errored, Some(Blame::Judge), reason);
}

#[test]
fn claude_code_that_judges_its_own_work_is_told_of() {
    let rules = format!("{RULES}  - reply: {{text: ''}}\n");
    let claude = scripted("claude-code");
    let suite = judged(&claude, &claude);
    // The judge's first question has no results either.
    let text = json!({"when": {"prompt": "criterion"}, "reply": {"text": PASS}});
    suite.write(
        "model.yaml",
        &format!(
            "kind: Script\nrules:\n  - {text}\n{}",
            rules.trim_start_matches('\n')
        ),
    );
    let seen = run(suite.check(&[]), &path_with("claude-code"));
    expect(&seen, Outcome::Passed, None, "");
    let warning = "`scripted:model.yaml` judges its own work";
    assert!(seen.stderr.contains(warning), "{}", seen.stderr);
}

#[test]
fn a_command_judges() {
    let suite = by_command(&format!("printf %s '{PASS}' # {{{{ .Prompt }}}}"));
    let seen = run(suite.check(&[]), &own_path());
    expect(&seen, Outcome::Passed, None, "");
    assert_eq!(seen.code, Some(0));
}

#[test]
fn a_program_that_judges_is_shown_what_a_model_is_shown() {
    // It looks for the answer in what it is asked, and is nowhere where it could find something.
    let command = format!(
        "case {{{{ .Prompt }}}} in *'It said hello.'*'JSON object'*) [ -z \"$(ls -A)\" ] && printf %s '{PASS}';; esac"
    );
    let seen = run(by_command(&command).check(&[]), &own_path());
    expect(&seen, Outcome::Passed, None, "");
}

#[test]
fn what_is_no_verdict_is_asked_for_again_and_then_unknown() {
    for said in [
        "It passes.",
        &format!("{PASS} {PASS}"),
        &format!("Sure: {PASS}"),
    ] {
        let suite = by_command(&format!("printf %s '{said}' # {{{{ .Prompt }}}}"));
        let seen = run(suite.check(&[]), &own_path());
        expect(
            &seen,
            Outcome::Errored,
            Some(Blame::Judge),
            "no usable verdict in 3 attempts",
        );
        assert_eq!(started(&seen).len(), 3, "{said}");
        assert_eq!(seen.code, Some(3));
    }
}

#[test]
fn a_program_that_goes_wrong_gives_no_verdict() {
    for (command, reason) in [
        (format!("printf %s '{PASS}'; exit 3"), "exited with code 3"),
        ("true".to_owned(), "it gave no answer"),
        (
            format!(
                "printf %s '{}'",
                PASS.replace("It said hello.", "It said bye.")
            ),
            "quoted text that is not in the evidence",
        ),
    ] {
        let suite = by_command(&format!("{command} # {{{{ .Prompt }}}}"));
        let seen = run(suite.check(&[]), &own_path());
        expect(&seen, Outcome::Errored, Some(Blame::Judge), reason);
        assert_eq!(started(&seen).len(), 1, "{command}");
    }
}

#[test]
fn a_judge_that_is_not_there_is_said_before_anything_starts() {
    let suite = judged(
        &scripted("llm-agent"),
        &json!({"type": "builtin.codex", "model": "openai:gpt-5"}),
    );
    let seen = run(suite.check(&[]), "/usr/bin:/bin");
    assert_eq!(seen.code, Some(2), "{}", seen.stderr);
    assert!(
        seen.stderr.contains("npm install -g @openai/codex"),
        "{}",
        seen.stderr
    );
}
