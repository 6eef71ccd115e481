//! Vertex AI: what is sent is what the vendors' own SDKs send, and what is missing is said before anything starts.
//!
//! Google's SDK is used every time, Anthropic's for Vertex AI where `PROCTOR_EXTENDED` is 1.

use std::collections::BTreeMap;
use std::path::PathBuf;

use proctor_core::suite::agent::ModelRef;
use proctor_e2e::model::{FixtureModel, Question};
use proctor_models::{Model, Settings};
use serde_json::{Value, json};

use super::requests::eventful;
use super::sdk::{packages, run};
use super::{Provider, SLOW, hello};

const TOKEN: &str = "ya29.canary";

fn environment(base: &str) -> BTreeMap<String, String> {
    let pairs = [
        ("ANTHROPIC_USE_VERTEX", "1"),
        ("GOOGLE_USE_VERTEX", "1"),
        ("GOOGLE_CLOUD_PROJECT", "my-project"),
        ("GOOGLE_CLOUD_LOCATION", "us-east5"),
        ("GOOGLE_OAUTH_ACCESS_TOKEN", TOKEN),
        ("ANTHROPIC_VERTEX_BASE_URL", base),
        ("GOOGLE_VERTEX_BASE_URL", base),
        // Keys of the vendors' own APIs are not for Google's endpoint.
        ("ANTHROPIC_API_KEY", "sk-ant-never-sent"),
        ("GEMINI_API_KEY", "AIza-never-sent"),
    ];
    pairs
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .into()
}

fn open(provider: Provider, env: &BTreeMap<String, String>) -> Result<Model, String> {
    let reference = ModelRef {
        provider: proctor_core::provider::Provider::parse(provider.word()),
        id: id(provider).to_owned(),
        script: None,
    };
    let settings = Settings {
        timeouts: SLOW,
        ..Settings::of(env)
    };
    Model::open(&reference, &settings).map_err(|error| error.to_string())
}

fn id(provider: Provider) -> &'static str {
    match provider {
        Provider::Anthropic => "claude-sonnet-4-5@20250929",
        _ => "gemini-3-pro",
    }
}

/// What Proctor sends.
async fn ours(provider: Provider, request: &proctor_record::model::ModelRequest) -> Question {
    let fixture = FixtureModel::start([provider.says("ok")]);
    let model = open(provider, &environment(fixture.url())).unwrap();
    let reply = model.ask(request).await.unwrap();
    assert_eq!(reply.turn.text, "ok");
    fixture.questions().remove(0)
}

/// What a vendor's SDK sends for the same request.
fn theirs(provider: Provider, modules: PathBuf, body: &Value) -> Question {
    let fixture = FixtureModel::start([provider.says("ok")]);
    let folder = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(modules, folder.path().join("node_modules")).unwrap();
    std::fs::write(folder.path().join("vertex.mjs"), include_str!("vertex.mjs")).unwrap();
    let told =
        json!({"sdk": provider.word(), "base": fixture.url(), "model": id(provider), "body": body});
    let args = ["vertex.mjs", &told.to_string()];
    let (passed, said) = run(folder.path(), "node".as_ref(), &args, &[]);
    assert!(passed, "{said}");
    fixture.questions().remove(0)
}

fn header<'a>(question: &'a Question, name: &str) -> Option<&'a str> {
    let mut lines = question
        .head
        .lines()
        .filter_map(|line| line.split_once(':'));
    let found = lines.find(|(found, _)| found.eq_ignore_ascii_case(name));
    found.map(|(_, value)| value.trim())
}

fn check_heads(ours: &Question, theirs: &Question) {
    assert_eq!(ours.path, theirs.path);
    assert_eq!(header(ours, "authorization"), Some("Bearer ya29.canary"));
    for name in [
        "authorization",
        "content-type",
        "x-api-key",
        "x-goog-api-key",
        "anthropic-version",
    ] {
        assert_eq!(header(ours, name), header(theirs, name), "{name}");
    }
    assert!(!ours.head.contains("never-sent"), "{}", ours.head);
}

