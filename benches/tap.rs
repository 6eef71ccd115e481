//! One call through everything that can stand between an agent and a server, beside a plain relay of
//! bytes with as many hops; then fifty sessions at once.
//!
//! All take turns, so that a slow moment of the machine touches all. `socat` and `nginx` are needed
//! for the comparison; what is not installed is left out.
#![expect(clippy::print_stdout, reason = "the figures are the result")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use proctor_core::event::{Actor, RECORD_VERSION, RunStarted, TrialStarted};
use proctor_core::record::RunWriter;
use proctor_core::redact::Redactor;
use proctor_e2e::client::stdio_server;
use proctor_e2e::{Fixture, fixture, proctor};
use proctor_wire::proxy::{AdmissionPolicy, ProxyOptions, Relay};
use proctor_wire::recorder::Recorder;

const CALLS: usize = 2_000;
const WARM_UP: usize = 200;
const ROUNDS: usize = 3;
const SESSIONS: usize = 50;
const SESSION_CALLS: usize = 200;
const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"bare","version":"0"}}}"#;
const INITIALIZED: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;

fn main() {
    println!("one call, p50 of {}", CALLS * ROUNDS);
    println!(
        "{:<30} {:>9} {:>9} {:>14}",
        "", "p50", "added", "× plain relay"
    );
    let stdio = compare(&STDIO);
    let http = compare(&HTTP);
    let bridge = compare(&BRIDGE);
    for (ways, times) in [(&STDIO[..], stdio), (&HTTP, http), (&BRIDGE, bridge)] {
        table(ways, &times);
    }
    println!("\n{SESSIONS} sessions at once, {SESSION_CALLS} calls each");
    println!("{:<30} {:>12} {:>16}", "", "calls/s", "MB a session");
    for way in STDIO.iter().chain(&HTTP).chain(&BRIDGE) {
        if let Some((rate, memory)) = crowd(*way) {
            println!("{:<30} {rate:>12.0} {memory:>16.1}", way.title());
        }
    }
}

/// A way from a client to the fixture server.
#[derive(Clone, Copy, PartialEq)]
enum Way {
    Stdio,
    Socat,
    Record,
    Relay,
    Http,
    Nginx,
    Reverse,
    SocatTcp,
    Bridge,
}

/// Direct, the plain relay, and ours, in this order.
const STDIO: [Way; 4] = [Way::Stdio, Way::Socat, Way::Record, Way::Relay];
const HTTP: [Way; 3] = [Way::Http, Way::Nginx, Way::Reverse];
const BRIDGE: [Way; 3] = [Way::Stdio, Way::SocatTcp, Way::Bridge];

impl Way {
    fn title(self) -> &'static str {
        match self {
            Self::Stdio => "stdio, direct",
            Self::Socat => "stdio, socat",
            Self::Record => "stdio, proctor record",
            Self::Relay => "stdio, relay of a trial",
            Self::Http => "HTTP, direct",
            Self::Nginx => "HTTP, nginx",
            Self::Reverse => "HTTP, proctor record --url",
            Self::SocatTcp => "TCP to stdio, socat",
            Self::Bridge => "HTTP to stdio, proctor record",
        }
    }
}

fn compare(ways: &[Way]) -> Vec<Option<Duration>> {
    let mut times: Vec<Vec<Duration>> = vec![Vec::new(); ways.len()];
    for _ in 0..ROUNDS {
        for (way, times) in ways.iter().zip(&mut times) {
            if let Some(mut open) = Open::new(*way) {
                times.extend(timed(|id| open.session.call(id)));
            }
        }
    }
    times.into_iter().map(median).collect()
}

fn table(ways: &[Way], times: &[Option<Duration>]) {
    let (direct, plain) = (times[0], times[1]);
    for (way, time) in ways.iter().zip(times) {
        let Some(time) = time else {
            println!("{:<30} not installed", way.title());
            continue;
        };
        let added = direct.map_or(0.0, |d| time.as_secs_f64() - d.as_secs_f64()) * 1e6;
        let ratio = plain.map_or(String::new(), |plain| {
            format!("{:.2}", time.as_secs_f64() / plain.as_secs_f64())
        });
        let time = time.as_secs_f64() * 1e6;
        println!(
            "{:<30} {time:>6.0} µs {added:>6.0} µs {ratio:>14}",
            way.title()
        );
    }
}

fn median(mut times: Vec<Duration>) -> Option<Duration> {
    times.sort();
    times.get(times.len() / 2).copied()
}

