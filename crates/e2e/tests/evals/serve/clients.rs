//! Clients on the official SDKs, unchanged: they see a server that ships evals.

use std::process::Command;

use proctor_e2e::port::ReservedPort;
use serde_json::Value;

use super::{ListeningServer, Shelf, everything, git, text};
use crate::http::connect;
use crate::servers::{cached, installed};

const TYPESCRIPT: &str = include_str!("client.mjs");
const PYTHON: &str = include_str!("client.py");

/// What a client tells of a session: its capabilities, its evals, its tools and one call.
fn check(program: Command, target: &[String], call: &str) {
    let mut program = program;
    let ran = program.args(target).output().unwrap();
    assert!(
        ran.status.success(),
        "{}{}",
        text(&ran.stdout),
        text(&ran.stderr)
    );
    let told: Value = serde_json::from_slice(&ran.stdout).unwrap();
    let capabilities = &told["capabilities"];
    assert_eq!(
        capabilities["experimental"]["evals"]["listChanged"], true,
        "{told}"
    );
    assert_eq!(told["evals"], serde_json::json!(["adds"]), "{told}");
    let tools = told["tools"].as_array().unwrap();
    assert!(tools.iter().any(|tool| tool == call), "{told}");
}

/// Node looks for packages above the file, so the file is run from a folder in the cache.
fn typescript(run: impl FnOnce(Command)) {
    let folder = tempfile::tempdir_in(cached("node")).unwrap();
    let file = folder.path().join("client.mjs");
    std::fs::write(&file, TYPESCRIPT).unwrap();
    let mut command = Command::new("node");
    command.arg(file);
    run(command);
}

fn python(run: impl FnOnce(Command)) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("client.py");
    std::fs::write(&file, PYTHON).unwrap();
    let mut command = Command::new(cached("python/bin/python"));
    command.arg(file);
    run(command);
}

#[test]
fn e35_the_typescript_client_sees_evals_of_server_everything() {
    let shelf = Shelf::of("adds");
    typescript(|client| check(client, &shelf.serving(&everything()), "echo"));
}

#[test]
fn e35_the_typescript_client_sees_evals_of_mcp_server_git() {
    let shelf = Shelf::of("adds");
    typescript(|client| check(client, &shelf.serving(&git()), "git_status"));
}

#[test]
fn e35_the_python_client_sees_evals_of_server_everything() {
    let shelf = Shelf::of("adds");
    python(|client| check(client, &shelf.serving(&everything()), "echo"));
}

/// It speaks the stateless era with this server.
#[test]
fn e35_the_python_client_sees_evals_of_mcp_server_git() {
    let shelf = Shelf::of("adds");
    python(|client| check(client, &shelf.serving(&git()), "git_status"));
}

#[test]
fn e35_clients_see_evals_of_server_everything_over_http() {
    let reserved = ReservedPort::new();
    let port = reserved.number();
    let program = "node/node_modules/@modelcontextprotocol/server-everything/dist/index.js";
    let mut behind = Command::new("node")
        .arg(installed(program))
        .arg("streamableHttp")
        .env("PORT", port.to_string())
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    drop(connect(port));
    let shelf = Shelf::of("adds");
    let served = ListeningServer::at(&shelf, &format!("http://127.0.0.1:{port}/mcp"), &[]);
    let target = [served.url.clone()];
    typescript(|client| check(client, &target, "echo"));
    python(|client| check(client, &target, "echo"));
    assert_eq!(served.finish().code, Some(0));
    behind.kill().unwrap();
    behind.wait().unwrap();
}
