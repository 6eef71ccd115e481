//! The conformance suite, direct and through every proxy that speaks HTTP: the same results, check by check.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use proctor_wire::proxy::Admission;
use serde_json::Value;

use super::packages::{cached, finish, folder};
use super::ways::{Door, ListeningServer, ProxyRoute};

/// How long the suite may take; it takes two seconds.
const BOUND: Duration = Duration::from_mins(5);

/// The checks of each scenario, with what came of them.
type Results = BTreeMap<String, Vec<String>>;

/// What is another result on the bridge, and why.
///
/// The server is on stdio there, so everything that is about its HTTP is about the bridge's.
const BRIDGE: &[(&str, &str)] = &[
    (
        "server-sse-polling",
        "a stdio server can't close the stream of an answer, and the bridge has no resumption",
    ),
    (
        "server-sse-multiple-streams",
        "an answer with nothing before it is JSON, as the specification allows: there is no stream",
    ),
];

/// Runs every scenario on a URL.
fn results(url: &str) -> Results {
    let own = tempfile::tempdir().expect("a folder can be made");
    let suite = cached("clients/node_modules/@modelcontextprotocol/conformance/dist/index.js");
    let mut command = Command::new(cached("clients/node_modules/.bin/node"));
    command
        .arg(suite)
        .args(["server", "--url", url, "--suite", "all", "-o"]);
    // The exit code says whether all passed, which is not asked here.
    let output = finish(command.arg(own.path()), BOUND);
    let results = read(own.path());
    let said = String::from_utf8_lossy(&output.stdout);
    assert_eq!(results.len(), 32, "{said}");
    results
}

fn read(folder: &Path) -> Results {
    let entries = std::fs::read_dir(folder).expect("the results can be read");
    let scenario = |entry: std::io::Result<std::fs::DirEntry>| {
        let path = entry.expect("an entry can be read").path();
        let name = path.file_name()?.to_str()?.strip_prefix("server-")?;
        // A time stands behind the name.
        let name = name.get(..name.len().checked_sub("-2026-01-01T00-00-00-000Z".len())?)?;
        let text = std::fs::read_to_string(path.join("checks.json")).expect("checks can be read");
        let checks: Vec<Value> = serde_json::from_str(&text).expect("checks are JSON");
        let check = |check: &Value| {
            let part = |key: &str| check[key].as_str().unwrap_or_default().to_owned();
            format!("{} {} {}", part("id"), part("status"), part("errorMessage"))
        };
        Some((name.to_owned(), checks.iter().map(check).collect()))
    };
    entries.filter_map(scenario).collect()
}

fn through(way: ProxyRoute, server: &Door) -> Results {
    let opened = way.open(server);
    let Door::Http { url, .. } = &opened.door else {
        panic!("the suite speaks HTTP, not to {:?}", opened.door);
    };
    let results = results(url);
    opened.close();
    results
}

fn is_a_pass(checks: &[String]) -> bool {
    !checks.is_empty()
        && checks
            .iter()
            .all(|c| c.contains(" SUCCESS ") || c.contains(" INFO "))
}

/// The fixture passes everything, so that a difference can only be the proxy's.
#[test]
fn the_suite_gives_the_same_results_through_every_proxy() {
    let own = folder(&["conformance/server.mjs"]);
    let file = own.path().join("server.mjs").display().to_string();
    let words = ["node".to_owned(), file, "--http".to_owned()];
    let server = ListeningServer::start(&words, own.path());
    let http = Door::http(&server.url);
    let [node, file, _] = words;
    let stdio = Door::Command(vec![node, file, "--stdio".to_owned()]);

    let direct = through(ProxyRoute::Direct, &http);
    for (scenario, checks) in &direct {
        assert!(is_a_pass(checks), "{scenario}: {checks:#?}");
    }
    for (way, door, excepted) in [
        (ProxyRoute::Reverse(Admission::Path), &http, &[][..]),
        (ProxyRoute::Serve, &http, &[]),
        (ProxyRoute::Bridge(Admission::Path), &stdio, BRIDGE),
    ] {
        let proxied = through(way, door);
        for (scenario, checks) in &direct {
            let is_excepted = excepted.iter().any(|(name, _)| name == scenario);
            let is_equal = proxied.get(scenario) == Some(checks);
            // What is the same after all is no exception any more.
            assert_ne!(
                is_equal,
                is_excepted,
                "{way:?} {scenario}: {:#?} instead of {checks:#?}",
                proxied.get(scenario)
            );
        }
    }
}
