//! The trials of a run that is graded again: which file counts, and what comes of it.

use std::collections::{BTreeMap, HashMap};

use proctor_core::check::{Check, SelectionMode};
use proctor_core::regrade::{
    Basis, CheckChange, CheckGrade, GradedTrial, NextRegrade, RecordedTrial, Regrading,
    inconclusive,
};
use proctor_core::selection::ToolChoice;
use proctor_core::summary::{Summary, TrialResult};
use proctor_record::event::{EventKind, ToolName, TrialEnded};
use proctor_record::fold::FoldOptions;
use proctor_record::json;
use proctor_record::record::{RecordError, RunReader, TrialFile};
use proctor_record::redact::Redactor;

use super::Regrade;
use super::cases::KnownCase;

/// How many bytes of each text a judge needs.
const JUDGED_TEXT: usize = 1024 * 1024;

/// The files of a run's trials, by case, agent and number.
pub(super) struct TrialTable {
    trials: HashMap<(String, String, u32), TrialFiles>,
    /// Files whose first line does not name a trial.
    nameless: Vec<String>,
}

/// The files of a trial.
#[derive(Debug, Default)]
struct TrialFiles {
    /// The latest attempt that ended, which counts.
    ended: Option<TrialFile>,
    /// Whether an attempt is unfinished.
    unfinished: bool,
}

/// A trial of the plan.
#[derive(Debug, Clone)]
pub(super) struct Spot {
    place: (usize, usize, usize),
    case: String,
    name: String,
    agent: String,
    repeat: u32,
}

impl Spot {
    pub(super) fn of(summary: &Summary, case: usize, agent: usize, trial: usize) -> Self {
        let planned = &summary.cases[case];
        let trials = &planned.agents[agent];
        Self {
            place: (case, agent, trial),
            case: planned.case.id.clone(),
            name: planned.case.name.clone(),
            agent: trials.agent.clone(),
            repeat: trials.trials[trial].repeat,
        }
    }

    fn graded(
        &self,
        file: Option<&TrialFile>,
        after: Option<TrialEnded>,
        basis: Basis,
    ) -> GradedTrial {
        GradedTrial {
            case: self.case.clone(),
            name: self.name.clone(),
            agent: self.agent.clone(),
            repeat: self.repeat,
            file: file.map(|file| file.file_name().to_owned()),
            before: None,
            after,
            basis,
            checks: Vec::new(),
            changes: Vec::new(),
            selection: None,
        }
    }

    fn inconclusive(&self, file: &TrialFile, reason: &str) -> GradedTrial {
        let basis = Basis::Inconclusive(reason.to_owned());
        self.graded(Some(file), Some(inconclusive(reason)), basis)
    }
}

impl TrialTable {
    /// Reads the first line of every trial file.
    pub(super) fn read(run: &RunReader) -> Result<Self, RecordError> {
        let mut trials: HashMap<_, TrialFiles> = HashMap::new();
        let mut nameless = Vec::new();
        for file in run.trials()? {
            // A line that can't be read names no trial.
            let first = run.trial(&file)?.next().and_then(Result::ok);
            let Some(EventKind::TrialStarted(started)) = first.map(|event| event.event) else {
                nameless.push(file.file_name().to_owned());
                continue;
            };
            let key = (
                started.case,
                started.agent.unwrap_or_default(),
                started.repeat,
            );
            let files = trials.entry(key).or_default();
            if !file.ended {
                files.unfinished = true;
            } else if files
                .ended
                .as_ref()
                .is_none_or(|so_far| so_far.attempt < file.attempt)
            {
                files.ended = Some(file);
            }
        }
        Ok(Self { trials, nameless })
    }

    fn get(&self, spot: &Spot, summary: &Summary) -> Option<&TrialFiles> {
        let key = |agent: &str| (spot.case.clone(), agent.to_owned(), spot.repeat);
        let is_only = summary.plan.agents.len() == 1;
        let named = self.trials.get(&key(&spot.agent));
        // Records of older versions don't name the only agent.
        named.or_else(|| self.trials.get(&key("")).filter(|_| is_only))
    }

    /// The files that the plan does not include.
    pub(super) fn unplanned(&self, summary: &Summary) -> Vec<String> {
        let planned: BTreeMap<&str, u32> = summary
            .cases
            .iter()
            .map(|case| (case.case.id.as_str(), case.case.runs))
            .collect();
        let is_known = |agent: &str| {
            agent.is_empty() || summary.plan.agents.iter().any(|known| known.name == agent)
        };
        let is_planned = |(case, agent, repeat): &(String, String, u32)| {
            let runs = planned.get(case.as_str()).copied().unwrap_or(0);
            is_known(agent) && (1..=runs).contains(repeat)
        };
        let others = self.trials.iter().filter(|(key, _)| !is_planned(key));
        let others = others.filter_map(|(_, files)| files.ended.as_ref());
        let others = others.map(|file| file.file_name().to_owned());
        let mut all: Vec<String> = others.chain(self.nameless.iter().cloned()).collect();
        all.sort();
        all
    }
}

