//! Inherited descriptors: which ones can be polled, and pipes that replace the others.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::thread::JoinHandle;

use rustix::fs::{FileType, fstat};

/// Whether a descriptor can be handed over and polled.
pub(crate) fn is_stream(descriptor: impl AsFd) -> bool {
    matches!(kind(descriptor), Some(FileType::Fifo | FileType::Socket))
}

pub(crate) fn kind(descriptor: impl AsFd) -> Option<FileType> {
    let stat = fstat(descriptor).ok()?;
    Some(FileType::from_raw_mode(stat.st_mode))
}

/// Returns the descriptor, or a pipe into which a thread copies its input.
pub(crate) fn copied_in(descriptor: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    let original = descriptor.try_clone_to_owned()?;
    if is_stream(&original) {
        return Ok(original);
    }
    let (reader, writer) = io::pipe()?;
    copy(original, writer.into())?;
    Ok(reader.into())
}

/// Returns the descriptor, or a pipe from which a thread copies to it, with that thread.
pub(crate) fn copied_out(
    descriptor: BorrowedFd<'_>,
) -> io::Result<(OwnedFd, Option<JoinHandle<()>>)> {
    let original = descriptor.try_clone_to_owned()?;
    if is_stream(&original) {
        return Ok((original, None));
    }
    let (reader, writer) = io::pipe()?;
    Ok((writer.into(), Some(copy(reader.into(), original)?)))
}

fn copy(from: OwnedFd, to: OwnedFd) -> io::Result<JoinHandle<()>> {
    std::thread::Builder::new().spawn(move || {
        // The other side sees the end; the reason is lost.
        let _ = io::copy(&mut File::from(from), &mut File::from(to));
    })
}
