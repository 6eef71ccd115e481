//! Phases of steps: a setup until its first failure, a cleanup to its end.

use std::time::Duration;

use proctor_core::suite::Step;
use proctor_record::duration;
use proctor_record::event::{Blame, Phase};
use proctor_record::verdict::Verdict;

use super::Steps;

/// Why a phase failed, and the blame for it.
pub type PhaseFailure = (Blame, String);

impl Steps {
    /// Runs setup steps until one fails.
    pub async fn set_up(&mut self, steps: &[Step]) -> Result<(), PhaseFailure> {
        for step in steps {
            self.run_in(Phase::Setup, step).await?;
        }
        Ok(())
    }

    /// Runs all cleanup steps, and returns the first failure.
    pub async fn clean_up(
        &mut self,
        steps: &[Step],
        limit: Option<Duration>,
    ) -> Result<(), PhaseFailure> {
        let all = async {
            let mut first = Ok(());
            for step in steps {
                first = first.and(self.run_in(Phase::Cleanup, step).await);
            }
            first
        };
        let Some(limit) = limit else {
            return all.await;
        };
        tokio::time::timeout(limit, all).await.unwrap_or_else(|_| {
            let limit = duration::brief(limit);
            let reason = format!("the cleanup timed out after {limit}");
            Err((Blame::Suite, reason))
        })
    }

    async fn run_in(&mut self, phase: Phase, step: &Step) -> Result<(), PhaseFailure> {
        let result = self.run(phase, step).await;
        match result.verdict {
            Verdict::Fail { reason } | Verdict::Unknown { reason } if !result.goes_on => {
                let reason = format!("{phase} step `{}` failed: {reason}", step.id);
                Err((result.blame.unwrap_or(Blame::Suite), reason))
            }
            Verdict::Pass | Verdict::Fail { .. } | Verdict::Unknown { .. } => Ok(()),
        }
    }
}
