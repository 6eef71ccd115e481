//! Runs to compare, written from a few letters per case.

use std::path::Path;

use proctor_record::event::{
    Body, CheckEvaluated, EventKind, ModelAsked, ModelReplied, Outcome, PlannedAgent, PlannedCase,
    PlannedKnownFailure, PlannedOptions, Purpose, RECORD_VERSION, RunEnded, RunPlanned, RunStarted,
    ServerSeen, TrialEnded, TrialStarted,
};
use proctor_record::model::{StopReason, Usage};
use proctor_record::record::RunWriter;
use proctor_record::redact::Redactor;
use proctor_record::verdict::Verdict;

/// A run to write.
#[derive(Clone)]
pub(super) struct Plan {
    /// Name, content hash, and for each agent one letter per trial: `p`ass, `f`ail, `t`imeout, `e`rror,
    /// `-` not run.
    pub(super) cases: Vec<(String, String, Vec<&'static str>)>,
    pub(super) agents: Vec<&'static str>,
    pub(super) tools: &'static str,
    pub(super) reason: String,
    pub(super) tokens: u64,
    /// The cases that are listed as known failures.
    pub(super) known_failures: Vec<&'static str>,
}

pub(super) fn plan(cases: &[(&str, &'static str)]) -> Plan {
    let case = |(name, trials): &(&str, &'static str)| {
        ((*name).to_owned(), "1dc1".to_owned(), vec![*trials])
    };
    Plan {
        cases: cases.iter().map(case).collect(),
        agents: vec!["codex"],
        tools: r#"{"tools":[{"name":"get_pods","description":"Lists pods","inputSchema":{"type":"object"}}]}"#,
        reason: "no call of `create_pod` with namespace \"prod\"".to_owned(),
        tokens: 1_000,
        known_failures: Vec::new(),
    }
}

/// Cases `case-00`, `case-01`, … with these trials.
pub(super) fn numbered(parts: &[(usize, &'static str)]) -> Plan {
    let mut all = plan(&[]);
    for (count, trials) in parts {
        for _ in 0..*count {
            let name = format!("case-{:02}", all.cases.len());
            all.cases.push((name, "1dc1".to_owned(), vec![*trials]));
        }
    }
    all
}

pub(super) fn write(folder: &Path, plan: &Plan) {
    let started = RunStarted {
        record: RECORD_VERSION,
        proctor: "0.1.0".to_owned(),
        started: "2026-11-15T05:00:00Z".to_owned(),
        name: "kubernetes".to_owned(),
        command: vec!["proctor".to_owned()],
        context: None,
    };
    let mut run =
        RunWriter::create(folder, Redactor::default(), started).expect("the sample can be written");
    let cases = plan.cases.iter().map(|(name, hash, trials)| PlannedCase {
        hash: hash.clone(),
        ..PlannedCase::new(
            format!("tasks/{name}.yaml#{name}"),
            name.clone(),
            u32::try_from(trials[0].len()).expect("the sample can be written"),
        )
    });
    let agents = plan
        .agents
        .iter()
        .map(|name| PlannedAgent::new((*name).to_owned()));
    let planned = RunPlanned {
        asked: PlannedOptions {
            known_failures: plan.known_failures.iter().map(|case| known(case)).collect(),
            ..PlannedOptions::default()
        },
        ..RunPlanned::new(
            "/suites/kubernetes.yaml".to_owned(),
            cases.collect(),
            agents.collect(),
        )
    };
    run.append(1, EventKind::RunPlanned(planned.into()))
        .expect("the sample can be written");
    let seen = ServerSeen {
        server: "k8s".to_owned(),
        name: None,
        version: None,
        protocol: "2025-11-25".to_owned(),
        tools: 1,
        resources: 0,
        prompts: 0,
        tools_digest: None,
        tool_list: None,
        surface: Some(Body::Text(plan.tools.to_owned())),
        started_in: None,
    };
    run.append(2, EventKind::ServerSeen(seen))
        .expect("the sample can be written");
    for (number, (name, _, by_agent)) in plan.cases.iter().enumerate() {
        for (agent, trials) in plan.agents.iter().zip(by_agent) {
            for (repeat, letter) in (1..).zip(trials.chars()) {
                let at = u64::try_from(number).expect("the sample can be written");
                trial(&run, plan, name, agent, repeat, letter, at);
            }
        }
    }
    run.end(9_000_000, RunEnded::default())
        .expect("the sample can be written");
}

fn known(case: &str) -> PlannedKnownFailure {
    PlannedKnownFailure {
        case: case.to_owned(),
        reason: "issue 12".to_owned(),
        ..PlannedKnownFailure::default()
    }
}

fn trial(
    run: &RunWriter,
    plan: &Plan,
    case: &str,
    agent: &str,
    repeat: u32,
    letter: char,
    number: u64,
) {
    let outcome = match letter {
        'p' => Outcome::Passed,
        'f' => Outcome::Failed,
        't' => Outcome::TimedOut,
        'e' => Outcome::Errored,
        '-' => return,
        other => panic!("{other}"),
    };
    let started = TrialStarted {
        case: format!("tasks/{case}.yaml#{case}"),
        agent: Some(agent.to_owned()),
        repeat,
        attempt: 1,
    };
    let name = format!("{number}:{agent}:{repeat}");
    let mut trial = run
        .trial(1_000_000, &name, started)
        .expect("the sample can be written");
    let asked = ModelAsked {
        ask: 1,
        purpose: Purpose::Agent,
        model: "scripted:a".to_owned(),
        known: 0,
        request: Body::Text("{}".to_owned()),
        digest: "0".to_owned(),
    };
    trial
        .append(1_000_001, EventKind::ModelAsked(asked))
        .expect("the sample can be written");
    let replied = ModelReplied {
        ask: 1,
        turn: Body::Text("{}".to_owned()),
        raw: None,
        stop: StopReason::Done,
        usage: Usage {
            input: Some(plan.tokens),
            output: Some(10),
            ..Usage::default()
        },
        cost_usd: Some(0.01),
    };
    trial
        .append(1_000_002, EventKind::ModelReplied(replied))
        .expect("the sample can be written");
    if outcome == Outcome::Failed {
        let graded = CheckEvaluated {
            check: "toolsUsed".to_owned(),
            id: None,
            verdict: Verdict::Fail {
                reason: plan.reason.clone(),
            },
            details: Vec::new(),
            evidence: Vec::new(),
            notes: Vec::new(),
        };
        trial
            .append(1_000_003, EventKind::Graded(graded))
            .expect("the sample can be written");
    }
    let ended = TrialEnded {
        outcome,
        reason: (outcome != Outcome::Passed).then(|| "did not pass".to_owned()),
        blame: None,
    };
    trial
        .end(1_000_000 + plan.tokens * 1_000, ended)
        .expect("the sample can be written");
}
