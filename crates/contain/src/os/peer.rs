//! The credentials of a socket's peer, which POSIX doesn't define.

use std::io;
use std::os::fd::AsFd;

use rustix::process::{Pid, Uid};

/// The process at the other end of a Unix socket.
#[derive(Clone, Copy, Debug)]
pub struct Peer {
    pub user: Uid,
    pub pid: Pid,
}

/// Which process connected a Unix socket.
#[cfg(target_os = "linux")]
pub fn peer(socket: impl AsFd) -> io::Result<Peer> {
    let found = rustix::net::sockopt::socket_peercred(socket)?;
    Ok(Peer {
        user: found.uid,
        pid: found.pid,
    })
}

/// Which process connected a Unix socket.
#[cfg(target_os = "macos")]
pub fn peer(socket: impl AsFd) -> io::Result<Peer> {
    use nix::sys::socket::getsockopt;
    use nix::sys::socket::sockopt::{LocalPeerCred, LocalPeerPid};

    let user = getsockopt(&socket, LocalPeerCred)?.uid();
    let pid = Pid::from_raw(getsockopt(&socket, LocalPeerPid)?);
    Ok(Peer {
        user: Uid::from_raw(user),
        pid: pid.ok_or_else(|| io::Error::other("the peer has no pid"))?,
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;

    use rustix::process::{geteuid, getpid};

    use super::*;

    #[test]
    fn the_peer_of_a_pair_is_this_process() {
        let (ours, _theirs) = UnixStream::pair().unwrap();
        let found = peer(&ours).unwrap();
        assert_eq!((found.user, found.pid), (geteuid(), getpid()));
    }
}
