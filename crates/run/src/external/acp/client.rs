//! The client side of the protocol: computes the messages to send.
//!
//! Main type: [`AcpClient`]. It knows nothing of processes and time, and tolerates any output of an
//! agent.

use proctor_record::event::AgentClaimed;
use proctor_record::json;
use proctor_record::message::{Id, Message};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::AcpSessionRequest;
use super::answer::AnswerAssembler;
use super::calls::AcpCalls;
use super::dialect::Dialect;
use super::failures::{self, AgentFailure, Outage};
use super::policy::{self, PermissionDecision, Policy};
use crate::external::{AgentReport, ServerRoute};
use proctor_contain::process;
use proctor_record::decision::last_words;
use proctor_wire::rpc::{self, MessageHandler, PeerClose, Requests};

/// The version of the protocol.
const VERSION: u64 = 1;

/// JSON-RPC's code for an unknown method.
const NO_METHOD: i64 = -32601;

/// ACP's code for "authentication required".
const AUTHENTICATION: i64 = -32000;

/// How many refused permission requests are reported.
const REFUSED: usize = 3;

/// The state of a session with an agent.
#[derive(Debug)]
pub(super) struct AcpClient {
    dialect: &'static Dialect,
    opening: AcpSessionRequest,
    policy: Policy,
    /// The pending request; empty once the end is known.
    requests: Requests<Question>,
    /// The version that the agent reports.
    pub(super) agent_version: Option<String>,
    session: Option<String>,
    logins: Vec<String>,
    has_logged_in: bool,
    calls: AcpCalls,
    answer: AnswerAssembler,
    outage: Outage,
    report: AgentReport,
    reply: LineOutcome,
}

/// A request to the agent; they are sent one after another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Question {
    Initialize,
    Authenticate,
    NewSession,
    SetMode,
    Prompt,
}

/// The effects of a line.
#[derive(Debug, Default)]
pub(super) struct LineOutcome {
    /// The lines to send.
    pub(super) send: Vec<Vec<u8>>,
    pub(super) claims: Vec<AgentClaimed>,
}

impl AcpClient {
    /// Creates a session and its first message.
    pub(super) fn new(
        dialect: &'static Dialect,
        opening: AcpSessionRequest,
        policy: Policy,
    ) -> (Self, Vec<u8>) {
        let mut client = Self {
            dialect,
            opening,
            policy,
            requests: Requests::default(),
            agent_version: None,
            session: None,
            logins: Vec::new(),
            has_logged_in: false,
            calls: AcpCalls::new(dialect),
            answer: AnswerAssembler::default(),
            outage: Outage::default(),
            report: AgentReport::default(),
            reply: LineOutcome::default(),
        };
        let first = client.ask(
            Question::Initialize,
            "initialize",
            &json!({
                "protocolVersion": VERSION,
                "clientCapabilities": {
                    "fs": {"readTextFile": false, "writeTextFile": false},
                    "terminal": false,
                },
                "clientInfo": {"name": "proctor", "version": env!("CARGO_PKG_VERSION")},
            }),
        );
        (client, first)
    }

    /// Takes a line of the agent. A line that is not a message is ignored; the record has it.
    pub(super) fn line(&mut self, line: &[u8]) -> LineOutcome {
        rpc::receive(line, self);
        std::mem::take(&mut self.reply)
    }

    /// Whether the agent's end is known.
    pub(super) fn is_done(&self) -> bool {
        self.asked().is_none()
    }

    /// Whether the agent answered `initialize` and is usable.
    pub(super) fn is_greeted(&self) -> bool {
        self.asked()
            .is_some_and(|asked| asked != Question::Initialize)
    }

    /// The request that the agent has not answered yet.
    fn asked(&self) -> Option<Question> {
        self.requests.waiters().next().copied()
    }

    /// The message that tells a working agent to stop.
    pub(super) fn cancel(&self) -> Option<Vec<u8>> {
        let session = self.session.as_ref()?;
        let params = raw(&json!({"sessionId": session}));
        (self.asked() == Some(Question::Prompt))
            .then(|| rpc::notification("session/cancel", Some(&params)))
    }

    /// The final report. The program's exit matters only if it came too early.
    pub(super) fn end(
        &mut self,
        ended: process::ProcessExit,
        stderr: &str,
    ) -> (AgentReport, Vec<AgentClaimed>) {
        if let Some(asked) = self.asked() {
            let when = match asked {
                Question::Prompt => "during its work",
                _ => "before it accepted the task",
            };
            let words = last_words(stderr);
            let note = &self.opening.note;
            self.report.error = Some(format!("it {ended} {when}{note}{words}"));
        }
        (std::mem::take(&mut self.report), self.calls.rest())
    }

