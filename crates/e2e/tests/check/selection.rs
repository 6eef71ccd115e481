//! Selection rows: the first turn of a model is graded, and no tool is called.

use std::process::Command;

use proctor_e2e::session::SessionOutcome;
use proctor_e2e::suite::SuiteFixture;
use proctor_record::event::EventKind;
use proctor_record::record::RunReader;
use serde_json::{Value, json};

/// A model that answers by the first word of its prompt.
const RULES: &str = r#"
  - {when: {prompt: "^echo"}, reply: {calls: [{tool: echo, arguments: {text: hi}}]}}
  - {when: {prompt: "^add"}, reply: {calls: [{tool: add, arguments: {a: 1, b: 2}}]}}
  - {when: {prompt: "^both"}, reply: {calls: [{tool: echo, arguments: {text: hi}}, {tool: add, arguments: {a: 1, b: 2}}]}}
  - {when: {prompt: "^invent"}, reply: {calls: [{tool: blame, arguments: {}}]}}
  - {when: {prompt: "^malformed"}, reply: {calls: [{tool: echo, malformed: "{"}]}}
  - {when: {prompt: "^refuse"}, reply: {refuse: "no"}}
  - {when: {prompt: "^silent"}, reply: {text: ""}}
  - {when: {prompt: "^lost"}, reply: {error: {kind: key, detail: "gone"}}}
  - {reply: {text: "just prose"}}
"#;

/// A suite on the fixture server, which logs every message to `wire.jsonl`.
pub(crate) fn suite(rows: &Value) -> SuiteFixture {
    let suite = SuiteFixture::new(RULES, &[]);
    let log = suite.path("wire.jsonl").display().to_string();
    let server = json!({"command": proctor_e2e::fixture(), "args": ["--log", log]});
    suite.write(
        "mcp.json",
        &json!({"mcpServers": {"fixture": server}}).to_string(),
    );
    let sets = json!([{"selection": "rows.yaml", "server": "fixture"}]);
    suite.eval(&json!({"taskSets": sets}), &json!({}));
    let file = json!({"kind": "Selection", "metadata": {"name": "r"}, "spec": {"rows": rows}});
    suite.write("rows.yaml", &file.to_string());
    suite
}

/// The messages that the server saw, as its own log has them.
pub(crate) fn wire_log(suite: &SuiteFixture) -> String {
    std::fs::read_to_string(suite.path("wire.jsonl")).unwrap_or_default()
}

/// The outcome, blame and reason of each case, by the id of its row.
fn outcomes(seen: &SessionOutcome) -> Vec<(String, String)> {
    let result: Value = serde_json::from_str(&seen.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}\n{}", seen.stdout, seen.stderr));
    let entry = |entry: &Value| {
        let name = entry["taskName"].as_str().unwrap();
        let id = name.trim_start_matches("r[").trim_end_matches(']');
        let ours = &entry["proctor"];
        let text = |value: &Value| value.as_str().unwrap_or("–").to_owned();
        let outcome = format!("{} {}", text(&ours["outcome"]), text(&ours["blame"]));
        (id.to_owned(), outcome)
    };
    let results = result["results"].as_array().unwrap();
    results.iter().map(entry).collect()
}

