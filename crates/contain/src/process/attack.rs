//! Programs that stop or kill their guard, which is a process of the same user: they are killed.
//!
//! Its main function is [`watch`]. So such a server fails its trial as one that was killed, and leaves no
//! more behind than any other.

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::spawn_blocking;

use super::ProcessExit;
use crate::os::{kill_below, kill_session};
use crate::tail::Tail;

/// What a guard does.
enum GuardAction {
    Works,
    Stopped,
    Killed,
    /// It has ended in another way, or whoever waited for it knows how.
    Ended,
}

/// Watches a guard until it ends. What is done about it is said where the program's stderr goes.
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
                    say(&tails, "it stopped its guard, so it was killed");
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

/// Clears what a guard has left that was killed, if it was.
pub(super) async fn clear_after(guard: Option<Pid>, ended: ProcessExit, stderr: &Tail) {
    if let (Some(guard), ProcessExit::Signalled(signal)) = (guard, ended)
        && signal == Signal::KILL.as_raw()
    {
        clear(guard, vec![stderr.clone()]).await;
    }
}

/// Kills everything below a guard, and lets it end.
pub(super) async fn release(guard: Pid) {
    // A panic in there is reported by the hook.
    let _ = spawn_blocking(move || kill_below(guard)).await;
    let _ = kill_process(guard, Signal::TERM);
    let _ = kill_process(guard, Signal::CONT);
}

async fn clear(guard: Pid, tails: Vec<Tail>) {
    let told = move || say(&tails, "it killed its guard, so it was killed");
    // A panic in there is reported by the hook.
    let _ = spawn_blocking(move || kill_session(guard, told)).await;
}

fn state(guard: Pid) -> GuardAction {
    let options = WaitIdOptions::STOPPED
        | WaitIdOptions::EXITED
        | WaitIdOptions::NOHANG
        // The end is for somebody else to take in.
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