    fn permit(&mut self, params: &Value) -> Value {
        let options = &params["options"];
        let call = self.calls.take_request(&params["toolCall"]);
        let (id, name, mut ruling) = match call {
            Some(call) => (
                call.id.clone(),
                call.name().to_owned(),
                self.policy.rule(call),
            ),
            None => (String::new(), String::new(), PermissionDecision::Foreign),
        };
        if ruling == PermissionDecision::Allowed && !policy::can_allow(options) {
            ruling = PermissionDecision::Denied;
        }
        if let (true, Some(call)) = (ruling != PermissionDecision::Allowed, call)
            && let Some(why) = self.policy.why(call)
            && self.report.refused.len() < REFUSED
            && !self.report.refused.contains(&why)
        {
            self.report.refused.push(why);
        }
        if ruling == PermissionDecision::Denied && !self.report.denied.contains(&name) {
            self.report.denied.push(name);
        }
        if ruling != PermissionDecision::Allowed {
            self.reply.claims.extend(self.calls.denied(&id));
        }
        policy::outcome(ruling, options)
    }

    fn update(&mut self, update: &Value) {
        match update["sessionUpdate"].as_str() {
            Some("agent_message_chunk") => {
                if let Some(text) = update["content"]["text"].as_str() {
                    self.answer.piece(update["messageId"].as_str(), text);
                }
            }
            Some("tool_call" | "tool_call_update") => {
                self.answer.over();
                self.reply.claims.extend(self.calls.take_update(update));
            }
            Some("session_info_update") => {
                (self.dialect.note_outage)(&mut self.outage, update);
                if let (Some(Question::Prompt), Some(trouble)) =
                    (self.asked(), self.outage.hopeless())
                {
                    self.reply.send.extend(self.cancel());
                    self.give_up(trouble);
                }
            }
            // Thoughts are not part of the answer.
            _ => {}
        }
    }

    /// Continues after an answer of the agent.
    fn answered(&mut self, question: Question, result: &Value) {
        let next = match question {
            Question::Initialize => match self.initialized(result) {
                Ok(()) => self.open(),
                Err(error) => return self.give_up(AgentFailure::Other(error)),
            },
            Question::Authenticate => self.open(),
            Question::NewSession => {
                let Some(session) = result["sessionId"].as_str() else {
                    let error = "it opened a session without an id";
                    return self.give_up(AgentFailure::Other(error.to_owned()));
                };
                self.session = Some(session.to_owned());
                self.opened()
            }
            Question::SetMode => self.prompt(),
            Question::Prompt => return self.finished(result),
        };
        self.reply.send.push(next);
    }

    /// Reads the agent's capabilities, or returns why the agent is unusable.
    fn initialized(&mut self, result: &Value) -> Result<(), String> {
        let version = &result["protocolVersion"];
        if version.as_u64() != Some(VERSION) {
            return Err(format!(
                "it speaks version {version} of ACP, but Proctor speaks version {VERSION}"
            ));
        }
        let version = result["agentInfo"]["version"].as_str();
        self.agent_version = version.map(str::to_owned);
        let methods = result["authMethods"].as_array().into_iter().flatten();
        let ids = methods.filter_map(|method| method["id"].as_str());
        self.logins = ids.map(str::to_owned).collect();
        let can = |what: &str| {
            let capabilities = &result["agentCapabilities"]["mcpCapabilities"];
            capabilities[what].as_bool() == Some(true)
        };
        let refused = self
            .opening
            .servers
            .iter()
            .find_map(|(name, way)| match way {
                ServerRoute::Http { .. } if !can("http") => Some((name, "over HTTP")),
                ServerRoute::Sse { .. } if !can("sse") => Some((name, "over HTTP+SSE")),
                _ => None,
            });
        match refused {
            Some((name, how)) => Err(format!(
                "it can't use the server `{name}`: it does not support servers {how}"
            )),
            None => Ok(()),
        }
    }

    fn open(&mut self) -> Vec<u8> {
        self.ask(Question::NewSession, "session/new", &self.opening.session())
    }

    fn opened(&mut self) -> Vec<u8> {
        let Some(mode) = self.opening.mode else {
            return self.prompt();
        };
        let params = json!({"sessionId": self.session, "modeId": mode});
        self.ask(Question::SetMode, "session/set_mode", &params)
    }

    fn prompt(&mut self) -> Vec<u8> {
        let prompt = json!([{"type": "text", "text": self.opening.prompt}]);
        let params = json!({"sessionId": self.session, "prompt": prompt});
        self.ask(Question::Prompt, "session/prompt", &params)
    }

