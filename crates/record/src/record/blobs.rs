//! Bodies that are stored as separate files, named by their SHA-256.

use std::borrow::Cow;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use data_encoding::{BASE64, HEXLOWER};
use sha2::{Digest, Sha256};

use crate::event::Body;

use super::events::open_file;
use super::log::{new_file, sync_folder};
use super::sync::{SyncTurn, in_parallel};
use super::{BLOBS, MAX_FRAME, RecordError};

/// The blobs of a run, for reading.
#[derive(Debug, Clone)]
pub struct Blobs {
    folder: PathBuf,
    /// Those that the writer of the run has in memory.
    recent: Arc<RecentBlobs>,
}

/// Blobs that all trials share, such as tool lists, as they were stored.
#[derive(Debug, Default)]
pub(super) struct RecentBlobs(Mutex<Vec<(String, Arc<[u8]>)>>);

impl RecentBlobs {
    /// The number of blobs, and the size of each, that are kept in memory.
    const MOST: usize = 16;
    const LONGEST: usize = 64 * 1024;

    fn find(&self, sha256: &str) -> Option<Arc<[u8]>> {
        let known = self.lock();
        let found = known.iter().find(|(name, _)| name == sha256);
        found.map(|(_, bytes)| bytes.clone())
    }

    /// The body of a blob that holds these bytes.
    fn holding(&self, bytes: &[u8]) -> Option<Body> {
        let known = self.lock();
        let (sha256, _) = known.iter().find(|(_, known)| **known == *bytes)?;
        Some(Body::Blob {
            sha256: sha256.clone(),
            bytes: bytes.len() as u64,
        })
    }

    fn add(&self, sha256: &str, bytes: &[u8]) {
        let mut known = self.lock();
        if bytes.len() > Self::LONGEST || known.iter().any(|(name, _)| name == sha256) {
            return;
        }
        if known.len() == Self::MOST {
            known.remove(0);
        }
        known.push((sha256.to_owned(), bytes.into()));
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<(String, Arc<[u8]>)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Blobs {
    /// The blobs of the run in a folder.
    pub fn of_run(run: &Path) -> Self {
        Self {
            folder: run.join(BLOBS),
            recent: Arc::default(),
        }
    }

    /// The bytes of a body; `None` if the record does not hold them.
    pub fn body_bytes<'a>(&self, body: &'a Body) -> Result<Option<Cow<'a, [u8]>>, RecordError> {
        Ok(Some(match body {
            Body::Text(text) => Cow::Borrowed(text.as_bytes()),
            Body::Base64(text) => match BASE64.decode(text.as_bytes()) {
                Ok(bytes) => Cow::Owned(bytes),
                // Only Proctor writes these; other content is returned unchanged.
                Err(_) => Cow::Borrowed(text.as_bytes()),
            },
            Body::Blob { sha256, bytes } => Cow::Owned(self.read(sha256, *bytes)?),
            Body::Cut { .. } => return Ok(None),
        }))
    }

    /// The bytes with a hash, if the run has them as a blob.
    pub fn whole(&self, sha256: &str) -> Result<Option<Vec<u8>>, RecordError> {
        if !is_digest(sha256) {
            return Ok(None);
        }
        match fs::metadata(self.folder.join(sha256)) {
            Ok(file) if file.len() <= MAX_FRAME as u64 => self.read(sha256, file.len()).map(Some),
            Ok(_) | Err(_) => Ok(None),
        }
    }

    /// Reads a blob and verifies its hash.
    fn read(&self, sha256: &str, length: u64) -> Result<Vec<u8>, RecordError> {
        if let Some(known) = self.recent.find(sha256)
            && known.len() as u64 == length
        {
            return Ok(known.to_vec());
        }
        let path = self.folder.join(sha256);
        let damaged = |reason: String| RecordError::DamagedBlob {
            path: path.clone(),
            reason,
        };
        // The name comes from a file, and must not lead outside the folder.
        if !is_digest(sha256) {
            return Err(damaged("its name is not a SHA-256 hash".to_owned()));
        }
        let mut bytes = Vec::new();
        open_file(&path)
            .and_then(|file| {
                // The length in the record may be wrong.
                let room = file.metadata()?.len().min(length).saturating_add(1);
                bytes.reserve_exact(usize::try_from(room).unwrap_or_default());
                file.take(length.saturating_add(1)).read_to_end(&mut bytes)
            })
            .map_err(RecordError::io("read", &path))?;
        if bytes.len() as u64 != length {
            return Err(damaged(format!("expected {length} bytes")));
        }
        if hash(&bytes) != sha256 {
            return Err(damaged("hash mismatch".to_owned()));
        }
        Ok(bytes)
    }
}

