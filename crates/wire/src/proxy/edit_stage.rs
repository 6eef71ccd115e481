//! Hosts an editor in front of an HTTP server, for both transports and eras.
//!
//! Its main type is [`EditStage`], between a recording proxy and the server. It extracts messages
//! from bodies and events, and replaces them as the edit decides; everything else passes unchanged.
//! So do encoded bodies and error responses.

mod conversations;
mod head;
mod stream;

use std::sync::Arc;

use bytes::Bytes;
use http::header::{CONTENT_ENCODING, CONTENT_LENGTH};
use http::{HeaderMap, Method, StatusCode};
use http_body_util::{BodyExt, Full};
use proctor_record::json;
use proctor_record::message::{Message, MessageKind};
use reqwest::Url;
use tokio::task::JoinHandle;
use tokio::time::sleep;

use self::conversations::{Conversations, Stream};
pub(crate) use self::head::is_stateless;
use self::head::{EVENTS, answered, fits, is, session};
use self::stream::{EditedStream, StreamAdditions};
use super::addresses::AnnouncedEndpoints;
use super::peeked_body::PeekedBody;
use super::upstream::{PooledBody, Upstream, UpstreamError, passed};
use crate::edit::conversation::Conversation;
use crate::edit::{BOM, ClientMessageAction, Editor, Passage};
use crate::web::{ConnectionAbort, OutgoingResponse, ResponseBody, whole};

/// Edits all exchanges with a server.
pub(super) struct EditStage {
    editor: Arc<dyn Editor>,
    server: Url,
    conversations: Arc<Conversations>,
    announced: Arc<AnnouncedEndpoints<Stream>>,
    telling: Option<JoinHandle<()>>,
}

/// A message that a client posted.
struct Post {
    conversation: Arc<Conversation>,
    /// The HTTP+SSE stream that carries its response.
    stream: Option<Arc<Stream>>,
    /// The method, if the message is a single request.
    request: Option<String>,
}

impl Post {
    /// Whether the response comes in the same exchange.
    fn is_answered_here(&self) -> bool {
        self.stream.is_none() && self.request.is_some()
    }

    fn begins_session(&self) -> bool {
        self.stream.is_none() && self.request.as_deref() == Some("initialize")
    }
}

impl EditStage {
    /// Edits the exchanges with the server at a URL. Must be called within a tokio runtime.
    pub(super) fn new(editor: &Arc<dyn Editor>, server: &Url) -> Self {
        let conversations = Arc::new(Conversations::default());
        let telling = editor.changes().map(|mut changes| {
            let conversations = conversations.clone();
            tokio::spawn(async move {
                while changes.changed().await.is_ok() {
                    conversations.tell();
                }
            })
        });
        Self {
            editor: editor.clone(),
            server: server.clone(),
            conversations,
            announced: Arc::default(),
            telling,
        }
    }

    /// Sends a prepared request like [`Upstream::exchange`], with the edits of the editor.
    pub(super) async fn exchange(
        &self,
        upstream: &Upstream,
        request: http::Request<ResponseBody>,
    ) -> Result<OutgoingResponse, UpstreamError> {
        match *request.method() {
            Method::POST => self.post(upstream, request).await,
            Method::GET => {
                let session = session(request.headers());
                let response = self.send(upstream, request).await?;
                Ok(self.listen(response, session))
            }
            _ => Ok(self.send(upstream, request).await?.map(passed)),
        }
    }

    async fn send(
        &self,
        upstream: &Upstream,
        request: http::Request<ResponseBody>,
    ) -> Result<http::Response<PooledBody>, UpstreamError> {
        let sent = upstream.exchange(request).await;
        sent.inspect_err(|error| self.editor.unreachable(&error.to_string()))
    }

    async fn post(
        &self,
        upstream: &Upstream,
        request: http::Request<ResponseBody>,
    ) -> Result<OutgoingResponse, UpstreamError> {
        let (mut head, body) = request.into_parts();
        let body = PeekedBody::take(body, self.editor.limit()).await?;
        let Some(text) = body.whole() else {
            // The body is too long to be read, so its content is unknown.
            let request = http::Request::from_parts(head, body.boxed_unsync());
            return Ok(self.send(upstream, request).await?.map(passed));
        };
        let asked = head.uri.path_and_query().map_or("/", |p| p.as_str());
        let stream = self.announced.exactly(asked).and_then(|s| s.upgrade());
        let (session, message) = (session(&head.headers), parsed(&text));
        let post = self.posted(message.as_ref(), stream, session.as_deref());
        let mut body = body.boxed_unsync();
        match post.conversation.on_client_message(&text) {
            ClientMessageAction::Answer(answer) if fits(message.as_ref(), &head.headers) => {
                return answer_to(&post, answer, &head.headers).await;
            }
            ClientMessageAction::Answer(_) | ClientMessageAction::Forward(Passage::Pass) => {}
            ClientMessageAction::Forward(Passage::Delay(time)) => sleep(time).await,
            ClientMessageAction::Forward(Passage::Drop) => return unanswered(&post).await,
            ClientMessageAction::Forward(Passage::Replace(message)) => {
                body = replaced(&mut head.headers, message);
            }
        }
        let request = http::Request::from_parts(head, body);
        let response = self.send(upstream, request).await?;
        self.answer(response, &post, session).await
    }

