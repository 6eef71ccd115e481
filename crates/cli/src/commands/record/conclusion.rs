//! The outcome of a recording, from its record: the same for a relay, a bridge and a proxy.

use proctor_record::decision::server_failure;
use proctor_record::event::{Blame, EndedBy, Outcome, ProcessEnd, TrialEnded};
use proctor_record::fold::{FoldOptions, FoldedTrial};
use proctor_wire::recorder::Recorder;

use crate::exit::Exit;
use proctor_run::engine::recording::well;

/// The outcome of the session and the exit code, which is that of the server if it failed.
pub(super) fn of(recorder: &Recorder) -> (TrialEnded, u8) {
    let options = FoldOptions {
        text_bytes: 0,
        ..FoldOptions::default()
    };
    match recorder.fold(&options) {
        Ok(Some(folded)) => of_folded(&folded),
        // A record that can't be read is reported when it ends.
        Ok(None) | Err(_) => (well(), Exit::Ok.code()),
    }
}

fn of_folded(folded: &FoldedTrial) -> (TrialEnded, u8) {
    let ends = folded.work.closed.iter().filter_map(|closed| closed.end);
    let own = |wanted: fn(EndedBy) -> bool| {
        let mut ends = ends.clone().filter(|end| wanted(end.by));
        ends.find_map(|end| end.own_end().filter(|own| *own != ProcessEnd::Exited(0)))
    };
    let failure = server_failure(&folded.conduct);
    // A client that leaves in the middle of a call is not the server's fault.
    let failure = failure.filter(|failure| failure.blame.is_some());
    if let Some(own) = own(|by| by == EndedBy::Server).or(failure.as_ref().and(own(|_| true))) {
        let ended = TrialEnded {
            outcome: Outcome::Failed,
            reason: Some(format!("the server {own}")),
            blame: Some(Blame::Server),
        };
        return (ended, exit_code(own));
    }
    let Some(failure) = failure else {
        return (well(), Exit::Ok.code());
    };
    let exit = match failure.outcome {
        Outcome::Failed => Exit::Failed,
        _ => Exit::Inconclusive,
    };
    let ended = TrialEnded {
        outcome: failure.outcome,
        reason: Some(failure.reason),
        blame: failure.blame,
    };
    (ended, exit.code())
}

/// The exit code for the end of a process, as in a shell.
pub(super) fn exit_code(how: ProcessEnd) -> u8 {
    let code = match how {
        ProcessEnd::Exited(code) => u8::try_from(code).ok(),
        ProcessEnd::Signalled(signal) => u8::try_from(signal).ok().and_then(|n| n.checked_add(128)),
        ProcessEnd::Unknown => None,
    };
    code.unwrap_or(Exit::Inconclusive.code())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recording_ends_as_its_server_did() {
        let check = |how: ProcessEnd, expected: u8| assert_eq!(exit_code(how), expected);
        check(ProcessEnd::Exited(0), 0);
        check(ProcessEnd::Exited(255), 255);
        check(ProcessEnd::Signalled(9), 137);
        check(ProcessEnd::Signalled(64), 192);
        check(ProcessEnd::Unknown, 3);
    }
}
