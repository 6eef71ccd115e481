//! Drafts a suite from a recorded session: the server, the calls as checks, and a script that makes them again.
//!
//! The main type is [`SuiteDraft`]. The script makes the calls exactly as they were made. The checks are loosened where a
//! value looks volatile ([`volatile`]). A call that can't be made again as it was, because the record has no response to it
//! or a redacted value in its arguments, is left out, and the draft says so.

mod calls;
mod render;
mod server;
pub mod volatile;

use proctor_record::event::EventKind;
use proctor_record::fold::{FoldOptions, fold_trial};
use proctor_record::record::{RecordError, RunReader};
use proctor_record::transcript::{Call, CallRequest};

use self::calls::DraftedCall;
use self::server::DraftedServer;

/// The maximum number of calls of a draft: a longer script is not one that people read.
const CALLS: usize = 200;

/// A suite that makes the calls of a recording again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SuiteDraft {
    /// The path of each file below the folder of the suite, and its content.
    pub files: Vec<(&'static str, String)>,
    /// The number of calls that the script makes.
    pub calls: usize,
    /// What a person has to know: calls that are left out, and secrets to provide.
    pub notes: Vec<String>,
}

/// Why a record does not make a suite.
#[derive(Debug, thiserror::Error)]
pub enum DraftError {
    /// The record is a run of a suite, so there is a suite already.
    #[error("the run is not a recording; `--from` takes a session of `proctor record`")]
    NotARecording,
    #[error("the recording has no call of a tool, resource or prompt")]
    NoCalls,
    /// Every call is left out.
    #[error("none of the recorded calls can be made again: {0}")]
    NoneLeft(String),
    #[error("the recording names neither the command nor the URL of its server")]
    NoServer,
    #[error(transparent)]
    Record(#[from] RecordError),
}

impl SuiteDraft {
    /// Drafts a suite from the record of a session.
    pub fn of(run: &RunReader) -> Result<Self, DraftError> {
        if has_plan(run)? {
            return Err(DraftError::NotARecording);
        }
        let recorded = recorded_calls(run)?;
        if recorded.is_empty() {
            return Err(DraftError::NoCalls);
        }
        let server = DraftedServer::of(run)?.ok_or(DraftError::NoServer)?;
        let tools = calls::listed_tools(run)?;
        let mut notes = server.notes.clone();
        let mut drafted = Vec::new();
        for call in &recorded {
            if drafted.len() == CALLS {
                let left = recorded.len() - CALLS;
                notes.push(format!(
                    "the last {left} calls are left out: a suite has at most {CALLS}"
                ));
                break;
            }
            match DraftedCall::of(call, &tools) {
                Ok(call) => drafted.push(call),
                Err(why) => notes.push(format!(
                    "call #{} of {} is left out: {why}",
                    call.seq,
                    name(call)
                )),
            }
        }
        if drafted.is_empty() {
            return Err(DraftError::NoneLeft(notes.join("; ")));
        }
        Ok(Self {
            files: render::files(&server, &drafted, &notes),
            calls: drafted.len(),
            notes,
        })
    }
}

fn has_plan(run: &RunReader) -> Result<bool, RecordError> {
    for event in run.events()? {
        if matches!(event?.event, EventKind::RunPlanned(_)) {
            return Ok(true);
        }
    }
    Ok(false)
}

fn recorded_calls(run: &RunReader) -> Result<Vec<Call>, RecordError> {
    let mut calls = Vec::new();
    for trial in run.trials()? {
        let folded = fold_trial(run, &trial, &FoldOptions::default())?;
        calls.extend(folded.transcript.calls);
    }
    Ok(calls)
}

/// The tool, resource or prompt of a call, for a note.
fn name(call: &Call) -> String {
    match &call.request {
        CallRequest::Tool { name, .. } => format!("`{name}`"),
        CallRequest::Resource { uri } => format!("the resource `{uri}`"),
        CallRequest::Prompt { name, .. } => format!("the prompt `{name}`"),
    }
}
