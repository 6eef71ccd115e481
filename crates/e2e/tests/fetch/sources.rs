//! Sources: fetched at a reference, pinned by commit, used without the network, and whole or not there.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::repository::{Repository, Stage, refused, said, task};

fn released(prompt: &str) -> (Repository, Stage, String) {
    let upstream = Repository::new();
    upstream.task(prompt);
    let commit = upstream.release();
    let stage = Stage::at(&upstream.path().display().to_string());
    (upstream, stage, commit)
}

#[test]
fn a_tag_that_moves_changes_nothing_until_the_source_is_updated() {
    let (upstream, stage, old) = released("good");
    let seen = stage.check(&["--yes"]).run();
    assert_eq!(seen.code, Some(0), "{}", seen.stderr);
    let short = &old[..12];
    let pinned = format!("source `shared`: v1 is {short}, now pinned in `proctor.lock`");
    assert!(seen.stderr.contains(&pinned), "{}", seen.stderr);
    let lock = stage.lock();
    assert!(lock.contains(&format!("commit: \"{old}\"")), "{lock}");
    let record = fs::read_to_string(seen.record.join("run.jsonl")).unwrap();
    let source = format!(r#""ref":"v1","commit":"{old}""#);
    assert!(record.contains(&source), "{record}");

    upstream.task("bad");
    let new = upstream.release();
    let seen = stage.check(&[]).run();
    assert_eq!(seen.code, Some(0), "{}", seen.stderr);
    assert_eq!(stage.lock(), lock);

    let (code, text) = said(&stage.proctor(&["sources", "update", "eval.yaml"]));
    let moved = format!("source `shared`: v1 is {short} → {}", &new[..12]);
    assert_eq!((code, text.trim()), (Some(0), &*moved));
    // Without the repository, and without git.
    drop(upstream);
    let seen = stage.check(&["--locked"]).env("PATH", "/nowhere").run();
    assert_eq!(seen.code, Some(1), "{}", seen.stderr);
    let (code, text) = said(&stage.proctor(&["sources", "list", "eval.yaml", "-o", "json"]));
    let listed: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(code, Some(0));
    assert_eq!(listed["sources"][0]["commit"], new);
    assert_eq!(listed["sources"][0]["state"], "cached");
}

#[test]
fn without_consent_nothing_is_fetched() {
    let (_upstream, stage, _) = released("good");
    let seen = stage.check(&[]).run();
    assert_eq!(seen.code, Some(2), "{}", seen.stderr);
    let hint = "run `proctor sources fetch ";
    assert!(seen.stderr.contains(hint), "{}", seen.stderr);
    assert!(
        seen.stderr
            .contains("Their scripts will run on this machine"),
        "{}",
        seen.stderr
    );
    assert_eq!((stage.lock(), stage.cached()), (String::new(), Vec::new()));
    // The command itself is consent, and the lock file keeps it.
    assert_eq!(
        said(&stage.proctor(&["sources", "fetch", "eval.yaml"])).0,
        Some(0)
    );
    assert_eq!(stage.check(&[]).run().code, Some(0));
    let (code, text) = said(&stage.proctor(&["sources", "fetch", "eval.yaml"]));
    assert_eq!(
        (code, text.trim()),
        (Some(0), "nothing to fetch: every source is in the cache")
    );
}

#[test]
fn locked_says_what_is_missing_and_changes_nothing() {
    let (_upstream, stage, commit) = released("good");
    let seen = stage.check(&["--locked", "--yes"]).run();
    assert_eq!(seen.code, Some(2), "{}", seen.stderr);
    let missing =
        "`--locked` fetches nothing, and the source `shared` is not pinned in `proctor.lock`";
    assert!(seen.stderr.contains(missing), "{}", seen.stderr);
    stage.proctor(&["sources", "fetch", "eval.yaml"]);
    let lock = stage.lock();
    let other = tempfile::tempdir().unwrap();
    let seen = stage
        .check(&["--locked"])
        .env("XDG_CACHE_HOME", other.path().to_str().unwrap());
    let seen = seen.run();
    assert_eq!(seen.code, Some(2), "{}", seen.stderr);
    let missing = format!("is not in the cache at its pinned commit {}", &commit[..12]);
    assert!(seen.stderr.contains(&missing), "{}", seen.stderr);
    assert_eq!(stage.lock(), lock);
    // Without the flag it is fetched again, as pinned and without a question.
    let seen = stage
        .check(&[])
        .env("XDG_CACHE_HOME", other.path().to_str().unwrap())
        .run();
    assert_eq!(seen.code, Some(0), "{}", seen.stderr);
    assert_eq!(stage.lock(), lock);
}

#[test]
fn a_pinned_commit_that_upstream_lost_is_an_error() {
    let (upstream, stage, old) = released("good");
    stage.proctor(&["sources", "fetch", "eval.yaml"]);
    fs::remove_dir_all(stage.cache.path().join("proctor")).unwrap();
    upstream.task("bad");
    upstream.git(&["add", "--all"]);
    upstream.git(&["commit", "--quiet", "--amend", "-m", "again"]);
    upstream.git(&["tag", "--force", "v1"]);
    upstream.git(&["reflog", "expire", "--expire=now", "--all"]);
    upstream.git(&["gc", "--quiet", "--prune=now"]);
    let seen = stage.check(&["--yes"]).run();
    assert_eq!(seen.code, Some(2), "{}", seen.stderr);
    let gone = format!(
        "the repository no longer has the pinned commit {}",
        &old[..12]
    );
    assert!(seen.stderr.contains(&gone), "{}", seen.stderr);
    assert_eq!(stage.cached(), Vec::<String>::new());
}

#[test]
fn files_that_were_changed_in_the_cache_are_restored() {
    let (upstream, stage, commit) = released("bad");
    stage.proctor(&["sources", "fetch", "eval.yaml"]);
    drop(upstream);
    let tree = stage.tree(&commit);
    // What would pass, if it were used.
    fs::write(tree.join("tasks/task.yaml"), task("good")).unwrap();
    let (_, text) = said(&stage.proctor(&["sources", "list", "eval.yaml"]));
    assert!(text.contains("changed"), "{text}");
    let (_, text) = said(&stage.proctor(&["validate", "eval.yaml"]));
    assert!(
        text.contains("are not those of its pinned commit"),
        "{text}"
    );
    assert_eq!(stage.check(&["--locked"]).run().code, Some(1));
    fs::write(tree.join("tasks/other.yaml"), task("good")).unwrap();
    let seen = stage.check(&[]).run();
    assert_eq!(seen.code, Some(1), "{}", seen.stderr);
    assert!(!tree.join("tasks/other.yaml").exists());
}

#[test]
fn files_that_another_run_uses_are_not_replaced() {
    let (_upstream, stage, commit) = released("good");
    stage.proctor(&["sources", "fetch", "eval.yaml"]);
    let rules =
        "  - when: {results: 0}\n    reply: {calls: [{tool: sleep, arguments: {ms: 600000}}]}\n";
    stage
        .suite
        .write("model.yaml", &format!("kind: Script\nrules:\n{rules}"));
    let first = stage.check(&[]).start();
    first.wait_for("tools/call");
    let own = stage.tree(&commit).join("own");
    fs::write(&own, "of the first run").unwrap();
    let second = stage.check(&["--locked"]).run();
    assert_eq!(second.code, Some(2), "{}", second.stderr);
    let reason = "another run uses its files, which were changed";
    assert!(second.stderr.contains(reason), "{}", second.stderr);
    assert!(own.exists());
    first.signal(Signal::INT);
    assert_eq!(first.finish().code, Some(130));
}

#[test]
fn two_processes_fetch_at_once() {
    let (_upstream, stage, commit) = released("good");
    let words = ["sources", "fetch", "eval.yaml"];
    let mut processes: Vec<_> = (0..4)
        .map(|_| stage.command(&words).spawn().unwrap())
        .collect();
    for process in &mut processes {
        assert!(process.wait().unwrap().success());
    }
    assert_eq!(stage.cached(), [commit]);
    assert_eq!(stage.check(&["--locked"]).run().code, Some(0));
}

#[test]
fn validate_and_list_use_no_network() {
    let folder = tempfile::tempdir().unwrap();
    let (script, mark) = stuck(folder.path());
    let stage = Stage::at("ssh://host.test/shared.git");
    for command in ["validate", "list"] {
        let output = stage
            .command(&[command, "eval.yaml"])
            .env("GIT_SSH_COMMAND", &script)
            .output();
        let (code, text) = said(&output.unwrap());
        assert_eq!(code, Some(0), "{text}");
        assert!(text.contains("is not pinned in `proctor.lock`"), "{text}");
    }
    assert!(!Path::new(&mark).exists());
}

/// A program in place of ssh that says that it was started, and never ends.
fn stuck(folder: &Path) -> (String, String) {
    let mark = folder.join("started");
    let script = format!("touch {}; sleep 600; :", mark.display());
    (format!("sh -c '{script}'"), mark.display().to_string())
}

#[test]
fn an_interrupted_fetch_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let (script, mark) = stuck(folder.path());
    let stage = Stage::at("ssh://host.test/shared.git");
    let running = stage
        .check(&["--yes"])
        .env("GIT_SSH_COMMAND", &script)
        .start();
    let deadline = Instant::now() + Duration::from_mins(3);
    while !Path::new(&mark).exists() {
        assert!(Instant::now() < deadline, "git was not started");
        std::thread::sleep(Duration::from_millis(5));
    }
    running.signal(Signal::INT);
    let seen = running.finish();
    assert_eq!(seen.code, Some(130), "{}", seen.stderr);
    assert_eq!((stage.lock(), stage.cached()), (String::new(), Vec::new()));
}

