//! `Server`: turns messages into exchanges, for every transport.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use serde_json::Value;

use crate::catalog::{self, List};
use crate::channel::{Channel, Delivery};
use crate::count::{Count, EVALS, TOOLS};
use crate::evals::Evals;
use crate::exchange::Exchange;
use crate::lock::lock;
use crate::message::{
    Era, HANDSHAKE, INVALID_PARAMS, METHOD_NOT_FOUND, Reply, Request, STATELESS,
    UNSUPPORTED_VERSION, answer, initialized, notification,
};
use crate::mode::Mode;
use crate::options::{Eras, Options};
use crate::process;
use crate::session::{Change, Session};
use crate::tools;
use crate::witness::Witness;

/// The state that all clients of the process share.
pub struct Server {
    pub options: Options,
    pub witness: Arc<Witness>,
    sessions: Mutex<Vec<Arc<Session>>>,
    matched: AtomicU64,
    changed: AtomicBool,
    pub evals: Option<Evals>,
    count: Count,
}

impl Server {
    pub fn new(options: Options, witness: Witness, evals: Option<Evals>, count: Count) -> Self {
        Self {
            options,
            evals,
            count,
            witness: Arc::new(witness),
            sessions: Mutex::default(),
            matched: AtomicU64::new(0),
            changed: AtomicBool::new(false),
        }
    }

    pub fn has(&self, mode: Mode) -> bool {
        self.options.modes.has(mode)
    }

    pub fn open_session(&self) -> Arc<Session> {
        let session = Arc::new(Session::default());
        lock(&self.sessions).push(session.clone());
        session
    }

    /// Whether the modes apply to this request. Counts the requests, so it must be called once for
    /// each.
    pub fn spoils(&self, request: &Request) -> bool {
        let on = &self.options.on;
        (on == "*" || *on == request.method)
            && self.matched.fetch_add(1, Ordering::SeqCst) < self.options.times
    }

    /// Answers a request, in its own thread if it may take a while.
    pub fn serve(self: &Arc<Self>, exchange: Exchange) {
        let alone = matches!(exchange.channel, Channel::Response(_));
        if alone || !exchange.waits() {
            self.run(&exchange);
            return;
        }
        let server = self.clone();
        thread::spawn(move || server.run(&exchange));
    }

    fn run(&self, exchange: &Exchange) {
        if matches!(
            exchange.request.method.as_str(),
            "initialize" | "server/discover"
        ) && let Some(code) = self.options.modes.number(Mode::ExitInHandshake, 3)
        {
            process::exit(code, "in the handshake");
        }
        exchange.run(|| self.reply(exchange));
        if exchange.request.method == "tools/call"
            && self.has(Mode::ToolsChange)
            && !self.changed.swap(true, Ordering::SeqCst)
        {
            for session in lock(&self.sessions).iter() {
                session.announce(Change::Tools);
            }
        }
        if exchange.request.method == "evals/list"
            && exchange.request.params.get("cursor").is_none()
            && self.has(Mode::EvalsListChanged)
            && self.options.modes.number(Mode::EvalsChangeAfter, 0) == Some(self.count.of(EVALS))
        {
            for session in lock(&self.sessions).iter() {
                session.announce(Change::Evals);
            }
        }
    }

    /// Whether a list has changed. The first page counts as a listing.
    fn has_changed(&self, whose: u8, params: &Value, after: Mode) -> bool {
        let before = if params.get("cursor").is_none() {
            self.count.add(whose)
        } else {
            self.count.of(whose).saturating_sub(1)
        };
        let after = self.options.modes.number(after, 0);
        after.is_some_and(|after| before >= after)
    }

