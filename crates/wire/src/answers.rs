//! The client's replies to requests of a server.
//!
//! A request is declined unless a reply is configured. The reply is sent at once, so that the
//! server never hangs; only a model that answers a sampling request takes its time.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use proctor_core::suite::replies::{Elicitation, UnfitReply};
use serde_json::{Map, Value, json};

use crate::worker::BoxedFuture;

/// The method with which a server asks for a model's reply.
pub(crate) const SAMPLING: &str = "sampling/createMessage";

/// A result as JSON, or the code and message of an error.
pub(crate) type ReplyOutcome = Result<String, (i64, String)>;

/// The configured replies to a server's own requests. Each configured reply is also declared as a
/// capability, because servers only use declared capabilities.
#[derive(Clone, Default)]
pub struct ServerRequestReplies {
    /// The root URIs that the server gets for `roots/list`.
    pub roots: Option<Vec<String>>,
    /// The answers to elicitations. `None` declines.
    pub elicitation: Option<Elicitation>,
    /// Who answers sampling requests. `None` declines.
    pub sampling: Option<SamplingReply>,
    log: Arc<Mutex<ReplyLog>>,
}

/// Who answers sampling requests.
#[derive(Clone)]
pub enum SamplingReply {
    Refuse,
    Model(Arc<dyn Sampler>),
}

/// Answers sampling requests.
pub trait Sampler: Send + Sync {
    /// The result for a request with these parameters, or why there is none.
    fn sample(&self, params: Value) -> BoxedFuture<'static, Result<Value, String>>;
}

/// What was replied on a connection.
#[derive(Default)]
struct ReplyLog {
    unfit: Option<UnfitReply>,
    /// The indexes of the elicitation rules that answered a request.
    used: BTreeSet<usize>,
}

/// A reply to one request of the server.
pub(crate) enum ServerReply {
    Now(ReplyOutcome),
    Later(BoxedFuture<'static, ReplyOutcome>),
}

impl ServerReply {
    pub(crate) async fn outcome(self) -> ReplyOutcome {
        match self {
            Self::Now(outcome) => outcome,
            Self::Later(later) => later.await,
        }
    }
}

impl ServerRequestReplies {
    /// The first request for which the configured answer does not fit.
    pub fn unfit(&self) -> Option<UnfitReply> {
        self.log(|log| log.unfit.clone())
    }

    /// The places of the elicitation rules that answered no request.
    pub fn unused(&self) -> Vec<String> {
        let places = self.elicitation.iter().flat_map(Elicitation::places);
        let places = places.enumerate();
        self.log(|log| {
            let unused = places.filter(|(at, _)| !log.used.contains(at));
            unused.map(|(_, place)| place.to_owned()).collect()
        })
    }

