//! Answers the requests of pages.
//!
//! The main type is [`Routes`]. A request names a run by a name in the list of runs, a trial by its position, and a
//! blob by its hash. Work on files runs on threads of its own, a few at a time.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use proctor_core::compare::{Comparison, RunFacts};
use proctor_core::gate::Gate;
use proctor_core::history;
use proctor_core::summary::Summary;
use proctor_record::record::{RecordError, RunReader};
use proctor_report::Report;
use proctor_report::compare::{CompareReport, json as compare_json};
use proctor_report::html;
use proctor_report::page::{TrialPage, raw_messages};
use proctor_wire::site::{Chunk, SiteError, SiteRequest, SiteResponse, chunks};
use serde_json::json;
use tokio::sync::{Mutex, OwnedSemaphorePermit, Semaphore};

use super::live::{Known, LiveRun, Shared};
use super::store::RunStore;
use super::stream;

/// How many requests read files at a time.
const WORK: usize = 2;

/// How many large texts are in memory at a time.
const LARGE: usize = 4;

/// How many runs keep their snapshots.
const KEPT: usize = 3;

/// How many events of a trial a page gets at a time.
const ITEMS: usize = 500;

/// The size of the parts in which a large text is sent.
const PART: usize = 64 * 1024;

/// What answers requests.
pub(super) struct Routes {
    store: Arc<RunStore>,
    runs: Mutex<ShownRuns>,
    shared: Arc<Shared>,
    large: Arc<Semaphore>,
}

/// The runs that are shown now.
#[derive(Default)]
struct ShownRuns {
    /// How often a run was used.
    uses: u64,
    /// Each run by its name, with the number of its latest use.
    kept: BTreeMap<String, (u64, Arc<LiveRun>)>,
}

type Answer = Result<SiteResponse, SiteError>;

impl Routes {
    pub(super) fn new(store: RunStore) -> Self {
        Self {
            store: Arc::new(store),
            runs: Mutex::default(),
            shared: Arc::new(Shared {
                work: Semaphore::new(WORK),
                revision: AtomicU64::new(0),
            }),
            large: Arc::new(Semaphore::new(LARGE)),
        }
    }

    pub(super) async fn answer(&self, request: SiteRequest) -> SiteResponse {
        let path: Vec<&str> = request.path.iter().map(String::as_str).collect();
        let answer = match path[..] {
            [] => Ok(page()),
            ["api", "runs"] => self.runs().await,
            ["api", "history"] => self.history().await,
            ["api", "runs", run, "overview"] => self.overview(run).await,
            ["api", "runs", run, "events"] => self.events(run, request.query("from")).await,
            ["api", "runs", run, "trials", row] => {
                self.trial(run, row, request.query("from")).await
            }
            ["api", "runs", run, "trials", row, "texts", sha256] => {
                self.text(run, row, sha256).await
            }
            ["api", "runs", run, "trials", row, "messages", seq] => {
                self.messages(run, row, seq).await
            }
            ["api", "runs", run, "blobs", sha256] => self.blob(run, sha256).await,
            ["api", "runs", run, "diff", base] => self.diff(run, base).await,
            _ => Err(SiteError::not_found("no such page")),
        };
        answer.unwrap_or_else(SiteResponse::Error)
    }

    async fn runs(&self) -> Answer {
        let store = self.store.clone();
        self.work(move || {
            let entries = store.entries().map_err(unreadable)?;
            let rows = history::rows(entries);
            // Rows are sorted with readable ones first.
            let newest = rows.first().map(|row| row.name.clone());
            let document = json!({
                "store": store.shown().display().to_string(),
                "named": store.start(),
                "start": store.start().map(str::to_owned).or(newest),
                "runs": rows,
            });
            Ok(document_of(&document))
        })
        .await
    }

    async fn history(&self) -> Answer {
        let store = self.store.clone();
        self.work(move || {
            let (_, history) = history::load_all(store.entries().map_err(unreadable)?);
            Ok(document_of(&history))
        })
        .await
    }

    async fn overview(&self, name: &str) -> Answer {
        let known = self.run(name).await?.current().await;
        let snapshot = known.map_err(SiteError::unreadable)?;
        Ok(SiteResponse::Json(snapshot.json()))
    }

