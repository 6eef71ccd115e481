//! Proctor as a library. `tests/suite.rs` runs a suite and asserts on the results.
