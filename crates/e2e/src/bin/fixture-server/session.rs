//! `Session`: the server's state of one client: pending requests, requests to the client, open
//! streams.

use std::collections::HashMap;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};

use serde_json::Value;

use crate::channel::Channel;
use crate::lock::lock;
use crate::message::{Era, notification};

/// The server's state of one client.
#[derive(Default)]
pub struct Session {
    /// The era of a stdio connection, set by its first message.
    era: Mutex<Option<Era>>,
    running: Mutex<HashMap<String, Arc<AtomicBool>>>,
    questions: Mutex<HashMap<String, Sender<Value>>>,
    asked: AtomicU64,
    outlets: Mutex<Vec<Outlet>>,
}

/// A stream for notifications that belong to no request.
struct Outlet {
    channel: Channel,
    /// The id and filter of the `subscriptions/listen` request, in the stateless era.
    subscription: Option<(Value, Vec<Change>)>,
}

/// A list that changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Change {
    Tools,
    Evals,
}

impl Change {
    fn method(self) -> &'static str {
        match self {
            Self::Tools => "notifications/tools/list_changed",
            Self::Evals => "notifications/evals/list_changed",
        }
    }

    /// Returns its name in a subscription.
    pub fn key(self) -> &'static str {
        match self {
            Self::Tools => "toolsListChanged",
            Self::Evals => "evalsListChanged",
        }
    }
}

impl Session {
    pub fn era(&self) -> Option<Era> {
        *lock(&self.era)
    }

    pub fn settle(&self, era: Era) {
        *lock(&self.era) = Some(era);
    }

    /// Adds a pending request; the flag is set when it is cancelled.
    pub fn begin(&self, id: &Value) -> Arc<AtomicBool> {
        lock(&self.running)
            .entry(id.to_string())
            .or_default()
            .clone()
    }

    pub fn end(&self, id: &Value) {
        lock(&self.running).remove(&id.to_string());
    }

    pub fn cancel(&self, id: &Value) {
        if let Some(flag) = lock(&self.running).get(&id.to_string()) {
            flag.store(true, Ordering::SeqCst);
        }
        lock(&self.outlets).retain(|outlet| {
            let subscription = outlet.subscription.as_ref();
            subscription.is_none_or(|(own, _)| own != id)
        });
    }

    /// Returns the id of a new request to the client, and the receiver of its response.
    pub fn question(&self) -> (String, Receiver<Value>) {
        let id = format!("ask-{}", self.asked.fetch_add(1, Ordering::SeqCst) + 1);
        let (sender, receiver) = channel();
        lock(&self.questions).insert(id.clone(), sender);
        (id, receiver)
    }

    pub fn answered(&self, id: &Value, body: Value) {
        let question = id.as_str().and_then(|id| lock(&self.questions).remove(id));
        if let Some(question) = question {
            // If the call was cancelled, the receiver is gone.
            let _ = question.send(body);
        }
    }

    /// Opens a stream. Notifications start only when it is open, and none is lost after that.
    pub fn add_outlet(
        &self,
        channel: Channel,
        subscription: Option<(Value, Vec<Change>)>,
        open: impl FnOnce() -> io::Result<()>,
    ) -> io::Result<()> {
        let mut outlets = lock(&self.outlets);
        open()?;
        outlets.push(Outlet {
            channel,
            subscription,
        });
        Ok(())
    }

    /// Announces a change, and removes streams that have ended.
    pub fn announce(&self, change: Change) {
        lock(&self.outlets).retain(|outlet| {
            let params = match &outlet.subscription {
                None => r#"{"_meta":{"x-unknown":1}}"#.to_owned(),
                Some((_, wanted)) if !wanted.contains(&change) => return true,
                Some((id, _)) => {
                    format!(r#"{{"_meta":{{"io.modelcontextprotocol/subscriptionId":{id}}}}}"#)
                }
            };
            let told = notification(change.method(), &params);
            outlet.channel.send(&told).is_ok()
        });
    }

    /// Sends a message of a request whose own response can't carry it.
    pub fn send_aside(&self, message: &crate::payload::Payload) {
        lock(&self.outlets).retain(|outlet| outlet.channel.send(message).is_ok());
    }
}
