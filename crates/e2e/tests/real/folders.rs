//! Real servers that keep state in files: with a folder for every trial, trials at the same time come to
//! the same verdicts as one after another.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::time::Duration;

use proctor_e2e::session::Session;
use proctor_e2e::suite::SuiteFixture;
use serde_json::{Value, json};

use crate::disk::{UNPRIVILEGED, skipped, works};
use crate::servers;

const RULES: &str = r"
  - when: {prompt: remember, results: 0}
    reply: {calls: [{tool: create_entities, arguments: {entities: [{name: Ada, entityType: person, observations: []}]}}]}
  - when: {prompt: count, results: 0}
    reply: {calls: [{tool: edit_file, arguments: {path: counter.txt, edits: [{oldText: zero, newText: one}]}}]}
  - when: {prompt: 'commit (\S+)', results: 0}
    reply: {calls: [{tool: git_add, arguments: {repo_path: '{match.1}', files: [story.txt]}}]}
  - when: {prompt: 'commit (\S+)', results: 1}
    reply: {calls: [{tool: git_commit, arguments: {repo_path: '{match.1}', message: Begin}}]}
  - when: {prompt: store, results: 0}
    reply: {calls: [{tool: create_table, arguments: {query: 'CREATE TABLE notes (text TEXT)'}}]}
  - when: {prompt: store, results: 1}
    reply: {calls: [{tool: write_query, arguments: {query: INSERT INTO notes VALUES ('rain')}}]}
  - reply: {text: done}
";

/// Four servers, each with its state in the folder of the trial, and no shell around any of them.
fn four_servers() -> Value {
    let sqlite = servers::installed("sdks/sqlite/bin/mcp-server-sqlite");
    let packages = PathBuf::from(&sqlite)
        .ancestors()
        .nth(2)
        .unwrap()
        .to_owned();
    json!({
        "memory": {
            "command": servers::node("mcp-server-memory"),
            "env": {"MEMORY_FILE_PATH": "{trial.dir}/memory.jsonl"},
        },
        "files": {"command": servers::node("mcp-server-filesystem"), "args": ["{trial.dir}"]},
        "git": {"command": servers::python("mcp-server-git"), "cwd": "{trial.dir}"},
        "sqlite": {
            "command": servers::installed("evals/python/bin/python"),
            "args": [sqlite, "--db-path", "{trial.dir}/notes.db"],
            "env": {"PYTHONPATH": packages},
        },
    })
}

