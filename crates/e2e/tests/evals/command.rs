//! `proctor evals run`, from outside: what it asks, what it calls, what it says, and how it ends.

use std::path::PathBuf;

use proctor_e2e::session::{Session, SessionOutcome};
use proctor_e2e::suite::SuiteFixture;
use proctor_e2e::{fixture, log_lines};
use serde_json::{Value, json};

const MODEL: &str =
    "  - {when: {results: 0}, reply: {calls: [{tool: add, arguments: {a: 1, b: 2}}]}}
  - reply: {text: 'the sum is {result}'}
";

const JUDGE: &str = "  - when: {mustCall: verdict, user: 'the sum is 3'}
    reply: {calls: [{tool: verdict, arguments: {reason: told, evidence: ['the sum is 3'], verdict: pass}}]}
  - reply: {calls: [{tool: verdict, arguments: {reason: no idea, evidence: [], verdict: unknown}}]}
";

/// A folder with a server that ships evals, and scripts for a model and a judge.
struct Shop {
    suite: SuiteFixture,
    modes: Vec<String>,
}

impl Shop {
    fn new(evals: &Value, modes: &[&str]) -> Self {
        let suite = SuiteFixture::on(MODEL, &json!({}));
        suite.write("judge.yaml", &format!("kind: Script\nrules:\n{JUDGE}"));
        suite.write("evals.json", &evals.to_string());
        Self {
            suite,
            modes: modes.iter().map(ToString::to_string).collect(),
        }
    }

    fn log(&self) -> PathBuf {
        self.suite.path("wire.jsonl")
    }

    fn server(&self) -> Vec<String> {
        let path = |name: &str| self.suite.path(name).display().to_string();
        let mut args = vec!["--log".to_owned(), path("wire.jsonl")];
        args.extend(["--evals".to_owned(), path("evals.json")]);
        for mode in &self.modes {
            args.extend(["--mode".to_owned(), mode.clone()]);
        }
        args
    }

    fn run(&self, words: &[&str]) -> SessionOutcome {
        let mut all = vec!["evals", "run"];
        all.extend(words);
        let args = self.server();
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        Session::new(&all)
            .on(fixture().display().to_string(), &args)
            .run()
    }

    /// With everything that any eval needs.
    fn run_all(&self, words: &[&str]) -> SessionOutcome {
        let model = format!("scripted:{}", self.suite.path("model.yaml").display());
        let judge = format!("scripted:{}", self.suite.path("judge.yaml").display());
        let mut all = vec!["--model", &model, "--judge", &judge];
        all.extend(words);
        self.run(&all)
    }

    /// The methods that the server was sent, by its own log.
    fn sent(&self) -> Vec<String> {
        let lines = log_lines(&self.log());
        let sent = lines.iter().filter(|line| line["dir"] == "in");
        sent.filter_map(|line| {
            let message: Value = serde_json::from_str(line["text"].as_str()?).ok()?;
            Some(message.get("method")?.as_str()?.to_owned())
        })
        .collect()
    }

    fn calls(&self) -> usize {
        self.sent()
            .iter()
            .filter(|method| *method == "tools/call")
            .count()
    }
}

fn execution(id: &str, tool: &str, arguments: &Value, text: &str) -> Value {
    json!({
        "id": id, "name": id, "gradingType": "exact-match",
        "input": {"type": "execution", "toolName": tool, "arguments": arguments},
        "expected": {"type": "exact-match", "content": [{"type": "text", "text": text}]},
    })
}

fn invocation(id: &str) -> Value {
    let content = json!({"type": "text", "text": "what is 1 + 2?"});
    json!({
        "id": id, "name": id, "gradingType": "exact-match",
        "input": {"type": "invocation", "messages": [{"role": "user", "content": content}]},
        "expected": {"type": "exact-match", "toolName": "add", "arguments": {"a": 1}},
    })
}

fn scenario(id: &str) -> Value {
    let content = json!({"type": "text", "text": "add 1 and 2"});
    json!({
        "id": id, "name": id, "gradingType": "llm-as-judge",
        "input": {"type": "scenario", "messages": [{"role": "user", "content": content}]},
        "expected": {"type": "llm-as-judge", "rubric": "the sum is told"},
    })
}

/// An eval that passes, since what it expects is not looked at too closely.
fn passing() -> Value {
    invocation("picks-add")
}

fn expect(seen: &SessionOutcome, code: i32, says: &str) {
    let all = format!("{}\n{}", seen.stdout, seen.stderr);
    assert_eq!(seen.code, Some(code), "{all}");
    assert!(all.contains(says), "`{says}` is not in:\n{all}");
}

