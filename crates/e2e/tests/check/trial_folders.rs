//! The folder of a trial: its values in every file, what is in it at first, and what becomes of it.

use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use proctor_e2e::session::{Session, SessionOutcome};
use proctor_e2e::suite::SuiteFixture;
use proctor_record::event::EventKind;
use serde_json::{Value, json};

/// The model asks its server for the folder, and answers with it.
const TELLS_FOLDER: &str = r"
  - when: {results: 0}
    reply: {calls: [{tool: env, arguments: {name: PROCTOR_TRIAL_DIR}}]}
  - reply: {text: '{result}'}
";

/// A suite on a server that runs in the folder of the trial and leaves a log there.
fn suite(rules: &str) -> SuiteFixture {
    let server = json!({
        "command": proctor_e2e::fixture(),
        "args": ["--log", "wire.jsonl"],
        "cwd": "{trial.dir}",
        "env": {"OF_TRIAL": "{trial.id} {random.id} {random.port}"},
    });
    let suite = SuiteFixture::on(rules, &json!({ "fixture": server }));
    fs::create_dir(suite.path("tmp")).unwrap();
    suite
}

/// A session whose temporary folder is `tmp` in the folder of the suite.
fn check(suite: &SuiteFixture, words: &[&str]) -> Session {
    let temporary = suite.path("tmp");
    suite
        .check(words)
        .env("TMPDIR", temporary.to_str().unwrap())
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap();
    entries.map(|entry| entry.unwrap().path()).collect()
}

fn results(seen: &SessionOutcome) -> Vec<Value> {
    let document: Value = serde_json::from_str(&seen.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}\n{}", seen.stdout, seen.stderr));
    document["results"].as_array().unwrap().clone()
}

/// The kept folder that the report names.
fn kept(result: &Value) -> Option<PathBuf> {
    result["proctor"]["folder"].as_str().map(PathBuf::from)
}

/// A verify step.
fn script(text: &str) -> Value {
    step(
        text,
        &json!({"ANSWER": "{agent.output}", "DIR": "{trial.dir}", "ID": "{trial.id}"}),
    )
}

/// A setup step.
fn setup(text: &str) -> Value {
    step(text, &json!({"DIR": "{trial.dir}"}))
}

fn step(text: &str, env: &Value) -> Value {
    json!([{"script": {"inline": format!("set -e\n{text}"), "env": env}}])
}

#[test]
fn every_trial_has_a_folder_of_its_own_which_servers_steps_and_prompts_know() {
    let suite = suite(TELLS_FOLDER);
    let verify = script(
        r#"test "$ANSWER" = "$DIR"
        test "$PROCTOR_TRIAL_DIR" = "$DIR"
        test -n "$ID"
        test -s "$DIR/wire.jsonl"
        test "$(ls "$DIR" | wc -l)" = 2
        test "$(cat "$DIR/prompt")" = "$DIR""#,
    );
    let prepare = json!([{"script": {
        "inline": r#"mkdir "$PROCTOR_TRIAL_DIR/once"; rmdir "$PROCTOR_TRIAL_DIR/once"; printf %s "$PROMPT" > "$PROCTOR_TRIAL_DIR/prompt""#,
        "env": {"PROMPT": "{agent.prompt}"},
    }}]);
    let prompt = json!({"inline": "{trial.dir}"});
    suite.task(
        "one",
        &json!({"prompt": prompt, "setup": prepare, "verify": verify}),
    );
    let seen = check(&suite, &["-n", "4", "--jobs", "4", "-o", "json"]).run();
    assert_eq!(seen.code, Some(0), "{}", seen.stdout);
    let folders: BTreeSet<&str> = seen.events.iter().filter_map(folder_of).collect();
    assert_eq!(folders.len(), 4, "{folders:?}");
    // Those of the trials and of the preflight are gone.
    assert_eq!(entries(&suite.path("tmp")), [""; 0].map(PathBuf::from));
}

fn folder_of(event: &proctor_record::event::Event) -> Option<&str> {
    match &event.event {
        EventKind::TrialFolder(folder) => Some(&folder.path),
        _ => None,
    }
}

