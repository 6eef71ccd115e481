//! The steps of one trial, or of a run: scripts, HTTP requests, tool calls and extensions, around the agent's work.
//!
//! Its main type is [`Steps`], which lives for one trial or one run: processes that steps start run until it
//! is closed, so that a server from a setup step is available for verification. Dropping it, or the
//! future of a step, leaves no process and no file behind. It does not know the order of phases and
//! asks no judge.

#![warn(
    clippy::wildcard_enum_match_arm,
    reason = "a new variant must not pass by default"
)]

mod environment;
mod extension;
mod http;
mod note;
mod phases;
mod scoring;
mod script;
mod tool;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use proctor_core::suite::step::values::{FillError, TemplateValues};
use proctor_core::suite::step::{Action, Step};
use proctor_core::suite::template::Template;
use proctor_core::suite::{Extension, Server};
use proctor_core::transcript_file::TranscriptFile;
use proctor_record::event::{Actor, Blame, Phase};
use proctor_record::redact::Redactor;
use proctor_record::verdict::Verdict;
use tokio::task::JoinSet;

pub use self::environment::{MODEL_KEYS, step_environment};
use self::note::StepEndRecorder;
pub use self::phases::PhaseFailure;
use crate::secrets;
use proctor_contain::process::LingeringProcess;
use proctor_contain::scratch::{Scratch, ScratchPool};
use proctor_wire::client::{Client, ConnectOptions};
use proctor_wire::worker;

/// The variable that holds the path of the transcript.
const TRANSCRIPT: &str = "PROCTOR_TRANSCRIPT";

/// The default timeout of a step.
const STEP_TIMEOUT: Duration = Duration::from_mins(5);

/// Everything that the steps of a trial use.
#[derive(Clone)]
pub struct StepsOptions {
    /// How to connect to servers. All steps share its environment, recorder and guard.
    pub connect: ConnectOptions,
    /// The user's environment, without model keys ([`step_environment`]).
    pub environment: Arc<BTreeMap<String, String>>,
    /// Folders for inline scripts and transcripts.
    pub scratches: Arc<ScratchPool>,
    /// Redacts a text before it is cut. It also learns the secrets of steps.
    pub redactor: Redactor,
    pub servers: Vec<Server>,
    pub extensions: Vec<Extension>,
    pub folder: PathBuf,
    pub prompt: Template,
}

pub struct Steps {
    options: StepsOptions,
    values: TemplateValues,
    /// The folder of inline scripts, which exists while one of them may run.
    scripts: Option<Scratch>,
    written: usize,
    /// Scripts that may have left processes running.
    lingering: Vec<LingeringProcess>,
    web: Option<reqwest::Client>,
    clients: BTreeMap<String, Client>,
    extensions: BTreeMap<String, extension::RunningExtension>,
    /// What verify steps may name as evidence; `None` before the agent has ended.
    transcript: Option<BTreeSet<u64>>,
}

/// The result of a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepResult {
    /// The verdict, which is unknown if the step could not be run as written.
    pub verdict: Verdict,
    /// Whether the phase continues: the step passed, or is allowed to fail.
    pub goes_on: bool,
    /// The blame, if the step did not pass and the cause is proven.
    pub blame: Option<Blame>,
    /// The recorded part of its output.
    pub output: Option<String>,
    pub duration: Duration,
    /// The numbers of calls that it names as evidence.
    pub evidence: Vec<u64>,
    /// Its score and other texts that explain the verdict.
    pub notes: Vec<String>,
}

/// The result of an action, before its phase is considered.
#[derive(Debug)]
struct ActionOutcome {
    verdict: Verdict,
    /// `None` if the phase decides.
    blame: Option<Blame>,
    /// Whether the blame is unknown in a step that checks the agent's work.
    is_unclear: bool,
    output: Option<String>,
    outputs: BTreeMap<String, String>,
    evidence: Vec<u64>,
    notes: Vec<String>,
}

impl ActionOutcome {
    fn new(verdict: Verdict) -> Self {
        Self {
            verdict,
            blame: None,
            is_unclear: false,
            output: None,
            outputs: BTreeMap::new(),
            evidence: Vec::new(),
            notes: Vec::new(),
        }
    }

    fn unknown(reason: &dyn Display, blame: Blame) -> Self {
        Self {
            blame: Some(blame),
            ..Self::new(Verdict::unknown(reason.to_string()))
        }
    }

    fn shows(mut self, output: String) -> Self {
        self.output = Some(output);
        self
    }
}

impl Steps {
    /// Creates the steps of a new trial.
    pub fn new(mut options: StepsOptions) -> Self {
        options.connect.actor = Actor::Step;
        let mut values = TemplateValues::default();
        values.env = options.environment.clone();
        if let Some(trial) = &options.connect.trial {
            values.trial = trial.clone();
        }
        // A prompt that refers to a step is filled in after the setup.
        values.agent_prompt = values.fill(&options.prompt).ok();
        Self {
            options,
            values,
            scripts: None,
            written: 0,
            lingering: Vec::new(),
            web: None,
            clients: BTreeMap::new(),
            extensions: BTreeMap::new(),
            transcript: None,
        }
    }

