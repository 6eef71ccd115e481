//! Asks a judge about a recorded trial.
//!
//! The main type is [`RegradeJudge`].

use proctor_core::grading::JudgeGrade;
use proctor_core::regrade::RecordedTrial;
use proctor_core::suite::step::values::TemplateValues;
use proctor_core::suite::step::{Action, Judgement};
use proctor_core::suite::template::{Reference, Template};
use proctor_core::suite::{Step, Suite};
use proctor_record::event::PlannedOptions;
use proctor_record::fold::{ClippedText, StepDone};
use proctor_record::redact::Redactor;
use proctor_record::verdict::Verdict;

use super::super::Engine;
use super::super::calibrate::lone_judge;
use super::super::error::EngineError;
use super::super::planning::judge_name;
use super::JudgeOption;
use crate::judge::{Criterion, Exhibits, Judge};

/// The judge of a regrade.
pub(super) struct RegradeJudge {
    judge: Judge,
    name: String,
}

impl RegradeJudge {
    /// Opens the judge, if one is asked for.
    pub(super) fn open(
        engine: &Engine,
        option: &JudgeOption,
        suite: Option<&Suite>,
        asked: &PlannedOptions,
        redactor: &Redactor,
    ) -> Result<Option<Self>, EngineError> {
        if *option == JudgeOption::Recorded {
            return Ok(None);
        }
        let Some(config) = suite.and_then(|suite| suite.judge.as_ref()) else {
            return Err(EngineError::usage(
                "the suite has no judge: name a model with `--judge=MODEL`",
            ));
        };
        Ok(Some(Self {
            judge: lone_judge(engine, config, asked, redactor)?,
            name: judge_name(config),
        }))
    }

    /// The judge, as reports name it.
    pub(super) fn name(&self) -> String {
        self.name.clone()
    }

    /// Asks the judge about one step. Everything that prevents a verdict is unknown.
    pub(super) async fn rule(&self, step: &Step, recorded: &RecordedTrial) -> JudgeGrade {
        let Action::Judge(judgement) = &step.action else {
            return unanswered("the step has no criterion");
        };
        let work = &recorded.folded.work;
        let (prompt, answer) = (whole(work.prompt.as_ref()), whole(work.answer.as_ref()));
        let (Some(prompt), Some(answer)) = (prompt, answer) else {
            return unanswered("the prompt or the answer is too long to judge it again");
        };
        let reference = match reference(judgement, &prompt, &answer, &work.steps) {
            Ok(reference) => reference,
            Err(reason) => return unanswered(&reason),
        };
        let criterion = match Criterion::of(judgement, reference) {
            Ok(criterion) => criterion,
            Err(reason) => return unanswered(reason),
        };
        let exhibits = Exhibits {
            prompt: &work.with_messages(&prompt),
            answer: &answer,
            transcript: Some(&recorded.folded.transcript),
            answer_required: true,
        };
        match self.judge.rule(&criterion, &exhibits).await {
            Ok(ruling) => JudgeGrade {
                verdict: ruling.verdict,
                evidence: ruling.evidence,
                notes: ruling.notes,
            },
            Err(error) => unanswered(&format!("the judge: {error}")),
        }
    }
}

/// A verdict that could not be had.
pub(super) fn unanswered(reason: &str) -> JudgeGrade {
    JudgeGrade {
        verdict: Verdict::unknown(reason),
        evidence: Vec::new(),
        notes: Vec::new(),
    }
}

/// The text, unless a part of it was left out.
fn whole(text: Option<&ClippedText>) -> Option<String> {
    match text {
        None => Some(String::new()),
        Some(text) if text.left_out == 0 => Some(text.head.clone()),
        Some(_) => None,
    }
}

/// The criterion with its references filled in from the record.
fn reference(
    judgement: &Judgement,
    prompt: &str,
    answer: &str,
    steps: &[StepDone],
) -> Result<String, String> {
    let (Judgement::Contains(template) | Judgement::Exact(template)) = judgement;
    if let Some(missing) = template.references().find(|one| is_unrecorded(one)) {
        return Err(format!(
            "the criterion uses `{missing}`, which the record does not hold"
        ));
    }
    let mut values = TemplateValues::default();
    values.agent_prompt = Some(prompt.to_owned());
    values.agent_output = Some(answer.to_owned());
    for step in steps {
        values.add_outputs(&step.id, &step.kind, step.outputs.clone());
    }
    fill(&values, template)
}

fn fill(values: &TemplateValues, template: &Template) -> Result<String, String> {
    values.fill(template).map_err(|error| error.to_string())
}

/// Whether a value is known only while a trial runs.
fn is_unrecorded(reference: &Reference) -> bool {
    match reference {
        Reference::TrialDir
        | Reference::TrialId
        | Reference::RandomId
        | Reference::RandomPort
        | Reference::Env(_) => true,
        Reference::AgentOutput
        | Reference::AgentPrompt
        | Reference::Step { .. }
        | Reference::Row(_)
        | Reference::RowValue(_) => false,
    }
}
