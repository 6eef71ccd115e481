//! Reserves a port for a server that can't choose its own.
//!
//! Its main type is [`ReservedPort`]. The port stays bound until it is dropped, so that no other process gets it
//! before the server starts.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::OwnedFd;

use rustix::io::{FdFlags, fcntl_setfd};
use rustix::net::sockopt::set_socket_reuseaddr;
use rustix::net::{AddressFamily, SocketType, bind, getsockname, socket};

/// A port of the loopback address that the system gives to no other program.
///
/// Its socket does not listen. A connection is refused until a server listens on the port, which a server that sets
/// `SO_REUSEADDR` can do; Node.js, Python's servers and Rust's listeners set it.
pub struct ReservedPort {
    number: u16,
    _socket: OwnedFd,
}

impl ReservedPort {
    #[expect(clippy::new_without_default, reason = "each one is another port")]
    pub fn new() -> Self {
        let socket =
            socket(AddressFamily::INET, SocketType::STREAM, None).expect("a socket can be made");
        fcntl_setfd(&socket, FdFlags::CLOEXEC).expect("the socket stays here");
        set_socket_reuseaddr(&socket, true).expect("the port can be shared");
        let any = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0);
        bind(&socket, &any).expect("loopback has a free port");
        let bound = getsockname(&socket).expect("the socket has an address");
        let bound = SocketAddrV4::try_from(bound).expect("an address of IPv4");
        Self {
            number: bound.port(),
            _socket: socket,
        }
    }

    pub fn number(&self) -> u16 {
        self.number
    }
}
