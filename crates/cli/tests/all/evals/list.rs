//! `proctor evals list`.

use serde_json::{Value, json};

use super::PROCTOR;
use super::canned::{CannedServer, execution, reader};
use crate::proctor::{proctor, write_files};

#[test]
fn e2_e28_the_list_says_where_the_capability_was_found() {
    let output = proctor(["evals", "list", "--", PROCTOR, "__demo"]).output();
    insta::assert_snapshot!(output.to_string());
    let check = |capabilities: Value, expected: &str| {
        let canned = CannedServer::new(&capabilities, &json!([]), &json!([execution("a", "t")]));
        let output = canned.run(&["evals", "list"]);
        assert!(output.stdout.contains(expected), "{output}");
        assert_eq!(canned.asked("tools/call"), [Value::Null; 0]);
    };
    check(json!({"evals": {}}), "\n  declared in capabilities.evals\n");
    check(
        json!({"experimental": {"evals": {}}}),
        "\n  declared in capabilities.experimental.evals\n",
    );
    check(
        json!({"extensions": {"com.example/evals": {}}}),
        "\n  declared in capabilities.extensions[\"com.example/evals\"]\n",
    );
}

#[test]
fn e3_a_server_without_the_capability_is_not_asked() {
    for capabilities in [
        json!({"tools": {}}),
        json!({"evals": true}),
        json!({"experimental": {}}),
    ] {
        let canned = CannedServer::new(&capabilities, &json!([]), &json!([execution("a", "t")]));
        let output = canned.run(&["evals", "list"]);
        assert_eq!(output.code, Some(0), "{output}");
        let note = "server: no evals; the server does not declare the capability `evals`\n";
        assert_eq!(output.stdout, note);
        assert_eq!(canned.asked("evals/list"), [Value::Null; 0]);
        let output = canned.run(&["evals", "list", "-o", "json"]);
        let document: Value = serde_json::from_str(&output.stdout).unwrap();
        assert_eq!(document["servers"][0]["evals"], json!([]));
        assert_eq!(document["servers"][0]["capability"], json!([]));
    }
}

#[test]
fn e5_a_list_past_a_cap_ends_with_an_error_that_names_the_cap() {
    let canned = CannedServer::shipping(&json!([]), &json!(vec![json!({}); 100_001]));
    let output = canned.run(&["evals", "list"]);
    assert_eq!(output.code, Some(3), "{}", output.stderr);
    assert!(
        output.stderr.contains("limit of 100000 items"),
        "{}",
        output.stderr
    );
    // Each page has another cursor.
    canned.answers(
        "evals-list",
        &json!({"evals": [], "nextCursor": "page-@ID@"}),
    );
    let output = canned.run(&["evals", "list"]);
    assert_eq!(output.code, Some(3), "{}", output.stderr);
    assert!(
        output.stderr.contains("limit of 1000 pages"),
        "{}",
        output.stderr
    );
    canned.answers("evals-list", &json!({"evals": [], "nextCursor": ""}));
    let output = canned.run(&["evals", "list"]);
    assert!(
        output.stderr.contains("returned the cursor `` twice"),
        "{}",
        output.stderr
    );
    canned.answers("evals-list", &json!({"evals": {}}));
    let output = canned.run(&["evals", "list"]);
    assert!(
        output
            .stderr
            .contains("returned a page without the list `evals`"),
        "{}",
        output.stderr
    );
}

#[test]
fn e6_a_level_is_asked_for_and_looked_at() {
    let mut scenario = execution("b", "t");
    scenario["input"] = json!({"type": "scenario", "messages": [
        {"role": "user", "content": {"type": "text", "text": "Go."}},
    ]});
    let canned = CannedServer::shipping(&json!([]), &json!([execution("a", "t"), scenario]));
    let output = canned.run(&["evals", "list", "--level", "execution", "-o", "json"]);
    let document: Value = serde_json::from_str(&output.stdout).unwrap();
    let evals = document["servers"][0]["evals"].as_array().unwrap();
    assert_eq!(evals.len(), 1, "{output}");
    assert_eq!(evals[0]["id"], "a");
    let asked = canned.asked("evals/list");
    assert_eq!(asked.len(), 1);
    assert_eq!(asked[0]["params"]["level"], "execution");
    canned.run(&["evals", "list"]);
    assert_eq!(canned.asked("evals/list")[1]["params"].get("level"), None);
}

