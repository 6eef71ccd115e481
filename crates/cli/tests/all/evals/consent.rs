//! `proctor evals run --consent`: what was agreed to holds until anything differs.

use std::fs;

use serde_json::{Value, json};

use super::canned::{CannedServer, execution, reader};
use super::{PROCTOR, on_a_terminal};

const RUN: [&str; 4] = ["evals", "run", "--consent", "consent.yaml"];

fn canned() -> CannedServer {
    let tools = json!([reader("look")]);
    let canned = CannedServer::shipping(&tools, &json!([execution("one", "look")]));
    canned.answers("tools-call", &json!({"content": []}));
    canned
}

#[test]
fn e29_e30_a_consent_file_is_reviewable_and_stands_in_for_a_yes() {
    let canned = canned();
    let output = canned.run(&RUN);
    assert_eq!(output.code, Some(2), "{output}");
    assert_eq!(canned.asked("tools/call"), [Value::Null; 0]);
    assert!(!canned.path("consent.yaml").exists());
    let output = canned.run(&[&RUN[..], &["--yes"]].concat());
    assert_eq!(output.code, Some(0), "{output}");
    let text = fs::read_to_string(canned.path("consent.yaml")).unwrap();
    insta::assert_snapshot!(text);
    let output = canned.run(&RUN);
    assert_eq!(output.code, Some(0), "{output}");
    assert!(
        output.stderr.contains("Consent found in `consent.yaml`."),
        "{output}"
    );
    assert_eq!(canned.asked("tools/call").len(), 2);
    assert_eq!(
        fs::read_to_string(canned.path("consent.yaml")).unwrap(),
        text
    );
}

#[test]
fn e30_what_differs_is_shown_and_only_a_person_can_agree_again() {
    let canned = canned();
    canned.run(&[&RUN[..], &["--yes"]].concat());
    let before = fs::read_to_string(canned.path("consent.yaml")).unwrap();
    let mut changed = execution("one", "look");
    changed["input"]["arguments"] = json!({"deep": true});
    canned.answers(
        "evals-list",
        &json!({"evals": [changed, execution("two", "look")]}),
    );
    let difference =
        "`server` changed since you gave consent:\n  evals added: `two`\n  evals changed: `one`";
    for words in [&[][..], &["--yes"]] {
        let output = canned.run(&[&RUN[..], words].concat());
        assert_eq!(output.code, Some(2), "{output}");
        assert!(output.stderr.contains(difference), "{output}");
        assert_eq!(canned.asked("tools/call").len(), 1);
    }
    let command = format!("{PROCTOR} {} --yes -- sh server.sh", RUN.join(" "));
    let (code, shown) = on_a_terminal(canned.folder(), &command, "n\n");
    assert_eq!(code, Some(2), "{shown}");
    assert_eq!(
        fs::read_to_string(canned.path("consent.yaml")).unwrap(),
        before
    );
    let (code, shown) = on_a_terminal(canned.folder(), &command, "y\n");
    assert_eq!(code, Some(0), "{shown}");
    let output = canned.run(&RUN);
    assert_eq!(output.code, Some(0), "{output}");
    assert_eq!(canned.asked("tools/call").len(), 5);
}

#[test]
fn e30_a_file_that_was_tampered_with_is_an_error_and_no_consent() {
    let canned = canned();
    canned.run(&[&RUN[..], &["--yes"]].concat());
    let text = fs::read_to_string(canned.path("consent.yaml")).unwrap();
    for (from, to) in [
        ("look {}", "look"),
        ("kind: Consent", "kind: Eval"),
        ("kind", "\u{0}"),
    ] {
        fs::write(canned.path("consent.yaml"), text.replacen(from, to, 1)).unwrap();
        let output = canned.run(&[&RUN[..], &["--yes"]].concat());
        assert_eq!(output.code, Some(2), "{output}");
        assert!(output.stderr.contains("consent.yaml:"), "{output}");
    }
    assert_eq!(canned.asked("tools/call").len(), 1);
}
