//! What a prepared run will cost, from the runs in `.proctor/runs`.
//!
//! Main functions: [`of_plan`] for a suite that is only listed, and `refuse`, which keeps a run with a dear or
//! unknown estimate from starting.

use std::path::Path;

use proctor_core::estimate::{Estimate, History, PlannedTrials, TrialKey, dollars};
use proctor_core::plan::Plan;
use proctor_core::price::Prices;
use proctor_core::suite::Suite;
use proctor_record::event::RunPlanned;

use super::error::EngineError;
use super::options::WidthOption;
use super::planning::{judge_name, planned_agent, planned_case};
use super::prepare::PreparedRun;
use super::runs::RUNS;

/// The estimate for the plan of a suite with its own agents, one trial at a time.
pub fn of_plan(suite: &Suite, plan: &Plan<'_>) -> Result<Estimate, EngineError> {
    let judge = suite.judge.as_ref().map(judge_name);
    let mut planned = Vec::new();
    for case in &plan.cases {
        let (runs, case) = (case.runs, planned_case(case.case, case.runs, &case.limits)?);
        for agent in &suite.agents {
            planned.push(PlannedTrials {
                key: TrialKey::new(&case, &planned_agent(agent), judge.as_deref()),
                trials: runs,
                at_once: 1,
            });
        }
    }
    Ok(estimate(&planned, &Prices::default()))
}

/// The estimate for a run; `None` if it is resumed, or replays models.
pub(super) fn of_run(run: &PreparedRun) -> Option<Estimate> {
    if run.resumed.is_some() || run.planned.asked.replay.is_some() {
        return None;
    }
    let planned = trials(&run.planned, run.options.width);
    Some(estimate(&planned, run.context.meter.prices()))
}

fn trials(planned: &RunPlanned, width: WidthOption) -> Vec<PlannedTrials> {
    let mut all = Vec::new();
    for case in &planned.cases {
        let at_once = match width {
            WidthOption::Parallel(width) if case.parallel => width,
            WidthOption::Parallel(_) => 1,
            WidthOption::Jobs(width) => width,
        };
        for agent in &planned.agents {
            all.push(PlannedTrials {
                key: TrialKey::new(case, agent, planned.judge.as_deref()),
                trials: case.runs,
                at_once,
            });
        }
    }
    all
}

/// A folder of runs that can't be read leaves the estimate unknown: it must not keep a run from starting.
fn estimate(planned: &[PlannedTrials], prices: &Prices) -> Estimate {
    let history = History::load(Path::new(RUNS), planned, prices);
    Estimate::of(planned, &history.unwrap_or_default())
}

/// Refuses a run whose estimate can exceed the limit, or is unknown.
pub(super) fn refuse(estimate: Option<&Estimate>, most: Option<f64>) -> Result<(), EngineError> {
    let (Some(estimate), Some(most)) = (estimate, most) else {
        return Ok(());
    };
    let limit = dollars(most);
    match estimate.cost_usd.high {
        Some(high) if high <= most => Ok(()),
        Some(high) => Err(EngineError::usage(format!(
            "the run may cost {}, more than `--max-estimate-usd` {limit}; estimate: {estimate}",
            dollars(high)
        ))),
        None => Err(EngineError::usage(format!(
            "the cost is unknown, so `--max-estimate-usd` {limit} can't be checked; estimate: {estimate}. \
             Add missing prices with `--prices FILE`, or run once with `--budget-usd` {most} instead"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_estimate_never_starts_a_run() {
        let unknown = Estimate::of(
            &[PlannedTrials {
                key: TrialKey {
                    case: String::new(),
                    hash: String::new(),
                    agent: String::new(),
                    model: None,
                    judge: None,
                },
                trials: 1,
                at_once: 1,
            }],
            &History::default(),
        );
        assert!(refuse(Some(&unknown), Some(1e9)).is_err());
        assert!(refuse(Some(&unknown), None).is_ok());
        let mut known = Estimate::default();
        known.cost_usd.high = Some(2.0);
        assert!(refuse(Some(&known), Some(2.0)).is_ok());
        assert!(refuse(Some(&known), Some(1.99)).is_err());
    }
}
