//! Whoever uses the engine: hears what there is to say before a run, and is asked for consent.
//!
//! Main types: [`Host`], which a command line or a test implements, and [`NonInteractiveHost`], which hears nothing
//! and agrees to nothing.

use std::io;
use std::path::Path;
use std::pin::Pin;

use proctor_core::event::SkippedEval;
use proctor_core::problem::Problems;

use super::consent::{ConsentOptions, ConsentPurpose};
use super::offers::EvalPlan;

/// Something to be told before the first trial starts.
pub enum HostNotice<'a> {
    /// What is wrong with files: errors and warnings, with their places.
    Problems(&'a Problems),
    /// A warning or a note, without secrets.
    Text(&'a str),
    /// What would be called, before consent is asked for.
    Calls {
        planned: &'a [EvalPlan<'a>],
        options: &'a ConsentOptions<'a>,
    },
    /// Consent was found in this file, and still holds.
    ConsentFound(&'a Path),
    /// Consent was written to this file.
    ConsentKept(&'a Path),
    /// Evals that are listed and can't be run, where none is left that can.
    NotRun(&'a [SkippedEval]),
}

/// The answer to a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConsentAnswer {
    Yes,
    No,
    /// Nobody is there to be asked.
    Nobody,
}

/// A future of a host.
pub type HostFuture<'a> = Pin<Box<dyn Future<Output = io::Result<ConsentAnswer>> + Send + 'a>>;

/// Whoever uses the engine.
pub trait Host: Send + Sync {
    /// Takes in what there is to tell. Nothing depends on whether anybody reads it.
    fn notice(&self, notice: HostNotice<'_>);

    /// Asks whether what was shown may be called.
    fn ask(&self, purpose: ConsentPurpose) -> HostFuture<'_>;
}

/// A host that hears nothing and agrees to nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct NonInteractiveHost;

impl Host for NonInteractiveHost {
    fn notice(&self, _: HostNotice<'_>) {}

    fn ask(&self, _: ConsentPurpose) -> HostFuture<'_> {
        Box::pin(std::future::ready(Ok(ConsentAnswer::Nobody)))
    }
}
