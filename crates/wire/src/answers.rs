//! The client's replies to requests of a server.
//!
//! A request is declined unless a reply is configured. The reply is sent at once, so that the
//! server never hangs.

use serde_json::{Map, Value, json};

/// The configured replies to a server's own requests. Each configured reply is also declared as a
/// capability, because servers only use declared capabilities.
#[derive(Debug, Clone, Default)]
pub struct ServerRequestReplies {
    /// The root URIs that the server gets for `roots/list`.
    pub roots: Vec<String>,
    /// The result of every elicitation. `None` declines.
    pub elicitation: Option<Value>,
    /// The result of every sampling request. `None` declines.
    pub sampling: Option<Value>,
}

impl ServerRequestReplies {
    /// The capabilities that the client declares.
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

    /// Returns the result for a request, or the code and message of an error.
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
    fn every_server_request_gets_a_reply() {
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
    fn configured_replies_are_sent_and_declared() {
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
