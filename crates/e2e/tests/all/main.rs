//! Shows that the fixtures do what they say, over plain pipes and sockets.

#![expect(
    clippy::unwrap_used,
    reason = "a test that can't go on panics, helpers included"
)]

mod evals;
mod faults;
mod http;
mod legacy_sse;
mod lists;
mod processes;
mod shared;
mod stdio;
mod tee;
mod wire;
