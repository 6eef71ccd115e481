//! `proctor view`, from outside: real sockets, real runs, and folders that change while they are served.

#![expect(
    clippy::unwrap_used,
    reason = "a test that can't go on panics, helpers included"
)]

mod attacks;
mod folders;
mod live;
mod results;
mod viewer;
