//! Passes descriptors from one process to another through a Unix socket.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, SendAncillaryBuffer, SendAncillaryMessage, recvmsg,
    sendmsg,
};

use super::system::{RECEIVE, SEND, close_on_exec};

/// Sends a short message with up to three descriptors.
pub fn send(
    socket: impl AsFd,
    message: &[u8],
    descriptors: &[BorrowedFd<'_>],
) -> rustix::io::Result<()> {
    let sent = send_start(socket, &[IoSlice::new(message)], descriptors)?;
    // A short message into an empty socket is sent completely or not at all.
    if sent == message.len() {
        Ok(())
    } else {
        Err(Errno::IO)
    }
}

/// Sends as much of a message as the socket takes, with up to three descriptors. Returns the number of bytes.
pub fn send_start(
    socket: impl AsFd,
    message: &[IoSlice<'_>],
    descriptors: &[BorrowedFd<'_>],
) -> rustix::io::Result<usize> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(3))];
    let mut rights = SendAncillaryBuffer::new(&mut space);
    let has_any = !descriptors.is_empty();
    if has_any && !rights.push(SendAncillaryMessage::ScmRights(descriptors)) {
        return Err(Errno::NOBUFS);
    }
    sendmsg(socket, message, &mut rights, SEND)
}

/// Receives a message without waiting: the number of bytes, and up to four descriptors, which
/// programs started later don't inherit.
pub fn receive(socket: impl AsFd, message: &mut [u8]) -> io::Result<(usize, Vec<OwnedFd>)> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(4))];
    let mut rights = RecvAncillaryBuffer::new(&mut space);
    let received = recvmsg(
        socket,
        &mut [IoSliceMut::new(message)],
        &mut rights,
        RECEIVE,
    )?;
    let descriptors = rights.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(descriptors) => Some(descriptors),
        _ => None,
    });
    let descriptors: Vec<OwnedFd> = descriptors.flatten().collect();
    for descriptor in &descriptors {
        close_on_exec(descriptor)?;
    }
    Ok((received.bytes, descriptors))
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::os::unix::net::UnixStream;

    use rustix::io::{FdFlags, fcntl_getfd};

    use super::*;

    #[test]
    fn descriptors_arrive_open_and_are_not_inherited() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let mut head = [0; 4];
        let nothing = receive(&theirs, &mut head).unwrap_err();
        assert_eq!(nothing.kind(), io::ErrorKind::WouldBlock);

        let (reader, mut writer) = std::io::pipe().unwrap();
        send(&ours, b"head", &[reader.as_fd(), writer.as_fd()]).unwrap();
        let (read, passed) = receive(&theirs, &mut head).unwrap();
        assert_eq!((read, &head), (4, b"head"));
        let [reader, _writer] = <[OwnedFd; 2]>::try_from(passed).unwrap();
        assert!(fcntl_getfd(&reader).unwrap().contains(FdFlags::CLOEXEC));
        writer.write_all(b"x").unwrap();
        let mut byte = [0];
        std::fs::File::from(reader).read_exact(&mut byte).unwrap();
        assert_eq!(&byte, b"x");
    }

    #[test]
    fn a_lost_peer_is_an_error_and_not_a_signal() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        drop(theirs);
        let (reader, writer) = std::io::pipe().unwrap();
        let sent = send(&ours, b"head", &[reader.as_fd(), writer.as_fd()]);
        assert_eq!(sent, Err(Errno::PIPE));
    }
}
