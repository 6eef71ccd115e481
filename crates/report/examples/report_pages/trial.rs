//! A trial with model turns, calls, checks, steps and a problem of the server.

use proctor_record::event::{
    Blame, CheckId, ConnectionClosed, Direction, EventKind, Finding, FindingKind, Outcome, Phase,
    TrialEnded, TrialStarted,
};
use proctor_record::record::{RunWriter, TrialWriter};
use proctor_record::verdict::Verdict;
use serde_json::{Value, json};

use crate::events::{CONN, asked, graded, opened, replied, step, text};

/// What a trial is about.
pub(crate) struct TrialScript<'a> {
    pub(crate) case: &'a str,
    pub(crate) agent: &'a str,
    pub(crate) repeat: u32,
    pub(crate) attempt: u32,
    pub(crate) outcome: Outcome,
    /// When it starts, in microseconds.
    pub(crate) at: u64,
    /// How long things take, in percent.
    pub(crate) pace: u64,
    /// The text of prompts, turns and results.
    pub(crate) words: &'a str,
    pub(crate) server: &'a str,
    /// The tool of the last call.
    pub(crate) tool: &'a str,
    /// The result of the last call.
    pub(crate) result: &'a str,
}

const NEAREST: &str =
    "no call fits; nearest is event 18: `arguments.namespace`: expected \"prod\", found \"dev\"";

/// Starts a trial, and writes what happens before its checks.
pub(crate) fn driven(run: &RunWriter, script: &TrialScript<'_>) -> TrialWriter {
    let started = TrialStarted {
        case: format!("tasks/{}.yaml", script.case),
        agent: Some(script.agent.to_owned()),
        repeat: script.repeat,
        attempt: script.attempt,
    };
    let stem = format!("{}.{}.{}", script.case, script.agent, script.repeat);
    let mut trial = run.trial(script.at, &stem, started).expect("a trial");
    let mut at = script.at + 2_000;
    let mut add = |trial: &mut TrialWriter, after: u64, event: EventKind| {
        at += after * script.pace / 100;
        trial.append(at, event).expect("an event");
        at
    };
    let phase = |phase| EventKind::PhaseStarted { phase };
    add(&mut trial, 0, phase(Phase::Setup));
    add(
        &mut trial,
        41_000,
        step(
            Phase::Setup,
            "setup_0",
            Verdict::Pass,
            "namespace/prod created\n",
        ),
    );
    add(&mut trial, 1_000, phase(Phase::Serve));
    add(&mut trial, 90_000, opened(script.server));
    add(&mut trial, 1_000, phase(Phase::Drive));
    let prompt = format!(
        "Find out why the deployment `web` crash-loops, and mend it. {}",
        script.words
    );
    add(
        &mut trial,
        0,
        EventKind::Prompted {
            text: text(&prompt),
            turn: None,
        },
    );
    let namespace = if script.outcome == Outcome::Failed {
        "dev"
    } else {
        "prod"
    };
    let calls = [
        (
            "list_pods",
            json!({"namespace": namespace}),
            "web-7f 0/1 CrashLoopBackOff 12 3m",
        ),
        (
            "get_pod",
            json!({"namespace": namespace, "name": "web-7f", "output": "json"}),
            "ErrImagePull: tag 1.2.33 not found",
        ),
        (
            script.tool,
            json!({"namespace": namespace, "name": "web", "limit": 12_345_678_901_234_567_890_u64}),
            script.result,
        ),
    ];
    for (ask, (tool, arguments, result)) in (1..).zip(&calls) {
        add(&mut trial, 1_000, asked(ask));
        let id = format!("call-{ask}");
        let turn = json!({"text": format!("I will look at it. {}", script.words),
            "calls": [{"id": id, "name": tool, "arguments": {"object": arguments}}]});
        let then = add(
            &mut trial,
            1_300_000,
            replied(ask, &turn, 9 * ask * script.pace),
        );
        let is_error = script.outcome == Outcome::Failed && ask == 3;
        call(
            &mut trial,
            then,
            (ask, tool, arguments),
            (&format!("{result} {}", script.words), is_error),
        );
    }
    add(&mut trial, 400_000, asked(4));
    let answer = format!("The image tag was wrong, so I changed it. {}", script.words);
    add(
        &mut trial,
        2_000_000,
        replied(4, &json!({"text": answer}), 3_900),
    );
    add(
        &mut trial,
        10,
        EventKind::AgentAnswered {
            text: text(&answer),
        },
    );
    add(&mut trial, 1_000, phase(Phase::Grade));
    trial
}