#[test]
fn e3_a_server_that_ships_nothing_is_not_asked() {
    let shop = Shop::new(&json!([passing()]), &["evals-nowhere"]);
    expect(
        &shop.run_all(&["--yes"]),
        2,
        "declares no `evals` capability",
    );
    assert!(!shop.sent().iter().any(|method| method == "evals/list"));
}

#[test]
fn e3_what_needs_a_model_or_a_judge_is_named() {
    let shop = Shop::new(&json!([invocation("one"), scenario("two")]), &[]);
    let seen = shop.run(&["--yes"]);
    expect(&seen, 2, "`--model` is needed for `one`, `two`");
    expect(&seen, 2, "`--judge` is needed for `two`");
    assert_eq!(shop.calls(), 0);
}

#[test]
fn e16_an_invalid_eval_is_never_run_and_fails_the_run() {
    let twin = execution("twin", "echo", &json!({"text": "x"}), "x");
    let shop = Shop::new(&json!([passing(), twin, twin]), &[]);
    let seen = shop.run_all(&["--yes"]);
    expect(&seen, 1, "INVALID   twin");
    assert_eq!(shop.calls(), 0);
}

#[test]
fn e17_what_is_not_known_is_skipped_and_fails_nothing() {
    let mut newer = passing();
    newer["id"] = json!("newer");
    newer["gradingType"] = json!("vibes");
    newer["expected"] = json!({"type": "vibes"});
    let shop = Shop::new(&json!([passing(), newer]), &[]);
    expect(&shop.run_all(&["--yes"]), 0, "SKIP      newer");
}

#[test]
fn e25_e27_results_have_the_shape_of_the_proposal() {
    let wrong = execution("wrong", "fail", &json!({}), "never");
    let mut broken = passing();
    broken["id"] = json!("broken");
    broken["expected"] = json!({"type": "exact-match"});
    let shop = Shop::new(&json!([passing(), scenario("judged"), wrong, broken]), &[]);
    let seen = shop.run_all(&["--yes", "-o", "json"]);
    assert_eq!(seen.code, Some(1), "{}", seen.stderr);
    let document: Value = serde_json::from_str(&seen.stdout).unwrap();
    let results = document["results"].as_array().unwrap();
    let result = |id: &str| {
        results
            .iter()
            .find(|result| result["evalId"] == id)
            .unwrap()
    };
    assert_eq!(result("picks-add")["passed"], true);
    assert!(result("picks-add")["durationMs"].is_number());
    assert_eq!(result("wrong")["passed"], false);
    assert!(
        result("wrong")["reason"]
            .as_str()
            .unwrap()
            .contains("content differs")
    );
    let judged = result("judged");
    let judge = judged["_meta"]["judge"].as_str().unwrap();
    let reason = judged["reason"].as_str().unwrap();
    assert_eq!(reason, format!("passed according to {judge}: told"));
    assert_eq!(document["others"][0]["evalId"], "broken");
    assert_eq!(document["others"][0]["outcome"], "invalid");
    assert_eq!(results.len(), 3);
}

#[test]
fn e26_nothing_of_the_results_goes_to_the_server() {
    let shop = Shop::new(&json!([passing(), scenario("judged")]), &[]);
    expect(&shop.run_all(&["--yes"]), 0, "PASS");
    let known = [
        "server/discover",
        "tools/list",
        "resources/list",
        "resources/templates/list",
        "prompts/list",
        "evals/list",
        "tools/call",
    ];
    for method in shop.sent() {
        assert!(known.contains(&method.as_str()), "{method}");
    }
    let log = std::fs::read_to_string(shop.log()).unwrap();
    assert!(!log.contains("passed") && !log.contains("verdict"), "{log}");
}