/// The end of a command without a record of its own.
struct Ended {
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

fn proctor(words: &[&str]) -> Ended {
    let output = Command::new(proctor_e2e::proctor())
        .args(words)
        .output()
        .unwrap();
    Ended {
        code: output.status.code(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

fn document(seen: &SessionOutcome) -> Value {
    serde_json::from_str(&seen.stdout).unwrap()
}

#[test]
fn each_first_turn_has_its_outcome_and_no_tool_is_called() {
    let rows = json!([
        {"id": "right", "prompt": "echo a", "expect": "echo", "arguments": {"text": {"$exists": true}}},
        {"id": "either", "prompt": "add a", "expect": ["echo", "add"]},
        {"id": "none", "prompt": "joke", "expect": "none"},
        {"id": "contains", "prompt": "both a", "expect": "echo", "mode": "contains"},
        {"id": "wrong", "prompt": "add b", "expect": "echo"},
        {"id": "arguments", "prompt": "echo b", "expect": "echo", "arguments": {"text": "bye"}},
        {"id": "called", "prompt": "echo c", "expect": "none"},
        {"id": "more", "prompt": "both b", "expect": "echo"},
        {"id": "forbidden", "prompt": "both c", "expect": "echo", "mode": "contains", "not": "add"},
        {"id": "prose", "prompt": "hello", "expect": "add"},
        {"id": "invented", "prompt": "invent", "expect": "echo"},
        {"id": "malformed", "prompt": "malformed", "expect": "echo"},
        {"id": "refused", "prompt": "refuse", "expect": "none"},
        {"id": "silent", "prompt": "silent", "expect": "none"},
        {"id": "lost", "prompt": "lost", "expect": "echo"},
    ]);
    let suite = suite(&rows);
    let seen = suite.check(&["-o", "json"]).run();
    assert_eq!(seen.code, Some(1), "{}", seen.stderr);
    let expected = [
        ("right", "passed –"),
        ("either", "passed –"),
        ("none", "passed –"),
        ("contains", "passed –"),
        ("wrong", "failed agent"),
        ("arguments", "failed agent"),
        ("called", "failed agent"),
        ("more", "failed agent"),
        ("forbidden", "failed agent"),
        ("prose", "failed agent"),
        ("invented", "failed agent"),
        ("malformed", "failed agent"),
        ("refused", "failed agent"),
        ("silent", "failed agent"),
        ("lost", "errored infra"),
    ];
    let expected = expected.map(|(id, outcome)| (id.to_owned(), outcome.to_owned()));
    assert_eq!(outcomes(&seen), expected);
    let log = wire_log(&suite);
    assert!(log.contains("tools/list"), "{log}");
    assert!(!log.contains("tools/call"), "a tool was called");
    let selection = &document(&seen)["proctor"]["selection"][0];
    assert_eq!(selection["trials"], 14);
    assert_eq!(selection["inventedNames"], json!({"blame": 1}));
    assert_eq!(selection["answeredWithoutCall"], json!({"r[prose]": 1}));
    assert_eq!(selection["wrongArguments"], 2);
}

#[test]
fn a_conversation_ends_with_the_turn_that_is_graded() {
    let rows = json!([{
        "id": "talk", "expect": "none",
        "messages": [
            {"role": "user", "content": "hello"},
            {"role": "assistant", "content": "what do you want?"},
            {"role": "user", "content": "an answer"},
        ],
    }]);
    let suite = suite(&rows);
    let seen = suite.check(&[]).run();
    assert_eq!(seen.code, Some(0), "{}\n{}", seen.stdout, seen.stderr);
    let run = RunReader::open(&seen.record).unwrap();
    let asked = seen.events.iter().find_map(|event| match &event.event {
        EventKind::ModelAsked(asked) => Some(&asked.request),
        _ => None,
    });
    let asked = run.body_bytes(asked.unwrap()).unwrap().unwrap();
    let asked = String::from_utf8(asked.into_owned()).unwrap();
    assert!(asked.contains("what do you want?"), "{asked}");
}

#[test]
fn unknown_tools_are_errors_before_a_model_is_asked() {
    let rows = json!([
        {"prompt": "echo a", "expect": "ecko"},
        {"prompt": "echo b", "expect": "echo", "not": ["nothing"]},
    ]);
    let suite = suite(&rows);
    let seen = suite.check(&[]).run();
    assert_eq!(seen.code, Some(2), "{}\n{}", seen.stdout, seen.stderr);
    let expected = "rows.yaml:1: the server `fixture` lists no tool `ecko`; did you mean `echo`?";
    assert!(seen.stderr.contains(expected), "{}", seen.stderr);
    assert!(
        seen.stderr.contains("lists no tool `nothing`"),
        "{}",
        seen.stderr
    );
    assert!(seen.events.is_empty(), "a trial was started");
}

#[test]
fn a_tool_of_several_servers_needs_its_server() {
    let suite = suite(&json!([{"prompt": "echo a", "expect": "echo"}]));
    let server = json!({"command": proctor_e2e::fixture(), "args": []});
    let servers = json!({"mcpServers": {"fixture": server, "other": server}});
    suite.write("mcp.json", &servers.to_string());
    let sets = |set: Value| suite.eval(&json!({"taskSets": [set]}), &json!({}));
    sets(json!({"selection": "rows.yaml"}));
    let seen = suite.check(&[]).run();
    assert_eq!(seen.code, Some(2), "{}", seen.stderr);
    let expected = "several servers list the tool `echo`: `fixture`, `other`";
    assert!(seen.stderr.contains(expected), "{}", seen.stderr);
    sets(json!({"selection": "rows.yaml", "server": "other"}));
    let seen = suite.check(&[]).run();
    assert_eq!(seen.code, Some(1), "{}", seen.stderr);
    let expected = "expected `echo`, found `fixture.echo`";
    assert!(seen.stdout.contains(expected), "{}", seen.stdout);
    sets(json!({"selection": "rows.yaml", "server": "fixture"}));
    assert_eq!(suite.check(&[]).run().code, Some(0));
}

#[test]
fn a_regrade_uses_the_rows_as_they_are_now() {
    let suite = suite(&json!([{"id": "x", "prompt": "echo a", "expect": "add"}]));
    let seen = suite.check(&[]).run();
    assert_eq!(seen.code, Some(1), "{}", seen.stderr);
    let rows = json!([{"id": "x", "prompt": "echo a", "expect": "echo"}]);
    let file = json!({"kind": "Selection", "metadata": {"name": "r"}, "spec": {"rows": rows}});
    suite.write("rows.yaml", &file.to_string());
    let record = seen.record.display().to_string();
    let regraded = proctor(&["result", "regrade", &record]);
    assert_eq!(
        regraded.code,
        Some(0),
        "{}\n{}",
        regraded.stdout,
        regraded.stderr
    );
    let (_, tools) = regraded.stdout.split_once("Selection:").unwrap();
    assert!(tools.contains("echo     100.0%  100.0%"), "{tools}");
    assert!(!tools.contains("add"), "{tools}");
    let regraded = proctor(&["result", "regrade", &record, "-o", "json"]);
    let regraded: Value = serde_json::from_str(&regraded.stdout).unwrap();
    let selection = &regraded["proctor"]["selection"][0];
    assert_eq!(selection["tools"][0]["tool"], "echo");
    assert_eq!(selection["confusion"][0]["count"], 1);
}

#[test]
fn the_same_figures_are_in_every_report() {
    let rows = json!([
        {"id": "1", "prompt": "echo a", "expect": "echo"},
        {"id": "2", "prompt": "add a", "expect": "echo"},
        {"id": "3", "prompt": "hello", "expect": "add"},
    ]);
    let seen = suite(&rows).check(&[]).run();
    let line = "echo          100.0%   50.0%  add 1";
    assert!(seen.stdout.contains(line), "{}", seen.stdout);
    let record = seen.record.display().to_string();
    let of = |words: &[&str]| {
        let mut all = vec!["result"];
        all.extend(words);
        all.insert(2, &record);
        let seen = proctor(&all);
        assert_eq!(seen.code, Some(0), "{words:?}: {}", seen.stderr);
        seen.stdout
    };
    assert!(of(&["summary"]).contains(line));
    let markdown = of(&["convert", "--to", "markdown"]);
    assert!(
        markdown.contains("| `echo` | 100.0% | 50.0% | 1 | `add` 1 |"),
        "{markdown}"
    );
    let tools = of(&["convert", "--to", "csv", "--table", "tools"]);
    assert!(tools.contains(",fixture,echo,1,0,1,1,0.5\n"), "{tools}");
    let confusion = of(&["convert", "--to", "csv", "--table", "confusion"]);
    assert!(
        confusion.contains(",fixture,add,,(no call),1\n"),
        "{confusion}"
    );
    assert!(
        confusion.contains(",fixture,echo,fixture,add,1\n"),
        "{confusion}"
    );
    let summary: Value = serde_json::from_str(&of(&["summary", "-o", "json"])).unwrap();
    let result: Value = serde_json::from_str(&of(&["show", "-o", "json"])).unwrap();
    assert_eq!(summary["selection"], result["proctor"]["selection"]);
    assert_eq!(
        summary["selection"][0]["tools"].as_array().unwrap().len(),
        3
    );
}

#[test]
fn the_first_file_has_a_row_per_tool_that_a_person_must_write() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path().display().to_string();
    let fixture = proctor_e2e::fixture().display().to_string();
    let init = || proctor(&["init", &at, "--selection", "--", &fixture]);
    let seen = init();
    assert_eq!(seen.code, Some(0), "{}", seen.stderr);
    let path = folder.path().join("selection.yaml");
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(text.contains("expect: \"echo\""), "{text}");
    let shown = path.display().to_string();
    let checked = proctor(&["validate", &shown]);
    assert_eq!(checked.code, Some(2), "{}", checked.stdout);
    assert!(
        checked.stdout.contains("the prompt is still to be written"),
        "{}",
        checked.stdout
    );
    assert_eq!(init().code, Some(2), "it would overwrite the file");
    let mut number = 0;
    let written: String = text
        .lines()
        .map(|line| {
            number += 1;
            match line.split_once("prompt: ") {
                Some((before, _)) => format!("{before}prompt: question {number}\n"),
                None => format!("{line}\n"),
            }
        })
        .collect();
    std::fs::write(&path, written).unwrap();
    let checked = proctor(&["validate", &shown]);
    assert_eq!(checked.code, Some(0), "{}", checked.stdout);
    assert!(
        checked.stdout.contains("selection, 8 rows"),
        "{}",
        checked.stdout
    );
}
