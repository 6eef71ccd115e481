//! The user of the engine: receives notices before a run, and is asked for consent.
//!
//! Main types: [`Host`], which a command line or a test implements, and [`NonInteractiveHost`],
//! which ignores notices and gives no consent.

use std::io;
use std::path::Path;
use std::pin::Pin;

use proctor_record::event::SkippedEval;
use proctor_record::problem::Problems;

use super::consent::{ConsentOptions, ConsentPurpose};
use super::offers::EvalPlan;

/// A notice before the first trial starts.
pub enum HostNotice<'a> {
    /// Errors and warnings of files, with their locations.
    Problems(&'a Problems),
    /// A warning or a note, redacted.
    Text(&'a str),
    /// The planned calls, before the question for consent.
    Calls {
        planned: &'a [EvalPlan<'a>],
        options: &'a ConsentOptions<'a>,
    },
    /// This file has consent that still holds.
    ConsentFound(&'a Path),
    /// Consent was saved to this file.
    ConsentKept(&'a Path),
    /// The evals that can't be run, if no other is left.
    NotRun(&'a [SkippedEval]),
}

/// The answer to the question for consent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConsentAnswer {
    Yes,
    No,
    /// The host has no user to ask.
    Nobody,
}

pub type HostFuture<'a> = Pin<Box<dyn Future<Output = io::Result<ConsentAnswer>> + Send + 'a>>;

/// The user of the engine.
pub trait Host: Send + Sync {
    /// Receives a notice. The host may ignore it.
    fn notice(&self, notice: HostNotice<'_>);

    /// Asks for consent to the calls that were shown.
    fn ask(&self, purpose: ConsentPurpose) -> HostFuture<'_>;

    /// Asks for consent to what the last notice says. By default there is no user to ask.
    fn confirm(&self, _question: &'static str) -> HostFuture<'_> {
        Box::pin(std::future::ready(Ok(ConsentAnswer::Nobody)))
    }
}

/// A host that ignores notices and gives no consent.
#[derive(Debug, Clone, Copy, Default)]
pub struct NonInteractiveHost;

impl Host for NonInteractiveHost {
    fn notice(&self, _: HostNotice<'_>) {}

    fn ask(&self, _: ConsentPurpose) -> HostFuture<'_> {
        Box::pin(std::future::ready(Ok(ConsentAnswer::Nobody)))
    }
}
