//! Comparisons of two recorded runs: each sentence of each answer, with its numbers.

mod runs;
mod sentences;

use proctor_core::compare::{Comparison, RunFacts};
use proctor_record::record::RunReader;
use proctor_report::compare::{CompareReport, json, markdown, text};
use proctor_report::sheet::SheetStyle;

use self::runs::{Plan, numbered, plan, write};
use crate::sample::HOSTILE;

/// The comparison as text at 100 columns, Markdown and JSON.
fn compared(base: &Plan, new: &Plan) -> (u8, String, String, serde_json::Value) {
    let folder = tempfile::tempdir().expect("the sample can be written");
    let [base, new] = [("main.run", base), ("new.run", new)].map(|(name, plan)| {
        let path = folder.path().join(name);
        write(&path, plan);
        RunFacts::load(&RunReader::open(&path).expect("the sample can be read"))
            .expect("the sample can be read")
    });
    let comparison = Comparison::of(&base.tally, &new.tally);
    let report = CompareReport::new(&comparison, "kubernetes", &base, &new);
    for width in [40, 80, 100] {
        let style = SheetStyle {
            width,
            colour: false,
            utf8: true,
        };
        let shown = text::render(&report, style);
        for line in shown.lines() {
            let columns = unicode_width::UnicodeWidthStr::width(line);
            assert!(columns <= width, "{columns} columns: {line}");
        }
    }
    let style = SheetStyle {
        width: 100,
        colour: false,
        utf8: true,
    };
    let plain = SheetStyle {
        utf8: false,
        ..style
    };
    let is_ascii = text::render(&report, plain).is_ascii();
    assert!(is_ascii, "{}", text::render(&report, plain));
    (
        comparison.exit(),
        text::render(&report, style),
        markdown::render(&report),
        json::value(&report),
    )
}

#[track_caller]
fn check(base: &Plan, new: &Plan, exit: u8) -> String {
    let (found, text, ..) = compared(base, new);
    assert_eq!(found, exit, "{text}");
    text
}

#[test]
fn single_trials_that_regress() {
    let base = numbered(&[(38, "p"), (2, "f")]);
    let mut new = numbered(&[(24, "p"), (7, "f"), (7, "p"), (2, "f")]);
    new.tokens = 1_120;
    insta::assert_snapshot!(check(&base, &new, 1));
}

#[test]
fn single_trials_that_show_no_regression() {
    let base = numbered(&[(37, "p"), (3, "f")]);
    let new = numbered(&[(34, "p"), (3, "f"), (1, "p"), (2, "f")]);
    insta::assert_snapshot!(check(&base, &new, 0));
}

#[test]
fn too_few_single_trials() {
    let base = numbered(&[(5, "p")]);
    insta::assert_snapshot!(check(&base, &numbered(&[(5, "f")]), 3));
}

#[test]
fn a_base_that_rarely_passes() {
    let base = numbered(&[(3, "p"), (17, "f")]);
    insta::assert_snapshot!(check(&base, &numbered(&[(20, "f")]), 3));
}

#[test]
fn a_base_that_never_passes() {
    let base = numbered(&[(3, "f")]);
    insta::assert_snapshot!(check(&base, &base, 3));
}

#[test]
fn repeats_that_regress_as_a_suite() {
    let base = numbered(&[(12, "ppp")]);
    insta::assert_snapshot!(check(&base, &numbered(&[(12, "pfp")]), 1));
}

#[test]
fn one_case_of_five_that_collapses() {
    let base = plan(&[
        ("fix-crash-loop", "pppppp"),
        ("list-pods", "pppppp"),
        ("rotate-secret", "pppppf"),
        ("scale-up", "pppppp"),
        ("read-logs", "ppppff"),
    ]);
    let new = plan(&[
        ("fix-crash-loop", "ffffff"),
        ("list-pods", "pppppp"),
        ("rotate-secret", "pppppp"),
        ("scale-up", "pppppf"),
        ("read-logs", "ppppff"),
    ]);
    insta::assert_snapshot!(check(&base, &new, 1));
}

/// The name takes a third of the narrowest terminal, and the columns need the rest.
#[test]
fn a_row_of_a_regression_fits_a_narrow_terminal() {
    let base = plan(&[("routing[joke]", "pppppp"), ("list-pods", "pppppp")]);
    let new = plan(&[("routing[joke]", "ffffff"), ("list-pods", "pppppp")]);
    assert!(check(&base, &new, 1).contains("p = "));
}

#[test]
fn repeats_that_show_no_regression() {
    let base = numbered(&[(10, "pppppp")]);
    let new = numbered(&[(9, "pppppp"), (1, "pppppf")]);
    insta::assert_snapshot!(check(&base, &new, 0));
}

#[test]
fn too_few_repeats() {
    let base = numbered(&[(1, "ppp")]);
    insta::assert_snapshot!(check(&base, &numbered(&[(1, "fff")]), 3));
}

#[test]
fn unequal_repeats() {
    let base = numbered(&[(8, "pppp")]);
    insta::assert_snapshot!(check(&base, &numbered(&[(8, "fp")]), 1));
}

#[test]
fn errored_trials_that_could_change_the_answer() {
    let base = numbered(&[(20, "p")]);
    let new = numbered(&[(14, "p"), (5, "f"), (1, "e")]);
    insta::assert_snapshot!(check(&base, &new, 3));
}

#[test]
fn errored_trials_that_change_nothing() {
    let base = numbered(&[(20, "ppp")]);
    let new = numbered(&[(19, "ppp"), (1, "ppe")]);
    insta::assert_snapshot!(check(&base, &new, 0));
}

