//! A site on real sockets.

use super::*;

async fn site() -> Site {
    Site::start(0, async |request: SiteRequest| {
        match request.path.first().map(String::as_str) {
            None => SiteResponse::Page {
                html: Chunk::from("<!doctype html>".to_owned()),
                policy: "default-src 'none'".to_owned(),
            },
            Some("lines") => {
                let (sender, body) = chunks();
                tokio::spawn(async move {
                    for number in 0..10 {
                        sender.send(format!("{number}\n")).await;
                    }
                });
                SiteResponse::Lines(body)
            }
            Some("odd") => SiteResponse::Page {
                html: Chunk::default(),
                policy: "a\nb".to_owned(),
            },
            Some(_) => SiteResponse::Error(SiteError::not_found("no `x`")),
        }
    })
    .await
    .unwrap()
}

fn get(site: &Site, path: &str) -> reqwest::RequestBuilder {
    let client = crate::http_client::client().unwrap();
    client.get(format!("{}{path}", site.origin()))
}

fn with_token(site: &Site, path: &str) -> reqwest::RequestBuilder {
    get(site, path).bearer_auth(site.token.reveal())
}

async fn answer(request: reqwest::RequestBuilder) -> (u16, String) {
    let response = request.send().await.unwrap();
    (response.status().as_u16(), response.text().await.unwrap())
}

#[tokio::test]
async fn the_page_needs_no_token_and_everything_else_does() {
    let site = site().await;
    assert_eq!(
        answer(get(&site, "/")).await,
        (200, "<!doctype html>".to_owned())
    );
    let missing = r#"{"error":"missing token; open the URL that `proctor view` printed"}"#;
    assert_eq!(answer(get(&site, "/x")).await, (401, missing.to_owned()));
    let wrong = r#"{"error":"wrong token; open the URL that `proctor view` printed"}"#;
    for token in ["0", &"0".repeat(64), &site.token.reveal().to_uppercase()] {
        let asked = get(&site, "/x").bearer_auth(token);
        assert_eq!(answer(asked).await, (401, wrong.to_owned()), "{token}");
    }
    let in_url = get(&site, &format!("/x?token={}", site.token.reveal()));
    assert_eq!(answer(in_url).await.0, 401);
    let found = answer(with_token(&site, "/x")).await;
    assert_eq!(found, (404, r#"{"error":"no `x`"}"#.to_owned()));
    assert!(
        site.url()
            .ends_with(&format!("/#token={}", site.token.reveal()))
    );
}

#[tokio::test]
async fn foreign_hosts_and_origins_and_other_methods_are_refused_even_with_the_token() {
    let site = site().await;
    let port = site.web.address().port();
    for (name, value) in [
        ("host", "evil.example".to_owned()),
        ("host", format!("evil.example:{port}")),
        ("host", "127.0.0.1:1".to_owned()),
        ("origin", "http://evil.example".to_owned()),
        ("origin", "null".to_owned()),
        ("origin", format!("https://127.0.0.1:{port}")),
        ("origin", "http://127.0.0.1:1".to_owned()),
    ] {
        for path in ["/", "/x"] {
            let (status, text) = answer(with_token(&site, path).header(name, &value)).await;
            assert_eq!(status, 403, "{name}: {value}: {text}");
            assert!(text.contains("refused by Proctor: the "), "{text}");
        }
    }
    let own = with_token(&site, "/x").header("origin", site.origin());
    assert_eq!(answer(own).await.0, 404);
    let client = crate::http_client::client().unwrap();
    for method in ["POST", "PUT", "DELETE", "HEAD", "OPTIONS", "PATCH", "TRACE"] {
        let method = reqwest::Method::from_bytes(method.as_bytes()).unwrap();
        let asked = client.request(method.clone(), format!("{}/x", site.origin()));
        let got = asked.bearer_auth(site.token.reveal()).send().await.unwrap();
        assert_eq!(got.status().as_u16(), 405, "{method}");
        assert_eq!(got.headers()["allow"], "GET");
    }
}

#[tokio::test]
async fn every_response_has_the_headers_that_protect_it() {
    let site = site().await;
    for (path, policy) in [
        ("/", "default-src 'none'"),
        ("/lines", NOTHING),
        ("/x", NOTHING),
        ("/odd", NOTHING),
        ("/%00", NOTHING),
    ] {
        let got = with_token(&site, path).send().await.unwrap();
        let header = |name: &str| got.headers()[name].to_str().unwrap().to_owned();
        assert_eq!(header("content-security-policy"), policy, "{path}");
        assert_eq!(header("cache-control"), "no-store");
        assert_eq!(header("x-content-type-options"), "nosniff");
        assert_eq!(header("referrer-policy"), "no-referrer");
        assert_eq!(header("cross-origin-resource-policy"), "same-origin");
        assert_eq!(header("x-frame-options"), "DENY");
    }
}

#[tokio::test]
async fn lines_arrive_as_they_come_and_the_body_ends_with_its_sender() {
    let site = site().await;
    let (status, text) = answer(with_token(&site, "/lines")).await;
    assert_eq!((status, text.lines().count()), (200, 10));
}

#[test]
fn a_chunk_is_divided_into_parts() {
    let parts = |text: &str, size| -> Vec<Vec<u8>> {
        let chunk = Chunk::from(text.to_owned());
        chunk.parts(size).map(|part| part.0.to_vec()).collect()
    };
    assert_eq!(
        parts("abcde", 2),
        [b"ab".to_vec(), b"cd".to_vec(), b"e".to_vec()]
    );
    assert_eq!(parts("", 2), Vec::<Vec<u8>>::new());
}
