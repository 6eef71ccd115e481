//! Real providers' wire formats, against a model on loopback: what is sent, what is understood, what
//! is recorded, and every row of the fault table that concerns models.

#![expect(
    clippy::unwrap_used,
    reason = "a test that can't go on panics, helpers included"
)]

mod faults;
mod opened;
mod pace;
mod quirks;
mod recorded;
mod replies;
mod requests;
mod sdk;
mod served;
mod shown;
mod tapped;
mod vertex;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use proctor_core::price::Prices;
use proctor_core::suite::agent::ModelRef;
use proctor_e2e::model::{FixtureModel, FixtureReply};
use proctor_models::{
    AskError, Budget, Meter, Model, ModelClient, ModelError, ModelTimeouts, PricedReply,
    RetryPolicy, RetryWait, Settings,
};
use proctor_record::event::Purpose;
use proctor_record::model::{ModelMessage, ModelRequest, Reply};
use proctor_wire::recorder::Recorder;

const KEY: &str = "sk-canary-0123456789abcdef";

/// For models that answer, however busy the machine is.
const SLOW: ModelTimeouts = timeouts(Duration::from_mins(2));

/// For models that don't.
const QUICK: ModelTimeouts = timeouts(Duration::from_millis(700));

/// For models that don't, and then do.
const LENIENT: ModelTimeouts = timeouts(Duration::from_secs(8));

const fn timeouts(each: Duration) -> ModelTimeouts {
    ModelTimeouts {
        connect: Duration::from_mins(2),
        first_byte: each,
        idle: each,
        total: Duration::from_mins(3),
    }
}

fn stalls(answer: &FixtureReply) -> bool {
    matches!(answer, FixtureReply::Never | FixtureReply::Stalls(_))
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Provider {
    OpenAi,
    Responses,
    Anthropic,
    Gemini,
}

const ALL: [Provider; 4] = [
    Provider::OpenAi,
    Provider::Responses,
    Provider::Anthropic,
    Provider::Gemini,
];

impl Provider {
    fn model(self, fixture: &FixtureModel) -> Model {
        self.named(fixture, self.id(), SLOW)
    }

    fn id(self) -> &'static str {
        match self {
            Self::OpenAi | Self::Responses => "gpt-5",
            Self::Anthropic => "claude-opus-5",
            Self::Gemini => "gemini-3-pro",
        }
    }

    fn named(self, fixture: &FixtureModel, id: &str, timeouts: ModelTimeouts) -> Model {
        let url = match self {
            Self::OpenAi | Self::Responses => format!("{}/v1", fixture.url()),
            Self::Anthropic | Self::Gemini => fixture.url().to_owned(),
        };
        let env = BTreeMap::from([
            ("OPENAI_API_KEY".to_owned(), KEY.to_owned()),
            ("ANTHROPIC_API_KEY".to_owned(), KEY.to_owned()),
            ("GEMINI_API_KEY".to_owned(), KEY.to_owned()),
        ]);
        let settings = Settings {
            base_url: Some(&url),
            timeouts,
            ..Settings::of(&env)
        };
        let reference = ModelRef {
            provider: proctor_core::provider::Provider::parse(self.word()),
            id: id.to_owned(),
            script: None,
        };
        Model::open(&reference, &settings).unwrap()
    }

    fn word(self) -> &'static str {
        match self {
            Self::OpenAi => "openai",
            Self::Responses => "openai-responses",
            Self::Anthropic => "anthropic",
            Self::Gemini => "gemini",
        }
    }

    fn says(self, text: &str) -> FixtureReply {
        match self {
            Self::OpenAi => proctor_e2e::model::says::openai(text),
            Self::Responses => proctor_e2e::model::says::responses(text),
            Self::Anthropic => proctor_e2e::model::says::anthropic(text),
            Self::Gemini => proctor_e2e::model::says::gemini(text),
        }
    }
}

fn hello() -> ModelRequest {
    ModelRequest {
        messages: vec![ModelMessage::User("hello".to_owned())],
        ..ModelRequest::default()
    }
}

/// Asks once.
async fn ask(provider: Provider, answer: FixtureReply) -> Result<Reply, ModelError> {
    let timeouts = if stalls(&answer) { QUICK } else { SLOW };
    let fixture = FixtureModel::start([answer]);
    let model = provider.named(&fixture, provider.id(), timeouts);
    model.ask(&hello()).await
}

const PATIENT: RetryPolicy = RetryPolicy {
    attempts: 3,
    first_wait: Duration::from_millis(2),
    longest_wait: Duration::from_millis(10),
    longest_asked: Duration::from_secs(1),
};

fn asker(model: Model, recorder: Recorder, budget: Budget) -> ModelClient {
    ModelClient {
        model: Arc::new(model),
        purpose: Purpose::Agent,
        meter: Arc::new(Meter::new(Prices::default(), budget).with_patience(PATIENT)),
        recorder,
        waiting: RetryWait::default(),
        replay: None,
    }
}

/// Asks with patience; gives how long was waited, and how often was asked.
async fn ask_patiently(
    provider: Provider,
    answers: Vec<FixtureReply>,
) -> (Result<PricedReply, AskError>, Duration, usize) {
    let timeouts = if answers.iter().any(stalls) {
        LENIENT
    } else {
        SLOW
    };
    let fixture = FixtureModel::start(answers);
    let model = provider.named(&fixture, provider.id(), timeouts);
    let asker = asker(model, Recorder::nothing(), Budget::default());
    let result = asker.ask(&hello()).await;
    (result, asker.waiting.total(), fixture.questions().len())
}
