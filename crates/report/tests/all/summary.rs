//! The summary of a run: what people see first, and what scripts read.

use std::path::Path;

use proctor_core::coverage::{Coverage, CoverageCounter};
use proctor_core::summary::{AssertionCounter, Summary};
use proctor_report::sheet::SheetStyle;
use proctor_report::summary::{
    RunSummary, SummaryOptions, SummaryTable, document, github_output, render,
};
use serde_json::Value;

use crate::sample::Sample;

const PLAIN: SheetStyle = SheetStyle {
    width: 80,
    colour: false,
    utf8: true,
};

fn counted(sample: &Sample) -> (Coverage, AssertionCounter) {
    let (mut counter, mut assertions) = (CoverageCounter::default(), AssertionCounter::default());
    let summary = Summary::observed(&sample.run, |entry| {
        counter.add(entry);
        assertions.add(entry);
    });
    let servers = summary.expect("a summary").servers;
    let coverage = counter.finish(&sample.run, &servers);
    (coverage.expect("a coverage"), assertions)
}

fn with<T>(sample: &Sample, use_it: impl FnOnce(&RunSummary<'_>) -> T) -> T {
    let (coverage, assertions) = counted(sample);
    use_it(&RunSummary {
        folder: Path::new(".proctor/runs/sample"),
        name: "sample",
        summary: &sample.summary,
        gate: &sample.gate,
        coverage: &coverage,
        assertions: &assertions,
        part: None,
    })
}

fn shown(sample: &Sample, style: SheetStyle, all: bool) -> String {
    let options = SummaryOptions { all, tables: &[] };
    drawn(sample, style, options)
}

fn tables(sample: &Sample, style: SheetStyle, tables: &[SummaryTable]) -> String {
    let options = SummaryOptions { all: false, tables };
    drawn(sample, style, options)
}

fn drawn(sample: &Sample, style: SheetStyle, options: SummaryOptions<'_>) -> String {
    let text = with(sample, |run| render(run, style, options));
    let is_command = |line: &&str| line.contains("proctor result view");
    for line in text.lines().filter(|line| !is_command(line)) {
        let columns = unicode_width::UnicodeWidthStr::width(line);
        assert!(
            style.colour || columns <= style.width,
            "{columns} columns: {line}"
        );
        let hidden = line
            .chars()
            .find(|c| proctor_core::printable::is_hidden(*c));
        assert!(style.colour || hidden.is_none(), "{line:?}");
        assert!(!line.trim_start().starts_with("::"), "{line:?}");
    }
    text
}

#[test]
fn the_worst_cases_come_first() {
    insta::assert_snapshot!(shown(&Sample::new(), PLAIN, false));
}

#[test]
fn a_wide_terminal_without_utf8_gets_letters() {
    let style = SheetStyle {
        width: 140,
        utf8: false,
        ..PLAIN
    };
    let text = shown(&Sample::new(), style, false);
    assert!(text.is_ascii(), "{text}");
    insta::assert_snapshot!(text);
}

#[test]
fn a_narrow_terminal_drops_strips_and_then_reasons() {
    let at = |width| {
        let style = SheetStyle { width, ..PLAIN };
        shown(&Sample::new(), style, false)
    };
    let (wide, narrow, narrowest) = (at(80), at(79), at(59));
    assert!(wide.contains('▌') && !narrow.contains('▌'), "{narrow}");
    let reason = "too many calls";
    assert!(
        narrow.contains(reason) && !narrowest.contains(reason),
        "{narrowest}"
    );
}

#[test]
fn colours_add_nothing_but_colour() {
    let style = SheetStyle {
        colour: true,
        ..PLAIN
    };
    let colourful = shown(&Sample::new(), style, false);
    assert!(colourful.contains("\u{1b}["));
    let mut plain = String::new();
    for (index, part) in colourful.split("\u{1b}[").enumerate() {
        let text = if index == 0 {
            part
        } else {
            &part[part.find('m').unwrap() + 1..]
        };
        plain.push_str(text);
    }
    assert_eq!(plain, shown(&Sample::new(), PLAIN, false));
}

#[test]
fn many_failures_of_one_cause_are_one_line() {
    let sample = Sample::with_more(30);
    let text = shown(&sample, PLAIN, false);
    assert!(
        text.contains("30× failed in 30 cases, blame: agent  no\n"),
        "{text}"
    );
    assert!(text.contains("more cases; `--all` lists them\n"), "{text}");
    assert_eq!(text.matches("\n  MISSED").count(), 20);
    let all = shown(&sample, PLAIN, true);
    assert!(all.matches("\n  MISSED").count() > 30, "{all}");
    assert!(!all.contains("--all"), "{all}");
}

#[test]
fn agents_are_compared() {
    insta::assert_snapshot!(shown(&Sample::of_two_agents(), PLAIN, false));
}

#[test]
fn a_run_without_trials_is_not_green() {
    let text = shown(&Sample::without_trials(), PLAIN, false);
    assert!(text.contains("Gate      inconclusive\n"), "{text}");
    assert!(text.contains("INCONCL one"), "{text}");
    assert!(text.contains("not finished"), "{text}");
    assert!(!text.contains("Stable"), "{text}");
}

#[test]
fn the_document_says_what_the_text_says() {
    let sample = Sample::new();
    let told = with(&sample, document);
    assert_eq!(told["gate"]["answer"], "missed");
    let cases = told["cases"].as_array().unwrap();
    let verdicts: Vec<&str> = cases
        .iter()
        .filter_map(|case| case["verdict"].as_str())
        .collect();
    let mut sorted = verdicts.clone();
    sorted.sort_by_key(|verdict| {
        ["missed", "inconclusive", "met"]
            .iter()
            .position(|v| v == verdict)
    });
    assert_eq!(verdicts, sorted, "worst first");
    let flaky: Vec<&Value> = cases.iter().filter(|case| case["flaky"] == true).collect();
    assert_eq!(flaky.len(), 1);
    assert_eq!(
        (&flaky[0]["name"], &flaky[0]["outcomes"]),
        (&"list a folder".into(), &"....F".into())
    );
    let groups = told["causes"].as_array().unwrap();
    let counts = groups.iter().filter_map(|group| group["count"].as_u64());
    let of = |key: &str| told["trials"][key].as_u64().unwrap();
    let failures = of("failed") + of("timedOut") + of("errored");
    assert_eq!(counts.sum::<u64>(), failures);
    for group in groups {
        let trials = group["trials"].as_array().map(Vec::len);
        assert_eq!(group["count"], trials.unwrap(), "{group}");
    }
    assert_eq!(
        told["coverage"][0]["listed"], false,
        "the record has no list of tools"
    );
    assert_eq!(told["coverage"][0]["tools"], Value::Null);
}

#[test]
fn failures_are_listed_with_all_their_trials() {
    insta::assert_snapshot!(tables(&Sample::new(), PLAIN, &[SummaryTable::Failures]));
}

#[test]
fn cases_and_agents_are_tables() {
    let both = [SummaryTable::Cases, SummaryTable::Agents];
    insta::assert_snapshot!(tables(&Sample::new(), PLAIN, &both));
    for width in [40, 59, 60, 79, 80, 140] {
        for sample in [Sample::new(), Sample::of_two_agents()] {
            let text = tables(&sample, SheetStyle { width, ..PLAIN }, &both);
            assert!(text.contains("\nGate      missed\n"), "{text}");
        }
    }
}

#[test]
fn outputs_for_other_steps_are_lines_of_keys_and_values() {
    let text = with(&Sample::new(), github_output);
    insta::assert_snapshot!(text);
    // A run without a verdict has no rate that a script would take for a pass.
    let none = with(&Sample::without_trials(), github_output);
    for line in [
        "task-pass-rate=0.0000\n",
        "assertion-pass-rate=0.0000\n",
        "gate=inconclusive\n",
    ] {
        assert!(none.contains(line), "{line} is not in\n{none}");
    }
}
