//! Evals on a stage: fixtures that ship them, scripts for a model and a judge, and the engine between.
//!
//! Its main type is [`Stage`]. What it does with a list is what a client does: it lists, validates, and runs
//! what is valid.

mod ran;

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use mcp_evals::{EvalStatus, Level, ListedEval, validate};
use proctor_core::price::Prices;
use proctor_core::suite::agent::ModelRef;
use proctor_core::suite::server::{AllowedTools, ClientSettings, Transport};
use proctor_core::suite::{
    Agent, Case, Isolation, JudgeConfig, JudgeModel, Limits, Server, ShippedEval, Suite,
};
use proctor_e2e::{Fixture, log_lines};
use proctor_models::{Budget, Meter, Model, ScriptedModel};
use proctor_record::event::{Actor, RECORD_VERSION, RunStarted};
use proctor_record::record::RunWriter;
use proctor_record::redact::Redactor;
use proctor_run::agent::KnownOffers;
use proctor_run::context::{RunContext, Worker};
use proctor_run::runner::{self, Parallelism, RunnerOptions, TrialList, TrialSpec};
use proctor_run::trial_folder::KeepOption;
use proctor_wire::client::{Client, Era, ListError, ListLimits, Timeouts};
use proctor_wire::evals;
use proctor_wire::recorder::Recorder;
use serde_json::Value;
use tempfile::TempDir;
use tokio::sync::mpsc::unbounded_channel;

use self::ran::{EvalEnd, EvalRun, Record};

/// How the fixture is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wire {
    Stdio,
    Http,
}

/// The name of the server that ships the evals.
pub const SHIP: &str = "ship";

pub struct Stage {
    folder: TempDir,
    running: Vec<Fixture>,
    pub servers: Vec<Server>,
    /// The era to speak, if a server speaks both.
    era: Option<Era>,
    pub model: &'static str,
    pub judge: &'static str,
    /// What `--max-turns` is for the command line.
    pub max_turns: Option<u32>,
    pub limits: Limits,
    pub environment: BTreeMap<String, String>,
    pub redactor: Redactor,
    pub isolation: Isolation,
    /// Which server an eval is run on, by a word in its id.
    pub elsewhere: Option<(&'static str, &'static str)>,
}

impl Stage {
    /// A fixture that ships these evals.
    pub fn new(evals: &Value, wire: Wire, era: Era, words: &[&str]) -> Self {
        let mut stage = Self::empty();
        fs::write(stage.path("evals.json"), evals.to_string()).unwrap();
        let file = stage.path("evals.json").display().to_string();
        let mut all = vec!["--evals", &file];
        all.extend(words);
        stage.add(SHIP, wire, era, &all);
        stage
    }

    /// Another server that ships evals, spoken to in this era.
    pub fn of(transport: Transport, era: Era) -> Self {
        let mut stage = Self::empty();
        stage.add_server(SHIP, transport);
        stage.era = Some(era);
        stage
    }

    fn empty() -> Self {
        Self {
            folder: TempDir::new().unwrap(),
            running: Vec::new(),
            servers: Vec::new(),
            era: None,
            model: "  - reply: {text: nothing}\n",
            judge: "  - reply: {refuse: nobody asked me}\n",
            max_turns: None,
            limits: Limits::default(),
            environment: std::env::vars().collect(),
            redactor: Redactor::default(),
            isolation: Isolation::Trial,
            elsewhere: None,
        }
    }

    /// On stdio, in the handshake era.
    pub fn plain(evals: &Value, words: &[&str]) -> Self {
        Self::new(evals, Wire::Stdio, Era::Handshake, words)
    }

    /// Another fixture.
    pub fn add(&mut self, name: &str, wire: Wire, era: Era, words: &[&str]) {
        let log = self.log_path(name).display().to_string();
        let mut all = vec!["--era", era.word(), "--log", &log];
        all.extend(words);
        let transport = match wire {
            Wire::Stdio => Transport::Stdio {
                command: proctor_e2e::fixture().display().to_string(),
                args: all.iter().map(ToString::to_string).collect(),
                env: BTreeMap::new(),
                folder: self.folder.path().to_owned(),
                cwd: None,
            },
            Wire::Http => {
                let fixture = Fixture::http(&all);
                let url = fixture.url().to_owned();
                self.running.push(fixture);
                http(url)
            }
        };
        self.add_server(name, transport);
    }

