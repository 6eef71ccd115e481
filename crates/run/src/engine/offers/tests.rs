//! Selections of evals, and offers for other tests.

use proctor_core::suite::server::{AllowedTools, Transport};
use serde_json::json;

use super::*;

/// An offer of a stdio server.
pub(crate) fn offer(tools: &[Value], evals: &[Value]) -> ServerOffer {
    let listed = evals.iter().cloned().map(ListedEval::from).collect();
    let server = Server {
        name: "library".to_owned(),
        transport: Transport::Stdio {
            command: "server".to_owned(),
            args: Vec::new(),
            env: std::collections::BTreeMap::new(),
            cwd: None,
            folder: ".".into(),
        },
        allowed: AllowedTools::All,
        written: "server".to_owned(),
    };
    ServerOffer::of(server, tools.to_vec(), listed)
}

pub(crate) fn execution(id: &str, tool: &str, arguments: &Value) -> Value {
    json!({
        "id": id, "name": id, "gradingType": "exact-match",
        "input": {"type": "execution", "toolName": tool, "arguments": arguments},
        "expected": {"type": "exact-match", "content": []},
    })
}

/// An eval that asks a model.
pub(crate) fn asking(id: &str, level: &str) -> Value {
    json!({
        "id": id, "name": id, "gradingType": "llm-as-judge",
        "input": {"type": level, "messages": [
            {"role": "user", "content": {"type": "text", "text": "Do it."}},
        ]},
        "expected": {"type": "llm-as-judge", "rubric": "It was done."},
    })
}

fn ids(planned: &EvalPlan<'_>) -> Vec<String> {
    planned.evals.iter().map(|eval| eval.id.clone()).collect()
}

#[test]
fn e16_e17_what_can_not_be_run_is_not_among_the_runnable() {
    let twice = execution("twice", "a", &json!({}));
    let mut unknown = asking("new", "telepathy");
    unknown["gradingType"] = "vote".into();
    let offer = offer(
        &[],
        &[twice.clone(), unknown, asking("ok", "scenario"), twice],
    );
    assert_eq!(ids(&offer.plan(&EvalSelection::default())), ["ok"]);
    let places = |found: Vec<(usize, Vec<&EvalFinding>)>| -> Vec<usize> {
        assert!(found.iter().all(|(_, about)| !about.is_empty()));
        found.into_iter().map(|(index, _)| index).collect()
    };
    assert_eq!(places(offer.invalid().collect()), [0, 3]);
    assert_eq!(places(offer.skipped().collect()), [1]);
}

#[test]
fn e6_e31_a_choice_is_by_level_by_id_and_by_what_tools_claim() {
    let claims = |name: &str, annotations: Value| json!({"name": name, "annotations": annotations});
    let tools = [
        claims("reads", json!({"readOnlyHint": true})),
        claims(
            "liar",
            json!({"readOnlyHint": true, "destructiveHint": true}),
        ),
        claims("adds", json!({"destructiveHint": false})),
        json!({"name": "silent"}),
    ];
    let evals = [
        execution("1", "reads", &json!({})),
        execution("2", "liar", &json!({})),
        execution("3", "adds", &json!({})),
        execution("4", "silent", &json!({})),
        execution("5", "absent", &json!({})),
        asking("6", "invocation"),
        asking("7", "scenario"),
    ];
    let offer = offer(&tools, &evals);
    let check = |choice: &EvalSelection, expected: &[&str]| {
        assert_eq!(ids(&offer.plan(choice)), expected);
    };
    check(
        &EvalSelection::default(),
        &["1", "2", "3", "4", "5", "6", "7"],
    );
    let level = Some(Level::Invocation);
    check(
        &EvalSelection {
            level,
            ..EvalSelection::default()
        },
        &["6"],
    );
    let named = EvalSelection {
        ids: vec!["3".to_owned(), "none".to_owned()],
        ..EvalSelection::default()
    };
    check(&named, &["3"]);
    let only_read_only = EvalSelection {
        only_read_only: true,
        ..EvalSelection::default()
    };
    check(&only_read_only, &["1", "6"]);
}
