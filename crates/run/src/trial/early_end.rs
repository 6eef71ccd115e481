//! Decides from the record of a trial how it ends, before grading.
//!
//! The decision itself is in [`proctor_record::decision`]; this module calls it for every kind of
//! agent.

use std::sync::PoisonError;

use proctor_record::decision::{self, TrialFailure};
use proctor_record::event::{Blame, TrialEnded};
use proctor_record::fold::{Fold, FoldOptions, FoldedTrial, LiveFold};
use proctor_record::record::RecordError;

use super::Trial;
use super::ending::errored;
use crate::agent::Toolbox;
use proctor_wire::worker::Large;

/// How much of each text a script gets: longer texts lose their middle.
const TEXT_BYTES: usize = 4 << 20;

impl Trial {
    /// The events so far, in the form that checks read.
    pub(super) async fn folded(&self) -> Result<Large<FoldedTrial>, TrialEnded> {
        if !self.recorder.is_short() {
            return self.fold(FoldOptions::for_checks()).await;
        }
        let folded = self.follow();
        let folded = folded.map_err(|error| errored(Blame::Infra, error.to_string()))?;
        Ok(Large::new(folded, self.recorder.bytes()))
    }

    /// Folds the events of a short record that were not folded yet.
    fn follow(&self) -> Result<FoldedTrial, RecordError> {
        let mut kept = self.live.lock().unwrap_or_else(PoisonError::into_inner);
        let mut live = kept
            .take()
            .unwrap_or_else(|| LiveFold::new(FoldOptions::for_checks()));
        self.recorder.follow(&mut live)?;
        let folded = live.folded();
        *kept = Some(live);
        Ok(folded)
    }

    /// The same with the turns of the agent's model, and whole texts.
    pub(super) async fn folded_with_turns(&self) -> Result<Large<FoldedTrial>, TrialEnded> {
        self.fold(FoldOptions {
            turns: true,
            text_bytes: TEXT_BYTES,
            ..FoldOptions::for_checks()
        })
        .await
    }

    async fn fold(&self, options: FoldOptions) -> Result<Large<FoldedTrial>, TrialEnded> {
        let recorder = self.recorder.clone();
        let is_short = recorder.is_short();
        let work = move || -> Result<FoldedTrial, RecordError> {
            let folded = recorder.fold(&options)?;
            Ok(folded.unwrap_or_else(|| Fold::new(options).finish()))
        };
        let folded = if is_short {
            work()
        } else {
            // Folding a long record takes time, in which limits and interrupts must still work.
            match tokio::task::spawn_blocking(work).await {
                Ok(folded) => folded,
                // Propagates a panic of the task.
                Err(panic) => std::panic::resume_unwind(panic.into_panic()),
            }
        };
        let folded = folded.map_err(|error| errored(Blame::Infra, error.to_string()))?;
        Ok(Large::new(folded, self.recorder.bytes()))
    }

    /// The protocol problem of a server that fails the trial, if any.
    pub(super) fn breach(&self, folded: &FoldedTrial) -> Option<TrialFailure> {
        self.context.strict.then(|| decision::breach(folded))?
    }

    /// The same for connections that trials share.
    pub(super) fn shared_breach(&self, toolbox: &Toolbox) -> Option<TrialFailure> {
        if !self.context.strict {
            return None;
        }
        toolbox.servers().iter().find_map(|connected| {
            let name = &connected.name;
            self.context.shared.get(name)?;
            let findings = connected.client.connection_findings();
            let (_, detail, _) = findings.into_iter().next()?;
            Some(TrialFailure {
                outcome: proctor_record::event::Outcome::Failed,
                blame: Some(Blame::Server),
                reason: format!("the server `{name}` breaks the protocol: {detail}"),
            })
        })
    }
}

/// The end of a trial that a server failed.
pub(super) fn ended(failure: TrialFailure) -> TrialEnded {
    TrialEnded {
        outcome: failure.outcome,
        reason: Some(failure.reason),
        blame: failure.blame,
    }
}
