//! The official clients on servers of both eras: they find nothing missing.

use std::path::PathBuf;

use proctor_core::suite::Server;
use proctor_record::event::{Direction, FindingKind};
use proctor_wire::proxy::Admission;
use serde_json::Value;
use tempfile::TempDir;
use tokio::process::Command;

use super::stage::{Record, Stage, command, fixture};

/// A file of the cache, found as `scripts/install-servers` finds the cache.
fn cached(path: &str) -> PathBuf {
    let variable = |name| std::env::var_os(name).map(PathBuf::from);
    let cache = variable("PROCTOR_TEST_CACHE").unwrap_or_else(|| {
        let home = || variable("HOME").expect("there is a home").join(".cache");
        let cache = variable("XDG_CACHE_HOME").unwrap_or_else(home);
        cache.join("proctor-tests")
    });
    let file = cache.join(path);
    let shown = file.display();
    assert!(
        file.exists(),
        "`{shown}` is missing; run `scripts/install-servers`"
    );
    file
}

fn everything() -> Server {
    let script = "node/node_modules/@modelcontextprotocol/server-everything/dist/index.js";
    command("node", &[&cached(script).display().to_string(), "stdio"])
}

#[derive(Clone, Copy)]
enum OfficialClient {
    TypeScript,
    Python,
}

/// Runs a client on a server, and gives what it was told.
async fn told(client: OfficialClient, server: &Server, what: &str) -> (Value, Record) {
    let stage = Stage::new(server, Admission::Header).await;
    let headers: serde_json::Map<String, Value> = stage
        .bridge
        .headers()
        .iter()
        .map(|(name, value)| (name.clone(), value.as_str().into()))
        .collect();
    // Node looks for packages above the file, so the file is run from a folder in the cache.
    let folder = TempDir::new_in(cached("evals/node")).expect("there is a folder");
    let mut program = match client {
        OfficialClient::TypeScript => {
            let script = folder.path().join("client.mjs");
            std::fs::write(&script, include_str!("client.mjs")).expect("it can be written");
            let mut node = Command::new("node");
            node.arg(script);
            node
        }
        OfficialClient::Python => {
            let script = folder.path().join("client.py");
            std::fs::write(&script, include_str!("client.py")).expect("it can be written");
            let mut python = Command::new(cached("evals/python/bin/python"));
            python.arg(script);
            python
        }
    };
    let headers = Value::from(headers).to_string();
    program.args([stage.bridge.url(), &headers, what]);
    program
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .kill_on_drop(true);
    let bound = std::time::Duration::from_mins(5);
    let output = tokio::time::timeout(bound, program.output()).await;
    let output = output.expect("it ends").expect("it starts");
    let said = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    let last = said.lines().last().unwrap_or_default();
    let said = serde_json::from_str(last).unwrap_or_else(|_| panic!("{said} {errors}"));
    (said, stage.end().await)
}

#[track_caller]
fn check(said: &Value, key: &str, expected: &str) {
    assert!(said[key].to_string().contains(expected), "{key}: {said:#}");
}

#[tokio::test]
async fn server_everything_asks_and_tells_all_that_it_can() {
    for client in [OfficialClient::TypeScript, OfficialClient::Python] {
        let (said, record) = told(client, &everything(), "everything").await;
        check(&said, "echo", "größe");
        check(&said, "sampling", "sampled");
        check(&said, "elicitation", "elicited");
        check(&said, "roots", "rooted");
        assert_eq!(said["progress"].as_array().map(Vec::len), Some(4), "{said}");
        assert!(said["tools"].as_u64() > Some(15), "{said}");
        // What a client cancels by a message stays without an answer.
        let kinds: Vec<FindingKind> = record.folded.findings.iter().map(|f| f.kind).collect();
        let expected: &[FindingKind] = match client {
            OfficialClient::TypeScript => &[FindingKind::Unanswered],
            OfficialClient::Python => &[],
        };
        assert_eq!(kinds, expected, "{said}");
        let sent = record.said(Direction::ToServer).join("\n");
        let is_cancelled = sent.contains("notifications/cancelled");
        assert_eq!(is_cancelled, matches!(client, OfficialClient::TypeScript));
        let reasons: Vec<&str> = record.closed().iter().map(|c| c.reason.as_str()).collect();
        // The newer client asked first which era it is, and a process of its own was for that.
        let processes = if is_cancelled { 1 } else { 2 };
        assert_eq!(reasons.len(), processes, "{reasons:?}");
    }
}

#[tokio::test]
async fn mcp_server_git_is_used_in_the_era_that_both_speak() {
    let git = cached("python/bin/mcp-server-git").display().to_string();
    for (client, version) in [
        (OfficialClient::TypeScript, None),
        (OfficialClient::Python, Some("2026-07-28")),
    ] {
        let (said, record) = told(client, &command(&git, &[]), "git").await;
        assert!(said["tools"].as_u64() > Some(5), "{said}");
        assert_eq!(said["version"].as_str(), version);
        assert_eq!(record.processes(), 1);
    }
}

#[tokio::test]
async fn rounds_of_input_and_cancellation_work_in_both_eras() {
    for (era, version) in [("stateless", "2026-07-28"), ("handshake", "2025-11-25")] {
        let server = fixture(&["--era", era]);
        let (said, record) = told(OfficialClient::Python, &server, "fixture").await;
        assert_eq!(said["version"], version);
        check(&said, "echo", "größe");
        check(&said, "elicitation", "elicited");
        check(&said, "sampling", "sampled");
        check(&said, "roots", "rooted");
        check(&said, "cancelled", "given up");
        check(&said, "after", "still there");
        let sent = record.said(Direction::ToServer).join("\n");
        assert!(sent.contains("notifications/cancelled"), "{sent}");
        // In the stateless era closing the POST is how one cancels; else the call is seen to have no answer.
        let kinds: Vec<FindingKind> = record.folded.findings.iter().map(|f| f.kind).collect();
        let expected: &[FindingKind] = match era {
            "stateless" => &[],
            _ => &[FindingKind::Unanswered],
        };
        assert_eq!(kinds, expected, "{said}");
    }
}

#[tokio::test]
async fn a_client_survives_the_death_of_its_server() {
    let dies = ["--mode", "exit-in-call=3"];
    for client in [OfficialClient::TypeScript, OfficialClient::Python] {
        for era in ["handshake", "both"] {
            let server = fixture(&[&["--era", era], &dies[..]].concat());
            let (said, _) = told(client, &server, "dies").await;
            check(&said, "died", "rror");
            check(&said, "later", "rror");
        }
    }
}
