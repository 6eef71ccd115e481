//! 200 selection rows on `server-everything`, `server-filesystem` and `mcp-server-git` together, with a model that
//! errs in known ways: precision, recall and the confusion matrix are those that were computed by hand.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use proctor_e2e::suite::SuiteFixture;
use serde_json::{Value, json};

/// The cache of `scripts/install-servers`.
pub(crate) fn cache() -> PathBuf {
    let variable = |name: &str| std::env::var_os(name).map(PathBuf::from);
    let cache = variable("PROCTOR_TEST_CACHE").unwrap_or_else(|| {
        let home = || variable("HOME").expect("there is a home").join(".cache");
        let caches = variable("XDG_CACHE_HOME").unwrap_or_else(home);
        caches.join("proctor-tests")
    });
    assert!(cache.is_dir(), "run scripts/install-servers first");
    cache
}

/// The rows: how many there are, which tool they expect, and what the model chooses.
const ROWS: [(usize, &str, &str); 14] = [
    (30, "echo", "echo"),
    (20, "get-sum", "get-sum"),
    (5, "get-sum", "echo"),
    (30, "read_text_file", "read_text_file"),
    (6, "read_text_file", "read_multiple_files"),
    (10, "list_directory", "list_directory"),
    (4, "list_directory", "-"),
    (30, "git_status", "git_status"),
    (7, "git_status", "git_diff"),
    (20, "git_log", "git_log"),
    (3, "git_log", "git_history"),
    (5, "git_diff", "git_status"),
    (25, "none", "-"),
    (5, "none", "echo"),
];

/// The arguments that the schema of a tool needs don't matter: nothing is executed.
fn suite() -> SuiteFixture {
    let mut rules = String::new();
    let mut rows = Vec::new();
    for (kind, (count, expect, chosen)) in ROWS.iter().enumerate() {
        if *chosen != "-" {
            rules.push_str(&format!(
                "  - {{when: {{prompt: \"^kind {kind}:\"}}, reply: {{calls: [{{tool: {chosen}, arguments: {{}}}}]}}}}\n"
            ));
        }
        for number in 0..*count {
            rows.push(
                json!({"prompt": format!("kind {kind}: question {number}"), "expect": expect}),
            );
        }
    }
    assert_eq!(rows.len(), 200);
    rules.push_str("  - {reply: {text: \"just prose\"}}\n");
    let suite = SuiteFixture::on(&rules, &json!({}));
    let bin = cache().join("node/node_modules/.bin");
    let repository = suite.path("repository");
    std::fs::create_dir(&repository).unwrap();
    let made = Command::new("git")
        .arg("init")
        .arg("-q")
        .arg(&repository)
        .status();
    assert!(made.unwrap().success());
    let servers = json!({
        "everything": {"command": bin.join("mcp-server-everything"), "args": ["stdio"]},
        "filesystem": {"command": bin.join("mcp-server-filesystem"), "args": [suite.folder()]},
        "git": {"command": cache().join("python/bin/mcp-server-git"), "args": ["--repository", repository]},
    });
    suite.write("mcp.json", &json!({"mcpServers": servers}).to_string());
    let config = json!({"isolation": "run", "taskSets": [{"selection": "rows.yaml"}]});
    suite.eval(&config, &json!({}));
    let file = json!({"kind": "Selection", "metadata": {"name": "r"}, "spec": {"rows": rows}});
    suite.write("rows.yaml", &file.to_string());
    suite
}

#[test]
fn two_hundred_rows_have_the_figures_that_were_computed_by_hand() {
    let suite = suite();
    let seen = suite
        .check(&["-o", "json", "-j", "4"])
        .within(Duration::from_mins(5))
        .run();
    assert_eq!(seen.code, Some(1), "{}", seen.stderr);
    let result: Value = serde_json::from_str(&seen.stdout).unwrap();
    let selection = &result["proctor"]["selection"][0];
    assert_eq!(selection["trials"], 200);
    // 30 + 20 + 30 + 10 + 30 + 20 + 25 rows are right.
    assert_eq!(selection["rate"]["passed"], 165);
    let label = |choice: &Value| match choice["kind"].as_str() {
        Some("tool") => choice["tool"].as_str().unwrap().to_owned(),
        Some(other) => other.to_owned(),
        None => panic!("{choice}"),
    };
    let tools: BTreeMap<String, (Option<f64>, Option<f64>)> = selection["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| {
            (
                label(tool),
                (tool["precision"].as_f64(), tool["recall"].as_f64()),
            )
        })
        .collect();
    let expected = [
        ("echo", Some(30.0 / 40.0), Some(1.0)),
        ("get-sum", Some(1.0), Some(20.0 / 25.0)),
        ("read_text_file", Some(1.0), Some(30.0 / 36.0)),
        ("read_multiple_files", Some(0.0), None),
        ("list_directory", Some(1.0), Some(10.0 / 14.0)),
        ("git_status", Some(30.0 / 35.0), Some(30.0 / 37.0)),
        ("git_log", Some(1.0), Some(20.0 / 23.0)),
        ("git_diff", Some(0.0), Some(0.0)),
        ("noCall", Some(25.0 / 29.0), Some(25.0 / 30.0)),
    ];
    let expected: BTreeMap<String, (Option<f64>, Option<f64>)> = expected
        .into_iter()
        .map(|(name, precision, recall)| (name.to_owned(), (precision, recall)))
        .collect();
    assert_eq!(tools, expected);
    let confusion: BTreeMap<(String, String), u64> = selection["confusion"]
        .as_array()
        .unwrap()
        .iter()
        .map(|pair| {
            let names = (label(&pair["expected"]), label(&pair["chosen"]));
            (names, pair["count"].as_u64().unwrap())
        })
        .collect();
    let mut by_hand: BTreeMap<(String, String), u64> = BTreeMap::new();
    for (count, expect, chosen) in ROWS {
        let name = |word: &str| match word {
            "-" | "none" => "noCall".to_owned(),
            "git_history" => "invented".to_owned(),
            word => word.to_owned(),
        };
        *by_hand.entry((name(expect), name(chosen))).or_default() += count as u64;
    }
    assert_eq!(confusion, by_hand);
    assert_eq!(selection["inventedNames"], json!({"git_history": 3}));
    assert_eq!(
        selection["answeredWithoutCall"]
            .as_object()
            .map(serde_json::Map::len),
        Some(4)
    );
    // What went over the wire, as Proctor recorded it.
    let trials = seen.record.join("trials");
    for entry in std::fs::read_dir(trials).unwrap() {
        let text = std::fs::read_to_string(entry.unwrap().path()).unwrap();
        assert!(
            !text.contains(r#"\"method\":\"tools/call\""#),
            "a tool was called"
        );
    }
}
