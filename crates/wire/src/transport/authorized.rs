//! Sends HTTP requests with the token of their server, and records them.
//!
//! Its main type is [`AuthorizedClient`]. A request is recorded without its token. If the server
//! refuses the token, the request is repeated once with a new one; the record has its message once.

use std::sync::Arc;

use proctor_record::event::{Direction, HttpFailure};
use reqwest::header::AUTHORIZATION;
use reqwest::{Client, Request, Response, StatusCode};

use crate::auth::{AuthError, Challenge, Token, TokenSource};
use crate::http_client::{AddressError, client};
use crate::recorder::ConnectionTap;

/// An HTTP client, and the tokens of the server that it talks to.
pub(super) struct AuthorizedClient {
    client: Client,
    tokens: Option<Arc<TokenSource>>,
}

/// Why a request has no response.
pub(super) enum SendFailure {
    Network(reqwest::Error),
    /// There is no token that the server accepts.
    Unauthorized(String),
}

impl AuthorizedClient {
    pub(super) fn new(tokens: Option<Arc<TokenSource>>) -> Result<Self, AddressError> {
        Ok(Self {
            client: client()?,
            tokens,
        })
    }

    /// The HTTP client, to build requests.
    pub(super) fn http(&self) -> &Client {
        &self.client
    }

    /// Sends a request, whose head the caller has recorded, and records the head of the response.
    pub(super) async fn send(
        &self,
        request: Request,
        tap: &ConnectionTap,
        exchange: u64,
    ) -> Result<Response, SendFailure> {
        let response = match &self.tokens {
            None => self.client.execute(request).await,
            Some(tokens) => return self.send_with_token(tokens, request, tap, exchange).await,
        };
        let response = response.map_err(SendFailure::Network)?;
        record(&response, tap, exchange);
        Ok(response)
    }

    async fn send_with_token(
        &self,
        tokens: &TokenSource,
        request: Request,
        tap: &ConnectionTap,
        exchange: u64,
    ) -> Result<Response, SendFailure> {
        let refused = |error: AuthError| {
            let reason = error.to_string();
            tap.http_failed(exchange, reason.clone(), HttpFailure::Unauthorized);
            SendFailure::Unauthorized(reason)
        };
        let mut wait = TokenWait::new(tap, exchange);
        let token = tokens.token().await;
        wait.is_over = true;
        let token = token.map_err(refused)?;
        let again = request.try_clone();
        let response = self.execute(request, &token).await?;
        let Some(again) = again.filter(|_| response.status() == StatusCode::UNAUTHORIZED) else {
            token.accepted();
            record(&response, tap, exchange);
            return Ok(response);
        };
        let why = Challenge::of(response.headers()).reason();
        wait.is_over = false;
        let renewed = tokens.renewed(&token, &why).await;
        wait.is_over = true;
        let renewed = match renewed {
            Ok(renewed) => renewed,
            Err(error) => {
                record(&response, tap, exchange);
                return Err(refused(error));
            }
        };
        let line = format!("the server refused the token ({why}): repeated with a new one");
        tap.aside(exchange, Direction::ToClient, &line, &Ok(Vec::new()));
        let response = self.execute(again, &renewed).await?;
        record(&response, tap, exchange);
        if response.status() == StatusCode::UNAUTHORIZED {
            let why = Challenge::of(response.headers()).reason();
            return Err(refused(AuthError::TokenRefused(why)));
        }
        renewed.accepted();
        Ok(response)
    }

    async fn execute(&self, mut request: Request, token: &Token) -> Result<Response, SendFailure> {
        request.headers_mut().insert(AUTHORIZATION, token.header());
        let response = self.client.execute(request).await;
        response.map_err(SendFailure::Network)
    }
}

fn record(response: &Response, tap: &ConnectionTap, exchange: u64) {
    let (status, headers) = (response.status().to_string(), response.headers());
    tap.http(exchange, Direction::ToClient, status, headers);
}

/// A wait for a token. If the caller gives up meanwhile, the server is not to blame.
struct TokenWait<'a> {
    tap: &'a ConnectionTap,
    exchange: u64,
    is_over: bool,
}

impl<'a> TokenWait<'a> {
    fn new(tap: &'a ConnectionTap, exchange: u64) -> Self {
        Self {
            tap,
            exchange,
            is_over: false,
        }
    }
}

impl Drop for TokenWait<'_> {
    fn drop(&mut self) {
        if !self.is_over {
            let line = "no token in time".to_owned();
            self.tap
                .http_failed(self.exchange, line, HttpFailure::Unauthorized);
        }
    }
}