#[test]
fn an_agent_from_a_file_knows_the_folder() {
    let suite = suite("  - reply: {text: done}\n");
    let agent = json!({
        "kind": "Agent",
        "metadata": {"name": "shell"},
        "connects": "onUse",
        "env": {"OWN": "{trial.dir}/{trial.id}"},
        "commands": {"runPrompt": r#": "{{ .Prompt }}"; echo "$PROCTOR_TRIAL_DIR $OWN""#},
    });
    suite.write("agent.yaml", &agent.to_string());
    let config = json!({"agent": {"type": "file", "path": "agent.yaml"}});
    suite.eval(&config, &json!({}));
    let verify = script(r#"test "$ANSWER" = "$DIR $DIR/$ID""#);
    suite.task("one", &json!({ "verify": verify }));
    let seen = check(&suite, &["-n", "2", "--jobs", "2"]).run();
    assert_eq!(seen.code, Some(0), "{}{}", seen.stdout, seen.stderr);
    suite.write(
        "agent.yaml",
        &agent
            .to_string()
            .replace("$PROCTOR_TRIAL_DIR", "{trial.dir}"),
    );
    let refused = suite.proctor(&["check", "eval.yaml"]);
    let text = String::from_utf8_lossy(&refused.stderr);
    assert_eq!(refused.status.code(), Some(2), "{text}");
    assert!(text.contains("write `\"$PROCTOR_TRIAL_DIR\"`"), "{text}");
}

#[test]
fn folders_are_kept_as_the_user_wants() {
    let check = |words: &[&str], kept_ones: &[&str]| {
        let suite = suite("  - reply: {text: done}\n");
        suite.task("good", &json!({"verify": script("true")}));
        suite.task("bad", &json!({"verify": script("false")}));
        // Its folder stays empty, so there is nothing to keep.
        let nothing = script(r#"rm "$DIR/wire.jsonl"; false"#);
        suite.task("void", &json!({"verify": nothing}));
        let fill = setup(r#"touch "$DIR/file"; exit 3"#);
        suite.task("ugly", &json!({"setup": fill, "verify": script("true")}));
        let seen = self::check(&suite, &[words, &["-o", "json"]].concat()).run();
        let all = results(&seen);
        let named: BTreeSet<&str> = all
            .iter()
            .filter(|result| kept(result).is_some())
            .map(|result| result["taskName"].as_str().unwrap())
            .collect();
        assert_eq!(named, kept_ones.iter().copied().collect(), "{words:?}");
        for path in all.iter().filter_map(kept) {
            assert!(path.join("wire.jsonl").exists() || path.join("file").exists());
            assert!(path.starts_with(suite.path("tmp").canonicalize().unwrap()));
        }
        assert_eq!(entries(&suite.path("tmp")).len(), kept_ones.len());
        // A later run leaves them alone, and the text of the report names them.
        let record = seen.record.to_str().unwrap();
        let shown = suite.proctor(&["result", "show", record]);
        let text = String::from_utf8_lossy(&shown.stdout).into_owned();
        let shown = suite.proctor(&["result", "convert", record, "--to", "markdown"]);
        let markdown = String::from_utf8_lossy(&shown.stdout).into_owned();
        let again = self::check(&suite, &["--run", "good"]).run();
        assert_eq!(again.code, Some(0), "{}", again.stderr);
        for result in &all {
            let Some(path) = kept(result) else { continue };
            assert!(path.exists());
            let is_bad = result["proctor"]["outcome"] != "passed";
            let line = format!("folder kept: {}", path.display());
            assert_eq!(text.contains(&line), is_bad, "{text}");
            let line = format!("folder kept: `{}`", path.display());
            assert_eq!(markdown.contains(&line), is_bad, "{markdown}");
        }
    };
    check(&[], &["bad", "ugly"]);
    check(&["--keep", "all"], &["bad", "good", "ugly"]);
    check(&["--keep", "none"], &[]);
}

#[test]
fn a_workspace_is_copied_first_with_links_and_modes() {
    let suite = suite("  - reply: {text: done}\n");
    suite.write("fixtures/all/note.txt", "of the eval");
    suite.write("fixtures/own/note.txt", "of the task");
    suite.write("fixtures/own/deep/run.sh", "#!/bin/sh\nexit 0\n");
    let executable = fs::Permissions::from_mode(0o750);
    fs::set_permissions(suite.path("fixtures/own/deep/run.sh"), executable).unwrap();
    symlink("../note.txt", suite.path("fixtures/own/deep/link")).unwrap();
    suite.eval(&json!({"workspace": "fixtures/all"}), &json!({}));
    let of_eval = setup(r#"cd "$DIR"; test "$(cat note.txt)" = "of the eval"; echo x > note.txt"#);
    suite.task("eval", &json!({"setup": of_eval, "verify": script("true")}));
    let of_task = setup(
        r#"cd "$DIR"
        test "$(cat note.txt)" = "of the task"
        test "$(readlink deep/link)" = ../note.txt
        test "$(stat -c %a deep/run.sh)" = 750
        deep/run.sh
        echo changed > deep/link"#,
    );
    let spec = json!({"workspace": "../fixtures/own", "setup": of_task, "verify": script("true")});
    suite.task("task", &spec);
    let seen = check(&suite, &["-n", "3", "--jobs", "3"]).run();
    assert_eq!(seen.code, Some(0), "{}{}", seen.stdout, seen.stderr);
    let note = fs::read_to_string(suite.path("fixtures/own/note.txt")).unwrap();
    assert_eq!(note, "of the task");
}

#[test]
fn mistakes_are_errors_at_load_with_their_place() {
    let check = |change: &dyn Fn(&SuiteFixture), says: &[&str]| {
        let suite = suite("  - reply: {text: done}\n");
        suite.task("one", &json!({"verify": script("true")}));
        change(&suite);
        let seen = suite.proctor(&["check", "eval.yaml"]);
        let text = String::from_utf8_lossy(&seen.stderr);
        assert_eq!(seen.status.code(), Some(2), "{text}");
        for part in says {
            assert!(text.contains(part), "{part}: {text}");
        }
    };
    let shared = |suite: &SuiteFixture| suite.eval(&json!({"isolation": "run"}), &json!({}));
    check(
        &shared,
        &[
            "`{trial.dir}` differs by trial, but with `isolation: run` all trials share the server",
            "`{random.port}` differs by trial",
            "mcp.json:1:",
        ],
    );
    let misspelt = |suite: &SuiteFixture| {
        let server = json!({"command": "x", "args": ["{trial.dri}", "${A:-{trial.dir}}"]});
        let config = json!({"mcpServers": {"fixture": server}});
        suite.write("mcp.json", &config.to_string());
    };
    check(
        &misspelt,
        &[
            "unknown template `{trial.dri}`",
            "did you mean `dir`?",
            "the default of a variable can't contain a template",
        ],
    );
    let missing = |suite: &SuiteFixture| {
        suite.write("fixtures/note", "");
        let spec = json!({"workspace": "../fixturs", "verify": script("true")});
        suite.task("one", &spec);
    };
    check(&missing, &["is not a folder", "did you mean `fixtures`?"]);
}

/// The value of a variable in a server that a command starts.
fn told_by(output: &std::process::Output) -> PathBuf {
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{output:?}");
    PathBuf::from(text.lines().next().unwrap_or_default())
}

#[test]
fn commands_have_a_folder_too_and_remove_it() {
    let suite = suite("  - reply: {text: done}\n");
    let temporary = suite.path("tmp").canonicalize().unwrap();
    let run = |words: &[&str]| {
        let mut command = Command::new(proctor_e2e::proctor());
        let command = command.args(words).current_dir(suite.folder());
        command.env("TMPDIR", &temporary).output().unwrap()
    };
    let name = r#"{"name":"PROCTOR_TRIAL_DIR"}"#;
    let called = run(&["call", "env", "--args", name, "--config", "mcp.json"]);
    let dir = told_by(&called);
    assert!(dir.starts_with(&temporary), "{}", dir.display());
    assert!(!dir.exists());
    let of_trial = run(&[
        "call",
        "env",
        "--args",
        r#"{"name":"OF_TRIAL"}"#,
        "--config",
        "mcp.json",
    ]);
    let text = told_by(&of_trial).display().to_string();
    assert!(text.starts_with("env ") && !text.contains('{'), "{text}");
    for words in [
        &["tools", "--config", "mcp.json"][..],
        &["evals", "list", "--config", "mcp.json"],
        &["lint", "--config", "mcp.json"],
    ] {
        let done = run(words);
        let said = String::from_utf8_lossy(&done.stderr).into_owned();
        assert!(!said.contains("failed to start"), "{words:?}: {said}");
    }
    // A server that runs in a folder which is not there does not start, so each had one.
    assert_eq!(entries(&temporary), [""; 0].map(PathBuf::from));
    assert!(!suite.path("wire.jsonl").exists());
    assert!(!suite.path("{trial.dir}").exists());
}

#[test]
fn a_recorded_session_has_a_folder() {
    let temporary = tempfile::tempdir().unwrap();
    let mut child = Command::new(proctor_e2e::proctor())
        .args(["record", "--out"])
        .arg(temporary.path().join("run"))
        .arg("--")
        .arg(proctor_e2e::fixture())
        .env("TMPDIR", temporary.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"},
    }});
    let call = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {
        "name": "env", "arguments": {"name": "PROCTOR_TRIAL_DIR"},
    }});
    let mut stdin = child.stdin.take().unwrap();
    writeln!(stdin, "{hello}\n{call}").unwrap();
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let place = temporary.path().canonicalize().unwrap();
    assert!(text.contains(&place.display().to_string()), "{text}");
    assert_eq!(entries(temporary.path()), [temporary.path().join("run")]);
}

#[test]
fn another_attempt_has_another_folder() {
    let suite = suite("  - reply: {text: done}\n");
    let once = setup(r#"test ! -e "$DIR/mark" || exit 9; touch "$DIR/mark"; exit 7"#);
    suite.task("one", &json!({"setup": once, "verify": script("true")}));
    let first = check(&suite, &[]).run();
    assert!(first.stdout.contains("code 7"), "{}", first.stdout);
    let record = first.record.to_str().unwrap();
    let again = suite.proctor(&["check", "--retry-errors", record]);
    let text = String::from_utf8_lossy(&again.stdout);
    assert!(
        text.contains("code 7") && !text.contains("code 9"),
        "{text}"
    );
    assert!(text.contains("folder kept: "), "{text}");
    let kept = text.split("folder kept: ").nth(1).unwrap();
    fs::remove_dir_all(Path::new(kept.lines().next().unwrap()).parent().unwrap()).unwrap();
}

/// The model names the folder in its calls and its answer, as the record does.
#[test]
fn a_replay_is_about_the_folder_of_its_own_trial() {
    let rules = r"
  - when: {prompt: 'into (\S+) now', results: 0}
    reply: {calls: [{tool: echo, arguments: {text: '{match.1}/note'}}]}
  - reply: {text: '{result}'}
";
    let suite = suite(rules);
    let verify = script(r#"test "$ANSWER" = "$DIR/note""#);
    let prompt = json!({"inline": "Write into {trial.dir} now."});
    suite.task("one", &json!({"prompt": prompt, "verify": verify}));
    let first = check(&suite, &[]).run();
    assert_eq!(first.code, Some(0), "{}", first.stdout);
    let record = first.record.to_str().unwrap();
    let again = check(&suite, &["--replay", record, "--replay-strict"]).run();
    assert_eq!(again.code, Some(0), "{}{}", again.stdout, again.stderr);
    let folder = |seen: &SessionOutcome| seen.events.iter().find_map(folder_of).unwrap().to_owned();
    assert_ne!(folder(&first), folder(&again));
    let names_old = |event: &proctor_record::event::Event| {
        serde_json::to_string(event)
            .unwrap()
            .contains(&folder(&first))
    };
    assert!(!again.events.iter().any(names_old));
    // A regrade needs no folder.
    let regraded = suite.proctor(&["result", "regrade", record]);
    let said = String::from_utf8_lossy(&regraded.stderr);
    assert_eq!(regraded.status.code(), Some(0), "{said}");
}

/// The digest of a case has its templates, not the paths of one trial, and the content of its workspace.
#[test]
fn the_digest_of_a_case_covers_its_workspace_and_no_paths() {
    let suite = suite("  - reply: {text: done}\n");
    suite.write("fixtures/note", "a");
    let spec = json!({"workspace": "../fixtures", "prompt": {"inline": "{trial.dir}"}, "verify": script("true")});
    suite.task("one", &spec);
    let digest = || {
        let seen = check(&suite, &["-o", "json"]).run();
        assert_eq!(seen.code, Some(0), "{}", seen.stderr);
        let run = fs::read_to_string(seen.record.join("run.jsonl")).unwrap();
        let planned = run
            .lines()
            .find(|line| line.contains("runPlanned"))
            .unwrap();
        let planned: Value = serde_json::from_str(planned).unwrap();
        planned["event"]["runPlanned"]["cases"][0]["hash"].clone()
    };
    let first = digest();
    assert!(first.is_string());
    assert_eq!(digest(), first);
    suite.write("fixtures/note", "b");
    assert_ne!(digest(), first);
}
