//! A generated run: copies of four trials that the real writer wrote, with the index that Proctor makes of them.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::Path;

use proctor_core::summary::Summary;
use proctor_record::event::{
    Actor, Blame, Body, CheckEvaluated, CheckId, ConnectionId, ConnectionOpened, Direction,
    EventKind, ModelAsked, ModelReplied, Outcome, Phase, PlannedAgent, PlannedCase, Purpose,
    RECORD_VERSION, RunEnded, RunPlanned, RunStarted, ServerSeen, TrialEnded, TrialStarted,
    WireKind,
};
use proctor_record::model::{StopReason, Usage};
use proctor_record::record::{RunReader, RunWriter};
use proctor_record::redact::Redactor;
use proctor_record::verdict::Verdict;
use serde_json::json;

/// How many trials each case has with each of the two agents.
pub(crate) const RUNS: u32 = 50;
const AGENTS: [&str; 2] = ["codex (openai:gpt-5)", "goose (openai:gpt-5)"];

/// What a trial came to, and how many of a hundred do.
const KINDS: [(Outcome, u32); 4] = [
    (Outcome::Passed, 85),
    (Outcome::Failed, 10),
    (Outcome::Errored, 4),
    (Outcome::TimedOut, 1),
];

/// Writes a run: four trials by the real writer, copies of them, and an index. The seed changes which trials pass.
pub(crate) fn write(folder: &Path, cases: u32, seed: u32) {
    let mut run = RunWriter::create(folder, Redactor::default(), run_started(seed)).expect("a run");
    run.append(1, plan(cases)).expect("a plan");
    run.append(2, seen()).expect("a server");
    let texts: Vec<String> = KINDS
        .iter()
        .enumerate()
        .map(|(number, (outcome, _))| template(&run, number, *outcome))
        .collect();
    run.end(
        9_000_000_000,
        RunEnded {
            exit: 1,
            ..RunEnded::default()
        },
    )
    .expect("an end");
    let trials = folder.join("trials");
    for number in 0..KINDS.len() {
        fs::remove_file(trials.join(format!("template-{number}.1.jsonl"))).expect("it was written");
    }
    let mut began = String::new();
    for case in 0..cases {
        for (agent, name) in AGENTS.iter().enumerate() {
            for repeat in 1..=RUNS {
                let kind =
                    kind(case * 7919 + repeat * 31 + u32::try_from(agent).unwrap_or(0) + seed);
                let text = texts[kind]
                    .replace("case-00000", &format!("case-{case:05}"))
                    .replace(AGENTS[0], name)
                    .replace("\"repeat\":1", &format!("\"repeat\":{repeat}"))
                    .replace("call #15", &format!("call #{}", 10 + repeat));
                let file = format!(
                    "tasks-case-{case:05}.yaml-agent-{agent}--{repeat}-0123456789ab.1.jsonl"
                );
                fs::write(trials.join(&file), text).expect("a trial can be written");
                let trial =
                    json!({"case": id(case), "agent": name, "repeat": repeat, "attempt": 1});
                let line = json!({"began": {"file": file, "trial": trial, "at": 1}});
                writeln!(began, "{line}").expect("a string takes it");
            }
        }
    }
    let index = folder.join("index.jsonl");
    fs::remove_file(&index).expect("an index");
    let reader = RunReader::open(folder).expect("a run");
    Summary::of_run(&reader).expect("a summary");
    // A live run has a line for each beginning, too.
    let ended = fs::read_to_string(&index).expect("an index");
    let mut both = String::new();
    for (began, ended) in began.lines().zip(ended.lines()) {
        writeln!(both, "{began}\n{ended}").expect("a string takes it");
    }
    fs::write(&index, both).expect("an index can be written");
}

/// Spreads the kinds evenly.
fn kind(number: u32) -> usize {
    let mut left = number % 100;
    for (index, (_, share)) in KINDS.iter().enumerate() {
        match left.checked_sub(*share) {
            Some(more) => left = more,
            None => return index,
        }
    }
    0
}

fn id(case: u32) -> String {
    format!("tasks/case-{case:05}.yaml#case-{case:05}")
}

/// Runs with the same start are the same run.
fn run_started(seed: u32) -> RunStarted {
    RunStarted {
        record: RECORD_VERSION,
        proctor: env!("CARGO_PKG_VERSION").to_owned(),
        started: format!("2026-11-15T05:00:{seed:02}Z"),
        name: "large".to_owned(),
        command: Vec::new(),
        context: None,
    }
}

fn plan(cases: u32) -> EventKind {
    let case = |number: u32| PlannedCase {
        path: format!("tasks/case-{number:05}.yaml"),
        hash: "0123456789abcdef".repeat(4),
        pass: number.is_multiple_of(2).then_some((4, 5)),
        labels: BTreeMap::from([("area".to_owned(), format!("{}", number % 10))]),
        verify_steps: Some(1),
        ..PlannedCase::new(id(number), format!("case-{number:05}"), RUNS)
    };
    EventKind::RunPlanned(Box::new(RunPlanned::new(
        "/suites/large/eval.yaml".to_owned(),
        (0..cases).map(case).collect(),
        AGENTS
            .iter()
            .map(|name| PlannedAgent {
                name: (*name).to_owned(),
                model: Some("openai:gpt-5".to_owned()),
            })
            .collect(),
    )))
}