#[test]
fn e8_e25_json_has_every_eval_as_the_server_wrote_it() {
    let mut eval = execution("a", "t");
    eval["later"] = json!({"x": [1.50, 12_345_678_901_234_567_890_u64]});
    let canned = CannedServer::shipping(&json!([]), &json!([eval]));
    let output = canned.run(&["evals", "list", "-o", "json"]);
    assert!(output.stdout.contains(&eval.to_string()), "{output}");
}

#[test]
fn e16_e17_what_can_not_be_run_is_listed_with_what_is_wrong() {
    let mut without = execution("no-content", "t");
    without["expected"] = json!({"type": "exact-match"});
    let mut telepathy = execution("telepathy", "t");
    telepathy["input"]["type"] = "telepathy".into();
    let mut secret = execution("secret", "gone");
    secret["input"]["arguments"] = json!({"password": "correct horse"});
    let evals = json!([
        execution("good", "t"),
        without,
        execution("twice", "t"),
        execution("twice", "t"),
        telepathy,
        secret,
        5,
    ]);
    let tools = json!([{"name": "t", "annotations": {"destructiveHint": true}}]);
    let output = CannedServer::shipping(&tools, &evals).run(&["evals", "list"]);
    insta::assert_snapshot!(output.to_string());
}

#[test]
fn e32_what_a_server_wrote_can_not_act_on_a_terminal_or_a_ci_log() {
    let hostile = "::error::x\u{1b}[2J\u{202e}\u{200b}\n::warning::$HOME ${HOME} {{env.HOME}}";
    let mut eval = execution(hostile, hostile);
    eval["name"] = hostile.into();
    eval["gradingType"] = format!("{hostile}2").into();
    let canned = CannedServer::shipping(&json!([]), &json!([eval, execution(hostile, hostile)]));
    let output = canned
        .command(&["evals", "list"])
        .env("GITHUB_ACTIONS", "true")
        .output();
    assert_eq!(output.code, Some(0), "{output}");
    let hidden = |c: char| c != '\n' && proctor_core::printable::is_hidden(c);
    assert!(!output.stdout.contains(hidden), "{output}");
    let commands = output
        .stdout
        .lines()
        .filter(|line| line.trim_start().starts_with("::"));
    assert_eq!(commands.count(), 0, "{output}");
    assert!(
        output.stdout.contains("$HOME ${HOME} {{env.HOME}}"),
        "{output}"
    );
}

#[test]
fn several_servers_of_a_config_are_listed_and_one_that_is_gone_hides_no_other() {
    let folder = tempfile::tempdir().unwrap();
    let demo = json!({"command": PROCTOR, "args": ["__demo"]});
    let config = json!({"mcpServers": {
        "one": demo, "gone": {"command": "/nowhere/to/be/found"}, "two": demo,
    }});
    write_files(folder.path(), &[("mcp.json", &config.to_string())]);
    let list = |words: &[&str]| {
        let fixed = ["evals", "list", "--config", "mcp.json"];
        proctor(fixed.iter().chain(words))
            .current_dir(folder.path())
            .output()
    };
    let output = list(&[]);
    assert_eq!(output.code, Some(3), "{output}");
    assert!(output.stdout.contains("one: 5 evals\n"), "{output}");
    assert!(output.stdout.contains("two: 5 evals\n"), "{output}");
    assert!(output.stderr.contains("the server `gone`"), "{output}");
    let output = list(&["--server", "two", "--server", "one", "--server", "two"]);
    assert_eq!(output.code, Some(0), "{output}");
    assert_eq!(output.stdout.matches(": 5 evals\n").count(), 2, "{output}");
    assert!(!output.stdout.contains("gone"), "{output}");
    let output = list(&["--server", "three"]);
    assert_eq!(output.code, Some(2), "{output}");
    assert!(
        output
            .stderr
            .contains("has no server `three`; it has `one`"),
        "{output}"
    );
    let output = proctor(["evals", "list"]).output();
    assert_eq!(output.code, Some(2), "{output}");
}

#[test]
fn an_id_that_no_server_ships_is_answered_with_the_nearest() {
    let tools = json!([reader("look")]);
    let canned = CannedServer::shipping(&tools, &json!([execution("look-around", "look")]));
    let output = canned.run(&["evals", "run", "--yes", "--id", "look-aruond"]);
    assert_eq!(output.code, Some(2), "{output}");
    let meant = "no server ships an eval `look-aruond`; did you mean `look-around`?";
    assert!(output.stderr.contains(meant), "{output}");
    assert!(canned.asked("tools/call").is_empty());
}
