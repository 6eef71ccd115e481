//! The client's side of the protocol: what is sent for what was received.
//!
//! Main type: [`Client`]. It knows nothing of processes and clocks, and whatever an agent writes, it
//! goes on.

use proctor_core::event::AgentClaimed;
use proctor_core::message::{Id, Kind, Message};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::answer::Answer;
use super::calls::Calls;
use super::policy::{self, Policy, Ruling};
use super::tells::{self, Outage, Trouble};
use super::{Dialect, Opening};
use crate::external::{Told, Way};
use proctor_contain::process::Ended;
use proctor_core::decision::last_words;
use proctor_wire::rpc;
use proctor_wire::worker;

/// The version of the protocol.
const VERSION: u64 = 1;

/// JSON-RPC's code for a method that there is not.
const NO_METHOD: i64 = -32601;

/// The code for "you have to log in first".
const AUTHENTICATION: i64 = -32000;

/// How many refused permissions are told.
const REFUSED: usize = 3;

/// How a session with an agent stands.
#[derive(Debug)]
pub(super) struct Client {
    dialect: Dialect,
    opening: Opening,
    policy: Policy,
    state: State,
    /// The number of the last request.
    number: u64,
    session: Option<String>,
    logins: Vec<String>,
    has_logged_in: bool,
    calls: Calls,
    answer: Answer,
    outage: Outage,
    told: Told,
}

/// What the agent was asked last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Initialize,
    Authenticate,
    NewSession,
    SetMode,
    Prompt,
    /// Nothing more: it is known how it ended.
    Done,
}

/// What comes of a line.
#[derive(Debug, Default)]
pub(super) struct Reply {
    /// What is to be sent, each a line.
    pub(super) send: Vec<Vec<u8>>,
    /// What the agent says of its calls.
    pub(super) claims: Vec<AgentClaimed>,
}

