//! Uploads a shard while its trials run.
//!
//! The main type is [`Uploader`]. It has a thread of its own, so that uploads go on while the run ends. It uploads a
//! trial's blobs, then its file; the run's own events and the index follow at the end.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use proctor_record::event::{EventKind, Outcome};
use proctor_record::record::{blobs_of, last_event};
use sha2::{Digest, Sha256};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::JoinSet;

use super::{Created, RunStore, StoreError};

/// How many trials are uploaded at once.
const AT_ONCE: usize = 8;

/// A trial that another worker on the same shard uploaded first. Its copy counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conflict {
    /// The file of the trial.
    pub file: String,
    /// Whether the copy that counts has a verdict.
    pub has_verdict: bool,
}

/// What became of the uploads of a shard.
#[derive(Debug, Default)]
pub struct UploadReport {
    /// The number of uploaded trials.
    pub uploaded: usize,
    /// The files that are not in the store, with the reason.
    pub failed: Vec<(String, StoreError)>,
    pub conflicts: Vec<Conflict>,
}

/// Uploads the files of a shard beside its trials.
#[derive(Debug)]
pub struct Uploader {
    files: UnboundedSender<String>,
    thread: JoinHandle<UploadReport>,
    work: UploadWork,
}

/// What all uploads of a shard share.
#[derive(Debug, Clone)]
struct UploadWork {
    store: RunStore,
    shard: u32,
    folder: PathBuf,
    /// The blobs that are in the store.
    blobs: Arc<Mutex<BTreeSet<String>>>,
}

impl Uploader {
    /// Starts the uploads of the shard in a folder.
    pub fn start(store: RunStore, shard: u32, folder: &Path) -> Result<Self, StoreError> {
        let work = UploadWork {
            store,
            shard,
            folder: folder.to_owned(),
            blobs: Arc::default(),
        };
        let runtime = runtime()?;
        let (files, queue) = unbounded_channel();
        let own = work.clone();
        let thread = std::thread::Builder::new()
            .name("uploads".to_owned())
            .spawn(move || runtime.block_on(own.upload_all(queue)))
            .map_err(StoreError::Thread)?;
        Ok(Self {
            files,
            thread,
            work,
        })
    }

    /// Takes the names of trial files, each when its trial has ended.
    pub fn files(&self) -> UnboundedSender<String> {
        self.files.clone()
    }

    /// Waits until everything is uploaded, then uploads the run's own events and the index. Call it when the record is
    /// complete, and every sender of [`Uploader::files`] is dropped.
    pub fn finish(self) -> UploadReport {
        let Self {
            files,
            thread,
            work,
        } = self;
        drop(files);
        let mut report = thread.join().unwrap_or_else(|_| UploadReport::lost());
        let done = runtime().and_then(|runtime| runtime.block_on(work.upload_end()));
        if let Err(error) = done {
            report.failed.push(("run.jsonl".to_owned(), error));
        }
        report
    }
}

fn runtime() -> Result<tokio::runtime::Runtime, StoreError> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(StoreError::Thread)
}

/// What became of one trial.
enum TrialUpload {
    Done,
    Conflict(Conflict),
}

impl UploadWork {
    async fn upload_all(self, mut queue: UnboundedReceiver<String>) -> UploadReport {
        let mut report = UploadReport::default();
        // So that a worker on the same shard finds the plan.
        if let Err(error) = self.upload_start().await {
            report.failed.push(("run.jsonl".to_owned(), error));
        }
        let mut running = JoinSet::new();
        let mut is_open = true;
        while is_open || !running.is_empty() {
            tokio::select! {
                file = queue.recv(), if is_open && running.len() < AT_ONCE => match file {
                    Some(file) => {
                        let work = self.clone();
                        running.spawn(async move {
                            let done = work.upload_trial(&file).await;
                            (file, done)
                        });
                    }
                    None => is_open = false,
                },
                Some(done) = running.join_next() => report.take(done),
            }
        }
        report
    }

