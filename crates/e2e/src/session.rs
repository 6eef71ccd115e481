//! Runs `proctor` on a server, and checks from outside how it ended, its memory, its record, and
//! whether it left processes.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use proctor_record::event::{Direction, Event, EventKind, FindingKind, Frame, Outcome};
use proctor_record::record::RunReader;
use rustix::process::{Pid, Signal, kill_process};

/// A variable that all processes of a session inherit.
pub const MARK: &str = "PROCTOR_E2E_MARK";

/// The command and settings of a session.
pub struct Session {
    command: Vec<String>,
    server: Vec<String>,
    env: Vec<(String, String)>,
    wrapper: Vec<String>,
    record: Option<PathBuf>,
    /// Whether the record exists and is resumed.
    resumed: bool,
    bound: Duration,
}

/// A session whose process runs.
pub struct RunningSession {
    child: Child,
    mark: String,
    stdout: JoinHandle<String>,
    stderr: JoinHandle<String>,
    bound: Duration,
    record: PathBuf,
    folder: tempfile::TempDir,
}

/// The result of a session.
#[derive(Debug)]
pub struct SessionOutcome {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
    /// The peak memory of Proctor itself, in KiB.
    pub peak_kib: u64,
    /// The record of the only trial.
    pub events: Vec<Event>,
    /// The path of the record.
    pub record: PathBuf,
    /// The temporary folder of the record, unless the test chose another one.
    pub folder: tempfile::TempDir,
}

impl Session {
    /// Runs `proctor` with these arguments, without a server.
    pub fn new(command: &[&str]) -> Self {
        Self {
            command: command.iter().map(ToString::to_string).collect(),
            server: Vec::new(),
            env: Vec::new(),
            wrapper: Vec::new(),
            record: None,
            resumed: false,
            bound: Duration::from_mins(5),
        }
    }

    /// Adds a server that Proctor starts.
    #[must_use]
    pub fn on(mut self, program: impl Into<String>, args: &[&str]) -> Self {
        self.server = vec!["--".to_owned(), program.into()];
        self.server.extend(args.iter().map(ToString::to_string));
        self
    }

    /// Adds a server with a URL.
    #[must_use]
    pub fn at(mut self, url: &str) -> Self {
        self.server = vec!["--url".to_owned(), url.to_owned()];
        self
    }

    /// Sets an environment variable.
    #[must_use]
    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.env.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Starts it with another program, which gets the command line after these arguments.
    #[must_use]
    pub fn under(mut self, wrapper: &[&str]) -> Self {
        self.wrapper = wrapper.iter().map(ToString::to_string).collect();
        self
    }

    /// Records into this folder.
    #[must_use]
    pub fn record_in(mut self, folder: &Path) -> Self {
        self.record = Some(folder.to_owned());
        self
    }

    /// Resumes the record in this folder.
    #[must_use]
    pub fn resume(mut self, folder: &Path) -> Self {
        self.record = Some(folder.to_owned());
        self.resumed = true;
        self
    }

    /// Sets the timeout.
    #[must_use]
    pub fn within(mut self, bound: Duration) -> Self {
        self.bound = bound;
        self
    }

    /// Runs it, and checks that it ends and leaves no process.
    pub fn run(self) -> SessionOutcome {
        self.start().finish()
    }

    pub fn start(self) -> RunningSession {
        let folder = tempfile::tempdir().expect("a folder can be made");
        let record = self.record.unwrap_or_else(|| folder.path().join("run"));
        let mark = format!("{}-{}", std::process::id(), folder.path().display());
        let (url, command): (Vec<_>, Vec<_>) = match self.server.first().map(String::as_str) {
            Some("--url") => (self.server, Vec::new()),
            _ => (Vec::new(), self.server),
        };
        let mut words = self.wrapper;
        words.push(crate::program("proctor").display().to_string());
        let mut child = Command::new(&words[0])
            .args(&words[1..])
            .args(&self.command)
            .arg(if self.resumed { "--resume" } else { "--record" })
            .arg(&record)
            .args(["--pass-env", MARK])
            .args(url)
            .args(command)
            .env(MARK, &mark)
            .env("LC_ALL", "C.UTF-8")
            .envs(self.env)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("proctor starts");
        RunningSession {
            stdout: drain(child.stdout.take()),
            stderr: drain(child.stderr.take()),
            child,
            mark,
            bound: self.bound,
            record,
            folder,
        }
    }
}