    async fn events(&self, name: &str, from: Option<&str>) -> Answer {
        let revision = number(from.unwrap_or("0"), "from")?;
        let run = self.run(name).await?;
        let (sender, body) = chunks();
        tokio::spawn(stream::follow(run, revision, sender));
        Ok(SiteResponse::Lines(body))
    }

    async fn trial(&self, name: &str, row: &str, from: Option<&str>) -> Answer {
        let from = number(from.unwrap_or("0"), "from")?;
        let place = self.trial_place(name, row).await?;
        self.work(move || {
            let page = place.with_report(|report, case| {
                TrialPage::load(report, case, &place.file, from, ITEMS)
            })?;
            Ok(document_of(&page))
        })
        .await
    }

    /// A text that the page of a trial cuts.
    async fn text(&self, name: &str, row: &str, sha256: &str) -> Answer {
        let sha256 = digest(sha256)?.to_owned();
        let place = self.trial_place(name, row).await?;
        let permit = self.large().await;
        let text = self
            .blocking(move || {
                place.with_report(|report, case| {
                    TrialPage::whole_text(report, case, &place.file, &sha256).map_err(failed)
                })?
            })
            .await?;
        match text {
            Some(text) => Ok(file(Chunk::from(text), permit)),
            None => Err(SiteError::not_found("the trial has no text with this hash")),
        }
    }

    /// The request of a call and its response, as they were on the wire.
    async fn messages(&self, name: &str, row: &str, seq: &str) -> Answer {
        let seq = number(seq, "event")?;
        let place = self.trial_place(name, row).await?;
        self.work(move || {
            let run = RunReader::open(&place.folder).map_err(failed)?;
            let messages = raw_messages(&run, &place.file, seq).map_err(failed)?;
            Ok(document_of(&messages))
        })
        .await
    }

    async fn blob(&self, name: &str, sha256: &str) -> Answer {
        let sha256 = digest(sha256)?.to_owned();
        let folder = self.run(name).await?.folder().to_owned();
        let permit = self.large().await;
        let bytes = self
            .blocking(move || {
                let run = RunReader::open(&folder).map_err(failed)?;
                run.blobs().whole(&sha256).map_err(failed)
            })
            .await?;
        match bytes {
            Some(bytes) => Ok(file(Chunk::from(bytes), permit)),
            None => Err(SiteError::not_found("the run has no blob with this hash")),
        }
    }

    async fn diff(&self, name: &str, base: &str) -> Answer {
        // A run is never worse than itself.
        if name == base {
            return Err(SiteError::invalid("both runs are the same"));
        }
        let new = self.run(name).await?.folder().to_owned();
        let base = self.run(base).await?.folder().to_owned();
        self.work(move || {
            let new = RunReader::open(&new).map_err(failed)?;
            let suite = new.started().name.clone();
            let base = RunReader::open(&base).map_err(failed)?;
            let base = RunFacts::load(&base).map_err(failed)?;
            let new = RunFacts::load(&new).map_err(failed)?;
            let comparison = Comparison::of(&base.tally, &new.tally);
            let report = CompareReport::new(&comparison, &suite, &base, &new);
            Ok(document_of(&compare_json::value(&report)))
        })
        .await
    }

    /// The run with a name, which must be in the list of runs.
    async fn run(&self, name: &str) -> Result<Arc<LiveRun>, SiteError> {
        let (store, wanted) = (self.store.clone(), name.to_owned());
        let found = self
            .blocking(move || store.find(&wanted).map_err(unreadable))
            .await?;
        let mut runs = self.runs.lock().await;
        let ShownRuns { uses, kept } = &mut *runs;
        let Some((folder, shown)) = found else {
            kept.remove(name);
            return Err(SiteError::not_found(format!("run `{name}` not found")));
        };
        *uses += 1;
        let new = || Arc::new(LiveRun::new(folder, shown, self.shared.clone()));
        let entry = kept.entry(name.to_owned()).or_insert_with(|| (0, new()));
        entry.0 = *uses;
        let run = entry.1.clone();
        // A run that is still followed keeps its snapshot until its pages are closed.
        if kept.len() > KEPT
            && let Some(oldest) = kept.iter().min_by_key(|(_, (used, _))| *used)
        {
            let oldest = oldest.0.clone();
            kept.remove(&oldest);
        }
        Ok(run)
    }