/// A server with 36 tools, of which the trials use three.
fn seen() -> EventKind {
    let schema = json!({
        "type": "object",
        "properties": {
            "namespace": {"type": "string", "description": "The namespace."},
            "output": {"enum": ["json", "yaml", "wide"]},
            "limit": {"type": "integer"},
        },
        "required": ["namespace"],
    });
    let tools = (0..36).map(|number| {
        json!({"name": format!("tool_{number}"), "description": "Does one thing.", "inputSchema": schema})
    });
    let surface = json!({"tools": tools.collect::<Vec<_>>()});
    EventKind::ServerSeen(ServerSeen {
        server: "kubernetes".to_owned(),
        name: Some("kubernetes".to_owned()),
        version: Some("0.4.1".to_owned()),
        protocol: "2025-11-25".to_owned(),
        tools: 36,
        resources: 0,
        prompts: 0,
        tools_digest: None,
        tool_list: None,
        surface: Some(Body::Text(surface.to_string())),
        started_in: None,
    })
}

/// The text of a trial with three calls, three turns and four checks.
fn template(run: &RunWriter, number: usize, outcome: Outcome) -> String {
    let started = TrialStarted {
        case: id(0),
        agent: Some(AGENTS[0].to_owned()),
        repeat: 1,
        attempt: 1,
    };
    let name = format!("template-{number}");
    let mut trial = run.trial(1_000_000, &name, started).expect("a trial");
    let conn = ConnectionId(1);
    let mut events = vec![
        EventKind::PhaseStarted {
            phase: Phase::Setup,
        },
        EventKind::PhaseStarted {
            phase: Phase::Serve,
        },
        EventKind::ConnectionOpened(ConnectionOpened {
            conn,
            server: "kubernetes".to_owned(),
            actor: Actor::Loop,
            transport: WireKind::Stdio,
            target: "kubernetes-mcp".to_owned(),
        }),
        EventKind::PhaseStarted {
            phase: Phase::Drive,
        },
        EventKind::ToolsOffered {
            tools: Body::Text("[]".to_owned()),
        },
    ];
    for ask in 1..=3 {
        events.extend(turn(ask));
    }
    for event in events {
        trial.append(1_001_000, event).expect("an event");
    }
    for call in 0..3 {
        let request = json!({"jsonrpc": "2.0", "id": call, "method": "tools/call", "params": {
            "name": format!("tool_{call}"), "arguments": {"namespace": "prod", "output": "json"}}});
        let answer =
            json!({"jsonrpc": "2.0", "id": call, "result": {"content": [], "isError": call == 2}});
        for (at, direction, message) in [
            (1_010_000, Direction::ToServer, request),
            (1_012_000, Direction::ToClient, answer),
        ] {
            let text = message.to_string();
            trial
                .append_frame(at, conn, None, direction, text.as_bytes())
                .expect("a frame");
        }
    }
    let reason = "no call fits; nearest is call #15: `arguments.namespace`: expected \"prod\", found \"dev\"";
    trial
        .append(
            1_020_000,
            EventKind::PhaseStarted {
                phase: Phase::Grade,
            },
        )
        .expect("an event");
    for check in ["toolsUsed", "toolsNotUsed", "maxToolCalls", "verify_0"] {
        let verdict = match (check, outcome) {
            ("toolsUsed", Outcome::Failed) => Verdict::fail(reason),
            _ => Verdict::Pass,
        };
        let graded = EventKind::Graded(CheckEvaluated {
            check: check.to_owned(),
            id: Some(CheckId::Assertion(check.to_owned())),
            details: Vec::new(),
            verdict,
            evidence: vec![15],
            notes: Vec::new(),
        });
        trial.append(1_021_000, graded).expect("an event");
    }
    let (reason, blame) = match outcome {
        Outcome::Passed | Outcome::Cancelled => (None, None),
        Outcome::Failed => (Some(format!("toolsUsed: {reason}")), Some(Blame::Agent)),
        Outcome::TimedOut => (
            Some("the trial took longer than 5m".to_owned()),
            Some(Blame::Agent),
        ),
        Outcome::Errored => (Some("the model failed: 429".to_owned()), Some(Blame::Infra)),
    };
    let ended = TrialEnded {
        outcome,
        reason,
        blame,
    };
    drop(trial.end(1_100_000, ended).expect("an end"));
    let path = run.folder().join(format!("trials/{name}.1.jsonl"));
    fs::read_to_string(path).expect("the trial has ended")
}

fn turn(ask: u64) -> [EventKind; 2] {
    [
        EventKind::ModelAsked(ModelAsked {
            ask,
            purpose: Purpose::Agent,
            model: "openai:gpt-5".to_owned(),
            known: 0,
            request: Body::Text("{}".to_owned()),
            digest: String::new(),
        }),
        EventKind::ModelReplied(ModelReplied {
            ask,
            turn: Body::Text("{}".to_owned()),
            raw: None,
            stop: StopReason::Done,
            usage: Usage {
                input: Some(1_200),
                output: Some(80),
                ..Usage::default()
            },
            cost_usd: Some(0.0031),
        }),
    ]
}
