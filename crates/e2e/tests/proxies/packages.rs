//! What `scripts/install-servers` installs, and our own programs that run on it.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// A file of the cache, found as `scripts/install-servers` finds the cache.
pub fn cached(path: &str) -> PathBuf {
    let variable = |name| {
        let value = std::env::var_os(name).filter(|value| !value.is_empty());
        value.map(PathBuf::from)
    };
    let cache = variable("PROCTOR_TEST_CACHE").unwrap_or_else(|| {
        let home = || variable("HOME").expect("there is a home").join(".cache");
        variable("XDG_CACHE_HOME")
            .unwrap_or_else(home)
            .join("proctor-tests")
    });
    let file = cache.join(path);
    let shown = file.display();
    assert!(
        file.exists(),
        "`{shown}` is missing; run `scripts/install-servers`"
    );
    file
}

/// The path of a file of the cache, as text.
pub fn program(path: &str) -> String {
    cached(path).display().to_string()
}

/// A folder with programs of ours in it, from which the SDKs can be imported.
pub fn folder(files: &[&str]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let modules = folder.path().join("node_modules");
    std::os::unix::fs::symlink(cached("clients/node_modules"), modules)
        .expect("a link can be made");
    let source = Path::new(env!("CARGO_MANIFEST_DIR"));
    for file in files {
        let name = Path::new(file).file_name().expect("a file has a name");
        std::fs::copy(source.join(file), folder.path().join(name)).expect("a file can be copied");
    }
    folder
}

/// Runs a program to its end. One that does not end is killed, and the test with it.
pub fn finish(command: &mut Command, bound: Duration) -> Output {
    let command = command.stdin(Stdio::null());
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let stdout = drain(child.stdout.take());
    let stderr = drain(child.stderr.take());
    let status = wait(&mut child, bound);
    let (stdout, stderr) = (stdout.join(), stderr.join());
    let stdout = stdout.expect("stdout is read");
    let stderr = stderr.expect("stderr is read");
    let Some(status) = status else {
        let (stdout, stderr) = (
            String::from_utf8_lossy(&stdout),
            String::from_utf8_lossy(&stderr),
        );
        panic!("it did not end within {bound:?}: {command:?}\n{stdout}\n{stderr}");
    };
    Output {
        status,
        stdout,
        stderr,
    }
}

/// Waits for the end of a program; kills it if that does not come.
pub fn wait(child: &mut Child, bound: Duration) -> Option<std::process::ExitStatus> {
    let deadline = Instant::now() + bound;
    loop {
        if let Some(status) = child.try_wait().expect("a child can be waited for") {
            return Some(status);
        }
        if Instant::now() > deadline {
            let _ = child.kill();
            let _ = child.wait();
            return None;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn drain(stream: Option<impl std::io::Read + Send + 'static>) -> std::thread::JoinHandle<Vec<u8>> {
    let mut stream = stream.expect("the stream is piped");
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        // What a program that was killed wrote is worth showing, too.
        let _ = stream.read_to_end(&mut bytes);
        bytes
    })
}
