//! `proctor evals run --consent`: what was agreed to holds until anything differs.

use std::fs;

use serde_json::{Value, json};

use super::canned::{CannedServer, execution, reader};
use super::{PROCTOR, on_a_terminal, while_asked};

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
    let mut added = execution("two", "look");
    added["input"]["arguments"] = json!({"wide": true});
    canned.answers("evals-list", &json!({"evals": [changed, added]}));
    let difference = "`server` changed since you gave consent:\n  evals added: `two`\n  evals changed: `one`\
         \n    call before: look {}\n    call now:    look {\"deep\":true}\n    call now:    look {\"wide\":true}\n";
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

#[test]
fn e7_a_change_while_the_user_is_asked_cancels_the_question() {
    let folder = tempfile::tempdir().unwrap();
    let write = |title: &str| {
        let mut eval = execution("one", "search_books");
        eval["input"]["arguments"] = json!({"title": title});
        let text = json!({"evals": [eval]}).to_string();
        fs::write(folder.path().join("evals.json"), text).unwrap();
    };
    write("Solaris");
    let command = format!(
        "{PROCTOR} evals run -- {PROCTOR} evals serve --evals evals.json -- {PROCTOR} __demo"
    );
    // Without an answer: what is asked for is not there any more.
    let (code, shown) = while_asked(folder.path(), &command, |_| write("Dune"));
    assert_eq!(code, Some(2), "{shown}");
    for part in [
        "changed since you gave consent:",
        "evals changed: `one`",
        "eval `one` input.arguments.title: \"Solaris\" → \"Dune\"",
    ] {
        assert!(shown.contains(part), "`{part}` is not in\n{shown}");
    }
}
