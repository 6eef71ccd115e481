//! A relay that listens within the test, with a record.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use proctor_core::suite::Server;
use proctor_core::suite::server::{AllowedTools, ClientSettings, Transport};
use proctor_e2e::session::{MARK, survivors};
use proctor_record::event::{
    Actor, Direction, Event, EventKind, FindingKind, Outcome, RECORD_VERSION, RunEnded, RunStarted,
    TrialEnded, TrialStarted,
};
use proctor_record::record::{RunReader, RunWriter};
use proctor_record::redact::Redactor;
use proctor_wire::proxy::{AdmissionPolicy, ProxyOptions, Relay};
use proctor_wire::recorder::Recorder;
use tokio::runtime::Runtime;

use crate::stdio::BOUND;

/// A relay for one server.
pub struct Stage {
    pub relay: Option<Relay>,
    pub folder: tempfile::TempDir,
    runtime: Runtime,
    recorder: Recorder,
    run: Option<RunWriter>,
    mark: String,
}

impl Stage {
    /// For a command, which everybody may start.
    pub fn new(command: &[&str]) -> Self {
        let stage = Self::guarded(command);
        stage.relay().admit_all(AdmissionPolicy::SameUser);
        stage
    }

    /// For a command, which nobody may start yet.
    pub fn guarded(command: &[&str]) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let run = start_run(&folder.path().join("run"));
        let started = TrialStarted {
            case: "relay".to_owned(),
            agent: None,
            repeat: 1,
            attempt: 1,
        };
        let trial = run.trial(0, "relay", started).expect("a trial starts");
        let recorder = Recorder::new(trial, Instant::now());
        let mark = format!("{}-{}", std::process::id(), folder.path().display());
        let server = server(command, &mark, folder.path());
        let options = ProxyOptions {
            recorder: recorder.clone(),
            actor: Actor::Agent,
            inherited: std::env::vars().collect(),
            pass: Vec::new(),
            guard: proctor_e2e::proctor(),
            trial: None,
            credentials: proctor_wire::auth::Credentials::default(),
            editor: None,
        };
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .expect("a runtime");
        let relay = {
            let _inside = runtime.enter();
            Relay::listen(&server, &options).expect("the relay listens")
        };
        Self {
            relay: Some(relay),
            folder,
            runtime,
            recorder,
            run: Some(run),
            mark,
        }
    }

    pub fn relay(&self) -> &Relay {
        self.relay.as_ref().expect("the relay is open")
    }

    /// What an agent starts.
    pub fn command(&self) -> Command {
        let (program, args) = self.relay().command();
        let mut command = Command::new(program);
        command.args(args);
        command
    }

    /// The socket that it listens on.
    pub fn socket(&self) -> PathBuf {
        self.relay().command().1[1].clone().into()
    }

    /// The same within the relay's runtime.
    pub fn inside<T>(&self, run: impl FnOnce() -> T) -> T {
        let _inside = self.runtime.enter();
        run()
    }

    /// Waits until the record has this text.
    pub fn recorded(&self, text: &str) {
        let deadline = Instant::now() + BOUND;
        while !self.parts().contains(text) {
            assert!(Instant::now() < deadline, "`{text}` was not recorded");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn parts(&self) -> String {
        let entries = std::fs::read_dir(self.folder.path().join("run/trials")).expect("a folder");
        let files = entries.filter_map(|entry| std::fs::read(entry.ok()?.path()).ok());
        files
            .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
            .collect()
    }

    /// Closes the relay, and looks at the record. Nothing is left.
    pub fn finish(mut self) -> RecordedRun {
        let relay = self.relay.take().expect("the relay is open");
        let closing = async { tokio::time::timeout(BOUND, relay.close()).await };
        self.runtime.block_on(closing).expect("the relay closes");
        let left = survivors(&self.mark);
        assert!(left.is_empty(), "processes are left: {left:?}");
        assert!(self.recorder.take_error().is_none(), "the record is whole");
        let ended = TrialEnded {
            outcome: Outcome::Passed,
            reason: None,
            blame: None,
        };
        let trial = self.recorder.take_trial().expect("the trial");
        let at = self.recorder.at();
        trial.end(at, ended).expect("the trial ends");
        let end = RunEnded {
            exit: 0,
            reason: None,
            ..RunEnded::default()
        };
        let run = self.run.take().expect("the run");
        run.end(at, end).expect("the run ends");
        let recorded = RecordedRun::read(&self.folder.path().join("run"));
        RecordedRun {
            _folder: Some(self.folder),
            ..recorded
        }
    }
}

/// What a record holds.
pub struct RecordedRun {
    run: RunReader,
    pub events: Vec<Event>,
    /// Holds the blobs.
    _folder: Option<tempfile::TempDir>,
}

impl RecordedRun {
    pub fn read(folder: &Path) -> Self {
        let run = RunReader::open(folder).expect("the record can be read");
        let trials = run.trials().expect("the trials can be listed");
        let events = trials
            .iter()
            .flat_map(|trial| run.trial(trial).expect("the trial can be read"));
        let events = events.map(|event| event.expect("an event parses"));
        Self {
            events: events.collect(),
            run,
            _folder: None,
        }
    }

    /// The messages that went one way.
    pub fn messages(&self, direction: Direction) -> Vec<Vec<u8>> {
        let frames = self.events.iter().filter_map(|event| match &event.event {
            EventKind::Frame(frame) if frame.direction == direction => Some(frame),
            _ => None,
        });
        let bodies = frames.map(|frame| self.run.body_bytes(&frame.body).expect("a body"));
        let bodies =
            bodies.map(|body| body.map_or(b"(cut)".to_vec(), std::borrow::Cow::into_owned));
        bodies.collect()
    }

    /// How the connections ended, in the order of their ends.
    pub fn ends(&self) -> Vec<&str> {
        let ends = self.events.iter().filter_map(|event| match &event.event {
            EventKind::ConnectionClosed(closed) => Some(closed.reason.as_str()),
            _ => None,
        });
        ends.collect()
    }

    /// Why somebody was turned away.
    pub fn refusals(&self) -> Vec<&str> {
        let found = self.events.iter().filter_map(|event| match &event.event {
            EventKind::Finding(finding) if finding.kind == FindingKind::Refused => {
                Some(finding.detail.as_str())
            }
            _ => None,
        });
        found.collect()
    }
}

/// What the lines of a text are, with the one that its end cuts short.
pub fn lines(text: &[u8]) -> Vec<Vec<u8>> {
    let mut lines: Vec<Vec<u8>> = text.split(|b| *b == b'\n').map(<[u8]>::to_vec).collect();
    if lines.last().is_some_and(Vec::is_empty) {
        lines.pop();
    }
    lines
}

fn start_run(folder: &Path) -> RunWriter {
    let started = RunStarted {
        record: RECORD_VERSION,
        proctor: String::new(),
        started: String::new(),
        name: "relay".to_owned(),
        command: Vec::new(),
        context: None,
    };
    RunWriter::create(folder, Redactor::default(), started).expect("a run starts")
}

fn server(command: &[&str], mark: &str, folder: &Path) -> Server {
    Server {
        name: "fixture".to_owned(),
        transport: Transport::Stdio {
            command: command[0].to_owned(),
            args: command[1..].iter().map(ToString::to_string).collect(),
            env: [(MARK.to_owned(), mark.to_owned())].into(),
            folder: folder.to_owned(),
            cwd: None,
        },
        allowed: AllowedTools::All,
        auth: None,
        client: ClientSettings::default(),
        written: "fixture-server".to_owned(),
    }
}
