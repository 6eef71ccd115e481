//! Grades the trials of a recorded run again, with the checks of an eval file.
//!
//! Main types: [`RegradeOptions`] and [`RegradeResult`]. No agent and no server is started, and no step
//! runs. A judge is asked only on request. One trial at a time is in memory.

mod cases;
mod judge;
mod trials;

use std::collections::BTreeMap;
use std::path::PathBuf;

use proctor_core::gate::Gate;
use proctor_core::grades::{self, GRADES_VERSION, GradesEnd, GradesHeader, GradesWriter};
use proctor_core::regrade::{GradedTrial, RegradeTotals};
use proctor_core::suite::{Inputs, Suite, load};
use proctor_core::summary::Summary;
use proctor_record::event::{NotRunOutcome, PlannedOptions, RunKind, RunPlanned};
use proctor_record::problem::Problems;
use proctor_record::record::{RunReader, trial_stem};
use proctor_record::redact::Redactor;

use self::cases::CaseTable;
use self::judge::RegradeJudge;
use self::trials::TrialTable;
use super::Engine;
use super::error::EngineError;
use super::folder::plan_of;
use super::host::{Host, HostNotice};
use super::prepare::stand_in;
use super::sources;

/// What to grade again, and with what.
#[derive(Debug, Clone)]
pub struct RegradeOptions {
    /// The folder of the run.
    pub folder: PathBuf,
    /// The eval file; by default that of the run.
    pub with: Option<PathBuf>,
    pub judge: JudgeOption,
    /// The checkouts of sources, by name.
    pub source_roots: BTreeMap<String, PathBuf>,
    /// The MCP config in place of the suite's; by default that of the run.
    pub mcp_config: Option<PathBuf>,
    /// The name of the grades file; by default from the eval file and the hash of its checks.
    pub name: Option<String>,
    /// Whether to write the grades file.
    pub write: bool,
}

/// Whether a judge is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JudgeOption {
    /// Recorded verdicts of judges are kept.
    Recorded,
    /// The judge of the suite, or of the run's command line, is asked again.
    OfSuite,
    /// This model is asked.
    Model(String),
}

/// The result of a regrade.
pub struct RegradeResult {
    pub run: RunReader,
    /// The eval file; `None` for shipped evals without a suite.
    pub eval: Option<PathBuf>,
    /// The run with its new outcomes.
    pub summary: Summary,
    pub before: Gate,
    pub gate: Gate,
    pub exit: u8,
    pub totals: RegradeTotals,
    /// The number of cases whose checks or steps changed since the run.
    pub changed_cases: usize,
    /// The cases of the run that the eval file does not have.
    pub removed: Vec<String>,
    /// The cases of the eval file without a trial in the run.
    pub added: Vec<String>,
    /// Files under `trials/` that the plan of the run does not include.
    pub unplanned: Vec<String>,
    /// The SHA-256 of all checks.
    pub hash: String,
    /// The grades file, if it was written.
    pub grades: Option<PathBuf>,
}

impl Engine {
    /// Grades a run again. Calls `each` with every trial, in the order of the plan.
    pub async fn regrade(
        &self,
        options: &RegradeOptions,
        host: &dyn Host,
        each: &mut dyn FnMut(&GradedTrial),
    ) -> Result<RegradeResult, EngineError> {
        let run = RunReader::open(&options.folder)?;
        let planned = plan_of(&options.folder)?;
        let eval = match (&options.with, planned.kind) {
            (Some(file), _) => Some(file.clone()),
            (None, RunKind::Suite) => Some(PathBuf::from(&planned.suite)),
            (None, RunKind::Evals) => None,
            (None, RunKind::Imported) => {
                return Err(EngineError::usage(
                    "imported results have no suite: name an eval file with `--with`",
                ));
            }
        };
        let asked = PlannedOptions {
            judge: match &options.judge {
                JudgeOption::Model(model) => Some(model.clone()),
                JudgeOption::OfSuite => planned.asked.judge.clone(),
                JudgeOption::Recorded => None,
            },
            ..PlannedOptions::default()
        };
        let suite = match &eval {
            Some(file) => {
                let mut suite = load_suite(self, options, &planned, file, host)?;
                stand_in(&asked, &mut suite, host)?;
                Some(suite)
            }
            None => None,
        };
        let servers = suite.as_ref().map_or(&[][..], |suite| &suite.servers);
        let redactor = self.redactor(servers);
        let cases = CaseTable::new(&planned, suite.as_ref())?;
        let judge = RegradeJudge::open(self, &options.judge, suite.as_ref(), &asked, &redactor)?;
        let graded = cases.graded();
        let header = GradesHeader {
            version: GRADES_VERSION,
            proctor: env!("CARGO_PKG_VERSION").to_owned(),
            run: run.started().started.clone(),
            eval: eval.as_ref().map(|eval| eval.display().to_string()),
            hash: grades::hash_of(&graded),
            judge: judge.as_ref().map(RegradeJudge::name),
            cases: graded,
        };
        let work = Regrade {
            run,
            cases,
            judge,
            redactor,
            header,
            eval,
        };
        work.carry_out(options, &planned, each).await
    }
}

