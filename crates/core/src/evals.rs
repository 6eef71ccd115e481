//! Shipped evals: their files, fingerprints of servers, and the consent to run them.

pub mod consent;
pub mod content;
pub mod file;
pub mod fingerprint;