    /// Handles the end of the agent's turn.
    fn finished(&mut self, result: &Value) {
        self.report.usage = (self.dialect.usage)(result);
        let answer = self.answer.text();
        let trouble = failures::ended(self.dialect, result, answer.as_deref());
        match trouble.or_else(|| self.outage.fatal()) {
            Some(trouble) => self.give_up(trouble),
            None if self.answer.is_cut() => {
                self.give_up(AgentFailure::Other("its answer is too long".to_owned()));
            }
            None => {
                self.report.answer = answer;
                self.requests.end(PeerClose::ByUs);
            }
        }
    }

    /// Handles an error answer of the agent.
    fn failed(&mut self, question: Question, error: &Value) {
        let code = error["code"].as_i64().unwrap_or_default();
        let message = error["message"].as_str().unwrap_or_default();
        if question == Question::NewSession && code == AUTHENTICATION {
            return self.log_in(message);
        }
        let doing = match question {
            Question::Initialize => "`initialize` failed: ",
            Question::Authenticate => "login failed: ",
            Question::NewSession => "`session/new` failed: ",
            Question::SetMode => "`session/set_mode` failed: ",
            Question::Prompt => "",
        };
        let note = &self.opening.note;
        let more = error["data"]["details"].as_str();
        let more = more.map_or(String::new(), |more| format!(": {more}"));
        let is_prompted = question == Question::Prompt;
        let said = format!("{message}{more}");
        let trouble = match failures::failed(self.dialect, is_prompted, code, &said) {
            AgentFailure::Model(why) => AgentFailure::Model(format!("{doing}{why}{note}")),
            AgentFailure::Other(why) => AgentFailure::Other(format!("{doing}{why}{note}")),
            AgentFailure::OutOfTurns => AgentFailure::OutOfTurns,
        };
        self.give_up(trouble);
    }

    /// Logs in with a key from the environment, if the agent supports that.
    fn log_in(&mut self, message: &str) {
        match self
            .dialect
            .key_login
            .filter(|id| self.logins.iter().any(|login| login == id))
        {
            Some(id) if !self.has_logged_in => {
                self.has_logged_in = true;
                let params = json!({"methodId": id});
                let next = self.ask(Question::Authenticate, "authenticate", &params);
                self.reply.send.push(next);
            }
            _ => self.give_up(AgentFailure::Model(format!(
                "it requires a login, and has no key: {message}{}",
                self.opening.note
            ))),
        }
    }

    fn give_up(&mut self, trouble: AgentFailure) {
        match trouble {
            AgentFailure::OutOfTurns => self.report.out_of_turns = true,
            AgentFailure::Model(error) => {
                self.report.model_lost = true;
                self.report.error = Some(error);
            }
            AgentFailure::Other(error) => self.report.error = Some(error),
        }
        self.requests.end(PeerClose::ByUs);
    }

    fn ask(&mut self, question: Question, method: &str, params: &Value) -> Vec<u8> {
        let id = self.requests.open(question);
        rpc::request(id, method, Some(&raw(params)))
    }
}

/// Violations of JSON-RPC are ignored; the record has them.
impl MessageHandler for AcpClient {
    fn request(&mut self, id: &RawValue, method: &str, params: Option<&RawValue>) {
        let answer = match method {
            "session/request_permission" => Ok(self.permit(&value(params)).to_string()),
            _ if method.starts_with("fs/") => Err("file access is not supported"),
            _ if method.starts_with("terminal/") => Err("terminals are not supported"),
            _ => Err("unknown method"),
        };
        let answer = answer.as_deref().map_err(|error| (NO_METHOD, *error));
        self.reply.send.push(rpc::answer(id, answer));
    }

    fn notification(&mut self, method: &str, params: Option<&RawValue>) {
        if method == "session/update" {
            self.update(&value(params)["update"]);
        }
    }

    fn answer(&mut self, id: &Id, message: &Message<'_>) {
        // An error without an id may refer to any message.
        let meant = self.requests.meant(id).filter(|_| *id != Id::Absent);
        let Ok(question) = self.requests.answered(meant) else {
            return;
        };
        match message.error {
            Some(error) => self.failed(question, &value(Some(error))),
            None => self.answered(question, &value(message.result)),
        }
    }
}

/// A part of a message; null if it can't be parsed.
fn value(raw: Option<&RawValue>) -> Value {
    raw.and_then(|raw| json::from_str(raw.get()).ok())
        .unwrap_or_default()
}

fn raw(value: &Value) -> Box<RawValue> {
    // A value always serializes.
    serde_json::value::to_raw_value(value).unwrap_or_default()
}