#[test]
fn e28_e29_without_a_terminal_and_a_yes_nothing_is_called() {
    let eval = execution("says", "echo", &json!({"text": "hi"}), "hi");
    let shop = Shop::new(&json!([eval]), &[]);
    let seen = shop.run(&[]);
    expect(&seen, 2, "consent is required");
    // What would have been called is shown, with the command.
    expect(&seen, 2, r#"{"text":"hi"}"#);
    expect(&seen, 2, "fixture-server");
    assert_eq!(shop.calls(), 0);
    assert!(!seen.record.exists());
}

#[test]
fn e30_consent_is_kept_until_anything_changes() {
    let evals = |text: &str| {
        json!([
            passing(),
            execution("says", "echo", &json!({"text": text}), "x")
        ])
    };
    let shop = Shop::new(&evals("hi"), &[]);
    let file = shop.suite.path("consent.yaml").display().to_string();
    let consent = ["--consent", file.as_str()];
    expect(&shop.run_all(&consent), 2, "consent is required");
    let agreed = ["--consent", file.as_str(), "--yes"];
    expect(&shop.run_all(&agreed), 1, "Consent saved to");
    let text = std::fs::read_to_string(&file).unwrap();
    assert!(text.contains("sha256") && text.contains("echo"), "{text}");
    expect(&shop.run_all(&consent), 1, "Consent found in");
    let before = shop.calls();
    shop.suite.write("evals.json", &evals("ho").to_string());
    for words in [&consent[..], &agreed[..]] {
        let seen = shop.run_all(words);
        expect(&seen, 2, "evals changed: `says`");
        assert_eq!(shop.calls(), before);
    }
    assert_eq!(std::fs::read_to_string(&file).unwrap(), text);
}

#[test]
fn e7_e30_what_changes_after_the_yes_is_not_run() {
    let eval = execution("says", "echo", &json!({"text": "hi"}), "hi");
    let count = tempfile::tempdir().unwrap();
    let count = count.path().join("count").display().to_string();
    let shop = Shop::new(&json!([eval]), &["evals-change-after=1"]);
    let mut args = shop.server();
    args.extend(["--count".to_owned(), count]);
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let seen = Session::new(&["evals", "run", "--yes"])
        .on(fixture().display().to_string(), &args)
        .run();
    expect(&seen, 2, "changed since you gave consent");
    assert_eq!(shop.calls(), 0);
}

#[test]
fn e31_a_filter_for_what_says_that_it_only_reads() {
    let reads = execution("reads", "echo", &json!({"text": "hi"}), "hi");
    let unknown = execution("unknown", "fail", &json!({}), "x");
    let shop = Shop::new(&json!([reads, unknown]), &[]);
    let seen = shop.run(&["--yes", "--only-read-only"]);
    assert!(!seen.stderr.contains("`unknown`"), "{}", seen.stderr);
    assert_eq!(shop.calls(), 1);
}

#[test]
fn e5_e33_a_list_without_end_ends_the_command() {
    for (mode, says) in [
        ("evals-million", "100000 items"),
        ("evals-endless-cursor", "1000 pages"),
        ("evals-same-cursor", "endless pagination"),
    ] {
        let shop = Shop::new(&json!([passing()]), &[mode]);
        let seen = shop.run_all(&["--yes"]);
        expect(&seen, 3, says);
        assert!(seen.peak_kib < 400 * 1024, "{mode}: {} KiB", seen.peak_kib);
        assert_eq!(shop.calls(), 0);
    }
}

#[test]
fn e32_what_a_server_writes_is_data_and_can_t_reach_the_terminal() {
    let arguments = json!({"text": "\u{1b}[31m{env.HOME} ${HOME} $HOME \u{202e}{agent.output}"});
    let eval = execution("says\u{1b}[2J", "echo", &arguments, "x");
    let shop = Shop::new(&json!([eval]), &[]);
    let seen = shop.run(&["--yes"]);
    assert_eq!(seen.code, Some(1), "{}", seen.stderr);
    let all = format!("{}{}", seen.stdout, seen.stderr);
    assert!(
        !all.contains('\u{202e}') && !all.contains("\u{1b}[2J"),
        "{all:?}"
    );
    let log = std::fs::read_to_string(shop.log()).unwrap();
    assert!(log.contains("{env.HOME} ${HOME} $HOME"), "{log}");
}

#[test]
fn e37_a_task_set_can_be_what_a_server_ships() {
    let evals = json!([passing(), execution("says", "fail", &json!({}), "x")]);
    let shop = Shop::new(&evals, &[]);
    let server = json!({"shop": {"command": fixture(), "args": shop.server()}});
    let config = json!({"mcpServers": server}).to_string();
    shop.suite.write("mcp.json", &config);
    let config = |level: &str| {
        let set = json!({"evals": {"server": "shop", "level": level}});
        shop.suite.eval(&json!({"taskSets": [set]}), &json!({}));
    };
    config("invocation");
    expect(&shop.suite.check(&[]).run(), 2, "consent is required");
    let seen = shop.suite.check(&["--yes"]).run();
    expect(&seen, 0, "PASS      picks-add");
    config("execution");
    let seen = shop.suite.check(&["--yes"]).run();
    expect(&seen, 1, "FAIL      says");
    let resumed = Session::new(&["check"]).resume(&seen.record).run();
    expect(&resumed, 2, "consent is required");
}

/// The server leaves malformed evals out of the list of a level.
#[test]
fn an_eval_whose_level_is_unreadable_counts_for_every_level() {
    let mut good = execution("good", "echo", &json!({"text": "hi"}), "hi");
    // The fixture server adds it to its results.
    good["expected"]["content"][0]["x-unknown"] =
        serde_json::from_str(r#"{"n": 12345678901234567890, "z": 1.5, "a": 100}"#).unwrap();
    let mut bad = execution("bad", "echo", &json!({"text": "hi"}), "hi");
    let input = bad.as_object_mut().unwrap().remove("input").unwrap();
    bad["inputs"] = input;
    for bad in [bad, json!(null)] {
        let shop = Shop::new(&json!([bad, good, passing()]), &[]);
        let seen = shop.run(&["--yes", "--level", "execution"]);
        expect(&seen, 1, "INVALID");
        expect(&seen, 1, "PASS      good");
        assert!(!seen.stdout.contains("picks-add"), "{}", seen.stdout);
    }
}

#[test]
fn several_servers_of_a_config_are_run_at_once() {
    let shop = Shop::new(&json!([passing()]), &[]);
    let one = json!({"command": fixture(), "args": shop.server()});
    let config = json!({"mcpServers": {"one": one, "two": one}});
    shop.suite.write("servers.json", &config.to_string());
    let path = shop.suite.path("servers.json").display().to_string();
    let model = format!("scripted:{}", shop.suite.path("model.yaml").display());
    let words = [
        "evals", "run", "--yes", "--model", &model, "--config", &path, "-o", "json",
    ];
    let seen = Session::new(&words).run();
    assert_eq!(seen.code, Some(0), "{}", seen.stderr);
    let document: Value = serde_json::from_str(&seen.stdout).unwrap();
    let servers: Vec<&str> = document["results"]
        .as_array()
        .unwrap()
        .iter()
        .map(|result| result["_meta"]["server"].as_str().unwrap())
        .collect();
    assert_eq!(servers, ["one", "two"]);
}

/// How many turns the only scenario took, whose model never comes to an end.
fn turns(own: Option<u32>, words: &[&str]) -> (usize, String) {
    let mut endless = scenario("endless");
    if let Some(own) = own {
        endless["input"]["maxTurns"] = json!(own);
    }
    let shop = Shop::new(&json!([endless]), &[]);
    let rule = "  - reply: {calls: [{tool: add, arguments: {a: 1, b: 2}}]}\n";
    let model = format!("kind: Script\nrules:\n{rule}");
    shop.suite.write("model.yaml", &model);
    let mut all = vec!["--yes"];
    all.extend(words);
    let seen = shop.run_all(&all);
    (shop.calls(), seen.stderr)
}

#[test]
fn e23_a_scenario_has_the_turns_that_it_names() {
    for (own, words, expected) in [
        (Some(12), &[][..], 12),
        (None, &[], 10),
        (Some(12), &["--max-turns", "3"], 3),
        (Some(2), &["--max-turns", "3"], 2),
        (None, &["--max-turns", "11"], 10),
    ] {
        let (calls, told) = turns(own, words);
        assert_eq!(calls, expected, "{own:?} {words:?}: {told}");
        let consent = format!("`endless`, up to {expected} turns");
        assert!(told.contains(&consent), "{own:?} {words:?}: {told}");
    }
}

#[test]
fn e8_an_unknown_key_that_may_change_what_is_tested_is_named_and_the_eval_skipped() {
    let mut typo = execution("typo", "echo", &json!({"text": "x"}), "never");
    typo["expected"]["contents"] = typo["expected"]["content"].clone();
    let mut graded = scenario("graded");
    graded["grading"] = json!({"threshold": 0.9});
    let mut noted = passing();
    noted["since"] = json!("1.2");
    let shop = Shop::new(&json!([noted, typo, graded]), &[]);
    let seen = shop.run_all(&["--yes"]);
    expect(&seen, 0, "SKIP      typo");
    expect(&seen, 0, "unknown key `contents`");
    expect(&seen, 0, "unknown key `threshold`");
    assert_eq!(shop.calls(), 0);
    // In a suite too.
    let servers = json!({"shop": {"command": fixture(), "args": shop.server()}});
    shop.suite
        .write("mcp.json", &json!({"mcpServers": servers}).to_string());
    let config = json!({
        "llmJudge": {"ref": {"type": "builtin.llm-agent", "model": "scripted:judge.yaml"}},
        "taskSets": [{"evals": {"server": "shop"}}],
    });
    shop.suite.eval(&config, &json!({}));
    let seen = shop.suite.check(&["--yes"]).run();
    expect(&seen, 0, "unknown key `contents`");
    assert_eq!(shop.calls(), 0);
}

#[test]
fn e8_an_unknown_key_in_ones_own_file_is_an_error() {
    let mut typo = passing();
    typo["expected"]["argument"] = json!({"a": 7});
    let shop = Shop::new(&json!([]), &[]);
    shop.suite.write("own.json", &json!([typo]).to_string());
    let own = shop.suite.path("own.json").display().to_string();
    let seen = shop.run_all(&["--yes", "--evals", &own]);
    expect(&seen, 2, "unknown key `argument`");
    expect(&seen, 2, "did you mean `arguments`?");
    assert!(!shop.log().exists(), "the server was not started");
}
