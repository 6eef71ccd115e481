//! The replies of Proctor's client to a server's own requests within a trial.
//!
//! Its main type is [`TrialSampler`], which asks a model on behalf of a server. It stops with the
//! trial: dropping its [`SamplerGuard`] ends every request that is under way.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use proctor_core::suite::TrialValues;
use proctor_core::suite::replies::{ClientReplies, Sampling};
use proctor_core::suite::step::values::FillError;
use proctor_models::{AskError, ModelClient};
use proctor_record::model::{Media, ModelMessage, ModelRequest, StopReason, Turn};
use proctor_wire::answers::{Sampler, SamplingReply, ServerRequestReplies};
use proctor_wire::worker::BoxedFuture;
use serde_json::{Value, json};
use tokio::sync::watch;

/// The replies for a connection. Without a sampler, sampling requests are refused.
pub(crate) fn answers(
    replies: &ClientReplies,
    sampler: Option<Arc<dyn Sampler>>,
    trial: Option<&TrialValues>,
) -> Result<ServerRequestReplies, FillError> {
    let root = |root: &String| {
        let filled = trial.map_or_else(|| Ok(root.clone()), |trial| trial.fill(root));
        filled.map(|root| root_uri(&root))
    };
    let mut answers = ServerRequestReplies::default();
    answers.roots = replies
        .roots
        .as_ref()
        .map(|roots| roots.iter().map(root).collect::<Result<_, _>>())
        .transpose()?;
    answers.elicitation.clone_from(&replies.elicitation);
    answers.sampling = match &replies.sampling {
        None => None,
        Some(Sampling::Refuse) => Some(SamplingReply::Refuse),
        Some(Sampling::Model(_)) => {
            Some(sampler.map_or(SamplingReply::Refuse, SamplingReply::Model))
        }
    };
    Ok(answers)
}

/// The URI of a root. Servers need absolute paths.
fn root_uri(root: &str) -> String {
    if root.contains("://") {
        return root.to_owned();
    }
    let path = std::path::absolute(root).unwrap_or_else(|_| Path::new(root).to_path_buf());
    let path = percent_encoding::utf8_percent_encode(&path.to_string_lossy(), PATH).to_string();
    format!("file://{path}")
}

/// The characters of a path that a URI can't contain.
const PATH: &percent_encoding::AsciiSet = &percent_encoding::CONTROLS
    .add(b' ')
    .add(b'"')
    .add(b'#')
    .add(b'%')
    .add(b'<')
    .add(b'>')
    .add(b'?')
    .add(b'`')
    .add(b'{')
    .add(b'}');

/// Asks a model on behalf of a server.
pub(crate) struct TrialSampler {
    asker: ModelClient,
    failure: Arc<Mutex<Option<AskError>>>,
    /// Closed when the trial no longer needs the server.
    is_needed: watch::Receiver<()>,
}

/// Keeps a sampler working. Its drop ends the requests that are under way.
pub struct SamplerGuard {
    failure: Arc<Mutex<Option<AskError>>>,
    _needed: watch::Sender<()>,
}

impl SamplerGuard {
    /// Why the model gave no reply, if it failed.
    pub(crate) fn failure(&self) -> Option<AskError> {
        let failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        failure.clone()
    }
}

impl TrialSampler {
    pub(crate) fn guarded(asker: ModelClient) -> (Arc<dyn Sampler>, SamplerGuard) {
        let (needed, is_needed) = watch::channel(());
        let failure = Arc::default();
        let guard = SamplerGuard {
            failure: Arc::clone(&failure),
            _needed: needed,
        };
        let sampler = Self {
            asker,
            failure,
            is_needed,
        };
        (Arc::new(sampler), guard)
    }
}

impl Sampler for TrialSampler {
    fn sample(&self, params: Value) -> BoxedFuture<'static, Result<Value, String>> {
        let (asker, failure) = (self.asker.clone(), self.failure.clone());
        let mut is_needed = self.is_needed.clone();
        Box::pin(async move {
            let request = sampling_request(&params)?;
            let replied = tokio::select! {
                biased;
                _ = is_needed.changed() => return Err("the trial has ended".to_owned()),
                replied = asker.ask(&request) => replied,
            };
            match replied {
                Ok(priced) => Ok(sampling_result(
                    asker.model.name(),
                    &priced.reply.turn,
                    &priced.reply.stop,
                )),
                Err(error) => {
                    let reason = error.to_string();
                    *failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
                    Err(reason)
                }
            }
        })
    }
}

