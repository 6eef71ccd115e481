//! Conversations of three turns on server-everything and server-memory, with elicitations that are answered
//! and declined.

use proctor_e2e::session::SessionOutcome;
use proctor_e2e::suite::SuiteFixture;
use proctor_record::event::{EventKind, Outcome, TrialEnded};
use serde_json::{Value, json};

use crate::servers;

fn ended(seen: &SessionOutcome) -> Vec<TrialEnded> {
    let ends = seen.events.iter().filter_map(|event| match &event.event {
        EventKind::TrialEnded(ended) => Some(ended.clone()),
        _ => None,
    });
    ends.collect()
}

#[track_caller]
fn all_passed(seen: &SessionOutcome, trials: usize) {
    let ended = ended(seen);
    let passed = |ended: &&TrialEnded| ended.outcome == Outcome::Passed;
    let all = ended.iter().filter(passed).count();
    assert_eq!(
        (all, ended.len()),
        (trials, trials),
        "{ended:?}\n{}",
        seen.stderr
    );
    assert_eq!(seen.code, Some(0), "{}", seen.stderr);
}

/// An assertion that a tool of the server was called, and that its result contains a text like this.
fn told(server: &str, tool: &str, pattern: &str) -> Value {
    let text = json!({"content": {"$contains": {"text": {"$match": pattern}}}});
    json!({"toolsUsed": [{"server": server, "tool": tool, "result": text}]})
}

const EVERYTHING: &str = r"
  - when: {user: Hello, results: 0}
    reply: {calls: [{tool: echo, arguments: {message: hello}}]}
  - when: {user: profile, results: 1}
    reply: {calls: [{tool: trigger-elicitation-request, arguments: {}}]}
  - when: {user: haiku, results: 2}
    reply: {calls: [{tool: trigger-sampling-request, arguments: {prompt: a haiku, maxTokens: 50}}]}
  - reply: {text: 'Done: {user}'}
";

#[test]
fn a_conversation_on_everything_has_its_elicitation_answered_or_declined() {
    let server = json!({
        "command": servers::node("mcp-server-everything"),
        "args": ["stdio"],
        "elicitation": {"name": "Ada", "check": true, "email": "ada@example.com", "integer": 7},
        "sampling": {"model": "scripted:sampled.yaml"},
    });
    let suite = SuiteFixture::on(EVERYTHING, &json!({"everything": server}));
    suite.write(
        "sampled.yaml",
        "kind: Script\nrules:\n  - {when: {user: haiku}, reply: {text: an old silent pond}}\n",
    );
    let asked = "trigger-elicitation-request";
    let turns = |elicited: &str| {
        json!([
            {
                "prompt": {"inline": "Create my profile."},
                "assertions": told("everything", asked, elicited),
            },
            {
                "prompt": {"inline": "Write a haiku."},
                "assertions": told("everything", "trigger-sampling-request", "an old silent pond"),
            },
        ])
    };
    let prompt = json!({"inline": "Hello."});
    suite.eval(
        &json!({}),
        &json!({"assertions": told("everything", "echo", "Echo: hello")}),
    );
    let answered = turns("- Name: Ada\n- Agreed to terms: true\n- Email: ada@example.com");
    suite.task("answered", &json!({"prompt": prompt, "turns": answered}));
    let declined = turns("User declined");
    let own = json!({"everything": {"elicitation": "decline"}});
    suite.task(
        "declined",
        &json!({"prompt": prompt, "turns": declined, "replies": own}),
    );
    all_passed(&suite.check(&[]).run(), 2);

    // The same server, a value that its schema does not allow.
    let wrong = json!({"everything": {"elicitation": {"name": "Ada", "integer": 700}}});
    suite.task(
        "declined",
        &json!({"prompt": prompt, "turns": declined, "replies": wrong}),
    );
    let seen = suite.check(&["--run", "^declined$"]).run();
    let ended = ended(&seen);
    assert_eq!(ended[0].outcome, Outcome::Errored, "{ended:?}");
    let reason = ended[0].reason.clone().unwrap_or_default();
    assert!(
        reason.contains("`integer`: 700 is greater than the maximum of 100"),
        "{reason}"
    );
}

