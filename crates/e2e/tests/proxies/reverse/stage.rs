//! A proxy in this process, with its record.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Instant;

use proctor_core::suite::Server;
use proctor_core::suite::server::{AllowedTools, ClientSettings, Transport};
use proctor_record::event::{
    Actor, Body, ConnectionClosed, ConnectionOpened, Direction, Event, EventKind, Finding,
    HttpHead, Outcome, RECORD_VERSION, RunEnded, RunStarted, TrialEnded, TrialStarted,
};
use proctor_record::fold::{FoldOptions, FoldedTrial, fold_trial};
use proctor_record::record::{RecordOptions, RunReader, RunWriter};
use proctor_record::redact::Redactor;
use proctor_wire::proxy::{Admission, ProxyOptions, ReverseProxy};
use proctor_wire::recorder::Recorder;
use tempfile::TempDir;

/// A record that is being written.
pub struct TestRecording {
    folder: TempDir,
    run: RunWriter,
    pub recorder: Recorder,
}

/// A proxy for one server.
pub struct Stage {
    kept: TestRecording,
    pub proxy: ReverseProxy,
}

pub fn http(url: &str) -> Server {
    server(Transport::Http {
        url: url.to_owned(),
        headers: BTreeMap::new(),
    })
}

pub fn sse(url: &str) -> Server {
    server(Transport::Sse {
        url: url.to_owned(),
        headers: BTreeMap::new(),
    })
}

pub fn server(transport: Transport) -> Server {
    Server {
        name: "server".to_owned(),
        transport,
        allowed: AllowedTools::All,
        auth: None,
        client: ClientSettings::default(),
        written: "as written".to_owned(),
    }
}

impl TestRecording {
    pub fn new() -> Self {
        Self::with(RecordOptions::default())
    }

    fn with(options: RecordOptions) -> Self {
        let folder = TempDir::new().expect("there is room");
        let started = RunStarted {
            record: RECORD_VERSION,
            proctor: "0".to_owned(),
            started: "now".to_owned(),
            name: "reverse".to_owned(),
            command: Vec::new(),
            context: None,
        };
        let path = folder.path().join("run");
        let run = RunWriter::create_with(&path, Redactor::default(), started, options);
        let run = run.expect("a run");
        let started = TrialStarted {
            case: "session".to_owned(),
            agent: None,
            repeat: 1,
            attempt: 1,
        };
        let trial = run.trial(0, "session", started).expect("a trial");
        Self {
            folder,
            run,
            recorder: Recorder::new(trial, Instant::now()),
        }
    }

    /// What is on disk now.
    pub fn text(&self) -> String {
        let trials = self.folder.path().join("run/trials");
        let trial = std::fs::read_dir(trials).expect("trials").next();
        let path = trial.expect("a trial").expect("a file").path();
        std::fs::read_to_string(path).expect("text")
    }

    /// Ends the record, and reads it.
    pub fn end(self) -> Record {
        assert!(self.recorder.take_error().is_none());
        let ended = TrialEnded {
            outcome: Outcome::Passed,
            reason: None,
            blame: None,
        };
        let trial = self.recorder.take_trial().expect("it was not taken");
        trial.end(self.recorder.at(), ended).expect("an end");
        let ended = RunEnded {
            exit: 0,
            reason: None,
            ..RunEnded::default()
        };
        self.run.end(0, ended).expect("an end");
        Record::read(self.folder)
    }
}

impl Stage {
    pub async fn new(server: &Server, admission: Admission) -> Self {
        Self::keeping(TestRecording::new(), server, admission).await
    }

    /// A proxy whose record has room for so many bytes.
    pub async fn with_room(server: &Server, bytes: u64) -> Self {
        let kept = TestRecording::with(RecordOptions {
            max_trial: bytes,
            ..RecordOptions::default()
        });
        Self::keeping(kept, server, Admission::Open).await
    }

    async fn keeping(kept: TestRecording, server: &Server, admission: Admission) -> Self {
        let options = ProxyOptions {
            recorder: kept.recorder.clone(),
            actor: Actor::Agent,
            inherited: std::env::vars().collect(),
            pass: Vec::new(),
            guard: PathBuf::from("not needed"),
            trial: None,
            credentials: proctor_wire::auth::Credentials::default(),
            editor: None,
        };
        let proxy = ReverseProxy::start(server, &options, 0, admission)
            .await
            .expect("the proxy starts");
        Self { kept, proxy }
    }

    /// A proxy that lets everybody in.
    pub async fn open(server: &Server) -> Self {
        Self::new(server, Admission::Open).await
    }

