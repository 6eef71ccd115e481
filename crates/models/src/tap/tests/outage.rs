//! A provider that is down, silent, slow or answers with garbage, behind the tap.

use super::*;

#[tokio::test]
async fn an_unavailable_provider_ends_the_trial() {
    let stage = Stage::new(LoopLimits::default(), None).await;
    assert_eq!(stage.say("locked", 0, false).await.0, 401);
    assert!(matches!(stage.tap.ended().await, TapEnd::Dead(why) if why.contains("no such key")));
    let stage = Stage::new(LoopLimits::default(), None).await;
    assert_eq!(stage.say("down", 0, false).await.0, 503);
    // It may come back, and does.
    assert_eq!(stage.say("go", 0, false).await.0, 200);
    assert_eq!(stage.say("down", 0, false).await.0, 503);
    let end = tokio::time::timeout(Duration::from_mins(3), stage.tap.ended()).await;
    assert!(
        matches!(&end, Ok(TapEnd::Dead(why)) if why.contains("gone")),
        "{end:?}"
    );
    assert_eq!(stage.folded().work.agent.failures, 2);
}

#[tokio::test]
async fn requested_waits_are_not_working_time() {
    let stage = Stage::new(LoopLimits::default(), None).await;
    assert_eq!(stage.say("busy", 0, false).await.0, 429);
    let waited = stage.waiting.total();
    assert_eq!(waited, Duration::from_secs(20));
    // One that is put off meanwhile waits no longer than that, give or take what the question took.
    assert_eq!(stage.say("busy", 0, false).await.0, 429);
    let more = stage.waiting.total().checked_sub(waited).expect("it grows");
    assert!(more < Duration::from_secs(15), "{more:?}");
    assert_eq!(stage.say("closed", 0, false).await.0, 429);
    let why =
        "rate limited by the provider: come back later (asked to wait 1h; the maximum wait is 2m)";
    assert_eq!(stage.tap.ended().await, TapEnd::Dead(why.to_owned()));
}

const BRIEF: ModelTimeouts = ModelTimeouts {
    connect: Duration::from_secs(10),
    first_byte: Duration::from_millis(100),
    idle: Duration::from_secs(10),
    total: Duration::from_secs(10),
};

/// Checks that a request fails, and that this ends the trial.
async fn is_given_up(stage: &Stage, prompt: &str) {
    let client = proctor_wire::http_client::client().expect("a client");
    let asked = client
        .post(format!("{}/v1/messages", stage.tap.base()))
        .header("x-api-key", stage.tap.key())
        .body(body(prompt, 0, true).to_string())
        .send();
    let heard = match asked.await {
        Ok(response) => response.text().await,
        Err(error) => Err(error),
    };
    assert!(heard.is_err(), "{heard:?}");
    let end = tokio::time::timeout(Duration::from_mins(3), stage.tap.ended()).await;
    let why = "no reply from the model within 100ms".to_owned();
    assert_eq!(end.expect("it ends"), TapEnd::Dead(why));
    assert_eq!(stage.folded().work.agent.failures, 1);
}

#[tokio::test]
async fn a_provider_that_never_answers_ends_the_trial() {
    let stage = Stage::with(LoopLimits::default(), None, BRIEF, None).await;
    is_given_up(&stage, "mute").await;
}

#[tokio::test]
async fn a_provider_that_stops_sending_ends_the_trial() {
    use tokio::io::AsyncWriteExt;
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await;
    let listener = listener.expect("a port");
    let address = listener.local_addr().expect("an address");
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.expect("a question");
        let begun = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\nevent: ping\n";
        stream.write_all(begun).await.expect("it can be written");
        // It keeps the connection, and says no more.
        std::future::pending::<()>().await;
    });
    let stage = Stage::with(LoopLimits::default(), None, BRIEF, Some(address)).await;
    is_given_up(&stage, "go").await;
}

/// A provider that answers every request with an HTML page.
async fn page_server() -> std::net::SocketAddr {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await;
    let listener = listener.expect("a port");
    let address = listener.local_addr().expect("an address");
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.expect("a question");
            let mut asked = vec![0; 1 << 16];
            let _ = stream.read(&mut asked).await.expect("it can be read");
            let page = "<html><body>Welcome</body></html>";
            let answer = format!(
                "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{page}",
                page.len()
            );
            let written = stream.write_all(answer.as_bytes()).await;
            written.expect("it can be written");
        }
    });
    address
}

#[tokio::test]
async fn a_provider_that_only_sends_html_ends_the_trial() {
    let address = page_server().await;
    let stage = Stage::with(
        LoopLimits::default(),
        None,
        ModelTimeouts::default(),
        Some(address),
    )
    .await;
    for _ in 0..4 {
        assert_eq!(stage.say("go", 0, true).await.0, 200);
        assert_eq!(stage.tap.inside.limits.is_over(), None);
    }
    assert_eq!(stage.say("go", 0, true).await.0, 200);
    let end = tokio::time::timeout(Duration::from_mins(3), stage.tap.ended()).await;
    let why = end.expect("it ends").to_string();
    assert!(why.contains("not JSON"), "{why}");
    assert!(why.contains("5 replies in a row"), "{why}");
    assert_eq!(stage.say("go", 0, true).await.0, 400, "it is refused");
}

#[tokio::test]
async fn malformed_replies_between_valid_ones_are_tolerated() {
    let limits = TapLimits::new(
        LoopLimits::default(),
        Arc::new(Meter::new(
            proctor_core::price::Prices::default(),
            Budget::default(),
        )),
        RetryWait::default(),
    );
    let malformed = ModelError::Malformed {
        detail: "not JSON".to_owned(),
    };
    let reply = proctor_record::model::Reply {
        turn: proctor_record::model::Turn::default(),
        stop: proctor_record::model::StopReason::Done,
        usage: proctor_record::model::Usage::default(),
        raw: None,
    };
    for _ in 0..10 {
        for _ in 0..4 {
            limits.failed(Purpose::Agent, &malformed);
        }
        limits.failed(Purpose::Side, &malformed);
        assert_eq!(limits.is_over(), None);
        limits.replied(Purpose::Agent, "m", &reply);
    }
}