impl Client {
    /// A session that is to be opened, and its first message.
    pub(super) fn new(dialect: Dialect, opening: Opening, policy: Policy) -> (Self, Vec<u8>) {
        let mut client = Self {
            dialect,
            opening,
            policy,
            state: State::Initialize,
            number: 0,
            session: None,
            logins: Vec::new(),
            has_logged_in: false,
            calls: Calls::new(dialect),
            answer: Answer::default(),
            outage: Outage::default(),
            told: Told::default(),
        };
        let first = client.ask(
            State::Initialize,
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

    /// Takes a line that the agent wrote. What is no message is passed by: it is in the record.
    pub(super) fn line(&mut self, line: &[u8]) -> Reply {
        let mut reply = Reply::default();
        // A line that is only partly a message has been taken as far as it is one.
        let _ = worker::each_message(line, &mut |message| self.message(message, &mut reply));
        reply
    }

    /// Whether it is known how the agent ended.
    pub(super) fn is_done(&self) -> bool {
        self.state == State::Done
    }

    /// Whether the agent has answered its greeting, and is fit for work.
    pub(super) fn is_greeted(&self) -> bool {
        !matches!(self.state, State::Initialize | State::Done)
    }

    /// What tells the agent to stop what it does, if it does something.
    pub(super) fn cancel(&self) -> Option<Vec<u8>> {
        let session = self.session.as_ref()?;
        let params = raw(&json!({"sessionId": session}));
        (self.state == State::Prompt).then(|| rpc::notification("session/cancel", Some(&params)))
    }

    /// What it all came to. How the program ended matters only if it did so too early.
    pub(super) fn end(&mut self, ended: Ended, stderr: &str) -> (Told, Vec<AgentClaimed>) {
        if !self.is_done() {
            let when = match self.state {
                State::Prompt => "in the middle of its work",
                _ => "before it took its task",
            };
            let words = last_words(stderr);
            let note = &self.opening.note;
            self.told.error = Some(format!("it {ended} {when}{note}{words}"));
        }
        (std::mem::take(&mut self.told), self.calls.rest())
    }

    fn message(&mut self, message: &Message<'_>, reply: &mut Reply) {
        match message.kind() {
            Kind::Request { method, .. } => {
                let Some(id) = message.id else { return };
                let params = value(message.params);
                let answer = self.request(method, &params, reply);
                let answer = answer.as_ref().map(String::as_str);
                reply
                    .send
                    .push(rpc::answer(id, answer.map_err(|e| (NO_METHOD, *e))));
            }
            Kind::Notification { method } => {
                if method == "session/update" {
                    self.update(&value(message.params)["update"], reply);
                }
            }
            Kind::Answer { id } if id == Id::Value(self.number.to_string()) && !self.is_done() => {
                match message.error {
                    Some(error) => self.failed(&value(Some(error)), reply),
                    None => self.answered(&value(message.result), reply),
                }
            }
            Kind::Answer { .. } | Kind::Neither => {}
        }
    }

    /// Answers a request of the agent's.
    fn request(
        &mut self,
        method: &str,
        params: &Value,
        reply: &mut Reply,
    ) -> Result<String, &'static str> {
        match method {
            "session/request_permission" => Ok(self.permit(params, reply).to_string()),
            _ if method.starts_with("fs/") => Err("there are no files for the agent"),
            _ if method.starts_with("terminal/") => Err("there is no terminal for the agent"),
            _ => Err("there is no such method"),
        }
    }

    fn permit(&mut self, params: &Value, reply: &mut Reply) -> Value {
        let options = &params["options"];
        let call = self.calls.asked(&params["toolCall"]);
        let (id, name, mut ruling) = match call {
            Some(call) => (
                call.id.clone(),
                call.name().to_owned(),
                self.policy.rule(call),
            ),
            None => (String::new(), String::new(), Ruling::Foreign),
        };
        if ruling == Ruling::Allowed && !policy::can_allow(options) {
            ruling = Ruling::Denied;
        }
        if let (true, Some(call)) = (ruling != Ruling::Allowed, call)
            && let Some(why) = self.policy.why(call)
            && self.told.refused.len() < REFUSED
            && !self.told.refused.contains(&why)
        {
            self.told.refused.push(why);
        }
        if ruling == Ruling::Denied && !self.told.denied.contains(&name) {
            self.told.denied.push(name);
        }
        if ruling != Ruling::Allowed {
            reply.claims.extend(self.calls.denied(&id));
        }
        policy::outcome(ruling, options)
    }

    fn update(&mut self, update: &Value, reply: &mut Reply) {
        match update["sessionUpdate"].as_str() {
            Some("agent_message_chunk") => {
                if let Some(text) = update["content"]["text"].as_str() {
                    self.answer.piece(update["messageId"].as_str(), text);
                }
            }
            Some("tool_call" | "tool_call_update") => {
                self.answer.over();
                reply.claims.extend(self.calls.told(update));
            }
            Some("session_info_update") => {
                self.outage.told(self.dialect, update);
                if let (State::Prompt, Some(trouble)) = (self.state, self.outage.hopeless()) {
                    reply.send.extend(self.cancel());
                    self.give_up(trouble);
                }
            }
            // Thoughts are no answer.
            _ => {}
        }
    }

    /// Goes on from what the agent answered.
    fn answered(&mut self, result: &Value, reply: &mut Reply) {
        match self.state {
            State::Initialize => self.initialized(result, reply),
            State::Authenticate => reply.send.push(self.open()),
            State::NewSession => match result["sessionId"].as_str() {
                Some(session) => {
                    self.session = Some(session.to_owned());
                    let next = self.opened();
                    reply.send.push(next);
                }
                None => self.give_up(Trouble::Other(
                    "it opened a session without a name".to_owned(),
                )),
            },
            State::SetMode => reply.send.push(self.prompt()),
            State::Prompt => self.finished(result),
            State::Done => {}
        }
    }

    fn initialized(&mut self, result: &Value, reply: &mut Reply) {
        let version = &result["protocolVersion"];
        if version.as_u64() != Some(VERSION) {
            let error = format!("it speaks version {version} of ACP, and not {VERSION}");
            return self.give_up(Trouble::Other(error));
        }
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
                Way::Http { .. } if !can("http") => Some((name, "over HTTP")),
                Way::Sse { .. } if !can("sse") => Some((name, "over HTTP with server-sent events")),
                _ => None,
            });
        match refused {
            Some((name, how)) => {
                let error = format!("it can't use the server `{name}`: it takes none {how}");
                self.give_up(Trouble::Other(error));
            }
            None => reply.send.push(self.open()),
        }
    }

    fn open(&mut self) -> Vec<u8> {
        self.ask(State::NewSession, "session/new", &self.opening.session())
    }

    fn opened(&mut self) -> Vec<u8> {
        let Some(mode) = self.opening.mode else {
            return self.prompt();
        };
        let params = json!({"sessionId": self.session, "modeId": mode});
        self.ask(State::SetMode, "session/set_mode", &params)
    }

    fn prompt(&mut self) -> Vec<u8> {
        let prompt = json!([{"type": "text", "text": self.opening.prompt}]);
        let params = json!({"sessionId": self.session, "prompt": prompt});
        self.ask(State::Prompt, "session/prompt", &params)
    }

    /// The agent says that it is done.
    fn finished(&mut self, result: &Value) {
        self.told.usage = tells::usage(self.dialect, result);
        let answer = self.answer.text();
        let trouble = tells::ended(self.dialect, result, answer.as_deref());
        match trouble.or_else(|| self.outage.fatal()) {
            Some(trouble) => self.give_up(trouble),
            None if self.answer.is_cut() => {
                self.give_up(Trouble::Other("its answer is too long".to_owned()));
            }
            None => {
                self.told.answer = answer;
                self.state = State::Done;
            }
        }
    }

    /// The agent answered with an error.
    fn failed(&mut self, error: &Value, reply: &mut Reply) {
        let code = error["code"].as_i64().unwrap_or_default();
        let message = error["message"].as_str().unwrap_or_default();
        if self.state == State::NewSession && code == AUTHENTICATION {
            return self.log_in(message, reply);
        }
        let doing = match self.state {
            State::Initialize => "it could not be greeted: ",
            State::Authenticate => "it could not log in: ",
            State::NewSession => "it opened no session: ",
            State::SetMode => "its mode could not be set: ",
            State::Prompt | State::Done => "",
        };
        let note = &self.opening.note;
        let more = error["data"]["details"].as_str();
        let more = more.map_or(String::new(), |more| format!(": {more}"));
        let is_prompted = matches!(self.state, State::Prompt | State::Done);
        let said = format!("{message}{more}");
        let trouble = match tells::failed(self.dialect, is_prompted, code, &said) {
            Trouble::Model(why) => Trouble::Model(format!("{doing}{why}{note}")),
            Trouble::Other(why) => Trouble::Other(format!("{doing}{why}{note}")),
            Trouble::OutOfTurns => Trouble::OutOfTurns,
        };
        self.give_up(trouble);
    }

    /// Logs in by a key that is in the environment, where the agent has a way to do that.
    fn log_in(&mut self, message: &str, reply: &mut Reply) {
        let by_key = match self.dialect {
            Dialect::Codex => Some("api-key"),
            Dialect::Gemini => Some("gemini-api-key"),
            _ => None,
        };
        match by_key.filter(|id| self.logins.iter().any(|login| login == id)) {
            Some(id) if !self.has_logged_in => {
                self.has_logged_in = true;
                let params = json!({"methodId": id});
                reply
                    .send
                    .push(self.ask(State::Authenticate, "authenticate", &params));
            }
            _ => self.give_up(Trouble::Model(format!(
                "it wants to be logged in, and has no key: {message}{}",
                self.opening.note
            ))),
        }
    }

    fn give_up(&mut self, trouble: Trouble) {
        match trouble {
            Trouble::OutOfTurns => self.told.out_of_turns = true,
            Trouble::Model(error) => {
                self.told.model_lost = true;
                self.told.error = Some(error);
            }
            Trouble::Other(error) => self.told.error = Some(error),
        }
        self.state = State::Done;
    }

    fn ask(&mut self, state: State, method: &str, params: &Value) -> Vec<u8> {
        self.state = state;
        self.number += 1;
        rpc::request(self.number, method, Some(&raw(params)))
    }
}

/// A part of a message; what can't be read is nothing.
fn value(raw: Option<&RawValue>) -> Value {
    raw.and_then(|raw| serde_json::from_str(raw.get()).ok())
        .unwrap_or_default()
}

fn raw(value: &Value) -> Box<RawValue> {
    // A value always serialises.
    serde_json::value::to_raw_value(value).unwrap_or_default()
}
