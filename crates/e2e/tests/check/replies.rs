//! Servers that ask the client: elicitation, sampling and roots, as the suite configures the replies, in
//! both eras of the protocol.

use proctor_e2e::session::SessionOutcome;
use proctor_e2e::suite::SuiteFixture;
use proctor_record::event::{Blame, EventKind, Outcome, Purpose, TrialEnded};
use serde_json::{Value, json};

/// Calls `ask` for what the prompt says, then is done.
const RULES: &str = r"
  - when: {results: 0, prompt: elicitation}
    reply: {calls: [{tool: ask, arguments: {kind: elicitation}}]}
  - when: {results: 0, prompt: sampling}
    reply: {calls: [{tool: ask, arguments: {kind: sampling}}]}
  - when: {results: 0, prompt: roots}
    reply: {calls: [{tool: ask, arguments: {kind: roots}}]}
  - reply: {text: done}
";

const ERAS: [&str; 2] = ["handshake", "stateless"];

/// A suite whose server of this era asks the client, with these keys in the MCP config.
fn suite(era: &str, keys: &Value) -> SuiteFixture {
    let mut server = json!({"command": proctor_e2e::fixture(), "args": ["--era", era]});
    for (key, value) in keys.as_object().unwrap() {
        server[key] = value.clone();
    }
    let suite = SuiteFixture::on(RULES, &json!({"fixture": server}));
    suite.write(
        "sampled.yaml",
        "kind: Script\nrules:\n  - when: {user: Say yes}\n    reply: {text: 'yes', usage: {input: 70, output: 7}}\n",
    );
    suite
}

/// An assertion that the client replied with this.
fn replied(reply: &Value) -> Value {
    let result = json!({"structuredContent": {"answers": [reply]}});
    json!({"toolsUsed": [{"server": "fixture", "tool": "ask", "result": result}]})
}

fn ended(seen: &SessionOutcome) -> TrialEnded {
    let mut ends = seen.events.iter().filter_map(|event| match &event.event {
        EventKind::TrialEnded(ended) => Some(ended.clone()),
        _ => None,
    });
    ends.next_back()
        .unwrap_or_else(|| panic!("no trial ended\n{}", seen.stderr))
}

/// The input tokens of all model requests of a trial.
fn tokens_in(seen: &SessionOutcome) -> u64 {
    let replies = seen.events.iter().filter_map(|event| match &event.event {
        EventKind::ModelReplied(replied) => replied.usage.input,
        _ => None,
    });
    replies.sum()
}

/// Runs the task `kind` of a suite with these assertions.
fn run(suite: &SuiteFixture, kind: &str, spec: &Value, assertions: &Value) -> SessionOutcome {
    suite.eval(&json!({}), &json!({"assertions": assertions}));
    suite.task(kind, spec);
    suite.check(&[]).run()
}

#[track_caller]
fn passes(seen: &SessionOutcome) {
    let ended = ended(seen);
    assert_eq!(ended.outcome, Outcome::Passed, "{ended:?}\n{}", seen.stderr);
}

#[track_caller]
fn errors(seen: &SessionOutcome, parts: &[&str]) {
    let ended = ended(seen);
    assert_eq!(
        ended.outcome,
        Outcome::Errored,
        "{ended:?}\n{}",
        seen.stderr
    );
    assert_eq!(ended.blame, Some(Blame::Suite), "{ended:?}");
    let reason = ended.reason.unwrap();
    for part in parts {
        assert!(reason.contains(part), "{reason}");
    }
}

#[test]
fn an_elicitation_is_answered_by_field() {
    for era in ERAS {
        let suite = suite(
            era,
            &json!({"elicitation": {"name": "Ada", "city": "London"}}),
        );
        let reply = json!({"action": "accept", "content": {"$exact": {"name": "Ada"}}});
        passes(&run(&suite, "elicitation", &json!({}), &replied(&reply)));
    }
}