/// One call at a time: of two calls at once, this server loses the effect of one.
const MEMORY: &str = r"
  - when: {user: lives in London, results: 0}
    reply: {calls: [{tool: create_entities, arguments: {entities: [{name: Ada, entityType: person, observations: [lives in London]}]}}]}
  - when: {user: moved, results: 1}
    reply: {calls: [{tool: delete_observations, arguments: {deletions: [{entityName: Ada, observations: [lives in London]}]}}]}
  - when: {user: moved, results: 2}
    reply: {calls: [{tool: add_observations, arguments: {observations: [{entityName: Ada, contents: [lives in Paris]}]}}]}
  - when: {user: Where, results: 3}
    reply: {calls: [{tool: open_nodes, arguments: {names: [Ada]}}]}
  - when: {user: Where}
    reply: {text: In Paris.}
  - reply: {text: I will remember that.}
";

const FORGETFUL_USER: &str = r"
  - when: {turn: 1}
    reply: {text: She moved to Paris. Correct that.}
  - when: {turn: 2}
    reply: {text: Where does Ada live?}
  - when: {user: Paris}
    reply: {text: '[end]'}
";

#[test]
fn a_conversation_on_memory_corrects_what_it_said_before() {
    let folder = tempfile::tempdir().unwrap();
    let server = |file: &str| {
        json!({"memory": {
            "command": servers::node("mcp-server-memory"),
            "env": {"MEMORY_FILE_PATH": folder.path().join(file)},
        }})
    };
    let prompt = json!({"inline": "Remember that Ada lives in London."});
    let fixed = json!([
        {
            "prompt": {"inline": "She moved to Paris. Correct that."},
            "assertions": {"calls": {"mode": "exact", "list": [
                {"server": "memory", "tool": "delete_observations"},
                {"server": "memory", "tool": "add_observations"},
            ]}},
        },
        {
            "prompt": {"inline": "Where does Ada live?"},
            "assertions": told("memory", "open_nodes", "lives in Paris"),
        },
    ]);
    let suite = SuiteFixture::on(MEMORY, &server("fixed.jsonl"));
    suite.eval(&json!({}), &json!({"assertions": {"maxToolCalls": 4}}));
    suite.task("move", &json!({"prompt": prompt, "turns": fixed}));
    all_passed(&suite.check(&[]).run(), 1);

    let suite = SuiteFixture::on(MEMORY, &server("played.jsonl"));
    suite.eval(&json!({}), &json!({"assertions": {"maxToolCalls": 4}}));
    suite.write(
        "user.yaml",
        &format!("kind: Script\nrules:\n{FORGETFUL_USER}"),
    );
    let user =
        json!({"model": "scripted:../user.yaml", "goal": "Correct what the agent knows of Ada."});
    let played =
        json!([{"user": user, "assertions": told("memory", "open_nodes", "lives in Paris")}]);
    suite.task("move", &json!({"prompt": prompt, "turns": played}));
    all_passed(&suite.check(&[]).run(), 1);

    // An agent that does not correct itself fails that turn, though the whole has enough calls.
    let forgetful = MEMORY.replace("moved, results: 1", "nothing, results: 1");
    let forgetful = forgetful.replace("Where, results: 3", "Where, results: 1");
    let suite = SuiteFixture::on(&forgetful, &server("forgetful.jsonl"));
    suite.eval(&json!({}), &json!({"assertions": {"minToolCalls": 2}}));
    suite.task("move", &json!({"prompt": prompt, "turns": fixed}));
    let seen = suite.check(&[]).run();
    let ended = ended(&seen);
    assert_eq!(ended[0].outcome, Outcome::Failed, "{ended:?}");
    let reason = ended[0].reason.clone().unwrap_or_default();
    assert!(reason.starts_with("turn 2: calls: "), "{reason}");
}