    async fn trial_place(&self, name: &str, row: &str) -> Result<TrialPlace, SiteError> {
        let row = usize::try_from(number(row, "trial")?).unwrap_or(usize::MAX);
        let run = self.run(name).await?;
        let known: Known = match run.last_known() {
            // Its rows are those of the page, also if the run went on.
            Some(known @ Ok(_)) => known,
            Some(Err(_)) | None => run.current().await,
        };
        let snapshot = known.map_err(SiteError::unreadable)?;
        let trials = &snapshot.overview.trials;
        let Some(case) = trials.case.get(row) else {
            return Err(SiteError::not_found("the run has no such trial"));
        };
        let file = snapshot.files.get(row).cloned().flatten();
        let Some(file) = file else {
            return Err(SiteError::not_found("the trial has not begun"));
        };
        Ok(TrialPlace {
            folder: run.folder().to_owned(),
            case: *case,
            file,
        })
    }

    async fn large(&self) -> Option<OwnedSemaphorePermit> {
        self.large.clone().acquire_owned().await.ok()
    }

    async fn work(
        &self,
        work: impl FnOnce() -> Result<Chunk, SiteError> + Send + 'static,
    ) -> Answer {
        self.blocking(work).await.map(SiteResponse::Json)
    }

    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, SiteError> + Send + 'static,
    ) -> Result<T, SiteError> {
        let _permit = self.shared.work.acquire().await;
        match tokio::task::spawn_blocking(work).await {
            Ok(done) => done,
            Err(_) => Err(SiteError::unreadable(
                "reading the run failed; this is a bug in Proctor",
            )),
        }
    }
}

/// Where the record of a trial is.
struct TrialPlace {
    folder: PathBuf,
    /// The position of its case.
    case: usize,
    file: Box<str>,
}

impl TrialPlace {
    fn with_report<T>(
        &self,
        make: impl FnOnce(&Report<'_>, &proctor_record::event::PlannedCase) -> T,
    ) -> Result<T, SiteError> {
        let run = RunReader::open(&self.folder).map_err(failed)?;
        let summary = Summary::planned(&run).map_err(failed)?;
        let gate = Gate::of(&summary);
        let Some(case) = summary.cases.get(self.case) else {
            return Err(SiteError::not_found("the run has no such case"));
        };
        Ok(make(&Report::new(&run, &summary, &gate), &case.case))
    }
}

/// The page, which holds no data.
fn page() -> SiteResponse {
    let (html, policy) = html::served_page();
    SiteResponse::Page {
        html: Chunk::from(html),
        policy,
    }
}

/// A body that is sent in parts. The permit is free again when the client has it.
fn file(bytes: Chunk, permit: Option<OwnedSemaphorePermit>) -> SiteResponse {
    let (sender, body) = chunks();
    tokio::spawn(async move {
        let _permit = permit;
        for part in bytes.parts(PART) {
            if !sender.send(part).await {
                return;
            }
        }
    });
    SiteResponse::File(body)
}

fn document_of(value: &impl serde::Serialize) -> Chunk {
    // Page data holds texts and numbers, which always serialize.
    Chunk::from(serde_json::to_vec(value).unwrap_or_default())
}

fn number(text: &str, name: &str) -> Result<u64, SiteError> {
    let parsed = text.parse();
    parsed.map_err(|_| SiteError::invalid(format!("`{name}` is not a number")))
}

fn digest(text: &str) -> Result<&str, SiteError> {
    let is_hex = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    if text.len() == 64 && text.bytes().all(is_hex) {
        Ok(text)
    } else {
        Err(SiteError::invalid("not a SHA-256 hash"))
    }
}

fn failed(error: RecordError) -> SiteError {
    unreadable(error)
}

fn unreadable(error: impl std::error::Error) -> SiteError {
    SiteError::unreadable(match error.source() {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    })
}
