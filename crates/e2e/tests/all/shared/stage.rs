//! A run with one record for the connection and one for each who shares it.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use proctor_core::suite::Server;
use proctor_e2e::client::options;
use proctor_record::event::{
    Actor, ConnectionClosed, Direction, Event, EventKind, Frame, Outcome, RECORD_VERSION, RunEnded,
    RunStarted, TrialEnded, TrialStarted,
};
use proctor_record::fold::{FoldOptions, FoldedTrial, fold_trial};
use proctor_record::record::{RunReader, RunWriter};
use proctor_record::redact::Redactor;
use proctor_record::transcript::{Call, CallOutcome, CallRequest, Payload};
use proctor_wire::client::{Client, ConnectOptions};
use proctor_wire::recorder::Recorder;
use serde_json::{Map, Value};
use tempfile::TempDir;

/// The name of the connection's own record.
pub const HOME: &str = "home";

pub struct Stage {
    folder: TempDir,
    run: RunWriter,
    recorders: BTreeMap<String, Recorder>,
}

impl Stage {
    pub fn new() -> Self {
        let folder = TempDir::new().unwrap();
        let started = RunStarted {
            record: RECORD_VERSION,
            proctor: "0".to_owned(),
            started: "now".to_owned(),
            name: "shared".to_owned(),
            command: Vec::new(),
            context: None,
        };
        let run =
            RunWriter::create(&folder.path().join("run"), Redactor::default(), started).unwrap();
        Self {
            folder,
            run,
            recorders: BTreeMap::new(),
        }
    }

    /// Where the fixture may keep its log.
    pub fn log(&self) -> std::path::PathBuf {
        self.folder.path().join("wire.jsonl")
    }

    fn recorder(&mut self, name: &str) -> Recorder {
        let started = TrialStarted {
            case: name.to_owned(),
            agent: None,
            repeat: 1,
            attempt: 1,
        };
        let trial = self.run.trial(0, name, started).unwrap();
        let recorder = Recorder::new(trial, Instant::now());
        self.recorders.insert(name.to_owned(), recorder.clone());
        recorder
    }

    pub async fn connect(
        &mut self,
        server: &Server,
        change: impl FnOnce(&mut ConnectOptions),
    ) -> Client {
        let mut options = options(self.recorder(HOME));
        change(&mut options);
        Client::connect(server, &options).await.unwrap()
    }

    pub fn attach(&mut self, client: &Client, name: &str) -> Client {
        client.attach(&self.recorder(name), Actor::Agent)
    }

    /// Whether a record has this text so far.
    pub fn has_recorded(&self, name: &str, text: &str) -> bool {
        self.recorded(name, text) > 0
    }

    /// How often a record has this text so far.
    pub fn recorded(&self, name: &str, text: &str) -> usize {
        let trials = std::fs::read_dir(self.folder.path().join("run/trials")).unwrap();
        let own = trials.flatten().filter(|file| {
            let name = format!("{name}.");
            file.file_name().to_string_lossy().starts_with(&name)
        });
        let texts = own.filter_map(|file| std::fs::read_to_string(file.path()).ok());
        texts.map(|all| all.matches(text).count()).sum()
    }

    /// Ends a record, as the end of a trial does.
    pub fn end_trial(&mut self, name: &str) {
        let recorder = self.recorders.remove(name).unwrap();
        assert!(recorder.take_error().is_none());
        let ended = TrialEnded {
            outcome: Outcome::Passed,
            reason: None,
            blame: None,
        };
        let trial = recorder.take_trial().unwrap();
        trial.end(recorder.at(), ended).unwrap();
    }

    pub fn end(mut self) -> Records {
        let names: Vec<String> = self.recorders.keys().cloned().collect();
        for name in names {
            self.end_trial(&name);
        }
        let ended = RunEnded {
            exit: 0,
            reason: None,
            ..RunEnded::default()
        };
        self.run.end(0, ended).unwrap();
        let reader = RunReader::open(&self.folder.path().join("run")).unwrap();
        let mut all = BTreeMap::new();
        for trial in reader.trials().unwrap() {
            let folded = fold_trial(&reader, &trial, &FoldOptions::default()).unwrap();
            let events: Vec<Event> = reader
                .trial(&trial)
                .unwrap()
                .collect::<Result<_, _>>()
                .unwrap();
            let frames = events.iter().filter_map(|event| match &event.event {
                EventKind::Frame(frame) => Some(frame),
                _ => None,
            });
            let frames = frames.map(|frame| text(&reader, frame)).collect();
            let name = folded.started.as_ref().unwrap().case.clone();
            let record = Record {
                events,
                frames,
                folded,
            };
            all.insert(name, record);
        }
        Records {
            all,
            _folder: self.folder,
        }
    }
}

fn text(reader: &RunReader, frame: &Frame) -> (Direction, String) {
    let bytes = reader.body_bytes(&frame.body).unwrap().unwrap_or_default();
    (frame.direction, String::from_utf8(bytes.to_vec()).unwrap())
}

/// All records of a run, by name.
pub struct Records {
    pub all: BTreeMap<String, Record>,
    /// Kept until they are looked at.
    _folder: TempDir,
}

pub struct Record {
    pub events: Vec<Event>,
    pub frames: Vec<(Direction, String)>,
    pub folded: FoldedTrial,
}

impl std::ops::Index<&str> for Records {
    type Output = Record;

    fn index(&self, name: &str) -> &Record {
        &self.all[name]
    }
}

impl Record {
    /// How many messages hold a text.
    pub fn holding(&self, part: &str) -> usize {
        let frames = self.frames.iter();
        frames.filter(|(_, text)| text.contains(part)).count()
    }

    pub fn closed(&self) -> &ConnectionClosed {
        let mut closed = self.events.iter().filter_map(|event| match &event.event {
            EventKind::ConnectionClosed(closed) => Some(closed),
            _ => None,
        });
        let only = closed.next().expect("the connection ended");
        assert!(closed.next().is_none(), "the connection ended twice");
        only
    }

    /// The calls: tool, arguments, and the first text of the answer.
    pub fn calls(&self) -> Vec<String> {
        self.folded.transcript.calls.iter().map(told).collect()
    }
}

fn told(call: &Call) -> String {
    let asked = match &call.request {
        CallRequest::Tool {
            name,
            arguments: Payload::Value(arguments),
        } => format!("{name} {arguments}"),
        other => format!("{other:?}"),
    };
    match &call.answer {
        CallOutcome::Result(Payload::Value(result)) => {
            let text = result["content"][0]["text"].as_str();
            format!("{asked} → {}", text.unwrap_or("a result"))
        }
        CallOutcome::None => format!("{asked} → nothing"),
        other => format!("{asked} → {other:?}"),
    }
}

/// Arguments of a tool.
pub fn arguments(name: &str, value: impl Into<Value>) -> Map<String, Value> {
    Map::from_iter([(name.to_owned(), value.into())])
}

/// Waits until something holds, but not for ever.
pub async fn eventually(mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_mins(2);
    while !holds() {
        assert!(Instant::now() < deadline, "it never came to that");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
