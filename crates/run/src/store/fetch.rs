//! Gets shards from a store: the own one before it starts, and all of them to merge or show a run.
//!
//! Ended trials never change, so a file that is here with the right length is not fetched again, unless it was removed
//! and written again meanwhile. Names come from the
//! store, so only those that a run can have are written.

use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use data_encoding::HEXLOWER;
use object_store::ObjectMeta;
use object_store::path::Path as ObjectPath;
use proctor_record::record::blobs_of;
use sha2::{Digest, Sha256};
use tokio::task::JoinSet;

use super::{RunStore, StoreError, is_trial_file};

/// How many files are fetched at once.
const AT_ONCE: usize = 16;

/// A file to fetch.
struct WantedFile {
    object: ObjectPath,
    to: PathBuf,
    /// The hash that it must have, if it is a blob.
    sha256: Option<String>,
}

impl RunStore {
    /// The start and plan of a shard, as the first worker uploaded them; `None` if there is none.
    pub async fn begun(&self, shard: u32) -> Result<Option<Vec<u8>>, StoreError> {
        self.find(&self.shard_path(shard, &["run.jsonl"])).await
    }

    /// Gets what earlier workers uploaded of a shard that has `begun` into a folder, in place of what it holds of that
    /// shard. Returns the names of their trial files. The caller makes sure that the folder holds no other run, and
    /// that no other process writes to it.
    pub async fn restore(
        &self,
        shard: u32,
        begun: &[u8],
        folder: &Path,
    ) -> Result<BTreeSet<String>, StoreError> {
        let run = folder.join("run.jsonl");
        let own = fs::read(&run).unwrap_or_default();
        // First, so that an interrupted restore can be repeated. The folder of an earlier worker on this machine may hold
        // more than it could upload.
        if !own.starts_with(begun) {
            write(&run, begun)?;
        }
        let path = self.shard_path(shard, &[]);
        let mut files = self.fetch_shard(&path, folder, true).await?;
        let name = |file: &PathBuf| Some(file.file_name()?.to_str()?.to_owned());
        let names = files.iter().filter_map(name).collect();
        files.push(run);
        let mut wanted = Vec::new();
        for file in files {
            for name in blobs_of(&file)? {
                wanted.push(self.wanted_blob(&name, &folder.join("blobs"))?);
            }
        }
        self.fetch_all(wanted).await?;
        Ok(names)
    }

    /// Gets all shards of the run into a folder, and returns the folder of each.
    pub async fn fetch(&self, into: &Path) -> Result<Vec<PathBuf>, StoreError> {
        let blobs = into.join("blobs");
        make(&blobs)?;
        let listed = self.list(&self.path(&["blobs"])).await?;
        let mut wanted = Vec::new();
        for object in listed.objects {
            let name = object.location.filename().unwrap_or_default().to_owned();
            wanted.push((self.wanted_blob(&name, &blobs)?, object));
        }
        self.fetch_missing(wanted).await?;
        let mut folders = Vec::new();
        for prefix in self.list(&self.path(&["shards"])).await?.common_prefixes {
            let number = prefix.filename().unwrap_or_default();
            if number.is_empty() || !number.bytes().all(|byte| byte.is_ascii_digit()) {
                return Err(foreign(&prefix));
            }
            let folder = into.join("shards").join(number);
            make(&folder)?;
            share_blobs(&folder, &blobs)?;
            let Some(begun) = self.find(&prefix.clone().join("run.jsonl")).await? else {
                continue;
            };
            if !is_of_run(&folder, &begun) {
                clear(&folder.join("trials"), |_| false)?;
            }
            write(&folder.join("run.jsonl"), &begun)?;
            self.fetch_shard(&prefix, &folder, false).await?;
            folders.extend(self.fetch_ends(&prefix, &folder).await?);
            folders.push(folder);
        }
        // Another program may have removed shards and ends of workers from the store.
        clear(&into.join("shards"), |entry| folders.contains(entry))?;
        if folders.is_empty() {
            return Err(StoreError::Empty {
                url: self.url.clone(),
            });
        }
        Ok(folders)
    }

    /// Gets the trials and the index of a shard, and returns the files of its trials. `replaces` fetches files that are
    /// here, too; otherwise files that are not in the store are removed.
    async fn fetch_shard(
        &self,
        shard: &ObjectPath,
        folder: &Path,
        replaces: bool,
    ) -> Result<Vec<PathBuf>, StoreError> {
        let trials = folder.join("trials");
        make(&trials)?;
        let mut wanted = Vec::new();
        let mut files = Vec::new();
        for object in self.list(&shard.clone().join("trials")).await?.objects {
            let name = object.location.filename().unwrap_or_default().to_owned();
            if !is_trial_file(&name) {
                return Err(foreign(&object.location));
            }
            files.push(trials.join(&name));
            let file = WantedFile {
                object: object.location.clone(),
                to: trials.join(&name),
                sha256: None,
            };
            wanted.push((file, object));
        }
        if replaces {
            self.fetch_all(wanted.into_iter().map(|(file, _)| file).collect())
                .await?;
        } else {
            clear(&trials, |entry| files.contains(entry))?;
            self.fetch_missing(wanted).await?;
        }
        if let Some(index) = self.find(&shard.clone().join("index.jsonl")).await? {
            write(&folder.join("index.jsonl"), &index)?;
        }
        Ok(files)
    }

