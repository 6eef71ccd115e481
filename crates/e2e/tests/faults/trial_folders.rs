//! Workspaces that can't be copied, that are large, and folders of trials that are hostile at the end.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use proctor_e2e::session::{Session, SessionOutcome};
use proctor_e2e::suite::SuiteFixture;
use serde_json::{Value, json};

use super::MEMORY_KIB;

fn suite() -> SuiteFixture {
    let suite = SuiteFixture::new("  - reply: {text: done}\n", &[]);
    fs::create_dir(suite.path("tmp")).expect("it is there");
    suite
}

fn check(suite: &SuiteFixture, words: &[&str]) -> Session {
    let temporary = suite.path("tmp");
    suite
        .check(words)
        .env("TMPDIR", temporary.to_str().expect("it is there"))
}

fn script(text: &str) -> Value {
    json!([{"script": {"inline": text}}])
}

/// A check that passes.
fn works() -> Value {
    script(r#"test -d "$PROCTOR_TRIAL_DIR""#)
}

/// The folders that were left.
fn left(suite: &SuiteFixture) -> Vec<PathBuf> {
    let entries = fs::read_dir(suite.path("tmp")).expect("it is there");
    entries
        .map(|entry| entry.expect("it is there").path())
        .collect()
}

/// Checks that only the case `second` has no verdict, and why.
fn only_the_second_errored(seen: &SessionOutcome, says: &str) {
    let document: Value = serde_json::from_str(&seen.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}\n{}", seen.stdout, seen.stderr));
    assert_eq!(seen.code, Some(3), "{}", seen.stderr);
    for result in document["results"].as_array().expect("it is there") {
        let own = &result["proctor"];
        if result["taskName"] == "second" {
            assert_eq!(
                (&own["outcome"], &own["blame"]),
                (&json!("errored"), &json!("suite"))
            );
            assert!(
                own["reason"].as_str().expect("it is there").contains(says),
                "{own}"
            );
        } else {
            assert_eq!(own["outcome"], "passed", "{own}");
        }
    }
}

#[test]
fn a_link_out_of_the_workspace_is_refused_by_its_name() {
    let suite = suite();
    suite.write("outside/secret", "x");
    suite.write("fixtures/note", "x");
    symlink("../outside/secret", suite.path("fixtures/way-out")).unwrap();
    let spec = json!({"workspace": "../fixtures", "verify": works()});
    // Alone it keeps the servers from starting; among others it is one case without a verdict.
    suite.task("second", &spec);
    let seen = check(&suite, &[]).run();
    assert_eq!(seen.code, Some(3), "{}", seen.stdout);
    let says = "way-out` leads outside the workspace, to `../outside/secret`";
    assert!(seen.stderr.contains(says), "{}", seen.stderr);
    suite.task("first", &json!({"verify": works()}));
    let seen = check(&suite, &["-o", "json", "--keep", "none"]).run();
    only_the_second_errored(&seen, says);
    assert_eq!(left(&suite), Vec::<PathBuf>::new());
}

#[test]
fn a_workspace_of_ten_thousand_files_is_copied_for_each_trial() {
    let suite = suite();
    for folder in 0..100 {
        for file in 0..100 {
            let path = format!("fixtures/{folder}/{file}.txt");
            suite.write(&path, &path);
        }
    }
    suite.eval(&json!({"workspace": "fixtures"}), &json!({}));
    let count = r#"test "$(find "$PROCTOR_TRIAL_DIR" -type f | wc -l)" = 10000
        test "$(cat "$PROCTOR_TRIAL_DIR/99/99.txt")" = fixtures/99/99.txt"#;
    suite.task(
        "many",
        &json!({"verify": script(&format!("set -e\n{count}"))}),
    );
    let seen = check(&suite, &["-n", "2", "--jobs", "2"]).run();
    assert_eq!(seen.code, Some(0), "{}{}", seen.stdout, seen.stderr);
    assert!(seen.peak_kib < MEMORY_KIB, "{} KiB", seen.peak_kib);
    assert_eq!(left(&suite), Vec::<PathBuf>::new());
}

#[test]
fn a_workspace_that_is_deleted_meanwhile_is_the_suites_fault() {
    let suite = suite();
    suite.write("fixtures/note", "x");
    let delete = script("rm -r ../fixtures");
    suite.task("first", &json!({"verify": works(), "cleanup": delete}));
    let spec = json!({"workspace": "../fixtures", "verify": works()});
    suite.task("second", &spec);
    let seen = check(&suite, &["-o", "json"]).run();
    only_the_second_errored(&seen, "can't copy the workspace: `");
    assert_eq!(left(&suite), Vec::<PathBuf>::new());
}

#[test]
fn removal_follows_no_link() {
    let outside = tempfile::tempdir().unwrap();
    let note = |name: &str| outside.path().join(name).join("note");
    for name in ["a", "b"] {
        fs::create_dir(outside.path().join(name)).unwrap();
        fs::write(note(name), "x").unwrap();
    }
    let suite = suite();
    let at = |name: &str| outside.path().join(name).display().to_string();
    // One link in the folder, one in place of it.
    let inside = format!(
        r#"ln -s {} "$PROCTOR_TRIAL_DIR/link"; ln -s ../.. "$PROCTOR_TRIAL_DIR/up""#,
        at("a")
    );
    let instead = format!(
        r#"rm -r "$PROCTOR_TRIAL_DIR"; ln -s {} "$PROCTOR_TRIAL_DIR""#,
        at("b")
    );
    suite.task(
        "inside",
        &json!({"setup": script(&inside), "verify": works()}),
    );
    suite.task(
        "instead",
        &json!({"setup": script(&instead), "verify": works()}),
    );
    let seen = check(&suite, &["--keep", "none"]).run();
    assert_eq!(seen.code, Some(0), "{}{}", seen.stdout, seen.stderr);
    for name in ["a", "b"] {
        assert!(note(name).exists());
    }
    assert!(suite.path("tasks").exists());
    assert_eq!(left(&suite), Vec::<PathBuf>::new());
}

/// The trial ends while the workspace is copied: the copy stops, and nothing of it is left.
#[test]
fn a_copy_that_outlives_its_trial_leaves_nothing() {
    let suite = suite();
    for file in 0..3000 {
        suite.write(&format!("fixtures/{file}"), "x");
    }
    let limits = json!({"timeout": "1ms"});
    suite.task("first", &json!({"verify": works()}));
    let spec = json!({"workspace": "../fixtures", "limits": limits, "verify": works()});
    suite.task("second", &spec);
    let seen = check(&suite, &["-o", "json", "--keep", "none"]).run();
    assert_eq!(seen.code, Some(1), "{}{}", seen.stdout, seen.stderr);
    assert_eq!(left(&suite), Vec::<PathBuf>::new());
    assert!(Path::new(&suite.path("fixtures/2999")).exists());
}
