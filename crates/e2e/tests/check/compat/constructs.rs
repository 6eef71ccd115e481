//! The constructs of public eval files, one folder each under `constructs/`. All load without an
//! error; those whose agents, judges and servers can be had here run too, and pass.
//!
//! `$AGENT` and `$EXTENSION` in their files stand for programs of these tests.

use std::path::{Path, PathBuf};

use proctor_e2e::suite::SuiteFixture;
use serde_json::json;

use super::validated;
use crate::COMMAND_AGENT;

/// Calls `echo` with its prompt, or with `hello`, and tells what came back.
const MODEL: &str = "  - when: {prompt: '^greet', results: 0}
    reply: {calls: [{tool: echo, arguments: {text: '{prompt}'}}]}
  - when: {results: 0}
    reply: {calls: [{tool: echo, arguments: {text: hello}}]}
  - reply: {text: 'it says {result}'}
";

const JUDGE: &str = "  - reply: {calls: [{tool: verdict, arguments: {reason: told, evidence: ['it says hello'], verdict: pass}}]}
";

/// How far a construct can be taken here.
#[derive(Clone, Copy, PartialEq)]
enum Reach {
    /// Its agent is its own.
    Runs,
    /// Its agent is one that costs money, so a script stands in for it.
    RunsOnScript,
    /// It needs what is not here.
    Loads,
}

const CONSTRUCTS: [(&str, Reach); 19] = [
    ("agent-acp", Reach::Loads),
    ("agent-builtin-file", Reach::RunsOnScript),
    ("agent-if", Reach::Runs),
    ("agent-openai-bare-model", Reach::RunsOnScript),
    ("agent-pipes", Reach::Runs),
    ("agent-printf-q", Reach::Runs),
    ("agent-trim-markers", Reach::Runs),
    ("assertions", Reach::RunsOnScript),
    ("extension", Reach::RunsOnScript),
    ("http-steps", Reach::Loads),
    ("judge-ref", Reach::RunsOnScript),
    ("labels-and-globs", Reach::RunsOnScript),
    ("limits", Reach::RunsOnScript),
    ("server-from-environment", Reach::RunsOnScript),
    ("skills", Reach::Loads),
    ("task-sources", Reach::Loads),
    ("task-v1alpha1", Reach::RunsOnScript),
    ("task-v1alpha1-judge", Reach::RunsOnScript),
    ("templates-in-prompts", Reach::RunsOnScript),
];

fn constructs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/check/compat/constructs")
}

/// A copy of a construct's folder, with the programs that it names.
fn copied(name: &str) -> SuiteFixture {
    let suite = SuiteFixture::on(MODEL, &json!({}));
    suite.write("judge.yaml", &format!("kind: Script\nrules:\n{JUDGE}"));
    suite.write("agent.py", COMMAND_AGENT);
    let fixture = proctor_e2e::fixture();
    let servers = json!({"mcpServers": {"notes": {"command": fixture}}});
    suite.write("mcp-config.yaml", &servers.to_string());
    let extension = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/steps/extension.py");
    let root = constructs().join(name);
    let mut folders = vec![root.clone()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let text = std::fs::read_to_string(&path).unwrap();
            let text = text.replace("$AGENT", &suite.path("agent.py").display().to_string());
            let text = text.replace("$EXTENSION", &extension.display().to_string());
            let inside = path.strip_prefix(&root).unwrap();
            suite.write(&inside.display().to_string(), &text);
        }
    }
    suite
}

/// The environment of a construct.
fn environment(name: &str) -> Vec<(&'static str, String)> {
    let mut all = vec![
        ("PLACE", "home".to_owned()),
        ("PYTHONDONTWRITEBYTECODE", "1".to_owned()),
    ];
    if name == "server-from-environment" {
        let command = proctor_e2e::fixture().display().to_string();
        all.push(("MCP_COMMAND", command));
        all.push(("MCP_URL", "http://127.0.0.1:1/ignored".to_owned()));
        all.push(("MCP_SERVER_NAME", "notes".to_owned()));
    }
    all
}

#[test]
fn every_construct_of_public_suites_has_a_folder_here() {
    let folders = std::fs::read_dir(constructs()).unwrap();
    let mut names: Vec<String> = folders
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert_eq!(names, CONSTRUCTS.map(|(name, _)| name));
}

#[test]
fn constructs_of_public_suites_load() {
    for (name, _) in CONSTRUCTS {
        let suite = copied(name);
        let eval = suite.path("eval.yaml").display().to_string();
        let env = environment(name);
        let env: Vec<(&str, &str)> = env.iter().map(|(k, v)| (*k, v.as_str())).collect();
        let (code, told) = validated(&eval, &env);
        assert_eq!(code, Some(0), "{name}: {told}");
    }
}

#[test]
fn constructs_of_public_suites_run() {
    for (name, reach) in CONSTRUCTS {
        let suite = copied(name);
        let model = format!("scripted:{}", suite.path("model.yaml").display());
        let judge = format!("scripted:{}", suite.path("judge.yaml").display());
        let words = match reach {
            Reach::Loads => continue,
            Reach::Runs => vec!["--judge", &judge],
            Reach::RunsOnScript => vec!["--model", &model, "--judge", &judge],
        };
        let mut session = suite.check(&words);
        for (key, value) in environment(name) {
            session = session.env(key, &value);
        }
        let seen = session.run();
        assert_eq!(
            seen.code,
            Some(0),
            "{name}: {}\n{}",
            seen.stdout,
            seen.stderr
        );
    }
}