/// Times calls, the first ones left out.
fn timed(mut one: impl FnMut(usize)) -> Vec<Duration> {
    let mut times = Vec::with_capacity(WARM_UP + CALLS);
    for id in 1..=WARM_UP + CALLS {
        let started = Instant::now();
        one(id);
        times.push(started.elapsed());
    }
    times.split_off(WARM_UP)
}

fn call(id: usize) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"echo","arguments":{{"text":"hi"}}}}}}"#
    )
}

/// Fifty sessions: calls a second in all, and what stands between takes of memory for each.
fn crowd(way: Way) -> Option<(f64, f64)> {
    let place = Place::new(way)?;
    let mut sessions: Vec<Session> = (0..SESSIONS).map(|_| place.session()).collect();
    let started = Instant::now();
    std::thread::scope(|scope| {
        for session in &mut sessions {
            scope.spawn(|| (1..=SESSION_CALLS).for_each(|id| session.call(id)));
        }
    });
    let calls = u32::try_from(SESSIONS * SESSION_CALLS).expect("it is small");
    let rate = f64::from(calls) / started.elapsed().as_secs_f64();
    let between = place
        .between
        .iter()
        .chain(sessions.iter().filter_map(Session::child));
    let kib: u64 = between.map(|child| memory(child.id())).sum();
    #[expect(clippy::cast_precision_loss, reason = "a figure of three digits")]
    let each = kib as f64 / 1024.0 / SESSIONS as f64;
    Some((rate, if way == Way::Stdio { 0.0 } else { each }))
}

/// The resident memory of a process, in KiB.
fn memory(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok())
        .unwrap_or(0)
}

/// One session, with all that it needs.
struct Open {
    session: Session,
    _place: Place,
}

impl Open {
    fn new(way: Way) -> Option<Self> {
        let place = Place::new(way)?;
        Some(Self {
            session: place.session(),
            _place: place,
        })
    }
}

/// What is there before the first session: a server at an address, and what stands before it.
struct Place {
    way: Way,
    between: Option<Child>,
    server: Option<Fixture>,
    url: String,
    relay: Option<Hosted>,
    folder: tempfile::TempDir,
}

/// A relay, and the runtime and record of the trial that it belongs to.
struct Hosted {
    command: (PathBuf, Vec<String>),
    runtime: tokio::runtime::Runtime,
    relay: Option<Relay>,
    _run: RunWriter,
}

impl Hosted {
    fn new(folder: &std::path::Path) -> Self {
        let started = RunStarted {
            record: RECORD_VERSION,
            proctor: "bench".to_owned(),
            started: String::new(),
            name: "bench".to_owned(),
            command: Vec::new(),
            context: None,
        };
        let run = RunWriter::create(&folder.join("run"), Redactor::default(), started)
            .expect("a run can be made");
        let trial = TrialStarted {
            case: "bench".to_owned(),
            agent: None,
            repeat: 1,
            attempt: 1,
        };
        let trial = run.trial(0, "bench", trial).expect("a trial can be made");
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .build()
            .expect("a runtime can be made");
        let options = ProxyOptions {
            recorder: Recorder::new(trial, Instant::now()),
            actor: Actor::Agent,
            inherited: std::env::vars().collect(),
            pass: Vec::new(),
            guard: proctor(),
            editor: None,
        };
        let inside = runtime.enter();
        let relay = Relay::listen(&stdio_server(&[]), &options).expect("a relay can listen");
        drop(inside);
        relay.admit_all(AdmissionPolicy::SameUser);
        Self {
            command: relay.command(),
            runtime,
            relay: Some(relay),
            _run: run,
        }
    }
}

impl Drop for Hosted {
    fn drop(&mut self) {
        if let Some(relay) = self.relay.take() {
            self.runtime.block_on(relay.close());
        }
    }
}

impl Place {
    /// `None` if what it needs is not installed.
    fn new(way: Way) -> Option<Self> {
        let folder = tempfile::tempdir().expect("a folder can be made");
        let needs_server = matches!(way, Way::Http | Way::Nginx | Way::Reverse);
        let server = needs_server
            .then(|| Fixture::http(&["--era", "handshake", "--mode", "json-responses"]));
        let mut place = Self {
            way,
            between: None,
            url: server
                .as_ref()
                .map_or(String::new(), |s| s.url().to_owned()),
            server,
            relay: (way == Way::Relay).then(|| Hosted::new(folder.path())),
            folder,
        };
        match way {
            Way::Stdio | Way::Http | Way::Record | Way::Relay => {}
            Way::Socat | Way::SocatTcp => {
                let found = Command::new("socat")
                    .arg("-V")
                    .stdout(Stdio::null())
                    .status();
                found.ok().filter(std::process::ExitStatus::success)?;
                if way == Way::SocatTcp {
                    place.start_socat();
                }
            }
            Way::Nginx => place.start_nginx()?,
            Way::Reverse => {
                let url = place.url.clone();
                place.start_proctor(&["--url", &url]);
            }
            Way::Bridge => {
                let server = fixture().display().to_string();
                place.start_proctor(&["--http", "--", &server, "--era", "handshake"]);
            }
        }
        Some(place)
    }

