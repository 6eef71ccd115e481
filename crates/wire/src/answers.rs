//! What the client answers when a server asks it something.
//!
//! Declined unless configured, and always at once: a server that waits for an answer would hang.

use serde_json::{Map, Value, json};

/// What is answered to a server's own requests. What is configured is also declared as a capability:
/// servers ask only for what a client says that it has.
#[derive(Debug, Clone, Default)]
pub struct ServerRequestReplies {
    /// The roots that a server may know of.
    pub roots: Vec<String>,
    /// The result of every elicitation; declined if there is none.
    pub elicitation: Option<Value>,
    /// The result of every sampling; declined if there is none.
    pub sampling: Option<Value>,
}

impl ServerRequestReplies {
    /// What the client says that it can do.
    pub(crate) fn capabilities(&self) -> Value {
        let mut capabilities = Map::new();
        let mut declare = |name: &str, is_there: bool| {
            if is_there {
                capabilities.insert(name.to_owned(), json!({}));
            }
        };
        declare("roots", !self.roots.is_empty());
        declare("elicitation", self.elicitation.is_some());
        declare("sampling", self.sampling.is_some());
        Value::Object(capabilities)
    }

    /// The result for a request, or the error.
    pub(crate) fn to(&self, method: &str) -> Result<String, (i64, String)> {
        match method {
            "ping" => Ok("{}".to_owned()),
            "roots/list" => {
                let roots: Vec<_> = self.roots.iter().map(|uri| json!({"uri": uri})).collect();
                Ok(json!({"roots": roots}).to_string())
            }
            "elicitation/create" => Ok(match &self.elicitation {
                Some(result) => result.to_string(),
                None => r#"{"action":"decline"}"#.to_owned(),
            }),
            "sampling/createMessage" if self.sampling.is_some() => {
                Ok(json!(self.sampling).to_string())
            }
            "sampling/createMessage" => Err((
                -1,
                "the user declined: sampling is not configured".to_owned(),
            )),
            other => Err((-32601, format!("unknown method `{other}`"))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_is_answered_at_once() {
        let answers = ServerRequestReplies {
            roots: vec!["file:///a".to_owned()],
            ..ServerRequestReplies::default()
        };
        assert_eq!(answers.to("ping").unwrap(), "{}");
        assert_eq!(
            answers.to("roots/list").unwrap(),
            r#"{"roots":[{"uri":"file:///a"}]}"#
        );
        assert_eq!(
            answers.to("elicitation/create").unwrap(),
            r#"{"action":"decline"}"#
        );
        assert_eq!(answers.to("sampling/createMessage").unwrap_err().0, -1);
        assert_eq!(answers.to("what/ever").unwrap_err().0, -32601);
        assert_eq!(answers.capabilities(), json!({"roots": {}}));
    }

    #[test]
    fn what_is_configured_is_given_and_declared() {
        let answers = ServerRequestReplies {
            elicitation: Some(json!({"action": "accept"})),
            sampling: Some(json!({"role": "assistant"})),
            ..ServerRequestReplies::default()
        };
        assert_eq!(
            answers.to("elicitation/create").unwrap(),
            r#"{"action":"accept"}"#
        );
        assert_eq!(
            answers.to("sampling/createMessage").unwrap(),
            r#"{"role":"assistant"}"#
        );
        assert_eq!(
            answers.capabilities(),
            json!({"elicitation": {}, "sampling": {}})
        );
        assert_eq!(ServerRequestReplies::default().capabilities(), json!({}));
    }
}
