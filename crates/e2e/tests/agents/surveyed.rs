//! `proctor agents`, with real programs and with files.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::{Value, json};

use crate::cli::path_with;

/// `proctor agents` with this PATH, and no key but these.
fn agents(words: &[&str], path: &str, keys: &[(&str, &str)]) -> Output {
    let mut command = Command::new(proctor_e2e::proctor());
    command.arg("agents").args(words).env_clear();
    command.env("PATH", path).envs(keys.iter().copied());
    command.output().expect("it starts")
}

fn document(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).expect("it is JSON")
}

fn named<'a>(document: &'a Value, name: &str) -> &'a Value {
    let agents = document["agents"].as_array().expect("there is a list");
    let found = agents.iter().find(|agent| agent["name"] == name);
    found.expect("it is among them")
}

/// A program that prints this.
fn program(folder: &Path, name: &str, script: &str) {
    let path = folder.join(name);
    std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).expect("it can be written");
    let mode = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(&path, mode).expect("it can be made executable");
}

#[test]
fn claude_code_is_found_with_its_version_and_its_key_is_not_shown() {
    let path = path_with("claude-code");
    let keys = [("ANTHROPIC_API_KEY", "sk-very-secret")];
    let output = agents(&["-o", "json"], &path, &keys);
    assert_eq!(output.status.code(), Some(0));
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(!text.contains("sk-very-secret"), "{text}");
    let document = document(&output);
    let claude = named(&document, "claude-code");
    assert_eq!(claude["usable"], true, "{claude}");
    assert_eq!(claude["key"]["found"], "ANTHROPIC_API_KEY");
    let version = claude["program"]["version"].as_str().unwrap_or_default();
    assert!(version.contains("Claude Code"), "{version}");
    let codex = named(&document, "codex");
    assert_eq!(codex["usable"], false, "{codex}");
    assert_eq!(codex["program"]["install"], "npm install -g @openai/codex");
    assert_eq!(
        codex["key"]["wanted"],
        json!(["CODEX_API_KEY", "OPENAI_API_KEY"])
    );
}

#[test]
fn one_agent_can_be_asked_for_by_a_script() {
    let key = [("ANTHROPIC_API_KEY", "k")];
    let code = |agent: &str, keys: &[(&str, &str)]| {
        let words = ["--no-versions", "--agent", agent];
        agents(&words, "/usr/bin:/bin", keys).status.code()
    };
    assert_eq!(code("llm-agent=anthropic:claude-x", &key), Some(0));
    assert_eq!(code("llm-agent=anthropic:claude-x", &[]), Some(1));
    assert_eq!(code("codex", &key), Some(1));
    assert_eq!(code("builtin.claud-code", &key), Some(2));
}

#[test]
fn an_agent_file_is_looked_at() {
    let folder = tempfile::tempdir().unwrap();
    program(folder.path(), "claude", "echo; echo 9.8.7; echo more");
    let write = |name: &str, text: Value| {
        let path = folder.path().join(name);
        std::fs::write(&path, text.to_string()).unwrap();
        path.display().to_string()
    };
    let mine = write(
        "a=b.yaml",
        json!({"kind": "Agent", "metadata": {"name": "mine"},
            "builtin": {"type": "claude-code", "apiKey": "MY_KEY"}}),
    );
    let any = write(
        "any.yaml",
        json!({"kind": "Agent", "metadata": {"name": "any"}, "commands": {"runPrompt": "x {{ .Prompt }}", "getVersion": "echo 1.2"}}),
    );
    let path = format!("{}:/usr/bin:/bin", folder.path().display());
    let output = agents(&[&mine, &any, "-o", "json"], &path, &[]);
    assert_eq!(output.status.code(), Some(0));
    let document = document(&output);
    let found = named(&document, "mine");
    assert_eq!(found["program"]["version"], "9.8.7", "{found}");
    assert_eq!(found["key"]["wanted"], json!(["MY_KEY"]));
    assert_eq!(
        (&found["usable"], &found["dryRuns"]),
        (&json!(false), &json!(true))
    );
    let command = named(&document, "any");
    assert_eq!(
        (&command["usable"], &command["modelTap"]),
        (&json!(true), &json!(false))
    );
    assert_eq!(command["program"]["version"], "1.2");
    let shown = agents(&[&mine, &any], &path, &[("MY_KEY", "k")]);
    let text = String::from_utf8_lossy(&shown.stdout).into_owned();
    assert!(
        text.contains("ready  mine   claude 9.8.7  MY_KEY"),
        "{text}"
    );
    assert!(text.contains("don't work with `any`"), "{text}");
    let wrong = write("wrong.yaml", json!({"kind": "Eval"}));
    assert_eq!(agents(&[&wrong], &path, &[]).status.code(), Some(2));
}

