//! Folding steps, checks and model requests.

use std::time::Duration;

use super::*;
use crate::event::{
    AgentClaimed, AgentEnded, AgentStarted, CheckEvaluated, CheckId, Claim, ModelAsked,
    ModelFailed, ModelReplied, Phase, Purpose, StepEnded,
};
use crate::model::{StopReason, Usage};
use crate::verdict::Verdict;

fn text(text: &str) -> Body {
    Body::Text(text.to_owned())
}

impl Trial {
    fn empty() -> Self {
        Self { events: Vec::new() }
    }

    fn phase(self, phase: Phase) -> Self {
        self.event(EventKind::PhaseStarted { phase })
    }

    fn asks(self, ask: u64, purpose: Purpose) -> Self {
        self.event(EventKind::ModelAsked(ModelAsked {
            ask,
            purpose,
            model: "scripted:a.yaml".to_owned(),
            known: 0,
            request: text("{}"),
            digest: String::new(),
        }))
    }

    fn replied(self, ask: u64, input: Option<u64>, cost_usd: Option<f64>) -> Self {
        self.event(EventKind::ModelReplied(ModelReplied {
            ask,
            turn: text("{}"),
            raw: None,
            stop: StopReason::Done,
            usage: Usage {
                input,
                output: Some(1),
                ..Usage::default()
            },
            cost_usd,
        }))
    }
}

#[test]
fn prompt_answer_steps_and_checks_are_in_order() {
    let step = StepEnded {
        phase: Phase::Grade,
        id: "verify_0".to_owned(),
        kind: "script".to_owned(),
        verdict: Verdict::fail("exit code 1"),
        output: Some(text("no such file")),
        outputs: [("path".to_owned(), "/a".to_owned())].into(),
        duration: 7,
    };
    let graded = CheckEvaluated {
        check: "toolsUsed".to_owned(),
        id: Some(CheckId::Assertion("toolsUsed".to_owned())),
        details: vec!["fs.read".to_owned()],
        verdict: Verdict::unknown("cut"),
        evidence: vec![4],
        notes: vec!["a note".to_owned()],
    };
    let folded = Trial::empty()
        .event(EventKind::Prompted {
            text: text("do"),
            turn: None,
        })
        .event(EventKind::AgentAnswered { text: text("done") })
        .event(EventKind::StepEnded(step.clone()))
        .event(EventKind::Graded(graded.clone()))
        .folded();
    let work = folded.work;
    assert_eq!(work.prompt.unwrap().to_string(), "do");
    assert_eq!(work.answer.unwrap().to_string(), "done");
    assert_eq!(work.checks, [graded]);
    let done = &work.steps[0];
    assert_eq!(
        (done.phase, &done.id, &done.kind),
        (step.phase, &step.id, &step.kind)
    );
    assert_eq!(
        (&done.verdict, &done.outputs),
        (&step.verdict, &step.outputs)
    );
    assert_eq!(done.output.as_ref().unwrap().head, "no such file");
    assert_eq!(done.duration, Duration::from_micros(7));
}

#[test]
fn a_phase_lasts_until_the_next_one_or_the_end() {
    let folded = Trial::empty()
        .phase(Phase::Setup)
        .phase(Phase::Drive)
        .event(EventKind::Prompted {
            text: text("do"),
            turn: None,
        })
        .phase(Phase::Grade)
        .event(EventKind::AgentAnswered { text: text("") })
        .event(EventKind::AgentAnswered { text: text("") })
        .folded();
    let spans: Vec<(Phase, u128)> = folded
        .work
        .phases
        .iter()
        .map(|span| (span.phase, span.duration.as_micros()))
        .collect();
    assert_eq!(
        spans,
        [(Phase::Setup, 1), (Phase::Drive, 2), (Phase::Grade, 2)]
    );
    assert_eq!(folded.work.duration, Duration::from_micros(5));
}

