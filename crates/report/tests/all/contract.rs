//! Surface contracts and lint findings, with hostile texts.

use proctor_core::contract::ContractJudgement;
use proctor_core::lint::{LintFinding, LintRule};
use proctor_record::event::{ChangeClass, SurfaceChange, SurfaceCompared};
use proctor_report::{contract, lint};
use serde_json::json;

fn change(class: ChangeClass, place: &str, message: &str) -> SurfaceChange {
    SurfaceChange {
        class,
        place: place.to_owned(),
        message: message.to_owned(),
        witness: None,
    }
}

fn judged() -> ContractJudgement {
    let narrowed = SurfaceChange {
        witness: Some(json!({"repo_path": "a", "max_count": 11})),
        ..change(
            ChangeClass::Breaking,
            "tools/git_log/arguments/max_count",
            "argument `max_count` now has `maximum` 10",
        )
    };
    let hostile =
        "`description` changed from \"a\" to \"x | y\u{202e}\n::error::z <b> %0A ##[group]\"";
    let compared = |server: &str, changes| SurfaceCompared {
        server: server.to_owned(),
        lock_digest: "0".repeat(64),
        changes,
    };
    ContractJudgement {
        compared: vec![
            compared(
                "git",
                vec![
                    narrowed,
                    change(ChangeClass::Review, "tools/git_log/description", hostile),
                    change(
                        ChangeClass::Safe,
                        "tools/git_add/arguments/all",
                        "new optional argument `all`",
                    ),
                ],
            ),
            compared(
                "gone",
                vec![change(ChangeClass::Breaking, "", "the server is gone")],
            ),
            compared("same", Vec::new()),
        ],
        allow: vec![ChangeClass::Safe, ChangeClass::Review],
        schema_tokens: 1_400,
        max_schema_tokens: Some(1_000),
    }
}

#[test]
fn a_broken_contract_in_all_formats() {
    let judged = judged();
    insta::assert_snapshot!("contract-text", contract::text(&judged));
    insta::assert_snapshot!("contract-markdown", contract::markdown(&judged));
    insta::assert_snapshot!(
        "contract-github",
        contract::github(&judged, "surface.lock.json")
    );
    let document = serde_json::to_string_pretty(&contract::document(&judged, "surface.lock.json"));
    insta::assert_snapshot!("contract-json", document.unwrap());
}

#[test]
fn texts_of_servers_stay_on_their_line() {
    let judged = judged();
    let text = contract::text(&judged);
    assert!(
        !text.contains('\u{202e}') && !text.contains("\n::error::z"),
        "{text}"
    );
    let github = contract::github(&judged, "a,b:c%.json");
    let commands = github.lines().filter(|line| line.starts_with("::"));
    // One for the weight, and one for each change.
    assert_eq!(commands.count(), 5, "{github}");
    assert!(!github.contains("##[group]"), "{github}");
}

#[test]
fn a_kept_contract_says_so() {
    let mut judged = judged();
    judged.compared = judged.compared.split_off(2);
    judged.max_schema_tokens = None;
    assert_eq!(contract::text(&judged), "1 server compared: no changes\n");
    assert!(contract::markdown(&judged).starts_with("### Surface contract: kept\n"));
}

#[test]
fn lint_findings_in_all_formats() {
    let finding = |rule, place: &str, message: &str, off: Option<&str>| LintFinding {
        rule,
        server: "git".to_owned(),
        place: place.to_owned(),
        message: message.to_owned(),
        off: off.map(str::to_owned),
    };
    let findings = [
        finding(
            LintRule::HiddenCharacters,
            "tools/a\u{202e}",
            "hidden characters: U+202E",
            None,
        ),
        finding(
            LintRule::MissingDescription,
            "tools/b",
            "the tool has no description\n::error::x",
            None,
        ),
        finding(
            LintRule::HeavyTool,
            "tools/c",
            "about 1600 tokens",
            Some("generated"),
        ),
    ];
    insta::assert_snapshot!("lint-text", lint::text(&findings));
    insta::assert_snapshot!("lint-github", lint::github(&findings));
    let document = serde_json::to_string_pretty(&lint::document(&findings)).unwrap();
    insta::assert_snapshot!("lint-json", document);
}
