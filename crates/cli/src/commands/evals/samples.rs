//! Sample servers with tools and evals, for tests.

use mcp_evals::ListedEval;
use proctor_core::suite::Server;
use proctor_core::suite::server::{AllowedTools, Transport};
use proctor_run::engine::offers::ServerOffer;
use serde_json::{Value, json};

/// The tools and evals of a server on stdio.
pub(super) fn offer(tools: &[Value], evals: &[Value]) -> ServerOffer {
    let listed = evals.iter().cloned().map(ListedEval::from).collect();
    let server = Server {
        name: "library".to_owned(),
        transport: Transport::Stdio {
            command: "server".to_owned(),
            args: Vec::new(),
            env: std::collections::BTreeMap::new(),
            folder: ".".into(),
            cwd: None,
        },
        allowed: AllowedTools::All,
        written: "server".to_owned(),
    };
    ServerOffer::of(server, tools.to_vec(), listed)
}

pub(super) fn execution(id: &str, tool: &str, arguments: &Value) -> Value {
    json!({
        "id": id, "name": id, "gradingType": "exact-match",
        "input": {"type": "execution", "toolName": tool, "arguments": arguments},
        "expected": {"type": "exact-match", "content": []},
    })
}

/// An eval that needs a model and a judge.
pub(super) fn asking(id: &str, level: &str) -> Value {
    json!({
        "id": id, "name": id, "gradingType": "llm-as-judge",
        "input": {"type": level, "messages": [
            {"role": "user", "content": {"type": "text", "text": "Do it."}},
        ]},
        "expected": {"type": "llm-as-judge", "rubric": "It was done."},
    })
}
