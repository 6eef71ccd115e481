//! A client on a program's standard streams, which are whatever the test wants them to be.
//!
//! Its main type is [`StdioProgram`].

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

/// No test waits longer for anything.
pub const BOUND: Duration = Duration::from_mins(5);

/// What a program's stdin and stdout are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StdioKind {
    /// Pipes, as most clients give.
    Pipes,
    /// Socket pairs, as Node gives.
    Sockets,
}

/// A program that is talked to.
pub struct StdioProgram {
    pub child: Child,
    input: Option<Box<dyn Write + Send>>,
    output: Receiver<Vec<u8>>,
    read: Vec<u8>,
    errors: JoinHandle<Vec<u8>>,
}

/// What came of it.
#[derive(Debug, PartialEq, Eq)]
pub struct ProgramOutput {
    pub stdout: Vec<u8>,
    pub stderr: String,
    pub code: Option<i32>,
    pub signal: Option<i32>,
}

impl StdioProgram {
    pub fn start(mut command: Command, ends: StdioKind) -> Self {
        let (stdin, input): (Stdio, Box<dyn Write + Send>) = match ends {
            StdioKind::Pipes => {
                let (reader, writer) = std::io::pipe().expect("a pipe");
                (reader.into(), Box::new(writer))
            }
            StdioKind::Sockets => {
                let (theirs, ours) = UnixStream::pair().expect("sockets");
                (OwnedFd::from(theirs).into(), Box::new(ours))
            }
        };
        let (stdout, output): (Stdio, Box<dyn Read + Send>) = match ends {
            StdioKind::Pipes => {
                let (reader, writer) = std::io::pipe().expect("a pipe");
                (writer.into(), Box::new(reader))
            }
            StdioKind::Sockets => {
                let (theirs, ours) = UnixStream::pair().expect("sockets");
                (OwnedFd::from(theirs).into(), Box::new(ours))
            }
        };
        let command = command.stdin(stdin).stdout(stdout).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the program starts");
        // The command still has the program's ends of the streams.
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let stderr = child.stderr.take().expect("stderr is piped");
        Self {
            child,
            input: Some(input),
            output: read(output),
            read: Vec::new(),
            errors: std::thread::spawn(move || all(stderr)),
        }
    }

    /// Says something. A program that does not listen is its own business.
    pub fn say(&mut self, bytes: &[u8]) {
        let input = self.input.as_mut().expect("the input is open");
        let _ = input.write_all(bytes).and_then(|()| input.flush());
    }

    /// Waits until the program has said something; `false` if its stdout ended before.
    pub fn hears(&mut self, text: &str) -> bool {
        let deadline = Instant::now() + BOUND;
        let mut looked_at = 0;
        loop {
            let mut new = self.read[looked_at..].windows(text.len());
            if new.any(|part| part == text.as_bytes()) {
                return true;
            }
            looked_at = self.read.len().saturating_sub(text.len());
            let left = deadline.saturating_duration_since(Instant::now());
            match self.output.recv_timeout(left) {
                Ok(chunk) => self.read.extend(chunk),
                Err(RecvTimeoutError::Disconnected) => return false,
                Err(RecvTimeoutError::Timeout) => panic!("`{text}` was not said"),
            }
        }
    }

    /// Closes the program's stdin.
    pub fn close(&mut self) {
        self.input = None;
    }

    pub fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    pub fn signal(&self, signal: Signal) {
        kill_process(self.pid(), signal).expect("the program can be signalled");
    }

    /// Waits for the end of the program, and of all that it said.
    pub fn end(mut self) -> ProgramOutput {
        let deadline = Instant::now() + BOUND;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.output.recv_timeout(left) {
                Ok(chunk) => self.read.extend(chunk),
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => panic!("stdout has no end"),
            }
        }
        let status = ended(&mut self.child);
        // Held until here: whoever wants to see it close closes it.
        self.input = None;
        let stderr = self.errors.join().expect("stderr is read");
        ProgramOutput {
            stdout: self.read,
            stderr: String::from_utf8_lossy(&stderr).into_owned(),
            code: status.code(),
            signal: status.signal(),
        }
    }
}

/// Waits until a process has ended.
pub fn ended(child: &mut Child) -> std::process::ExitStatus {
    let deadline = Instant::now() + BOUND;
    loop {
        if let Some(status) = child.try_wait().expect("it can be waited for") {
            return status;
        }
        assert!(Instant::now() < deadline, "it does not end");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Waits until nothing more goes into a pipe that nobody reads.
pub fn full(pipe: impl AsFd) {
    let deadline = Instant::now() + BOUND;
    // Not every page of it is full.
    while rustix::io::ioctl_fionread(&pipe).expect("a pipe") < 60 << 10 {
        assert!(Instant::now() < deadline, "the pipe is not filled");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Runs a program on files.
pub fn on_files(mut command: Command, input: &[u8]) -> ProgramOutput {
    let folder = tempfile::tempdir().expect("a folder");
    let (from, to) = (folder.path().join("in"), folder.path().join("out"));
    std::fs::write(&from, input).expect("a file");
    let command = command
        .stdin(File::open(&from).expect("a file"))
        .stdout(File::create(&to).expect("a file"))
        .stderr(Stdio::piped());
    let mut child = command.spawn().expect("the program starts");
    let stderr = child.stderr.take().expect("stderr is piped");
    let errors = std::thread::spawn(move || all(stderr));
    let status = ended(&mut child);
    let stderr = errors.join().expect("stderr is read");
    ProgramOutput {
        stdout: std::fs::read(&to).expect("the file is there"),
        stderr: String::from_utf8_lossy(&stderr).into_owned(),
        code: status.code(),
        signal: status.signal(),
    }
}

fn read(mut stream: impl Read + Send + 'static) -> Receiver<Vec<u8>> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        let mut chunk = vec![0; 64 << 10];
        while let Ok(read @ 1..) = stream.read(&mut chunk) {
            if sender.send(chunk[..read].to_vec()).is_err() {
                return;
            }
        }
    });
    receiver
}

fn all(mut stream: impl Read) -> Vec<u8> {
    let mut bytes = Vec::new();
    // What came before a failure is enough.
    let _ = stream.read_to_end(&mut bytes);
    bytes
}
