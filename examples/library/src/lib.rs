//! Proctor as a library. `tests/suite.rs` runs a suite and asserts on what came of it.
