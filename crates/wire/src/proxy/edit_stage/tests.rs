use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Mutex;

use proctor_core::suite::server::{AllowedTools, ClientSettings, Transport};
use proctor_core::suite::{Environment, Server};
use proctor_record::event::Actor;
use proptest::prelude::*;

use super::*;
use crate::edit::samples::Identity;
use crate::proxy::{Admission, ProxyOptions, ReverseProxy};
use crate::recorder::Recorder;
use crate::web::{IncomingRequest, Web};

const REQUEST: &[u8] = br#"{"jsonrpc":"2.0", "id":1e0,"method":"tools/list"}"#;

/// A server that records what it gets, and has a fixed response.
#[derive(Default)]
struct Script {
    got: Vec<u8>,
    kind: &'static str,
    answer: Vec<u8>,
}

/// Returns what the server and the client receive through a proxy whose edit passes everything.
async fn passed_through(sent: &[u8], kind: &'static str, answer: &[u8]) -> (Vec<u8>, Vec<u8>) {
    let script = Arc::new(Mutex::new(Script {
        kind,
        answer: answer.to_vec(),
        ..Script::default()
    }));
    let played = script.clone();
    let web = Web::start(0, move |request: IncomingRequest| {
        let script = played.clone();
        async move {
            let body = request.into_body().collect().await.unwrap().to_bytes();
            let mut script = script.lock().unwrap();
            script.got = body.to_vec();
            Ok(whole(StatusCode::OK, script.kind, script.answer.clone()))
        }
    });
    let web = web.await.unwrap();
    let server = Server {
        name: "server".to_owned(),
        transport: Transport::Http {
            url: format!("http://{}/mcp", web.address()),
            headers: BTreeMap::new(),
        },
        auth: None,
        allowed: AllowedTools::All,
        client: ClientSettings::default(),
        written: "server".to_owned(),
    };
    let options = ProxyOptions {
        recorder: Recorder::nothing(),
        actor: Actor::Agent,
        inherited: Environment::default(),
        pass: Vec::new(),
        guard: PathBuf::new(),
        trial: None,
        credentials: crate::auth::Credentials::default(),
        editor: Some(Arc::new(Identity(60))),
    };
    let proxy = ReverseProxy::start(&server, &options, 0, Admission::Open);
    let proxy = proxy.await.unwrap();
    let client = crate::http_client::client().unwrap();
    let posted = client.post(proxy.url()).body(sent.to_vec()).send();
    let came = posted.await.unwrap().bytes().await.unwrap().to_vec();
    proxy.close().await;
    let got = script.lock().unwrap().got.clone();
    (got, came)
}

fn bytes() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        prop::sample::select(vec![
            &b"data: {}"[..],
            b"data:",
            b"\r",
            b"\n\n",
            b"{",
            b"\xef\xbb\xbf"
        ])
        .prop_map(<[u8]>::to_vec),
        prop::collection::vec(any::<u8>(), 0..20),
    ];
    prop::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]
    #[test]
    fn the_identity_edit_changes_no_body(
        sent in prop_oneof![Just(REQUEST.to_vec()), bytes()],
        kind in prop::sample::select(vec!["application/json", EVENTS]),
        answer in bytes(),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let (got, came) = runtime.block_on(passed_through(&sent, kind, &answer));
        prop_assert_eq!(got, sent);
        prop_assert_eq!(came, answer);
    }
}