    /// A server that can't be reached.
    pub fn add_dead(&mut self, name: &str, wire: Wire) {
        match wire {
            Wire::Stdio => {
                let words = ["--mode", "exit-before-handshake"];
                self.add(name, wire, Era::Handshake, &words);
            }
            // Port 1 is nobody's.
            Wire::Http => self.add_server(name, http("http://127.0.0.1:1/mcp".to_owned())),
        }
    }

    fn add_server(&mut self, name: &str, transport: Transport) {
        self.servers.push(Server {
            name: name.to_owned(),
            transport,
            allowed: AllowedTools::All,
            auth: None,
            client: ClientSettings::default(),
            written: name.to_owned(),
        });
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn log_path(&self, server: &str) -> PathBuf {
        self.path(&format!("{server}.jsonl"))
    }

    /// The messages that a server got, as it saw them.
    pub fn received(&self, server: &str) -> Vec<Value> {
        let log = self.log_path(server);
        if !log.exists() {
            return Vec::new();
        }
        let lines = log_lines(&log).into_iter();
        let came = lines.filter(|line| line["dir"] == "in");
        let text = came.filter_map(|line| line["text"].as_str().map(str::to_owned));
        text.filter_map(|text| serde_json::from_str(&text).ok())
            .collect()
    }

    /// Their methods, in order.
    pub fn methods(&self, server: &str) -> Vec<String> {
        let received = self.received(server);
        let method = |message: &Value| message["method"].as_str().unwrap_or("?").to_owned();
        received.iter().map(method).collect()
    }

    /// A client of the server that ships.
    pub async fn connect(&self) -> Client {
        let context = self.context(Vec::new());
        let mut options = context.connect_options(Actor::Preflight, Recorder::nothing(), None);
        options.era = self.era;
        Client::connect(&self.servers[0], &options).await.unwrap()
    }

    /// Its list.
    pub async fn list(
        &self,
        level: Option<Level>,
        caps: &ListLimits,
    ) -> Result<Vec<ListedEval>, ListError> {
        let client = self.connect().await;
        let listed = evals::list(&client, level, caps).await;
        client.close().await;
        listed
    }

    fn model_of(&self, name: &str, rules: &str) -> Arc<Model> {
        let path = self.path(name);
        fs::write(&path, format!("kind: Script\nrules:\n{rules}")).unwrap();
        let model = ScriptedModel::open(&path);
        Arc::new(Model::Scripted(
            model.unwrap_or_else(|wrong| panic!("{wrong:?}")),
        ))
    }

    fn context(&self, cases: Vec<Case>) -> RunContext {
        let agent = Agent::on_model(ModelRef::parse("scripted:model.yaml").unwrap());
        let suite = Suite {
            name: "stage".to_owned(),
            path: self.path("eval.yaml"),
            servers: self.servers.clone(),
            judge: Some(JudgeConfig {
                model: JudgeModel::Agent(Box::new(agent.clone())),
                votes: 1,
            }),
            agents: vec![agent],
            default_limits: Limits::default(),
            extensions: Vec::new(),
            skills: Vec::new(),
            setup: Vec::new(),
            cleanup: Vec::new(),
            cleanup_timeout: None,
            preflight: true,
            workspace: None,
            isolation: self.isolation,
            gates: proctor_record::event::PlannedGates::default(),
            no_regression: None,
            known_failures: Vec::new(),
            surface: None,
            lint_off: Vec::new(),
            cases,
            task_sets: Vec::new(),
            shipped: Vec::new(),
            sources: Vec::new(),
        };
        RunContext {
            suite,
            agents: vec![Worker::Model(self.model_of("model.yaml", self.model))],
            judges: vec![self.model_of("judge.yaml", self.judge)],
            meter: Arc::new(Meter::new(Prices::default(), Budget::default())),
            environment: self.environment.clone().into(),
            step_environment: self.environment.clone().into(),
            pass: Vec::new(),
            offers: KnownOffers::default(),
            scratches: Arc::default(),
            guard: proctor_e2e::proctor(),
            timeouts: Timeouts::default(),
            redactor: self.redactor.clone(),
            keep: KeepOption::None,
            credentials: proctor_wire::auth::Credentials::default(),
            others: BTreeMap::new(),
            strict: false,
            tools: BTreeMap::new(),
            eras: BTreeMap::new(),
            shared: BTreeMap::new(),
            warnings: std::sync::Mutex::default(),
            seen: std::sync::Mutex::default(),
            cassette: None,
            checkouts: Vec::new(),
            ended_files: None,
        }
    }

    /// Lists, validates, and runs.
    pub async fn run(&self) -> EvalRun {
        let client = self.connect().await;
        assert!(!evals::declared(client.identity()).is_empty());
        let listed = evals::list(&client, None, &ListLimits::default())
            .await
            .unwrap();
        let era = client.identity().era;
        client.close().await;
        let report = validate(&listed);
        let (mut ends, mut cases) = (BTreeMap::new(), Vec::new());
        for (at, item) in listed.iter().enumerate() {
            let told = || {
                let told: Vec<String> = report.of(at).map(ToString::to_string).collect();
                told.join("; ")
            };
            let id = item.id().map_or_else(|| format!("#{at}"), str::to_owned);
            match (report.status(at), item.eval()) {
                (EvalStatus::Skipped, _) => drop(ends.insert(id, EvalEnd::Skipped(told()))),
                (EvalStatus::Invalid, _) | (_, None) => {
                    drop(ends.insert(id, EvalEnd::Invalid(told())));
                }
                (EvalStatus::Valid, Some(eval)) => cases.push(self.case(eval)),
            }
        }
        let mut context = self.context(cases);
        context.eras.insert(SHIP.to_owned(), era);
        let records = self.run_cases(context).await;
        for (id, record) in &records {
            let ended = record.folded.ended.clone().expect("the trial has an end");
            ends.insert(id.clone(), EvalEnd::Ran(ended));
        }
        EvalRun { ends, records }
    }

    fn case(&self, eval: &mcp_evals::Eval) -> Case {
        let own = match &eval.input {
            mcp_evals::Input::Scenario(input) => input.turn_limit(),
            _ => None,
        };
        let own = own.and_then(|turns| u32::try_from(turns).ok());
        let there = self.elsewhere.filter(|(word, _)| eval.id.contains(word));
        Case::of_eval(ShippedEval {
            server: there.map_or(SHIP, |(_, server)| server).to_owned(),
            eval: eval.clone(),
            max_turns: own.unwrap_or(10).min(self.max_turns.unwrap_or(u32::MAX)),
        })
    }

    async fn run_cases(&self, mut context: RunContext) -> BTreeMap<String, Record> {
        let folder = self.path("run");
        let started = RunStarted {
            record: RECORD_VERSION,
            proctor: "0".to_owned(),
            started: "now".to_owned(),
            name: "stage".to_owned(),
            command: Vec::new(),
            context: None,
        };
        let writer = RunWriter::create(&folder, self.redactor.clone(), started).unwrap();
        let spec = |case| TrialSpec {
            case,
            agent: 0,
            repeat: 1,
            attempt: 1,
            limits: self.limits,
            parallel: true,
            known_failure: false,
        };
        if self.isolation == Isolation::Run {
            let client = self.connect().await;
            context.shared.insert(SHIP.to_owned(), client);
        }
        let trials: TrialList = (0..context.suite.cases.len()).map(spec).collect();
        let (progress, _told) = unbounded_channel();
        let (_interrupt, interrupts) = unbounded_channel();
        let options = RunnerOptions {
            width: Parallelism::Any(2),
            fail_fast: false,
            detailed: false,
            stop_when_decided: false,
            first: 0,
        };
        let context = Arc::new(context);
        let running = runner::run(
            context.clone(),
            writer.trials(),
            Instant::now(),
            Arc::new(trials),
            options,
            progress,
            interrupts,
        );
        running.await.unwrap();
        for client in Arc::into_inner(context).unwrap().shared.into_values() {
            client.close().await;
        }
        ran::read(&folder)
    }
}

/// A server that listens.
pub fn http(url: String) -> Transport {
    Transport::Http {
        url,
        headers: BTreeMap::new(),
    }
}
