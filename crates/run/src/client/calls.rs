//! One logical call, however many rounds it takes.

use proctor_core::event::FindingKind;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::{CallError, Client, Era};
use crate::client::answers::Answers;

/// How often a server may ask back before it gives a result.
const MAX_ROUNDS: usize = 10;

/// What a call came to.
#[derive(Debug, Clone)]
pub struct CallResult {
    /// The result, untouched. It may be large: whoever looks into it takes it piece by piece.
    pub raw: Box<RawValue>,
    /// Whether the tool says that it failed.
    pub is_error: bool,
    /// How often the server asked back.
    pub rounds: usize,
}

/// What is looked at in every result. The rest is skipped, however large and deep.
#[derive(Deserialize)]
struct Glance<'a> {
    #[serde(default, rename = "isError")]
    is_error: Option<bool>,
    #[serde(default, rename = "resultType")]
    result_type: Option<String>,
    #[serde(default, borrow)]
    content: Option<&'a RawValue>,
    #[serde(default, rename = "inputRequests")]
    input_requests: Option<Map<String, Value>>,
    #[serde(default, rename = "requestState")]
    request_state: Option<Value>,
}

impl Client {
    /// Calls a tool. It is never called again by itself.
    pub async fn call_tool(
        &self,
        name: &str,
        arguments: Map<String, Value>,
    ) -> Result<CallResult, CallError> {
        let params = json!({"name": name, "arguments": arguments});
        self.call("tools/call", params).await
    }

    /// Makes a call that the server may answer with questions of its own.
    pub async fn call(&self, method: &str, params: Value) -> Result<CallResult, CallError> {
        let Value::Object(params) = params else {
            return Err(CallError::Nonsense("parameters are an object".to_owned()));
        };
        let mut next = params.clone();
        for rounds in 0..=MAX_ROUNDS {
            let raw = self.request(method, next).await?;
            let glance = self.glance(method, &raw);
            let asks = glance.as_ref().filter(|g| {
                self.identity.era == Era::Stateless
                    && g.result_type.as_deref() == Some("input_required")
            });
            let Some(asks) = asks else {
                let is_error = glance.and_then(|g| g.is_error).unwrap_or(false);
                return Ok(CallResult {
                    raw,
                    is_error,
                    rounds,
                });
            };
            next = params.clone();
            let responses = responses(asks, self.peer.answers())?;
            next.insert("inputResponses".to_owned(), responses);
            if let Some(state) = &asks.request_state {
                next.insert("requestState".to_owned(), state.clone());
            }
        }
        Err(CallError::Nonsense(format!(
            "the server asked back more than {MAX_ROUNDS} times"
        )))
    }

    /// Looks at a result, and notes what no result should be.
    fn glance<'a>(&self, method: &str, raw: &'a RawValue) -> Option<Glance<'a>> {
        let glance: Option<Glance<'_>> = serde_json::from_str(raw.get()).ok();
        let is_list = |raw: &RawValue| raw.get().trim_start().starts_with('[');
        let problem = match &glance {
            None => Some("is not an object as it should be"),
            Some(g)
                if method == "tools/call" && g.result_type.as_deref() != Some("input_required") =>
            {
                let has_content = g.content.is_some_and(is_list);
                (!has_content).then_some("has no list `content`")
            }
            Some(_) => None,
        };
        if let Some(problem) = problem {
            let detail = format!("the result of `{method}` {problem}");
            self.peer.tap().finding(FindingKind::Protocol, detail);
        }
        glance
    }
}

/// What is answered to the questions in a result.
fn responses(asks: &Glance<'_>, answers: &Answers) -> Result<Value, CallError> {
    let mut responses = Map::new();
    for (key, question) in asks.input_requests.iter().flatten() {
        let method = question.get("method").and_then(Value::as_str).unwrap_or("");
        let answer = answers.to(method).map_err(|(_, why)| {
            CallError::Nonsense(format!("the server asks back for `{method}`: {why}"))
        })?;
        let answer = serde_json::from_str(&answer).unwrap_or(Value::Null);
        responses.insert(key.clone(), answer);
    }
    Ok(Value::Object(responses))
}
