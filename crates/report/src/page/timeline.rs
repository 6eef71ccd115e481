//! The places and times of a trial's events, noted while the trial is folded.
//!
//! Its main type is [`EventPlaces`]. A fold keeps what happened; a page also says when, and points at it.

use std::collections::HashMap;

use proctor_record::event::{Body, Event, EventKind};

/// The places and times of the events that a page shows.
#[derive(Debug, Default)]
pub(super) struct EventPlaces {
    /// The time of each event that a page may show, by its number, in microseconds since the run started.
    at: HashMap<u64, u64>,
    pub(super) prompt: Option<(u64, Body)>,
    pub(super) answer: Option<(u64, Body)>,
    /// The events of steps, in order.
    pub(super) steps: Vec<u64>,
    /// The times at which phases started, in order.
    pub(super) phases: Vec<u64>,
}

impl EventPlaces {
    pub(super) fn push(&mut self, event: &Event) {
        match &event.event {
            EventKind::Prompted { text, turn: None } => {
                self.prompt = Some((event.seq, text.clone()));
            }
            EventKind::AgentAnswered { text } => self.answer = Some((event.seq, text.clone())),
            EventKind::StepEnded(_) => self.steps.push(event.seq),
            EventKind::PhaseStarted { .. } => self.phases.push(event.at),
            EventKind::Prompted { turn: Some(_), .. }
            | EventKind::ModelFailed(_)
            | EventKind::ModelReplied(_)
            | EventKind::AgentClaimed(_) => {}
            EventKind::Frame(_)
            | EventKind::Http(_)
            | EventKind::RunStarted(_)
            | EventKind::RunEnded(_)
            | EventKind::TrialStarted(_)
            | EventKind::TrialEnded(_)
            | EventKind::ConnectionOpened(_)
            | EventKind::ConnectionClosed(_)
            | EventKind::Finding(_)
            | EventKind::RunPlanned(_)
            | EventKind::ServerSeen(_)
            | EventKind::ToolsOffered { .. }
            | EventKind::ModelAsked(_)
            | EventKind::Replayed { .. }
            | EventKind::SurfaceCompared(_)
            // The model's turn shows what it asked for.
            | EventKind::CallWithheld(_)
            | EventKind::TrialFolder(_)
            | EventKind::ToolsSelected(_)
            | EventKind::AgentStarted(_)
            | EventKind::AgentWrote { .. }
            | EventKind::AgentEnded(_)
            | EventKind::Graded(_)
            | EventKind::Unknown(_) => return,
        }
        self.at.insert(event.seq, event.at);
    }

    /// The time of an event since `began`, in microseconds.
    pub(super) fn since(&self, began: u64, seq: u64) -> u64 {
        let at = self.at.get(&seq).copied().unwrap_or(began);
        at.saturating_sub(began)
    }
}
