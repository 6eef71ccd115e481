//! One connection for several records: each holds what belongs to it, and nothing is lost.

mod ends;
mod stage;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use proctor_core::suite::Server;
use proctor_core::suite::server::Transport;
use proctor_e2e::client::{http_server, stdio_server};
use proctor_e2e::{Fixture, log_lines};
use proctor_record::event::{Direction, EventKind, FindingKind};
use proctor_wire::client::{Client, Era, ListLimits};
use tokio::task::JoinSet;

use self::stage::{HOME, Records, Stage, arguments, eventually};

fn sse_server(fixture: &Fixture) -> Server {
    Server {
        transport: Transport::Sse {
            url: fixture.url().to_owned(),
            headers: std::collections::BTreeMap::new(),
        },
        ..http_server(fixture.url())
    }
}

/// Several who share a connection call at the same time, and are answered in another order.
async fn many_calls(server: &Server, era: Era, mut stage: Stage) -> Records {
    let client = stage
        .connect(server, |options| options.era = Some(era))
        .await;
    let mut tasks = JoinSet::new();
    for who in 0..6_u64 {
        let share = stage.attach(&client, &format!("trial {who}"));
        tasks.spawn(async move {
            for turn in 0..5_u64 {
                let text = format!("{who}.{turn}");
                let pause = arguments("ms", (who * 7 + turn * 5) % 11 * 4);
                let said = arguments("text", text.as_str());
                let (slept, echoed) = tokio::join!(
                    share.call_tool("sleep", pause),
                    share.call_tool("echo", said)
                );
                assert!(slept.unwrap().raw.get().contains("slept"));
                assert!(echoed.unwrap().raw.get().contains(&text));
            }
            assert_eq!(share.findings(), []);
            share.close().await;
        });
    }
    tasks.join_all().await;
    client.close().await;
    stage.end()
}