impl RunningSession {
    /// Returns the process id of Proctor.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    pub fn record(&self) -> &Path {
        &self.record
    }

    /// Waits until the record of the running trial contains this text.
    pub fn wait_for(&self, text: &str) {
        let deadline = Instant::now() + self.bound;
        while !self.parts().contains(text) {
            assert!(
                Instant::now() < deadline,
                "`{text}` was not recorded within {:?}",
                self.bound
            );
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn parts(&self) -> String {
        let Ok(entries) = std::fs::read_dir(self.record.join("trials")) else {
            return String::new();
        };
        let files = entries.filter_map(|entry| std::fs::read(entry.ok()?.path()).ok());
        files
            .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
            .collect()
    }

    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).expect("proctor can be signalled");
    }

    /// Waits for the end, and checks that no process is left.
    pub fn finish(mut self) -> SessionOutcome {
        let (code, peak_kib) = watch(&mut self.child, self.bound);
        let left = survivors(&self.mark);
        assert!(left.is_empty(), "processes are left: {left:?}");
        let stdout = self.stdout.join().expect("stdout is read");
        let stderr = self.stderr.join().expect("stderr is read");
        SessionOutcome {
            code,
            stdout,
            stderr,
            peak_kib,
            events: read(&self.record),
            record: self.record,
            folder: self.folder,
        }
    }
}

impl SessionOutcome {
    /// Returns the recorded messages.
    pub fn frames(&self) -> impl Iterator<Item = &Frame> {
        self.events.iter().filter_map(|event| match &event.event {
            EventKind::Frame(frame) => Some(frame),
            _ => None,
        })
    }

    /// Returns how many findings of a kind there are.
    pub fn found(&self, kind: FindingKind) -> u64 {
        let counts = self.events.iter().filter_map(|event| match &event.event {
            EventKind::Finding(finding) if finding.kind == kind => Some(finding.count),
            _ => None,
        });
        counts.sum()
    }

    /// Returns all recorded messages of one direction, with a newline after each.
    pub fn lines(&self, direction: Direction) -> Vec<u8> {
        let mut bytes = Vec::new();
        for message in self.messages(direction) {
            bytes.extend_from_slice(&message);
            bytes.push(b'\n');
        }
        bytes
    }

    /// Returns the messages of one direction.
    pub fn messages(&self, direction: Direction) -> Vec<Vec<u8>> {
        let run = RunReader::open(&self.record).expect("the record can be read");
        let frames = self.frames().filter(|frame| frame.direction == direction);
        let bodies = frames.map(|frame| run.body_bytes(&frame.body).expect("a body can be read"));
        bodies
            .map(|body| body.expect("the record has the message").into_owned())
            .collect()
    }

    /// Returns the outcome of the trial, if its record has one.
    pub fn outcome(&self) -> Option<Outcome> {
        match self.events.last().map(|e| &e.event) {
            Some(EventKind::TrialEnded(ended)) => Some(ended.outcome),
            _ => None,
        }
    }

    /// Whether the trial's record has an end.
    pub fn has_ended(&self) -> bool {
        self.outcome().is_some()
    }
}

/// Reads the events of the only trial, which must parse.
fn read(record: &Path) -> Vec<Event> {
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

fn drain(stream: Option<impl Read + Send + 'static>) -> JoinHandle<String> {
    let mut stream = stream.expect("the stream is piped");
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        stream
            .read_to_end(&mut bytes)
            .expect("the stream can be read");
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

/// Waits for the end, and measures the memory meanwhile.
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

/// Returns the peak memory of a process, in KiB.
pub fn peak_kib(pid: u32) -> Option<u64> {
    status_kib(pid, "VmHWM:")
}

/// Returns the peak memory of a process without the pages of its program, which a build makes larger or smaller.
pub fn own_peak_kib(pid: u32) -> Option<u64> {
    peak_kib(pid)?.checked_sub(status_kib(pid, "RssFile:")?)
}

fn status_kib(pid: u32, name: &str) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find(|line| line.starts_with(name))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

/// Returns the processes that carry a mark, after some time for those that are ending: a guard
/// whose Proctor was killed gives its server two seconds.
pub fn survivors(mark: &str) -> Vec<String> {
    let wanted = format!("{MARK}={mark}");
    let deadline = Instant::now() + Duration::from_mins(3);
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
