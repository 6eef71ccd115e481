//! The events of the runs.

use std::collections::BTreeMap;

use proctor_record::event::{
    Actor, Body, CheckEvaluated, CheckId, ConnectionId, ConnectionOpened, EventKind, ModelAsked,
    ModelReplied, Phase, PlannedAgent, PlannedCase, Purpose, RECORD_VERSION, RunPlanned,
    RunStarted, ServerSeen, SourceContext, StepEnded, WireKind,
};
use proctor_record::model::{StopReason, Usage};
use proctor_record::verdict::Verdict;
use serde_json::{Value, json};

pub(crate) const CONN: ConnectionId = ConnectionId(1);

pub(crate) fn run_started(name: &str) -> RunStarted {
    RunStarted {
        record: RECORD_VERSION,
        proctor: env!("CARGO_PKG_VERSION").to_owned(),
        started: "2026-11-15T13:36:20Z".to_owned(),
        name: name.to_owned(),
        command: vec![
            "proctor".to_owned(),
            "check".to_owned(),
            "eval.yaml".to_owned(),
        ],
        context: Some(SourceContext {
            commit: Some("62cd0e2a9b1f".repeat(4)),
            branch: Some("main".to_owned()),
            dirty: Some(false),
            pull_request: None,
            job_url: None,
        }),
    }
}

pub(crate) fn case(name: &str, runs: u32, pass: Option<(u32, u32)>) -> PlannedCase {
    PlannedCase {
        path: format!("tasks/{name}.yaml"),
        hash: "1dc1a9".repeat(8),
        pass,
        difficulty: Some("medium".to_owned()),
        labels: BTreeMap::from([("area".to_owned(), "pods".to_owned())]),
        parallel: true,
        verify_steps: Some(1),
        ..PlannedCase::new(format!("tasks/{name}.yaml"), name.to_owned(), runs)
    }
}

pub(crate) fn planned(cases: Vec<PlannedCase>, agents: &[&str]) -> EventKind {
    let agent = |name: &&str| PlannedAgent {
        name: (*name).to_owned(),
        model: Some("openai:gpt-5".to_owned()),
    };
    EventKind::RunPlanned(Box::new(RunPlanned {
        judge: Some("openai:gpt-5".to_owned()),
        ..RunPlanned::new(
            "/suites/kubernetes/eval.yaml".to_owned(),
            cases,
            agents.iter().map(agent).collect(),
        )
    }))
}

/// A server with tools of these names, a resource and a prompt.
pub(crate) fn seen(server: &str, tools: &[&str]) -> EventKind {
    let schema = json!({
        "type": "object",
        "properties": {
            "namespace": {"type": "string", "description": "The namespace."},
            "name": {"type": "string"},
            "output": {"enum": ["json", "yaml", "wide"]},
            "limit": {"type": "integer"},
        },
        "required": ["namespace"],
    });
    let tools: Vec<Value> = tools
        .iter()
        .map(|name| json!({"name": name, "description": "Does one thing to pods and deployments, and says what it did.", "inputSchema": schema}))
        .collect();
    let count = tools.len() as u64;
    let surface = json!({
        "tools": tools,
        "resources": [{"uri": "k8s://cluster/info", "name": "info"}],
        "prompts": [{"name": "diagnose", "arguments": [{"name": "pod", "required": true}]}],
        "instructions": "Always name the namespace.",
    });
    EventKind::ServerSeen(ServerSeen {
        server: server.to_owned(),
        name: Some(server.to_owned()),
        version: Some("0.4.1".to_owned()),
        protocol: "2025-11-25".to_owned(),
        tools: count,
        resources: 1,
        prompts: 1,
        tools_digest: Some("ab12".repeat(16)),
        tool_list: None,
        surface: Some(text(&surface.to_string())),
        started_in: Some(412_000),
    })
}

pub(crate) fn text(text: &str) -> Body {
    Body::Text(text.to_owned())
}

pub(crate) fn opened(server: &str) -> EventKind {
    EventKind::ConnectionOpened(ConnectionOpened {
        conn: CONN,
        server: server.to_owned(),
        actor: Actor::Loop,
        transport: WireKind::Stdio,
        target: "kubernetes-mcp-server --read-only".to_owned(),
    })
}

pub(crate) fn asked(ask: u64) -> EventKind {
    EventKind::ModelAsked(ModelAsked {
        ask,
        purpose: Purpose::Agent,
        model: "openai:gpt-5".to_owned(),
        known: 0,
        request: text("{}"),
        digest: "0".to_owned(),
    })
}

pub(crate) fn replied(ask: u64, turn: &Value, input: u64) -> EventKind {
    EventKind::ModelReplied(ModelReplied {
        ask,
        turn: text(&turn.to_string()),
        raw: None,
        stop: StopReason::Done,
        usage: Usage {
            input: Some(input),
            output: Some(input / 12),
            ..Usage::default()
        },
        cost_usd: Some(0.000_004 * f64::from(u32::try_from(input).unwrap_or(0))),
    })
}

pub(crate) fn graded(
    check: CheckId,
    verdict: Verdict,
    evidence: Vec<u64>,
    notes: &[&str],
) -> EventKind {
    EventKind::Graded(CheckEvaluated {
        check: check.name().to_owned(),
        id: Some(check),
        details: vec!["at least 1 call of `get_pod` with `namespace` \"prod\"".to_owned()],
        verdict,
        evidence,
        notes: notes.iter().map(|note| (*note).to_owned()).collect(),
    })
}

pub(crate) fn step(phase: Phase, id: &str, verdict: Verdict, output: &str) -> EventKind {
    EventKind::StepEnded(StepEnded {
        phase,
        id: id.to_owned(),
        kind: "script".to_owned(),
        verdict,
        output: Some(text(output)),
        outputs: BTreeMap::new(),
        duration: 41_000,
    })
}
