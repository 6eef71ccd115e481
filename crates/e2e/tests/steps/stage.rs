//! A trial that consists of nothing but steps, with a record, and a look at what is left of it.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use proctor_core::suite::step::{Action, ContentCheck, Field, ScriptSource, ScriptStep, Step};
use proctor_core::suite::template::{Template, TemplateValue};
use proctor_core::suite::{Extension, Server};
use proctor_e2e::client;
use proctor_record::event::{
    Blame, EventKind, Phase, RECORD_VERSION, RunStarted, StepEnded, TrialStarted,
};
use proctor_record::record::{RunReader, RunWriter};
use proctor_record::redact::Redactor;
use proctor_record::verdict::Verdict;
use proctor_run::steps::{StepResult, Steps, StepsOptions, step_environment};
use proctor_run::trial_folder::TrialFolder;
use proctor_wire::client::ConnectOptions;
use proctor_wire::recorder::Recorder;
use serde_json::Value;
use tempfile::TempDir;

/// Carried by everything that steps start.
const MARK: &str = "PROCTOR_STEPS_MARK";
/// The longest that anything here may take.
const LIMIT: Duration = Duration::from_mins(3);

static STAGES: AtomicU32 = AtomicU32::new(0);

/// A trial.
pub struct Stage {
    pub steps: Steps,
    pub left: Leftovers,
    folder: TempDir,
    run: RunWriter,
}

impl Stage {
    pub fn new() -> Self {
        Self::with(Vec::new(), Vec::new())
    }

    pub fn with(servers: Vec<Server>, extensions: Vec<Extension>) -> Self {
        Self::connecting(servers, extensions, |_| {})
    }

