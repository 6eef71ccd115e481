//! The results of several suites: regressions corrected over all of them, and the worst exit code.
//!
//! Its main type is [`SuitesResult`].

use std::collections::BTreeSet;

use proctor_core::compare::{Comparison, tally};
use proctor_core::statistics::{ALPHA, holm};
use proctor_core::summary::Summary;
use proctor_record::record::RecordError;

use super::{SkippedSuite, SuiteEnd};
use crate::engine::ending::RunResult;

/// The suites whose regression stays one after Holm's correction.
pub(super) struct CorrectedRegressions {
    /// The number of compared suites.
    pub(super) suites: u32,
    pub(super) regressed: BTreeSet<usize>,
}

/// Corrects the regressions over all compared suites; `None` if fewer than two are compared.
pub(super) fn regressions(done: &[SuiteEnd]) -> Option<CorrectedRegressions> {
    let p_of = |done: &SuiteEnd| match done {
        SuiteEnd::Ended(Ok(result)) => base_p(&result.summary),
        SuiteEnd::Ended(Err(_)) => None,
        SuiteEnd::Summed(summed) => base_p(&summed.summary),
    };
    let done = done.iter().enumerate();
    let compared: Vec<(usize, f64)> = done
        .filter_map(|(index, done)| Some((index, p_of(done)?)))
        .collect();
    let suites = u32::try_from(compared.len())
        .ok()
        .filter(|suites| *suites > 1)?;
    let adjusted = holm(&compared.iter().map(|(_, p)| *p).collect::<Vec<_>>());
    let regressed = compared.iter().zip(adjusted);
    Some(CorrectedRegressions {
        suites,
        regressed: regressed
            .filter(|(_, p)| *p <= ALPHA)
            .map(|((index, _), _)| *index)
            .collect(),
    })
}

/// The p-value of a regression against the base; `None` without a base.
pub(super) fn base_p(summary: &Summary) -> Option<f64> {
    let base = summary.plan.gates.as_ref()?.base.as_ref()?;
    let new = tally(summary, "this run".to_owned());
    Some(Comparison::of(base, &new).regression_p())
}

/// The results of several suites.
pub struct SuitesResult {
    /// The suites that ran, in order.
    pub suites: Vec<Result<RunResult, RecordError>>,
    pub skipped: Vec<SkippedSuite>,
}

impl SuitesResult {
    /// The worst exit code: 130 if the user interrupted any suite, else 1, else 3, else 0.
    pub fn exit(&self) -> u8 {
        let code = |suite: &Result<RunResult, RecordError>| match suite {
            Ok(result) if result.kept.is_ok() => result.exit,
            // Without a complete record, the result is inconclusive.
            Ok(result) if result.exit != 0 => result.exit,
            Ok(_) | Err(_) => INCONCLUSIVE,
        };
        worst(self.suites.iter().map(code))
    }
}

const INCONCLUSIVE: u8 = 3;

/// The worst of some exit codes. Without any, the result is inconclusive: nothing ran.
pub fn worst(codes: impl IntoIterator<Item = u8>) -> u8 {
    let rank = |code: &u8| match code {
        130 => 0,
        1 => 1,
        0 => 4,
        // Whatever it is, it is not a success.
        _ => 2,
    };
    codes.into_iter().min_by_key(rank).unwrap_or(INCONCLUSIVE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_exit_code_wins_and_no_suite_is_no_success() {
        for (codes, expected) in [
            (&[][..], 3),
            (&[0, 0], 0),
            (&[0, 3], 3),
            (&[3, 1, 0], 1),
            (&[1, 130], 130),
            (&[0, 4], 4),
            (&[4, 1], 1),
        ] {
            assert_eq!(worst(codes.iter().copied()), expected, "{codes:?}");
        }
    }
}
