//! Sessions of real agents, and everything that can go wrong in one.

mod faults;
mod outage;
mod permissions;
mod presets;
mod recorded;
mod titles;

use std::collections::BTreeMap;
use std::path::PathBuf;

use proctor_core::builtin_agent::BuiltinAgent;
use proctor_core::suite::server::AllowedTools;
use proctor_record::event::{AgentClaimed, Body};
use serde_json::{Value, json};

use super::Acp;
use super::client::AcpClient;
use super::policy::Policy;
use crate::external::{
    Adapter, AgentReport, AgentServer, Assignment, ModelAccess, ModelUrl, ServerRoute,
};
use proctor_contain::process::ProcessExit;
use proctor_models::WireFormat;

/// An agent that Proctor knows and that speaks ACP.
fn known(name: &str) -> Acp<'static> {
    let agent = BuiltinAgent::parse(name).expect("an agent");
    match Adapter::of_builtin(agent) {
        Some(Adapter::Acp(acp)) => acp,
        other => panic!("{name}: {other:?}"),
    }
}

/// A server on stdio.
fn server(name: &str, allowed: AllowedTools) -> AgentServer {
    AgentServer {
        name: name.to_owned(),
        way: ServerRoute::Stdio {
            program: "/bin/proctor".into(),
            args: vec!["__relay".to_owned(), "/run/s".to_owned()],
        },
        allowed,
        tools: Vec::new(),
    }
}

fn only(tools: &[&str]) -> AllowedTools {
    AllowedTools::Only(tools.iter().map(|tool| (*tool).to_owned()).collect())
}

fn assignment(servers: Vec<AgentServer>) -> Assignment {
    Assignment {
        prompt: "What is 20 and 22?".to_owned(),
        servers,
        access: ModelAccess::default(),
        folder: PathBuf::from("/w"),
        skills: None,
        home: PathBuf::from("/h"),
        environment: BTreeMap::from([("PATH".to_owned(), "/bin".to_owned())]),
        max_turns: None,
    }
}

fn at(format: WireFormat, base: &str) -> ModelAccess {
    ModelAccess {
        model: Some("m-1".to_owned()),
        provider: None,
        endpoint: Some(ModelUrl {
            base: base.to_owned(),
            key: "secret-key".to_owned(),
            format,
        }),
    }
}

/// A session with an agent, seen from outside.
struct AcpDialogue {
    client: AcpClient,
    sent: Vec<Value>,
    claims: Vec<AgentClaimed>,
}

impl AcpDialogue {
    fn new(acp: Acp<'_>, assignment: &Assignment) -> Self {
        let plan = acp.prepare(assignment).expect("it is fit");
        let skill_tool = acp.skills().map(|(_, tool)| tool);
        let policy = Policy::new(acp.dialect(), assignment, skill_tool);
        let (client, first) = AcpClient::new(acp.dialect(), plan.opening, policy);
        Self {
            client,
            sent: vec![read(&first)],
            claims: Vec::new(),
        }
    }

    /// A session that is open, with the agent at work.
    fn opened(acp: Acp<'_>, assignment: &Assignment) -> Self {
        let mut talk = Self::new(acp, assignment);
        talk.hear(&json!({"protocolVersion": 1,
            "agentCapabilities": {"mcpCapabilities": {"http": true, "sse": true}}}));
        talk.hear(&json!({"sessionId": "s"}));
        if acp.program() == "codex-acp" {
            talk.hear(&json!({}));
        }
        assert_eq!(talk.last()["method"], "session/prompt");
        talk
    }

    fn line(&mut self, line: &str) {
        let reply = self.client.line(line.as_bytes());
        self.sent.extend(reply.send.iter().map(|sent| read(sent)));
        self.claims.extend(reply.claims);
    }

    /// Answers the last request as the agent.
    fn hear(&mut self, result: &Value) {
        let id = self.asked();
        self.line(&json!({"jsonrpc": "2.0", "id": id, "result": result}).to_string());
    }

    fn hear_error(&mut self, error: &Value) {
        let id = self.asked();
        self.line(&json!({"jsonrpc": "2.0", "id": id, "error": error}).to_string());
    }

    fn update(&mut self, update: &Value) {
        let params = json!({"sessionId": "s", "update": update});
        self.line(
            &json!({"jsonrpc": "2.0", "method": "session/update", "params": params}).to_string(),
        );
    }

    fn says(&mut self, text: &str) {
        self.update(&json!({"sessionUpdate": "agent_message_chunk",
            "content": {"type": "text", "text": text}}));
    }

    fn last(&self) -> &Value {
        self.sent.last().expect("something was sent")
    }

    fn asked(&self) -> Value {
        let mut requests = self.sent.iter().rev();
        let last = requests.find(|sent| sent["method"].is_string() && sent["id"].is_number());
        last.expect("something was asked")["id"].clone()
    }

    fn end(mut self) -> (AgentReport, Vec<AgentClaimed>) {
        let (report, rest) = self.client.end(ProcessExit::Exited(0), "");
        self.claims.extend(rest);
        (report, self.claims)
    }
}

fn read(sent: &[u8]) -> Value {
    assert!(!sent.contains(&b'\n'), "a message is one line");
    serde_json::from_slice(sent).expect("what is sent is JSON")
}

/// Claims in a readable form: `tool arguments status`.
fn shown(claims: &[AgentClaimed]) -> Vec<String> {
    let arguments = |claim: &AgentClaimed| match &claim.arguments {
        Some(Body::Text(text)) => text.clone(),
        _ => "-".to_owned(),
    };
    let show = |claim: &AgentClaimed| {
        let detail = claim.detail.as_ref();
        let detail = detail.map_or(String::new(), |detail| format!(": {detail}"));
        format!(
            "{} {} {:?}{detail}",
            claim.tool,
            arguments(claim),
            claim.status
        )
    };
    claims.iter().map(show).collect()
}
