//! The matrix on the example servers: every cell that the SDKs can do, which is more than each pair.
//!
//! The TypeScript SDK 1.32 speaks the handshake era only, so its stateless cells can't be.

use std::collections::BTreeMap;

use proctor_core::suite::Isolation;
use proctor_core::suite::server::Transport;
use proctor_e2e::port::ReservedPort;
use proctor_wire::client::Era;
use serde_json::json;

use crate::http::connect;
use crate::matrix::{MatrixServer, play};
use crate::servers::{Copy, Server};
use crate::stage::{Stage, Wire, http};

/// The tool that counts words: one is as many as another, but not as two.
const COUNT: MatrixServer = MatrixServer {
    tool: "word_count",
    content: |text| json!([{"type": "text", "text": if text == "bye" { "2" } else { "1" }}]),
};

fn evals() -> String {
    json!({"evals": COUNT.evals()}).to_string()
}

async fn on_stdio(copy: &Copy, era: Era, isolation: Isolation) {
    let mut stage = Stage::of(
        Transport::Stdio {
            command: copy.program.display().to_string(),
            args: copy.args.clone(),
            env: BTreeMap::new(),
            folder: std::env::temp_dir(),
            cwd: None,
        },
        era,
    );
    stage.isolation = isolation;
    play(stage, Wire::Stdio).await;
}

async fn on_http(copy: Copy, eras: &[Era]) {
    let reserved = ReservedPort::new();
    let port = reserved.number();
    let _server = Server::start(copy, &["--http", &port.to_string()]);
    // It can't say when it listens.
    drop(connect(port));
    for era in eras {
        let url = format!("http://127.0.0.1:{port}/mcp");
        play(Stage::of(http(url), *era), Wire::Http).await;
    }
}

#[tokio::test]
async fn e9_matrix_of_the_python_example_on_stdio() {
    let copy = Copy::python(&evals());
    on_stdio(&copy, Era::Handshake, Isolation::Run).await;
    on_stdio(&copy, Era::Stateless, Isolation::Trial).await;
}

#[tokio::test]
async fn e9_matrix_of_the_python_example_on_http() {
    on_http(Copy::python(&evals()), &[Era::Handshake, Era::Stateless]).await;
}

#[tokio::test]
async fn e9_matrix_of_the_typescript_example_on_stdio() {
    let copy = Copy::typescript(&evals());
    on_stdio(&copy, Era::Handshake, Isolation::Run).await;
}

#[tokio::test]
async fn e9_matrix_of_the_typescript_example_on_http() {
    on_http(Copy::typescript(&evals()), &[Era::Handshake]).await;
}
