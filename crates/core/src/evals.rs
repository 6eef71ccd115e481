//! What evals that servers ship need besides their data: files of them, and the consent to run them.

pub mod consent;
pub mod file;
pub mod fingerprint;
