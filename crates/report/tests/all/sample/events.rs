//! The events of the sample run, each with the values that most trials have.

use std::collections::BTreeMap;

use proctor_record::event::{
    Actor, Blame, Body, CheckEvaluated, ConnectionId, ConnectionOpened, Direction, EventKind,
    ModelAsked, ModelReplied, Outcome, Phase, PlannedAgent, PlannedCase, Purpose, RECORD_VERSION,
    RunPlanned, RunStarted, ServerSeen, StepEnded, TrialEnded, TrialStarted, WireKind,
};
use proctor_record::model::{StopReason, Usage};
use proctor_record::record::{RecordError, RunWriter, TrialWriter};
use proctor_record::verdict::Verdict;

pub(super) fn case(name: &str, runs: u32, pass: Option<(u32, u32)>) -> PlannedCase {
    PlannedCase {
        path: "tasks/sample.yaml".to_owned(),
        hash: "c0ffee".to_owned(),
        pass,
        difficulty: Some("easy".to_owned()),
        labels: [("area".to_owned(), "files".to_owned())].into(),
        parallel: true,
        verify_steps: Some(0),
        ..PlannedCase::new(id(name), name.to_owned(), runs)
    }
}

fn id(name: &str) -> String {
    format!("tasks/sample.yaml#{name}")
}

pub(super) fn run_started() -> RunStarted {
    RunStarted {
        record: RECORD_VERSION,
        proctor: "0.1.0".to_owned(),
        started: "2026-11-15T05:00:00Z".to_owned(),
        name: "sample".to_owned(),
        command: vec!["proctor".to_owned(), "check".to_owned()],
        context: None,
    }
}

pub(super) fn planned(cases: Vec<PlannedCase>, agents: &[&str]) -> EventKind {
    EventKind::RunPlanned(Box::new(RunPlanned {
        judge: Some("openai:gpt".to_owned()),
        ..RunPlanned::new(
            "/suites/sample.yaml".to_owned(),
            cases,
            agents
                .iter()
                .map(|name| PlannedAgent {
                    name: (*name).to_owned(),
                    model: Some("scripted:answers.yaml".to_owned()),
                })
                .collect(),
        )
    }))
}

pub(super) fn seen() -> EventKind {
    EventKind::ServerSeen(ServerSeen {
        server: "fs".to_owned(),
        name: Some("filesystem".to_owned()),
        version: Some("1.2.0".to_owned()),
        protocol: "2025-11-25".to_owned(),
        tools: 11,
        resources: 0,
        prompts: 0,
        tools_digest: None,
        tool_list: None,
        surface: None,
        started_in: None,
    })
}

pub(super) fn trial(
    run: &RunWriter,
    case: &str,
    repeat: u32,
    attempt: u32,
) -> Result<TrialWriter, RecordError> {
    trial_by(run, "scripted", case, repeat, attempt)
}

pub(super) fn trial_by(
    run: &RunWriter,
    agent: &str,
    case: &str,
    repeat: u32,
    attempt: u32,
) -> Result<TrialWriter, RecordError> {
    let started = TrialStarted {
        case: id(case),
        agent: Some(agent.to_owned()),
        repeat,
        attempt,
    };
    run.trial(1_000_000, &format!("{case}.{agent}.{repeat}"), started)
}

pub(super) fn ended(outcome: Outcome, reason: Option<&str>, blame: Option<Blame>) -> TrialEnded {
    TrialEnded {
        outcome,
        reason: reason.map(str::to_owned),
        blame,
    }
}

pub(super) fn text(text: &str) -> Body {
    Body::Text(text.to_owned())
}

pub(super) fn opened() -> EventKind {
    EventKind::ConnectionOpened(ConnectionOpened {
        conn: ConnectionId(1),
        server: "fs".to_owned(),
        actor: Actor::Loop,
        transport: WireKind::Stdio,
        target: "fs-server".to_owned(),
    })
}

pub(super) fn asked(ask: u64, purpose: Purpose) -> EventKind {
    EventKind::ModelAsked(ModelAsked {
        ask,
        purpose,
        model: "scripted:answers.yaml".to_owned(),
        known: 0,
        request: text("{}"),
        digest: "0".to_owned(),
    })
}

pub(super) fn replied(ask: u64, input: Option<u64>, cost_usd: Option<f64>) -> EventKind {
    EventKind::ModelReplied(ModelReplied {
        ask,
        turn: text("{}"),
        raw: None,
        stop: StopReason::Done,
        usage: Usage {
            input,
            output: input.map(|input| input / 10),
            ..Usage::default()
        },
        cost_usd,
    })
}

pub(super) fn step(
    phase: Phase,
    id: &str,
    kind: &str,
    verdict: Verdict,
    output: &str,
) -> EventKind {
    EventKind::StepEnded(StepEnded {
        phase,
        id: id.to_owned(),
        kind: kind.to_owned(),
        verdict,
        output: (!output.is_empty()).then(|| text(output)),
        outputs: BTreeMap::new(),
        duration: 40_000,
    })
}

pub(super) fn graded(
    check: &str,
    verdict: Verdict,
    evidence: Vec<u64>,
    notes: &[&str],
) -> EventKind {
    EventKind::Graded(CheckEvaluated {
        check: check.to_owned(),
        id: None,
        details: vec!["fs.read_file".to_owned()],
        verdict,
        evidence,
        notes: notes.iter().map(|note| (*note).to_owned()).collect(),
    })
}

/// A call, and an answer to it if there is one: an error of the tool, in text that is the arguments.
pub(super) fn call(
    trial: &mut TrialWriter,
    id: u64,
    tool: &str,
    arguments: &str,
    answered: bool,
) -> Result<(), RecordError> {
    let answer = answered.then(|| format!("ENOENT: no such file: {arguments}"));
    call_answered(trial, id, tool, arguments, answer.as_deref())
}

/// A call, and the text of the tool's error that answers it.
pub(super) fn call_answered(
    trial: &mut TrialWriter,
    id: u64,
    tool: &str,
    arguments: &str,
    answer: Option<&str>,
) -> Result<(), RecordError> {
    let name = serde_json::Value::from(tool);
    let request = format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":{name},"arguments":{arguments}}}}}"#
    );
    let conn = ConnectionId(1);
    trial.append_frame(
        1_120_000,
        conn,
        None,
        Direction::ToServer,
        request.as_bytes(),
    )?;
    if let Some(text) = answer {
        let content = serde_json::json!([{ "type": "text", "text": text }]);
        let answer = format!(
            r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":{content},"isError":true}}}}"#
        );
        trial.append_frame(
            1_121_500,
            conn,
            None,
            Direction::ToClient,
            answer.as_bytes(),
        )?;
    }
    Ok(())
}
