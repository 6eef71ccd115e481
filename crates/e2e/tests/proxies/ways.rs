//! The ways from a client to a server: none between them, or one of the proxies, started as users do.
//!
//! Its main types are [`Door`], what a client is told, and [`ProxyRoute`].

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

use proctor_e2e::port::ReservedPort;
use proctor_e2e::proctor;
use proctor_record::event::{Actor, Direction, EventKind};
use proctor_record::fold::{FoldOptions, FoldedTrial, fold_trial};
use proctor_record::record::{RunReader, TrialFile};
use proctor_record::transcript::Call;
use proctor_wire::proxy::Admission;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use super::hosted::{HostedServer, Kind};
use super::packages::{program, wait};

/// How long a proxy may take to end.
const END: Duration = Duration::from_mins(3);

/// What a client is told of a server.
#[derive(Debug, Clone)]
pub enum Door {
    /// To start it.
    Command(Vec<String>),
    /// To go there, with these headers.
    Http {
        url: String,
        headers: Vec<(String, String)>,
    },
    /// The same, and to speak the older transport.
    Sse {
        url: String,
        headers: Vec<(String, String)>,
    },
}

/// A way through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProxyRoute {
    /// Nothing is between them.
    Direct,
    /// The relay of a trial.
    Relay,
    /// The reverse proxy of a trial.
    Reverse(Admission),
    /// The bridge of a trial.
    Bridge(Admission),
    /// `proctor record -- COMMAND`.
    Record,
    /// `proctor record --url URL`.
    RecordUrl,
    /// `proctor record --http -- COMMAND`.
    RecordHttp,
    /// `proctor evals serve`, with a command or a URL.
    Serve,
}

/// A way that is open.
pub struct OpenRoute {
    /// What the client is told.
    pub door: Door,
    way: ProxyRoute,
    behind: UpstreamServer,
    folder: tempfile::TempDir,
}

/// What stands there.
enum UpstreamServer {
    Nothing,
    /// A program that the client starts.
    Command(Vec<String>),
    /// A program that listens.
    Running(ListeningServer),
    /// A proxy in this process.
    Hosted(Box<HostedServer>),
}

/// A program that listens, and has said where. It is killed when it is dropped.
pub struct ListeningServer {
    child: Child,
    /// Where it listens.
    pub url: String,
    /// Kept open: nobody wants to be killed by a log line.
    _stdout: Option<BufReader<ChildStdout>>,
}

impl Door {
    /// The door as a client program takes it.
    pub fn task(&self) -> Value {
        match self {
            Self::Command(words) => json!({"command": words}),
            Self::Http { url, headers } => json!({"url": url, "headers": object(headers)}),
            Self::Sse { url, headers } => {
                json!({"url": url, "headers": object(headers), "sse": true})
            }
        }
    }

    /// An address that is open to all.
    pub fn http(url: &str) -> Self {
        Self::Http {
            url: url.to_owned(),
            headers: Vec::new(),
        }
    }

    /// The same, of the older transport.
    pub fn sse(url: &str) -> Self {
        Self::Sse {
            url: url.to_owned(),
            headers: Vec::new(),
        }
    }
}

/// Headers as an object.
pub fn object(headers: &[(String, String)]) -> Value {
    let pairs = headers
        .iter()
        .map(|(name, value)| (name.clone(), json!(value)));
    Value::Object(pairs.collect())
}

impl ProxyRoute {
    /// Whether there is such a way to this door.
    pub fn leads_to(self, door: &Door) -> bool {
        match self {
            Self::Relay | Self::Bridge(_) | Self::Record | Self::RecordHttp => {
                matches!(door, Door::Command(_))
            }
            Self::Reverse(_) | Self::RecordUrl => !matches!(door, Door::Command(_)),
            Self::Direct | Self::Serve => true,
        }
    }

