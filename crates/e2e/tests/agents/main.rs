//! Agents that are programs of their own, through the binary.

#![expect(
    clippy::unwrap_used,
    reason = "a test that can't go on panics, helpers included"
)]

mod acp;
mod cli;
mod compared;
mod custom;
mod judges;
mod matrix;
mod selection;
mod surveyed;
mod tap;
mod unanswered;
