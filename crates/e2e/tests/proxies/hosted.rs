//! A proxy inside the test's process, as a trial has it, with a record of its own.
//!
//! Its main type is [`HostedServer`].

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use proctor_core::suite::Server;
use proctor_core::suite::server::{AllowedTools, ClientSettings, Transport};
use proctor_e2e::proctor;
use proctor_record::event::{
    Actor, Outcome, RECORD_VERSION, RunEnded, RunStarted, TrialEnded, TrialStarted,
};
use proctor_record::record::RunWriter;
use proctor_record::redact::Redactor;
use proctor_wire::edit::Editor;
use proctor_wire::proxy::{Admission, Bridge, ProxyOptions, Relay, ReverseProxy};
use proctor_wire::recorder::Recorder;
use tokio::runtime::Runtime;

use super::ways::Door;

/// A proxy that goes on until it is closed.
pub struct HostedServer {
    runtime: Runtime,
    proxy: Proxy,
    run: RunWriter,
    recorder: Recorder,
}

enum Proxy {
    Relay(Relay),
    Reverse(ReverseProxy),
    Bridge(Bridge),
}

/// Which proxy, and how clients are let in.
#[derive(Debug, Clone, Copy)]
pub enum Kind {
    /// The relay.
    Relay,
    /// The reverse proxy.
    Reverse(Admission),
    /// The bridge.
    Bridge(Admission),
}

impl HostedServer {
    /// Starts a proxy before a server. Its record will be in `folder`.
    pub fn start(kind: Kind, server: &Door, folder: &Path) -> Self {
        Self::editing(kind, server, folder, None)
    }

    /// The same, with an editor behind the record.
    pub fn editing(
        kind: Kind,
        server: &Door,
        folder: &Path,
        editor: Option<Arc<dyn Editor>>,
    ) -> Self {
        let (run, recorder) = record(folder);
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .expect("a runtime can be built");
        let options = ProxyOptions {
            recorder: recorder.clone(),
            actor: Actor::Agent,
            inherited: std::env::vars().collect(),
            pass: Vec::new(),
            guard: proctor(),
            trial: None,
            credentials: proctor_wire::auth::Credentials::default(),
            editor,
        };
        let server = described(server, folder);
        let proxy = match kind {
            Kind::Reverse(admission) => {
                let starting = ReverseProxy::start(&server, &options, 0, admission);
                Proxy::Reverse(runtime.block_on(starting).expect("the proxy starts"))
            }
            Kind::Relay => {
                let _inside = runtime.enter();
                let relay = Relay::listen(&server, &options).expect("the relay listens");
                // The client is a process below this one.
                relay.admit(rustix::process::getpid());
                Proxy::Relay(relay)
            }
            Kind::Bridge(admission) => {
                let starting = Bridge::start(&server, &options, 0, admission);
                Proxy::Bridge(runtime.block_on(starting).expect("the bridge starts"))
            }
        };
        Self {
            runtime,
            proxy,
            run,
            recorder,
        }
    }

    /// What a client is told.
    pub fn door(&self, server: &Door) -> Door {
        let (url, headers) = match &self.proxy {
            Proxy::Relay(relay) => {
                let (program, args) = relay.command();
                let program = program.display().to_string();
                return Door::Command(std::iter::once(program).chain(args).collect());
            }
            Proxy::Reverse(proxy) => (proxy.url(), proxy.headers()),
            Proxy::Bridge(bridge) => (bridge.url(), bridge.headers()),
        };
        let (url, headers) = (url.to_owned(), headers.to_vec());
        match server {
            Door::Sse { .. } => Door::Sse { url, headers },
            Door::Command(_) | Door::Http { .. } => Door::Http { url, headers },
        }
    }

    /// Ends all sessions, and the record.
    pub fn close(self) {
        match self.proxy {
            Proxy::Relay(relay) => self.runtime.block_on(relay.close()),
            Proxy::Reverse(proxy) => self.runtime.block_on(proxy.close()),
            Proxy::Bridge(bridge) => self.runtime.block_on(bridge.close()),
        }
        assert!(self.recorder.take_error().is_none());
        let ended = TrialEnded {
            outcome: Outcome::Passed,
            reason: None,
            blame: None,
        };
        let at = self.recorder.at();
        let trial = self.recorder.take_trial().expect("the trial goes on");
        trial.end(at, ended).expect("the trial can be ended");
        let ended = RunEnded {
            exit: 0,
            reason: None,
            ..RunEnded::default()
        };
        self.run.end(at, ended).expect("the run can be ended");
    }
}

fn record(folder: &Path) -> (RunWriter, Recorder) {
    let started = RunStarted {
        record: RECORD_VERSION,
        proctor: "test".to_owned(),
        started: "2026-01-01T00:00:00Z".to_owned(),
        name: "proxies".to_owned(),
        command: Vec::new(),
        context: None,
    };
    let folder = folder.join(".proctor/runs/run");
    let run = RunWriter::create(&folder, Redactor::default(), started).expect("a record");
    let trial = TrialStarted {
        case: "proxies".to_owned(),
        agent: None,
        repeat: 1,
        attempt: 1,
    };
    let trial = run.trial(0, "proxies", trial).expect("a trial");
    (run, Recorder::new(trial, Instant::now()))
}

/// A server, as a suite describes it.
fn described(server: &Door, folder: &Path) -> Server {
    let transport = match server {
        Door::Command(words) => Transport::Stdio {
            command: words[0].clone(),
            args: words[1..].to_vec(),
            env: BTreeMap::new(),
            folder: folder.to_owned(),
            cwd: None,
        },
        Door::Http { url, .. } => Transport::Http {
            url: url.clone(),
            headers: BTreeMap::new(),
        },
        Door::Sse { url, .. } => Transport::Sse {
            url: url.clone(),
            headers: BTreeMap::new(),
        },
    };
    Server {
        name: "server".to_owned(),
        transport,
        allowed: AllowedTools::All,
        auth: None,
        client: ClientSettings::default(),
        written: "server".to_owned(),
    }
}