#[test]
fn a_program_that_says_no_version_holds_nothing_up_and_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    program(folder.path(), "claude", "exit 1");
    let temporary = tempfile::tempdir().unwrap();
    let keys = [("TMPDIR", temporary.path().to_str().unwrap())];
    let path = format!("{}:/usr/bin:/bin", folder.path().display());
    let output = agents(&["-o", "json"], &path, &keys);
    let document = document(&output);
    let claude = named(&document, "claude-code");
    assert_eq!(claude["program"]["version"], Value::Null);
    assert_eq!(claude["usable"], false);
    assert_eq!(std::fs::read_dir(temporary.path()).unwrap().count(), 0);
}

/// The keys of every agent that Proctor knows.
const KEYS: [(&str, &str); 5] = [
    ("ANTHROPIC_API_KEY", "k"),
    ("OPENAI_API_KEY", "k"),
    ("GEMINI_API_KEY", "k"),
    ("COPILOT_PROVIDER_API_KEY", "k"),
    ("GOOSE_MODEL", "m"),
];

#[test]
fn a_program_that_crashes_hangs_or_prints_garbage_is_not_ready() {
    let folder = tempfile::tempdir().unwrap();
    let broken = [
        (
            "claude-code",
            "claude",
            "echo 1.2.3; echo no engine >&2; exit 3",
            "exited with code 3; the end of its stderr:\nno engine",
        ),
        ("codex", "codex", "kill -SEGV $$", "signal 11"),
        (
            "copilot",
            "copilot",
            "trap '' TERM; sleep 600",
            "timed out after 15s",
        ),
        (
            "gemini",
            "gemini",
            r"printf '\377\376\000 1.2.3'",
            "not text",
        ),
        (
            "opencode",
            "opencode",
            "echo 'Usage: opencode [OPTIONS]'",
            "printed no version",
        ),
        ("claude-acp", "claude-agent-acp", "true", "printed nothing"),
        ("codex-acp", "codex-acp", "yes", "timed out after 15s"),
    ];
    for (_, name, script, _) in broken {
        program(folder.path(), name, script);
    }
    program(folder.path(), "goose", "echo ' 1.50.0'");
    let path = format!("{}:/usr/bin:/bin", folder.path().display());
    let started = std::time::Instant::now();
    let output = agents(&["-o", "json"], &path, &KEYS);
    let took = started.elapsed();
    assert!(took < std::time::Duration::from_mins(3), "{took:?}");
    let document = document(&output);
    for (agent, _, _, part) in broken {
        let found = named(&document, agent);
        assert_eq!(
            (&found["usable"], &found["dryRuns"], &found["checked"]),
            (&json!(false), &json!(false), &json!(true)),
            "{found}"
        );
        let problem = found["problem"].as_str().unwrap_or_default();
        assert!(problem.contains(part), "{agent}: {problem}");
    }
    let goose = named(&document, "goose");
    assert_eq!(
        (&goose["usable"], &goose["checked"]),
        (&json!(true), &json!(true))
    );
    assert_eq!(goose["program"]["version"], "1.50.0");
    let left = crate::acp::processes_with(&folder.path().display().to_string());
    assert_eq!(left, []);
}

#[test]
fn what_a_broken_program_said_is_shown_and_makes_its_agent_unusable() {
    let folder = tempfile::tempdir().unwrap();
    program(folder.path(), "claude", "echo no engine >&2; exit 3");
    let path = format!("{}:/usr/bin:/bin", folder.path().display());
    let output = agents(&["--agent", "claude-code"], &path, &KEYS);
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    for part in [
        "broken  claude-code",
        "`claude --version` exited with code 3",
        "no engine",
        "0 of 1 agent",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    // Nothing is started then, so nothing is known to work.
    let output = agents(&["--agent", "claude-code", "--no-versions"], &path, &KEYS);
    assert_eq!(output.status.code(), Some(0));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.contains("unchecked  claude-code"), "{text}");
}