fn is_digest(text: &str) -> bool {
    let is_hex = |byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    text.len() == 64 && text.bytes().all(is_hex)
}

/// The SHA-256 of the bytes in lower-case hexadecimal.
pub(super) fn hash(bytes: &[u8]) -> String {
    HEXLOWER.encode(&Sha256::digest(bytes))
}

/// The blobs of a run, for writing.
#[derive(Debug)]
pub(super) struct BlobStore {
    folder: PathBuf,
    recent: Arc<RecentBlobs>,
    temporary: AtomicU64,
    /// Written but not yet synced.
    unsynced: Mutex<Vec<PathBuf>>,
    syncing: SyncTurn,
}

impl BlobStore {
    pub(super) fn new(folder: PathBuf) -> Self {
        Self {
            folder,
            recent: Arc::default(),
            temporary: AtomicU64::new(0),
            unsynced: Mutex::default(),
            syncing: SyncTurn::default(),
        }
    }

    /// Stores the bytes, unless they are stored already.
    pub(super) fn put(&self, bytes: &[u8]) -> Result<Body, RecordError> {
        let sha256 = hash(bytes);
        let length = bytes.len() as u64;
        let path = self.folder.join(&sha256);
        // A crash can leave a file with the right name but incomplete content.
        let is_there = fs::metadata(&path).is_ok_and(|file| file.len() == length);
        if !is_there {
            self.write(&path, bytes)?;
        }
        Ok(Body::Blob {
            sha256,
            bytes: length,
        })
    }

    /// Stores bytes that other trials store too, and keeps them in memory.
    pub(super) fn put_shared(&self, bytes: &[u8]) -> Result<Body, RecordError> {
        if let Some(stored) = self.recent.holding(bytes) {
            return Ok(stored);
        }
        let body = self.put(bytes)?;
        if let Body::Blob { sha256, .. } = &body {
            self.recent.add(sha256, bytes);
        }
        Ok(body)
    }

    /// What is stored, for reading.
    pub(super) fn reader(&self) -> Blobs {
        Blobs {
            folder: self.folder.clone(),
            recent: self.recent.clone(),
        }
    }

    fn write(&self, path: &Path, bytes: &[u8]) -> Result<(), RecordError> {
        let number = self.temporary.fetch_add(1, Ordering::Relaxed);
        let temporary = path.with_extension(format!("{number}.tmp"));
        // A killed writer may have left one.
        let _ = fs::remove_file(&temporary);
        new_file(&temporary)
            .and_then(|mut file| file.write_all(bytes))
            .map_err(RecordError::io("write", &temporary))?;
        // Under the lock, since whoever finds the file takes it for queued.
        let mut pending = self.pending();
        fs::rename(&temporary, path).map_err(RecordError::io("rename", &temporary))?;
        pending.push(path.to_owned());
        Ok(())
    }

    /// Syncs all stored blobs to the disk.
    pub(super) fn sync(&self) -> Result<(), RecordError> {
        // To its end, so that finding nothing to sync means that everything is synced. Others may store
        // more meanwhile.
        self.syncing.take(|| {
            let pending = std::mem::take(&mut *self.pending());
            if pending.is_empty() {
                return Ok(());
            }
            in_parallel(&pending, |path| {
                File::open(path)
                    .and_then(|file| file.sync_data())
                    .map_err(RecordError::io("sync", path))
            })?;
            sync_folder(&self.folder)
        })
    }

    fn pending(&self) -> std::sync::MutexGuard<'_, Vec<PathBuf>> {
        self.unsynced.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blobs_that_were_not_synced_are_never_taken_for_synced() {
        let folder = tempfile::tempdir().unwrap();
        let blobs = BlobStore::new(folder.path().to_owned());
        let Body::Blob { sha256, .. } = blobs.put(b"lost").unwrap() else {
            panic!("not a blob");
        };
        fs::remove_file(folder.path().join(sha256)).unwrap();
        let first = blobs.sync().unwrap_err();
        let second = blobs.sync().unwrap_err();
        assert_eq!(first.to_string(), second.to_string());
    }
}
