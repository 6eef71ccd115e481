//! Several agents on one suite: Proctor's own loop, Claude Code and a command, beside each other.

use proctor_e2e::session::SessionOutcome;
use proctor_e2e::suite::SuiteFixture;
use serde_json::{Value, json};

use crate::cli::{RULES, commands::AGENT, fixture, path_with, run, scripted};

/// Two cases; in the second, the command does not call the tool.
fn suite(config: &Value) -> SuiteFixture {
    let suite = SuiteFixture::on(RULES, &json!({"ev": fixture(&[])}));
    let used = json!({"toolsUsed": [{"server": "ev", "tool": "echo"}]});
    suite.eval(config, &json!({"assertions": used}));
    suite.task("say-hello", &json!({}));
    suite.task("say-more", &json!({}));
    suite.write("say-hello.py", AGENT);
    let calls = |line: &&str| line.contains("tools/call");
    let lazy: Vec<&str> = AGENT.lines().filter(|line| !calls(line)).collect();
    suite.write("say-more.py", &lazy.join("\n"));
    let folder = suite.folder().display();
    let run = format!(
        "python3 {folder}/{{{{ .Prompt }}}}.py {{{{ .McpServerFileArgs }}}} {{{{ .Prompt }}}}"
    );
    let agent = json!({
        "kind": "Agent",
        "metadata": {"name": "by-command"},
        "commands": {"argTemplateMcpServer": "{{ .File }}", "runPrompt": run, "useVirtualHome": true},
    });
    suite.write("agent.yaml", &agent.to_string());
    suite
}

const NAMES: [&str; 3] = [
    "llm-agent (scripted:model.yaml)",
    "claude-code (scripted:model.yaml)",
    "by-command",
];

/// The lines of the comparison.
fn rows(seen: &SessionOutcome) -> Vec<&str> {
    let is_row = |line: &&str| NAMES.iter().any(|name| line.starts_with(name));
    let after = seen
        .stdout
        .lines()
        .skip_while(|line| !line.starts_with("agent "));
    after.filter(is_row).collect()
}

fn check(seen: &SessionOutcome, report: &str) {
    assert_eq!(seen.code, Some(1), "{}\n{}", seen.stdout, seen.stderr);
    let rows = rows(seen);
    assert_eq!(rows.len(), 3, "{}", seen.stdout);
    for (row, name) in rows.iter().zip(NAMES) {
        assert!(row.starts_with(name), "{row}");
        let passed = if name == "by-command" { "1/2" } else { "2/2" };
        assert!(row.contains(passed), "{row}");
    }
    assert!(
        rows[2].contains("unknown"),
        "nobody counted its tokens: {}",
        rows[2]
    );
    let only = "only by-command failed: say-more";
    assert!(seen.stdout.contains(only), "{}", seen.stdout);
    for name in &NAMES {
        let suite = format!("suite ({name})");
        assert!(report.contains(&suite), "{report}");
    }
}

#[test]
fn the_agents_of_a_suite_are_compared() {
    let file = json!({"type": "file", "path": "agent.yaml"});
    let agents = json!([scripted("llm-agent"), scripted("claude-code"), file]);
    let suite = suite(&json!({"agent": null, "agents": agents}));
    let junit = suite.path("junit.xml").display().to_string();
    let seen = run(suite.check(&["--junit", &junit]), &path_with("claude-code"));
    check(&seen, &std::fs::read_to_string(&junit).unwrap_or_default());
}

#[test]
fn the_agents_of_the_command_line_are_compared() {
    let suite = suite(&json!({}));
    let junit = suite.path("junit.xml").display().to_string();
    let model = suite.path("model.yaml").display().to_string();
    let file = suite.path("agent.yaml").display().to_string();
    let own = format!("llm-agent=scripted:{model}");
    let claude = format!("claude-code=scripted:{model}");
    let words = ["--agent", &own, "--agent", &claude, "--agent", &file];
    let mut words = words.to_vec();
    words.extend(["--junit", &junit, "-o", "json"]);
    let seen = run(suite.check(&words), &path_with("claude-code"));
    let document: Value = serde_json::from_str(&seen.stdout).expect("it is JSON");
    let agents = document["proctor"]["agents"]
        .as_array()
        .expect("they are there");
    let names: Vec<&str> = agents
        .iter()
        .filter_map(|agent| agent["name"].as_str())
        .collect();
    assert_eq!(names.len(), 3, "{names:?}");
    assert_eq!(names[2], "by-command");
    let tokens: Vec<&Value> = agents
        .iter()
        .map(|agent| &agent["tokens"]["input"])
        .collect();
    assert_eq!(tokens[0], &json!(6000), "{agents:?}");
    assert!(tokens[1].as_u64() >= Some(6000), "{agents:?}");
    assert_eq!(tokens[2], &Value::Null, "{agents:?}");
    assert_eq!(agents[2]["missesAlone"], json!(["say-more"]), "{agents:?}");
}
