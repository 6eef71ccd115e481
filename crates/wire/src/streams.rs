//! Descriptors that others gave us: which of them can be waited for, and pipes in place of those that can't.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::thread::JoinHandle;

use rustix::fs::{FileType, fstat};

/// Whether a descriptor can be handed to others and waited for.
pub(crate) fn is_stream(descriptor: impl AsFd) -> bool {
    matches!(kind(descriptor), Some(FileType::Fifo | FileType::Socket))
}

pub(crate) fn kind(descriptor: impl AsFd) -> Option<FileType> {
    let stat = fstat(descriptor).ok()?;
    Some(FileType::from_raw_mode(stat.st_mode))
}

/// The descriptor, or a pipe into which a thread copies what comes from it.
pub(crate) fn copied_in(descriptor: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    let original = descriptor.try_clone_to_owned()?;
    if is_stream(&original) {
        return Ok(original);
    }
    let (reader, writer) = io::pipe()?;
    copy(original, writer.into())?;
    Ok(reader.into())
}

/// The descriptor, or a pipe from which a thread copies what comes to it; and when that has ended.
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
        // Whoever is at the other end sees that it ended; why is known to nobody.
        let _ = io::copy(&mut File::from(from), &mut File::from(to));
    })
}