/// A regrade that is ready to start.
struct Regrade {
    run: RunReader,
    cases: CaseTable,
    judge: Option<RegradeJudge>,
    redactor: Redactor,
    header: GradesHeader,
    eval: Option<PathBuf>,
}

impl Regrade {
    async fn carry_out(
        self,
        options: &RegradeOptions,
        planned: &RunPlanned,
        each: &mut dyn FnMut(&GradedTrial),
    ) -> Result<RegradeResult, EngineError> {
        let mut summary = Summary::planned(&self.run)?;
        let mut before = summary.clone();
        let table = TrialTable::read(&self.run)?;
        let mut writer = self.writer(options)?;
        let mut totals = RegradeTotals::default();
        for case in 0..summary.cases.len() {
            for agent in 0..summary.cases[case].agents.len() {
                for repeat in 0..summary.cases[case].agents[agent].trials.len() {
                    let spot = trials::Spot::of(&summary, case, agent, repeat);
                    let graded = self.trial(&table, &spot, &summary).await;
                    let graded = trials::redacted(graded, &self.redactor);
                    totals.add(&graded);
                    trials::fill(&mut before, &spot, &graded, graded.before.as_ref());
                    trials::fill(&mut summary, &spot, &graded, graded.after.as_ref());
                    if let Some(writer) = &mut writer {
                        writer.trial(&graded)?;
                    }
                    each(&graded);
                }
            }
        }
        for case in &mut summary.cases {
            self.cases.set_pass_rule(&mut case.case);
        }
        let (gate, gate_before) = (Gate::of(&summary), Gate::of(&before));
        let exit = exit_of(&gate, planned);
        let grades = match writer {
            Some(writer) => Some(writer.end(GradesEnd {
                trials: totals.trials,
                changed: totals.changed,
                exit,
            })?),
            None => None,
        };
        Ok(RegradeResult {
            unplanned: table.unplanned(&summary),
            changed_cases: self.cases.changed(),
            removed: self.cases.removed(),
            added: self.cases.added.clone(),
            hash: self.header.hash,
            run: self.run,
            eval: self.eval,
            before: gate_before,
            summary,
            gate,
            exit,
            totals,
            grades,
        })
    }

    fn writer(&self, options: &RegradeOptions) -> Result<Option<GradesWriter>, EngineError> {
        if !options.write {
            return Ok(None);
        }
        let name = match &options.name {
            Some(name) => trial_stem(name),
            None => grades::file_name(self.eval.as_deref(), &self.header.hash),
        };
        let redactor = self.redactor.clone();
        Ok(Some(GradesWriter::create(
            &self.run,
            &name,
            redactor,
            &self.header,
        )?))
    }
}

/// The exit code of the gate; an invalid eval fails the run, as in `check`.
fn exit_of(gate: &Gate, planned: &RunPlanned) -> u8 {
    let mut not_run = planned.not_run.iter();
    let is_invalid = not_run.any(|eval| eval.outcome == NotRunOutcome::Invalid);
    if is_invalid { 1 } else { gate.exit() }
}

/// Loads the suite for its checks. An unset variable is no error: no server or agent starts.
fn load_suite(
    engine: &Engine,
    options: &RegradeOptions,
    planned: &RunPlanned,
    file: &std::path::Path,
    host: &dyn Host,
) -> Result<Suite, EngineError> {
    let of_run = planned.mcp_config.as_ref().map(PathBuf::from);
    let mcp_config = options.mcp_config.clone().or(of_run);
    let inputs = Inputs {
        env: engine.environment(),
        source_roots: &options.source_roots,
        runs: planned.cases.iter().map(|case| case.runs).max(),
        mcp_config: mcp_config.as_deref(),
        judge_given: true,
    };
    let mut problems = Problems::default();
    let loaded = load(file, &inputs, &mut problems);
    if problems.has_errors() {
        host.notice(HostNotice::Problems(&problems));
    }
    let suite = match loaded {
        Some(suite) if !problems.has_errors() => suite,
        _ => {
            return Err(EngineError::InvalidFile {
                file: file.to_owned(),
                problems: Box::new(problems),
            });
        }
    };
    sources::refuse_absent(&suite)?;
    Ok(suite)
}
