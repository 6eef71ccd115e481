//! What the viewer shows is what `result show` says.

use std::fs;
use std::process::Stdio;

use proctor_e2e::suite::SuiteFixture;
use serde_json::Value;

use crate::viewer::{Viewer, proctor, run, shown, suite, until, waiting_suite};

/// Compares the overview of a run with `result show`, and returns whether it may look like a success.
fn assert_same(viewer: &Viewer, suite: &SuiteFixture, name: &str) -> bool {
    let shown = shown(suite, &format!("runs/{name}")).unwrap();
    let overview = viewer.json(&format!("/api/runs/{name}/overview"));
    assert_eq!(overview["status"]["isChecked"], true);
    let (page, told) = (&overview["overview"], &shown["proctor"]);
    let answer = match told["gate"]["answer"].as_str().unwrap() {
        "open" => "inconclusive",
        answer => answer,
    };
    assert_eq!(page["gate"]["answer"], answer, "{told}");
    assert_eq!(page["gate"]["reasons"], told["gate"]["reasons"]);
    assert_eq!(page["gate"]["exit"], told["exit"]["code"]);
    for outcome in [
        "passed",
        "failed",
        "timedOut",
        "errored",
        "cancelled",
        "notRun",
    ] {
        assert_eq!(
            page["counts"][outcome], told["trials"][outcome],
            "{outcome}"
        );
    }
    assert_eq!(page["rate"]["passed"], told["rate"]["passed"]);
    assert_eq!(page["rate"]["low"], told["rate"]["low95"]);
    assert_eq!(page["run"]["isFinished"], !told["run"]["ended"].is_null());
    page["gate"]["isGood"] == Value::Bool(true)
}

#[test]
fn a_run_that_passed_and_one_that_failed() {
    let suite = suite();
    run(&suite, "failed");
    fs::remove_file(suite.path("tasks/bad.yaml")).unwrap();
    run(&suite, "passed");
    let viewer = Viewer::start(suite.folder(), &["runs/failed"]);
    assert!(!assert_same(&viewer, &suite, "failed"));
    assert!(assert_same(&viewer, &suite, "passed"));
    let runs = viewer.json("/api/runs");
    assert_eq!(runs["named"], "failed");
    assert_eq!(runs["runs"].as_array().unwrap().len(), 2);
    let history = viewer.json("/api/history");
    let points = history["suites"][0]["runs"].as_array().unwrap();
    let gates: Vec<&Value> = points.iter().map(|point| &point["gate"]).collect();
    assert_eq!(gates, ["missed", "met"]);
    let compared = viewer.json("/api/runs/passed/diff/failed");
    let diff = proctor(
        &suite,
        &["result", "diff", "runs/failed", "runs/passed", "-o", "json"],
    )
    .stdout(Stdio::piped())
    .output()
    .unwrap();
    let diff: Value = serde_json::from_slice(&diff.stdout).unwrap();
    assert_eq!(compared, diff);
}

#[test]
fn a_record_that_was_changed_afterwards_is_shown_as_it_is_now() {
    let suite = suite();
    let folder = run(&suite, "one");
    let viewer = Viewer::start(suite.folder(), &["runs"]);
    assert!(!assert_same(&viewer, &suite, "one"));
    // The index says that everything passed; the trials don't.
    let index = folder.join("index.jsonl");
    let text = fs::read_to_string(&index).unwrap();
    fs::write(
        &index,
        text.replace("\"outcome\":\"failed\"", "\"outcome\":\"passed\""),
    )
    .unwrap();
    assert!(!assert_same(&viewer, &suite, "one"));
    assert!(!assert_same(
        &Viewer::start(suite.folder(), &["runs"]),
        &suite,
        "one"
    ));
    // A trial that passed says that it failed, in a file of the same length.
    let trials = fs::read_dir(folder.join("trials")).unwrap();
    let trial = trials.map(|entry| entry.unwrap().path());
    let good = trial
        .into_iter()
        .find(|path| path.to_string_lossy().contains("good"))
        .unwrap();
    let text = fs::read_to_string(&good).unwrap();
    fs::write(
        &good,
        text.replace("\"outcome\":\"passed\"", "\"outcome\":\"failed\""),
    )
    .unwrap();
    until("the change is not noticed", || {
        viewer.json("/api/runs/one/overview")["overview"]["counts"]["failed"] == 3
    });
    assert!(!assert_same(&viewer, &suite, "one"));
}

#[test]
fn a_run_that_is_killed_is_never_a_success() {
    let suite = waiting_suite();
    let mut check = proctor(&suite, &["check", "eval.yaml", "--record", "runs/one"])
        .spawn()
        .unwrap();
    let index = suite.path("runs/one/index.jsonl");
    until("no trial ended", || {
        fs::read_to_string(&index).is_ok_and(|text| text.contains("\"ended\":{\"version\""))
    });
    let viewer = Viewer::start(suite.folder(), &["runs/one"]);
    let status = |viewer: &Viewer| viewer.json("/api/runs/one/overview")["status"].clone();
    assert_eq!(status(&viewer)["isActive"], true);
    assert!(!assert_same(&viewer, &suite, "one"));
    check.kill().unwrap();
    check.wait().unwrap();
    until("the end is not noticed", || {
        status(&viewer)["isActive"] == false
    });
    assert!(!assert_same(&viewer, &suite, "one"));
    assert_eq!(status(&viewer)["running"], serde_json::json!([]));
}
