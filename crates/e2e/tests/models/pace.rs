//! How many requests are sent to a provider at once: fewer after it refused some.

use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::Duration;

use proctor_core::price::Prices;
use proctor_e2e::model::says::{openai, openai_error};
use proctor_e2e::model::{FixtureModel, FixtureReply};
use proctor_e2e::suite::SuiteFixture;
use proctor_models::{Budget, Meter};
use proctor_wire::recorder::Recorder;
use serde_json::json;

use super::{KEY, PATIENT, Provider, asker, hello};

/// How many clients send a request at the same time, and how many of these the provider serves.
const CLIENTS: usize = 16;
const SERVED: usize = 4;

/// How long the provider waits for more requests than there should be.
const LOOKING: Duration = Duration::from_secs(1);

fn refusal() -> FixtureReply {
    openai_error(429, "rate_limit_exceeded", "slow down")
}

/// What a provider has seen.
#[derive(Default)]
struct Seen {
    requests: usize,
    /// The open requests after the first wave, now and at most.
    open: usize,
    most: usize,
}

/// Refuses most of a first wave, which it answers when all of it has arrived. Then it serves all requests.
fn decide((seen, news): &(Mutex<Seen>, Condvar)) -> FixtureReply {
    let mut state = seen.lock().unwrap();
    state.requests += 1;
    let number = state.requests;
    if number <= CLIENTS {
        news.notify_all();
        let hang = Duration::from_mins(2);
        let all = news.wait_timeout_while(state, hang, |state| state.requests < CLIENTS);
        assert!(!all.unwrap().1.timed_out());
        return if number <= SERVED {
            openai("hi")
        } else {
            refusal()
        };
    }
    state.open += 1;
    state.most = state.most.max(state.open);
    news.notify_all();
    let half = |state: &mut Seen| state.most <= CLIENTS / 2;
    let (mut state, _) = news.wait_timeout_while(state, LOOKING, half).unwrap();
    state.open -= 1;
    openai("hi")
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_refusal_at_most_half_as_many_requests_are_open() {
    let seen = Arc::new((Mutex::new(Seen::default()), Condvar::new()));
    let provider = seen.clone();
    let fixture = FixtureModel::answering(move || decide(&provider));
    let meter = Meter::new(Prices::default(), Budget::default()).with_patience(PATIENT);
    let meter = Arc::new(meter);
    let clients: Vec<_> = (0..CLIENTS)
        .map(|_| {
            // Each has a model of its own: the limits are those of the account.
            let model = Provider::OpenAi.model(&fixture);
            let mut asker = asker(model, Recorder::nothing(), Budget::default());
            asker.meter = meter.clone();
            tokio::spawn(async move { asker.ask(&hello()).await.map(drop) })
        })
        .collect();
    for client in clients {
        assert_eq!(client.await.unwrap(), Ok(()));
    }
    let seen = seen.0.lock().unwrap();
    assert_eq!(
        seen.requests,
        2 * CLIENTS - SERVED,
        "each refusal is retried once"
    );
    assert!(seen.most <= CLIENTS / 2, "{} at once", seen.most);
}

#[test]
fn more_jobs_than_a_provider_serves_end_without_an_errored_trial() {
    let open = Mutex::new(0);
    let fixture = FixtureModel::answering(move || {
        let mut count = open.lock().unwrap();
        if *count == SERVED {
            return refusal();
        }
        *count += 1;
        drop(count);
        thread::sleep(Duration::from_millis(100));
        *open.lock().unwrap() -= 1;
        openai("hi")
    });
    let suite = SuiteFixture::new("  - reply: {text: unused}\n", &[]);
    let agent = json!({"agent": {"type": "builtin.llm-agent", "model": "openai:gpt-5"}});
    let assertions = json!({"assertions": {"maxToolCalls": 0}});
    suite.eval(&agent, &assertions);
    for task in 0..CLIENTS {
        suite.task(&format!("task-{task}"), &json!({}));
    }
    let seen = suite
        .check(&["--jobs", "16", "--runs", "2"])
        .env("OPENAI_BASE_URL", &format!("{}/v1", fixture.url()))
        .env("OPENAI_API_KEY", KEY)
        .run();
    assert_eq!(seen.code, Some(0), "{}{}", seen.stdout, seen.stderr);
}
