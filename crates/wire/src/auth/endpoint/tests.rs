use super::*;

#[test]
fn a_token_response_has_a_token_and_perhaps_a_lifetime() {
    let check = |json: &str, expected: Result<(&str, Option<u64>), &str>| {
        let found = Grant::parse(json.as_bytes());
        let found = found.map(|grant| (grant.access_token, grant.lifetime));
        let expected =
            expected.map(|(token, seconds)| (token.to_owned(), seconds.map(Duration::from_secs)));
        assert_eq!(found, expected, "{json}");
    };
    check(r#"{"access_token":"a"}"#, Ok(("a", None)));
    check(r#"{"token":"a","expires_in":5}"#, Ok(("a", Some(5))));
    check(r#"{"token":"a","expires_in":"5"}"#, Ok(("a", Some(5))));
    check(
        r#"{"access_token":"a","token_type":"BEARER"}"#,
        Ok(("a", None)),
    );
    let wrong_type = Err("has a token of another type than `Bearer`");
    check(r#"{"access_token":"a","token_type":"DPoP"}"#, wrong_type);
    check(
        r#"{"token":"a","expires_in":-1}"#,
        Err("has an invalid `expires_in`"),
    );
    check(
        r#"{"token":"a","expires_in":"soon"}"#,
        Err("has an invalid `expires_in`"),
    );
    check(
        r#"{"token":7}"#,
        Err("has neither `access_token` nor `token`"),
    );
    check("[1]", Err("can't be parsed"));
}

#[test]
fn an_error_shows_what_the_server_says_but_nothing_that_was_sent() {
    let client = OauthClient::new("me", Some("s3cret-of-the-client".to_owned()), &[]);
    let endpoint = TokenEndpoint::new(Url::parse("https://as.example/token?x=1").unwrap(), client);
    let form = [
        ("grant_type", "refresh_token"),
        ("refresh_token", "r3fresh-value"),
    ];
    let refused = |answer: &str| {
        let refusal = endpoint.refusal(StatusCode::BAD_REQUEST, answer.as_bytes(), &form);
        refusal.to_string()
    };
    assert_eq!(
        refused(
            r#"{"error":"invalid_grant","error_description":"r3fresh-value of me, s3cret-of-the-client"}"#
        ),
        "the authorization server refused the request: invalid_grant ([redacted:refresh_token] of \
         me, [redacted:client_secret])"
    );
    assert_eq!(
        refused("r3fresh-value"),
        "the token endpoint https://as.example/token can't be used: HTTP status 400 Bad Request"
    );
}

#[test]
fn secrets_go_only_to_protected_urls() {
    let at = |url: &str| Url::parse(url).unwrap();
    let (remote, local) = (at("https://api.example/mcp"), at("http://127.0.0.1:5/mcp"));
    let is_allowed = |url: &str, server: &Url| protected("token endpoint", url, server).is_ok();
    assert!(is_allowed("https://as.example/token", &remote));
    assert!(is_allowed("http://localhost:9/token", &local));
    assert!(is_allowed("http://[::1]:9/token", &local));
    for url in [
        "http://as.example/token",
        "http://localhost.evil.example/token",
        "http://localhost@evil.example/token",
        "ftp://localhost/token",
        "token",
    ] {
        assert!(!is_allowed(url, &local), "{url}");
    }
    // A remote server must not direct secrets to a local service.
    assert!(!is_allowed("http://127.0.0.1:9/token", &remote));
}

#[test]
fn a_client_uses_the_method_that_the_server_supports() {
    let in_form = |methods: &[&str]| {
        let methods: Vec<String> = methods.iter().map(ToString::to_string).collect();
        OauthClient::new("a", None, &methods).in_form
    };
    assert!(!in_form(&[]));
    assert!(!in_form(&["client_secret_post", "client_secret_basic"]));
    assert!(in_form(&["client_secret_post", "private_key_jwt"]));
}