/// Agents from files have keys, and may print them.
fn check_secrets(text: &str) {
    for secret in ["31415926535", "sk-very-secret"] {
        assert!(!text.contains(secret), "{text}");
    }
}

#[test]
fn an_agent_from_a_file_is_greeted_and_has_the_variables_of_its_file() {
    let folder = tempfile::tempdir().unwrap();
    let fixture = proctor_e2e::program("fixture-agent").display().to_string();
    let needing =
        r#"test -n "$NEEDED" || { echo "NEEDED is not set" >&2; exit 1; }; exec "$0" "$@""#;
    let write = |name: &str, acp: Value, env: Value| {
        let path = folder.path().join(name);
        let agent = json!({"kind": "Agent", "metadata": {"name": name}, "acp": acp, "env": env});
        std::fs::write(&path, agent.to_string()).unwrap();
        path.display().to_string()
    };
    let shell = json!({"cmd": "sh", "args": ["-c", needing, &fixture]});
    let telling = json!({"cmd": "sh", "args": ["-c", "echo $TOKEN $OPENAI_API_KEY >&2; exit 1"]});
    let files = [
        write("given", shell.clone(), json!({"NEEDED": "{env.OF_USER}"})),
        write("lacking", shell.clone(), json!({})),
        write("unset", shell, json!({"NEEDED": "{env.NOT_SET}"})),
        write(
            "telling",
            telling,
            json!({"TOKEN": "tk-{env.OF_USER}-31415926535"}),
        ),
        write(
            "newer",
            json!({"cmd": fixture, "args": ["newer"]}),
            json!({}),
        ),
        write("deaf", json!({"cmd": fixture, "args": ["deaf"]}), json!({})),
    ];
    let mut words: Vec<&str> = files.iter().map(String::as_str).collect();
    words.extend(["-o", "json"]);
    let user = [
        ("OF_USER", "x"),
        ("NEEDED", "y"),
        ("OPENAI_API_KEY", "sk-very-secret"),
    ];
    let all = document(&agents(&words, "/usr/bin:/bin", &user));
    check_secrets(&all.to_string());
    let check = |all: &Value, name: &str, problem: Option<&str>| {
        let found = named(all, name);
        assert_eq!(found["usable"], problem.is_none(), "{found}");
        let told = found["problem"].as_str().unwrap_or_default();
        assert!(told.contains(problem.unwrap_or_default()), "{told}");
    };
    check(&all, "given", None);
    check(&all, "lacking", Some("NEEDED is not set"));
    check(&all, "lacking", Some("`--pass-env NAME`"));
    check(&all, "unset", Some("`NOT_SET`, which is not set"));
    check(&all, "telling", Some("exited with code 1"));
    check(&all, "newer", Some("version 2 of ACP"));
    check(&all, "deaf", Some("did not answer `initialize` within 15s"));
    let words = [files[1].as_str(), "--pass-env", "NEEDED", "-o", "json"];
    check(
        &document(&agents(&words, "/usr/bin:/bin", &user)),
        "lacking",
        None,
    );
}

#[test]
fn a_command_that_can_t_be_checked_is_not_called_ready() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("any.yaml");
    let write = |commands: Value| {
        let agent = json!({"kind": "Agent", "metadata": {"name": "any"}, "commands": commands});
        std::fs::write(&file, agent.to_string()).unwrap();
        let output = agents(&[file.to_str().unwrap()], "/usr/bin:/bin", &[]);
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let text = write(json!({"runPrompt": "x {{ .Prompt }}"}));
    for part in [
        "unchecked  any",
        "0 of 1 agent are ready, 1 unchecked",
        "`getVersion`",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let text = write(json!({"runPrompt": "x {{ .Prompt }}", "getVersion": "echo nightly"}));
    assert!(text.contains("ready  any    sh nightly"), "{text}");
    let text =
        write(json!({"runPrompt": "x {{ .Prompt }}", "getVersion": "no-such-program --version"}));
    assert!(text.contains("broken  any"), "{text}");
}
