//! One logical call, with all its rounds of requested input.

use proctor_record::event::FindingKind;
use proctor_record::json;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::{CallError, Client, Era};
use crate::answers::{SAMPLING, ServerRequestReplies};
use crate::worker;

/// The maximum number of rounds in which a server may request input.
const MAX_ROUNDS: usize = 10;

/// The result of a call.
#[derive(Debug, Clone)]
pub struct CallResult {
    /// The unmodified result. It may be large, so callers parse only the parts that they need.
    pub raw: Box<RawValue>,
    /// The value of `isError`: the tool reports that it failed.
    pub is_error: bool,
    /// How many rounds of input the server requested.
    pub rounds: usize,
}

/// The members that the client reads of every result. The rest is skipped, whatever its size and
/// depth. Each member is parsed separately, so a malformed one does not hide the others.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ResultHeader<'a> {
    #[serde(default, borrow)]
    is_error: Option<&'a RawValue>,
    #[serde(default, borrow)]
    result_type: Option<&'a RawValue>,
    #[serde(default, borrow)]
    content: Option<&'a RawValue>,
    #[serde(default, borrow)]
    input_requests: Option<&'a RawValue>,
    #[serde(default, borrow)]
    request_state: Option<&'a RawValue>,
}

impl ResultHeader<'_> {
    fn is_error(&self) -> bool {
        self.is_error.is_some_and(|raw| raw.get() == "true")
    }

    fn asks_back(&self) -> bool {
        self.result_type
            .is_some_and(|raw| raw.get() == r#""input_required""#)
    }

    fn has_content(&self) -> bool {
        self.content.is_some_and(|raw| raw.get().starts_with('['))
    }
}

/// Parses a member of a result; `None` if it is missing or malformed.
fn read<T: serde::de::DeserializeOwned>(raw: Option<&RawValue>) -> Option<T> {
    json::from_str(raw?.get()).ok()
}

impl Client {
    /// Calls a tool, without retries.
    pub async fn call_tool(
        &self,
        name: &str,
        arguments: Map<String, Value>,
    ) -> Result<CallResult, CallError> {
        let params = json!({"name": name, "arguments": arguments});
        self.call("tools/call", params).await
    }

    /// Sends a request that the server may answer with requests for input.
    pub async fn call(&self, method: &str, params: Value) -> Result<CallResult, CallError> {
        let Value::Object(params) = params else {
            return Err(CallError::Malformed(
                "the parameters must be an object".to_owned(),
            ));
        };
        let mut next = params.clone();
        for rounds in 0..=MAX_ROUNDS {
            let raw = self.request(method, next).await?;
            let header = self.read_header(method, &raw)?;
            let asks_back = self.identity().era == Era::Stateless && header.asks_back();
            if !asks_back {
                let is_error = header.is_error();
                return Ok(CallResult {
                    raw,
                    is_error,
                    rounds,
                });
            }
            next = params.clone();
            let responses = responses(&header, self.connection.peer.answers()).await?;
            next.insert("inputResponses".to_owned(), responses);
            if let Some(state) = read(header.request_state) {
                next.insert("requestState".to_owned(), state);
            }
        }
        Err(CallError::Malformed(format!(
            "the server requested input more than {MAX_ROUNDS} times"
        )))
    }

    /// Reads the header of a result, and adds findings for protocol problems.
    fn read_header<'a>(
        &self,
        method: &str,
        raw: &'a RawValue,
    ) -> Result<ResultHeader<'a>, CallError> {
        let note = |problem: &str| {
            let detail = format!("the result of `{method}` {problem}");
            self.tap.finding(FindingKind::Protocol, detail.as_str());
            detail
        };
        let header: ResultHeader<'_> = worker::parse(raw.get().as_bytes())
            .map_err(|_| CallError::Malformed(note("is not an object")))?;
        if method == "tools/call" && !header.asks_back() && !header.has_content() {
            note("has no `content` list");
        }
        Ok(header)
    }
}

/// Returns the replies to the input requests of a result.
async fn responses(
    asks: &ResultHeader<'_>,
    answers: &ServerRequestReplies,
) -> Result<Value, CallError> {
    let mut responses = Map::new();
    let questions: Map<String, Value> = read(asks.input_requests).unwrap_or_default();
    for (key, mut question) in questions {
        let params = question.get_mut("params").map(Value::take);
        let method = question.get("method").and_then(Value::as_str).unwrap_or("");
        let reply = answers.to(method, params.unwrap_or_default());
        let answer = reply.outcome().await.map_err(|(_, why)| {
            let reason = format!("the server requested input with `{method}`: {why}");
            if method == SAMPLING && answers.sampling.is_some() {
                CallError::InputRefused(reason)
            } else {
                CallError::Malformed(reason)
            }
        })?;
        let answer = json::from_str(&answer).unwrap_or(Value::Null);
        responses.insert(key, answer);
    }
    Ok(Value::Object(responses))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(result: &str, is_error: bool, asks_back: bool, has_content: bool) {
        let header: ResultHeader<'_> = serde_json::from_str(result).unwrap();
        let found = (header.is_error(), header.asks_back(), header.has_content());
        assert_eq!(found, (is_error, asks_back, has_content), "{result}");
    }

    #[test]
    fn a_malformed_member_does_not_hide_the_others() {
        check(r#"{"content":[],"isError":true}"#, true, false, true);
        check(
            r#"{"content":[],"isError":true,"inputRequests":[],"resultType":5}"#,
            true,
            false,
            true,
        );
        check(r#"{"isError":"yes","content":{}}"#, false, false, false);
        check(
            r#"{"resultType":"input_required","isError":null}"#,
            false,
            true,
            false,
        );
        let deep = format!(
            r#"{{"x":{}{},"isError":true}}"#,
            "[".repeat(100_000),
            "]".repeat(100_000)
        );
        check(&deep, true, false, false);
        assert!(serde_json::from_str::<ResultHeader<'_>>(r#""done""#).is_err());
    }
}
