//! The data of the HTML report and of `proctor view`.

use data_encoding::BASE64;
use proctor_core::summary::Summary;
use proctor_record::event::Direction;
use proctor_record::record::RunReader;
use proctor_report::page::{BODY_BYTES, ItemKind, Overview, PageBody, TrialPage, raw_messages};
use serde_json::{Value, json};

use crate::outside;
use crate::sample::{HOSTILE, Sample};

fn overview(sample: &Sample) -> Value {
    let overview = Overview::with_arguments(&sample.report()).expect("an overview");
    serde_json::to_value(overview).expect("it is JSON")
}

fn pretty(page: &impl serde::Serialize) -> String {
    serde_json::to_string_pretty(page).expect("it is JSON")
}

/// The page of a trial, by the name of its case and its number.
fn trial(sample: &Sample, case: &str, repeat: u32) -> TrialPage {
    let mut trials = sample.summary.trials();
    let found = trials.find(|(of, _, trial)| of.case.name == case && trial.repeat == repeat);
    let (case, _, trial) = found.expect("a trial");
    let file = &trial.file().expect("a result");
    TrialPage::load(&sample.report(), &case.case, file, 0, 500)
}

#[test]
fn the_overview_of_a_run_is_complete() {
    let sample = Sample::new();
    insta::assert_snapshot!(pretty(&overview(&sample)));
}

#[test]
fn a_trial_tells_what_happened_and_what_decides() {
    let page = trial(&Sample::new(), "read a file", 2);
    insta::assert_snapshot!(pretty(&page));
}

#[test]
fn a_server_that_dies_leaves_its_last_words() {
    let page = trial(&Sample::new(), "server dies", 1);
    insta::assert_snapshot!(pretty(&page));
}

#[test]
fn texts_stay_as_recorded() {
    let page = trial(&Sample::new(), HOSTILE, 1);
    let reason = page.reason.expect("a reason");
    assert_eq!(reason, PageBody::Whole(HOSTILE.to_owned()));
    let names = outside::run(&|number| format!("<{number}>"));
    let shown = overview(&names).to_string();
    assert!(shown.contains("<20>") && shown.contains("<11>"), "{shown}");
}

/// Every number of the overview that decides anything is the one of `result show -o json`.
#[test]
fn the_overview_agrees_with_the_report_for_scripts() {
    let changed = outside::run(&|number| format!("text {number}"));
    for (name, sample) in [
        ("interrupted", Sample::new()),
        ("two agents", Sample::of_two_agents()),
        ("without trials", Sample::without_trials()),
        ("changed records", changed),
    ] {
        let report = sample.report();
        let mut text = Vec::new();
        proctor_report::json::write(&report, &mut text).expect("a report");
        let shown: Value = serde_json::from_slice(&text).expect("JSON");
        let shown = &shown["proctor"];
        let page = overview(&sample);
        let word = match shown["gate"]["answer"].as_str() {
            Some("open") => "inconclusive",
            Some(word) => word,
            None => panic!("{name}: no gate"),
        };
        assert_eq!(page["gate"]["answer"], word, "{name}");
        assert_eq!(page["gate"]["reasons"], shown["gate"]["reasons"], "{name}");
        assert_eq!(page["gate"]["exit"], shown["exit"]["code"], "{name}");
        for key in [
            "passed",
            "failed",
            "timedOut",
            "errored",
            "cancelled",
            "notRun",
        ] {
            assert_eq!(page["counts"][key], shown["trials"][key], "{name}: {key}");
        }
        let rate = |rate: &Value, low: &str, high: &str| {
            let get = |key: &str| rate.get(key).cloned().unwrap_or_default();
            json!([
                get("passed"),
                get("counted"),
                get("mean"),
                get(low),
                get(high)
            ])
        };
        assert_eq!(
            rate(&page["rate"], "low", "high"),
            rate(&shown["rate"], "low95", "high95"),
            "{name}"
        );
        assert_eq!(page["gate"]["isGood"], false, "{name}");
    }
}

