//! Listing: all pages of honest servers, and an end with dishonest ones.

use std::time::Duration;

use mcp_evals::{Level, ListedEval};
use proctor_wire::client::{Era, ListLimits};
use proctor_wire::evals;
use serde_json::{Value, json};

use crate::stage::{SHIP, Stage, Wire};

const WIRES: [(Wire, Era); 4] = [
    (Wire::Stdio, Era::Handshake),
    (Wire::Stdio, Era::Stateless),
    (Wire::Http, Era::Handshake),
    (Wire::Http, Era::Stateless),
];

fn five() -> Value {
    json!([
        {"id": "a", "name": "A", "gradingType": "exact-match", "input": {"type": "execution", "toolName": "echo",
            "arguments": {"n": 9_007_199_254_740_993_u64}}, "expected": {"type": "exact-match", "content": []}},
        {"id": "b", "name": "B", "gradingType": "llm-as-judge", "input": {"type": "invocation",
            "messages": [{"role": "user", "content": {"type": "text", "text": "b"}}]},
            "expected": {"type": "llm-as-judge", "rubric": "b"}, "x-new": {"kept": [1.50]}},
        42,
        {"id": "c", "name": "C"},
        {"id": "d", "name": "D", "gradingType": "applause", "input": {"type": "dance"}, "expected": {"type": "applause"}},
    ])
}

fn ids(listed: &[ListedEval]) -> Vec<&str> {
    listed.iter().map(|item| item.id().unwrap_or("?")).collect()
}

async fn listed(stage: &Stage) -> Vec<ListedEval> {
    stage.list(None, &ListLimits::default()).await.unwrap()
}

/// Why a list could not be had, within a second.
async fn refused(words: &[&str], caps: &ListLimits) -> String {
    let stage = Stage::plain(&five(), words);
    let refused = stage.list(None, caps).await.unwrap_err();
    refused.to_string()
}

#[tokio::test]
async fn e4_e5_e9_all_pages_come_on_every_transport_as_they_were_written() {
    for (wire, era) in WIRES {
        let stage = Stage::new(&five(), wire, era, &["--mode", "evals-page=2"]);
        let all = listed(&stage).await;
        assert_eq!(ids(&all), ["a", "b", "?", "c", "d"], "{wire:?} {era:?}");
        let raw: Value = all.iter().map(ListedEval::to_value).collect();
        assert!(proctor_record::json::equal(&raw, &five()), "{raw}");
        let methods = stage.methods(SHIP);
        let asked = methods.iter().filter(|method| *method == "evals/list");
        assert_eq!(asked.count(), 3);
    }
}

#[tokio::test]
async fn e4_an_empty_cursor_is_a_cursor() {
    let stage = Stage::plain(&five(), &["--mode", "evals-empty-cursor"]);
    assert_eq!(listed(&stage).await.len(), 5);
    let received = stage.received(SHIP);
    let cursors = received.iter().filter(|m| m["method"] == "evals/list");
    let cursors: Vec<&Value> = cursors.map(|m| &m["params"]["cursor"]).collect();
    assert_eq!(cursors, [&Value::Null, &json!("")]);
}

#[tokio::test]
async fn e5_e33_lists_without_an_end_name_the_cap() {
    let caps = ListLimits::default();
    let told = refused(&["--mode", "evals-million"], &caps).await;
    assert!(
        told.contains("`evals/list` exceeded the limit of 100000 items"),
        "{told}"
    );
    let few = ["--mode", "evals-million", "--mode", "evals-page=10"];
    let told = refused(&few, &caps).await;
    assert!(told.contains("limit of 1000 pages"), "{told}");
    let told = refused(&["--mode", "evals-endless-cursor"], &caps).await;
    assert!(told.contains("limit of 1000 pages"), "{told}");
    let told = refused(&["--mode", "evals-same-cursor"], &caps).await;
    assert!(told.contains("the cursor `again` twice"), "{told}");
    let slow = [
        "--mode",
        "answer-late=60",
        "--on",
        "evals/list",
        "--mode",
        "evals-endless-cursor",
    ];
    let time = Duration::from_millis(100);
    let told = refused(&slow, &ListLimits { time, ..caps }).await;
    assert!(told.contains("exceeded the limit of 100ms"), "{told}");
}

#[tokio::test]
async fn e5_a_list_as_long_as_the_cap_is_whole() {
    let stage = Stage::plain(&five(), &["--mode", "evals-page=1"]);
    let caps = |pages, items| ListLimits {
        pages,
        items,
        ..ListLimits::default()
    };
    assert_eq!(stage.list(None, &caps(5, 5)).await.unwrap().len(), 5);
    assert!(stage.list(None, &caps(4, 5)).await.is_err());
    assert!(stage.list(None, &caps(5, 4)).await.is_err());
    let stage = Stage::plain(&five(), &[]);
    assert!(
        stage.list(None, &caps(5, 4)).await.is_err(),
        "one page is too much too"
    );
}