    async fn upload_trial(&self, file: &str) -> Result<TrialUpload, StoreError> {
        let path = self.folder.join("trials").join(file);
        self.upload_blobs(&path).await?;
        let bytes = std::fs::read(&path).map_err(StoreError::local(&path))?;
        let object = self.store.shard_path(self.shard, &["trials", file]);
        match self.store.create(&object, &bytes).await? {
            Created::New => Ok(TrialUpload::Done),
            Created::Exists => {
                let theirs = self.store.get(&object).await?;
                // An upload whose answer was lost is tried again.
                if theirs == bytes {
                    return Ok(TrialUpload::Done);
                }
                Ok(TrialUpload::Conflict(Conflict {
                    file: file.to_owned(),
                    has_verdict: has_verdict(&theirs),
                }))
            }
        }
    }

    async fn upload_blobs(&self, file: &Path) -> Result<(), StoreError> {
        for name in blobs_of(file)? {
            if self.known().contains(&name) {
                continue;
            }
            let path = self.folder.join("blobs").join(&name);
            let bytes = std::fs::read(&path).map_err(StoreError::local(&path))?;
            self.store
                .create(&self.store.path(&["blobs", &name]), &bytes)
                .await?;
            self.known().insert(name);
        }
        Ok(())
    }

    fn known(&self) -> std::sync::MutexGuard<'_, BTreeSet<String>> {
        self.blobs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn upload_start(&self) -> Result<(), StoreError> {
        let path = self.folder.join("run.jsonl");
        let bytes = std::fs::read(&path).map_err(StoreError::local(&path))?;
        let object = self.store.shard_path(self.shard, &["run.jsonl"]);
        self.store.create(&object, &bytes).await.map(drop)
    }

    /// Uploads the run's own events and the index. If another worker ended this shard meanwhile, its end stays, and
    /// this one is put beside it.
    async fn upload_end(&self) -> Result<(), StoreError> {
        let run = self.folder.join("run.jsonl");
        self.upload_blobs(&run).await?;
        let bytes = std::fs::read(&run).map_err(StoreError::local(&run))?;
        let object = self.store.shard_path(self.shard, &["run.jsonl"]);
        let theirs = self.store.find(&object).await?.unwrap_or_default();
        if !bytes.starts_with(&theirs) && has_end(&theirs) {
            let hash = data_encoding::HEXLOWER.encode(&Sha256::digest(&bytes));
            let name = format!("{hash}.jsonl");
            let beside = self.store.shard_path(self.shard, &["ends", &name]);
            return self.store.create(&beside, &bytes).await.map(drop);
        }
        let index = self.folder.join("index.jsonl");
        if let Ok(index) = std::fs::read(&index) {
            let object = self.store.shard_path(self.shard, &["index.jsonl"]);
            self.store.replace(&object, &index).await?;
        }
        self.store.replace(&object, &bytes).await
    }
}

impl UploadReport {
    /// The report of a thread that panicked.
    fn lost() -> Self {
        let error = std::io::Error::other("the thread that uploads panicked");
        Self {
            failed: vec![("the trials".to_owned(), StoreError::Thread(error))],
            ..Self::default()
        }
    }

    fn take(
        &mut self,
        done: Result<(String, Result<TrialUpload, StoreError>), tokio::task::JoinError>,
    ) {
        match done {
            Ok((_, Ok(TrialUpload::Done))) => self.uploaded += 1,
            Ok((_, Ok(TrialUpload::Conflict(conflict)))) => self.conflicts.push(conflict),
            Ok((file, Err(error))) => self.failed.push((file, error)),
            Err(panic) => {
                let error = std::io::Error::other(panic.to_string());
                self.failed
                    .push(("a trial".to_owned(), StoreError::Thread(error)));
            }
        }
    }
}

/// Whether the last event of a trial's file is an end with a verdict.
fn has_verdict(bytes: &[u8]) -> bool {
    match last_event(bytes).map(|event| event.event) {
        Some(EventKind::TrialEnded(ended)) => match ended.outcome {
            Outcome::Passed | Outcome::Failed | Outcome::TimedOut => true,
            Outcome::Errored | Outcome::Cancelled => false,
        },
        _ => false,
    }
}

/// Whether the last event of a run's own events is its end.
fn has_end(bytes: &[u8]) -> bool {
    last_event(bytes).is_some_and(|event| matches!(event.event, EventKind::RunEnded(_)))
}
