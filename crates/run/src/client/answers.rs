//! What the client answers when a server asks it something.
//!
//! Declined unless configured, and always at once: a server that waits for an answer would hang.

use serde_json::json;

/// What is answered to a server's own requests.
#[derive(Debug, Clone, Default)]
pub struct Answers {
    /// The roots that a server may know of.
    pub roots: Vec<String>,
}

impl Answers {
    /// The result for a request, or the error.
    pub(crate) fn to(&self, method: &str) -> Result<String, (i64, String)> {
        match method {
            "ping" => Ok("{}".to_owned()),
            "roots/list" => {
                let roots: Vec<_> = self.roots.iter().map(|uri| json!({"uri": uri})).collect();
                Ok(json!({"roots": roots}).to_string())
            }
            "elicitation/create" => Ok(r#"{"action":"decline"}"#.to_owned()),
            "sampling/createMessage" => Err((
                -1,
                "the user declined: no model answers for this client".to_owned(),
            )),
            other => Err((-32601, format!("this client has no method `{other}`"))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_is_answered_at_once() {
        let answers = Answers {
            roots: vec!["file:///a".to_owned()],
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
    }
}