#[test]
fn model_usage_is_counted_by_purpose() {
    let failed = |ask| {
        EventKind::ModelFailed(ModelFailed {
            ask,
            attempt: 1,
            reason: "429".to_owned(),
            again_in: Some(1),
        })
    };
    let work = Trial::empty()
        .asks(1, Purpose::Agent)
        .event(failed(1))
        .replied(1, Some(10), Some(0.5))
        .asks(2, Purpose::Agent)
        .replied(2, Some(20), Some(0.25))
        .asks(3, Purpose::Judge)
        .replied(3, None, None)
        .asks(4, Purpose::Judge)
        .replied(4, Some(5), Some(1.0))
        .folded()
        .work;
    let agent = &work.agent;
    assert_eq!((agent.turns, agent.failures, agent.unmetered), (2, 1, 0));
    assert_eq!((agent.usage.input, agent.usage.output), (Some(30), Some(2)));
    assert_eq!(agent.cost_usd, Some(0.75));
    let judge = &work.judge;
    assert_eq!((judge.turns, judge.failures, judge.unmetered), (2, 0, 1));
    assert_eq!(judge.usage.input, Some(5));
    assert_eq!(judge.cost_usd, None, "one reply has no price");
    assert_eq!(Trial::empty().folded().work.judge.cost_usd, Some(0.0));
}

#[test]
fn long_texts_are_bounded() {
    let options = FoldOptions {
        text_bytes: 2000,
        ..FoldOptions::default()
    };
    let long = "x".repeat(30_000);
    let graded = CheckEvaluated {
        check: "calls".to_owned(),
        id: None,
        details: vec![long.clone()],
        verdict: Verdict::fail(long.clone()),
        evidence: Vec::new(),
        notes: vec![long.clone()],
    };
    let work = Trial::empty()
        .event(EventKind::Prompted {
            text: text(&long),
            turn: None,
        })
        .event(EventKind::Graded(graded))
        .event(EventKind::AgentAnswered {
            text: Body::Cut {
                bytes: 9,
                sha256: String::new(),
            },
        })
        .folded_with(&options)
        .work;
    assert_eq!(work.prompt.unwrap().left_out, 28_000);
    let check = &work.checks[0];
    let Verdict::Fail { reason } = &check.verdict else {
        panic!("it failed")
    };
    for text in [reason, &check.details[0], &check.notes[0]] {
        assert!(text.len() < 2_100, "{}", text.len());
    }
    assert_eq!(work.answer.unwrap().left_out, 9);
}

fn external(skill_tool: Option<&str>) -> Trial {
    Trial::empty().event(EventKind::AgentStarted(AgentStarted {
        command: vec!["agent".to_owned()],
        version: None,
        skill_tool: skill_tool.map(str::to_owned),
        purpose: Purpose::Agent,
    }))
}

fn claims(trial: Trial, tool: &str, arguments: &str) -> Trial {
    trial.event(EventKind::AgentClaimed(AgentClaimed {
        tool: tool.to_owned(),
        arguments: Some(text(arguments)),
        status: Claim::Completed,
        detail: None,
    }))
}

fn ends(trial: Trial, usage: Option<Usage>) -> Trial {
    trial.event(EventKind::AgentEnded(AgentEnded {
        how: "exited with code 0".to_owned(),
        usage,
        turns: Some(2),
        stderr: None,
    }))
}

#[test]
fn reported_usage_counts_only_without_another_source() {
    let said = Usage {
        input: Some(10),
        output: Some(5),
        ..Usage::default()
    };
    let told = ends(external(None), Some(said)).folded().work.agent;
    assert_eq!((told.turns, told.usage, told.unmetered), (2, said, 0));
    assert_eq!(told.cost_usd, None, "its model and price are unknown");
    let silent = ends(external(None), None).folded().work.agent;
    assert_eq!((silent.usage.total(), silent.unmetered), (0, 1));
    // The model tap saw one turn, and a side request.
    let seen = external(None)
        .asks(1, Purpose::Side)
        .replied(1, Some(3), Some(0.0))
        .asks(2, Purpose::Agent)
        .replied(2, Some(4), Some(0.0));
    let seen = ends(seen, Some(said)).folded().work.agent;
    assert_eq!((seen.turns, seen.usage.input), (1, Some(7)));
}

