//! Whether a secret is anywhere near an agent, while it works: in the environment or on the command line
//! of any process under Proctor, or in a file of a folder.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// Looks again and again until it is asked what it saw.
pub(crate) struct Search {
    done: Arc<AtomicBool>,
    looking: JoinHandle<SecretScan>,
}

/// What was looked at, and where the secret was.
#[derive(Debug, Default)]
pub(crate) struct SecretScan {
    pub(crate) programs: Vec<String>,
    pub(crate) files: usize,
    pub(crate) leaks: Vec<String>,
}

impl Search {
    /// Looks under a process, and in a folder.
    pub(crate) fn start(root: u32, folder: &Path, secret: &'static str) -> Self {
        let done = Arc::new(AtomicBool::new(false));
        let (is_done, folder) = (done.clone(), folder.to_owned());
        let looking = std::thread::spawn(move || {
            let mut found = SecretScan::default();
            while !is_done.load(Ordering::Relaxed) {
                found.look_at_processes(root, secret);
                found.look_at_files(&folder, secret);
                std::thread::sleep(Duration::from_millis(50));
            }
            found
        });
        Self { done, looking }
    }

    /// Ends it.
    pub(crate) fn end(self) -> SecretScan {
        self.done.store(true, Ordering::Relaxed);
        self.looking.join().expect("it looks to the end")
    }
}

impl SecretScan {
    fn look_at_processes(&mut self, root: u32, secret: &str) {
        let of =
            |pid: u32, file: &str| std::fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default();
        let own = of(root, "cmdline");
        for pid in descendants(root) {
            let read = |file: &str| of(pid, file);
            // Proctor itself, on its way to become another program.
            if read("cmdline") == own {
                continue;
            }
            let line = String::from_utf8_lossy(&read("cmdline")).replace('\0', " ");
            for file in ["environ", "cmdline"] {
                if String::from_utf8_lossy(&read(file)).contains(secret) {
                    self.leaks.push(format!("{file} of `{line}`"));
                }
            }
            if !line.is_empty() && !self.programs.contains(&line) {
                self.programs.push(line);
            }
        }
    }

    pub(crate) fn look_at_files(&mut self, folder: &Path, secret: &str) {
        let files = files_in(folder);
        self.files = self.files.max(files.len());
        for path in files {
            let bytes = std::fs::read(&path).unwrap_or_default();
            if memmem(&bytes, secret.as_bytes()) {
                self.leaks.push(path.display().to_string());
            }
        }
    }
}

fn memmem(bytes: &[u8], wanted: &[u8]) -> bool {
    bytes.windows(wanted.len()).any(|window| window == wanted)
}

/// The files below a folder; links are not followed.
fn files_in(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    for entry in entries {
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => files.extend(files_in(&entry.path())),
            Ok(kind) if kind.is_file() => files.push(entry.path()),
            _ => {}
        }
    }
    files
}

/// The processes that a process has started, and those that they have.
fn descendants(root: u32) -> Vec<u32> {
    let mut children: HashMap<u32, Vec<u32>> = HashMap::new();
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    for pid in entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()) {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let parent = stat
            .rsplit_once(')')
            .and_then(|(_, rest)| rest.split(' ').nth(2)?.parse().ok());
        if let Some(parent) = parent {
            children.entry(parent).or_default().push(pid);
        }
    }
    let mut all = Vec::new();
    let mut next = vec![root];
    while let Some(pid) = next.pop() {
        let born = children.remove(&pid).unwrap_or_default();
        next.extend(&born);
        all.extend(born);
    }
    all
}