    fn start_proctor(&mut self, words: &[&str]) {
        let mut child = Command::new(proctor())
            .arg("record")
            .arg("--out")
            .arg(self.folder.path())
            .args(words)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("proctor starts");
        let stdout = child.stdout.take().expect("stdout is piped");
        let mut url = String::new();
        BufReader::new(stdout)
            .read_line(&mut url)
            .expect("proctor prints an address");
        url.trim().clone_into(&mut self.url);
        self.between = Some(child);
    }

    fn start_socat(&mut self) {
        let port = free_port();
        let listen = format!("TCP-LISTEN:{port},reuseaddr,fork,nodelay,bind=127.0.0.1");
        let exec = format!("EXEC:{} --era handshake,pipes", fixture().display());
        let child = Command::new("socat")
            .args([&listen, &exec])
            .spawn()
            .expect("socat starts");
        self.between = Some(child);
        self.url = format!("http://127.0.0.1:{port}/");
        wait_for(&self.url);
    }

    /// A reverse proxy that keeps its connections, and nothing else.
    fn start_nginx(&mut self) -> Option<()> {
        let program = ["/usr/sbin/nginx", "/usr/bin/nginx"]
            .map(PathBuf::from)
            .into_iter()
            .find(|path| path.exists())?;
        let (port, folder) = (free_port(), self.folder.path().display());
        let upstream = self.server.as_ref().expect("there is a server").address();
        let config = format!(
            "daemon off; pid {folder}/pid; error_log {folder}/log; worker_processes 1;
             events {{ worker_connections 512; }}
             http {{ access_log off; client_body_temp_path {folder}/b; proxy_temp_path {folder}/p;
               fastcgi_temp_path {folder}/f; uwsgi_temp_path {folder}/u; scgi_temp_path {folder}/s;
               tcp_nodelay on; keepalive_requests 1000000;
               upstream fixture {{ server {upstream}; keepalive 64; keepalive_requests 1000000; }}
               server {{ listen 127.0.0.1:{port}; location / {{ proxy_pass http://fixture;
                 proxy_http_version 1.1; proxy_set_header Connection \"\"; proxy_buffering off; }} }} }}"
        );
        let file = self.folder.path().join("nginx.conf");
        std::fs::write(&file, config).expect("a file can be written");
        let child = Command::new(program).arg("-c").arg(file).spawn();
        self.between = Some(child.expect("nginx starts"));
        let path = self
            .url
            .splitn(4, '/')
            .nth(3)
            .unwrap_or_default()
            .to_owned();
        self.url = format!("http://127.0.0.1:{port}/{path}");
        wait_for(&self.url);
        Some(())
    }

    fn session(&self) -> Session {
        let server = fixture().display().to_string();
        let mut session = match self.way {
            Way::Stdio => Session::program(&server, &["--era", "handshake"]),
            Way::Socat => {
                let exec = format!("EXEC:{server} --era handshake,pipes");
                Session::program("socat", &["STDIO", &exec])
            }
            Way::Record => {
                let (proctor, out) = (proctor().display().to_string(), self.folder.path());
                let out = out.display().to_string();
                let words = ["record", "--out", &out, "--", &server, "--era", "handshake"];
                Session::program(&proctor, &words)
            }
            Way::Relay => {
                let (program, words) = &self.relay.as_ref().expect("there is one").command;
                let words: Vec<&str> = words.iter().map(String::as_str).collect();
                Session::program(&program.display().to_string(), &words)
            }
            Way::SocatTcp => Session::Tcp(connect(&self.url)),
            Way::Http | Way::Nginx | Way::Reverse | Way::Bridge => Session::http(&self.url),
        };
        session.greet();
        session
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if let Some(child) = &mut self.between {
            if let Some(pid) = i32::try_from(child.id())
                .ok()
                .and_then(rustix::process::Pid::from_raw)
            {
                let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
            }
            let _ = child.wait();
        }
    }
}

fn free_port() -> u16 {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port is free");
    listener.local_addr().expect("it has an address").port()
}

fn authority(url: &str) -> &str {
    let rest = url.strip_prefix("http://").unwrap_or(url);
    rest.split('/').next().unwrap_or(rest)
}

fn connect(url: &str) -> BufReader<TcpStream> {
    let stream = TcpStream::connect(authority(url)).expect("somebody listens");
    stream.set_nodelay(true).expect("a socket can be set");
    BufReader::new(stream)
}

fn wait_for(url: &str) {
    let until = Instant::now() + Duration::from_secs(10);
    while TcpStream::connect(authority(url)).is_err() {
        assert!(Instant::now() < until, "nobody listens at {url}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// A client on bytes.
enum Session {
    Program {
        child: Child,
        stdin: Option<ChildStdin>,
        stdout: BufReader<ChildStdout>,
    },
    Tcp(BufReader<TcpStream>),
    Http {
        stream: BufReader<TcpStream>,
        url: String,
        headers: String,
    },
}

impl Session {
    fn program(program: &str, words: &[&str]) -> Self {
        let mut child = Command::new(program)
            .args(words)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("it starts");
        Self::Program {
            stdin: child.stdin.take(),
            stdout: BufReader::new(child.stdout.take().expect("stdout is piped")),
            child,
        }
    }

    fn http(url: &str) -> Self {
        Self::Http {
            stream: connect(url),
            url: url.to_owned(),
            headers: String::new(),
        }
    }

    fn child(&self) -> Option<&Child> {
        match self {
            Self::Program { child, .. } => Some(child),
            Self::Tcp(_) | Self::Http { .. } => None,
        }
    }

    fn greet(&mut self) {
        self.ask(INITIALIZE);
        match self {
            Self::Http { .. } => self.ask(INITIALIZED),
            Self::Program { stdin, .. } => {
                let stdin = stdin.as_mut().expect("it is open");
                writeln!(stdin, "{INITIALIZED}").expect("it reads");
            }
            Self::Tcp(stream) => writeln!(stream.get_mut(), "{INITIALIZED}").expect("it reads"),
        }
    }

    fn call(&mut self, id: usize) {
        self.ask(&call(id));
    }

    fn ask(&mut self, message: &str) {
        match self {
            Self::Program { stdin, stdout, .. } => {
                let stdin = stdin.as_mut().expect("it is open");
                line(stdin, stdout, message);
            }
            Self::Tcp(stream) => {
                let mut out = stream
                    .get_ref()
                    .try_clone()
                    .expect("a socket can be shared");
                line(&mut out, stream, message);
            }
            Self::Http {
                stream,
                url,
                headers,
            } => {
                let head = exchange(stream, url, message, headers);
                if let Some(id) = header(&head, "mcp-session-id") {
                    *headers =
                        format!("Mcp-Session-Id: {id}\r\nMCP-Protocol-Version: 2025-11-25\r\n");
                }
            }
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        if let Self::Program { child, stdin, .. } = self {
            *stdin = None;
            let _ = child.wait();
        }
    }
}

fn line(out: &mut impl Write, input: &mut impl BufRead, message: &str) {
    out.write_all(format!("{message}\n").as_bytes())
        .expect("it reads");
    let mut line = String::new();
    input.read_line(&mut line).expect("it answers");
    assert!(line.contains("result"), "{line}");
}

fn header<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    head.lines().find_map(|line| {
        let (found, value) = line.split_once(':')?;
        found.eq_ignore_ascii_case(name).then(|| value.trim())
    })
}

/// One request on a connection that stays open; gives the head of the response.
fn exchange(stream: &mut BufReader<TcpStream>, url: &str, body: &str, headers: &str) -> String {
    let authority = authority(url);
    let path = url.splitn(4, '/').nth(3).unwrap_or_default();
    let request = format!(
        "POST /{path} HTTP/1.1\r\nHost: {authority}\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\n{headers}Content-Length: {}\r\n\r\n{body}",
        body.len()
    );
    stream
        .get_mut()
        .write_all(request.as_bytes())
        .expect("it reads");
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        let read = stream.read_line(&mut head).expect("it answers");
        assert!(read > 0, "the connection was closed: {head}");
    }
    assert!(head.starts_with("HTTP/1.1 20"), "{head}");
    let is_chunked = header(&head, "transfer-encoding").is_some();
    let length = header(&head, "content-length").and_then(|length| length.parse().ok());
    read_body(stream, length.unwrap_or(0), is_chunked);
    head
}

fn read_body(stream: &mut BufReader<TcpStream>, length: usize, is_chunked: bool) {
    let mut body = vec![0; length];
    stream.read_exact(&mut body).expect("it answers");
    let mut is_left = is_chunked;
    while is_left {
        let mut size = String::new();
        stream.read_line(&mut size).expect("it answers");
        let size = usize::from_str_radix(size.trim(), 16).expect("a size");
        let mut chunk = vec![0; size + 2];
        stream.read_exact(&mut chunk).expect("it answers");
        is_left = size > 0;
    }
}