fn call(
    trial: &mut TrialWriter,
    at: u64,
    (id, tool, arguments): (u64, &str, &Value),
    (result, is_error): (&str, bool),
) {
    let request = json!({"jsonrpc": "2.0", "id": id, "method": "tools/call",
        "params": {"name": tool, "arguments": arguments}});
    let answer = json!({"jsonrpc": "2.0", "id": id,
        "result": {"content": [{"type": "text", "text": result}], "isError": is_error}});
    for (at, direction, message) in [
        (at + 1_000, Direction::ToServer, request),
        (at + 70_000, Direction::ToClient, answer),
    ] {
        let text = message.to_string();
        trial
            .append_frame(at, CONN, None, direction, text.as_bytes())
            .expect("a frame");
    }
}

/// Writes a whole trial.
pub(crate) fn write(run: &RunWriter, script: &TrialScript<'_>) {
    let mut trial = driven(run, script);
    let at = script.at + 90_000 * script.pace;
    let used = match script.outcome {
        Outcome::Failed => Verdict::fail(NEAREST),
        _ => Verdict::Pass,
    };
    let assertion = |name: &str| CheckId::Assertion(name.to_owned());
    let mut add = |event| trial.append(at, event).expect("an event");
    add(graded(assertion("toolsUsed"), used, vec![18], &[]));
    add(graded(
        assertion("callOrder"),
        Verdict::Pass,
        vec![10, 14],
        &[],
    ));
    let judged = match script.outcome {
        Outcome::Errored => Verdict::unknown("the judge quoted what is not in the transcript"),
        _ => Verdict::Pass,
    };
    let quotes = [
        "votes: 2 pass, 1 fail",
        "quote: \"The image tag was wrong, so I changed it.\"",
    ];
    add(graded(
        CheckId::Judge("judge_0".to_owned()),
        judged,
        Vec::new(),
        &quotes,
    ));
    let (verdict, output) = if script.outcome == Outcome::Failed && script.repeat == 2 {
        (
            Verdict::fail("exit code 1"),
            "checking web…\nexpected 1 ready replica, found 0\n",
        )
    } else {
        (Verdict::Pass, "deployment.apps/web condition met\n")
    };
    add(step(Phase::Grade, "verify_0", verdict.clone(), output));
    add(graded(
        CheckId::Step("verify_0".to_owned()),
        verdict,
        Vec::new(),
        &[],
    ));
    add(EventKind::Finding(Finding {
        conn: CONN,
        kind: FindingKind::Noise,
        detail: format!("starting {} on stdio", script.server),
        count: 3,
    }));
    add(EventKind::ConnectionClosed(ConnectionClosed {
        conn: CONN,
        reason: "was closed".to_owned(),
        stderr: Some("level=warn msg=\"deprecated flag\"\n".to_owned()),
        end: None,
    }));
    add(EventKind::PhaseStarted {
        phase: Phase::Cleanup,
    });
    drop(trial.end(at + 200_000, ended(script)).expect("an end"));
}

fn ended(script: &TrialScript<'_>) -> TrialEnded {
    let (reason, blame) = match script.outcome {
        Outcome::Passed => (None, None),
        Outcome::Failed if script.repeat == 2 => {
            (Some("verify_0: exit code 1".to_owned()), Some(Blame::Agent))
        }
        Outcome::Failed => (Some(format!("toolsUsed: {NEAREST}")), Some(Blame::Agent)),
        Outcome::TimedOut => (
            Some("the trial took longer than 5m".to_owned()),
            Some(Blame::Agent),
        ),
        Outcome::Errored => (
            Some("429 from the model after 5 attempts".to_owned()),
            Some(Blame::Infra),
        ),
        Outcome::Cancelled => (Some("the run was stopped".to_owned()), None),
    };
    TrialEnded {
        outcome: script.outcome,
        reason,
        blame,
    }
}
