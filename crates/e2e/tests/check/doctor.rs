//! `proctor doctor`: what is required and missing fails it, above all a server of the suite that can't start.

use std::path::Path;
use std::process::{Command, Output};

use proctor_e2e::suite::{ECHO_IF_GOOD, SuiteFixture};
use serde_json::{Value, json};

/// `proctor doctor` with a shell and nothing else in PATH, so that no program of the machine changes the result.
fn doctor(folder: &Path, words: &[&str], env: &[(&str, &str)]) -> Output {
    doctor_of(&proctor_e2e::proctor(), folder, words, env)
}

fn doctor_of(proctor: &Path, folder: &Path, words: &[&str], env: &[(&str, &str)]) -> Output {
    let path = tempfile::tempdir().unwrap();
    for name in ["sh", "sleep"] {
        let folders = ["/bin", "/usr/bin"].map(Path::new);
        let found = folders
            .iter()
            .map(|it| it.join(name))
            .find(|it| it.exists());
        std::os::unix::fs::symlink(found.unwrap(), path.path().join(name)).unwrap();
    }
    let mut command = Command::new(proctor);
    command.arg("doctor").args(words).current_dir(folder);
    command.env_clear().env("PATH", path.path());
    command.envs(env.iter().copied());
    command.output().expect("it starts")
}

fn document(output: &Output) -> Value {
    let parsed = serde_json::from_slice(&output.stdout);
    parsed.unwrap_or_else(|error| panic!("{error}: {output:?}"))
}

/// The check of this name: its state, detail and remedy.
fn check<'a>(document: &'a Value, name: &str) -> (&'a str, &'a str, &'a str) {
    let mut checks = document["checks"].as_array().unwrap().iter();
    let found = checks.find(|check| check["name"] == name);
    let found = found.unwrap_or_else(|| panic!("no `{name}` in {document:#}"));
    let text = |key: &str| found[key].as_str().unwrap_or_default();
    (text("state"), text("detail"), text("remedy"))
}

fn suite_on(servers: &Value) -> SuiteFixture {
    let suite = SuiteFixture::on(ECHO_IF_GOOD, servers);
    suite.task("good", &json!({}));
    let used = json!({"toolsUsed": [{"server": "fixture", "tool": "echo"}]});
    suite.eval(&json!({}), &json!({"assertions": used}));
    suite
}

