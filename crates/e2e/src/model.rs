//! A model on loopback that says what it is told to, and misbehaves on demand.
//!
//! Its main type is [`FixtureModel`]. It serves OpenAI's Chat Completions and Anthropic's Messages on
//! bytes, in this process, and keeps every question.

pub mod caller;
pub mod says;

use std::collections::VecDeque;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use serde_json::Value;

/// How long a fixture that never answers keeps a connection.
const FOR_EVER: Duration = Duration::from_secs(30);

/// What the fixture does with a question.
#[derive(Debug, Clone)]
pub enum Answer {
    /// Answers.
    Says {
        /// The status.
        status: u16,
        /// Headers besides the usual ones.
        headers: Vec<(String, String)>,
        /// The body.
        body: Vec<u8>,
    },
    /// Resets the connection.
    Reset,
    /// Closes the connection in the middle of this body.
    Cut(Vec<u8>),
    /// Begins this body, and never ends it.
    Stalls(Vec<u8>),
    /// Never answers.
    Never,
    /// A body of so many bytes, which is JSON as far as it goes.
    Huge(u64),
}

impl Answer {
    /// This JSON.
    pub fn json(status: u16, body: &Value) -> Self {
        Self::text(status, &body.to_string())
    }

    /// This text.
    pub fn text(status: u16, body: &str) -> Self {
        Self::Says {
            status,
            headers: Vec::new(),
            body: body.as_bytes().to_vec(),
        }
    }

    /// With a header.
    #[must_use]
    pub fn with(mut self, name: &str, value: &str) -> Self {
        if let Self::Says { headers, .. } = &mut self {
            headers.push((name.to_owned(), value.to_owned()));
        }
        self
    }
}

/// A question that came.
#[derive(Debug, Clone)]
pub struct Question {
    /// The path.
    pub path: String,
    /// The request line and the headers as they came.
    pub head: String,
    /// The body.
    pub body: Value,
}

/// A model on loopback.
pub struct FixtureModel {
    url: String,
    told: Arc<Told>,
}

struct Told {
    plan: Plan,
    questions: Mutex<Vec<Question>>,
}

/// Where answers come from.
enum Plan {
    /// From a list, one after the other.
    Listed(Mutex<VecDeque<Answer>>),
    /// From the question.
    Thought(Box<dyn Fn(&Question) -> Answer + Send + Sync>),
}

impl FixtureModel {
    /// Starts a model that gives these answers, one after the other, and refuses afterwards.
    pub fn start(answers: impl IntoIterator<Item = Answer>) -> Self {
        Self::with(Plan::Listed(Mutex::new(answers.into_iter().collect())))
    }

    /// Starts a model that thinks about each question: agents ask more often than one would guess.
    pub fn thinking(think: impl Fn(&Question) -> Answer + Send + Sync + 'static) -> Self {
        Self::with(Plan::Thought(Box::new(think)))
    }

    fn with(plan: Plan) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("loopback has a free port");
        let address = listener.local_addr().expect("a listener has an address");
        let told = Arc::new(Told {
            plan,
            questions: Mutex::default(),
        });
        let shared = told.clone();
        // It ends with the test's process.
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

    /// `http://127.0.0.1:PORT`; Chat Completions are below `/v1`.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The questions so far.
    pub fn questions(&self) -> Vec<Question> {
        lock(&self.told.questions).clone()
    }
}

impl Told {
    fn serve(&self, stream: TcpStream) -> io::Result<()> {
        let mut reader = BufReader::new(stream);
        loop {
            let mut head = String::new();
            while !head.ends_with("\r\n\r\n") {
                if reader.read_line(&mut head)? == 0 {
                    return Ok(());
                }
            }
            let answer = match &self.plan {
                Plan::Listed(answers) => lock(answers).pop_front(),
                Plan::Thought(_) => None,
            };
            if matches!(answer, Some(Answer::Reset)) {
                // What was not read makes the close a reset.
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
            let route = path.split('?').next().unwrap_or_default();
            let is_known = ["/v1/chat/completions", "/v1/messages"].contains(&route);
            let question = Question {
                path,
                head,
                body: serde_json::from_slice(&body).unwrap_or_default(),
            };
            let answer = match &self.plan {
                Plan::Thought(think) => Some(think(&question)),
                Plan::Listed(_) => answer,
            };
            lock(&self.questions).push(question);
            let none = || Answer::text(404, r#"{"error":{"message":"the fixture has no answer"}}"#);
            let answer = answer.filter(|_| is_known).unwrap_or_else(none);
            if !give(reader.get_mut(), &answer)? {
                return Ok(());
            }
        }
    }
}

/// Gives an answer; says whether the connection can be used again.
fn give(to: &mut TcpStream, answer: &Answer) -> io::Result<bool> {
    match answer {
        Answer::Says {
            status,
            headers,
            body,
        } => {
            let mut head = head(*status, body.len() as u64);
            if body.starts_with(b"event:") || body.starts_with(b"data:") {
                head = head.replace("application/json", "text/event-stream");
            }
            for (name, value) in headers {
                head.push_str(&format!("{name}: {value}\r\n"));
            }
            to.write_all(format!("{head}\r\n").as_bytes())?;
            to.write_all(body)?;
            Ok(true)
        }
        Answer::Cut(body) | Answer::Stalls(body) => {
            let head = head(200, body.len() as u64);
            to.write_all(format!("{head}\r\n").as_bytes())?;
            to.write_all(&body[..body.len() / 2])?;
            if matches!(answer, Answer::Stalls(_)) {
                thread::sleep(FOR_EVER);
            }
            Ok(false)
        }
        Answer::Huge(bytes) => {
            to.write_all(format!("{}\r\n\"", head(200, *bytes + 2)).as_bytes())?;
            io::copy(&mut io::repeat(b'x').take(*bytes), to)?;
            to.write_all(b"\"")?;
            Ok(true)
        }
        Answer::Never => {
            thread::sleep(FOR_EVER);
            Ok(false)
        }
        Answer::Reset => Ok(false),
    }
}

fn head(status: u16, length: u64) -> String {
    format!("HTTP/1.1 {status} X\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n")
}

fn lock<T>(what: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    what.lock().unwrap_or_else(PoisonError::into_inner)
}
