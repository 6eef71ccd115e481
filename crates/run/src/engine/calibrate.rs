//! Asks a judge about answers that people have labelled.
//!
//! Main type: [`CalibrateOptions`]. The judge is asked as `llmJudge` steps ask it, votes included.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use proctor_core::calibration::{JudgeChoice, JudgeVerdict, JudgedLabel, Label, LabelCriterion};
use proctor_core::price::Prices;
use proctor_core::suite::{Inputs, JudgeConfig, Suite, load};
use proctor_models::{Budget, Meter, ModelClient, RetryWait};
use proctor_record::event::{PlannedOptions, Purpose};
use proctor_record::problem::Problems;
use proctor_record::redact::Redactor;
use proctor_record::verdict::Verdict;
use proctor_wire::recorder::Recorder;

use super::Engine;
use super::error::EngineError;
use super::evals::bare_suite;
use super::host::{Host, HostNotice};
use super::opening::open_judge;
use super::planning::judge_name;
use super::prepare::stand_in;
use crate::judge::{Criterion, Exhibits, Judge};

/// The judge to compare with people.
#[derive(Debug, Clone, Default)]
pub struct CalibrateOptions {
    /// The eval file whose judge is asked.
    pub with: Option<PathBuf>,
    /// The model that is asked, in place of the judge of the eval file.
    pub judge: Option<String>,
    /// The number of votes, in place of that of the eval file.
    pub votes: Option<u32>,
}

/// The labels with the judge's verdicts, and who gave them.
#[derive(Debug)]
pub struct JudgedLabels {
    pub labels: Vec<JudgedLabel>,
    pub judge: String,
    pub votes: u32,
}

impl Engine {
    /// Asks the judge about every label, one after the other.
    pub async fn judge_labels(
        &self,
        options: &CalibrateOptions,
        labels: Vec<Label>,
        host: &dyn Host,
    ) -> Result<JudgedLabels, EngineError> {
        let asked = PlannedOptions {
            judge: options.judge.clone(),
            ..PlannedOptions::default()
        };
        let mut suite = match &options.with {
            Some(_) => load_suite(self, options, host)?,
            None => bare_suite(&[]),
        };
        stand_in(&asked, &mut suite, host)?;
        let redactor = self.redactor(&suite.servers);
        let Some(mut config) = suite.judge else {
            return Err(EngineError::usage(
                "the suite has no judge: name a model with `--judge MODEL`",
            ));
        };
        config.votes = options.votes.unwrap_or(config.votes);
        let judge = lone_judge(self, &config, &asked, &redactor)?;
        let mut judged = Vec::new();
        for label in labels {
            let judge = verdict(&judge, &label).await;
            judged.push(JudgedLabel { label, judge });
        }
        Ok(JudgedLabels {
            labels: judged,
            judge: judge_name(&config),
            votes: config.votes,
        })
    }
}

/// A judge outside of any run: without a record and without a budget.
pub(super) fn lone_judge(
    engine: &Engine,
    config: &JudgeConfig,
    asked: &PlannedOptions,
    redactor: &Redactor,
) -> Result<Judge, EngineError> {
    let budget = Budget {
        usd: None,
        tokens: None,
    };
    let client = ModelClient {
        model: open_judge(engine, config, asked)?,
        purpose: Purpose::Judge,
        meter: Arc::new(Meter::new(Prices::default(), budget)),
        recorder: Recorder::nothing().redacting(redactor),
        waiting: RetryWait::default(),
        replay: None,
    };
    Ok(Judge {
        askers: vec![client],
        votes: config.votes,
    })
}

async fn verdict(judge: &Judge, label: &Label) -> JudgeVerdict {
    // A rubric is judged as in shipped evals, where a call alone can be the answer.
    let (criterion, answer_required) = match &label.criterion {
        LabelCriterion::Contains(text) => (Criterion::Contains(text.clone()), true),
        LabelCriterion::Exact(text) => (Criterion::Exact(text.clone()), true),
        LabelCriterion::Rubric(text) => (Criterion::Rubric(text.clone()), false),
    };
    let exhibits = Exhibits {
        prompt: &label.prompt,
        answer: &label.answer,
        transcript: None,
        answer_required,
    };
    let ruling = match judge.rule(&criterion, &exhibits).await {
        Ok(ruling) => ruling,
        Err(error) => {
            return JudgeVerdict {
                choice: JudgeChoice::NoAnswer,
                reason: error.to_string(),
            };
        }
    };
    let (choice, reason) = match ruling.verdict {
        Verdict::Pass => {
            let mut votes = ruling.votes.into_iter();
            let vote = votes.find(|vote| vote.verdict == Verdict::Pass);
            let reason = vote.map_or(String::new(), |vote| vote.reason);
            (JudgeChoice::Pass, reason)
        }
        Verdict::Fail { reason } => (JudgeChoice::Fail, reason),
        Verdict::Unknown { reason } => (JudgeChoice::Unknown, reason),
    };
    JudgeVerdict { choice, reason }
}

/// Loads the suite for its judge. No server and no agent starts.
fn load_suite(
    engine: &Engine,
    options: &CalibrateOptions,
    host: &dyn Host,
) -> Result<Suite, EngineError> {
    let file = options.with.clone().unwrap_or_default();
    let source_roots = BTreeMap::new();
    let inputs = Inputs {
        env: engine.environment(),
        source_roots: &source_roots,
        runs: None,
        mcp_config: None,
        judge_given: true,
    };
    let mut problems = Problems::default();
    let loaded = load(&file, &inputs, &mut problems);
    match loaded {
        Some(suite) if !problems.has_errors() => Ok(suite),
        _ => {
            host.notice(HostNotice::Problems(&problems));
            Err(EngineError::InvalidFile {
                file,
                problems: Box::new(problems),
            })
        }
    }
}