#[test]
fn a_machine_without_agents_and_keys_is_healthy_and_says_what_is_missing() {
    let folder = tempfile::tempdir().unwrap();
    let output = doctor(folder.path(), &["-o", "json"], &[]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let document = document(&output);
    assert_eq!(document["healthy"], true);
    assert_eq!(check(&document, "containment").0, "ok", "{document:#}");
    assert_eq!(check(&document, "records").0, "ok", "{document:#}");
    let (state, detail, remedy) = check(&document, "openai");
    assert_eq!((state, detail), ("missing", "no key is set"));
    assert!(remedy.contains("OPENAI_API_KEY"), "{remedy}");
    let (state, detail, remedy) = check(&document, "uvx");
    assert_eq!((state, remedy), ("missing", "pip install uv"), "{detail}");
    let (state, _, remedy) = check(&document, "claude-code");
    assert_eq!(state, "missing");
    assert!(remedy.contains("npm install"), "{remedy}");
    // It leaves nothing behind.
    assert_eq!(folder.path().read_dir().unwrap().count(), 0);
}

#[test]
fn a_key_is_named_and_never_shown() {
    let folder = tempfile::tempdir().unwrap();
    let key = [("ANTHROPIC_API_KEY", "sk-very-secret-key")];
    for format in ["json", "text"] {
        let output = doctor(folder.path(), &["-o", format], &key);
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(text.contains("ANTHROPIC_API_KEY is set"), "{text}");
        assert!(!text.contains("sk-very-secret-key"), "{text}");
    }
}

#[test]
fn with_reach_an_api_that_can_not_be_reached_fails() {
    let folder = tempfile::tempdir().unwrap();
    let server = proctor_e2e::Fixture::http(&[]);
    let answers = format!("http://{}", server.address());
    let there = [("OPENAI_API_KEY", "sk-x"), ("OPENAI_BASE_URL", &answers)];
    let output = doctor(folder.path(), &["--reach", "-o", "json"], &there);
    assert_eq!(check(&document(&output), "openai API").0, "ok");
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    // Port 1 is reserved, and refuses connections at once.
    let nowhere = [
        ("OPENAI_API_KEY", "sk-x"),
        ("OPENAI_BASE_URL", "http://127.0.0.1:1/v1"),
    ];
    let output = doctor(folder.path(), &["--reach", "-o", "json"], &nowhere);
    assert_eq!(check(&document(&output), "openai API").0, "failed");
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    // Without the flag, nothing is connected to.
    let output = doctor(folder.path(), &["-o", "json"], &nowhere);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
}

#[test]
fn a_suite_whose_server_answers_is_healthy() {
    let suite = suite_on(&json!({"fixture": {"command": proctor_e2e::fixture()}}));
    let output = doctor(suite.folder(), &["eval.yaml", "-o", "json"], &[]);
    let document = document(&output);
    let (state, detail, _) = check(&document, "server fixture");
    assert_eq!(state, "ok", "{document:#}");
    assert!(detail.contains("tools"), "{detail}");
    assert_eq!(output.status.code(), Some(0), "{document:#}");
}

#[test]
fn a_suite_whose_server_can_not_start_is_never_healthy() {
    let good = json!({"command": proctor_e2e::fixture()});
    let silent = json!({"command": "sh", "args": ["-c", "exit 3"]});
    let absent = json!({"command": "no-such-server"});
    for (bad, reason) in [(silent, "3"), (absent, "no-such-server")] {
        // A server that works does not hide one that does not, whichever comes first.
        let suite = suite_on(&json!({"fixture": good, "bad": bad, "last": good}));
        let output = doctor(suite.folder(), &["eval.yaml", "-o", "json"], &[]);
        let document = document(&output);
        assert_eq!(output.status.code(), Some(1), "{document:#}");
        assert_eq!(document["healthy"], false);
        let (state, detail, remedy) = check(&document, "server bad");
        assert_eq!(state, "failed");
        assert!(detail.contains(reason), "{detail}");
        assert!(remedy.contains("by hand"), "{remedy}");
        assert_eq!(check(&document, "server last").0, "ok", "{document:#}");
    }
}

#[test]
fn a_suite_that_can_not_be_loaded_or_has_no_agent_is_not_healthy() {
    let folder = tempfile::tempdir().unwrap();
    let output = doctor(folder.path(), &["nowhere.yaml", "-o", "json"], &[]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let unreadable = document(&output);
    let (state, _, remedy) = check(&unreadable, "nowhere.yaml");
    assert_eq!(
        (state, remedy),
        ("failed", "proctor validate 'nowhere.yaml'")
    );
    let suite = suite_on(&json!({"fixture": {"command": proctor_e2e::fixture()}}));
    // An MCP config is not a suite.
    let output = doctor(suite.folder(), &["mcp.json", "-o", "json"], &[]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let agent = json!({"agent": {"type": "builtin.llm-agent", "model": "openai:some-model"}});
    suite.eval(&agent, &json!({"assertions": {"maxToolCalls": 1}}));
    let output = doctor(suite.folder(), &["eval.yaml"], &[]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.contains("set OPENAI_API_KEY"), "{text}");
    assert!(text.ends_with("1 check failed.\n"), "{text}");
}

#[test]
fn a_folder_that_can_not_be_written_is_not_healthy() {
    // The folder of a process is writable for nobody, not even for root.
    let output = doctor(Path::new("/proc/self"), &["-o", "json"], &[]);
    let document = document(&output);
    assert_eq!(check(&document, "records").0, "failed", "{document:#}");
    assert_eq!(output.status.code(), Some(1));
}
