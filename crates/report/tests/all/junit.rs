//! The document that CI services read.

use roxmltree::{Document, Node};

use crate::sample::Sample;
use crate::{outside, schema};

fn written(sample: &Sample) -> String {
    let mut out = Vec::new();
    proctor_report::junit::write(&sample.report(), &mut out).expect("a document");
    String::from_utf8(out).expect("a text")
}

#[test]
fn trials_are_test_cases() {
    insta::assert_snapshot!(written(&Sample::new()));
}

#[test]
fn the_document_is_well_formed_and_counts_right() {
    let text = written(&Sample::with_more(3));
    let document = Document::parse(&text).unwrap();
    let illegal = |c: char| matches!(c, '\u{fffe}' | '\u{ffff}') || (c < ' ' && !c.is_whitespace());
    assert!(!text.contains(illegal));
    let has = |node: &Node, name: &str| node.children().any(|child| child.has_tag_name(name));
    let tests: Vec<Node> = document
        .descendants()
        .filter(|node| node.has_tag_name("testcase"))
        .collect();
    let count = |name: &str| tests.iter().filter(|node| has(node, name)).count();
    assert_eq!(tests.len(), 20);
    assert_eq!(count("failure"), 5 + 3);
    assert_eq!(count("error"), 2);
    assert_eq!(count("skipped"), 1);
    let suite = document
        .descendants()
        .find(|node| node.has_tag_name("testsuite"));
    let suite = suite.unwrap();
    assert_eq!(suite.attribute("tests"), Some("20"));
    assert_eq!(suite.attribute("failures"), Some("8"));
    assert_eq!(suite.attribute("errors"), Some("2"));
}

#[test]
fn every_document_follows_the_schema() {
    let hostile = outside::run(&|number| format!("{}{number}", crate::sample::HOSTILE));
    for sample in [
        Sample::new(),
        Sample::with_more(3),
        Sample::of_two_agents(),
        Sample::without_trials(),
        hostile,
    ] {
        let text = written(&sample);
        assert_eq!(schema::violations(&text), Vec::<String>::new(), "{text}");
    }
    let mut out = Vec::new();
    proctor_report::junit::write_error("a\u{1b}<b>", 2, "no\nsuite", &mut out).unwrap();
    let text = String::from_utf8(out).unwrap();
    assert_eq!(schema::violations(&text), Vec::<String>::new(), "{text}");
    let document = Document::parse(&text).unwrap();
    let error = document
        .descendants()
        .find(|node| node.has_tag_name("error"));
    assert_eq!(error.unwrap().attribute("message"), Some("no\\nsuite"));
}

#[test]
fn every_agent_has_a_suite() {
    let text = written(&Sample::of_two_agents());
    let document = Document::parse(&text).unwrap();
    let suites = document
        .descendants()
        .filter(|node| node.has_tag_name("testsuite"));
    let shown: Vec<_> = suites
        .map(|suite| (suite.attribute("name"), suite.attribute("failures")))
        .collect();
    assert_eq!(
        shown,
        [
            (Some("sample (first)"), Some("0")),
            (Some("sample (second)"), Some("1"))
        ]
    );
}

#[test]
fn a_run_that_did_not_come_about_is_an_error_with_its_reason() {
    let sample = Sample::without_trials();
    for (note, expected) in [
        (
            Some("the server `x` did not come up"),
            "the server `x` did not come up",
        ),
        (None, "0 of 2 trials passed"),
    ] {
        let report = proctor_report::Report {
            exit: 3,
            note,
            ..sample.report()
        };
        let mut out = Vec::new();
        proctor_report::junit::write(&report, &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        let document = Document::parse(&text).unwrap();
        let mut all = document.descendants();
        let error = all.find(|node| node.has_tag_name("error")).unwrap();
        let message = error.attribute("message").unwrap();
        assert!(message.contains(expected), "{message}");
        let mut suites = document
            .descendants()
            .filter(|n| n.has_tag_name("testsuite"));
        assert!(suites.any(|suite| suite.attribute("errors") == Some("1")));
    }
}