#[tokio::test]
async fn e33_a_rubric_of_a_hundred_megabytes_is_no_list() {
    let told = refused(
        &["--mode", "evals-big-rubric=100000000"],
        &ListLimits::default(),
    )
    .await;
    assert!(told.contains("too large"), "{told}");
}

#[tokio::test]
async fn e6_the_level_is_sent_and_filtered_again() {
    for words in [&[][..], &["--mode", "evals-ignore-level"]] {
        let stage = Stage::plain(&five(), words);
        let some = stage
            .list(Some(Level::Execution), &ListLimits::default())
            .await;
        let some = some.unwrap();
        // What has no level is there if the server sent it: it is to be told of.
        let known: Vec<&ListedEval> = some.iter().filter(|i| i.eval().is_some()).collect();
        assert!(known.iter().all(|item| item.id() != Some("b")), "{some:?}");
        assert!(known.iter().any(|item| item.id() == Some("a")), "{some:?}");
        let received = stage.received(SHIP);
        let asked = received.iter().find(|m| m["method"] == "evals/list");
        assert_eq!(asked.unwrap()["params"]["level"], "execution");
    }
    let stage = Stage::plain(&five(), &[]);
    listed(&stage).await;
    let received = stage.received(SHIP);
    let asked = received.iter().find(|m| m["method"] == "evals/list");
    assert_eq!(asked.unwrap()["params"].get("level"), None);
}

#[tokio::test]
async fn e2_e3_evals_are_declared_in_each_place_or_nowhere() {
    let places = async |mode: &str| {
        let mut all = Vec::new();
        for (wire, era) in WIRES {
            let stage = Stage::new(&five(), wire, era, &["--mode", mode]);
            let client = stage.connect().await;
            let found = evals::declared(client.identity());
            all.push(found.iter().map(ToString::to_string).collect::<Vec<_>>());
            client.close().await;
        }
        all.dedup();
        assert_eq!(all.len(), 1, "{all:?}");
        all.remove(0)
    };
    let extension = "capabilities.extensions[\"dev.mcp-proctor/evals\"]";
    assert_eq!(places("evals-at=top").await, ["capabilities.evals"]);
    assert_eq!(
        places("evals-at=experimental").await,
        ["capabilities.experimental.evals"]
    );
    assert_eq!(places("evals-at=extensions").await, [extension]);
    assert_eq!(places("evals-page=1").await.len(), 3);
    assert_eq!(places("evals-nowhere").await.len(), 0);
}

#[tokio::test]
async fn e7_a_change_is_seen_by_listing_again_told_or_not() {
    for told in [false, true] {
        let mut words = vec!["--mode", "evals-change-after=1"];
        words.extend(
            told.then_some(["--mode", "evals-list-changed"])
                .into_iter()
                .flatten(),
        );
        let stage = Stage::plain(&five(), &words);
        let client = stage.connect().await;
        assert_eq!(evals::tells_of_changes(client.identity()), told);
        let caps = ListLimits::default();
        let first = evals::list(&client, None, &caps).await.unwrap();
        let second = evals::list(&client, None, &caps).await.unwrap();
        assert_eq!((first.len(), second.len()), (5, 6));
        assert_eq!(client.list_changes(), u64::from(told));
        client.close().await;
    }
}

#[tokio::test]
async fn e7_a_change_is_noticed_when_it_is_announced_in_both_eras() {
    notices_a_change(&WIRES, &[]).await;
}

#[tokio::test]
async fn e7_a_change_that_was_announced_before_the_stream_opened_is_noticed() {
    notices_a_change(&[(Wire::Http, Era::Handshake)], &["--mode", "late-get"]).await;
}

async fn notices_a_change(wires: &[(Wire, Era)], more: &[&str]) {
    for &(wire, era) in wires {
        let words = [
            &[
                "--mode",
                "evals-change-after=1",
                "--mode",
                "evals-list-changed",
            ],
            more,
        ]
        .concat();
        let stage = Stage::new(&five(), wire, era, &words);
        let client = stage.connect().await;
        let mut seen = Vec::new();
        let now = evals::on_changes(&client, async || {
            let listed = evals::list(&client, None, &ListLimits::default()).await;
            let count = listed.unwrap().len();
            seen.push(count);
            (count == 6).then_some(count)
        });
        // Without an announcement, it would wait forever.
        let now = tokio::time::timeout(Duration::from_mins(3), now).await;
        assert_eq!(now, Ok(6), "{wire:?} {era:?}");
        assert_eq!(seen.first(), Some(&5), "{wire:?} {era:?}");
        client.close().await;
    }
}

#[tokio::test]
async fn e8_meta_everywhere_is_kept_and_means_nothing() {
    for (wire, era) in WIRES {
        let stage = Stage::new(&five(), wire, era, &["--mode", "meta-everywhere"]);
        let all = listed(&stage).await;
        assert_eq!(ids(&all), ["a", "b", "?", "c", "d"]);
        let meta = &all[0].to_value()["_meta"]["org.example/fixture"];
        assert_eq!(*meta, json!({"passed": true}));
    }
}