#[test]
fn an_elicitation_is_answered_by_the_first_rule_that_matches() {
    let rules = json!([
        {"when": {"message": {"$match": "password"}}, "action": "cancel"},
        {"when": {"message": {"$match": "name"}}, "action": "decline"},
        {"content": {"name": "Ada"}},
    ]);
    for era in ERAS {
        let suite = suite(era, &json!({"elicitation": rules}));
        let reply = json!({"$exact": {"action": "decline"}});
        passes(&run(&suite, "elicitation", &json!({}), &replied(&reply)));
    }
}

#[test]
fn a_task_replaces_the_answers_of_the_mcp_config() {
    for era in ERAS {
        let suite = suite(era, &json!({"elicitation": {"name": "Ada"}}));
        let own = json!({"replies": {"fixture": {"elicitation": "cancel"}}});
        let reply = json!({"$exact": {"action": "cancel"}});
        passes(&run(&suite, "elicitation", &own, &replied(&reply)));
    }
}

#[test]
fn an_answer_that_does_not_fit_the_requested_schema_is_the_suites_fault() {
    let assertions = json!({"minToolCalls": 1});
    for era in ERAS {
        for (elicitation, part) in [
            (json!({"name": 5}), "5 is not of type \"string\""),
            (
                json!({"nmae": "Ada"}),
                "no value for any requested field (`name`)",
            ),
            (
                json!([{"content": {"name": "Ada", "age": 3}}]),
                "the server does not request `age`",
            ),
            (
                json!([{"when": {"message": "Sure?"}, "action": "decline"}]),
                "matches the request `What is your name?`",
            ),
        ] {
            let suite = suite(era, &json!({"elicitation": elicitation}));
            let seen = run(&suite, "elicitation", &json!({}), &assertions);
            errors(&seen, &["the server `fixture`: ", "mcp.json:1", part]);
            assert_eq!(seen.code, Some(3), "{era}");
        }
    }
}

#[test]
fn an_elicitation_without_a_configured_answer_is_declined_and_shown() {
    let suite = suite("handshake", &json!({}));
    let reply = json!({"$exact": {"action": "decline"}});
    let seen = run(&suite, "elicitation", &json!({}), &replied(&reply));
    passes(&seen);
    let view = suite.proctor(&["result", "view", seen.record.to_str().unwrap()]);
    let text = String::from_utf8(view.stdout).unwrap();
    let shown = "What is your name?\n  → {\"action\":\"decline\"}";
    assert!(text.contains("fixture asks  elicitation/create"), "{text}");
    assert!(text.contains(shown), "{text}");
}

#[test]
fn answers_of_a_task_that_no_server_requests_never_pass() {
    let own = json!({"replies": {"fixture": {"elicitation": [
        {"when": {"message": {"$match": "name"}}, "content": {"name": "Ada"}},
        {"when": {"message": {"$match": "age"}}, "content": {"age": 36}},
    ]}}});
    let suite = suite("handshake", &json!({}));
    let seen = run(&suite, "elicitation", &own, &json!({"minToolCalls": 1}));
    errors(
        &seen,
        &["requested nothing that `elicitation`", "elicitation.yaml:1"],
    );
}

#[test]
fn a_model_answers_sampling_requests_and_its_tokens_count() {
    for era in ERAS {
        let suite = suite(
            era,
            &json!({"sampling": {"model": "scripted:sampled.yaml"}}),
        );
        let reply = json!({
            "role": "assistant",
            "content": {"type": "text", "text": "yes"},
            "model": {"$match": "^scripted:"},
        });
        let seen = run(&suite, "sampling", &json!({}), &replied(&reply));
        passes(&seen);
        let asks = seen.events.iter().filter_map(|event| match &event.event {
            EventKind::ModelAsked(asked) => Some(asked.purpose),
            _ => None,
        });
        let asks: Vec<Purpose> = asks.collect();
        assert_eq!(asks, [Purpose::Agent, Purpose::Sampling, Purpose::Agent]);
        // The usage of the trial includes what the sampling request used.
        let tokens = format!("Tokens    {} in", tokens_in(&seen));
        assert!(seen.stdout.contains(&tokens), "{tokens}\n{}", seen.stdout);
    }
}

