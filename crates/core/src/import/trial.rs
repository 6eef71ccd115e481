//! The events of an imported trial.
//!
//! The main function is [`write`]. Calls become requests and responses on connections of the actor
//! [`Actor::Imported`]: the file has the time of a call, but not of its response.

use std::collections::HashMap;

use serde_json::json;

use proctor_record::event::{
    Actor, AgentEnded, AgentStarted, Body, ConnectionId, ConnectionOpened, Direction, EventKind,
    Frame, Phase, Purpose, StepEnded, TrialEnded, TrialStarted,
};
use proctor_record::model::Usage;
use proctor_record::record::{RecordError, RunWriter, TrialWriter};
use proctor_record::transcript::CallKind;

use super::outcome;
use super::plan::{ImportPlan, Slot};
use super::result_file::{CallEntry, PhaseEntry, ResultEntry};
use super::time;

/// The error that Proctor writes for a call without a response.
const NO_ANSWER: &str = "no answer";

/// Writes the trial of an entry up to its end, which is returned with its time.
pub(super) fn write(
    run: &RunWriter,
    plan: &ImportPlan,
    slot: &Slot,
    number: usize,
    entry: &ResultEntry,
) -> Result<(TrialWriter, u64, TrialEnded), RecordError> {
    let calls = calls(plan, entry);
    let first = calls.first().map_or(0, |call| call.at);
    let started = TrialStarted {
        case: plan.case(slot).id.clone(),
        agent: Some(plan.agent(slot).to_owned()),
        repeat: slot.repeat,
        attempt: 1,
    };
    // Several tasks may have the same name.
    let name = format!("{}-{}", number + 1, entry.task_name);
    let mut trial = ImportedTrial {
        trial: run.trial(first, &name, started)?,
        at: first,
        connections: HashMap::new(),
        next_id: 1,
    };
    trial.steps(Phase::Setup, entry.setup_output.as_ref(), false)?;
    trial.work(plan, entry, &calls)?;
    let is_graded = entry.task_passed == Some(true)
        || entry.all_assertions_passed == Some(true)
        || !entry.assertion_results.0.is_empty();
    trial.steps(Phase::Grade, entry.verify_output.as_ref(), is_graded)?;
    for check in outcome::checks(entry) {
        trial.append(EventKind::Graded(check))?;
    }
    trial.steps(Phase::Cleanup, entry.cleanup_output.as_ref(), false)?;
    Ok((trial.trial, trial.at, outcome::outcome(entry)))
}

/// A call of an entry, with its time.
struct TimedCall<'a> {
    kind: CallKind,
    at: u64,
    call: &'a CallEntry,
}

/// All calls in the order of their times. A call without a time keeps its place in its list.
fn calls<'a>(plan: &ImportPlan, entry: &'a ResultEntry) -> Vec<TimedCall<'a>> {
    let history = &entry.call_history;
    let mut calls = Vec::new();
    for (kind, list) in [
        (CallKind::Tool, &history.tool_calls),
        (CallKind::Resource, &history.resource_reads),
        (CallKind::Prompt, &history.prompt_gets),
    ] {
        let mut at = 0;
        for call in list {
            let time = time(call.timestamp.as_deref());
            at = time.map_or(at, |time| plan.micros(time));
            calls.push(TimedCall { kind, at, call });
        }
    }
    calls.sort_by_key(|call| call.at);
    calls
}

struct ImportedTrial {
    trial: TrialWriter,
    /// The time of the latest event.
    at: u64,
    connections: HashMap<String, ConnectionId>,
    /// The id of the next request.
    next_id: u64,
}

impl ImportedTrial {
    fn append(&mut self, what: EventKind) -> Result<(), RecordError> {
        self.trial.append(self.at, what).map(drop)
    }

    /// A phase and its steps, if the file describes it, or shows otherwise that it was reached.
    fn steps(
        &mut self,
        phase: Phase,
        output: Option<&PhaseEntry>,
        is_reached: bool,
    ) -> Result<(), RecordError> {
        let described = output.filter(|output| output.success || !output.steps.is_empty());
        if described.is_none() && !is_reached {
            return Ok(());
        }
        self.append(EventKind::PhaseStarted { phase })?;
        let Some(output) = described else {
            return Ok(());
        };
        for (number, step) in output.steps().enumerate() {
            let message = (!step.message.is_empty()).then(|| Body::Text(step.message.clone()));
            self.append(EventKind::StepEnded(StepEnded {
                phase,
                id: format!("{}_{number}", prefix(phase)),
                kind: step.kind.clone(),
                verdict: outcome::step_verdict(step),
                output: message,
                outputs: step.outputs.clone(),
                duration: 0,
            }))?;
        }
        Ok(())
    }