/// The model request for the parameters of `sampling/createMessage`.
fn sampling_request(params: &Value) -> Result<ModelRequest, String> {
    if params.get("tools").is_some_and(|tools| !tools.is_null()) {
        return Err("sampling with tools is not supported".to_owned());
    }
    let messages = params.get("messages").and_then(Value::as_array);
    let mut request = ModelRequest {
        system: params
            .get("systemPrompt")
            .and_then(Value::as_str)
            .map(str::to_owned),
        max_tokens: params.get("maxTokens").and_then(Value::as_u64),
        temperature: params.get("temperature").and_then(Value::as_f64),
        ..ModelRequest::default()
    };
    for message in messages.into_iter().flatten() {
        let is_user = message.get("role").is_none_or(|role| role != "assistant");
        let content = match message.get("content") {
            Some(Value::Array(blocks)) => blocks.iter().collect(),
            Some(block) => vec![block],
            None => Vec::new(),
        };
        for block in content {
            request.messages.push(sampling_message(block, is_user)?);
        }
    }
    if request.messages.is_empty() {
        return Err("the sampling request has no messages".to_owned());
    }
    Ok(request)
}

fn sampling_message(block: &Value, is_user: bool) -> Result<ModelMessage, String> {
    let text = |key: &str| block.get(key).and_then(Value::as_str).map(str::to_owned);
    match (block.get("type").and_then(Value::as_str), is_user) {
        (Some("text"), true) => Ok(ModelMessage::User(text("text").unwrap_or_default())),
        (Some("text"), false) => Ok(ModelMessage::Assistant(Turn {
            text: text("text").unwrap_or_default(),
            ..Turn::default()
        })),
        (Some("image" | "audio"), true) => Ok(ModelMessage::Media(Media {
            mime_type: text("mimeType").unwrap_or_default(),
            data: text("data").unwrap_or_default(),
        })),
        (kind, _) => {
            let kind = kind.unwrap_or("no type");
            Err(format!(
                "unsupported content in the sampling request: {kind}"
            ))
        }
    }
}

fn sampling_result(model: &str, turn: &Turn, stop: &StopReason) -> Value {
    json!({
        "role": "assistant",
        "content": {"type": "text", "text": turn.text},
        "model": model,
        "stopReason": match stop {
            StopReason::Length => "maxTokens",
            StopReason::Done | StopReason::Calls | StopReason::Refusal | StopReason::Other(_) => {
                "endTurn"
            }
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sampling_request_becomes_a_model_request() {
        let request = sampling_request(&json!({
            "systemPrompt": "Be brief.",
            "maxTokens": 20,
            "temperature": 0.5,
            "messages": [
                {"role": "user", "content": {"type": "text", "text": "Hi"}},
                {"role": "assistant", "content": [{"type": "text", "text": "Hello"}]},
                {"role": "user", "content": {"type": "image", "mimeType": "image/png", "data": "AA=="}},
            ],
        }))
        .unwrap();
        assert_eq!(request.system.as_deref(), Some("Be brief."));
        assert_eq!(
            (request.max_tokens, request.temperature),
            (Some(20), Some(0.5))
        );
        assert!(matches!(
            &request.messages[..],
            [
                ModelMessage::User(hi),
                ModelMessage::Assistant(Turn { text, .. }),
                ModelMessage::Media(_),
            ] if hi == "Hi" && text == "Hello"
        ));
    }

    #[test]
    fn a_request_that_the_model_would_not_get_whole_is_refused() {
        let check = |params: Value, part: &str| {
            let error = sampling_request(&params).unwrap_err();
            assert!(error.contains(part), "{error}");
        };
        check(json!({"messages": []}), "no messages");
        check(json!({"messages": [], "tools": [{}]}), "with tools");
        let odd = json!([{"role": "user", "content": {"type": "video"}}]);
        check(
            json!({"messages": odd}),
            "unsupported content in the sampling request: video",
        );
    }

    #[test]
    fn a_root_is_a_uri() {
        assert_eq!(root_uri("https://a.example/x"), "https://a.example/x");
        assert_eq!(root_uri("/tmp/my files"), "file:///tmp/my%20files");
        assert!(root_uri("data").starts_with("file:///"));
    }
}
