//! The state that all trials of a run share.
//!
//! Its main type is [`RunContext`]. It does not change during the run, except for the spending.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use proctor_contain::process::ProcessEnds;
use proctor_core::replay::Cassette;
use proctor_core::suite::agent::ModelRef;
use proctor_core::suite::{Suite, TrialValues};
use proctor_record::event::{Actor, Purpose, ServerSeen};
use proctor_record::record::RecordError;
use proctor_record::redact::Redactor;

use crate::agent::KnownOffers;
use crate::external::ExternalAgent;
use crate::trial_folder::KeepOption;
use proctor_contain::scratch::ScratchPool;
use proctor_models::{Meter, Model, ModelClient, Replay, RetryWait};
use proctor_wire::answers::ServerRequestReplies;
use proctor_wire::auth::Credentials;
use proctor_wire::client::{Client, ConnectOptions, Era, Timeouts};
use proctor_wire::recorder::Recorder;

/// The agent that does the tasks.
pub enum Worker {
    /// No agent, for evals that only call tools.
    NoAgent,
    /// A model in Proctor's own loop.
    Model(Arc<Model>),
    /// A program such as Claude Code, which asks its own model.
    External(Arc<ExternalAgent>),
}

impl Worker {
    /// The model of Proctor's own loop.
    pub fn model(&self) -> Option<&Arc<Model>> {
        match self {
            Self::Model(model) => Some(model),
            Self::NoAgent | Self::External(_) => None,
        }
    }

    /// The model as `provider:id`, or the agent's name if only the agent knows its model.
    pub fn model_name(&self) -> Option<String> {
        match self {
            Self::NoAgent => None,
            Self::Model(model) => Some(model.name().to_owned()),
            Self::External(external) => Some(external.asked_model()),
        }
    }
}

/// The state that all trials of a run share.
pub struct RunContext {
    pub suite: Suite,
    /// One worker per agent of the suite.
    pub agents: Vec<Worker>,
    /// The models that judge; empty if the suite has no judge.
    pub judges: Vec<Arc<Model>>,
    /// The models that answer sampling requests or play users, by their keys.
    pub others: BTreeMap<String, Arc<Model>>,
    /// The spending so far, and the budget.
    pub meter: Arc<Meter>,
    /// The user's environment, of which servers and steps get a part.
    pub environment: Arc<BTreeMap<String, String>>,
    /// The environment of steps and extensions, without model keys.
    pub step_environment: Arc<BTreeMap<String, String>>,
    /// Variables that servers get in addition to the default ones.
    pub pass: Vec<String>,
    /// The `proctor` binary, which also is the guard of processes.
    pub guard: PathBuf,
    /// Folders for the inline scripts of steps.
    pub scratches: Arc<ScratchPool>,
    /// The timeouts for servers.
    pub timeouts: Timeouts,
    pub redactor: Redactor,
    /// Which folders of trials are left in place.
    pub keep: KeepOption,
    /// The tokens for servers.
    pub credentials: Credentials,
    /// Whether a tolerable protocol problem of a server fails the trial.
    pub strict: bool,
    /// The known eras of servers, by name.
    pub eras: BTreeMap<String, Era>,
    /// The known tools of servers, by server name.
    pub tools: BTreeMap<String, Vec<String>>,
    /// The tools that trials offered to their agents so far.
    pub offers: KnownOffers,
    /// The connections that all trials share, by server; empty if each trial has its own.
    pub shared: BTreeMap<String, Client>,
    /// Warnings of trials about the suite, which the run shows once at its end.
    pub warnings: Mutex<BTreeSet<String>>,
    /// What servers report in the first trial that starts them, by server, in a run without a preflight.
    pub seen: Mutex<BTreeMap<String, ServerSeen>>,
    /// The run that is replayed, and whether a request that differs from it is an error.
    pub cassette: Option<(Arc<Cassette>, bool)>,
    /// Locks on the checkouts of sources, which no other process replaces meanwhile.
    pub checkouts: Vec<File>,
    /// Gets the name of each trial's file when the trial has ended.
    pub ended_files: Option<tokio::sync::mpsc::UnboundedSender<String>>,
}

/// Identifies a model of a suite. Scripts in different folders may have the same name.
pub(crate) fn model_key(model: &ModelRef) -> String {
    match &model.script {
        Some(script) => script.path().display().to_string(),
        None => model.to_string(),
    }
}

impl RunContext {
    /// The recorded replies for a trial, if the run is a replay.
    pub(crate) fn replay(
        &self,
        case: &str,
        agent: &str,
        repeat: u32,
    ) -> Result<Option<Replay>, RecordError> {
        let Some((cassette, strict)) = &self.cassette else {
            return Ok(None);
        };
        Replay::of(cassette, (case, agent, repeat), *strict).map(Some)
    }

    /// The options for a connection, without the known era of its server.
    pub fn connect_options(
        &self,
        actor: Actor,
        recorder: Recorder,
        trial: Option<&TrialValues>,
    ) -> ConnectOptions {
        ConnectOptions {
            actor,
            recorder,
            inherited: self.environment.clone(),
            pass: self.pass.clone(),
            guard: self.guard.clone(),
            timeouts: self.timeouts,
            answers: ServerRequestReplies::default(),
            trial: trial.cloned(),
            credentials: self.credentials.clone(),
            era: None,
            ends: ProcessEnds::default(),
        }
    }

    /// A client for a model, with which a trial asks it.
    pub(crate) fn asker(
        &self,
        model: &Arc<Model>,
        purpose: Purpose,
        recorder: &Recorder,
        waiting: &RetryWait,
        replay: Option<&Replay>,
    ) -> ModelClient {
        ModelClient {
            model: model.clone(),
            purpose,
            meter: self.meter.clone(),
            recorder: recorder.clone(),
            waiting: waiting.clone(),
            replay: replay.cloned(),
        }
    }
}