    fn log<T>(&self, with: impl FnOnce(&mut ReplyLog) -> T) -> T {
        with(&mut self.log.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The capabilities that the client declares.
    pub(crate) fn capabilities(&self) -> Value {
        let mut capabilities = Map::new();
        let mut declare = |name: &str, is_there: bool| {
            if is_there {
                capabilities.insert(name.to_owned(), json!({}));
            }
        };
        declare("roots", self.roots.is_some());
        declare("elicitation", self.elicitation.is_some());
        declare("sampling", self.sampling.is_some());
        Value::Object(capabilities)
    }

    /// Returns the reply to a request.
    pub(crate) fn to(&self, method: &str, params: Value) -> ServerReply {
        ServerReply::Now(match method {
            "ping" => Ok("{}".to_owned()),
            "roots/list" => {
                let roots = self.roots.iter().flatten();
                let roots: Vec<_> = roots.map(|uri| json!({"uri": uri})).collect();
                Ok(json!({"roots": roots}).to_string())
            }
            "elicitation/create" => Ok(self.elicited(&params).to_string()),
            SAMPLING => match &self.sampling {
                Some(SamplingReply::Model(sampler)) => {
                    let sampling = sampler.sample(params);
                    return ServerReply::Later(Box::pin(async {
                        let outcome = sampling.await;
                        outcome
                            .map(|result| result.to_string())
                            .map_err(|error| (-32603, error))
                    }));
                }
                Some(SamplingReply::Refuse) => {
                    Err((-1, "the user refused the sampling request".to_owned()))
                }
                None => Err((
                    -1,
                    "the user declined: sampling is not configured".to_owned(),
                )),
            },
            other => Err((-32601, format!("unknown method `{other}`"))),
        })
    }

    /// The result of an elicitation. If the configured answer does not fit, the form is closed, and
    /// the problem is kept for the trial.
    fn elicited(&self, params: &Value) -> Value {
        let Some(elicitation) = &self.elicitation else {
            return json!({"action": "decline"});
        };
        match elicitation.reply(params) {
            Ok((result, rule)) => {
                self.log(|log| log.used.insert(rule));
                result
            }
            Err(error) => {
                self.log(|log| log.unfit.get_or_insert(error).clone());
                json!({"action": "cancel"})
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proctor_core::suite::replies::{ElicitationReply, ElicitationRule};
    use proctor_record::event::Blame;

    use super::*;

    fn now(answers: &ServerRequestReplies, method: &str) -> ReplyOutcome {
        match answers.to(method, json!({"message": "Go on?"})) {
            ServerReply::Now(outcome) => outcome,
            ServerReply::Later(_) => panic!("no immediate reply to {method}"),
        }
    }

    #[test]
    fn every_server_request_gets_a_reply() {
        let answers = ServerRequestReplies {
            roots: Some(vec!["file:///a".to_owned()]),
            ..ServerRequestReplies::default()
        };
        assert_eq!(now(&answers, "ping").unwrap(), "{}");
        assert_eq!(
            now(&answers, "roots/list").unwrap(),
            r#"{"roots":[{"uri":"file:///a"}]}"#
        );
        assert_eq!(
            now(&answers, "elicitation/create").unwrap(),
            r#"{"action":"decline"}"#
        );
        assert_eq!(now(&answers, "sampling/createMessage").unwrap_err().0, -1);
        assert_eq!(now(&answers, "what/ever").unwrap_err().0, -32601);
        assert_eq!(answers.capabilities(), json!({"roots": {}}));
    }

    #[test]
    fn configured_replies_are_sent_and_declared() {
        let rule = |when: Value, reply: ElicitationReply| ElicitationRule {
            when: Some(proctor_core::matcher::Matcher::compile(&when).unwrap()),
            reply,
            place: "a.yaml:1".to_owned(),
        };
        let answers = ServerRequestReplies {
            elicitation: Some(Elicitation::Rules(vec![
                rule(json!({"message": "Go on?"}), ElicitationReply::Cancel),
                rule(json!({"message": "Stop?"}), ElicitationReply::Decline),
            ])),
            sampling: Some(SamplingReply::Refuse),
            ..ServerRequestReplies::default()
        };
        assert_eq!(
            now(&answers, "elicitation/create").unwrap(),
            r#"{"action":"cancel"}"#
        );
        assert_eq!(answers.unused(), ["a.yaml:1"]);
        assert_eq!(answers.unfit(), None);
        assert_eq!(now(&answers, "sampling/createMessage").unwrap_err().0, -1);
        assert_eq!(
            answers.capabilities(),
            json!({"elicitation": {}, "sampling": {}})
        );
        assert_eq!(ServerRequestReplies::default().capabilities(), json!({}));
    }

    #[test]
    fn an_answer_that_does_not_fit_is_kept_for_the_trial() {
        let answers = ServerRequestReplies {
            elicitation: Some(Elicitation::Rules(Vec::new())),
            ..ServerRequestReplies::default()
        };
        assert_eq!(
            now(&answers.clone(), "elicitation/create").unwrap(),
            r#"{"action":"cancel"}"#
        );
        let unfit = answers.unfit().unwrap();
        assert_eq!(unfit.blame, Blame::Suite);
        assert!(unfit.reason.contains("`Go on?`"), "{unfit}");
    }
}