    /// Opens the way to a server.
    pub fn open(self, server: &Door) -> OpenRoute {
        let folder = tempfile::tempdir().expect("a folder can be made");
        let host = |kind| {
            UpstreamServer::Hosted(Box::new(HostedServer::start(kind, server, folder.path())))
        };
        let behind = match self {
            Self::Direct => UpstreamServer::Nothing,
            Self::Relay => host(Kind::Relay),
            Self::Reverse(admission) => host(Kind::Reverse(admission)),
            Self::Bridge(admission) => host(Kind::Bridge(admission)),
            Self::Record | Self::RecordUrl => self.program(&["record"], server, folder.path()),
            Self::RecordHttp => self.program(&["record", "--http"], server, folder.path()),
            Self::Serve => {
                let evals = folder.path().join("evals.json");
                std::fs::write(&evals, r#"{"evals": []}"#).expect("a file can be written");
                let evals = evals.to_str().expect("a path is text");
                self.program(&["evals", "serve", "--evals", evals], server, folder.path())
            }
        };
        let door = match &behind {
            UpstreamServer::Nothing => server.clone(),
            UpstreamServer::Command(words) => Door::Command(words.clone()),
            UpstreamServer::Hosted(hosted) => hosted.door(server),
            UpstreamServer::Running(running) if matches!(server, Door::Sse { .. }) => {
                Door::sse(&running.url)
            }
            UpstreamServer::Running(running) => Door::http(&running.url),
        };
        OpenRoute {
            door,
            way: self,
            behind,
            folder,
        }
    }

    /// `proctor` with these words, before a server.
    fn program(self, words: &[&str], server: &Door, folder: &Path) -> UpstreamServer {
        let mut all = vec![proctor().display().to_string()];
        all.extend(words.iter().map(ToString::to_string));
        match server {
            Door::Command(command) => {
                all.push("--".to_owned());
                all.extend(command.iter().cloned());
            }
            Door::Http { url, .. } | Door::Sse { url, .. } => {
                all.extend(["--url".to_owned(), url.clone()]);
            }
        }
        let is_started = matches!(server, Door::Command(_)) && self != Self::RecordHttp;
        if is_started {
            // By the client.
            UpstreamServer::Command(all)
        } else {
            UpstreamServer::Running(ListeningServer::start(&all, folder))
        }
    }
}

impl OpenRoute {
    /// Where clients are to be started: records are made below.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Closes the way, and gives what was recorded on it, if anything is.
    pub fn close(self) -> Option<RecordedMessages> {
        match self.behind {
            UpstreamServer::Nothing | UpstreamServer::Command(_) => {}
            UpstreamServer::Running(running) => running.stop(),
            UpstreamServer::Hosted(hosted) => hosted.close(),
        }
        match self.way {
            ProxyRoute::Direct | ProxyRoute::Serve => None,
            _ => Some(RecordedMessages::read(self.folder.path())),
        }
    }
}

/// What the records below a folder hold.
#[derive(Default)]
pub struct RecordedMessages {
    /// The trials, oldest first.
    pub trials: Vec<FoldedTrial>,
    /// What went to servers.
    pub to_server: Vec<String>,
    /// What went to clients.
    pub to_client: Vec<String>,
}

impl RecordedMessages {
    /// All records below a folder.
    pub fn read(folder: &Path) -> Self {
        let runs = folder.join(".proctor/runs");
        let entries = std::fs::read_dir(&runs);
        let entries = entries.unwrap_or_else(|error| panic!("`{}`: {error}", runs.display()));
        let mut runs: Vec<PathBuf> = entries
            .map(|entry| entry.expect("an entry can be read").path())
            .collect();
        runs.sort();
        let mut kept = Self::default();
        for run in runs {
            let run = RunReader::open(&run).expect("a record can be read");
            for trial in run.trials().expect("trials can be listed") {
                kept.add(&run, &trial);
            }
        }
        kept
    }

    fn add(&mut self, run: &RunReader, trial: &TrialFile) {
        let options = FoldOptions {
            actors: vec![Actor::Agent],
            ..FoldOptions::default()
        };
        let folded = fold_trial(run, trial, &options).expect("a trial can be folded");
        self.trials.push(folded);
        for event in run.trial(trial).expect("a trial can be read") {
            let EventKind::Frame(frame) = event.expect("an event parses").event else {
                continue;
            };
            let body = run.body_bytes(&frame.body).expect("a body can be read");
            let body = body.expect("the record has the message");
            let text = String::from_utf8_lossy(&body).into_owned();
            match frame.direction {
                Direction::ToServer => self.to_server.push(text),
                Direction::ToClient => self.to_client.push(text),
            }
        }
    }

    /// The calls of all trials.
    pub fn calls(&self) -> Vec<&Call> {
        let calls = self.trials.iter().flat_map(|trial| &trial.transcript.calls);
        calls.collect()
    }
}

impl ListeningServer {
    /// Starts a program that prints its URL.
    pub fn start(words: &[String], folder: &Path) -> Self {
        let stderr = folder.join("stderr");
        let mut child = Command::new(&words[0])
            .args(&words[1..])
            .current_dir(folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(File::create(&stderr).expect("a file can be made"))
            .spawn()
            .expect("the program starts");
        let mut stdout = BufReader::new(child.stdout.take().expect("stdout is piped"));
        let mut line = String::new();
        stdout.read_line(&mut line).expect("it prints its URL");
        let url = line
            .split_whitespace()
            .find(|word| word.starts_with("http://"));
        let url = url.unwrap_or_else(|| {
            let stderr = std::fs::read_to_string(stderr).unwrap_or_default();
            panic!("{words:?} printed `{line}` instead of a URL\n{stderr}")
        });
        Self {
            child,
            url: url.to_owned(),
            _stdout: Some(stdout),
        }
    }

    /// Starts `server-everything`, which says where it listens on stderr and does not choose its port.
    pub fn everything(transport: &str) -> Self {
        let reserved = ReservedPort::new();
        let port = reserved.number();
        let file = program("node/node_modules/.bin/mcp-server-everything");
        let mut child = Command::new(file)
            .arg(transport)
            .env("PORT", port.to_string())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the server starts");
        let deadline = std::time::Instant::now() + END;
        while std::net::TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(std::time::Instant::now() < deadline, "nobody listens");
            std::thread::sleep(Duration::from_millis(20));
        }
        let path = if transport == "sse" { "sse" } else { "mcp" };
        let mut stdout = child.stdout.take().expect("stdout is piped");
        // It logs every request.
        std::thread::spawn(move || std::io::copy(&mut stdout, &mut std::io::sink()));
        Self {
            child,
            url: format!("http://127.0.0.1:{port}/{path}"),
            _stdout: None,
        }
    }

    /// Asks it to stop, as a person would, and waits for its end.
    fn stop(mut self) {
        kill_process(Pid::from_child(&self.child), Signal::INT).expect("it can be signalled");
        let status = wait(&mut self.child, END);
        assert!(status.is_some(), "it did not end within {END:?}");
    }
}

impl Drop for ListeningServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
