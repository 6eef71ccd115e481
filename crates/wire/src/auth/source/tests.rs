//! Sources against a token endpoint that counts its requests.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::AtomicUsize;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::*;

/// A token endpoint that answers every request in the same way, with `#` for its number.
struct Endpoint {
    url: String,
    asked: Arc<AtomicUsize>,
}

impl Endpoint {
    async fn start(status: &'static str, body: &'static str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/token", listener.local_addr().unwrap());
        let asked = Arc::new(AtomicUsize::new(0));
        let count = asked.clone();
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let mut request = Vec::new();
                // The form ends with the resource, which ends with `mcp`.
                while !request.ends_with(b"mcp") {
                    let mut part = [0; 4096];
                    let length = stream.read(&mut part).await.unwrap();
                    request.extend(&part[..length]);
                }
                let number = count.fetch_add(1, Ordering::SeqCst) + 1;
                let body = body.replace('#', &number.to_string());
                let length = body.len();
                let answer = format!(
                    "HTTP/1.1 {status}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
                );
                stream.write_all(answer.as_bytes()).await.unwrap();
            }
        });
        Self { url, asked }
    }

    fn source(&self) -> TokenSource {
        let auth = Auth::ClientCredentials(ClientCredentials {
            client_id: "me".to_owned(),
            client_secret: "s3cret-of-the-client".to_owned(),
            token_url: Some(self.url.clone()),
            issuer: None,
            scopes: Vec::new(),
            resource: None,
        });
        let options = ProgramOptions {
            inherited: &BTreeMap::new(),
            pass: &[],
            guard: Path::new("proctor"),
        };
        let url = Url::parse("http://127.0.0.1:1/mcp").unwrap();
        TokenSource::new(url, &auth, options, &SharedSecrets::default(), None)
    }

    fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }
}

const TOKEN: &str = r#"{"access_token":"t0ken-number-#"}"#;

#[tokio::test]
async fn a_new_token_that_is_refused_too_is_the_last_one() {
    let endpoint = Endpoint::start("200 OK", TOKEN).await;
    let source = endpoint.source();
    let first = source.token().await.ok().unwrap();
    let second = source.renewed(&first, "expired").await.ok().unwrap();
    assert!(!second.is_same(&first));
    for _ in 0..3 {
        let refused = source.renewed(&second, "wrong audience").await.err();
        let expected = AuthError::TokenRefused("wrong audience".to_owned());
        assert_eq!(refused, Some(expected));
    }
    assert_eq!(endpoint.asked(), 2);
}

#[tokio::test]
async fn a_token_that_was_accepted_is_renewed_once_it_is_refused() {
    let endpoint = Endpoint::start("200 OK", TOKEN).await;
    let source = endpoint.source();
    let mut token = source.token().await.ok().unwrap();
    for _ in 0..3 {
        token.accepted();
        token = source.renewed(&token, "expired").await.ok().unwrap();
    }
    assert_eq!(endpoint.asked(), 4);
}

#[tokio::test]
async fn a_refused_request_is_not_sent_again() {
    let body = r#"{"error":"invalid_client","error_description":"number #"}"#;
    let endpoint = Endpoint::start("401 Unauthorized", body).await;
    let source = endpoint.source();
    for _ in 0..3 {
        let refused = source.token().await.err();
        let expected = AuthError::Refused("invalid_client (number 1)".to_owned());
        assert_eq!(refused, Some(expected));
    }
    assert_eq!(endpoint.asked(), 1);
}

#[tokio::test]
async fn a_request_is_sent_again_if_the_endpoint_was_not_able_to_answer() {
    for body in ["", r#"{"error":"temporarily_unavailable"}"#] {
        let endpoint = Endpoint::start("503 Service Unavailable", body).await;
        let source = endpoint.source();
        for _ in 0..3 {
            assert!(source.token().await.is_err());
        }
        assert_eq!(endpoint.asked(), 3, "{body}");
    }
}