#[test]
fn runs_without_a_verdict() {
    let base = numbered(&[(20, "p")]);
    insta::assert_snapshot!(check(&base, &numbered(&[(10, "e"), (10, "-")]), 3));
}

#[test]
fn new_removed_and_changed_cases() {
    let mut base = numbered(&[(10, "p")]);
    base.cases
        .push(("gone".to_owned(), "1".to_owned(), vec!["p"]));
    base.cases
        .push(("edited".to_owned(), "1".to_owned(), vec!["p"]));
    let mut new = numbered(&[(10, "p")]);
    new.cases
        .push(("edited".to_owned(), "2".to_owned(), vec!["f"]));
    new.cases
        .push(("fresh".to_owned(), "1".to_owned(), vec!["f"]));
    new.tools = r#"{"tools":[
        {"name":"get_pods","description":"Lists the pods of a namespace","inputSchema":{"type":"object"}},
        {"name":"delete_pod","description":"Deletes a pod","inputSchema":{"type":"object"}}]}"#;
    insta::assert_snapshot!(check(&base, &new, 0));
}

#[test]
fn suites_that_have_nothing_in_common() {
    let base = plan(&[("a", "p")]);
    insta::assert_snapshot!(check(&base, &plan(&[("b", "p")]), 3));
}

#[test]
fn several_agents() {
    let mut base = numbered(&[(6, "ppp")]);
    base.agents = vec!["codex", "claude-code"];
    for case in &mut base.cases {
        case.2 = vec!["ppp", "ppp"];
    }
    let mut new = base.clone();
    new.agents = vec!["claude-code", "codex", "gemini"];
    for case in &mut new.cases {
        // Only codex gets worse.
        case.2 = vec!["ppp", "fpf", "fff"];
    }
    insta::assert_snapshot!(check(&base, &new, 1));
}

#[test]
fn another_agent_alone() {
    let base = numbered(&[(6, "pp")]);
    let mut new = numbered(&[(6, "pp")]);
    new.agents = vec!["gemini"];
    insta::assert_snapshot!(check(&base, &new, 0));
}

#[test]
fn a_comment_has_the_answer_and_the_regressions() {
    let base = numbered(&[(38, "p"), (2, "f")]);
    let mut new = numbered(&[(23, "p"), (13, "f"), (2, "p"), (2, "f")]);
    new.tokens = 1_120;
    insta::assert_snapshot!(compared(&base, &new).2);
}

#[test]
fn hostile_names_stay_text_in_a_comment() {
    let name = "a`b``c | --> <img src=x onerror=alert(1)> @octocat #1 [x](http://x)";
    let mut base = plan(&[(name, "pppppp"), (HOSTILE, "pppppp")]);
    base.tools = r#"{"tools":[{"name":"<b>|`@x`","description":"a","inputSchema":{}}]}"#;
    let mut new = plan(&[(name, "ffffff"), (HOSTILE, "ffffff")]);
    new.reason = format!("{HOSTILE} | `{name}`");
    new.agents = vec!["<script>|`"];
    new.tools = r#"{"tools":[{"name":"<b>|`@x`","description":"b","inputSchema":{}}]}"#;
    let (_, text, comment, _) = compared(&base, &new);
    for line in text.lines().chain(comment.lines()) {
        let hidden = line
            .chars()
            .find(|c| proctor_core::printable::is_hidden(*c));
        assert_eq!(hidden, None, "{line:?}");
        assert!(!line.starts_with("::"), "{line:?}");
    }
    insta::assert_snapshot!(comment);
}

#[test]
fn a_comment_is_never_too_long_for_github() {
    let names: Vec<String> = (0..300)
        .map(|n| format!("case-{n}-{}", "x".repeat(180)))
        .collect();
    let cases = |trials: &'static str| {
        let cases: Vec<(&str, &'static str)> = names.iter().map(|n| (n.as_str(), trials)).collect();
        plan(&cases)
    };
    let (exit, _, comment, _) = compared(&cases("p"), &cases("f"));
    assert_eq!(exit, 1);
    assert!(comment.len() <= 60_000, "{}", comment.len());
    assert!(
        comment.contains("… and "),
        "it says how many rows are left out"
    );
    assert!(comment.ends_with("Base `main.run`, new `new.run`\n"));
}

#[test]
fn json_has_every_number() {
    let base = numbered(&[(38, "p"), (2, "f")]);
    let new = numbered(&[(31, "p"), (9, "f")]);
    let (exit, _, _, json) = compared(&base, &new);
    assert_eq!(json["exit"], exit);
    assert_eq!(json["answer"], "regression");
    assert_eq!(json["p"].to_string(), "0.015625");
    assert_eq!(
        json["worse"]
            .as_array()
            .expect("the sample can be written")
            .len(),
        7
    );
    insta::assert_snapshot!(format!("{json:#}"));
}

#[test]
fn json_names_the_cause_of_an_inconclusive_answer() {
    let cause = |base: &Plan, new: &Plan| {
        let (exit, _, _, json) = compared(base, new);
        assert_eq!((exit, json["answer"].as_str()), (3, Some("inconclusive")));
        json["cause"]
            .as_str()
            .expect("the sample can be written")
            .to_owned()
    };
    let five = numbered(&[(5, "p")]);
    assert_eq!(cause(&five, &five), "too-few-trials");
    let open = numbered(&[(14, "p"), (5, "f"), (1, "e")]);
    assert_eq!(
        cause(&numbered(&[(20, "p")]), &open),
        "trials-without-verdict"
    );
    assert_eq!(
        cause(&plan(&[("a", "p")]), &plan(&[("b", "p")])),
        "nothing-paired"
    );
    assert_eq!(cause(&five, &numbered(&[(5, "e")])), "no-verdicts");
}