fn suite() -> SuiteFixture {
    let suite = SuiteFixture::on(RULES, &four_servers());
    suite.write("fixtures/counter.txt", "zero\n");
    let graph = |name: &str| {
        json!([{"memory.read_graph": {"expect": {"content": {"fields": [
            {"path": "entities[0].name", "equals": name},
            {"path": "entities[1]", "exists": false},
        ]}}}}])
    };
    let of = |server: &str| json!([{"mcpServer": server}]);
    suite.task(
        "remember",
        &json!({"requires": of("memory"), "verify": graph("Ada")}),
    );
    // It fails, with one job and with many.
    let other = json!({"requires": of("memory"), "verify": graph("Grace")});
    suite.task("remember-another", &other);
    let script = |text: &str| json!([{"script": {"inline": text}}]);
    suite.task(
        "count",
        &json!({
            "workspace": "../fixtures",
            "verify": script(r#"test "$(cat "$PROCTOR_TRIAL_DIR/counter.txt")" = one"#),
        }),
    );
    suite.task(
        "commit",
        &json!({
            "prompt": {"inline": "commit {trial.dir}/story"},
            "setup": script(
                r#"set -e
                git init --quiet "$PROCTOR_TRIAL_DIR/story"
                cd "$PROCTOR_TRIAL_DIR/story"
                git config user.name Ada
                git config user.email ada@example.com
                echo rain > story.txt"#,
            ),
            "verify": script(r#"test "$(git -C "$PROCTOR_TRIAL_DIR/story" rev-list --count HEAD)" = 1"#),
        }),
    );
    let query = json!({"query": "SELECT count(*) AS n FROM notes"});
    let one =
        json!({"args": query, "expect": {"isError": false, "content": {"match": "'n': 1\\b"}}});
    let verify = json!([{ "sqlite.read_query": one }]);
    suite.task(
        "store",
        &json!({"requires": of("sqlite"), "verify": verify}),
    );
    suite
}

/// The verdict of each trial, in the order of the plan.
fn verdicts(suite: &SuiteFixture, words: &[&str]) -> Vec<[String; 3]> {
    let temporary = suite.path("tmp");
    std::fs::create_dir_all(&temporary).unwrap();
    let session: Session = suite.check(&[words, &["-o", "json"]].concat());
    let seen = session
        .env("TMPDIR", temporary.to_str().unwrap())
        .within(Duration::from_mins(20))
        .run();
    let document: Value = serde_json::from_str(&seen.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}\n{}", seen.stdout, seen.stderr));
    let results = document["results"].as_array().unwrap();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let verdict = |result: &Value| {
        let own = &result["proctor"];
        // Only what failed is kept, and it is there.
        let folder = own["folder"].as_str();
        assert_eq!(folder.is_some(), own["outcome"] == "failed", "{own}");
        assert!(folder.is_none_or(|folder| PathBuf::from(folder).is_dir()));
        [&result["taskName"], &own["outcome"], &own["blame"]].map(text)
    };
    results.iter().map(verdict).collect()
}

#[test]
fn trials_at_the_same_time_come_to_the_same_verdicts() {
    let is_long = std::env::var("PROCTOR_EXTENDED").is_ok_and(|value| value == "1");
    let times = if is_long { "20" } else { "2" };
    let suite = suite();
    let alone = verdicts(&suite, &["-n", times, "--jobs", "1"]);
    let together = verdicts(&suite, &["-n", times, "--jobs", "8"]);
    assert_eq!(alone, together);
    for [task, outcome, blame] in &alone {
        let expected = match task.as_str() {
            "remember-another" => ("failed", "agent"),
            _ => ("passed", ""),
        };
        assert_eq!((outcome.as_str(), blame.as_str()), expected, "{task}");
    }
    assert_eq!(alone.len(), 5 * times.parse::<usize>().unwrap());
}

/// A suite on the fixture server, with one case that has these parts.
fn small_suite(spec: &Value) -> SuiteFixture {
    let suite = SuiteFixture::new("  - reply: {text: done}\n", &[]);
    let mut spec = spec.clone();
    spec["verify"] = json!([{"script": {"inline": "true"}}]);
    suite.task("first", &json!({"verify": spec["verify"]}));
    suite.task("second", &spec);
    suite
}

#[test]
fn a_full_disk_below_the_trial_is_an_error_of_that_trial() {
    let namespace = ["unshare", "--mount", "--map-root-user"];
    if let Err(reason) = works(&namespace, &["true"]) {
        skipped("a full disk", &reason);
        return;
    }
    let suite = small_suite(&json!({"workspace": "../fixtures"}));
    suite.write("fixtures/large", &"x".repeat(200_000));
    let disk = suite.path("disk");
    fs::create_dir(&disk).unwrap();
    let script = r#"mount -t tmpfs -o size=64k tmpfs "$0" || exit 99
        TMPDIR="$0" "$@"; code=$?
        test -z "$(ls "$0")" || exit 98
        exit $code"#;
    let wrapper = ["sh", "-c", script, disk.to_str().unwrap()];
    let seen = suite
        .check(&["-o", "json", "--keep", "none"])
        .under(&[&namespace[..], &wrapper].concat())
        .run();
    if seen.code == Some(99) {
        skipped("a full disk", &seen.stderr);
        return;
    }
    assert_eq!(seen.code, Some(3), "{}{}", seen.stdout, seen.stderr);
    let document: Value = serde_json::from_str(&seen.stdout).unwrap();
    let own = |at: usize| document["results"][at]["proctor"].clone();
    assert_eq!(own(0)["outcome"], "passed");
    assert_eq!(own(1)["outcome"], "errored");
    assert_eq!(own(1)["blame"], "infra");
    let reason = own(1)["reason"].as_str().unwrap().to_owned();
    assert!(reason.contains("No space left on device"), "{reason}");
}

#[test]
fn what_a_trial_made_unreadable_is_removed_too() {
    let wrapper = if rustix::process::geteuid().is_root() {
        UNPRIVILEGED
    } else {
        &[]
    };
    if let Err(reason) = works(wrapper, &["true"]) {
        skipped("another user", &reason);
        return;
    }
    let close = r#"cd "$PROCTOR_TRIAL_DIR" && mkdir -p a/b/c && touch a/b/c/d && chmod 0 a/b/c/d a/b/c && chmod 555 a/b a"#;
    let suite = small_suite(&json!({"setup": [{"script": {"inline": close}}]}));
    for name in ["tmp", "out"] {
        fs::create_dir(suite.path(name)).unwrap();
        fs::set_permissions(suite.path(name), Permissions::from_mode(0o777)).unwrap();
    }
    fs::set_permissions(suite.folder(), Permissions::from_mode(0o755)).unwrap();
    let seen = suite
        .check(&[])
        .env("TMPDIR", suite.path("tmp").to_str().unwrap())
        .env("HOME", suite.path("out").to_str().unwrap())
        .under(wrapper)
        .record_in(&suite.path("out/run"))
        .run();
    assert_eq!(seen.code, Some(0), "{}{}", seen.stdout, seen.stderr);
    assert_eq!(fs::read_dir(suite.path("tmp")).unwrap().count(), 0);
}
