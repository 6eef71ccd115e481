//! Consent, without a terminal to ask on.

use serde_json::json;

use super::super::gather::Choice;
use super::super::gather::tests::{execution, offer};
use super::*;

#[test]
fn e7_e30_consent_holds_for_what_was_shown_and_nothing_else() {
    let tools = [json!({"name": "a"})];
    let evals = [execution("one", "a", &json!({"x": 1}))];
    let redactor = Redactor::default();
    let first = offer(&tools, &evals);
    let granted = Granted {
        servers: vec![("library".to_owned(), print_of(&first, &redactor))],
        redactor,
    };
    let check = |offer: Offer, expected: &str| {
        let held = granted.still_holds(&[offer]);
        let text = held.map_err(|difference| difference.to_string());
        assert_eq!(text.err().unwrap_or_default(), expected);
    };
    check(offer(&tools, &evals), "");
    check(
        offer(&tools, &[execution("one", "a", &json!({"x": 2}))]),
        "`library` is not what was agreed to:\n  evals changed: `one`",
    );
    check(
        offer(&[json!({"name": "a", "description": "now evil"})], &evals),
        "`library` is not what was agreed to:\n  tools changed: `a`",
    );
    let mut other = offer(&tools, &evals);
    other.server.written = "rm -rf".to_owned();
    check(
        other,
        "`library` is not what was agreed to:\n  the server was `server` and is `rm -rf`",
    );
    let mut stranger = offer(&[], &[]);
    stranger.server.name = "stranger".to_owned();
    check(
        stranger,
        "`stranger` is not what was agreed to:\n  the server was `` and is `server`",
    );
}

/// What comes of a server, with a consent file and without a terminal.
async fn come_of(offer: &Offer, path: &Path, yes: bool) -> Result<(), Exit> {
    come_of_part(offer, &Choice::default(), path, yes).await
}

async fn come_of_part(offer: &Offer, choice: &Choice, path: &Path, yes: bool) -> Result<(), Exit> {
    let redactor = Redactor::default();
    let options = ConsentOptions {
        purpose: Purpose::Run,
        yes,
        terminal: false,
        file: Some(path),
        model: None,
        judge: None,
        runs: 1,
        max_turns: None,
        redactor: &redactor,
    };
    let planned = [offer.plan(choice)];
    let granted = obtain(&planned, &options).await.expect("no error");
    let granted = granted?;
    assert_eq!(granted.still_holds(std::slice::from_ref(offer)), Ok(()));
    Ok(())
}

#[tokio::test]
async fn e29_e30_a_consent_file_agrees_until_anything_differs() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("consent.yaml");
    let tools = [json!({"name": "a"})];
    let one = offer(&tools, &[execution("one", "a", &json!({"x": 1}))]);
    // Without a terminal, a yes or an entry nothing is agreed to, and nothing is kept.
    assert_eq!(come_of(&one, &path, false).await, Err(Exit::Usage));
    assert!(!path.exists());
    assert_eq!(come_of(&one, &path, true).await, Ok(()));
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(text.contains(r#"- "a {\"x\":1}""#), "{text}");
    assert_eq!(come_of(&one, &path, false).await, Ok(()));
    // Who agreed to one eval has not agreed to the others.
    let both = [
        execution("one", "a", &json!({"x": 1})),
        execution("more", "a", &json!({})),
    ];
    let both = offer(&tools, &both);
    let part = folder.path().join("part.yaml");
    let only_one = Choice {
        ids: vec!["one".to_owned()],
        ..Choice::default()
    };
    assert_eq!(come_of_part(&both, &only_one, &part, true).await, Ok(()));
    assert_eq!(come_of_part(&both, &only_one, &part, false).await, Ok(()));
    assert_eq!(come_of(&both, &part, false).await, Err(Exit::Usage));
    assert_eq!(come_of(&both, &part, true).await, Ok(()));
    assert_eq!(come_of_part(&both, &only_one, &part, false).await, Ok(()));
    assert_eq!(come_of(&both, &part, false).await, Ok(()));
    // Another server has no entry; its own does not touch the first.
    let mut two = offer(&tools, &[execution("two", "a", &json!({}))]);
    two.server.name = "two".to_owned();
    assert_eq!(come_of(&two, &path, false).await, Err(Exit::Usage));
    assert_eq!(come_of(&two, &path, true).await, Ok(()));
    assert_eq!(come_of(&one, &path, false).await, Ok(()));
    let text = std::fs::read_to_string(&path).unwrap();
    let changed = [
        offer(&tools, &[execution("one", "a", &json!({"x": 2}))]),
        offer(&[], &[execution("one", "a", &json!({"x": 1}))]),
    ];
    for changed in changed {
        for yes in [false, true] {
            assert_eq!(come_of(&changed, &path, yes).await, Err(Exit::Usage));
        }
    }
    assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
    std::fs::write(&path, text.replace("target", "tarpit")).unwrap();
    assert_eq!(come_of(&one, &path, true).await, Err(Exit::Usage));
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
    let planned = [Planned { offer: &one, evals }];
    let consents = with_new(Consents::default(), &planned, &redactor);
    let text = consents.render().unwrap();
    assert!(!text.contains("hunter2"), "{text}");
    assert!(text.contains("server --key [redacted:KEY]"), "{text}");
}
