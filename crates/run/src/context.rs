//! What all trials of a run share.
//!
//! Its main type is [`RunContext`]. Nothing in it changes while the run goes on, but for what was spent.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use proctor_core::event::{Actor, Purpose};
use proctor_core::record::RecordError;
use proctor_core::redact::Redactor;
use proctor_core::replay::Cassette;
use proctor_core::suite::Suite;

use crate::external::ExternalAgent;
use proctor_models::{Meter, Model, ModelClient, Replay, RetryWait};
use proctor_wire::answers::ServerRequestReplies;
use proctor_wire::client::{Client, ConnectOptions, Era, Timeouts};
use proctor_wire::recorder::Recorder;

/// Who does the tasks.
pub enum Worker {
    /// Nobody: for evals that only call tools.
    Nobody,
    /// A model in Proctor's own loop.
    Model(Arc<Model>),
    /// A program of its own.
    External(Arc<ExternalAgent>),
}

impl Worker {
    /// The model, if it is one in Proctor's own loop.
    pub fn model(&self) -> Option<&Arc<Model>> {
        match self {
            Self::Model(model) => Some(model),
            Self::Nobody | Self::External(_) => None,
        }
    }

    /// Its model, as `provider:id`; the agent's name, if only the agent knows.
    pub fn model_name(&self) -> Option<String> {
        match self {
            Self::Nobody => None,
            Self::Model(model) => Some(model.name().to_owned()),
            Self::External(external) => Some(external.asked_model()),
        }
    }
}

/// What all trials of a run share.
pub struct RunContext {
    /// What is run.
    pub suite: Suite,
    /// Each of the suite's agents.
    pub agents: Vec<Worker>,
    /// The models that judge; none if the suite has no judge.
    pub judges: Vec<Arc<Model>>,
    /// What was spent, and may be.
    pub meter: Arc<Meter>,
    /// The environment that servers and steps get a part of.
    pub environment: BTreeMap<String, String>,
    /// Variables that servers get besides the usual ones.
    pub pass: Vec<String>,
    /// Variables that hold model keys: nobody gets them.
    pub withheld: Vec<String>,
    /// The program that contains processes: Proctor itself.
    pub guard: PathBuf,
    /// The folder of user caches, in which released extensions are looked for.
    pub cache: Option<PathBuf>,
    /// How long servers may take.
    pub timeouts: Timeouts,
    /// Takes secrets out.
    pub redactor: Redactor,
    /// Whether a server that breaks the protocol in a way that can be tolerated fails the trial.
    pub strict: bool,
    /// The eras that servers speak, as far as that is known.
    pub eras: BTreeMap<String, Era>,
    /// The tools of servers, as far as they are known.
    pub tools: BTreeMap<String, Vec<String>>,
    /// The connections that all trials share, by server; none if each trial has its own.
    pub shared: BTreeMap<String, Client>,
    /// The run whose models are heard again, and whether a question that has changed is an error.
    pub cassette: Option<(Arc<Cassette>, bool)>,
}

impl RunContext {
    /// What a trial hears again, in a run that is replayed.
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

    /// What a connection is made with; what is known of its server comes on top.
    pub fn connect_options(&self, actor: Actor, recorder: Recorder) -> ConnectOptions {
        ConnectOptions {
            actor,
            recorder,
            inherited: self.environment.clone(),
            pass: self.pass.clone(),
            guard: self.guard.clone(),
            timeouts: self.timeouts,
            answers: ServerRequestReplies::default(),
            era: None,
        }
    }

    /// A model, as a trial asks it.
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