#[test]
fn skills_are_what_the_skill_tool_was_called_with() {
    let names = |folded: &FoldedTrial| -> Option<Vec<String>> {
        let loads = folded.transcript.skills.as_ref()?;
        Some(loads.iter().map(|load| load.name.clone()).collect())
    };
    let trial = claims(external(Some("Skill")), "Skill", r#"{"skill":"pdf"}"#);
    let trial = claims(trial, "Skill", r#"{"path":"xls","page":2}"#);
    let trial = claims(trial, "Skill", r#"{"a":"b","c":"d"}"#);
    let trial = claims(trial, "Other", r#"{"skill":"no"}"#);
    let loaded = names(&trial.folded());
    assert_eq!(loaded, Some(vec!["pdf".to_owned(), "xls".to_owned()]));
    assert_eq!(names(&external(Some("Skill")).folded()), Some(Vec::new()));
    assert_eq!(names(&external(None).folded()), None, "unknown");
    assert_eq!(names(&Trial::empty().folded()), None);
}

#[test]
fn a_judge_that_is_a_program_is_not_the_agent() {
    let said = Usage {
        input: Some(10),
        output: Some(5),
        ..Usage::default()
    };
    let judge = EventKind::AgentStarted(AgentStarted {
        command: vec!["judge".to_owned()],
        version: None,
        skill_tool: Some("Skill".to_owned()),
        purpose: Purpose::Judge,
    });
    let trial = ends(external(Some("Skill")), Some(said)).event(judge.clone());
    let trial = ends(claims(trial, "Skill", r#"{"skill":"pdf"}"#), None);
    let work = trial.folded().work;
    let external = work.external.unwrap();
    assert_eq!(external.started.command, ["agent"]);
    assert_eq!(external.ended.unwrap().usage, Some(said));
    assert_eq!((external.claims.len(), work.agent.usage), (0, said));
    assert_eq!(Trial::empty().event(judge).folded().work.external, None);
}

/// Records of older versions name a check only by a text, which a step may share with an assertion.
#[test]
fn a_check_without_an_id_is_that_of_the_step_before_it() {
    let graded = |name: &str, id: Option<CheckId>| {
        EventKind::Graded(CheckEvaluated {
            check: name.to_owned(),
            id,
            details: Vec::new(),
            verdict: Verdict::Pass,
            evidence: Vec::new(),
            notes: Vec::new(),
        })
    };
    let step = |id: &str, kind: &str| {
        EventKind::StepEnded(StepEnded {
            phase: Phase::Grade,
            id: id.to_owned(),
            kind: kind.to_owned(),
            verdict: Verdict::Pass,
            output: None,
            outputs: [].into(),
            duration: 1,
        })
    };
    let name = || "toolsUsed".to_owned();
    let folded = Trial::empty()
        .event(graded("toolsUsed", None))
        .event(graded("llm-as-judge", None))
        .event(step("toolsUsed", "script"))
        .event(graded("toolsUsed", None))
        .event(step("toolsUsed", "llmJudge"))
        .event(graded("toolsUsed", None))
        .event(step("other", "script"))
        .event(graded("toolsUsed", Some(CheckId::Assertion(name()))))
        .folded();
    let ids: Vec<CheckId> = folded
        .work
        .checks
        .into_iter()
        .filter_map(|c| c.id)
        .collect();
    let expected = [
        CheckId::Assertion(name()),
        CheckId::Grading("llm-as-judge".to_owned()),
        CheckId::Step(name()),
        CheckId::Judge(name()),
        CheckId::Assertion(name()),
    ];
    assert_eq!(ids, expected);
}
