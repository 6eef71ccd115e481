//! A bridge with a record of its own.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use proctor_core::suite::Server;
use proctor_core::suite::server::{AllowedTools, ClientSettings, Transport};
use proctor_record::event::{
    Actor, ConnectionClosed, Direction, Event, EventKind, FindingKind, HttpHead as Head, Outcome,
    RECORD_VERSION, RunStarted, TrialEnded, TrialStarted, WireKind,
};
use proctor_record::fold::{FoldOptions, FoldedTrial, fold_trial};
use proctor_record::record::{RunReader, RunWriter};
use proctor_record::redact::Redactor;
use proctor_wire::proxy::{Admission, Bridge, ProxyOptions};
use proctor_wire::recorder::Recorder;
use tempfile::TempDir;

use super::http::Http;

pub struct Stage {
    folder: TempDir,
    run: RunWriter,
    recorder: Recorder,
    pub bridge: Bridge,
}

/// What was written.
pub struct Record {
    pub events: Vec<Event>,
    /// By connection.
    pub frames: Vec<(u32, Direction, String)>,
    pub folded: FoldedTrial,
    _folder: TempDir,
}

/// A fixture on stdio.
pub fn fixture(args: &[&str]) -> Server {
    command(&proctor_e2e::fixture().display().to_string(), args)
}

pub fn command(program: &str, args: &[&str]) -> Server {
    Server {
        name: "bridged".to_owned(),
        transport: Transport::Stdio {
            command: program.to_owned(),
            args: args.iter().map(ToString::to_string).collect(),
            env: BTreeMap::new(),
            folder: std::env::temp_dir(),
            cwd: None,
        },
        allowed: AllowedTools::All,
        auth: None,
        client: ClientSettings::default(),
        written: "bridged".to_owned(),
    }
}

pub fn options(recorder: Recorder) -> ProxyOptions {
    ProxyOptions {
        recorder,
        actor: Actor::Agent,
        inherited: std::env::vars().collect(),
        pass: Vec::new(),
        guard: proctor_e2e::proctor(),
        trial: None,
        credentials: proctor_wire::auth::Credentials::default(),
        editor: None,
    }
}

impl Stage {
    pub async fn on_fixture(args: &[&str]) -> Self {
        Self::new(&fixture(args), Admission::Header).await
    }

    pub async fn new(server: &Server, admission: Admission) -> Self {
        let folder = TempDir::new().expect("there is a folder");
        let started = RunStarted {
            record: RECORD_VERSION,
            proctor: "0".to_owned(),
            started: "now".to_owned(),
            name: "bridge".to_owned(),
            command: Vec::new(),
            context: None,
        };
        let run = RunWriter::create(&folder.path().join("run"), Redactor::default(), started);
        let run = run.expect("a run can be recorded");
        let started = TrialStarted {
            case: "bridge".to_owned(),
            agent: None,
            repeat: 1,
            attempt: 1,
        };
        let trial = run.trial(0, "bridge", started).expect("a trial starts");
        let recorder = Recorder::new(trial, Instant::now());
        let bridge = Bridge::start(server, &options(recorder.clone()), 0, admission).await;
        Self {
            folder,
            run,
            recorder,
            bridge: bridge.expect("the bridge starts"),
        }
    }

    pub fn http(&self) -> Http {
        Http::to(&self.bridge)
    }

    /// Closes the bridge, and reads what was written.
    pub async fn end(self) -> Record {
        self.bridge.close().await;
        let Self {
            folder,
            run,
            recorder,
            ..
        } = self;
        assert!(recorder.take_error().is_none());
        let ended = TrialEnded {
            outcome: Outcome::Passed,
            reason: None,
            blame: None,
        };
        let trial = recorder.take_trial().expect("the trial goes on");
        trial.end(recorder.at(), ended).expect("the trial ends");
        drop(run);
        let reader = RunReader::open(&folder.path().join("run")).expect("the run can be read");
        let trials = reader.trials().expect("trials can be listed");
        let folded = fold_trial(&reader, &trials[0], &FoldOptions::default());
        let events = reader.trial(&trials[0]).expect("the trial can be read");
        let events: Vec<Event> = events.collect::<Result<_, _>>().expect("all can be read");
        let frames = events.iter().filter_map(|event| match &event.event {
            EventKind::Frame(frame) => {
                let bytes = reader.body_bytes(&frame.body).expect("a body can be read");
                let text = String::from_utf8_lossy(&bytes.unwrap_or_default()).into_owned();
                Some((frame.conn.0, frame.direction, text))
            }
            _ => None,
        });
        let record = Record {
            frames: frames.collect(),
            folded: folded.expect("the record folds"),
            events,
            _folder: folder,
        };
        let has_ended = record.closed().len() == record.processes();
        assert!(has_ended, "a connection has no end: {:#?}", record.events);
        record
    }
}

impl Record {
    /// How the connections ended.
    pub fn closed(&self) -> Vec<&ConnectionClosed> {
        let events = self.events.iter().map(|event| &event.event);
        let closed = events.filter_map(|event| match event {
            EventKind::ConnectionClosed(closed) => Some(closed),
            _ => None,
        });
        closed.collect()
    }

    /// How many processes were started.
    pub fn processes(&self) -> usize {
        let events = self.events.iter().map(|event| &event.event);
        let opened = events.filter_map(|event| match event {
            EventKind::ConnectionOpened(opened) => Some(opened),
            _ => None,
        });
        let opened: Vec<_> = opened.collect();
        assert!(
            opened
                .iter()
                .all(|opened| opened.transport == WireKind::Stdio)
        );
        opened.len()
    }

    pub fn heads(&self) -> Vec<&Head> {
        let events = self.events.iter().map(|event| &event.event);
        let heads = events.filter_map(|event| match event {
            EventKind::Http(head) => Some(head),
            _ => None,
        });
        heads.collect()
    }

    pub fn found(&self, kind: FindingKind) -> Vec<&str> {
        let events = self.events.iter().map(|event| &event.event);
        let found = events.filter_map(|event| match event {
            EventKind::Finding(finding) if finding.kind == kind => Some(finding.detail.as_str()),
            _ => None,
        });
        found.collect()
    }

    /// What went one way, whichever the process.
    pub fn said(&self, direction: Direction) -> Vec<&str> {
        let frames = self.frames.iter().filter(|frame| frame.1 == direction);
        frames.map(|(_, _, text)| text.as_str()).collect()
    }
}

/// Waits until something has happened.
pub async fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_mins(5);
    while !is_so() {
        assert!(Instant::now() < deadline, "{what} never comes");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
