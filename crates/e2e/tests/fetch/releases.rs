//! A server with releases, as GitHub Enterprise or a mirror has them.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;

/// What the server has at a path.
#[derive(Clone)]
pub enum Served {
    Body(Vec<u8>),
    /// The head says how long the body is, and the connection ends before that.
    Cut(Vec<u8>),
    Redirect(String),
    /// The head, and then nothing.
    Stalled,
}

#[derive(Default)]
struct Shared {
    paths: Mutex<BTreeMap<String, Served>>,
    asked: Mutex<Vec<String>>,
    heard: Condvar,
}

pub struct Releases {
    pub url: String,
    shared: Arc<Shared>,
}

impl Releases {
    pub fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let shared = Arc::new(Shared::default());
        let state = shared.clone();
        // The thread ends with the test process.
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let state = state.clone();
                thread::spawn(move || state.serve(stream));
            }
        });
        Self { url, shared }
    }

    pub fn put(&self, path: &str, served: Served) {
        self.shared
            .paths
            .lock()
            .unwrap()
            .insert(path.to_owned(), served);
    }

    pub fn remove(&self, path: &str) {
        self.shared.paths.lock().unwrap().remove(path);
    }

    pub fn served(&self, path: &str) -> Option<Served> {
        self.shared.paths.lock().unwrap().get(path).cloned()
    }

    /// The paths that were asked for.
    pub fn asked(&self) -> Vec<String> {
        self.shared.asked.lock().unwrap().clone()
    }

    /// Waits for the first request.
    pub fn wait(&self) {
        let mut asked = self.shared.asked.lock().unwrap();
        while asked.is_empty() {
            asked = self.shared.heard.wait(asked).unwrap();
        }
    }
}

impl Shared {
    fn serve(&self, stream: TcpStream) {
        let mut stream = BufReader::new(stream);
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            if stream.read_line(&mut head).unwrap_or(0) == 0 {
                return;
            }
        }
        let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
        let served = self.paths.lock().unwrap().get(&path).cloned();
        let stream = stream.get_mut();
        let ok = |length: usize| {
            format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n")
        };
        let (head, body) = match served {
            None => (
                "HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
                    .to_owned(),
                Vec::new(),
            ),
            Some(Served::Body(body)) => (ok(body.len()), body),
            Some(Served::Cut(body)) => (ok(body.len() + 1), body),
            Some(Served::Stalled) => (ok(1), Vec::new()),
            Some(Served::Redirect(to)) => (
                format!(
                    "HTTP/1.1 302 Found\r\nlocation: {to}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
                ),
                Vec::new(),
            ),
        };
        let is_stalled = matches!(self.paths.lock().unwrap().get(&path), Some(Served::Stalled));
        // The client may leave early.
        let _ = stream
            .write_all(head.as_bytes())
            .and_then(|()| stream.write_all(&body));
        self.asked.lock().unwrap().push(path);
        self.heard.notify_all();
        if is_stalled {
            // Until the client closes the connection.
            let _ = std::io::copy(stream, &mut std::io::sink());
        }
    }
}

/// A ZIP archive with one program, written by another program than Proctor.
pub fn zip(name: &str, content: &[u8]) -> Vec<u8> {
    const SCRIPT: &str = "import io, sys, zipfile
info = zipfile.ZipInfo(sys.argv[1])
info.create_system = 3
info.external_attr = 0o100755 << 16
info.compress_type = zipfile.ZIP_DEFLATED
out = io.BytesIO()
with zipfile.ZipFile(out, 'w') as archive:
    archive.writestr(info, sys.stdin.buffer.read())
sys.stdout.buffer.write(out.getvalue())";
    let mut python = Command::new("python3")
        .args(["-c", SCRIPT, name])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    python.stdin.take().unwrap().write_all(content).unwrap();
    let output = python.wait_with_output().unwrap();
    assert!(output.status.success());
    output.stdout
}
