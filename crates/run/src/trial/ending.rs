//! Constructors for the ends of a trial.

use proctor_record::event::{Blame, Outcome, TrialEnded};

pub(super) fn failed(blame: impl Into<Option<Blame>>, reason: impl Into<String>) -> TrialEnded {
    end(Outcome::Failed, blame.into(), reason)
}

pub(super) fn errored(blame: impl Into<Option<Blame>>, reason: impl Into<String>) -> TrialEnded {
    end(Outcome::Errored, blame.into(), reason)
}

pub(super) fn timed_out(reason: impl Into<String>) -> TrialEnded {
    end(Outcome::TimedOut, None, reason)
}

pub(super) fn cancelled(reason: impl Into<String>) -> TrialEnded {
    end(Outcome::Cancelled, None, reason)
}

fn end(outcome: Outcome, blame: Option<Blame>, reason: impl Into<String>) -> TrialEnded {
    TrialEnded {
        outcome,
        reason: Some(reason.into()),
        blame,
    }
}
