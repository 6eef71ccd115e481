//! A model on loopback with given replies, which misbehaves on demand.
//!
//! Its main type is [`FixtureModel`]. It serves the APIs of OpenAI, Anthropic and Google on bytes,
//! in this process, and stores every request.

pub mod says;

use std::collections::VecDeque;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use serde_json::Value;

/// How long a fixture that never answers keeps a connection open.
const FOR_EVER: Duration = Duration::from_mins(10);

/// The reaction of the fixture to a request.
#[derive(Debug, Clone)]
pub enum FixtureReply {
    Says {
        status: u16,
        /// Headers besides the usual ones.
        headers: Vec<(String, String)>,
        body: Vec<u8>,
    },
    Reset,
    /// Closes the connection in the middle of this body.
    Cut(Vec<u8>),
    /// Starts this body, and never ends it.
    Stalls(Vec<u8>),
    Never,
    /// A body of this many bytes, which is valid JSON as far as it goes.
    Huge(u64),
}

impl FixtureReply {
    /// Returns a reply with this JSON.
    pub fn json(status: u16, body: &Value) -> Self {
        Self::text(status, &body.to_string())
    }

    /// Returns a reply with this text.
    pub fn text(status: u16, body: &str) -> Self {
        Self::Says {
            status,
            headers: Vec::new(),
            body: body.as_bytes().to_vec(),
        }
    }

    /// Adds a header.
    #[must_use]
    pub fn with(mut self, name: &str, value: &str) -> Self {
        if let Self::Says { headers, .. } = &mut self {
            headers.push((name.to_owned(), value.to_owned()));
        }
        self
    }
}

/// A request that the fixture received.
#[derive(Debug, Clone)]
pub struct Question {
    pub path: String,
    /// The request line and the headers as received.
    pub head: String,
    pub body: Value,
}

pub struct FixtureModel {
    url: String,
    told: Arc<FixtureModelState>,
}

#[derive(Default)]
struct FixtureModelState {
    answers: Mutex<VecDeque<FixtureReply>>,
    questions: Mutex<Vec<Question>>,
    decide: Option<Decision>,
}

/// Decides on the reply to a request. It may wait.
type Decision = Box<dyn Fn() -> FixtureReply + Send + Sync>;

impl FixtureModel {
    /// Starts a model that gives these replies in order, and then refuses.
    pub fn start(answers: impl IntoIterator<Item = FixtureReply>) -> Self {
        Self::serve(FixtureModelState {
            answers: Mutex::new(answers.into_iter().collect()),
            ..FixtureModelState::default()
        })
    }

    /// Starts a model whose replies a function decides. The function may wait, and runs for several requests at once.
    pub fn answering(decide: impl Fn() -> FixtureReply + Send + Sync + 'static) -> Self {
        Self::serve(FixtureModelState {
            decide: Some(Box::new(decide)),
            ..FixtureModelState::default()
        })
    }

    fn serve(told: FixtureModelState) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("loopback has a free port");
        let address = listener.local_addr().expect("a listener has an address");
        let told = Arc::new(told);
        let shared = told.clone();
        // The thread ends with the test process.
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let told = shared.clone();
                thread::spawn(move || told.serve(stream));
            }
        });
        Self {
            url: format!("http://{address}"),
            told,
        }
    }

    /// Returns `http://127.0.0.1:PORT`; Chat Completions are below `/v1`.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Returns the requests so far.
    pub fn questions(&self) -> Vec<Question> {
        lock(&self.told.questions).clone()
    }
}

impl FixtureModelState {
    fn serve(&self, stream: TcpStream) -> io::Result<()> {
        let mut reader = BufReader::new(stream);
        loop {
            let mut head = String::new();
            while !head.ends_with("\r\n\r\n") {
                if reader.read_line(&mut head)? == 0 {
                    return Ok(());
                }
            }
            let answer = lock(&self.answers).pop_front();
            if matches!(answer, Some(FixtureReply::Reset)) {
                // Unread input makes the close a reset.
                return Ok(());
            }
            let length = head.lines().find_map(|line| {
                let (name, value) = line.split_once(':')?;
                let is_length = name.eq_ignore_ascii_case("content-length");
                is_length.then(|| value.trim().parse().ok())?
            });
            let mut body = vec![0; length.unwrap_or(0)];
            reader.read_exact(&mut body)?;
            let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
            let is_known = [
                "/chat/completions",
                "/responses",
                "/messages",
                ":generateContent",
                ":rawPredict",
            ]
            .iter()
            .any(|end| path.starts_with("/v1") && path.ends_with(end));
            lock(&self.questions).push(Question {
                path,
                head,
                body: serde_json::from_slice(&body).unwrap_or_default(),
            });
            let none =
                || FixtureReply::text(404, r#"{"error":{"message":"the fixture has no answer"}}"#);
            let answer = self.decide.as_ref().map(|decide| decide()).or(answer);
            let answer = answer.filter(|_| is_known).unwrap_or_else(none);
            if !give(reader.get_mut(), &answer)? {
                return Ok(());
            }
        }
    }
}

/// Sends a reply; returns whether the connection can be reused.
fn give(to: &mut TcpStream, answer: &FixtureReply) -> io::Result<bool> {
    match answer {
        FixtureReply::Says {
            status,
            headers,
            body,
        } => {
            let mut head = head(*status, body.len() as u64);
            for (name, value) in headers {
                head.push_str(&format!("{name}: {value}\r\n"));
            }
            to.write_all(format!("{head}\r\n").as_bytes())?;
            to.write_all(body)?;
            Ok(true)
        }
        FixtureReply::Cut(body) | FixtureReply::Stalls(body) => {
            let head = head(200, body.len() as u64);
            to.write_all(format!("{head}\r\n").as_bytes())?;
            to.write_all(&body[..body.len() / 2])?;
            if matches!(answer, FixtureReply::Stalls(_)) {
                thread::sleep(FOR_EVER);
            }
            Ok(false)
        }
        FixtureReply::Huge(bytes) => {
            to.write_all(format!("{}\r\n\"", head(200, *bytes + 2)).as_bytes())?;
            io::copy(&mut io::repeat(b'x').take(*bytes), to)?;
            to.write_all(b"\"")?;
            Ok(true)
        }
        FixtureReply::Never => {
            thread::sleep(FOR_EVER);
            Ok(false)
        }
        FixtureReply::Reset => Ok(false),
    }
}

fn head(status: u16, length: u64) -> String {
    format!("HTTP/1.1 {status} X\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n")
}

fn lock<T>(what: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    what.lock().unwrap_or_else(PoisonError::into_inner)
}
