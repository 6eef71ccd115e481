//! Whoever uses the engine: hears what there is to say before a run, and is asked for consent.
//!
//! Main types: [`Host`], which a command line or a test implements, and [`Unattended`], which hears nothing
//! and agrees to nothing.

use std::io;
use std::path::Path;
use std::pin::Pin;

use proctor_core::event::NotRun;
use proctor_core::problem::Problems;

use super::consent::{ConsentOptions, Purpose};
use super::offers::Planned;

/// Something to be told before the first trial starts.
pub enum Notice<'a> {
    /// What is wrong with files: errors and warnings, with their places.
    Problems(&'a Problems),
    /// A warning or a note, without secrets.
    Text(&'a str),
    /// What would be called, before consent is asked for.
    Calls {
        planned: &'a [Planned<'a>],
        options: &'a ConsentOptions<'a>,
    },
    /// Consent was found in this file, and still holds.
    ConsentFound(&'a Path),
    /// Consent was written to this file.
    ConsentKept(&'a Path),
    /// Evals that are listed and can't be run, where none is left that can.
    NotRun(&'a [NotRun]),
}

/// The answer to a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    Yes,
    No,
    /// Nobody is there to be asked.
    Nobody,
}

/// A future of a host.
pub type Asking<'a> = Pin<Box<dyn Future<Output = io::Result<Answer>> + Send + 'a>>;

/// Whoever uses the engine.
pub trait Host: Send + Sync {
    /// Takes in what there is to tell. Nothing depends on whether anybody reads it.
    fn notice(&self, notice: Notice<'_>);

    /// Asks whether what was shown may be called.
    fn ask(&self, purpose: Purpose) -> Asking<'_>;
}

/// A host that hears nothing and agrees to nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct Unattended;

impl Host for Unattended {
    fn notice(&self, _: Notice<'_>) {}

    fn ask(&self, _: Purpose) -> Asking<'_> {
        Box::pin(std::future::ready(Ok(Answer::Nobody)))
    }
}
