//! Folders of runs that change, or are hostile, while they are served.

use std::fs;
use std::io::Write;
use std::process::Command;

use crate::viewer::{Viewer, run, shown, suite, until};

#[test]
fn a_run_that_is_deleted_is_an_error_and_the_others_go_on() {
    let suite = suite();
    let folder = run(&suite, "one");
    run(&suite, "two");
    let viewer = Viewer::start(suite.folder(), &["runs/one"]);
    let revision = viewer.json("/api/runs/one/overview")["revision"].clone();
    let mut lines = viewer.lines(&format!("/api/runs/one/events?from={revision}"));
    fs::remove_dir_all(&folder).unwrap();
    let gone = viewer.get("/api/runs/one/overview");
    assert_eq!(
        (gone.status, gone.error()),
        (404, "run `one` not found".to_owned())
    );
    // The open page is told.
    let line = lines.find(|line| line["error"].is_string()).unwrap();
    let error = line["error"].as_str().unwrap();
    assert!(error.contains("is not a run"), "{line}");
    assert_eq!(viewer.get("/api/runs/one/trials/0").status, 404);
    assert_eq!(
        viewer.json("/api/runs/two/overview")["overview"]["counts"]["failed"],
        2
    );
    assert_eq!(
        viewer.json("/api/history")["suites"][0]["runs"]
            .as_array()
            .unwrap()
            .len(),
        1
    );
    // Another run in its place: the page starts over.
    run(&suite, "one");
    let reset = lines.find(|line| line["isReset"] == true);
    assert!(reset.is_some());
    fs::remove_dir_all(suite.path("runs")).unwrap();
    let none = viewer.get("/api/runs");
    assert!(matches!(none.status, 200 | 500), "{}", none.status);
    assert_eq!(viewer.get("/").status, 200);
}

/// Breaks the folder of a run.
type Damage = fn(&std::path::Path);

#[test]
fn a_broken_run_has_the_error_of_result_show() {
    let suite = suite();
    let damages: [(&str, Damage); 6] = [
        ("half a line at the end", |run| {
            let mut file = fs::OpenOptions::new()
                .append(true)
                .open(run.join("run.jsonl"))
                .unwrap();
            file.write_all(b"{\"seq\":99,\"at\":1,\"eve").unwrap();
        }),
        ("no start", |run| {
            fs::write(run.join("run.jsonl"), "").unwrap();
        }),
        ("garbage", |run| {
            fs::write(run.join("run.jsonl"), [0xff; 5000]).unwrap();
        }),
        ("an index of garbage", |run| {
            let garbage = vec![b'{'; 20 * 1024 * 1024];
            fs::write(run.join("index.jsonl"), garbage).unwrap();
        }),
        ("half a trial", |run| {
            let mut trials = fs::read_dir(run.join("trials")).unwrap();
            let trial = trials.next().unwrap().unwrap().path();
            let text = fs::read(&trial).unwrap();
            fs::write(&trial, &text[..text.len() / 2]).unwrap();
        }),
        ("a trial that is a pipe", |run| {
            let mut trials = fs::read_dir(run.join("trials")).unwrap();
            let trial = trials.next().unwrap().unwrap().path();
            fs::remove_file(&trial).unwrap();
            let status = Command::new("mkfifo").arg(&trial).status().unwrap();
            assert!(status.success());
        }),
    ];
    let whole = run(&suite, "whole");
    let viewer = Viewer::start(suite.folder(), &["runs"]);
    for (number, (what, damage)) in damages.into_iter().enumerate() {
        let name = format!("run-{number}");
        let folder = suite.path(&format!("runs/{name}"));
        let status = Command::new("cp")
            .arg("-r")
            .arg(&whole)
            .arg(&folder)
            .status()
            .unwrap();
        assert!(status.success());
        let path = format!("/api/runs/{name}/overview");
        assert_eq!(viewer.get(&path).status, 200);
        damage(&folder);
        // A reading of the whole run may still be the latest one.
        let mut reply = viewer.get(&path);
        let told = shown(&suite, &format!("runs/{name}"));
        until(what, || {
            reply = viewer.get(&path);
            match &told {
                Ok(told) => {
                    reply.status == 200 && {
                        let page = reply.json();
                        let page = &page["overview"]["counts"];
                        let trials = &told["proctor"]["trials"];
                        page["passed"] == trials["passed"] && page["notRun"] == trials["notRun"]
                    }
                }
                Err(_) => reply.status == 500,
            }
        });
        if let Err(told) = told {
            let told = told.replace('\n', " ");
            let error = reply.error();
            let start = error.split(':').next().unwrap();
            assert!(
                !start.is_empty() && told.contains(start),
                "{what}: {error} and {told}"
            );
        }
        assert_eq!(
            viewer.json("/api/runs/whole/overview")["overview"]["counts"]["passed"],
            2
        );
    }
    let rows = viewer.json("/api/runs");
    let states = rows["runs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row["state"].clone());
    assert!(states.into_iter().any(|state| state == "unreadable"));
}

#[test]
fn a_run_with_more_trials_than_a_page_can_hold_names_another_command() {
    let suite = suite();
    let folder = run(&suite, "one");
    let plan = folder.join("run.jsonl");
    let text = fs::read_to_string(&plan).unwrap();
    let planned = |runs: u32| text.replace("\"runs\":2", &format!("\"runs\":{runs}"));
    fs::write(&plan, planned(125_001)).unwrap();
    let viewer = Viewer::start(suite.folder(), &["runs/one"]);
    let refused = viewer.get("/api/runs/one/overview");
    assert_eq!(
        refused.error(),
        "the run has 250002 trials, and pages show at most 250000; use `proctor result show runs/one`"
    );
    fs::write(&plan, planned(125_000)).unwrap();
    until("the largest run is not shown", || {
        viewer.get("/api/runs/one/overview").status == 200
    });
}