impl Regrade {
    /// Grades one trial again. A trial that can't be graded is inconclusive, not an error.
    pub(super) async fn trial(
        &self,
        table: &TrialTable,
        spot: &Spot,
        summary: &Summary,
    ) -> GradedTrial {
        let Some(TrialFiles {
            ended: Some(file), ..
        }) = table.get(spot, summary)
        else {
            return spot.graded(None, None, Basis::NotRun);
        };
        let options = FoldOptions {
            text_bytes: match &self.judge {
                Some(_) => JUDGED_TEXT,
                None => FoldOptions::for_checks().text_bytes,
            },
            ..FoldOptions::for_checks()
        };
        let recorded = match RecordedTrial::read(&self.run, file, options) {
            Ok(recorded) => recorded,
            Err(error) => return spot.inconclusive(file, &error.to_string()),
        };
        let mut graded = match self.cases.get(&spot.case) {
            Some(_) if summary.changed_trials.contains(&file.stem) => {
                spot.inconclusive(file, "the record of the trial was changed after it ended")
            }
            Some(case) => self.grade(spot, file, case, &recorded).await,
            None => spot.inconclusive(file, "the eval file has no such case"),
        };
        graded.before = recorded.ended;
        graded
    }

    async fn grade(
        &self,
        spot: &Spot,
        file: &TrialFile,
        case: &KnownCase,
        recorded: &RecordedTrial,
    ) -> GradedTrial {
        let checks = case.checks();
        let mut regrading =
            Regrading::new(recorded, checks, &case.comparison, self.judge.is_some());
        while let NextRegrade::Judge(step) = regrading.next_judge() {
            let grade = match &self.judge {
                Some(judge) => judge.rule(step, recorded).await,
                None => super::judge::unanswered("no judge is open"),
            };
            regrading.judged(step, grade);
        }
        let (checks, ended, basis) = regrading.finish();
        GradedTrial {
            changes: changes(recorded, &checks, &basis),
            selection: choice(recorded, case).map(Box::new),
            checks,
            ..spot.graded(Some(file), Some(ended), basis)
        }
    }
}

/// The recorded choice beside the tools that the checks expect now.
fn choice(recorded: &RecordedTrial, case: &KnownCase) -> Option<ToolChoice> {
    let selected = recorded.folded.work.selection.as_ref()?;
    let mut choice = ToolChoice::of(selected);
    let checks = case.checks().assertions.iter();
    let check = checks.map(AsRef::as_ref).find_map(|check| match check {
        Check::Selection(check) => Some(check),
        _ => None,
    });
    if let Some(check) = check {
        let named = choice.expected.iter().chain(&choice.chosen);
        let known: Vec<ToolName> = named.cloned().collect();
        let expected = check.expected().iter().map(|tool| {
            let is_same = |one: &&ToolName| one.tool == *tool;
            let server = || known.iter().find(is_same).map(|one| one.server.clone());
            ToolName {
                server: check.server.clone().or_else(server).unwrap_or_default(),
                tool: tool.clone(),
            }
        });
        choice.expected = expected.collect();
        choice.others_allowed = check.mode == SelectionMode::Contains;
    }
    Some(choice)
}

fn changes(recorded: &RecordedTrial, checks: &[CheckGrade], basis: &Basis) -> Vec<CheckChange> {
    match basis {
        Basis::Regraded | Basis::Inconclusive(_) => {
            CheckChange::between(&recorded.folded.work.checks, checks)
        }
        Basis::Kept(_) | Basis::NotRun => Vec::new(),
    }
}

/// The trial without secrets: checks of a suite may contain some that the record does not.
pub(super) fn redacted(graded: GradedTrial, redactor: &Redactor) -> GradedTrial {
    let Ok(text) = serde_json::to_string(&graded) else {
        return graded;
    };
    match redactor.text(&text) {
        std::borrow::Cow::Borrowed(_) => graded,
        // Redacted JSON is still JSON.
        std::borrow::Cow::Owned(text) => json::from_str(&text).unwrap_or(graded),
    }
}

/// Sets the end of a trial in a summary.
pub(super) fn fill(
    summary: &mut Summary,
    spot: &Spot,
    graded: &GradedTrial,
    ended: Option<&TrialEnded>,
) {
    let (case, agent, trial) = spot.place;
    let trial = &mut summary.cases[case].agents[agent].trials[trial];
    trial.attempts = u32::from(graded.file.is_some());
    trial.result = ended.map(|ended| {
        let file = graded.file.clone().unwrap_or_default();
        TrialResult::of_end(ended, file, graded.selection.clone())
    });
}
