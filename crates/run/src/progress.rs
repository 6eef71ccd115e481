//! Progress events of a run.
//!
//! Its main type is [`Progress`]. Each trial reports its own events.

use std::time::Duration;

use proctor_record::event::{Phase, TrialEnded};
use tokio::sync::mpsc::UnboundedSender;

use crate::agent::ToolCallNotice;

/// An event of a run. A trial is identified by its position in the plan. Events before a trial's
/// end are sent only if details are requested.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Progress {
    Started {
        trial: usize,
    },
    /// A trial entered another phase.
    Phase {
        trial: usize,
        phase: Phase,
    },
    /// An agent made a call.
    Called {
        trial: usize,
        called: ToolCallNotice,
    },
    Ended {
        trial: usize,
        ended: TrialEnded,
        duration: Duration,
    },
    /// A trial is not started: it can't change the answer of the gate.
    NotNeeded {
        trial: usize,
    },
    /// The run starts no more trials.
    Stopping {
        reason: String,
    },
}

/// Sends the progress of one trial.
#[derive(Debug, Clone)]
pub(crate) struct TrialProgress {
    pub(crate) trial: usize,
    /// `None` if only the ends of trials are requested, since every message wakes the receiver.
    pub(crate) to: Option<UnboundedSender<Progress>>,
}

impl TrialProgress {
    pub(crate) fn started(&self) {
        let trial = self.trial;
        self.tell(Progress::Started { trial });
    }

    pub(crate) fn phase(&self, phase: Phase) {
        let trial = self.trial;
        self.tell(Progress::Phase { trial, phase });
    }

    pub(crate) fn called(&self, called: ToolCallNotice) {
        let trial = self.trial;
        self.tell(Progress::Called { trial, called });
    }

    fn tell(&self, progress: Progress) {
        if let Some(to) = &self.to {
            // The receiver may be gone.
            let _ = to.send(progress);
        }
    }
}