    /// Returns the response of a server without faults; `None` if there is none yet.
    fn reply(&self, exchange: &Exchange) -> Option<Reply> {
        let request = &exchange.request;
        let modes = &self.options.modes;
        let stateless = exchange.era == Era::Stateless;
        if stateless && request.method != "initialize" {
            match request.version() {
                Some(STATELESS) => {}
                Some(version) => return Some(Reply::unsupported(version, &[STATELESS])),
                None => {
                    return Some(Reply::error(
                        INVALID_PARAMS,
                        "the request has no protocol version",
                    ));
                }
            }
        }
        if request.method == "server/discover"
            && let Some(code) = modes.argument(Mode::DiscoverError)
        {
            return Some(refused_discovery(request, code));
        }
        Some(match request.method.as_str() {
            "initialize" if stateless => {
                let requested = request.params["protocolVersion"]
                    .as_str()
                    .unwrap_or_default();
                Reply::unsupported(requested, &[STATELESS])
            }
            "initialize" => initialize(exchange),
            "server/discover" if stateless => {
                catalog::discovery(modes, self.options.eras, self.evals.is_some())
            }
            "ping" | "logging/setLevel" if !stateless => {
                Reply::Complete(r#""x-empty":true"#.into())
            }
            "subscriptions/listen" if stateless => return listen(exchange),
            "tools/list" | "tools/call"
                if modes.has(Mode::NoTools) && modes.argument(Mode::NoTools).is_none() =>
            {
                unknown_method(&request.method)
            }
            "tools/call" => return tools::call(exchange),
            "resources/read" => catalog::read(request.subject().unwrap_or_default(), exchange.era),
            "prompts/get" => {
                catalog::prompt(request.subject().unwrap_or_default(), &request.params)
            }
            "evals/list" => match &self.evals {
                Some(evals) => {
                    let changed = self.has_changed(EVALS, &request.params, Mode::EvalsChangeAfter);
                    evals.page(&request.params, modes, changed, exchange.era)
                }
                None => unknown_method(&request.method),
            },
            method => match List::of_method(method) {
                Some(list) => {
                    let changed = self.changed.load(Ordering::SeqCst)
                        || list == List::Tools
                            && self.has_changed(TOOLS, &request.params, Mode::ToolsChangeAfter);
                    catalog::page(list, &request.params, modes, changed, exchange.era)
                }
                None => unknown_method(method),
            },
        })
    }

    /// Processes a notification of the client.
    pub fn notice(
        &self,
        method: &str,
        params: &Value,
        session: &Session,
        channel: Option<&Channel>,
    ) {
        if method == "notifications/cancelled" {
            session.cancel(&params["requestId"]);
        }
        if self.has(Mode::AnswerNotification)
            && let Some(channel) = channel
        {
            let reply = Reply::error(INVALID_PARAMS, "unrequested response").member(Era::Handshake);
            let _ = channel.finish(200, &answer(&Value::Null, reply), Delivery::Whole);
        }
    }

    /// Returns the era of a request on a connection that remembers its era.
    pub fn era(&self, request: &Request, session: &Session) -> Era {
        let era = match self.options.eras {
            Eras::Handshake => Era::Handshake,
            Eras::Stateless => Era::Stateless,
            Eras::Both => session.era().unwrap_or_else(|| apparent_era(request)),
        };
        session.settle(era);
        era
    }
}

/// Returns the era that a request looks like.
pub fn apparent_era(request: &Request) -> Era {
    let stateless = request.method == "server/discover" || request.version().is_some();
    if stateless {
        Era::Stateless
    } else {
        Era::Handshake
    }
}

fn unknown_method(method: &str) -> Reply {
    Reply::error(METHOD_NOT_FOUND, format!("unknown method `{method}`"))
}

/// Returns one of the errors with which servers refuse `server/discover`.
fn refused_discovery(request: &Request, code: &str) -> Reply {
    match code.parse() {
        Ok(UNSUPPORTED_VERSION) => {
            Reply::unsupported(request.version().unwrap_or_default(), &["2099-01-01"])
        }
        Ok(code) => Reply::error(code, "unsupported request"),
        Err(_) => Reply::error(INVALID_PARAMS, "`discover-error` needs a code"),
    }
}

fn initialize(exchange: &Exchange) -> Reply {
    let requested = exchange.request.params["protocolVersion"]
        .as_str()
        .unwrap_or_default();
    let version = HANDSHAKE
        .into_iter()
        .find(|&known| known == requested)
        .unwrap_or(HANDSHAKE[3]);
    let version = exchange
        .server
        .options
        .modes
        .argument(Mode::SpeaksVersion)
        .unwrap_or(version);
    if !matches!(exchange.channel, Channel::Response(_)) {
        let channel = exchange.channel.clone();
        // The stream is already open, so this can't fail.
        let _ = exchange.session.add_outlet(channel, None, || Ok(()));
    }
    let server = &exchange.server;
    let capabilities = catalog::capabilities(&server.options.modes, server.evals.is_some());
    Reply::Complete(initialized(version, &capabilities, catalog::INSTRUCTIONS).into())
}

/// Acknowledges a subscription. It has no response, because its stream stays open.
fn listen(exchange: &Exchange) -> Option<Reply> {
    let Request { id, params, .. } = &exchange.request;
    let asked = &params["notifications"];
    let evals_told = exchange.server.has(Mode::EvalsListChanged);
    let wanted: Vec<Change> = [Change::Tools, Change::Evals]
        .into_iter()
        .filter(|change| asked[change.key()] == true)
        .filter(|change| *change == Change::Tools || evals_told)
        .collect();
    let keys = wanted
        .iter()
        .map(|change| format!(r#""{}":true"#, change.key()));
    let wanted_text = format!("{{{}}}", keys.collect::<Vec<_>>().join(","));
    let acknowledged = format!(
        r#"{{"notifications":{wanted_text},"_meta":{{"io.modelcontextprotocol/subscriptionId":{id}}}}}"#
    );
    let acknowledged = notification("notifications/subscriptions/acknowledged", &acknowledged);
    let channel = exchange.channel.clone();
    // The client may be gone.
    let _ = if wanted.is_empty() {
        channel.send(&acknowledged)
    } else {
        let acknowledge = || exchange.channel.send(&acknowledged);
        let subscription = Some((id.clone(), wanted));
        exchange
            .session
            .add_outlet(channel, subscription, acknowledge)
    };
    None
}