    /// `127.0.0.1:PORT`
    pub fn address(&self) -> String {
        address(self.proxy.url()).to_owned()
    }

    /// The server, as a client is told of it.
    pub fn offered(&self, server: &Server) -> Server {
        let url = self.proxy.url().to_owned();
        let headers = self.proxy.headers().iter().cloned().collect();
        let transport = match server.transport {
            Transport::Sse { .. } => Transport::Sse { url, headers },
            _ => Transport::Http { url, headers },
        };
        self::server(transport)
    }

    pub fn recorder(&self) -> &Recorder {
        &self.kept.recorder
    }

    /// The record as it is on disk now.
    pub fn kept(&self) -> String {
        self.kept.text()
    }

    /// Closes the proxy, and reads the record.
    pub async fn end(self) -> Record {
        self.proxy.close().await;
        self.kept.end()
    }
}

/// The host and port of an address.
pub fn address(url: &str) -> &str {
    let rest = url.trim_start_matches("http://");
    rest.split('/').next().expect("it starts with one")
}

/// The path of an address.
pub fn path(url: &str) -> &str {
    let rest = url.trim_start_matches("http://");
    rest.find('/').map_or("/", |at| &rest[at..])
}

/// What was kept of a session.
pub struct Record {
    pub folder: TempDir,
    pub events: Vec<Event>,
    pub folded: FoldedTrial,
    reader: RunReader,
}

impl Record {
    fn read(kept: TempDir) -> Self {
        let reader = RunReader::open(&kept.path().join("run")).expect("a run");
        let trial = reader.trials().expect("trials").remove(0);
        let folded = fold_trial(&reader, &trial, &FoldOptions::default()).expect("it folds");
        let events = reader.trial(&trial).expect("a trial");
        let events = events.collect::<Result<_, _>>().expect("events");
        Self {
            folder: kept,
            events,
            folded,
            reader,
        }
    }

    fn all(&self) -> impl Iterator<Item = &EventKind> {
        self.events.iter().map(|event| &event.event)
    }

    pub fn opened(&self) -> Vec<&ConnectionOpened> {
        let which = self.all().filter_map(|what| match what {
            EventKind::ConnectionOpened(opened) => Some(opened),
            _ => None,
        });
        which.collect()
    }

    pub fn closed(&self) -> Vec<&ConnectionClosed> {
        let which = self.all().filter_map(|what| match what {
            EventKind::ConnectionClosed(closed) => Some(closed),
            _ => None,
        });
        which.collect()
    }

    /// The messages that went one way: the connection, and the bytes; a length if they were cut.
    pub fn frames(&self, way: Direction) -> Vec<(u32, Result<Vec<u8>, u64>)> {
        let which = self.all().filter_map(|what| match what {
            EventKind::Frame(frame) if frame.direction == way => Some(frame),
            _ => None,
        });
        let body = |body: &Body| match body {
            Body::Cut { bytes, .. } => Err(*bytes),
            _ => Ok(self
                .reader
                .body_bytes(body)
                .expect("a body")
                .expect("kept")
                .to_vec()),
        };
        which.map(|f| (f.conn.0, body(&f.body))).collect()
    }

    /// The messages that went one way, as text.
    pub fn said(&self, way: Direction) -> Vec<String> {
        let frames = self.frames(way).into_iter();
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        frames
            .map(|(_, body)| body.map_or_else(|cut| format!("cut {cut}"), text))
            .collect()
    }

    pub fn http(&self) -> Vec<&HttpHead> {
        let which = self.all().filter_map(|what| match what {
            EventKind::Http(http) => Some(http),
            _ => None,
        });
        which.collect()
    }

    /// The lines of what was no message.
    pub fn lines(&self) -> Vec<&str> {
        self.http()
            .into_iter()
            .map(|http| http.line.as_str())
            .collect()
    }

    pub fn findings(&self) -> Vec<&Finding> {
        let which = self.all().filter_map(|what| match what {
            EventKind::Finding(finding) => Some(finding),
            _ => None,
        });
        which.collect()
    }

    /// Every byte of every file.
    pub fn bytes(&self) -> Vec<u8> {
        let mut folders = vec![self.folder.path().to_path_buf()];
        let mut all = Vec::new();
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).expect("a folder") {
                let path = entry.expect("an entry").path();
                if path.is_dir() {
                    folders.push(path);
                } else {
                    all.extend(std::fs::read(path).expect("a file"));
                }
            }
        }
        all
    }
}
