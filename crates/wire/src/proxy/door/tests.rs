use super::*;

const OWN: &str = "127.0.0.1:4000";

/// Checks a request, given as `METHOD TARGET` and header lines, in which `TOKEN` stands for the
/// token. Returns the path and the headers, or why it is refused.
fn tried(admission: Admission, head: &[&str]) -> Result<String, String> {
    let token = AccessToken::random().unwrap();
    let lines: Vec<String> = head
        .iter()
        .map(|line| line.replace("TOKEN", token.reveal()))
        .collect();
    let (method, target) = lines[0].split_once(' ').unwrap();
    let mut request = http::Request::builder().method(method).uri(target);
    for line in &lines[1..] {
        let (name, value) = line.split_once(": ").unwrap();
        request = request.header(name, value);
    }
    let request = request.body(()).unwrap();
    let admitted = admit(request, OWN.parse().unwrap(), admission, &token);
    let said = admitted.map(|request| {
        let headers = request.headers().iter();
        let headers = headers.map(|(name, value)| format!("; {name}: {}", value.to_str().unwrap()));
        format!("{}{}", request.uri(), headers.collect::<String>())
    });
    let both = said.as_ref().unwrap_or_else(|why| why);
    assert!(!both.contains(token.reveal()), "the token is told");
    said
}

fn check(admission: Admission, head: &[&str], expected: Result<&str, &str>) {
    let expected = expected.map(str::to_owned).map_err(str::to_owned);
    assert_eq!(tried(admission, head), expected, "{admission:?} {head:?}");
}

const HOST: &str = "host: 127.0.0.1:4000";

#[test]
fn the_token_authorizes_and_is_removed() {
    use Admission::{Header, Open, Path};
    let passed = |rest: &str| format!("{rest}; {HOST}");
    let header = "Proctor-Token: TOKEN";
    check(
        Header,
        &["POST /mcp?a=1", HOST, header],
        Ok(&passed("/mcp?a=1")),
    );
    check(
        Header,
        &["POST /mcp", HOST, header, header],
        Ok(&passed("/mcp")),
    );
    check(Open, &["POST /mcp", HOST], Ok(&passed("/mcp")));
    check(
        Path,
        &["POST /TOKEN/mcp?a=/b", HOST],
        Ok(&passed("/mcp?a=/b")),
    );
    check(Path, &["GET /TOKEN", HOST], Ok(&passed("/")));
    check(Path, &["GET /TOKEN?a", HOST], Ok(&passed("/?a")));
    check(Path, &["GET /TOKEN//evil/", HOST], Ok(&passed("//evil/")));
    let localhost = "host: LocalHost:4000";
    check(Open, &["GET /", localhost], Ok(&format!("/; {localhost}")));
    let absolute = "GET http://127.0.0.1:4000/TOKEN/mcp";
    check(Path, &[absolute, HOST], Ok(&passed("/mcp")));
    let origin = "origin: http://127.0.0.1:4000";
    check(
        Open,
        &["GET /", HOST, origin],
        Ok(&format!("/; {HOST}; {origin}")),
    );
    let telling = "Referer: http://127.0.0.1:4000/TOKEN/mcp";
    check(
        Path,
        &["GET /TOKEN/mcp", HOST, telling, "x-a: TOKEN"],
        Ok(&passed("/mcp")),
    );
}

#[test]
fn requests_without_the_token_are_refused() {
    use Admission::{Header, Path};
    let (none, wrong) = ("missing token in the headers", "wrong token in the headers");
    check(Header, &["POST /mcp", HOST], Err(none));
    check(Header, &["POST /TOKEN/mcp", HOST], Err(none));
    for shown in ["", "x", "TOKENx", "token"] {
        let shown = format!("proctor-token: {shown}");
        check(Header, &["POST /mcp", HOST, &shown], Err(wrong));
    }
    let (none, wrong) = ("missing token in the path", "wrong token in the path");
    for path in ["/", "/?TOKEN", "//TOKEN/mcp"] {
        check(Path, &[&format!("GET {path}"), HOST], Err(none));
    }
    for path in ["/mcp", "/x/TOKEN/mcp", "/TOKENx/mcp", "/../TOKEN/mcp", "*"] {
        check(Path, &[&format!("OPTIONS {path}"), HOST], Err(wrong));
    }
    check(
        Path,
        &["GET /mcp", HOST, "proctor-token: TOKEN"],
        Err(wrong),
    );
}

#[test]
fn requests_for_other_hosts_and_origins_are_refused() {
    let refused = |head: &[&str], why: &str| {
        for admission in [Admission::Header, Admission::Open] {
            let head: Vec<&str> = head
                .iter()
                .copied()
                .chain(["proctor-token: TOKEN"])
                .collect();
            check(admission, &head, Err(why));
        }
    };
    refused(&["GET /mcp"], "missing Host header");
    for host in [
        "evil.example",
        "127.0.0.1",
        "127.0.0.1:4001",
        "localhost",
        "localhost:4001",
        "127.0.0.1:4000.evil.example",
        "me@127.0.0.1:4000",
    ] {
        let line = format!("host: {host}");
        refused(
            &["GET /mcp", &line],
            &format!("the Host header is `{host}`"),
        );
    }
    refused(&["GET /mcp", HOST, HOST], "invalid `host` header");
    for origin in [
        "null",
        "http://evil.example",
        "https://127.0.0.1:4000",
        "http://127.0.0.1:4000.evil.example",
        "http://127.0.0.1",
    ] {
        let line = format!("origin: {origin}");
        refused(
            &["GET /mcp", HOST, &line],
            &format!("the Origin header is `{origin}`"),
        );
    }
    let own = "origin: http://127.0.0.1:4000";
    refused(&["GET /mcp", HOST, own, own], "invalid `origin` header");
    for other in ["evil.example", "127.0.0.1:4001", "me@127.0.0.1:4000"] {
        let target = format!("GET http://{other}/mcp");
        let why = format!("the request is for another host, `{other}`");
        refused(&[&target, HOST], &why);
    }
    refused(
        &["CONNECT 127.0.0.1:4000", HOST],
        "CONNECT is not supported",
    );
}
