//! Unpacks a run from an archive that may be hostile.
//!
//! The main function is [`unpack`]. It knows the files of a run by their names, and creates no other file: no
//! link, no device, no path of the archive's own choice.

use std::fs;
use std::io::{self, Read};
use std::path::{Component, Path};

use proctor_record::record::{BLOBS, INDEX, RUN, SUMMARY, TRIALS, make_folder, private};
use tar::{Archive, Entry, EntryType, PaxExtensions};

use super::limited::LimitedReader;
use super::{GRADES, PackError, PackLimits, belongs};

/// The maximum length of a name that does not fit the header of its file.
const LONG_NAME: u64 = 64 * 1024;

/// Unpacks a run into an empty folder, and returns the name of its folder in the pack, if it has one. On an
/// error, the folder holds a part of the run, which is useless.
pub fn unpack(
    input: impl Read,
    folder: &Path,
    limits: PackLimits,
) -> Result<Option<String>, PackError> {
    for part in [TRIALS, BLOBS, GRADES] {
        make_folder(&folder.join(part))?;
    }
    let mut archive = Archive::new(LimitedReader::new(input, limits));
    let mut files = ArchiveFiles {
        folder,
        limits,
        prefix: None,
        long_name: None,
        count: 0,
    };
    let unpacked = files.unpack(&mut archive);
    let mut rest = archive.into_inner();
    // The checksum is at the end, behind everything that an archive needs.
    let unpacked = unpacked.and_then(|()| {
        let drained = io::copy(&mut rest, &mut io::sink());
        drained.map(drop).map_err(PackError::Read)
    });
    if rest.is_exceeded {
        let PackLimits { bytes, ratio, .. } = limits;
        return Err(PackError::TooLarge { bytes, ratio });
    }
    unpacked?;
    if !folder.join(RUN).is_file() {
        return Err(PackError::NoRun);
    }
    let prefix = files.prefix.unwrap_or_default();
    let name = prefix.rsplit('/').next().unwrap_or_default();
    Ok(Some(name.to_owned()).filter(|name| !name.is_empty()))
}

struct ArchiveFiles<'a> {
    folder: &'a Path,
    limits: PackLimits,
    /// The folder of the run in the archive, once a file has shown it.
    prefix: Option<String>,
    /// The name of the next file, if it is too long for its header.
    long_name: Option<Vec<u8>>,
    count: u64,
}

impl ArchiveFiles<'_> {
    fn unpack<R: Read>(&mut self, archive: &mut Archive<R>) -> Result<(), PackError> {
        // The library would read names of any length into memory.
        for entry in archive.entries().map_err(PackError::Read)?.raw(true) {
            let mut entry = entry.map_err(PackError::Read)?;
            self.count += 1;
            if self.count > self.limits.files {
                let files = self.limits.files;
                return Err(PackError::TooMany { files });
            }
            self.take(&mut entry)?;
        }
        Ok(())
    }

    fn take<R: Read>(&mut self, entry: &mut Entry<'_, R>) -> Result<(), PackError> {
        let kind = entry.header().entry_type();
        match kind {
            EntryType::GNULongName => {
                let mut name = bounded(entry)?;
                name.truncate(
                    name.iter()
                        .position(|byte| *byte == 0)
                        .unwrap_or(name.len()),
                );
                self.long_name = Some(name);
                return Ok(());
            }
            EntryType::XHeader => return self.extended(&bounded(entry)?),
            EntryType::XGlobalHeader => return Ok(()),
            _ => {}
        }
        let header = entry.header();
        let name = self.long_name.take();
        let name = name.unwrap_or_else(|| header.path_bytes().into_owned());
        let path = String::from_utf8_lossy(&name).into_owned();
        let refused = |reason| PackError::Entry {
            path: path.clone(),
            reason,
        };
        let Some(parts) = parts(&path) else {
            return Err(refused("leads outside the run's folder"));
        };
        match kind {
            EntryType::Directory => Ok(()),
            EntryType::Regular => {
                let Some((prefix, file)) = file_of_run(&parts) else {
                    // An archive of a folder may hold files that other programs left there.
                    return Ok(());
                };
                if *self.prefix.get_or_insert_with(|| prefix.clone()) != prefix {
                    return Err(refused("belongs to another run: a pack holds one run"));
                }
                self.write(entry, &file, &path)
            }
            EntryType::Link | EntryType::Symlink => Err(refused("is a link")),
            EntryType::Block | EntryType::Char | EntryType::Fifo => Err(refused("is a device")),
            _ => Err(refused("is not a plain file")),
        }
    }

    /// Takes the name of the next file from an extended header.
    fn extended(&mut self, content: &[u8]) -> Result<(), PackError> {
        for extension in PaxExtensions::new(content) {
            let extension = extension.map_err(PackError::Read)?;
            match extension.key_bytes() {
                b"path" => self.long_name = Some(extension.value_bytes().to_owned()),
                b"size" => {
                    return Err(PackError::Entry {
                        path: "the next file".to_owned(),
                        reason: "has its length in an extended header, which only files over 8 GiB need",
                    });
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn write(&self, entry: &mut impl Read, file: &str, path: &str) -> Result<(), PackError> {
        let failed = |source| PackError::Unpack {
            path: path.to_owned(),
            source,
        };
        let opened = private()
            .write(true)
            .create_new(true)
            .open(self.folder.join(file));
        let mut out = match opened {
            Ok(out) => out,
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                return Err(PackError::Entry {
                    path: path.to_owned(),
                    reason: "is in the pack twice",
                });
            }
            Err(error) => return Err(failed(error)),
        };
        copy(entry, &mut out).map_err(|error| match error {
            CopyError::Read(error) => PackError::Read(error),
            CopyError::Write(error) => failed(error),
        })
    }
}

enum CopyError {
    Read(io::Error),
    Write(io::Error),
}

/// Copies, and tells a damaged archive from a full disk.
fn copy(from: &mut impl Read, to: &mut fs::File) -> Result<(), CopyError> {
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let read = match from.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(CopyError::Read(error)),
        };
        io::Write::write_all(to, &buffer[..read]).map_err(CopyError::Write)?;
    }
}

/// The content of an entry that describes another one.
fn bounded<R: Read>(entry: &mut Entry<'_, R>) -> Result<Vec<u8>, PackError> {
    let mut content = Vec::new();
    if entry.size() > LONG_NAME {
        return Err(PackError::Entry {
            path: "a file".to_owned(),
            reason: "has a name or attributes of over 64 KiB",
        });
    }
    entry.read_to_end(&mut content).map_err(PackError::Read)?;
    Ok(content)
}

/// The parts of a path that stays below its folder.
fn parts(path: &str) -> Option<Vec<&str>> {
    let mut parts = Vec::new();
    for component in Path::new(path).components() {
        match component {
            Component::Normal(part) => parts.push(part.to_str()?),
            Component::CurDir => {}
            Component::ParentDir | Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    (!path.contains('\0')).then_some(parts)
}

/// The folder of a run in an archive, and the file's place in the run; `None` if no run has such a file.
fn file_of_run(parts: &[&str]) -> Option<(String, String)> {
    let (prefix, file) = match parts {
        [prefix @ .., RUN | INDEX | SUMMARY] => (prefix, parts[parts.len() - 1].to_owned()),
        [prefix @ .., part, name] if belongs(part, name) => (prefix, format!("{part}/{name}")),
        _ => return None,
    };
    Some((prefix.join("/"), file))
}
