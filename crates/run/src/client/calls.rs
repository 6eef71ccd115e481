//! One logical call, however many rounds it takes.

use proctor_core::event::FindingKind;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::{CallError, Client, Era};
use crate::client::answers::Answers;

/// How often a server may ask back before it gives a result.
const MAX_ROUNDS: usize = 10;

/// What a call came to.
#[derive(Debug, Clone)]
pub struct CallResult {
    /// The result, untouched.
    pub raw: Box<RawValue>,
    /// The same, to look into; absent if it is nested too deeply to be looked into.
    pub value: Option<Value>,
    /// How often the server asked back.
    pub rounds: usize,
}

impl CallResult {
    /// Whether the tool says that it failed.
    pub fn is_error(&self) -> bool {
        let said = self.value.as_ref().and_then(|value| value.get("isError"));
        said.and_then(Value::as_bool).unwrap_or(false)
    }
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
            let value: Option<Value> = serde_json::from_str(raw.get()).ok();
            let asks = value
                .as_ref()
                .filter(|v| v.get("resultType").is_some_and(|t| t == "input_required"));
            let Some(asks) = asks.filter(|_| self.identity.era == Era::Stateless) else {
                if value.is_none() {
                    let detail = format!("the result of `{method}` can't be looked into");
                    self.peer.tap().finding(FindingKind::Protocol, detail);
                }
                return Ok(CallResult { raw, value, rounds });
            };
            next = params.clone();
            next.insert(
                "inputResponses".to_owned(),
                responses(asks, self.peer.answers())?,
            );
            if let Some(state) = asks.get("requestState") {
                next.insert("requestState".to_owned(), state.clone());
            }
        }
        Err(CallError::Nonsense(format!(
            "the server asked back more than {MAX_ROUNDS} times"
        )))
    }
}

/// What is answered to the questions in a result.
fn responses(asks: &Value, answers: &Answers) -> Result<Value, CallError> {
    let questions = asks.get("inputRequests").and_then(Value::as_object);
    let mut responses = Map::new();
    for (key, question) in questions.into_iter().flatten() {
        let method = question.get("method").and_then(Value::as_str).unwrap_or("");
        let answer = answers.to(method).map_err(|(_, why)| {
            CallError::Nonsense(format!("the server asks back for `{method}`: {why}"))
        })?;
        let answer = serde_json::from_str(&answer).unwrap_or(Value::Null);
        responses.insert(key.clone(), answer);
    }
    Ok(Value::Object(responses))
}
