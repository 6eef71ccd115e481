//! Who may come in.

use rustix::process::{Pid, geteuid};
use tokio::net::UnixStream;

use proctor_contain::os;

/// Who may start a server. All others of the same user are turned away; other users are in any case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AdmissionPolicy {
    /// Nobody yet: who comes waits.
    Nobody,
    /// This process, and those below it.
    Descendants(Pid),
    /// Every process of the same user.
    SameUser,
}

/// Whether one who came may come in; or why not.
pub(super) fn check(stream: &UnixStream, admit: AdmissionPolicy) -> Result<(), String> {
    let peer =
        os::peer(stream).map_err(|error| format!("can't identify the peer process: {error}"))?;
    if peer.user != geteuid() {
        return Err(format!(
            "it belongs to another user, {}",
            peer.user.as_raw()
        ));
    }
    let pid = peer.pid;
    match admit {
        AdmissionPolicy::Descendants(agent) if !os::is_below(pid, agent) => {
            let pid = pid.as_raw_pid();
            Err(format!("process {pid} is not a descendant of the agent"))
        }
        AdmissionPolicy::Nobody => Err("no client is authorized yet".to_owned()),
        AdmissionPolicy::Descendants(_) | AdmissionPolicy::SameUser => Ok(()),
    }
}
