//! What whoever watches a run is told, while it goes on.
//!
//! Its main type is [`Progress`]. Each trial says for itself what happens in it.

use std::time::Duration;

use proctor_core::event::{StepPhase, TrialEnded};
use tokio::sync::mpsc::UnboundedSender;

use crate::agent::ToolCallNotice;

/// Something that happened in a run. Trials are known by their place in the order. What happens
/// before a trial's end is told only to those who want details.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Progress {
    /// A trial started.
    Started {
        /// Which one.
        trial: usize,
    },
    /// A trial came to another phase.
    Phase {
        /// Which one.
        trial: usize,
        /// The phase.
        phase: StepPhase,
    },
    /// An agent calls something.
    Called {
        /// In which trial.
        trial: usize,
        /// What.
        called: ToolCallNotice,
    },
    /// A trial ended.
    Ended {
        /// Which one.
        trial: usize,
        /// How.
        ended: TrialEnded,
        /// How long it took.
        duration: Duration,
    },
    /// No more trials are started.
    Stopping {
        /// Why.
        reason: String,
    },
}

/// Tells what happens in one trial.
#[derive(Debug, Clone)]
pub(crate) struct TrialProgress {
    pub(crate) trial: usize,
    /// Nobody, if only ends are of interest: every message wakes whoever waits for it.
    pub(crate) to: Option<UnboundedSender<Progress>>,
}

impl TrialProgress {
    pub(crate) fn started(&self) {
        let trial = self.trial;
        self.tell(Progress::Started { trial });
    }

    pub(crate) fn phase(&self, phase: StepPhase) {
        let trial = self.trial;
        self.tell(Progress::Phase { trial, phase });
    }

    pub(crate) fn called(&self, called: ToolCallNotice) {
        let trial = self.trial;
        self.tell(Progress::Called { trial, called });
    }

    fn tell(&self, progress: Progress) {
        if let Some(to) = &self.to {
            // Nobody may be watching any more.
            let _ = to.send(progress);
        }
    }
}
