//! A run that goes on while its page is open.

use std::fs;

use serde_json::Value;

use crate::viewer::{Viewer, proctor, until, waiting_suite};

/// The rows of an overview after a patch, as the page computes them.
fn apply(outcomes: &mut [Value], patch: &Value) {
    let at = patch["rows"]["at"].as_array().unwrap();
    // Without changed rows, a patch has no columns: only the status or the totals changed.
    let outcome = patch["rows"]["columns"].get("outcome");
    let changed = outcome.map_or(&[][..], |outcome| outcome.as_array().unwrap());
    assert_eq!(at.len(), changed.len(), "{patch}");
    for (row, outcome) in at.iter().zip(changed) {
        let row = usize::try_from(row.as_u64().unwrap()).unwrap();
        outcomes[row] = outcome.clone();
    }
}

#[test]
fn rows_arrive_while_the_run_goes_on_and_after_it_is_resumed() {
    let suite = waiting_suite();
    let words = ["check", "eval.yaml", "-n", "2", "--record", "runs/one"];
    let mut check = proctor(&suite, &words).spawn().unwrap();
    let index = suite.path("runs/one/index.jsonl");
    let has = |text: &str| fs::read_to_string(&index).is_ok_and(|index| index.contains(text));
    until("no trial ended", || has("\"ended\":{\"version\""));
    let viewer = Viewer::start(suite.folder(), &["runs/one"]);
    let first = viewer.json("/api/runs/one/overview");
    let outcomes = &first["overview"]["trials"]["outcome"];
    let mut outcomes = outcomes.as_array().unwrap().clone();
    assert_eq!(outcomes.len(), 4);
    let revision = first["revision"].as_u64().unwrap();
    let path = format!("/api/runs/one/events?from={revision}");
    let mut lines = viewer.lines(&path);
    // Stopped in the middle.
    until("the second case did not begin", || has("b-wait"));
    rustix::process::kill_process(
        rustix::process::Pid::from_child(&check),
        rustix::process::Signal::INT,
    )
    .unwrap();
    check.wait().unwrap();
    let stopped = lines.by_ref().find(|patch| {
        apply(&mut outcomes, patch);
        patch["status"]["isActive"] == false
    });
    let stopped = stopped.unwrap();
    assert_eq!(stopped["overview"]["gate"]["isGood"], false, "{stopped}");
    // Resumed: the same stream goes on.
    suite.write("go", "");
    let status = proctor(&suite, &["check", "--resume", "runs/one"])
        .status()
        .unwrap();
    assert_eq!(status.code(), Some(0));
    let ended = lines.find(|patch| {
        assert_eq!(patch["isReset"], false, "{patch}");
        apply(&mut outcomes, patch);
        patch["overview"]["gate"]["isGood"] == true
    });
    let ended = ended.unwrap();
    assert_eq!(ended["overview"]["counts"]["passed"], 4);
    // Rows and totals agree, and with a page that is loaded now.
    let now = viewer.json("/api/runs/one/overview");
    assert_eq!(
        outcomes,
        *now["overview"]["trials"]["outcome"].as_array().unwrap()
    );
    // A stream that was lost is taken up at its revision, and has everything since.
    let again = viewer.lines(&path).next().unwrap();
    let mut late = first["overview"]["trials"]["outcome"]
        .as_array()
        .unwrap()
        .clone();
    apply(&mut late, &again);
    assert_eq!(late, outcomes);
    // A page of another server starts over.
    let other = viewer
        .lines("/api/runs/one/events?from=99999")
        .next()
        .unwrap();
    assert_eq!(other["isReset"], true);
    assert_eq!(viewer.stop(), Some(0));
}

#[test]
fn a_running_trial_can_be_read() {
    let suite = waiting_suite();
    let mut check = proctor(&suite, &["check", "eval.yaml", "--record", "runs/one"])
        .spawn()
        .unwrap();
    let index = suite.path("runs/one/index.jsonl");
    until("the second case did not begin", || {
        fs::read_to_string(&index).is_ok_and(|text| text.contains("b-wait"))
    });
    let viewer = Viewer::start(suite.folder(), &["runs/one"]);
    until("the prompt is not shown", || {
        let overview = viewer.json("/api/runs/one/overview");
        let running = &overview["status"]["running"];
        let Some(row) = running[0]["row"].as_u64() else {
            return false;
        };
        let trial = viewer.get(&format!("/api/runs/one/trials/{row}"));
        let page: Value = serde_json::from_slice(&trial.body).unwrap_or_default();
        page["outcome"] == "not-run" && page["items"][0]["kind"] == "prompt"
    });
    suite.write("go", "");
    assert_eq!(check.wait().unwrap().code(), Some(0));
}