    /// Gets the ends of other workers on a shard, each as a shard without trials.
    async fn fetch_ends(
        &self,
        shard: &ObjectPath,
        folder: &Path,
    ) -> Result<Vec<PathBuf>, StoreError> {
        let mut folders = Vec::new();
        let listed = self.list(&shard.clone().join("ends")).await?;
        for (number, object) in listed.objects.into_iter().enumerate() {
            let mut name = folder.as_os_str().to_owned();
            name.push(format!("-{}", number + 2));
            let beside = PathBuf::from(name);
            make(&beside)?;
            write(
                &beside.join("run.jsonl"),
                &self.get(&object.location).await?,
            )?;
            folders.push(beside);
        }
        Ok(folders)
    }

    fn wanted_blob(&self, name: &str, blobs: &Path) -> Result<WantedFile, StoreError> {
        let object = self.path(&["blobs", name]);
        let is_digest = name.len() == 64 && name.bytes().all(|byte| byte.is_ascii_hexdigit());
        if !is_digest {
            return Err(foreign(&object));
        }
        Ok(WantedFile {
            object,
            to: blobs.join(name),
            sha256: Some(name.to_owned()),
        })
    }

    /// Fetches the files that are not here with this length, or that are older here than in the store.
    async fn fetch_missing(&self, wanted: Vec<(WantedFile, ObjectMeta)>) -> Result<(), StoreError> {
        let missing = wanted
            .into_iter()
            .filter(|(file, object)| !is_here(&file.to, object));
        self.fetch_all(missing.map(|(file, _)| file).collect())
            .await
    }

    async fn fetch_all(&self, wanted: Vec<WantedFile>) -> Result<(), StoreError> {
        let mut running = JoinSet::new();
        let mut wanted = wanted.into_iter();
        loop {
            while running.len() < AT_ONCE
                && let Some(file) = wanted.next()
            {
                let store = self.clone();
                running.spawn(async move { store.fetch_file(&file).await });
            }
            match running.join_next().await {
                None => return Ok(()),
                Some(Ok(done)) => done?,
                Some(Err(panic)) => {
                    return Err(StoreError::Thread(std::io::Error::other(panic.to_string())));
                }
            }
        }
    }

    async fn fetch_file(&self, file: &WantedFile) -> Result<(), StoreError> {
        if file.sha256.is_some() && file.to.exists() {
            return Ok(());
        }
        let bytes = self.get(&file.object).await?;
        if let Some(sha256) = &file.sha256
            && HEXLOWER.encode(&Sha256::digest(&bytes)) != *sha256
        {
            return Err(StoreError::Damaged {
                path: file.object.to_string(),
                reason: "its content does not match its name".to_owned(),
            });
        }
        if let Some(folder) = file.to.parent() {
            make(folder)?;
        }
        write(&file.to, &bytes)
    }
}

/// Whether a folder in the cache holds this run, and not one that someone removed from the store before its id was used
/// again.
fn is_of_run(folder: &Path, begun: &[u8]) -> bool {
    let first = |content: &[u8]| {
        content
            .split(|byte| *byte == b'\n')
            .next()
            .map(<[u8]>::to_vec)
    };
    let known = fs::read(folder.join("run.jsonl"));
    known.is_ok_and(|known| first(&known) == first(begun))
}

/// Whether a file was fetched since the object was written. A trial that was removed from the store may have been run
/// again, with a file of the same length.
fn is_here(file: &Path, object: &ObjectMeta) -> bool {
    let written = SystemTime::from(object.last_modified);
    fs::metadata(file).is_ok_and(|here| {
        here.len() == object.size && here.modified().is_ok_and(|fetched| fetched >= written)
    })
}

/// Removes the entries of a folder that are not to be kept.
fn clear(folder: &Path, keeps: impl Fn(&PathBuf) -> bool) -> Result<(), StoreError> {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if keeps(&path) {
            continue;
        }
        let removed = if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            fs::remove_dir_all(&path)
        } else {
            fs::remove_file(&path)
        };
        removed.map_err(StoreError::local(&path))?;
    }
    Ok(())
}

fn foreign(path: &ObjectPath) -> StoreError {
    StoreError::Foreign {
        path: path.to_string(),
    }
}

fn make(folder: &Path) -> Result<(), StoreError> {
    fs::create_dir_all(folder).map_err(StoreError::local(folder))
}

/// Lets a shard read the blobs of its run.
fn share_blobs(folder: &Path, blobs: &Path) -> Result<(), StoreError> {
    let link = folder.join("blobs");
    let blobs = std::path::absolute(blobs).map_err(StoreError::local(blobs))?;
    match std::os::unix::fs::symlink(blobs, &link) {
        Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => {
            Err(StoreError::local(&link)(error))
        }
        _ => Ok(()),
    }
}

/// Writes a file whole or not at all.
fn write(path: &Path, bytes: &[u8]) -> Result<(), StoreError> {
    let fail = StoreError::local(path);
    let folder = path.parent().unwrap_or(Path::new("."));
    let written = tempfile::NamedTempFile::new_in(folder).and_then(|mut file| {
        file.write_all(bytes)?;
        file.persist(path).map_err(|error| error.error)
    });
    written.map(drop).map_err(fail)
}