/// The columns have a row for each planned trial, and their outcomes add up to the counts.
#[test]
fn the_columns_add_up() {
    for sample in [
        Sample::new(),
        Sample::of_two_agents(),
        Sample::with_more(40),
    ] {
        let page = overview(&sample);
        let columns = page["trials"].as_object().expect("columns");
        let planned = sample.summary.trials().count();
        for (name, column) in columns {
            let rows = column.as_array().map(Vec::len);
            assert_eq!(rows, Some(planned), "{name}");
        }
        for (position, word) in page["outcomes"].as_array().unwrap().iter().enumerate() {
            let rows = columns["outcome"].as_array().unwrap();
            let count = rows.iter().filter(|row| **row == position).count();
            let key = match word.as_str().unwrap() {
                "timed-out" => "timedOut",
                "not-run" => "notRun",
                word => word,
            };
            assert_eq!(page["counts"][key], count, "{word}");
        }
        let causes = page["causes"].as_array().unwrap();
        for (position, cause) in causes.iter().enumerate() {
            let rows = columns["cause"].as_array().unwrap();
            let count = rows.iter().filter(|row| **row == position).count();
            assert_eq!(cause["trials"], count, "{cause}");
        }
    }
}

#[test]
fn a_trial_is_read_in_parts() {
    let sample = Sample::new();
    let whole = trial(&sample, "read a file", 2);
    let mut trials = sample.summary.trials();
    let found = trials.find(|(of, _, trial)| of.case.name == "read a file" && trial.repeat == 2);
    let (case, _, row) = found.unwrap();
    let file = &row.file().unwrap();
    let (mut items, mut from) = (Vec::new(), 0);
    loop {
        let part = TrialPage::load(&sample.report(), &case.case, file, from, 2);
        assert!(part.items.len() <= 2);
        items.extend(part.items);
        match part.next {
            Some(next) => from = next,
            None => break,
        }
    }
    assert!(items.len() > 2);
    assert_eq!(items, whole.items);
}

#[test]
fn a_trial_whose_record_is_gone_says_so_and_passes_nothing() {
    let sample = Sample::new();
    let (case, _, row) = sample.summary.trials().next().unwrap();
    let file = &row.file().unwrap();
    let path = sample.run.folder().join("trials").join(file);
    for broken in ["{\"seq\":1,", "not JSON\n{}\n", ""] {
        std::fs::write(&path, broken).unwrap();
        let page = TrialPage::load(&sample.report(), &case.case, file, 0, 10);
        assert_eq!(page.outcome, "not-run", "{broken}");
        assert!(!page.notes.is_empty(), "{broken}");
    }
    let page = TrialPage::load(&sample.report(), &case.case, "../run.jsonl", 0, 10);
    assert_eq!(page.outcome, "not-run");
    assert!(page.items.is_empty());
}

#[test]
fn a_long_result_is_cut_in_the_middle() {
    let text = format!("start{}end", "x".repeat(5 * 1024 * 1024));
    let sample = Sample::with_result(&text);
    let page = trial(&sample, "one", 1);
    let size = serde_json::to_vec(&page).unwrap().len();
    assert!(size < 4 * BODY_BYTES, "{size} bytes");
    let calls = page.items.iter().filter_map(|item| match &item.what {
        ItemKind::Call(call) => Some(serde_json::to_value(&call.response).unwrap()),
        _ => None,
    });
    let calls: Vec<Value> = calls.collect();
    let shown = &calls[0]["result"]["text"];
    assert_eq!(shown["bytes"], text.len());
    assert!(shown["head"].as_str().unwrap().starts_with("start"));
    assert!(shown["tail"].as_str().unwrap().ends_with("end"));
    assert_eq!(shown["sha256"].as_str().unwrap().len(), 64);
    let messages = raw_messages(&sample.run, &page.file, page.items[0].seq).unwrap();
    let [request, response] = &messages[..] else {
        panic!("{} messages", messages.len());
    };
    assert_eq!(request.direction, Direction::ToServer);
    assert_eq!(response.direction, Direction::ToClient);
    assert!(response.bytes > Some(text.len() as u64));
    let bytes = BASE64.decode(response.base64.as_bytes()).unwrap();
    assert_eq!(bytes.len(), 256 * 1024, "the beginning is sent");
    assert!(String::from_utf8(bytes).unwrap().contains("startxxx"));
}

/// A run that was killed looks unfinished, even if every trial so far passed.
#[test]
fn a_run_without_an_end_is_not_good() {
    let sample = Sample::killed_after_a_pass();
    let page = overview(&sample);
    assert_eq!(page["gate"]["answer"], "inconclusive");
    assert_eq!(page["gate"]["isGood"], false);
    assert_eq!(page["run"]["isFinished"], false);
    let run = RunReader::open(sample.run.folder()).unwrap();
    assert!(Summary::of_run(&run).unwrap().ended.is_none());
}
