//! What is left of a run in its folder, and how it is shown.

use std::process::Command;

use proctor_e2e::suite::SuiteFixture;
use serde_json::{Value, json};

const RULES: &str = r"
  - when: {prompt: good, results: 0}
    reply: {calls: [{tool: echo, arguments: {text: hi}}]}
  - reply: {text: done}
";

fn suite(server: &[&str]) -> SuiteFixture {
    let suite = SuiteFixture::new(RULES, server);
    let assertions = json!({"toolsUsed": [{"server": "fixture", "tool": "echo"}]});
    suite.eval(&json!({}), &json!({"assertions": assertions}));
    suite.task("good", &json!({}));
    suite
}

fn said(suite: &SuiteFixture, words: &[&str]) -> (Option<i32>, String) {
    let mut command = Command::new(proctor_e2e::proctor());
    let done = command.args(words).current_dir(suite.folder()).output();
    let done = done.unwrap();
    (done.status.code(), String::from_utf8(done.stdout).unwrap())
}

#[test]
fn runs_are_kept_out_of_the_repository_unless_somebody_decided() {
    let suite = suite(&[]);
    let check = |text: &str| {
        let (code, said) = said(&suite, &["check", "eval.yaml"]);
        assert_eq!(code, Some(0), "{said}");
        let ignore = std::fs::read_to_string(suite.path(".proctor/.gitignore"));
        assert_eq!(ignore.unwrap(), text);
    };
    check("*\n");
    suite.write(".proctor/.gitignore", "runs\n");
    check("runs\n");
    std::fs::remove_dir_all(suite.path(".proctor/runs")).unwrap();
    check("runs\n");
}

#[test]
fn a_record_is_shown_in_part_or_whole() {
    let suite = suite(&["--mode", "banner", "--mode", "big-result=9000"]);
    let (code, shown) = said(&suite, &["check", "eval.yaml", "--record", "run"]);
    assert_eq!(code, Some(0), "{shown}");
    assert!(shown.contains("fixture: 1× noise, such as: "), "{shown}");
    let view = |words: &[&str]| {
        said(
            &suite,
            &[&["result", "view", "run", "--raw"], words].concat(),
        )
    };
    let (_, short) = view(&[]);
    assert!(short.contains("1 case, 1 agent\n"), "{short}");
    assert!(short.contains("check toolsUsed passed\n"), "{short}");
    assert!(short.contains("more bytes; show them with --full)"));
    let (_, full) = view(&["--full"]);
    assert!(!full.contains("--full") && full.len() > short.len() + 4000);
    let (_, findings) = view(&["--trial", "good", "--findings"]);
    let lines: Vec<&str> = findings.lines().collect();
    assert_eq!(lines.len(), 2, "{findings}");
    assert!(lines[1].contains("finding noise: "), "{findings}");
    assert_eq!(view(&["--trial", "no-such-trial"]).0, Some(4));
}

#[test]
fn an_event_of_a_newer_version_is_shown_as_such_and_skipped() {
    let suite = suite(&[]);
    let (code, shown) = said(
        &suite,
        &["check", "eval.yaml", "--record", "run", "-n", "2"],
    );
    assert_eq!(code, Some(0), "{shown}");
    let edit = |name: &str, from: &str, to: &str| {
        let path = suite.path(name);
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.contains(from), "{text}");
        std::fs::write(path, text.replacen(from, to, 1)).unwrap();
    };
    let trials = std::fs::read_dir(suite.path("run/trials")).unwrap();
    let names = trials.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names.collect();
    names.sort();
    let first = format!("run/trials/{}", names[0]);
    let phase = r#"{"phaseStarted":{"phase":"setup"}}"#;
    let paused = r#"{"trialPaused":{"for":1.50,"why":"\u001b[31m"}}"#;
    edit(&first, phase, paused);
    edit("run/run.jsonl", "\"serverSeen\"", "\"serverHeard\"");
    let (code, shown) = said(&suite, &["result", "view", "run", "--raw"]);
    assert_eq!(code, Some(0), "{shown}");
    assert!(
        shown.contains("unknown event trialPaused of a newer Proctor version: {\"for\":1.50,"),
        "{shown}"
    );
    assert!(shown.contains("unknown event serverHeard"), "{shown}");
    let (_, json) = said(&suite, &["result", "view", "run", "-o", "json"]);
    assert!(json.contains(paused), "{json}");
    // Summed up, resumed (nothing is left to run) and replayed, it is not in the way.
    let (code, shown) = said(&suite, &["check", "--resume", "run"]);
    assert_eq!(code, Some(0), "{shown}");
    assert!(shown.contains("skipped 2 events"), "{shown}");
    let (code, shown) = said(&suite, &["check", "--replay", "run", "--record", "again"]);
    assert_eq!(code, Some(0), "{shown}");
    // A newer Proctor may also have other words for known events, and only it resumes its runs.
    let version = format!("\"proctor\":\"{}\"", env!("CARGO_PKG_VERSION"));
    edit("run/run.jsonl", &version, "\"proctor\":\"99.1.0\"");
    edit(&first, "\"phase\":\"serve\"", "\"phase\":\"hover\"");
    let (code, shown) = said(&suite, &["result", "view", "run", "--raw"]);
    assert_eq!(code, Some(0), "{shown}");
    assert!(shown.contains("unknown event phaseStarted"), "{shown}");
    assert_eq!(said(&suite, &["check", "--resume", "run"]).0, Some(2));
    let (code, _) = said(&suite, &["check", "--replay", "run", "--record", "third"]);
    assert_eq!(code, Some(0));
}

#[test]
fn a_run_records_its_commit_and_its_job_unless_it_is_told_not_to() {
    const COMMIT: &str = "0123456789abcdef0123456789abcdef01234567";
    let suite = suite(&[]);
    suite.write(".git/HEAD", "ref: refs/heads/topic\n");
    suite.write(".git/refs/heads/topic", &format!("{COMMIT}\n"));
    let context = |words: &[&str], folder: &str| {
        let mut command = Command::new(proctor_e2e::proctor());
        command
            .args(["check", "eval.yaml", "--record", folder])
            .args(words);
        // Whatever runs this test is another job.
        for name in [
            "GITHUB_ACTIONS",
            "GITLAB_CI",
            "JENKINS_URL",
            "TF_BUILD",
            "BUILDKITE",
        ] {
            command.env_remove(name);
        }
        command.env("CIRCLECI", "true");
        command.env("CIRCLE_BUILD_URL", "https://me:hunter2@ci.test/1");
        let done = command.current_dir(suite.folder()).output().unwrap();
        assert_eq!(done.status.code(), Some(0), "{done:?}");
        let lines = std::fs::read_to_string(suite.path(folder).join("run.jsonl")).unwrap();
        let first: Value = serde_json::from_str(lines.lines().next().unwrap()).unwrap();
        first["event"]["runStarted"].get("context").cloned()
    };
    let expected = json!({
        "commit": COMMIT,
        "branch": "topic",
        "dirty": null,
        "pullRequest": null,
        "jobUrl": "https://me:[redacted:password]@ci.test/1",
    });
    assert_eq!(context(&[], "with"), Some(expected));
    assert_eq!(context(&["--no-context"], "without"), None);
}
