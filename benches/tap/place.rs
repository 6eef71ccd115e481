//! A server, and what stands between it and its client: a plain relay, or Proctor.

use std::io::{BufRead, BufReader};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use proctor_e2e::client::stdio_server;
use proctor_e2e::{Fixture, fixture, proctor};
use proctor_record::event::{Actor, RECORD_VERSION, RunStarted, TrialStarted};
use proctor_record::record::RunWriter;
use proctor_record::redact::Redactor;
use proctor_wire::proxy::{AdmissionPolicy, ProxyOptions, Relay};
use proctor_wire::recorder::Recorder;

use crate::Way;
use crate::cores::Placement;
use crate::session::{Session, authority, connect};

/// What is there before the first session: a server at an address, and what stands before it.
pub(crate) struct Place {
    way: Way,
    pub(crate) between: Option<Child>,
    server: Option<Fixture>,
    url: String,
    relay: Option<HostedRelay>,
    folder: tempfile::TempDir,
}

/// A relay, and the runtime and record of the trial that it belongs to.
struct HostedRelay {
    command: (PathBuf, Vec<String>),
    runtime: tokio::runtime::Runtime,
    relay: Option<Relay>,
    _run: RunWriter,
}

impl HostedRelay {
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
            credentials: proctor_wire::auth::Credentials::default(),
            editor: None,
            trial: None,
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

impl Drop for HostedRelay {
    fn drop(&mut self) {
        if let Some(relay) = self.relay.take() {
            self.runtime.block_on(relay.close());
        }
    }
}

impl Place {
    /// `None` if what it needs is not installed.
    pub(crate) fn new(way: Way, placement: Placement) -> Option<Self> {
        let folder = tempfile::tempdir().expect("a folder can be made");
        let needs_server = matches!(way, Way::Http | Way::Nginx | Way::Reverse);
        placement.pin_server();
        let server = needs_server
            .then(|| Fixture::http(&["--era", "handshake", "--mode", "json-responses"]));
        placement.pin_client();
        let mut place = Self {
            way,
            between: None,
            url: server
                .as_ref()
                .map_or(String::new(), |s| s.url().to_owned()),
            server,
            relay: (way == Way::Relay).then(|| HostedRelay::new(folder.path())),
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

    pub(crate) fn session(&self) -> Session {
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

fn wait_for(url: &str) {
    let until = Instant::now() + Duration::from_secs(10);
    while TcpStream::connect(authority(url)).is_err() {
        assert!(Instant::now() < until, "nobody listens at {url}");
        std::thread::sleep(Duration::from_millis(10));
    }
}
