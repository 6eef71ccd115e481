//! Consent, without a terminal to ask on.

use serde_json::json;

use super::super::offers::EvalSelection;
use super::super::offers::tests::{execution, offer};
use super::*;
use crate::engine::host::NonInteractiveHost;

#[test]
fn e7_e30_consent_holds_for_what_was_shown_and_nothing_else() {
    let tools = [json!({"name": "a"})];
    let evals = [execution("one", "a", &json!({"x": 1}))];
    let redactor = Redactor::default();
    let first = offer(&tools, &evals);
    let granted = ConsentGrant::of(&[first.plan(&EvalSelection::default())], &redactor);
    let check = |offer: ServerOffer, expected: &str| {
        let held = granted.still_holds(&[offer]);
        let text = held.map_err(|difference| difference.to_string());
        assert_eq!(text.err().unwrap_or_default(), expected);
    };
    check(offer(&tools, &evals), "");
    check(
        offer(&tools, &[execution("one", "a", &json!({"x": 2}))]),
        "`library` changed since you gave consent:\n  evals changed: `one`\
         \n    eval `one` input.arguments.x: 1 → 2",
    );
    check(
        offer(&[json!({"name": "a", "description": "now evil"})], &evals),
        "`library` changed since you gave consent:\n  tools changed: `a`\
         \n    tool `a` description: (absent) → \"now evil\"",
    );
    let mut other = offer(&tools, &evals);
    other.server.written = "rm -rf".to_owned();
    check(
        other,
        "`library` changed since you gave consent:\n  the server changed from `server` to `rm -rf`",
    );
    let mut stranger = offer(&[], &[]);
    stranger.server.name = "stranger".to_owned();
    check(
        stranger,
        "`stranger` changed since you gave consent:\n  the server changed from `` to `server`",
    );
}

/// The result for a server with a consent file and without a terminal.
async fn come_of(offer: &ServerOffer, path: &Path, yes: bool) -> Result<(), EngineError> {
    come_of_part(offer, &EvalSelection::default(), path, yes).await
}

async fn come_of_part(
    offer: &ServerOffer,
    choice: &EvalSelection,
    path: &Path,
    yes: bool,
) -> Result<(), EngineError> {
    let redactor = Redactor::default();
    let options = ConsentOptions {
        purpose: ConsentPurpose::Run,
        yes,
        file: Some(path),
        model: None,
        judge: None,
        runs: 1,
        max_turns: None,
        redactor: &redactor,
    };
    let planned = [offer.plan(choice)];
    let unchanged = std::future::pending();
    let granted = obtain(&planned, &options, &NonInteractiveHost, unchanged).await?;
    assert_eq!(granted.still_holds(std::slice::from_ref(offer)), Ok(()));
    Ok(())
}

#[tokio::test]
async fn e29_e30_a_consent_file_agrees_until_anything_differs() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("consent.yaml");
    let tools = [json!({"name": "a"})];
    let one = offer(&tools, &[execution("one", "a", &json!({"x": 1}))]);
    // Without a terminal, `--yes` or an entry there is no consent, and nothing is saved.
    assert!(come_of(&one, &path, false).await.is_err());
    assert!(!path.exists());
    come_of(&one, &path, true).await.unwrap();
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(text.contains(r#"- "a {\"x\":1}""#), "{text}");
    come_of(&one, &path, false).await.unwrap();
    // Consent to one eval does not cover the others.
    let both = [
        execution("one", "a", &json!({"x": 1})),
        execution("more", "a", &json!({})),
    ];
    let both = offer(&tools, &both);
    let part = folder.path().join("part.yaml");
    let only_one = EvalSelection {
        ids: vec!["one".to_owned()],
        ..EvalSelection::default()
    };
    come_of_part(&both, &only_one, &part, true).await.unwrap();
    come_of_part(&both, &only_one, &part, false).await.unwrap();
    assert!(come_of(&both, &part, false).await.is_err());
    come_of(&both, &part, true).await.unwrap();
    come_of_part(&both, &only_one, &part, false).await.unwrap();
    come_of(&both, &part, false).await.unwrap();
    // Another server has no entry; its own entry does not change the first.
    let mut two = offer(&tools, &[execution("two", "a", &json!({}))]);
    two.server.name = "two".to_owned();
    assert!(come_of(&two, &path, false).await.is_err());
    come_of(&two, &path, true).await.unwrap();
    come_of(&one, &path, false).await.unwrap();
    let text = std::fs::read_to_string(&path).unwrap();
    let changed = [
        offer(&tools, &[execution("one", "a", &json!({"x": 2}))]),
        offer(&[], &[execution("one", "a", &json!({"x": 1}))]),
    ];
    for changed in changed {
        for yes in [false, true] {
            assert!(come_of(&changed, &path, yes).await.is_err());
        }
    }
    assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
    std::fs::write(&path, text.replace("target", "tarpit")).unwrap();
    assert!(come_of(&one, &path, true).await.is_err());
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2);
}

#[test]
fn e30_no_secret_of_a_command_is_in_a_consent_file() {
    let mut one = offer(
        &[],
        &[execution("one", "a", &json!({"key": "hunter2-hunter2"}))],
    );
    one.server.written = "server --key hunter2-hunter2".to_owned();
    let redactor = Redactor::new([("KEY".to_owned(), "hunter2-hunter2".to_owned())]);
    let evals = one.runnable().collect();
    let planned = [EvalPlan { offer: &one, evals }];
    let consents = with_new(Consents::default(), &planned, &redactor);
    let text = consents.render().unwrap();
    assert!(!text.contains("hunter2"), "{text}");
    assert!(text.contains("server --key [redacted:KEY]"), "{text}");
}

#[test]
fn a_call_is_one_line_of_a_consent_file() {
    let eval = mcp_evals::ListedEval::from(execution("a", "t", &json!({"b": 1, "a": "x\ny"})));
    let (tool, arguments) = call(eval.eval().unwrap()).unwrap();
    let text = call_text(tool, arguments, &Redactor::default());
    assert_eq!(text, r#"t {"b":1,"a":"x\ny"}"#);
}
