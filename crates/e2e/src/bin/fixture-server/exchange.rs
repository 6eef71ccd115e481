//! `Exchange`: one request and everything that is sent for it. The modes apply here.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::channel::{Channel, Delivery};
use crate::message::{
    Era, HEADER_MISMATCH, METHOD_NOT_FOUND, MISSING_CAPABILITY, PARSE_ERROR, Reply, Request,
    UNKNOWN, UNSUPPORTED_VERSION, answer, notification, request, strange_answer,
};
use crate::meta;
use crate::mode::Mode;
use crate::payload::Payload;
use crate::process;
use crate::server::Server;
use crate::session::Session;
use crate::tools;

/// One request without a response.
pub struct Exchange {
    pub server: Arc<Server>,
    pub session: Arc<Session>,
    pub channel: Channel,
    pub request: Request,
    pub era: Era,
    /// Whether the modes apply to this request.
    pub spoilt: bool,
    cancelled: Arc<AtomicBool>,
}

impl Exchange {
    pub fn new(
        server: &Arc<Server>,
        session: &Arc<Session>,
        channel: Channel,
        request: Request,
        era: Era,
    ) -> Self {
        Self {
            spoilt: server.spoils(&request),
            cancelled: session.begin(&request.id),
            server: server.clone(),
            session: session.clone(),
            channel,
            request,
            era,
        }
    }

    /// Whether a mode applies to this request.
    pub fn has(&self, mode: Mode) -> bool {
        self.spoilt && self.server.has(mode)
    }

    pub fn number(&self, mode: Mode, missing: u64) -> Option<u64> {
        if self.spoilt {
            self.server.options.modes.number(mode, missing)
        } else {
            None
        }
    }

    pub fn argument(&self, mode: Mode) -> Option<&str> {
        if self.spoilt {
            self.server.options.modes.argument(mode)
        } else {
            None
        }
    }

    /// Whether the response may take a while.
    pub fn waits(&self) -> bool {
        const SLOW: [Mode; 9] = [
            Mode::AnswerLate,
            Mode::AnswerAfterCancel,
            Mode::FloodNotifications,
            Mode::FloodProgress,
            Mode::StrangeMessages,
            Mode::AsksClient,
            Mode::SlowLoris,
            Mode::EndlessLine,
            Mode::SplitWrite,
        ];
        SLOW.into_iter().any(|mode| self.has(mode)) || tools::waits(&self.request)
    }

    /// Applies the modes, answers, and ends the request.
    pub fn run(&self, reply: impl FnOnce() -> Option<Reply>) {
        self.end_instead();
        if self.before() && !self.never_answers() {
            let reply = reply();
            // A cancelled request gets no response, unless a mode asks for it.
            let wanted = !self.is_cancelled() || self.has(Mode::AnswerAfterCancel);
            if let Some(reply) = reply.filter(|_| wanted) {
                self.finish(&reply);
            }
        }
        self.session.end(&self.request.id);
    }

    /// Sends a notification that belongs to the request.
    pub fn notify(&self, method: &str, params: &str) -> bool {
        self.send(&notification(method, params))
    }

