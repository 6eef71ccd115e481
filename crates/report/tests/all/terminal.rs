//! What people see at the end of a run.

use proctor_report::Report;
use proctor_report::terminal::{TerminalStyle, render};

use crate::sample::Sample;

fn shown(sample: &Sample, width: usize, colour: bool) -> String {
    let text = render(&sample.report(), TerminalStyle { width, colour }).expect("a text");
    for line in text.lines() {
        let plain = unstyled(line);
        let columns = unicode_width::UnicodeWidthStr::width(plain.as_str());
        assert!(columns <= width, "{columns} columns: {line}");
        let hidden = plain
            .chars()
            .find(|c| proctor_core::printable::is_hidden(*c));
        assert_eq!(hidden, None, "{line:?}");
        assert!(!plain.trim_start().starts_with("::"), "{line:?}");
    }
    text
}

/// The line without the styles that we put there.
fn unstyled(line: &str) -> String {
    let mut out = String::new();
    let mut rest = line;
    while let Some(at) = rest.find("\u{1b}[") {
        out.push_str(&rest[..at]);
        let end = rest[at..].find('m').expect("a style ends");
        rest = &rest[at + end + 1..];
    }
    out + rest
}

#[test]
fn failed_cases_come_first_at_80_columns() {
    insta::assert_snapshot!(shown(&Sample::new(), 80, false));
}

#[test]
fn failed_cases_come_first_at_200_columns() {
    insta::assert_snapshot!(shown(&Sample::new(), 200, false));
}

#[test]
fn colours_add_nothing_but_colour() {
    let sample = Sample::new();
    let colourful = shown(&sample, 80, true);
    assert!(colourful.contains("\u{1b}["));
    let plain: Vec<String> = colourful.lines().map(unstyled).collect();
    let expected = shown(&sample, 80, false);
    assert_eq!(plain, expected.lines().collect::<Vec<_>>());
}

#[test]
fn the_same_failure_is_shown_once() {
    let text = shown(&Sample::with_more(30), 80, false);
    assert_eq!(text.matches("FAIL      bad ").count(), 1, "{text}");
    let others = "  same cause in 29 more trials: bad 1; bad 2; bad 3; bad 4; bad 5; bad 6; bad 7;";
    assert!(text.contains(&format!("{others}\n")), "{text}");
    assert!(text.contains("bad 12; and 17 more cases\n"), "{text}");
    assert!(text.contains("PASS      32 cases  (1 flaky)\n"), "{text}");
    // Its case is named again only by the gate, and there without a reason.
    assert_eq!(text.matches("it took longer than 30s").count(), 1, "{text}");
}

#[test]
fn an_exit_code_that_is_not_the_gates_is_explained() {
    let sample = Sample::new();
    let report = Report {
        exit: 130,
        note: Some("interrupted"),
        ..sample.report()
    };
    let look = TerminalStyle {
        width: 80,
        colour: false,
    };
    let text = render(&report, look).unwrap();
    assert!(text.contains("\nExit      130: interrupted\n"), "{text}");
}

#[test]
fn several_agents_are_told_apart() {
    insta::assert_snapshot!(shown(&Sample::of_two_agents(), 80, false));
}

#[test]
fn a_run_without_trials_is_not_green() {
    insta::assert_snapshot!(shown(&Sample::without_trials(), 80, false));
}

#[test]
fn a_brief_report_reads_no_trial_again_and_still_says_why() {
    let sample = Sample::new();
    // Without its trials nothing can be read again.
    std::fs::remove_dir_all(sample.run.folder().join("trials")).unwrap();
    let report = Report {
        brief: true,
        ..sample.report()
    };
    let look = TerminalStyle {
        width: 80,
        colour: false,
    };
    let text = render(&report, look).unwrap();
    assert!(text.contains("FAIL "), "{text}");
    assert!(text.contains("more evidence is in the record"), "{text}");
    assert!(render(&sample.report(), look).is_err());
}