#[tokio::test]
async fn gemini_models_are_asked_as_googles_sdk_asks_them() {
    for request in [hello(), eventful()] {
        let ours = ours(Provider::Gemini, &request).await;
        let theirs = theirs(
            Provider::Gemini,
            packages().join("node_modules"),
            &ours.body,
        );
        let model = "projects/my-project/locations/us-east5/publishers/google/models/gemini-3-pro";
        assert_eq!(ours.path, format!("/v1beta1/{model}:generateContent"));
        check_heads(&ours, &theirs);
        let mut expected = theirs.body.clone();
        // The SDK gives the instruction a role, which the API ignores.
        if let Some(instruction) = expected.get_mut("systemInstruction") {
            instruction.as_object_mut().unwrap().remove("role");
        }
        // It sends an empty configuration, too.
        if expected["generationConfig"] == json!({}) {
            expected.as_object_mut().unwrap().remove("generationConfig");
        }
        assert_eq!(ours.body, expected);
    }
}

#[tokio::test]
async fn claude_models_are_asked_as_anthropics_sdk_asks_them() {
    for request in [hello(), eventful()] {
        let ours = ours(Provider::Anthropic, &request).await;
        let model = "projects/my-project/locations/us-east5/publishers/anthropic/models/claude-sonnet-4-5@20250929";
        assert_eq!(ours.path, format!("/v1/{model}:rawPredict"));
        assert_eq!(ours.body["anthropic_version"], "vertex-2023-10-16");
        assert_eq!(ours.body.get("model"), None);
        if std::env::var_os("PROCTOR_EXTENDED").is_none_or(|value| value != "1") {
            continue;
        }
        let modules = packages().join("../sdks/vertex/node_modules");
        assert!(
            modules.is_dir(),
            "run `PROCTOR_EXTENDED=1 scripts/install-servers`"
        );
        let theirs = theirs(Provider::Anthropic, modules, &ours.body);
        check_heads(&ours, &theirs);
        let mut expected = theirs.body.clone();
        // The SDK asks for the newest version; this adapter is written for the one before.
        assert_eq!(expected["anthropic_version"], "2026-10-21");
        expected["anthropic_version"] = "vertex-2023-10-16".into();
        assert_eq!(ours.body, expected);
    }
}

#[test]
fn what_vertex_needs_is_said_with_its_variable() {
    let check = |provider, without: &str, expected: &str| {
        let mut env = environment("http://127.0.0.1:1");
        env.remove(without);
        let opened = open(provider, &env).map(|model| model.name().to_owned());
        assert_eq!(opened.unwrap_or_else(|error| error), expected);
    };
    let claude = "the model `claude-sonnet-4-5@20250929` on Vertex AI needs";
    let (anthropic, gemini) = (Provider::Anthropic, Provider::Gemini);
    check(anthropic, "", "anthropic:claude-sonnet-4-5@20250929");
    check(gemini, "", "gemini:gemini-3-pro");
    let project = "a project: set `GOOGLE_CLOUD_PROJECT` or `ANTHROPIC_VERTEX_PROJECT_ID`";
    check(
        anthropic,
        "GOOGLE_CLOUD_PROJECT",
        &format!("{claude} {project}"),
    );
    let location = "a location: set `GOOGLE_CLOUD_LOCATION` or `CLOUD_ML_REGION`";
    check(
        anthropic,
        "GOOGLE_CLOUD_LOCATION",
        &format!("{claude} {location}"),
    );
    let token = "an access token: set `GOOGLE_OAUTH_ACCESS_TOKEN` or `CLOUDSDK_AUTH_ACCESS_TOKEN`";
    check(
        anthropic,
        "GOOGLE_OAUTH_ACCESS_TOKEN",
        &format!("{claude} {token}"),
    );
    let gemini_token = format!("the model `gemini-3-pro` on Vertex AI needs {token}");
    check(gemini, "GOOGLE_OAUTH_ACCESS_TOKEN", &gemini_token);
}