    /// Sends progress, if the client asked for it.
    pub fn progress(&self, done: u64, total: Option<u64>) -> bool {
        let token = match &self.request.params["_meta"]["progressToken"] {
            Value::Null if self.has(Mode::FloodProgress) => Value::from("nobody-asked"),
            Value::Null => return true,
            token => token.clone(),
        };
        let total = total.map_or_else(String::new, |total| format!(r#""total":{total}, "#));
        self.notify(
            "notifications/progress",
            &format!(r#"{{{total}"progressToken":{token},"progress":{done},{UNKNOWN}}}"#),
        )
    }

    /// Sends a request to the client, and waits for its response; `None` if the exchange is
    /// cancelled first.
    pub fn ask(&self, method: &str, params: &str) -> Option<Value> {
        let (id, answers) = self.session.question();
        self.send(&request(&id, method, params));
        loop {
            match answers.recv_timeout(Duration::from_millis(10)) {
                Ok(answer) => return Some(answer),
                Err(_) if self.is_cancelled() => return None,
                Err(_) => {}
            }
        }
    }

    /// Sleeps; `false` if the request is cancelled meanwhile.
    pub fn pause(&self, milliseconds: u64) -> bool {
        let end = Instant::now() + Duration::from_millis(milliseconds);
        while !self.is_cancelled() {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return true;
            }
            sleep(left.min(Duration::from_millis(10)));
        }
        false
    }

    /// Waits until a file exists; `false` if the request is cancelled meanwhile.
    pub fn wait_for_file(&self, file: &Path) -> bool {
        while !file.exists() {
            if !self.pause(10) {
                return false;
            }
        }
        true
    }

    pub fn is_cancelled(&self) -> bool {
        if self.has(Mode::IgnoreCancel) {
            return false;
        }
        let closed = self.era == Era::Stateless && self.channel.closed();
        closed || self.cancelled.load(Ordering::SeqCst)
    }

    fn send(&self, message: &Payload) -> bool {
        if matches!(self.channel, Channel::Response(_)) && self.server.has(Mode::JsonResponses) {
            self.session.send_aside(message);
            return true;
        }
        self.channel.send(message).is_ok()
    }

    fn end_instead(&self) {
        if let Some(code) = self.number(Mode::ExitInCall, 3) {
            process::exit(code, &format!("in `{}`", self.request.method));
        }
        if self.has(Mode::AbortInCall) {
            process::abort();
        }
        if self.has(Mode::KillInCall) {
            process::kill_self();
        }
    }

    fn never_answers(&self) -> bool {
        let modes = &self.server.options.modes;
        match modes.argument(Mode::NeverAnswer) {
            Some(method) => method == self.request.method,
            None => self.has(Mode::NeverAnswer),
        }
    }

    /// Sends what comes before the response; `false` if there is no response.
    fn before(&self) -> bool {
        for number in 0..self.number(Mode::FloodNotifications, 1000).unwrap_or(0) {
            let params =
                format!(r#"{{"level":"info","data":"noise {number}", "logger":"fixture"}}"#);
            if !self.notify("notifications/message", &params) {
                return false;
            }
        }
        if self.has(Mode::StrangeMessages) {
            let params =
                r#"{"\u0061" :  [1e2, -0.0,12345678901234567890.5],"a":"\u00e9\/", "a":null }"#;
            self.notify("notifications/fixture/unknown", params);
            // The response is ignored.
            let (id, _) = self.session.question();
            self.send(&request(&id, "fixture/unknown", params));
        }
        if let Some(pause) = self.number(Mode::FloodProgress, 0) {
            let mut done = 0;
            while self.progress(done, None) && self.pause(pause) {
                done += 1;
            }
            return false;
        }
        if self.has(Mode::AnswerAfterCancel) {
            while self.pause(600_000) {}
        }
        if self.has(Mode::UnknownId) {
            let reply = Reply::Complete(r#""content":[]"#.into()).member(self.era);
            self.send(&answer(&Value::from("nobody-asked-7"), reply));
        }
        self.pause(self.number(Mode::AnswerLate, 0).unwrap_or(0))
            || self.has(Mode::AnswerAfterCancel)
    }

    fn finish(&self, reply: &Reply) {
        let message = self.message(reply);
        let status = self.status(reply);
        let (message, delivery) = match self.number(Mode::EndlessLine, u64::MAX) {
            Some(bytes) => (unended(&self.request.id, bytes), Delivery::Unended),
            None => (message, self.delivery()),
        };
        let message = if self.has(Mode::DuplicateAnswer) {
            let again = Reply::error(-32000, "second response").member(self.era);
            let again = answer(&self.request.id, again);
            if let (Channel::Response(http), false) =
                (&self.channel, self.server.has(Mode::JsonResponses))
            {
                // In one write, because the client may leave before the second response.
                let _ = http.finish_with(&[message, again]);
                return;
            }
            self.send(&message);
            again
        } else {
            message
        };
        // The client may be gone.
        let _ = self.channel.finish(status, &message, delivery);
        if let Some(code) = self.number(Mode::TornLine, 3) {
            process::exit(code, "in the middle of a line");
        }
        if let Some(code) = self.number(Mode::ExitBetweenCalls, 3) {
            process::exit(code, "between calls");
        }
    }

    fn delivery(&self) -> Delivery {
        if let Some(pause) = self.number(Mode::SlowLoris, 1000) {
            return Delivery::Slow(pause);
        }
        let deliveries = [
            (Mode::HalfLine, Delivery::Glued),
            (Mode::SplitWrite, Delivery::Split),
            (Mode::TornLine, Delivery::Torn),
            (Mode::TruncatedBody, Delivery::Torn),
        ];
        let asked = deliveries.into_iter().find(|(mode, _)| self.has(*mode));
        asked.map_or(Delivery::Whole, |(_, delivery)| delivery)
    }

    /// Returns the text of the response, with the faults of the modes.
    fn message(&self, reply: &Reply) -> Payload {
        let id = &self.request.id;
        if self.has(Mode::InvalidJson) {
            return format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":[}}"#).into();
        }
        if self.has(Mode::WrongShape) {
            return match self.argument(Mode::WrongShape) {
                Some("content") => answer(id, r#""result":{"content":{"type":"text"}}"#.into()),
                Some("empty") => answer(id, r#""result":{}"#.into()),
                Some("message") => "42".into(),
                Some("version") => format!(r#"{{"id":{id},"result":{{"content":[]}}}}"#).into(),
                _ => answer(id, r#""result":"done""#.into()),
            };
        }
        if let Some(code) = self
            .argument(Mode::AnswerError)
            .and_then(|c| c.parse().ok())
        {
            return answer(id, Reply::error(code, "requested error").member(self.era));
        }
        let mut member = reply.member(self.era);
        if self.server.has(Mode::MetaEverywhere) {
            member = meta::everywhere(&member).unwrap_or(member);
        }
        if self.has(Mode::ResultAndError) {
            let error = Reply::error(-32000, "error beside a result").member(self.era);
            member = member.then(",").then(error);
        }
        if self.has(Mode::OtherIdType) {
            return answer(&other_type(id), member);
        }
        if self.has(Mode::StrangeEnvelope) {
            strange_answer(id, member)
        } else {
            answer(id, member)
        }
    }

    /// Returns the HTTP status of the response; only the stateless era has error statuses.
    fn status(&self, reply: &Reply) -> u16 {
        match reply {
            Reply::Error { code, .. } if self.era == Era::Stateless => status_of(*code),
            _ => 200,
        }
    }
}

/// Returns the HTTP status of an error in the stateless era.
fn status_of(code: i64) -> u16 {
    match code {
        METHOD_NOT_FOUND => 404,
        HEADER_MISMATCH | MISSING_CAPABILITY | UNSUPPORTED_VERSION | PARSE_ERROR => 400,
        _ => 200,
    }
}

fn unended(id: &Value, bytes: u64) -> Payload {
    let head =
        format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":[{{"type":"text","text":""#);
    Payload::from(head).then(Payload::repeat("x", bytes))
}

fn other_type(id: &Value) -> Value {
    match id {
        Value::String(text) => text.parse::<i64>().map_or(Value::from(0), Value::from),
        other => Value::from(other.to_string()),
    }
}
