//! Kills programs that stop or kill their guard, which runs as the same user.
//!
//! The main function is [`watch`]. The trial of such a server fails as one whose server was killed,
//! and no process is left.

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::spawn_blocking;

use super::ProcessExit;
use crate::os::{kill_below, kill_session};
use crate::tail::Tail;

/// What happened to a guard.
enum GuardAction {
    Works,
    Stopped,
    Killed,
    /// It ended in another way, or another task has already read its status.
    Ended,
}

/// Watches a guard until it ends. Messages about an attack go to the tails of the program's stderr.
pub(super) fn watch(guard: Pid, tails: Vec<Tail>) {
    let Ok(mut changes) = signal(SignalKind::child()) else {
        return;
    };
    tokio::spawn(async move {
        loop {
            match state(guard) {
                GuardAction::Works => {}
                GuardAction::Ended => return,
                GuardAction::Stopped => {
                    say(
                        &tails,
                        "the program stopped its guard, so Proctor killed it",
                    );
                    release(guard).await;
                }
                GuardAction::Killed => {
                    clear(guard, tails).await;
                    return;
                }
            }
            if changes.recv().await.is_none() {
                return;
            }
        }
    });
}

/// Kills the processes that a killed guard has left.
pub(super) async fn clear_after(guard: Option<Pid>, ended: ProcessExit, stderr: &Tail) {
    if let (Some(guard), ProcessExit::Signalled(signal)) = (guard, ended)
        && signal == Signal::KILL.as_raw()
    {
        clear(guard, vec![stderr.clone()]).await;
    }
}

/// Kills everything below a stopped guard, and lets the guard end.
pub(super) async fn release(guard: Pid) {
    // The panic hook reports a panic of this task.
    let _ = spawn_blocking(move || kill_below(guard)).await;
    let _ = kill_process(guard, Signal::TERM);
    let _ = kill_process(guard, Signal::CONT);
}

async fn clear(guard: Pid, tails: Vec<Tail>) {
    let notify = move || say(&tails, "the program killed its guard, so Proctor killed it");
    // The panic hook reports a panic of this task.
    let _ = spawn_blocking(move || kill_session(guard, notify)).await;
}

fn state(guard: Pid) -> GuardAction {
    let options = WaitIdOptions::STOPPED
        | WaitIdOptions::EXITED
        | WaitIdOptions::NOHANG
        // Another task reads the exit status.
        | WaitIdOptions::NOWAIT;
    match waitid(WaitId::Pid(guard), options) {
        Ok(None) => GuardAction::Works,
        Ok(Some(status)) if status.stopped() => GuardAction::Stopped,
        Ok(Some(status)) if status.terminating_signal() == Some(Signal::KILL.as_raw()) => {
            GuardAction::Killed
        }
        Ok(Some(_)) | Err(_) => GuardAction::Ended,
    }
}

fn say(tails: &[Tail], line: &str) {
    for tail in tails {
        tail.push(format!("proctor: {line}\n").as_bytes());
    }
}
