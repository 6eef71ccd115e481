//! Routing rules as a table and as properties.

use proptest::prelude::*;

use super::*;

fn ask(id: &str) -> ClientRequest {
    ClientRequest {
        id: Id::of(raw(id)),
        written: id.to_owned(),
        token: None,
        listens: false,
        ends_with_its_post: true,
    }
}

fn raw(json: &str) -> &RawValue {
    serde_json::from_str(json).expect("it is JSON")
}

fn answer(id: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#)
}

fn progress(token: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":{token},"progress":1}}}}"#
    )
}

fn changed(subscription: Option<&str>) -> String {
    let meta = subscription.map_or(String::new(), |id| {
        format!(r#""_meta":{{"io.modelcontextprotocol/subscriptionId":{id}}}"#)
    });
    format!(
        r#"{{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{{{meta}}}}}"#
    )
}

const LOG: &str = r#"{"jsonrpc":"2.0","method":"notifications/message","params":{}}"#;
const SAMPLING: &str = r#"{"jsonrpc":"2.0","id":1,"method":"sampling/createMessage"}"#;

impl Router {
    fn say(&mut self, message: &str) -> MessageRoute {
        self.route(&Bytes::from(message.to_owned()))
    }

    /// Returns the stream that a message goes to, and whether it is the last one there.
    fn goes(&mut self, message: &str) -> Option<(StreamId, bool)> {
        match self.say(message) {
            MessageRoute::To(way) => Some((way.stream, way.is_last)),
            _ => None,
        }
    }

    fn posted(&mut self, asks: Vec<ClientRequest>) -> StreamId {
        self.open_post(asks, true).0
    }
}

#[test]
fn each_message_goes_to_its_stream() {
    let mut router = Router::default();
    let first = router.posted(vec![ClientRequest {
        token: Some(Id::of(raw(r#""t""#))),
        ..ask("1")
    }]);
    let listening = router.posted(vec![ClientRequest {
        listens: true,
        ..ask("2")
    }]);
    let newest = router.posted(vec![ask(r#""1""#)]);
    let table = [
        (progress(r#""t""#), first),
        (progress("9"), newest),
        (changed(Some("2")), listening),
        (changed(Some("2.0")), listening),
        // The message names no subscription, but only one exists.
        (changed(None), listening),
        (LOG.to_owned(), newest),
        (SAMPLING.to_owned(), newest),
    ];
    for (message, stream) in table {
        assert_eq!(router.goes(&message), Some((stream, false)), "{message}");
    }
    // An unknown subscription.
    assert_eq!(router.say(&changed(Some("7"))), MessageRoute::Nowhere);
    let (get, _) = router.open_get().unwrap();
    for message in [LOG, SAMPLING, &changed(None), &progress("9")] {
        assert_eq!(router.goes(message), Some((get, false)), "{message}");
    }
    // `1` and `"1"` are different ids, `1` and `1.0` are the same.
    assert_eq!(router.goes(&answer("1.0")), Some((first, true)));
    assert_eq!(router.goes(&answer(r#""1""#)), Some((newest, true)));
    assert_eq!(router.goes(&answer("1")), None, "it is answered");
    router.close(get);
    assert_eq!(router.goes(LOG), Some((listening, false)), "it is the last");
    assert_eq!(router.goes(&answer("2")), Some((listening, true)));
    assert_eq!(router.say(LOG), MessageRoute::Waits { dropped: 0 });
}

#[test]
fn logs_go_to_the_only_pending_post_before_its_response() {
    let mut router = Router::default();
    let (get, _) = router.open_get().unwrap();
    assert_eq!(router.goes(LOG), Some((get, false)), "nothing is asked");
    let post = router.posted(vec![ClientRequest {
        token: Some(Id::of(raw(r#""t""#))),
        ..ask("1")
    }]);
    for message in [LOG, &progress(r#""t""#), LOG, &progress("9")] {
        assert_eq!(router.goes(message), Some((post, false)), "{message}");
    }
    for message in [SAMPLING, &changed(None)] {
        assert_eq!(router.goes(message), Some((get, false)), "{message}");
    }
    let other = router.posted(vec![ask("2")]);
    assert_eq!(router.goes(LOG), Some((get, false)), "either may be meant");
    assert_eq!(router.goes(&answer("2")), Some((other, true)));
    assert_eq!(router.goes(LOG), Some((post, false)));
    assert_eq!(router.goes(&answer("1")), Some((post, true)));
    assert_eq!(router.goes(LOG), Some((get, false)));
    // A client that only accepts its response.
    router.open_post(vec![ask("3")], false);
    assert_eq!(router.goes(LOG), Some((get, false)));
}

#[test]
fn there_is_one_get_stream() {
    let mut router = Router::default();
    let (get, _) = router.open_get().unwrap();
    assert!(router.open_get().is_none());
    assert!(router.is_get(get));
    router.close(get);
    assert!(router.open_get().is_some());
}

#[test]
fn messages_without_a_stream_wait_for_the_next_one_up_to_a_limit() {
    let mut router = Router::default();
    for number in 0..WAITING {
        let message = LOG.replace("{}", &number.to_string());
        assert_eq!(router.say(&message), MessageRoute::Waits { dropped: 0 });
    }
    assert_eq!(router.say(SAMPLING), MessageRoute::Waits { dropped: 1 });
    let (_, nothing) = router.open_post(vec![ask("1")], false);
    assert_eq!(nothing.len(), 0, "it takes only its answer");
    assert_eq!(router.say(LOG), MessageRoute::Waits { dropped: 1 });
    let (_, waiting) = router.open_get().unwrap();
    assert_eq!(waiting.len(), WAITING);
    assert_eq!(waiting[WAITING - 2], SAMPLING.as_bytes());
    let large = LOG.replace("{}", &format!("\"{}\"", "x".repeat(WAITING_BYTES)));
    let mut router = Router::default();
    assert_eq!(router.say(&large), MessageRoute::Waits { dropped: 1 });
}

#[test]
fn closing_a_post_cancels_stateless_requests_and_their_ids_stay_in_use() {
    let mut router = Router::default();
    let stateless = router.posted(vec![ask("1"), ask("2")]);
    let handshake = router.posted(vec![ClientRequest {
        ends_with_its_post: false,
        ..ask("3")
    }]);
    assert_eq!(router.goes(&answer("1")), Some((stateless, false)));
    assert_eq!(router.close(stateless), ["2"]);
    assert_eq!(router.close(handshake), [""; 0]);
    assert!(router.has_taken(&[ask("2")]) && router.has_taken(&[ask("3")]));
    assert!(!router.has_taken(&[ask("1")]));
    assert!(router.is_deserted());
    assert_eq!(router.say(&answer("3")), MessageRoute::Nowhere);
    assert!(!router.has_taken(&[ask("3")]));
}

#[test]
fn a_progress_token_in_use_is_refused() {
    let mut router = Router::default();
    let with = |id, token| ClientRequest {
        token: Some(Id::of(raw(token))),
        ..ask(id)
    };
    router.posted(vec![with("1", "5")]);
    assert!(router.has_taken(&[with("2", "5")]));
    assert!(!router.has_taken(&[with("2", "\"5\"")]));
}

#[test]
fn batches_go_whole() {
    let mut router = Router::default();
    let both = router.posted(vec![ask("1"), ask("2")]);
    let other = router.posted(vec![ask("3")]);
    let all = format!("[{},{},{}]", answer("1"), answer("2"), answer("3"));
    let MessageRoute::To(way) = router.say(&all) else {
        panic!("it goes nowhere")
    };
    assert_eq!((way.stream, way.is_last), (both, true));
    assert_eq!(way.left_out, [other]);
    assert!(router.is_deserted());
}

#[test]
fn an_unnamed_response_goes_to_the_only_candidate() {
    let error = r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"what?"}}"#;
    let mut router = Router::default();
    let stream = router.posted(vec![ask("1")]);
    let MessageRoute::To(way) = router.say(error) else {
        panic!("it goes nowhere")
    };
    assert_eq!((way.stream, way.error), (stream, Some(-32700)));
    let stream = router.posted(vec![ask("1")]);
    assert_eq!(router.cut(b"{\"method\":\"notifications/message\""), None);
    assert_eq!(router.cut(b"{\"result\":"), Some(stream));
    router.posted(vec![ask("1")]);
    router.posted(vec![ask("2")]);
    assert_eq!(router.say(error), MessageRoute::Nowhere);
    assert_eq!(router.cut(b"{\"result\":"), None);
}

#[test]
fn malformed_messages_are_dropped() {
    let mut router = Router::default();
    router.posted(vec![ask("1")]);
    for line in ["{", "[]", "{}", "[1]", "[INFO] hello", r#"{"id":7}"#, ""] {
        assert_eq!(router.say(line), MessageRoute::Nowhere, "{line}");
    }
}

#[derive(Debug, Clone)]
enum Event {
    Post(Vec<u8>, bool),
    Get,
    Close(u64),
    Answer(u8),
    Batch(Vec<u8>),
    Progress(u8),
    Other,
}

fn event() -> impl Strategy<Value = Event> {
    let ids = || prop::collection::vec(0..6_u8, 1..4);
    prop_oneof![
        (ids(), any::<bool>()).prop_map(|(ids, more)| Event::Post(ids, more)),
        Just(Event::Get),
        (0..20_u64).prop_map(Event::Close),
        (0..6_u8).prop_map(Event::Answer),
        ids().prop_map(Event::Batch),
        (0..6_u8).prop_map(Event::Progress),
        Just(Event::Other),
    ]
}

proptest! {
    /// For any sequence of events: a response goes only to the stream of its request, each stream
    /// ends once, no message goes to an ended stream, and each request is answered at most once.
    #[test]
    fn every_message_goes_to_the_right_stream(events in prop::collection::vec(event(), 0..60)) {
        let mut router = Router::default();
        let mut open: BTreeMap<StreamId, Vec<u8>> = BTreeMap::new();
        let mut asked: HashMap<u8, Option<StreamId>> = HashMap::new();
        let mut get = None;
        for event in events {
            let said = match &event {
                Event::Post(ids, more) => {
                    let mut ids = ids.clone();
                    ids.sort_unstable();
                    ids.dedup();
                    let asks: Vec<ClientRequest> = ids.iter().map(|id| ClientRequest {
                        token: Some(Id::of(raw(&id.to_string()))),
                        ..ask(&id.to_string())
                    }).collect();
                    let is_taken = ids.iter().any(|id| asked.contains_key(id));
                    prop_assert_eq!(router.has_taken(&asks), is_taken);
                    if !is_taken {
                        let (stream, _) = router.open_post(asks, *more);
                        prop_assert!(!open.contains_key(&stream));
                        asked.extend(ids.iter().map(|id| (*id, Some(stream))));
                        open.insert(stream, ids);
                    }
                    continue;
                }
                Event::Get => {
                    let opened = router.open_get();
                    prop_assert_eq!(opened.is_none(), get.is_some());
                    get = get.or(opened.map(|(stream, _)| stream));
                    continue;
                }
                Event::Close(stream) => {
                    let cancelled = router.close(*stream);
                    let left = open.remove(stream).unwrap_or_default();
                    let left: Vec<String> = left.iter().map(ToString::to_string).collect();
                    prop_assert_eq!(cancelled, left);
                    asked.values_mut().filter(|on| **on == Some(*stream)).for_each(|on| *on = None);
                    get = get.filter(|get| get != stream);
                    continue;
                }
                Event::Answer(id) => answer(&id.to_string()),
                Event::Batch(ids) => {
                    let all: Vec<String> = ids.iter().map(|id| answer(&id.to_string())).collect();
                    format!("[{}]", all.join(","))
                }
                Event::Progress(token) => progress(&token.to_string()),
                Event::Other => LOG.to_owned(),
            };
            let answered = match &event {
                Event::Answer(id) => vec![*id],
                Event::Batch(ids) => ids.clone(),
                _ => Vec::new(),
            };
            let routed = router.say(&said);
            let mut meant = None;
            for id in answered {
                let stream = asked.remove(&id).flatten();
                meant = meant.or(stream);
                if let Some(left) = stream.and_then(|stream| open.get_mut(&stream)) {
                    left.retain(|other| *other != id);
                }
            }
            if let Event::Progress(token) = event {
                meant = asked.get(&token).copied().flatten();
            }
            let MessageRoute::To(way) = routed else {
                prop_assert_eq!(meant, None);
                continue;
            };
            prop_assert!(open.contains_key(&way.stream) || get == Some(way.stream));
            if let Some(meant) = meant {
                prop_assert_eq!(way.stream, meant);
            } else {
                prop_assert!(!way.answers);
                let only_post = open.len() == 1 && open.contains_key(&way.stream);
                prop_assert!(only_post || get.is_none_or(|get| get == way.stream));
            }
            let is_done = open.get(&way.stream).is_some_and(Vec::is_empty);
            prop_assert_eq!(way.is_last, is_done);
            for ended in way.left_out.iter().chain(way.is_last.then_some(&way.stream)) {
                let left = open.remove(ended);
                prop_assert_eq!(left.as_deref(), Some(&[][..]));
            }
        }
        // All remaining requests can be closed.
        let ids: Vec<u8> = asked.keys().copied().collect();
        for id in ids {
            router.say(&answer(&id.to_string()));
        }
        if let Some(get) = get {
            router.close(get);
        }
        prop_assert!(router.is_deserted());
    }
}
