//! Decides which processes may start a server.

use rustix::process::{Pid, geteuid};
use tokio::net::UnixStream;

use proctor_contain::os;

/// Which processes of the same user may start a server. Other users are always refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AdmissionPolicy {
    /// No process yet: relays wait.
    Nobody,
    /// This process and its descendants.
    Descendants(Pid),
    /// Every process of the same user.
    SameUser,
}

/// Checks a connected process; returns why it is refused.
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
