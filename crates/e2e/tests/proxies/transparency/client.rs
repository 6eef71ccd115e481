//! A client on bytes: it sends the texts of a script as they are, and keeps what comes as it came.

use std::io::{BufRead, BufReader, Write};
use std::net::{Shutdown, TcpStream};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::super::packages::wait;
use super::super::ways::Door;
use super::http::{Response, ask};

/// How long a server may take to end.
const END: Duration = Duration::from_mins(3);

/// A message of a script. The next round of a call needs what the round before it said.
pub enum Step {
    /// This text.
    Send(&'static str),
    /// What is made of the answer before.
    Then(fn(&Value) -> String),
}

/// What was sent and what came, in the order of each.
#[derive(Debug, Default, Clone, PartialEq)]
pub struct ClientTrace {
    pub sent: Vec<String>,
    pub came: Vec<String>,
    /// The answer that came last.
    last: Value,
}

/// Plays a script through a door. Of what a server says beside its answers, so many messages are waited for.
pub fn play(door: &Door, script: &[Step], folder: &Path, wanted: usize) -> ClientTrace {
    let mut line = match door {
        Door::Command(words) => Line::start(words, folder),
        Door::Http { url, headers } => Line::Http(Http {
            url: url.clone(),
            headers: headers.clone(),
            aside: None,
        }),
        Door::Sse { url, headers } => Line::Older(SseLine::open(url, headers)),
    };
    let mut talk = ClientTrace::default();
    for step in script {
        let text = match step {
            Step::Send(text) => (*text).to_owned(),
            Step::Then(make) => make(&talk.last),
        };
        line.exchange(text, &mut talk);
    }
    line.end(&mut talk, wanted);
    talk
}

enum Line {
    Stdio {
        child: Child,
        stdin: ChildStdin,
        stdout: BufReader<ChildStdout>,
    },
    Http(Http),
    Older(SseLine),
}

/// The older HTTP: a stream, and the address that it announced.
pub struct SseLine {
    stream: Response,
    address: String,
}

impl SseLine {
    pub fn open(url: &str, headers: &[(String, String)]) -> Self {
        let mut stream = ask("GET", url, headers, "");
        let announced = stream.next().expect("an address is announced");
        let (address, _) = url["http://".len()..].split_once('/').expect("a path");
        let address = if announced.starts_with('/') {
            format!("http://{address}{announced}")
        } else {
            announced
        };
        Self { stream, address }
    }

    /// Posts a message.
    pub fn post(&self, text: &str) {
        drop(ask("POST", &self.address, &[], text));
    }

    /// The next message on the stream.
    pub fn next(&mut self) -> Option<String> {
        self.stream.next()
    }

    fn exchange(&mut self, text: String, asked: &ParsedRequest, talk: &mut ClientTrace) {
        self.post(&text);
        talk.sent.push(text);
        let mut is_open = asked.method.is_some() && asked.id.is_some();
        while is_open {
            let came = self.next().expect("an answer comes");
            let understood = ParsedRequest::read(&came);
            talk.came.push(came);
            if let Some(reply) = understood.reply() {
                self.post(&reply);
                talk.sent.push(reply);
            } else if understood.method.is_none() && understood.id == asked.id {
                talk.last = understood.value;
                is_open = false;
            }
        }
    }
}

#[derive(Clone)]
struct Http {
    url: String,
    headers: Vec<(String, String)>,
    aside: Option<Arc<SideStream>>,
}

/// The stream that a session has besides.
struct SideStream {
    talk: Mutex<ClientTrace>,
    connection: TcpStream,
}

/// A message, as far as the client understands it.
struct ParsedRequest {
    id: Option<Value>,
    method: Option<String>,
    value: Value,
}

impl ParsedRequest {
    fn read(text: &str) -> Self {
        // What is no JSON has neither.
        let value: Value = serde_json::from_str(text).unwrap_or_default();
        Self {
            id: value.get("id").cloned(),
            method: value["method"].as_str().map(str::to_owned),
            value,
        }
    }