    /// Writes the transcript, which verify steps find at `PROCTOR_TRANSCRIPT`.
    pub fn provide_transcript(&mut self, file: &TranscriptFile) -> io::Result<()> {
        let path = self.transcript_path()?;
        let text = worker::on_body(self.options.connect.recorder.bytes(), || {
            file.document.to_string()
        });
        std::fs::write(path, text)?;
        self.transcript = Some(file.evidence.clone());
        Ok(())
    }

    /// The path of the transcript, in a folder that only its owner can read.
    fn transcript_path(&mut self) -> io::Result<PathBuf> {
        let folder = match &self.scripts {
            Some(folder) => folder,
            None => self.scripts.insert(self.options.scratches.open()?),
        };
        Ok(folder.path().join("transcript.json"))
    }

    /// The agent's prompt, filled in after the setup.
    pub fn prompt(&mut self) -> Result<String, FillError> {
        if let Some(prompt) = &self.values.agent_prompt {
            return Ok(prompt.clone());
        }
        let prompt = self.fill(&self.options.prompt)?;
        self.values.agent_prompt = Some(prompt.clone());
        Ok(prompt)
    }

    /// Sets the value of `{agent.output}`.
    pub fn agent_answered(&mut self, output: String) {
        self.values.agent_output = Some(output);
    }

    /// Fills in a template.
    pub fn fill(&self, template: &Template) -> Result<String, FillError> {
        self.apart(|values| values.fill(template))
    }

    /// Runs `work` on the outputs of steps, without blocking other tasks if the record is large.
    fn apart<T>(&self, work: impl FnOnce(&TemplateValues) -> T) -> T {
        let bytes = self.options.connect.recorder.bytes();
        worker::on_body(bytes, || work(&self.values))
    }

    /// Adds the outputs of a step that ran elsewhere.
    pub fn add_outputs(&mut self, step: &Step, outputs: BTreeMap<String, String>) {
        self.values.add_outputs(&step.id, &step.kind, outputs);
    }

    /// Runs any step but a judge's, and records its end even if the future is dropped.
    pub async fn run(&mut self, phase: Phase, step: &Step) -> StepResult {
        self.lingering.retain_mut(|script| !script.is_over());
        self.settle().await;
        let recorder = self.options.connect.recorder.clone();
        let mut note = StepEndRecorder::start(recorder, self.options.redactor.clone(), phase, step);
        let done = self.act(phase, &step.action, &mut note).await;
        let size = done.output.as_ref().map_or(0, String::len);
        let duration = worker::on_body(size, || {
            let redactor = &self.options.redactor;
            redactor.learn(secrets::of_outputs(&done.outputs));
            note.end(&done)
        });
        self.add_outputs(step, done.outputs);
        let passed = done.verdict == Verdict::Pass;
        let may_fail = matches!(&step.action, Action::Script(script) if script.continue_on_error);
        let is_unclear = done.is_unclear && phase == Phase::Grade;
        let blame = done.blame.or((!is_unclear).then_some(blame_of(phase)));
        StepResult {
            goes_on: passed || may_fail,
            blame: blame.filter(|_| !passed),
            verdict: done.verdict,
            output: done.output,
            duration,
            evidence: done.evidence,
            notes: done.notes,
        }
    }

    /// Waits until terminated scripts are gone.
    async fn settle(&mut self) {
        while let Some(at) = self.lingering.iter().position(LingeringProcess::is_ending) {
            self.lingering.swap_remove(at).stop().await;
        }
    }

    async fn act(
        &mut self,
        phase: Phase,
        action: &Action,
        note: &mut StepEndRecorder,
    ) -> ActionOutcome {
        match action {
            Action::Script(script) => self.run_script(script, phase, note).await,
            Action::Http(http) => self.make_request(http, phase).await,
            Action::CallTool(call) => self.call_tool(call).await,
            Action::Extension {
                extension,
                operation,
                args,
            } => {
                let asked = self.apart(|values| values.fill_value(args));
                match asked {
                    Ok(args) => self.ask_extension(extension, operation, args, phase).await,
                    Err(error) => ActionOutcome::unknown(&error, Blame::Suite),
                }
            }
            Action::Judge(_) => {
                ActionOutcome::unknown(&"judge steps run outside of the other steps", Blame::Judge)
            }
        }
    }

    /// Ends everything that steps have started, and waits for it.
    pub async fn close(self) {
        let mut ending = JoinSet::new();
        for script in self.lingering {
            ending.spawn(script.stop());
        }
        for client in self.clients.into_values() {
            ending.spawn(client.close());
        }
        for extension in self.extensions.into_values() {
            ending.spawn(extension.close());
        }
        while ending.join_next().await.is_some() {}
        if let Some(scripts) = self.scripts {
            self.options.scratches.close(scripts);
        }
    }
}

/// The suite is to blame for setup and cleanup steps; the agent for verify steps.
fn blame_of(phase: Phase) -> Blame {
    match phase {
        Phase::Grade => Blame::Agent,
        Phase::Setup | Phase::Serve | Phase::Drive | Phase::Cleanup => Blame::Suite,
    }
}