#[test]
fn sampling_counts_into_the_budget() {
    let suite = suite(
        "handshake",
        &json!({"sampling": {"model": "scripted:sampled.yaml"}}),
    );
    suite.eval(&json!({}), &json!({"assertions": {"minToolCalls": 1}}));
    suite.task("sampling", &json!({}));
    let seen = suite.check(&["--budget-tokens", "70"]).run();
    let ended = ended(&seen);
    assert_eq!(ended.outcome, Outcome::Cancelled, "{ended:?}");
}

#[test]
fn a_sampling_request_without_a_rule_is_the_suites_fault() {
    for era in ERAS {
        let suite = suite(
            era,
            &json!({"sampling": {"model": "scripted:sampled.yaml"}}),
        );
        suite.write(
            "sampled.yaml",
            "kind: Script\nrules:\n  - {when: {user: weather}, reply: {text: sunny}}\n",
        );
        let seen = run(&suite, "sampling", &json!({}), &json!({"minToolCalls": 1}));
        errors(&seen, &["sampled.yaml: no rule matches"]);
    }
}

#[test]
fn sampling_is_refused_if_the_suite_says_so() {
    let suite = suite("handshake", &json!({"sampling": "refuse"}));
    let reply = json!({"error": {"message": {"$match": "refused"}}});
    passes(&run(&suite, "sampling", &json!({}), &replied(&reply)));
    let stateless = self::suite("stateless", &json!({"sampling": "refuse"}));
    let seen = run(
        &stateless,
        "sampling",
        &json!({}),
        &json!({"minToolCalls": 1}),
    );
    passes(&seen);
}

#[test]
fn a_server_gets_the_roots_of_the_suite() {
    for era in ERAS {
        let suite = suite(era, &json!({"roots": ["data", "https://a.example/x"]}));
        let data = format!("file://{}", suite.path("data").display());
        let reply = json!({"roots": [{"uri": data}, {"uri": "https://a.example/x"}]});
        passes(&run(&suite, "roots", &json!({}), &replied(&reply)));
    }
}

#[test]
fn mistakes_in_replies_are_found_before_anything_starts() {
    let check = |keys: Value, part: &str| {
        let suite = suite("handshake", &keys);
        let seen = run(
            &suite,
            "elicitation",
            &json!({}),
            &json!({"minToolCalls": 1}),
        );
        assert_eq!(seen.code, Some(2), "{}", seen.stderr);
        assert!(seen.stderr.contains(part), "{}", seen.stderr);
        assert!(seen.stderr.contains("mcp.json:1"), "{}", seen.stderr);
    };
    check(json!({"elicitation": "declin"}), "did you mean `decline`?");
    check(json!({"elicitation": {}}), "no field has a value");
    check(
        json!({"elicitation": [{"action": "decline"}, {"action": "cancel"}]}),
        "matches every request",
    );
    check(
        json!({"elicitation": [{"action": "decline", "content": {"a": 1}}]}),
        "only an accepted form has `content`",
    );
    check(
        json!({"elicitation": [{"contnt": {"a": 1}}]}),
        "did you mean `content`?",
    );
    check(
        json!({"sampling": {"model": "scriptd:a"}}),
        "did you mean `scripted`?",
    );
    check(
        json!({"sampling": {"model": "scripted:none.yaml"}}),
        "none.yaml",
    );
    check(json!({"sampling": "refus"}), "did you mean `refuse`?");
}

#[test]
fn replies_of_one_trial_need_a_client_of_their_own() {
    let suite = suite(
        "handshake",
        &json!({"sampling": {"model": "scripted:sampled.yaml"}}),
    );
    let assertions = json!({"assertions": {"minToolCalls": 1}});
    suite.eval(&json!({"isolation": "run"}), &assertions);
    let own =
        json!({"replies": {"fixture": {"elicitation": "cancel"}, "fixtur": {"roots": ["a"]}}});
    suite.task("elicitation", &own);
    let seen = suite.check(&[]).run();
    assert_eq!(seen.code, Some(2), "{}", seen.stderr);
    for part in [
        "a task can't have `replies` with `isolation: run`",
        "the sampling requests of `fixture`",
        "`replies` names unknown server `fixtur`",
        "did you mean `fixture`?",
    ] {
        assert!(seen.stderr.contains(part), "{part}\n{}", seen.stderr);
    }
}