    /// Returns the conversation of a message. Requests without a session are independent, because
    /// many clients use the same ids.
    fn posted(
        &self,
        message: Option<&Message<'_>>,
        stream: Option<Arc<Stream>>,
        session: Option<&str>,
    ) -> Post {
        let request = message.and_then(|message| match message.kind() {
            MessageKind::Request { method, .. } => Some(method.to_owned()),
            _ => None,
        });
        let is_new = match request.as_deref() {
            Some("initialize") => true,
            Some(_) => session.is_none(),
            None => false,
        };
        let known = match &stream {
            Some(stream) => Some(stream.conversation.clone()),
            None if is_new => None,
            None => self.conversations.of(session),
        };
        Post {
            conversation: known.unwrap_or_else(|| Conversation::begin(&self.editor)),
            stream,
            request,
        }
    }

    /// Returns the response to a message.
    async fn answer(
        &self,
        response: http::Response<PooledBody>,
        post: &Post,
        asked: Option<String>,
    ) -> Result<OutgoingResponse, UpstreamError> {
        if !response.status().is_success() {
            return Ok(response.map(passed));
        }
        match session(response.headers()).or(asked) {
            None if !post.begins_session() => {}
            _ if post.stream.is_some() => {}
            id => self.conversations.keep(id, &post.conversation),
        }
        let is_encoded = response.headers().contains_key(CONTENT_ENCODING);
        if is_encoded || !post.is_answered_here() || !post.conversation.reads_server() {
            return Ok(response.map(passed));
        }
        let (mut head, body) = response.into_parts();
        if is(&head.headers, EVENTS) {
            head.headers.remove(CONTENT_LENGTH);
            let body = EditedStream::new(body, &post.conversation, None);
            return Ok(http::Response::from_parts(head, body.boxed_unsync()));
        }
        let body = PeekedBody::take(passed(body), self.editor.limit()).await?;
        let text = body.whole();
        let mut body = body.boxed_unsync();
        match text.map(|text| post.conversation.on_server_message(&text)) {
            None | Some(Passage::Pass) => {}
            Some(Passage::Delay(time)) => sleep(time).await,
            Some(Passage::Drop) => return std::future::pending().await,
            Some(Passage::Replace(message)) => body = replaced(&mut head.headers, message),
        }
        Ok(http::Response::from_parts(head, body))
    }

    /// Registers the response as a stream on which the client listens, if it is one.
    fn listen(
        &self,
        response: http::Response<PooledBody>,
        session: Option<String>,
    ) -> OutgoingResponse {
        let headers = response.headers();
        if !is(headers, EVENTS) || headers.contains_key(CONTENT_ENCODING) {
            return response.map(passed);
        }
        let known = self.conversations.of(session.as_deref());
        let conversation = known.unwrap_or_else(|| Conversation::begin(&self.editor));
        let (stream, ours) = Stream::new(session, conversation.clone());
        self.conversations.listen(&stream);
        let listening = StreamAdditions::new((stream, ours), &self.server, &self.announced);
        let (mut head, body) = response.into_parts();
        head.headers.remove(CONTENT_LENGTH);
        let body = EditedStream::new(body, &conversation, Some(listening));
        http::Response::from_parts(head, body.boxed_unsync())
    }
}

impl Drop for EditStage {
    fn drop(&mut self) {
        if let Some(telling) = &self.telling {
            telling.abort();
        }
    }
}

/// Answers instead of the server.
async fn answer_to(
    post: &Post,
    answer: Vec<u8>,
    headers: &HeaderMap,
) -> Result<OutgoingResponse, UpstreamError> {
    match &post.stream {
        None => Ok(answered(answer, headers)),
        Some(stream) if stream.say(answer).await => Ok(accepted()),
        Some(_) => Err(ConnectionAbort("no client listens on the stream".to_owned()).into()),
    }
}

/// Returns the response to a dropped message. If the client waits for a response, this never
/// returns.
async fn unanswered(post: &Post) -> Result<OutgoingResponse, UpstreamError> {
    if post.is_answered_here() {
        return std::future::pending().await;
    }
    Ok(accepted())
}

fn accepted() -> OutgoingResponse {
    whole(StatusCode::ACCEPTED, "text/plain", "Accepted")
}

/// Returns another body, and corrects the `Content-Length` header if there is one.
fn replaced(headers: &mut HeaderMap, message: Vec<u8>) -> ResponseBody {
    if headers.contains_key(CONTENT_LENGTH) {
        headers.insert(CONTENT_LENGTH, message.len().into());
    }
    let body = Full::new(Bytes::from(message));
    body.map_err(|never| match never {}).boxed_unsync()
}

fn parsed(text: &[u8]) -> Option<Message<'_>> {
    let text = text.strip_prefix(BOM).unwrap_or(text);
    json::from_slice(text).ok()
}

#[cfg(test)]
mod tests;