    /// With other options for connections.
    pub fn connecting(
        servers: Vec<Server>,
        extensions: Vec<Extension>,
        options: impl FnOnce(&mut ConnectOptions),
    ) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let mark = format!(
            "{}-{}",
            std::process::id(),
            STAGES.fetch_add(1, Ordering::Relaxed)
        );
        fs::create_dir(folder.path().join("task")).expect("a folder");
        let (run, recorder) = record(&folder.path().join("record"));
        let mut connect = client::options(recorder);
        let inherited = Arc::make_mut(&mut connect.inherited);
        inherited.insert(MARK.to_owned(), mark.clone());
        inherited.insert("SHELL".to_owned(), "/bin/sh".to_owned());
        for key in ["OPENAI_API_KEY", "ANTHROPIC_API_KEY", "OTHER_KEY"] {
            inherited.insert(key.to_owned(), "a key".to_owned());
        }
        connect.pass.push(MARK.to_owned());
        // These tests use its random values only.
        connect.trial = Some(TrialFolder::new("one").values().clone());
        options(&mut connect);
        let steps = Steps::new(StepsOptions {
            environment: Arc::new(step_environment(
                &connect.inherited,
                &["OTHER_KEY".to_owned()],
            )),
            connect,
            scratches: Arc::default(),
            redactor: Redactor::default(),
            servers,
            extensions,
            folder: folder.path().join("task"),
            prompt: Template::literal("count the notes"),
        });
        Self {
            steps,
            left: Leftovers(mark),
            folder,
            run,
        }
    }

    /// The folder of the task.
    pub fn folder(&self) -> PathBuf {
        self.folder.path().join("task")
    }

    pub async fn setup(&mut self, action: Action) -> StepResult {
        self.run(Phase::Setup, "setup_0", action).await
    }

    pub async fn verify(&mut self, action: Action) -> StepResult {
        self.run(Phase::Grade, "verify_0", action).await
    }

    pub async fn run(&mut self, phase: Phase, id: &str, action: Action) -> StepResult {
        self.steps.run(phase, &step(id, action)).await
    }

    /// Runs a step of the verification, and drops it once something holds.
    pub async fn drop_when(&mut self, action: Action, holds: impl Fn() -> bool) {
        let waiting = async {
            let started = Instant::now();
            while !holds() {
                assert!(started.elapsed() < LIMIT, "it never came to that");
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            // In each of these, the step reads all output that is there.
            for _ in 0..3 {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        tokio::select! {
            ended = self.verify(action) => panic!("the step ended: {ended:?}"),
            () = waiting => {}
        }
    }

    /// Whether a running trial has recorded this text.
    pub fn records(record: &Path, text: &str) -> bool {
        let files = fs::read_dir(record.join("trials"))
            .expect("trials")
            .flatten();
        let mut texts = files.map(|file| fs::read(file.path()).unwrap_or_default());
        texts.any(|bytes| String::from_utf8_lossy(&bytes).contains(text))
    }

    /// The folder of the record.
    pub fn record(&self) -> PathBuf {
        self.folder.path().join("record")
    }

    pub fn fill(&self, template: &str) -> String {
        let filled = self.steps.fill(&text(template));
        filled.unwrap_or_else(|error| format!("error: {error}"))
    }

    pub fn inline(&self, script: &str) -> Action {
        Action::Script(ScriptStep {
            source: ScriptSource::Inline(script.to_owned()),
            digest: None,
            folder: self.folder(),
            env: BTreeMap::new(),
            timeout: LIMIT,
            continue_on_error: false,
        })
    }

    /// All that was recorded.
    pub fn events(&self) -> Vec<EventKind> {
        self.run.flush();
        let run = RunReader::open(&self.record()).expect("a record");
        let trials = run.trials().expect("trials");
        let events = run.trial(&trials[0]).expect("a trial");
        events.map(|event| event.expect("an event").event).collect()
    }

    /// How the steps ended, as it was recorded.
    pub fn ends(&self) -> Vec<StepEnded> {
        let ends = self.events().into_iter().filter_map(|event| match event {
            EventKind::StepEnded(ended) => Some(ended),
            _ => None,
        });
        ends.collect()
    }

    /// Closes all, and sees to it that nothing is left.
    pub async fn close(self) {
        let started = Instant::now();
        self.steps.close().await;
        assert!(started.elapsed() < LIMIT);
        self.left.nothing().await;
    }
}

fn record(folder: &Path) -> (RunWriter, Recorder) {
    let started = RunStarted {
        record: RECORD_VERSION,
        proctor: "test".to_owned(),
        started: "2026-01-01T00:00:00Z".to_owned(),
        name: "steps".to_owned(),
        command: Vec::new(),
        context: None,
    };
    let run = RunWriter::create(folder, Redactor::default(), started).expect("a record");
    let trial = TrialStarted {
        case: "steps".to_owned(),
        agent: None,
        repeat: 1,
        attempt: 1,
    };
    let trial = run.trial(0, "steps", trial).expect("a trial");
    (run, Recorder::new(trial, Instant::now()))
}

/// What has been started and is still there.
pub struct Leftovers(String);

impl Leftovers {
    pub fn count(&self) -> usize {
        let mark = format!("{MARK}={}", self.0);
        let processes = fs::read_dir("/proc").expect("/proc").flatten();
        let marked = processes.filter(|process| {
            let environ = fs::read(process.path().join("environ")).unwrap_or_default();
            environ
                .split(|byte| *byte == 0)
                .any(|entry| entry == mark.as_bytes())
        });
        marked.count()
    }

    /// Waits until nothing is left.
    pub async fn nothing(&self) {
        let started = Instant::now();
        while self.count() > 0 {
            assert!(started.elapsed() < LIMIT, "something is left");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// Waits until something is there.
    pub async fn something(&self) {
        let started = Instant::now();
        while self.count() == 0 {
            assert!(started.elapsed() < LIMIT, "nothing was started");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}

pub fn step(id: &str, action: Action) -> Step {
    let kind = match &action {
        Action::Script(_) => "script".to_owned(),
        Action::Http(_) => "http".to_owned(),
        Action::Judge(_) => "llmJudge".to_owned(),
        Action::CallTool(call) => format!("{}.{}", call.server, call.tool),
        Action::Extension {
            extension,
            operation,
            ..
        } => format!("{extension}.{operation}"),
    };
    Step {
        id: id.to_owned(),
        kind,
        action,
    }
}

pub fn text(template: &str) -> Template {
    Template::parse(template).expect("a template")
}

pub fn value(value: &Value) -> TemplateValue {
    TemplateValue::parse(value).expect("templates")
}

/// One field that equals a value.
pub fn equals(path: &str, wanted: &Value) -> ContentCheck {
    ContentCheck {
        pattern: None,
        fields: vec![Field {
            path: path.split('.').map(str::to_owned).collect(),
            equals: Some(value(wanted)),
            kind: None,
            pattern: None,
            exists: None,
        }],
    }
}

#[track_caller]
pub fn passes(result: &StepResult) {
    assert_eq!(result.verdict, Verdict::Pass, "{result:?}");
    assert!(result.goes_on);
    assert_eq!(result.blame, None);
}

#[track_caller]
pub fn fails(result: &StepResult, blame: impl Into<Option<Blame>>, says: &str) {
    let Verdict::Fail { reason } = &result.verdict else {
        panic!("{result:?}")
    };
    assert!(reason.contains(says), "{reason}");
    assert_eq!(result.blame, blame.into());
}

#[track_caller]
pub fn cannot_tell(result: &StepResult, blame: Blame, says: &str) {
    let Verdict::Unknown { reason } = &result.verdict else {
        panic!("{result:?}")
    };
    assert!(reason.contains(says), "{reason}");
    assert_eq!(result.blame, Some(blame));
    assert!(!result.goes_on);
}
