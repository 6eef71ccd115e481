//! Every trial of every example keeps its verdicts. Those of `examples/kubernetes` and
//! `examples/real-servers` are compared where they are run.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use proctor_e2e::regraded::assert_same;
use serde_json::{Value, json};

fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples")
}

/// Runs a command of `proctor`, which is in its own `PATH`, as the quickstart expects.
fn run(words: &[&str]) -> String {
    let folder = proctor_e2e::proctor().parent().unwrap().to_owned();
    let path = format!("{}:{}", folder.display(), std::env::var("PATH").unwrap());
    let output = Command::new(proctor_e2e::proctor())
        .args(words)
        .env("PATH", path)
        .output()
        .unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(
        matches!(output.status.code(), Some(0 | 1 | 3)),
        "{words:?}: {stderr}"
    );
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn the_quickstart_keeps_its_verdicts() {
    let folder = tempfile::tempdir().unwrap();
    for (suite, trials) in [("eval", 3), ("failing", 3)] {
        let eval = examples().join(format!("quickstart/{suite}.yaml"));
        let record = folder.path().join(suite);
        run(&[
            "check",
            eval.to_str().unwrap(),
            "-q",
            "-n",
            "2",
            "--keep",
            "none",
            "--record",
            record.to_str().unwrap(),
        ]);
        assert_eq!(assert_same(&record), 2 * trials);
    }
}

/// Their server is another one here, and a script stands in for the agent, so most trials fail.
#[test]
fn the_suites_with_matchers_keep_their_verdicts() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let script = "kind: Script\nrules:\n  \
        - when: {mustCall: verdict}\n    \
          reply: {calls: [{tool: verdict, arguments: {reason: no, evidence: [], verdict: unknown}}]}\n  \
        - when: {results: 0}\n    \
          reply: {calls: [{tool: files__echo, arguments: {text: hi}}]}\n  \
        - reply: {text: I am done with it.}\n";
    fs::write(at("model.yaml"), script).unwrap();
    let model = format!("scripted:{}", at("model.yaml"));
    let server = json!({"command": proctor_e2e::fixture(), "args": []});
    let config = json!({"mcpServers": {"files": server, "everything": server}});
    fs::write(at("mcp.json"), config.to_string()).unwrap();
    for (suite, least) in [("eval", 7), ("judge", 1)] {
        let eval = examples().join(format!("matchers/{suite}.yaml"));
        let record = at(suite);
        let words = ["check", eval.to_str().unwrap(), "-q", "--record", &record];
        let models = ["--model", &model, "--judge", &model];
        let config = at("mcp.json");
        let config = ["--mcp-config-file", &config, "-o", "json"];
        let shown = run(&[&words[..], &models, &config].concat());
        let shown: Value = serde_json::from_str(&shown).unwrap();
        let trials = shown["results"].as_array().unwrap().len();
        assert!(trials >= least);
        assert_eq!(assert_same(Path::new(&record)), trials);
    }
}