#[test]
fn what_git_can_not_do_is_said() {
    let (upstream, stage, _) = released("good");
    let fetch = ["sources", "fetch", "eval.yaml"];
    let repo = upstream.path().display().to_string();
    stage.eval(&json!({"repo": repo, "ref": "v9"}), &json!({}));
    refused(&stage.proctor(&fetch), "couldn't find remote ref v9");
    stage.eval(&json!({"repo": format!("{repo}/nowhere")}), &json!({}));
    refused(
        &stage.proctor(&fetch),
        "does not appear to be a git repository",
    );
    stage.eval(&json!({"repo": repo}), &json!({}));
    let without = stage
        .command(&fetch)
        .env("PATH", "/nowhere")
        .output()
        .unwrap();
    refused(&without, "program `git` was not found in PATH");
    refused(
        &stage.proctor(&["sources", "update", "eval.yaml", "--name", "other"]),
        "takes tasks from a source `other`; sources: `shared`",
    );
    assert_eq!((stage.lock(), stage.cached()), (String::new(), Vec::new()));
    // A branch, a commit, a relative path and a URL.
    let commit = upstream.git(&["rev-parse", "HEAD"]);
    for source in [
        json!({"repo": repo}),
        json!({"repo": repo, "ref": "main"}),
        json!({"repo": repo, "ref": commit}),
        json!({"repo": format!("file://{repo}"), "ref": "refs/tags/v1"}),
    ] {
        stage.eval(&source, &json!({}));
        let (code, text) = said(&stage.proctor(&fetch));
        assert_eq!(code, Some(0), "{source}: {text}");
    }
    assert_eq!(stage.cached(), [commit]);
    assert_eq!(stage.lock().matches("commit:").count(), 4);
}
