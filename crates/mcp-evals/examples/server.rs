//! A small MCP server that ships evals: it counts words, and keeps notes in memory.
//!
//! `cargo run --features rmcp --example server` speaks MCP on stdio, and ships the evals in `evals.json`
//! here. With `--evals FILE` the evals are those of the file, also when it changes. With `--http PORT` it
//! is a web server, and says its URL on stdout; port 0 is any that is free.

use std::error::Error;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use axum::serve::ListenerExt;
use mcp_evals::rmcp::{Evals, WithEvals, stdio};
use mcp_evals::{EvalFile, Suite};
use rmcp::handler::server::wrapper::Parameters;
use rmcp::schemars::{self, JsonSchema};
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use rmcp::{ServerHandler, ServiceExt, tool, tool_handler, tool_router};
use serde::Deserialize;
use tokio::net::TcpListener;

/// The server: notes, newest last.
#[derive(Debug, Clone, Default)]
struct Notes {
    notes: Arc<Mutex<Vec<String>>>,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct Text {
    /// Any text.
    text: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct Query {
    /// What a note must contain.
    query: String,
}

#[tool_router]
impl Notes {
    #[tool(
        description = "Counts the words of a text.",
        annotations(read_only_hint = true)
    )]
    fn word_count(Parameters(Text { text }): Parameters<Text>) -> String {
        text.split_whitespace().count().to_string()
    }

    #[tool(
        description = "Keeps a note until the server ends.",
        annotations(destructive_hint = false)
    )]
    fn add_note(&self, Parameters(Text { text }): Parameters<Text>) -> String {
        let mut notes = self.notes.lock().unwrap_or_else(PoisonError::into_inner);
        notes.push(text);
        format!("note {} is kept", notes.len())
    }

    #[tool(
        description = "Finds the notes that contain a text.",
        annotations(read_only_hint = true)
    )]
    fn find_notes(&self, Parameters(Query { query }): Parameters<Query>) -> String {
        let notes = self.notes.lock().unwrap_or_else(PoisonError::into_inner);
        let found: Vec<&str> = notes
            .iter()
            .map(String::as_str)
            .filter(|note| note.to_lowercase().contains(&query.to_lowercase()))
            .collect();
        if found.is_empty() {
            "no note was found".to_owned()
        } else {
            found.join("\n")
        }
    }
}

#[tool_handler]
impl ServerHandler for Notes {}

fn load(path: &Path) -> Result<Suite, Box<dyn Error + Send + Sync>> {
    let text = std::fs::read_to_string(path)?;
    Ok(EvalFile::from_json(&text)?.into_suite()?)
}

/// Reloads the evals when the file changes. An invalid file is ignored.
async fn follow(path: PathBuf, evals: Evals) {
    let changed_at = |path: &Path| -> Option<SystemTime> { path.metadata().ok()?.modified().ok() };
    let mut seen = changed_at(&path);
    loop {
        tokio::time::sleep(Duration::from_millis(100)).await;
        let now = changed_at(&path);
        if now != seen
            && let Ok(suite) = load(&path)
        {
            evals.replace(suite).await;
            seen = now;
        }
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error + Send + Sync>> {
    let args: Vec<String> = std::env::args().collect();
    let option = |name: &str| {
        Some(
            args.get(args.iter().position(|arg| arg == name)? + 1)?
                .clone(),
        )
    };
    let evals = match option("--evals").map(PathBuf::from) {
        Some(path) => {
            let evals = Evals::changing(load(&path)?);
            tokio::spawn(follow(path, evals.clone()));
            evals
        }
        None => Evals::new(EvalFile::from_json(include_str!("evals.json"))?.into_suite()?),
    };
    let server = evals.around(Notes::default());
    match option("--http") {
        Some(port) => serve_http(server, port.parse()?).await?,
        None => {
            server.serve(stdio()).await?.waiting().await?;
        }
    }
    Ok(())
}

/// Every client gets the same server: its notes are shared.
async fn serve_http(server: WithEvals<Notes>, port: u16) -> std::io::Result<()> {
    let service = StreamableHttpService::new(
        move || Ok(server.clone()),
        Arc::new(LocalSessionManager::default()),
        StreamableHttpServerConfig::default(),
    );
    let listener = TcpListener::bind(("127.0.0.1", port)).await?;
    writeln!(std::io::stdout(), "http://{}/mcp", listener.local_addr()?)?;
    let app = axum::Router::new().route_service("/mcp", service);
    axum::serve(
        listener.tap_io(|stream| drop(stream.set_nodelay(true))),
        app,
    )
    .await
}
