//! Adds the token of the server to requests of clients.
//!
//! Its main function is [`Upstream::exchange`]. If the server refuses the token, the request is
//! repeated once with a new one. The client sees one exchange.

use bytes::Bytes;
use http::StatusCode;
use http::header::AUTHORIZATION;
use http_body_util::{BodyExt, Full};

use super::{PooledBody, Upstream, UpstreamError};
use crate::auth::{AuthError, Challenge, TokenSource};
use crate::proxy::peeked_body::PeekedBody;
use crate::transport::MAX_MESSAGE;
use crate::web::ResponseBody;

/// What happened to the token of a request, as an extension of the response.
#[derive(Debug, Clone)]
pub(crate) enum TokenNote {
    /// The server refused the first token.
    Renewed(String),
    /// There is no token that the server accepts.
    Refused(String),
}

impl Upstream {
    /// Whether requests get a token of Proctor.
    pub(crate) fn has_tokens(&self) -> bool {
        self.tokens.is_some()
    }

    /// Sends a prepared request, with a token if the server needs one.
    pub(crate) async fn exchange(
        &self,
        request: http::Request<ResponseBody>,
    ) -> Result<http::Response<PooledBody>, UpstreamError> {
        match &self.tokens {
            None => self.transmit(request).await,
            Some(tokens) => Box::pin(self.exchange_with_token(tokens, request)).await,
        }
    }

    async fn exchange_with_token(
        &self,
        tokens: &TokenSource,
        request: http::Request<ResponseBody>,
    ) -> Result<http::Response<PooledBody>, UpstreamError> {
        let (mut head, body) = request.into_parts();
        // The message is recorded when it is read, also if there is no token.
        let body = PeekedBody::take(body, MAX_MESSAGE).await?;
        let token = tokens.token().await;
        let token = token.map_err(|error| UpstreamError::Unauthorized(error.to_string()))?;
        head.headers.insert(AUTHORIZATION, token.header());
        // A message over the limit can't be repeated.
        let again = body.whole().map(|text| (head.clone(), Bytes::from(text)));
        let request = http::Request::from_parts(head, body.boxed_unsync());
        let mut response = self.transmit(request).await?;
        if response.status() != StatusCode::UNAUTHORIZED {
            token.accepted();
            return Ok(response);
        }
        let Some((mut head, text)) = again else {
            return Ok(response);
        };
        let why = Challenge::of(response.headers()).reason();
        let renewed = match tokens.renewed(&token, &why).await {
            Ok(renewed) => renewed,
            Err(error) => {
                let note = TokenNote::Refused(error.to_string());
                response.extensions_mut().insert(note);
                return Ok(response);
            }
        };
        // A server may serve the next connection only when this one is closed.
        drop(response);
        head.headers.insert(AUTHORIZATION, renewed.header());
        let body = Full::new(text).map_err(|never| match never {});
        let request = http::Request::from_parts(head, body.boxed_unsync());
        let mut response = self.transmit(request).await?;
        let note = if response.status() == StatusCode::UNAUTHORIZED {
            let why = Challenge::of(response.headers()).reason();
            TokenNote::Refused(AuthError::TokenRefused(why).to_string())
        } else {
            renewed.accepted();
            TokenNote::Renewed(format!(
                "the server refused the token ({why}): repeated with a new one"
            ))
        };
        response.extensions_mut().insert(note);
        Ok(response)
    }
}
