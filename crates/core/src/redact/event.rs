//! Every string of an event, redacted.

use data_encoding::BASE64;

use crate::event::{
    Body, ConnectionClosed, ConnectionOpened, Event, Finding, Frame, Http, RunEnded, RunStarted,
    TrialEnded, TrialStarted, What,
};

use super::Redactor;

impl Redactor {
    /// The event without secrets.
    pub fn event(&self, event: Event) -> Event {
        Event {
            event: self.what(event.event),
            ..event
        }
    }

    /// What happened, without secrets.
    pub fn what(&self, what: What) -> What {
        match what {
            What::RunStarted(run) => What::RunStarted(RunStarted {
                record: run.record,
                proctor: self.owned(run.proctor),
                started: self.owned(run.started),
                name: self.owned(run.name),
                command: self.command(run.command),
            }),
            What::RunEnded(run) => What::RunEnded(RunEnded {
                exit: run.exit,
                reason: self.optional(run.reason),
            }),
            What::TrialStarted(trial) => What::TrialStarted(self.trial_started(trial)),
            What::PhaseStarted { phase } => What::PhaseStarted { phase },
            What::TrialEnded(trial) => What::TrialEnded(self.trial_ended(trial)),
            What::ConnectionOpened(opened) => What::ConnectionOpened(ConnectionOpened {
                server: self.owned(opened.server),
                target: self.address(&opened.target),
                ..opened
            }),
            What::ConnectionClosed(closed) => What::ConnectionClosed(ConnectionClosed {
                conn: closed.conn,
                reason: self.owned(closed.reason),
                stderr: self.optional(closed.stderr),
            }),
            What::Frame(frame) => What::Frame(Frame {
                body: self.body(frame.body),
                ..frame
            }),
            What::Http(http) => What::Http(self.http(http)),
            What::Finding(finding) => What::Finding(Finding {
                detail: self.owned(finding.detail),
                ..finding
            }),
        }
    }

    pub(crate) fn trial_started(&self, trial: TrialStarted) -> TrialStarted {
        TrialStarted {
            case: self.owned(trial.case),
            agent: self.optional(trial.agent),
            ..trial
        }
    }

    pub(crate) fn trial_ended(&self, trial: TrialEnded) -> TrialEnded {
        TrialEnded {
            outcome: trial.outcome,
            reason: self.optional(trial.reason),
        }
    }

    fn http(&self, http: Http) -> Http {
        let headers = http.headers.into_iter().map(|(name, value)| {
            let value = self.header(&name, &value);
            (self.owned(name), value)
        });
        Http {
            line: self.address(&http.line),
            headers: headers.collect(),
            ..http
        }
    }

    fn body(&self, body: Body) -> Body {
        match body {
            Body::Text(text) => Body::Text(self.owned(text)),
            Body::Base64(text) => Body::Base64(match BASE64.decode(text.as_bytes()) {
                Ok(bytes) => BASE64.encode(&self.bytes(&bytes)),
                Err(_) => self.owned(text),
            }),
            other @ (Body::Blob { .. } | Body::Cut { .. }) => other,
        }
    }

    fn optional(&self, text: Option<String>) -> Option<String> {
        text.map(|text| self.owned(text))
    }

    /// Most strings hold no secret, and are passed on as they are.
    fn owned(&self, text: String) -> String {
        match self.text(&text) {
            std::borrow::Cow::Borrowed(_) => text,
            std::borrow::Cow::Owned(redacted) => redacted,
        }
    }
}
