//! Records at a local URL: a reverse proxy for a server with a URL, or a bridge to a command.

use std::collections::BTreeMap;
use std::process::ExitCode;

use proctor_core::suite::Server;
use proctor_core::suite::server::Transport;
use proctor_record::event::{Blame, Outcome, TrialEnded};
use proctor_record::redact::Redactor;
use proctor_run::engine::recording::SessionRecording;
use proctor_wire::proxy::{Admission, Bridge, ProxyError, ProxyOptions, ReverseProxy};
use serde_json::json;

use super::{conclusion, say};
use crate::args::{OutputFormat, RecordArgs};
use crate::commands::stops::StopSignals;
use crate::exit::Exit;
use crate::output;

/// The HTTP server behind the printed URL.
enum WebEndpoint {
    Proxy(ReverseProxy),
    Bridge(Bridge),
}

impl WebEndpoint {
    async fn start(
        server: &Server,
        options: &ProxyOptions,
        args: &RecordArgs,
    ) -> Result<Self, ProxyError> {
        // Most clients take a URL without headers.
        let admission = if args.no_token {
            Admission::Open
        } else {
            Admission::Path
        };
        Ok(match server.transport {
            Transport::Stdio { .. } => {
                Self::Bridge(Bridge::start(server, options, args.port, admission).await?)
            }
            Transport::Http { .. } | Transport::Sse { .. } => {
                Self::Proxy(ReverseProxy::start(server, options, args.port, admission).await?)
            }
        })
    }

    fn url(&self) -> &str {
        match self {
            Self::Proxy(proxy) => proxy.url(),
            Self::Bridge(bridge) => bridge.url(),
        }
    }

    fn headers(&self) -> &[(String, String)] {
        match self {
            Self::Proxy(proxy) => proxy.headers(),
            Self::Bridge(bridge) => bridge.headers(),
        }
    }

    async fn close(self) {
        match self {
            Self::Proxy(proxy) => proxy.close().await,
            Self::Bridge(bridge) => bridge.close().await,
        }
    }
}

/// Serves a server at a local URL until a signal stops it.
pub(super) async fn serve(
    server: &Server,
    options: &ProxyOptions,
    args: &RecordArgs,
    mut stops: StopSignals,
    kept: SessionRecording,
    redactor: &Redactor,
) -> anyhow::Result<ExitCode> {
    let folder = kept.folder().display().to_string();
    let endpoint = match WebEndpoint::start(server, options, args).await {
        Ok(endpoint) => endpoint,
        Err(error) => {
            let ended = TrialEnded {
                outcome: Outcome::Errored,
                reason: Some(error.to_string()),
                blame: Some(Blame::Infra),
            };
            output::error(&error.into(), redactor);
            return Ok(end(kept, ended, Exit::Inconclusive.code(), redactor));
        }
    };
    let printed = print(&endpoint, &folder, args);
    if printed.is_ok() {
        stops.next().await;
    }
    tokio::select! {
        () = endpoint.close() => {}
        () = stops.next() => Exit::Interrupted.at_once(),
    }
    let (ended, exit) = conclusion::of(&kept.recorder);
    let how = match &ended.reason {
        Some(reason) => format!("failed: {reason}"),
        None => "stopped".to_owned(),
    };
    let exit = end(kept, ended, exit, redactor);
    printed?;
    say(
        &format!("{how}; show it with `proctor result view {folder}`"),
        redactor,
    );
    Ok(exit)
}

fn print(endpoint: &WebEndpoint, folder: &str, args: &RecordArgs) -> anyhow::Result<()> {
    match args.output.output {
        OutputFormat::Text => output::result(&format!("{}\n", endpoint.url())),
        OutputFormat::Json => {
            let headers: BTreeMap<_, _> = endpoint.headers().iter().cloned().collect();
            let document = json!({"url": endpoint.url(), "headers": headers, "run": folder});
            output::json(&document)
        }
    }
}

fn end(kept: SessionRecording, ended: TrialEnded, exit: u8, redactor: &Redactor) -> ExitCode {
    match kept.end(ended, exit) {
        Ok(()) => exit.into(),
        Err(error) => {
            let error = anyhow::Error::new(error).context("the record is incomplete");
            output::error(&error, redactor);
            Exit::Inconclusive.into()
        }
    }
}
