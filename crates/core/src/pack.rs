//! A run in one file: a tar archive, compressed with gzip.
//!
//! Main functions: [`write()`] and [`unpack`]. The bytes of a pack depend only on the run: packing the same
//! run twice gives the same file. An archive may come from anywhere, so `unpack` writes only the files that a
//! run consists of, and refuses everything that could lead outside its folder or fill the disk.

mod limited;
#[cfg(test)]
mod tests;
mod unpack;

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::Path;

use flate2::{Compression, GzBuilder};
use jiff::Timestamp;
use tar::{Builder, Header};

use proctor_record::index;
use proctor_record::record::{
    BLOBS, ENDED, INDEX, PART, RUN, RecordError, RunReader, TRIALS, lock,
};

pub use self::unpack::unpack;

/// The folder with the results of later gradings.
const GRADES: &str = "grades";

/// How far a pack may expand.
#[derive(Debug, Clone, Copy)]
pub struct PackLimits {
    /// The maximum number of files.
    pub files: u64,
    /// The bytes that any pack may expand to.
    pub bytes: u64,
    /// Above that, how many times longer than the pack its content may be.
    pub ratio: u64,
}

impl Default for PackLimits {
    fn default() -> Self {
        Self {
            files: 10_000_000,
            bytes: 256 * 1024 * 1024,
            // Records shrink 20 times, a record of equal trials up to 100 times, zeros 1,000 times.
            ratio: 250,
        }
    }
}

/// Why a run can't be packed or unpacked.
#[derive(Debug, thiserror::Error)]
pub enum PackError {
    #[error(transparent)]
    Record(#[from] RecordError),
    #[error("could not write the pack")]
    Write(#[source] io::Error),
    /// The pack ends early, is damaged, or is not an archive.
    #[error("not a packed run, or damaged")]
    Read(#[source] io::Error),
    #[error("refused: `{path}` {reason}")]
    Entry { path: String, reason: &'static str },
    #[error("refused: it expands to over {bytes} bytes, {ratio} times its size")]
    TooLarge { bytes: u64, ratio: u64 },
    #[error("refused: it holds over {files} files")]
    TooMany { files: u64 },
    #[error("not a packed run: it has no `run.jsonl`")]
    NoRun,
    #[error("could not unpack `{path}`")]
    Unpack {
        path: String,
        #[source]
        source: io::Error,
    },
}

/// Packs a run: its events, trials, blobs and grades, and an index that is up to date.
///
/// Fails if another process writes the run.
pub fn write(run: &RunReader, out: &mut dyn Write) -> Result<(), PackError> {
    let index = index::rendered(run)?;
    // A folder that can't be locked can't be written either.
    let _lock = match lock(run.folder()) {
        Ok(lock) => Some(lock),
        Err(error @ RecordError::Locked { .. }) => return Err(error.into()),
        Err(_) => None,
    };
    let compressed = GzBuilder::new()
        .operating_system(UNKNOWN_SYSTEM)
        .write(out, Compression::default());
    let mut pack = Pack {
        top: top(run),
        time: seconds(&run.started().started),
        archive: Builder::new(compressed),
    };
    pack.file(run.folder(), RUN)?;
    pack.bytes(INDEX, &index)?;
    for part in [TRIALS, BLOBS, GRADES] {
        for name in names(&run.folder().join(part), part)? {
            pack.file(run.folder(), &format!("{part}/{name}"))?;
        }
    }
    let compressed = pack.archive.into_inner().map_err(PackError::Write)?;
    compressed.finish().map_err(PackError::Write)?;
    Ok(())
}

/// The gzip header's value for an unknown system: others would make the bytes depend on it.
const UNKNOWN_SYSTEM: u8 = 255;

struct Pack<W: Write> {
    /// The folder in the archive that holds the run.
    top: String,
    /// The time of all files: the start of the run.
    time: u64,
    archive: Builder<W>,
}

impl<W: Write> Pack<W> {
    fn file(&mut self, folder: &Path, name: &str) -> Result<(), PackError> {
        let path = folder.join(name);
        let opened = File::open(&path).and_then(|file| Ok((file.metadata()?.len(), file)));
        let (length, file) = opened.map_err(RecordError::io("read", &path))?;
        // A shorter file would damage the archive, a longer one would not fit its header.
        self.entry(name, length, file.take(length))
    }

    fn bytes(&mut self, name: &str, bytes: &[u8]) -> Result<(), PackError> {
        self.entry(name, bytes.len() as u64, bytes)
    }

    fn entry(&mut self, name: &str, length: u64, content: impl Read) -> Result<(), PackError> {
        let mut header = Header::new_gnu();
        header.set_size(length);
        header.set_mode(0o600);
        header.set_mtime(self.time);
        header.set_uid(0);
        header.set_gid(0);
        let path = format!("{}/{name}", self.top);
        let mut content = CountingReader { content, bytes: 0 };
        self.archive
            .append_data(&mut header, path, &mut content)
            .map_err(PackError::Write)?;
        if content.bytes == length {
            Ok(())
        } else {
            let cut = io::Error::new(io::ErrorKind::UnexpectedEof, format!("`{name}` changed"));
            Err(PackError::Write(cut))
        }
    }
}

/// Counts what is read.
struct CountingReader<R> {
    content: R,
    bytes: u64,
}

impl<R: Read> Read for CountingReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.content.read(buffer)?;
        self.bytes += read as u64;
        Ok(read)
    }
}

/// The folder in the archive: the name of the run's own folder.
fn top(run: &RunReader) -> String {
    let folder = fs::canonicalize(run.folder()).unwrap_or_else(|_| run.folder().to_owned());
    let name = folder.file_name().map(|name| name.to_string_lossy());
    match name {
        Some(name) if !name.is_empty() => name.into_owned(),
        _ => "run".to_owned(),
    }
}

/// The seconds since 1970 of a time; zero if it can't be read.
fn seconds(time: &str) -> u64 {
    let time = time.parse::<Timestamp>().map(Timestamp::as_second);
    time.ok()
        .and_then(|time| u64::try_from(time).ok())
        .unwrap_or(0)
}

/// The names of the files of a run in one of its folders, in order.
fn names(folder: &Path, part: &str) -> Result<Vec<String>, RecordError> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(RecordError::io("read", folder)(error)),
    };
    let mut names = Vec::new();
    for entry in entries {
        let entry = entry.map_err(RecordError::io("read", folder))?;
        let name = entry.file_name().to_str().map(str::to_owned);
        names.extend(name.filter(|name| belongs(part, name)));
    }
    names.sort_unstable();
    Ok(names)
}

/// Whether a file with this name in a folder of a run is part of the run.
fn belongs(part: &str, name: &str) -> bool {
    match part {
        TRIALS => name.ends_with(ENDED) || name.ends_with(PART),
        BLOBS => {
            let is_digit = |byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
            name.len() == 64 && name.bytes().all(is_digit)
        }
        GRADES => name.ends_with(ENDED),
        _ => false,
    }
}