fn check_many_calls(records: &Records) {
    for who in 0..6 {
        let record = &records[format!("trial {who}").as_str()];
        let calls = record.calls();
        assert_eq!(calls.len(), 10, "{calls:?}");
        for (turn, pair) in calls.chunks(2).enumerate() {
            assert!(pair[0].starts_with("sleep ") && pair[0].ends_with(" → slept"));
            let echo = format!(r#"echo {{"text":"{who}.{turn}"}} → {who}.{turn}"#);
            assert_eq!(pair[1], echo);
        }
        assert_eq!(record.folded.findings, []);
        assert_eq!(record.frames.len(), 20);
        assert_eq!(
            record.closed().reason,
            "the connection is shared and stays open"
        );
    }
    let home = &records[HOME];
    assert_eq!(
        (home.calls(), &home.folded.findings),
        (Vec::new(), &Vec::new())
    );
}

/// The exchanges of HTTP that a record has heads of, each with how many.
fn exchanges(records: &Records, name: &str) -> BTreeSet<(u64, usize)> {
    let heads = records[name].events.iter();
    let heads: Vec<u64> = heads
        .filter_map(|event| match &event.event {
            EventKind::Http(http) => Some(http.exchange),
            _ => None,
        })
        .collect();
    let count = |id: &u64| heads.iter().filter(|other| *other == id).count();
    heads.iter().map(|id| (*id, count(id))).collect()
}

#[tokio::test]
async fn each_record_has_its_own_calls_over_stdio_and_all_have_every_byte() {
    let stage = Stage::new();
    let log = stage.log();
    let server = stdio_server(&["--log", &log.display().to_string()]);
    let records = many_calls(&server, Era::Handshake, stage).await;
    check_many_calls(&records);
    let mut recorded: Vec<(bool, String)> = Vec::new();
    for record in records.all.values() {
        let frames = record.frames.iter();
        recorded.extend(frames.map(|(to, text)| (*to == Direction::ToServer, text.clone())));
    }
    let witnessed = log_lines(&log);
    let mut witnessed: Vec<(bool, String)> = witnessed
        .iter()
        .map(|line| {
            (
                line["dir"] == "in",
                line["text"].as_str().unwrap().to_owned(),
            )
        })
        .collect();
    recorded.sort();
    witnessed.sort();
    assert_eq!(recorded, witnessed);
}

#[tokio::test]
async fn each_record_has_its_own_calls_over_http() {
    for (era, mode) in [
        (Era::Handshake, "json-responses"),
        (Era::Handshake, "sse-responses"),
        (Era::Stateless, "sse-responses"),
    ] {
        let fixture = Fixture::http(&["--era", era.word(), "--mode", mode]);
        let records = many_calls(&http_server(fixture.url()), era, Stage::new()).await;
        check_many_calls(&records);
        let mut seen = BTreeSet::new();
        for name in records.all.keys() {
            let own = exchanges(&records, name);
            if name != HOME {
                assert_eq!(own.len(), 10, "{name}");
                assert!(own.iter().all(|(_, heads)| *heads == 2), "{own:?}");
            }
            for (exchange, _) in own {
                assert!(seen.insert(exchange), "{exchange} is in two records");
            }
        }
    }
}

#[tokio::test]
async fn each_record_has_its_own_calls_over_the_older_http() {
    let fixture = Fixture::sse(&["--era", "handshake"]);
    let records = many_calls(&sse_server(&fixture), Era::Handshake, Stage::new()).await;
    check_many_calls(&records);
}

/// Two who share a connection, each with a call that reports progress.
async fn progress(server: &Server) -> Records {
    let mut stage = Stage::new();
    let client = stage.connect(server, |_| {}).await;
    // A question is answered once the stream that all share is open.
    loop {
        let asked = client.call_tool("ask", arguments("kind", "roots"));
        if let Ok(answered) = tokio::time::timeout(Duration::from_millis(200), asked).await {
            answered.unwrap();
            break;
        }
    }
    let (a, b) = (stage.attach(&client, "a"), stage.attach(&client, "b"));
    // On HTTP, an answer may overtake progress on another stream; these wait.
    let folder = tempfile::tempdir().unwrap();
    let go = folder.path().join("go");
    let steps = |steps: u64| {
        let mut all = arguments("steps", steps);
        all.extend(arguments("ms", 5));
        all.extend(arguments("until", go.to_str().unwrap()));
        all
    };
    let reported = |name: &str| stage.recorded(name, "notifications/progress");
    let (first, second, ()) = tokio::join!(
        a.call_tool("progress", steps(3)),
        b.call_tool("progress", steps(5)),
        async {
            eventually(|| (reported("a"), reported("b")) == (3, 5)).await;
            std::fs::write(&go, "").unwrap();
        }
    );
    first.unwrap();
    second.unwrap();
    a.close().await;
    b.close().await;
    client.close().await;
    stage.end()
}

#[tokio::test]
async fn progress_goes_to_the_record_of_its_request() {
    let streams = Fixture::http(&["--era", "handshake", "--mode", "sse-responses"]);
    // Here progress comes on the stream that all share.
    let aside = Fixture::http(&["--era", "handshake", "--mode", "json-responses"]);
    let older = Fixture::sse(&["--era", "handshake"]);
    for server in [
        stdio_server(&[]),
        http_server(streams.url()),
        http_server(aside.url()),
        sse_server(&older),
    ] {
        let records = progress(&server).await;
        let counts = ["a", "b", HOME].map(|name| records[name].holding("notifications/progress"));
        assert_eq!(counts, [3, 5, 0], "{:?}", server.transport);
    }
}

#[tokio::test]
async fn what_the_server_says_unasked_stays_with_the_connection() {
    let mut stage = Stage::new();
    let server = stdio_server(&["--mode", "tools-change", "--mode", "log-noise"]);
    let client = stage.connect(&server, |_| {}).await;
    let a = stage.attach(&client, "a");
    a.list_tools(&ListLimits::default()).await.unwrap();
    a.call_tool("echo", arguments("text", "hi")).await.unwrap();
    eventually(|| a.list_changes() == 1).await;
    let b = stage.attach(&client, "b");
    assert_eq!((client.list_changes(), b.list_changes()), (1, 0));
    b.list_tools(&ListLimits::default()).await.unwrap();
    a.list_tools(&ListLimits::default()).await.unwrap();
    let kinds = |client: &Client| {
        let findings = client.findings().into_iter();
        findings.map(|(kind, ..)| kind).collect::<Vec<_>>()
    };
    assert_eq!(kinds(&a), [FindingKind::ToolsChanged]);
    assert_eq!(kinds(&b), []);
    assert_eq!(kinds(&client), [FindingKind::Noise]);
    assert_eq!(a.identity().name, client.identity().name);
    drop((a, b));
    client.close().await;
    let records = stage.end();
    let counts = ["a", "b", HOME].map(|name| records[name].holding("list_changed"));
    assert_eq!(counts, [0, 0, 1]);
    assert_eq!(records["a"].calls().len(), 1);
    assert_eq!(records["a"].closed().reason, "the connection was dropped");
}

#[tokio::test]
async fn a_question_of_the_server_is_with_the_exchange_that_it_came_in_if_there_is_one() {
    let question = arguments("kind", "roots");
    let http = Fixture::http(&["--era", "handshake", "--mode", "sse-responses"]);
    for (server, expected) in [
        (http_server(http.url()), [2, 0]),
        (stdio_server(&[]), [0, 2]),
    ] {
        let mut stage = Stage::new();
        let client = stage.connect(&server, |_| {}).await;
        let a = stage.attach(&client, "a");
        a.call_tool("ask", question.clone()).await.unwrap();
        a.close().await;
        client.close().await;
        let records = stage.end();
        // The question, and what was answered to it.
        let counts = ["a", HOME].map(|name| records[name].holding(r#""id":"ask-1""#));
        assert_eq!(counts, expected);
        assert_eq!(records["a"].calls().len(), 1);
    }
}

#[tokio::test]
async fn one_client_serves_many_tasks() {
    let mut stage = Stage::new();
    let client = Arc::new(stage.connect(&stdio_server(&[]), |_| {}).await);
    let mut tasks = JoinSet::new();
    for n in 0..20 {
        let client = client.clone();
        tasks.spawn(async move {
            let text = format!("text {n}");
            let result = client
                .call_tool("echo", arguments("text", text.as_str()))
                .await;
            assert!(result.unwrap().raw.get().contains(&text));
        });
    }
    tasks.join_all().await;
    Arc::into_inner(client).unwrap().close().await;
    assert_eq!(stage.end()[HOME].calls().len(), 20);
}
