//! Reads the program out of the ZIP archive of an extension package.
//!
//! Its main function is [`program`]. The archive has one file with one known name, so no name in it ever becomes a
//! path. Sizes are limits as well as claims: what a file really expands to is compared with both.

use std::io::Read;

use flate2::Crc;
use flate2::read::DeflateDecoder;

/// The maximum size of a program.
const MAX_PROGRAM: u64 = 512 << 20;
/// How many times longer than the archive a program may be, above [`FREE`]. Programs shrink about three times.
const MAX_RATIO: u64 = 50;
const FREE: u64 = 8 << 20;

/// The length of the record at the end of an archive, without its comment.
const END: usize = 22;
/// The lengths of the fixed parts of the other records.
const CENTRAL: usize = 46;
const LOCAL: usize = 30;

/// Why an archive is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ArchiveError {
    #[error("it is not a ZIP archive, or incomplete")]
    Malformed,
    #[error("it must contain the file `{expected}` and no other, and contains {found}")]
    Content { expected: String, found: String },
    #[error("`{0}` is encrypted, a link, or compressed in an unknown way")]
    Unsupported(String),
    #[error("`{0}` expands too far")]
    TooLarge(String),
    #[error("`{0}` is damaged: its checksum does not match")]
    Damaged(String),
}

/// A program, and its mode.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct PackedProgram {
    pub(super) content: Vec<u8>,
    pub(super) mode: u32,
}

/// The bytes of an archive, which may end anywhere.
struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    fn part(&self, at: usize, length: usize) -> Result<&'a [u8], ArchiveError> {
        let end = at.checked_add(length).ok_or(ArchiveError::Malformed)?;
        self.0.get(at..end).ok_or(ArchiveError::Malformed)
    }

    fn u16(&self, at: usize) -> Result<u16, ArchiveError> {
        let bytes = self.part(at, 2)?.try_into();
        bytes
            .map(u16::from_le_bytes)
            .map_err(|_| ArchiveError::Malformed)
    }

    fn u32(&self, at: usize) -> Result<u32, ArchiveError> {
        let bytes = self.part(at, 4)?.try_into();
        bytes
            .map(u32::from_le_bytes)
            .map_err(|_| ArchiveError::Malformed)
    }

    fn offset(&self, at: usize) -> Result<usize, ArchiveError> {
        usize::try_from(self.u32(at)?).map_err(|_| ArchiveError::Malformed)
    }

    fn has(&self, at: usize, signature: [u8; 4]) -> bool {
        self.part(at, 4) == Ok(&signature[..])
    }
}

/// The only file of an archive, which must have this name.
pub(super) fn program(archive: &[u8], name: &str) -> Result<PackedProgram, ArchiveError> {
    let bytes = Bytes(archive);
    let end = end_of_directory(&bytes).ok_or(ArchiveError::Malformed)?;
    let content = |found: String| ArchiveError::Content {
        expected: name.to_owned(),
        found,
    };
    let count = bytes.u16(end + 10)?;
    if count != 1 {
        return Err(content(format!("{count} files")));
    }
    let entry = bytes.offset(end + 16)?;
    if !bytes.has(entry, *b"PK\x01\x02") {
        return Err(ArchiveError::Malformed);
    }
    let name_length = usize::from(bytes.u16(entry + 28)?);
    let found = bytes.part(entry + CENTRAL, name_length)?;
    if found != name.as_bytes() {
        let found = String::from_utf8_lossy(found);
        let found = proctor_core::printable::printable(&found);
        return Err(content(format!("`{found}`")));
    }
    read(&bytes, entry, name)
}

/// The position of the record at the end of an archive. A comment may follow it.
fn end_of_directory(bytes: &Bytes<'_>) -> Option<usize> {
    let last = bytes.0.len().checked_sub(END)?;
    let first = last.saturating_sub(usize::from(u16::MAX));
    let is_end = |at: &usize| {
        let comment = bytes.u16(*at + 20).map(usize::from);
        bytes.has(*at, *b"PK\x05\x06") && comment == Ok(last - at)
    };
    (first..=last).rev().find(is_end)
}