    /// What a server's request is answered with: odd, but right.
    fn reply(&self) -> Option<String> {
        let id = self.id.as_ref()?;
        let result = match self.method.as_deref()? {
            "elicitation/create" => {
                r#""result":{"content":{"name":"A\u0064a","x":1E+2},  "action":"accept"}"#
            }
            "sampling/createMessage" => {
                r#""result":{"model":"m","role":"assistant","content":{"text":"\u00fc","type":"text"}, "y":-0}"#
            }
            _ => r#""error": {"message":"what?","code":-32601,"data":[ ]}"#,
        };
        Some(format!(r#"{{ {result} ,"id":{id},"jsonrpc":"2.0"}}"#))
    }
}

impl Line {
    fn start(words: &[String], folder: &Path) -> Self {
        let mut child = Command::new(&words[0])
            .args(&words[1..])
            .current_dir(folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the server starts");
        let stdin = child.stdin.take().expect("stdin is piped");
        let stdout = BufReader::new(child.stdout.take().expect("stdout is piped"));
        Self::Stdio {
            child,
            stdin,
            stdout,
        }
    }

    /// Sends a message, and takes what comes until it is answered.
    fn exchange(&mut self, text: String, talk: &mut ClientTrace) {
        let asked = ParsedRequest::read(&text);
        let is_request = asked.method.is_some() && asked.id.is_some();
        match self {
            Self::Stdio { stdin, stdout, .. } => {
                writeln!(stdin, "{text}").expect("a line can be written");
                talk.sent.push(text);
                let mut is_open = is_request;
                while is_open {
                    let came = next_line(stdout).expect("an answer comes");
                    let understood = ParsedRequest::read(&came);
                    talk.came.push(came);
                    if let Some(reply) = understood.reply() {
                        writeln!(stdin, "{reply}").expect("a line can be written");
                        talk.sent.push(reply);
                    } else if understood.method.is_none() && understood.id == asked.id {
                        talk.last = understood.value;
                        is_open = false;
                    }
                }
            }
            Self::Http(http) => http.exchange(text, &asked, talk),
            Self::Older(older) => older.exchange(text, &asked, talk),
        }
    }

    fn end(self, talk: &mut ClientTrace, wanted: usize) {
        match self {
            Self::Stdio {
                mut child,
                stdin,
                mut stdout,
            } => {
                drop(stdin);
                while let Some(came) = next_line(&mut stdout) {
                    talk.came.push(came);
                }
                assert!(wait(&mut child, END).is_some(), "the server does not end");
            }
            Self::Http(http) => http.end(talk, wanted),
            Self::Older(mut older) => {
                while talk.came.len() < wanted {
                    let came = older
                        .stream
                        .next()
                        .expect("as much comes as without a proxy");
                    talk.came.push(came);
                }
            }
        }
    }
}

impl Http {
    fn exchange(&mut self, text: String, asked: &ParsedRequest, talk: &mut ClientTrace) {
        let mut headers = self.headers.clone();
        let is_stateless = text.contains("2026-07-28");
        if let Some(method) = asked.method.as_ref().filter(|_| is_stateless) {
            headers.push(("mcp-protocol-version".to_owned(), "2026-07-28".to_owned()));
            headers.push(("mcp-method".to_owned(), method.clone()));
            if let Some(name) = asked.value["params"]["name"].as_str() {
                headers.push(("mcp-name".to_owned(), name.to_owned()));
            }
        }
        let mut response = ask("POST", &self.url, &headers, &text);
        talk.sent.push(text);
        while let Some(came) = response.next() {
            let understood = ParsedRequest::read(&came);
            talk.came.push(came);
            if let Some(reply) = understood.reply() {
                drop(ask("POST", &self.url, &self.headers, &reply));
                talk.sent.push(reply);
            } else if understood.method.is_none() {
                talk.last = understood.value;
            }
        }
        if let Some(session) = response
            .header("mcp-session-id")
            .filter(|_| self.aside.is_none())
        {
            self.headers.push(("mcp-session-id".to_owned(), session));
            self.listen();
        }
    }

    /// Opens the stream that a session has besides, and answers what is asked there.
    fn listen(&mut self) {
        let mut stream = ask("GET", &self.url, &self.headers, "");
        let aside = Arc::new(SideStream {
            talk: Mutex::default(),
            connection: stream.connection(),
        });
        let (http, heard) = (self.clone(), aside.clone());
        std::thread::spawn(move || {
            while let Some(came) = stream.next() {
                let reply = ParsedRequest::read(&came).reply();
                if let Some(reply) = &reply {
                    drop(ask("POST", &http.url, &http.headers, reply));
                }
                let mut talk = heard.talk.lock().expect("nobody panicked");
                talk.came.push(came);
                talk.sent.extend(reply);
            }
        });
        self.aside = Some(aside);
    }

    fn end(self, talk: &mut ClientTrace, wanted: usize) {
        let Some(aside) = self.aside else { return };
        let deadline = Instant::now() + END;
        let so_far = || aside.talk.lock().expect("nobody panicked").clone();
        while talk.came.len() + so_far().came.len() < wanted && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(5));
        }
        drop(ask("DELETE", &self.url, &self.headers, ""));
        // It may have ended with the session.
        let _ = aside.connection.shutdown(Shutdown::Both);
        let aside = so_far();
        talk.came.extend(aside.came);
        talk.sent.extend(aside.sent);
    }
}

fn next_line(stdout: &mut BufReader<ChildStdout>) -> Option<String> {
    let mut line = Vec::new();
    stdout
        .read_until(b'\n', &mut line)
        .expect("a line can be read");
    let line = line.strip_suffix(b"\n").unwrap_or(&line).to_vec();
    let line = String::from_utf8(line).expect("the script has text only");
    Some(line).filter(|line| !line.is_empty())
}
