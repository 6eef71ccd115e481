//! Kills programs that stop or kill their guard, which runs as the same user.
//!
//! The trial of such a server fails as one whose server was killed, and no process is left.

use std::sync::Arc;
use std::time::Duration;

use rustix::process::{Pid, Signal};
use tokio::task::spawn_blocking;

use super::hosts::GuardLink;
use crate::guard::KILL_LIMIT;
use crate::os::{kill_below, kill_session};
use crate::tail::Tail;

/// Ends a program that stopped its guard.
pub(super) async fn release_stopped(guard: &GuardLink, tails: &[Tail]) {
    say(tails, "the program stopped its guard, so Proctor killed it");
    release(guard).await;
}

/// Kills everything below a stopped guard, and lets the guard end.
pub(super) async fn release(guard: &GuardLink) {
    let pid = guard.pid;
    // The panic hook reports a panic of this task.
    let _ = spawn_blocking(move || kill_below(pid)).await;
    guard.process.signal(Signal::TERM);
    guard.process.signal(Signal::CONT);
}

/// Ends a guard whose end can't be noticed any more, because the host of the guards was killed.
pub(super) async fn end_unwatched(guard: &Arc<GuardLink>, grace: Duration, tails: &[Tail]) {
    say(
        tails,
        "the guard host was killed, so Proctor ended the program",
    );
    guard.process.signal(Signal::TERM);
    guard.process.signal(Signal::CONT);
    let waiting = guard.clone();
    let _ = spawn_blocking(move || waiting.process.wait(grace + KILL_LIMIT)).await;
    guard.process.signal(Signal::KILL);
}

/// Kills the processes that a killed guard has left.
pub(super) async fn clear(guard: Pid, tails: Vec<Tail>) {
    let notify = move || say(&tails, "the program killed its guard, so Proctor killed it");
    // The panic hook reports a panic of this task.
    let _ = spawn_blocking(move || kill_session(guard, notify)).await;
}

fn say(tails: &[Tail], line: &str) {
    for tail in tails {
        tail.push(format!("proctor: {line}\n").as_bytes());
    }
}
