//! The vendors' own packages behind the model tap: an agent whose program is such a client hears the same,
//! byte for byte, as one that asks the model itself.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use proctor_e2e::suite::SuiteFixture;
use proctor_record::event::EventKind;
use serde_json::json;

use super::sdk::{folder, run};
use super::served::{CLIENTS, RunningModelServer, SCRIPT};

const KEY: &str = "sk-canary-0123456789abcdef";

/// Stands in for Claude Code, and asks in every format.
const PROGRAM: &str = r#"#!/bin/sh
cd "$(dirname "$0")" || exit
[ "$1" = --version ] && exit
MODEL=$ANTHROPIC_BASE_URL KEY=$ANTHROPIC_API_KEY exec node clients.mjs >heard 2>&1
"#;

#[test]
fn every_vendors_package_hears_the_same_through_the_tap() {
    let packages = folder(&[
        ("clients.mjs", CLIENTS.to_owned()),
        ("claude", PROGRAM.to_owned()),
    ]);
    let program = packages.path().join("claude");
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    let serving = RunningModelServer::start(SCRIPT);
    let env = [("MODEL", serving.address.as_str())];
    let (passed, direct) = run(packages.path(), Path::new("node"), &["clients.mjs"], &env);
    assert!(passed, "{direct}");

    let suite = SuiteFixture::new("  - reply: {text: nobody asks this}\n", &[]);
    let agent = json!({"type": "builtin.claude-code", "modelTap": true});
    suite.eval(
        &json!({"agent": agent}),
        &json!({"assertions": {"minToolCalls": 1}}),
    );
    suite.task("ask", &json!({}));
    let (folder, path) = (packages.path().display(), std::env::var("PATH").unwrap());
    let seen = suite
        .check(&[])
        .env("PATH", &format!("{folder}:{path}"))
        .env("ANTHROPIC_BASE_URL", &serving.address)
        .env("ANTHROPIC_API_KEY", KEY)
        .run();
    let tapped = std::fs::read_to_string(packages.path().join("heard")).unwrap();
    assert_eq!(tapped, direct, "{}", seen.stderr);
    assert_eq!(tapped.lines().count(), 8, "{tapped}");

    // All of it was seen, and counted as the model counts it: both times are in its sum.
    let usages = seen.events.iter().filter_map(|event| match &event.event {
        EventKind::ModelReplied(replied) => Some(replied.usage),
        _ => None,
    });
    let usages: Vec<_> = usages.collect();
    let sum = |of: fn(&proctor_record::model::Usage) -> Option<u64>| -> u64 {
        usages.iter().filter_map(of).sum()
    };
    let (input, output) = (sum(|usage| usage.input), sum(|usage| usage.output));
    let told = serving.end();
    let totals = format!("{} tokens in, {} out\n", 2 * input, 2 * output);
    assert_eq!(usages.len(), 16);
    assert!(told.ends_with(&totals), "{totals}: {told}");
}
