//! A run of `proctor` on a server, watched from outside: how it ended, how much memory it took, what it
//! recorded, and whether anything of it is left.

use std::io::Read;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use proctor_core::event::{Event, FindingKind, Frame, What};
use proctor_core::record::RunReader;

/// Carried by everything that a session starts.
const MARK: &str = "PROCTOR_E2E_MARK";

/// What a session is.
pub struct Session {
    command: Vec<String>,
    server: Vec<String>,
    env: Vec<(String, String)>,
    bound: Duration,
}

/// What came of it.
#[derive(Debug)]
pub struct Seen {
    /// The exit code.
    pub code: Option<i32>,
    /// What was printed.
    pub stdout: String,
    /// What was said besides.
    pub stderr: String,
    /// The most memory that Proctor itself held, in KiB.
    pub peak_kib: u64,
    /// The record of the one trial.
    pub events: Vec<Event>,
    /// Where the record is.
    pub folder: tempfile::TempDir,
}

impl Session {
    /// `proctor` with these words, which name no server.
    pub fn new(command: &[&str]) -> Self {
        Self {
            command: command.iter().map(ToString::to_string).collect(),
            server: Vec::new(),
            env: Vec::new(),
            bound: Duration::from_mins(1),
        }
    }

    /// On a server that it starts.
    #[must_use]
    pub fn on(mut self, program: impl Into<String>, args: &[&str]) -> Self {
        self.server = vec!["--".to_owned(), program.into()];
        self.server.extend(args.iter().map(ToString::to_string));
        self
    }

    /// On a server that listens.
    #[must_use]
    pub fn at(mut self, url: &str) -> Self {
        self.server = vec!["--url".to_owned(), url.to_owned()];
        self
    }

    /// With a variable.
    #[must_use]
    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.env.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Runs it, and checks what holds of every run: it ends, and nothing of it is left.
    pub fn run(self) -> Seen {
        let folder = tempfile::tempdir().expect("a folder can be made");
        let record = folder.path().join("run");
        let mark = format!("{}-{}", std::process::id(), folder.path().display());
        let (url, command): (Vec<_>, Vec<_>) = match self.server.first().map(String::as_str) {
            Some("--url") => (self.server, Vec::new()),
            _ => (Vec::new(), self.server),
        };
        let mut child = Command::new(crate::program("proctor"))
            .args(&self.command)
            .args([
                "--record",
                &record.display().to_string(),
                "--pass-env",
                MARK,
            ])
            .args(url)
            .args(command)
            .env(MARK, &mark)
            .envs(self.env)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("proctor starts");
        let stdout = drain(child.stdout.take());
        let stderr = drain(child.stderr.take());
        let (code, peak_kib) = watch(&mut child, self.bound);
        let left = survivors(&mark);
        assert!(left.is_empty(), "processes are left: {left:?}");
        let stdout = stdout.join().expect("stdout is read");
        let stderr = stderr.join().expect("stderr is read");
        Seen {
            code,
            stdout,
            stderr,
            peak_kib,
            events: read(&record),
            folder,
        }
    }
}

impl Seen {
    /// The messages that were recorded.
    pub fn frames(&self) -> impl Iterator<Item = &Frame> {
        self.events.iter().filter_map(|event| match &event.event {
            What::Frame(frame) => Some(frame),
            _ => None,
        })
    }

    /// How often something of a sort was found.
    pub fn found(&self, kind: FindingKind) -> u64 {
        let counts = self.events.iter().filter_map(|event| match &event.event {
            What::Finding(finding) if finding.kind == kind => Some(finding.count),
            _ => None,
        });
        counts.sum()
    }

    /// Whether the trial's record has an end.
    pub fn has_ended(&self) -> bool {
        matches!(
            self.events.last().map(|e| &e.event),
            Some(What::TrialEnded(_))
        )
    }
}

/// The events of the one trial, which must parse.
fn read(record: &std::path::Path) -> Vec<Event> {
    let Ok(run) = RunReader::open(record) else {
        return Vec::new();
    };
    let trials = run.trials().expect("the trials can be listed");
    let events = trials
        .iter()
        .flat_map(|trial| run.trial(trial).expect("the trial can be read"));
    events
        .map(|event| event.expect("an event parses"))
        .collect()
}

fn drain(stream: Option<impl Read + Send + 'static>) -> std::thread::JoinHandle<String> {
    let mut stream = stream.expect("the stream is piped");
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        stream
            .read_to_end(&mut bytes)
            .expect("the stream can be read");
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

/// Waits for the end, and looks at the memory meanwhile.
fn watch(child: &mut Child, bound: Duration) -> (Option<i32>, u64) {
    let started = Instant::now();
    let mut peak = 0;
    loop {
        peak = peak.max(peak_kib(child.id()).unwrap_or(0));
        if let Some(status) = child.try_wait().expect("proctor can be waited for") {
            return (status.code(), peak);
        }
        if started.elapsed() > bound {
            let _ = child.kill();
            panic!("proctor did not end within {bound:?}");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn peak_kib(pid: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

/// Processes that carry a mark, after a moment for those that are just ending.
fn survivors(mark: &str) -> Vec<String> {
    let wanted = format!("{MARK}={mark}");
    let deadline = Instant::now() + Duration::from_secs(2);
    loop {
        let left: Vec<String> = std::fs::read_dir("/proc")
            .expect("/proc is there")
            .filter_map(|entry| {
                let path = entry.ok()?.path();
                let environ = std::fs::read(path.join("environ")).ok()?;
                let marked = environ
                    .split(|b| *b == 0)
                    .any(|pair| pair == wanted.as_bytes());
                marked.then(|| path.display().to_string())
            })
            .collect();
        if left.is_empty() || Instant::now() > deadline {
            return left;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}