/// Reads the file that the entry of the directory at `entry` describes.
fn read(bytes: &Bytes<'_>, entry: usize, name: &str) -> Result<PackedProgram, ArchiveError> {
    let unsupported = || ArchiveError::Unsupported(name.to_owned());
    let (system, flags, method) = (
        bytes.u16(entry + 4)? >> 8,
        bytes.u16(entry + 8)?,
        bytes.u16(entry + 10)?,
    );
    let (packed, length) = (bytes.u32(entry + 20)?, bytes.u32(entry + 24)?);
    let mode = bytes.u32(entry + 38)? >> 16;
    let is_unix = system == 3;
    let is_file = !is_unix || mode & 0o170_000 == 0o100_000 || mode & 0o170_000 == 0;
    // The largest value says that the size stands elsewhere, for files that are too large anyway.
    if flags & 1 != 0 || !is_file || packed == u32::MAX || length == u32::MAX {
        return Err(unsupported());
    }
    let most = MAX_PROGRAM.min(FREE + MAX_RATIO * bytes.0.len() as u64);
    if u64::from(length) > most {
        return Err(ArchiveError::TooLarge(name.to_owned()));
    }
    let start = bytes.offset(entry + 42)?;
    if !bytes.has(start, *b"PK\x03\x04") {
        return Err(ArchiveError::Malformed);
    }
    let skipped = usize::from(bytes.u16(start + 26)?) + usize::from(bytes.u16(start + 28)?);
    let packed = usize::try_from(packed).map_err(|_| ArchiveError::Malformed)?;
    let packed = bytes.part(start + LOCAL + skipped, packed)?;
    let mut content = Vec::new();
    match method {
        0 => content.extend(packed),
        8 => {
            DeflateDecoder::new(packed)
                .take(u64::from(length) + 1)
                .read_to_end(&mut content)
                .map_err(|_| ArchiveError::Damaged(name.to_owned()))?;
        }
        _ => return Err(unsupported()),
    }
    let mut checksum = Crc::new();
    checksum.update(&content);
    if content.len() as u64 != u64::from(length) || checksum.sum() != bytes.u32(entry + 16)? {
        return Err(ArchiveError::Damaged(name.to_owned()));
    }
    Ok(PackedProgram {
        content,
        mode: if is_unix { mode & 0o777 } else { 0o755 },
    })
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::DeflateEncoder;

    use super::*;

    fn length(bytes: &[u8]) -> u32 {
        u32::try_from(bytes.len()).unwrap()
    }

    fn short(bytes: &[u8]) -> u16 {
        u16::try_from(bytes.len()).unwrap()
    }

    /// An archive with files as Go writes them.
    fn zip(files: &[(&str, u32, &[u8])]) -> Vec<u8> {
        let (mut out, mut directory) = (Vec::new(), Vec::new());
        for (name, mode, content) in files {
            let mut encoder = DeflateEncoder::new(Vec::new(), Compression::default());
            encoder.write_all(content).unwrap();
            let packed = encoder.finish().unwrap();
            let mut checksum = Crc::new();
            checksum.update(content);
            let mut fixed = Vec::new();
            for word in [0_u16, 8, 0, 0] {
                fixed.extend(word.to_le_bytes());
            }
            for word in [checksum.sum(), length(&packed), length(content)] {
                fixed.extend(word.to_le_bytes());
            }
            fixed.extend(short(name.as_bytes()).to_le_bytes());
            let start = length(&out);
            out.extend(b"PK\x03\x04\x14\0");
            out.extend(&fixed);
            out.extend([0; 2]);
            out.extend(name.bytes());
            out.extend(&packed);
            directory.extend(b"PK\x01\x02\x14\x03\x14\0");
            directory.extend(&fixed);
            directory.extend([0; 8]);
            directory.extend((mode << 16).to_le_bytes());
            directory.extend(start.to_le_bytes());
            directory.extend(name.bytes());
        }
        let at = length(&out);
        out.extend(&directory);
        out.extend(b"PK\x05\x06\0\0\0\0");
        out.extend(short(&vec![0; files.len()]).to_le_bytes().repeat(2));
        out.extend(length(&directory).to_le_bytes());
        out.extend(at.to_le_bytes());
        out.extend([0; 2]);
        out
    }

    #[test]
    fn the_program_keeps_its_content_and_mode() {
        let archive = zip(&[("steps", 0o100_750, b"#!/bin/sh\n")]);
        let expected = PackedProgram {
            content: b"#!/bin/sh\n".to_vec(),
            mode: 0o750,
        };
        assert_eq!(program(&archive, "steps"), Ok(expected));
    }

    #[test]
    fn other_content_is_refused() {
        let check = |files: &[(&str, u32, &[u8])], expected: &str| {
            let found = program(&zip(files), "steps").unwrap_err().to_string();
            assert!(found.contains(expected), "{found}");
        };
        check(&[], "contains 0 files");
        check(
            &[("steps", 0o755, b"a"), ("x", 0o755, b"b")],
            "contains 2 files",
        );
        check(&[("../steps", 0o755, b"a")], "contains `../steps`");
        check(&[("/bin/steps", 0o755, b"a")], "contains `/bin/steps`");
        check(&[("steps", 0o120_777, b"/etc/passwd")], "a link");
        check(&[("steps", 0o755, &vec![0; 64 << 20])], "expands too far");
    }

    #[test]
    fn no_cut_or_changed_archive_gives_a_program() {
        let content: Vec<u8> = (0..100_u32).flat_map(|n| (n * n).to_le_bytes()).collect();
        let archive = zip(&[("steps", 0o755, &content)]);
        for length in 0..archive.len() {
            assert!(program(&archive[..length], "steps").is_err(), "{length}");
        }
        for at in 0..archive.len() {
            let mut changed = archive.clone();
            changed[at] ^= 0x55;
            if let Ok(found) = program(&changed, "steps") {
                assert_eq!(found.content, content, "byte {at}");
            }
        }
    }
}