    /// What the agent did.
    fn work(
        &mut self,
        plan: &ImportPlan,
        entry: &ResultEntry,
        calls: &[TimedCall<'_>],
    ) -> Result<(), RecordError> {
        let phase = Phase::Drive;
        self.append(EventKind::PhaseStarted { phase })?;
        self.append(EventKind::AgentStarted(AgentStarted {
            command: plan.agent_command(),
            version: None,
            skill_tool: None,
            purpose: Purpose::Agent,
        }))?;
        for call in calls {
            self.at = self.at.max(call.at);
            self.call(plan, call)?;
        }
        let output = entry.agent_output.as_ref();
        for step in output.iter().flat_map(|output| output.steps()) {
            let line = Body::Text(json!(step).to_string());
            self.append(EventKind::AgentWrote { line })?;
        }
        if !entry.task_output.is_empty() {
            let text = Body::Text(entry.task_output.clone());
            self.append(EventKind::AgentAnswered { text })?;
        }
        let how = match output {
            Some(output) if !output.error.is_empty() => output.error.clone(),
            Some(output) if output.success => "succeeded".to_owned(),
            _ => "ended".to_owned(),
        };
        let usage = entry.token_estimate.actual.map(|actual| Usage {
            input: actual.input_tokens,
            output: actual.output_tokens,
            ..Usage::default()
        });
        self.append(EventKind::AgentEnded(AgentEnded {
            how,
            usage: usage.and_then(|usage| usage.believable().ok()),
            turns: None,
            stderr: None,
        }))
    }

    fn call(&mut self, plan: &ImportPlan, call: &TimedCall<'_>) -> Result<(), RecordError> {
        let TimedCall { kind, call, .. } = call;
        let conn = self.connection(plan, &call.server_name)?;
        let id = self.next_id;
        self.next_id += 1;
        let params = call.request.params.as_ref();
        let params = params.map(|params| params.get().to_owned());
        let params = params.filter(|params| params.trim_start().starts_with('{'));
        let params = params.unwrap_or_else(|| match kind {
            CallKind::Tool | CallKind::Prompt => json!({ "name": call.name }).to_string(),
            CallKind::Resource => json!({ "uri": call.uri }).to_string(),
        });
        let method = kind.method();
        let request =
            format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#);
        self.frame(conn, Direction::ToServer, &request)?;
        match response(call) {
            Response::Result(result) => {
                let text = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#);
                self.frame(conn, Direction::ToClient, &text)
            }
            Response::Error { code, message } => {
                let error = json!({ "code": code, "message": message });
                let text = format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{error}}}"#);
                self.frame(conn, Direction::ToClient, &text)
            }
            Response::NotInFile => self.append(EventKind::Frame(Frame {
                conn,
                exchange: None,
                direction: Direction::ToClient,
                body: Body::Cut {
                    bytes: 0,
                    sha256: String::new(),
                },
            })),
            Response::None => Ok(()),
        }
    }

    fn connection(&mut self, plan: &ImportPlan, name: &str) -> Result<ConnectionId, RecordError> {
        if let Some(conn) = self.connections.get(name) {
            return Ok(*conn);
        }
        let number = u32::try_from(self.connections.len() + 1).unwrap_or(u32::MAX);
        let (transport, target) = plan.server(name);
        self.append(EventKind::ConnectionOpened(ConnectionOpened {
            conn: ConnectionId(number),
            server: name.to_owned(),
            actor: Actor::Imported,
            transport,
            target,
        }))?;
        self.connections
            .insert(name.to_owned(), ConnectionId(number));
        Ok(ConnectionId(number))
    }

    fn frame(
        &mut self,
        conn: ConnectionId,
        direction: Direction,
        text: &str,
    ) -> Result<(), RecordError> {
        let frame = self
            .trial
            .append_frame(self.at, conn, None, direction, text.as_bytes());
        frame.map(drop)
    }
}

/// What came back from a call, as far as the file says.
enum Response<'a> {
    Result(&'a str),
    Error {
        code: i64,
        message: &'a str,
    },
    /// The call succeeded, and its result is not in the file.
    NotInFile,
    /// The call had no response.
    None,
}

fn response(call: &CallEntry) -> Response<'_> {
    let result = call.result.as_ref().map(|result| result.get());
    match (call.error.as_str(), call.success, result) {
        (NO_ANSWER, Some(false), None) => Response::None,
        ("", Some(true) | None, Some(result)) => Response::Result(result),
        ("", Some(true), None) => Response::NotInFile,
        ("", Some(false) | None, _) => Response::Error {
            code: 0,
            message: "the result file marks the call as failed, and gives no reason",
        },
        (error, _, _) => {
            let (code, message) = coded(error);
            Response::Error { code, message }
        }
    }
}

/// The code and the message of an error. Proctor writes `CODE: MESSAGE`; mcpchecker has no codes, which is
/// zero here.
fn coded(error: &str) -> (i64, &str) {
    let coded = error.split_once(": ");
    let coded = coded.and_then(|(code, message)| Some((code.parse().ok()?, message)));
    coded.unwrap_or((0, error))
}

/// The name of a phase in the ids of its steps, as in suites.
fn prefix(phase: Phase) -> &'static str {
    match phase {
        Phase::Setup => "setup",
        Phase::Grade => "verify",
        Phase::Cleanup => "cleanup",
        Phase::Serve | Phase::Drive => "step",
    }
}
