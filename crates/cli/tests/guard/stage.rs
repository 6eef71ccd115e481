//! A place to start hostile programs in, which can tell whether anything of them is left.

use std::process::Stdio;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};
#[cfg(target_os = "linux")]
use std::{fs, path::Path};

use proctor_contain::process::{Process, Spawn};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};
use tokio::process::{Child, Command};
use tokio::time::{sleep, timeout};

/// Far more than anything here takes, even on a busy machine.
pub const LIMIT: Duration = Duration::from_mins(3);

const MARKER: &str = "PROCTOR_GUARD_TEST";

/// Marks all that is started on it by an environment variable, which descendants inherit.
pub struct Stage {
    mark: String,
    pub folder: TempDir,
}

impl Stage {
    pub fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        Self {
            mark: format!("{}-{number}", std::process::id()),
            folder: tempfile::tempdir().expect("a folder"),
        }
    }

    /// A program, with a short grace.
    pub fn spawn(&self, program: &str, args: &[&str]) -> Spawn {
        let path = std::env::var("PATH").expect("a PATH");
        let env = [("PATH", path.as_str()), (MARKER, self.mark.as_str())];
        Spawn {
            program: program.into(),
            args: args.iter().map(Into::into).collect(),
            env: env.map(|(name, value)| (name.into(), value.into())).into(),
            folder: self.folder.path().to_owned(),
            guard: env!("CARGO_BIN_EXE_proctor").into(),
            grace: Duration::from_millis(50),
        }
    }

    /// A shell script under its guard.
    pub fn script(&self, script: &str) -> Process {
        self.spawn("sh", &["-c", script])
            .start()
            .expect("a shell starts")
    }

    /// A shell that stands for Proctor, as one that can be killed. In its script, `$GUARD` is followed
    /// by a program.
    pub fn stand_in(&self, script: &str) -> Child {
        let guard = env!("CARGO_BIN_EXE_proctor");
        Command::new("sh")
            .args(["-c", script])
            .env(MARKER, &self.mark)
            .env("GUARD", format!("{guard} __guard --grace-ms 50"))
            .current_dir(self.folder.path())
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .expect("a shell starts")
    }

    /// Whether a script has made this file.
    pub fn has(&self, name: &str) -> bool {
        self.folder.path().join(name).exists()
    }

    /// The pids of what is still there: all that is started on a stage works in its folder.
    #[cfg(not(target_os = "linux"))]
    pub fn left(&self) -> Vec<String> {
        let mut lsof = std::process::Command::new("lsof");
        let listed = lsof.arg("-t").arg("+d").arg(self.folder.path()).output();
        let listed = String::from_utf8(listed.expect("lsof").stdout).expect("pids");
        listed.lines().map(ToOwned::to_owned).collect()
    }

    /// The command lines of what is still there.
    #[cfg(target_os = "linux")]
    pub fn left(&self) -> Vec<String> {
        let mark = format!("{MARKER}={}", self.mark);
        let processes = fs::read_dir("/proc").expect("/proc").flatten();
        let marked = processes.filter(|process| {
            let environ = fs::read(process.path().join("environ")).unwrap_or_default();
            let in_environment = environ
                .split(|byte| *byte == 0)
                .any(|entry| entry == mark.as_bytes());
            in_environment || command_line(&process.path()).contains(&self.sleeper())
        });
        marked
            .map(|process| command_line(&process.path()))
            .collect()
    }

    /// The name of a program that is marked by its name, for those that clear their environment.
    pub fn sleeper(&self) -> String {
        format!("sleeper-{}.", self.mark)
    }

    /// Makes `sleep` available under the name of [`Self::sleeper`] in the folder.
    pub fn with_sleeper(self) -> Self {
        let path = std::env::var("PATH").expect("a PATH");
        let mut folders = std::env::split_paths(&path);
        let sleep = folders.find_map(|folder| folder.join("sleep").canonicalize().ok());
        let link = self.folder.path().join(self.sleeper());
        std::os::unix::fs::symlink(sleep.expect("a sleep"), link).expect("a link");
        self
    }

    /// Waits until nothing is left. Looks twice, since a process has no environment for an instant
    /// while it is being replaced.
    pub async fn clears(&self) {
        for _ in 0..2 {
            until("all has ended", || self.left().is_empty()).await;
            sleep(Duration::from_millis(10)).await;
        }
        assert_eq!(self.left(), [""; 0]);
    }
}

#[cfg(target_os = "linux")]
fn command_line(process: &Path) -> String {
    let line = fs::read(process.join("cmdline")).unwrap_or_default();
    format!("{}: {}", process.display(), String::from_utf8_lossy(&line))
}

/// Waits until something holds.
pub async fn until(what: &str, holds: impl Fn() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < LIMIT, "{what}: not in time");
        sleep(Duration::from_millis(5)).await;
    }
}

/// The next line of a stream, without its end.
pub async fn line(stream: impl AsyncRead + Unpin) -> String {
    let mut line = String::new();
    let mut stream = BufReader::with_capacity(1, stream);
    timeout(LIMIT, stream.read_line(&mut line))
        .await
        .expect("a line in time")
        .expect("a line");
    line.trim_end().to_owned()
}
