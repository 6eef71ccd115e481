//! Lint: hostile tools are found, real ones are left alone, and the docs have all rules.

#![expect(
    clippy::unwrap_used,
    reason = "a test that can't go on panics, helpers included"
)]

use std::path::Path;

use proctor_core::lint::{LintFinding, LintRule, LintedServer, SwitchedOffRule, lint};
use proctor_record::event::Surface;
use serde_json::value::RawValue;
use serde_json::{Value, json};

fn server(name: &str, tools: &[Value]) -> LintedServer {
    let raw = |tool: &Value| RawValue::from_string(tool.to_string()).unwrap();
    LintedServer {
        name: name.to_owned(),
        surface: Surface {
            tools: tools.iter().map(raw).collect(),
            ..Surface::default()
        },
    }
}

fn findings(tools: &[Value]) -> Vec<LintFinding> {
    lint(&[server("s", tools)], &[])
}

#[test]
fn every_hostile_tool_is_found() {
    let list: Vec<Value> = serde_json::from_str(include_str!("hostile.json")).unwrap();
    let tools: Vec<Value> = list
        .iter()
        .map(|entry| {
            let mut tool = entry["tool"].clone();
            if tool.get("inputSchema").is_none() {
                tool["inputSchema"] = json!({"type": "object"});
            }
            tool
        })
        .collect();
    let found = findings(&tools);
    let mut missed = Vec::new();
    for entry in &list {
        let place = format!("tools/{}", entry["tool"]["name"].as_str().unwrap());
        let rule = entry["expect"].as_str().unwrap();
        let is_there = |finding: &LintFinding| {
            finding.rule.id() == rule
                && (finding.place == place || finding.place.starts_with(&format!("{place}/")))
        };
        if !found.iter().any(is_there) {
            missed.push(entry);
        }
    }
    assert!(missed.is_empty(), "{missed:#?}");
    // Every rule but those on weight has a tool in the list.
    for rule in LintRule::ALL {
        let is_weight = matches!(rule, LintRule::HeavyTool | LintRule::HeavySurface);
        assert!(
            is_weight || list.iter().any(|entry| entry["expect"] == rule.id()),
            "{rule:?}"
        );
    }
}

fn real(list: &str) -> Vec<Value> {
    let lists = Path::new(env!("CARGO_MANIFEST_DIR")).join("../e2e/tests/tool-lists");
    let text = std::fs::read_to_string(lists.join(format!("{list}.json"))).unwrap();
    let mut list: Value = serde_json::from_str(&text).unwrap();
    serde_json::from_value(list["tools"].take()).unwrap()
}

#[test]
fn real_tools_are_neither_poisoned_nor_refused() {
    for list in [
        "everything",
        "filesystem",
        "git",
        "kubernetes",
        "memory",
        "notion",
        "playwright",
        "redis",
    ] {
        for finding in findings(&real(list)) {
            let severity = finding.rule.severity().word();
            assert_ne!(severity, "error", "{list}: {finding:?}");
        }
    }
}

#[test]
fn heavy_tools_are_found() {
    let found = findings(&real("notion"));
    assert!(
        found
            .iter()
            .any(|finding| finding.rule == LintRule::HeavySurface),
        "{found:?}"
    );
    let long = json!({"name": "long", "description": "word ".repeat(2_000), "inputSchema": {"type": "object"}});
    let found = findings(&[long]);
    assert_eq!(found[0].rule, LintRule::HeavyTool, "{found:?}");
}

#[test]
fn names_collide_across_servers() {
    let tool = |text: &str| json!({"name": "read", "description": text, "inputSchema": {"type": "object"}});
    let servers = [
        server("a", &[tool("Reads a file.")]),
        server("b", &[tool("Reads a mail.")]),
    ];
    let found = lint(&servers, &[]);
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0].rule, LintRule::CollidingNames);
    assert_eq!(found[0].server, "b");
}

#[test]
fn emojis_and_line_breaks_are_not_hidden() {
    let text = "Warns ⚠️ a family 👨‍👩‍👧 with 1️⃣\nand\ttabs";
    let found =
        findings(&[json!({"name": "t", "description": text, "inputSchema": {"type": "object"}})]);
    assert_eq!(found, []);
}

#[test]
fn a_rule_is_switched_off_for_its_tool_only() {
    let tool = |name: &str| json!({"name": name, "inputSchema": {"type": "object"}});
    let off = SwitchedOffRule {
        rule: LintRule::MissingDescription,
        reason: "it is obvious".to_owned(),
        tool: Some("a".to_owned()),
    };
    let found = lint(&[server("s", &[tool("a"), tool("ab")])], &[off]);
    let off: Vec<(&str, bool)> = found
        .iter()
        .map(|finding| (finding.place.as_str(), finding.off.is_some()))
        .collect();
    assert_eq!(off, [("tools/a", true), ("tools/ab", false)]);
}

#[test]
fn the_documentation_has_all_rules() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/lint.md");
    let text = std::fs::read_to_string(path).unwrap();
    let rows: Vec<&str> = text
        .lines()
        .filter(|line| line.starts_with("| `"))
        .collect();
    let expected: Vec<String> = LintRule::ALL
        .iter()
        .map(|rule| {
            format!(
                "| `{}` | {} | {} |",
                rule.id(),
                rule.severity().word(),
                rule.reason()
            )
        })
        .collect();
    assert_eq!(rows, expected);
}
