//! Which models can be asked, and what is said, before anything starts, of those that can't.

use std::collections::BTreeMap;

use proctor_core::suite::JudgeModel;
use proctor_core::suite::agent::ModelRef;
use proctor_e2e::model::FixtureModel;
use proctor_models::{Model, Settings};

use super::{Provider, hello};

fn env(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    let pair = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    pairs.iter().map(pair).collect()
}

fn reference(provider: Option<&'static str>) -> ModelRef {
    ModelRef {
        provider: provider.and_then(proctor_core::provider::Provider::parse),
        id: "m".to_owned(),
        script: None,
    }
}

#[track_caller]
fn check(provider: &'static str, pairs: &[(&str, &str)], variable: Option<&str>, expected: &str) {
    let env = env(pairs);
    let settings = Settings {
        api_key_variable: variable,
        ..Settings::of(&env)
    };
    let opened = Model::open(&reference(Some(provider)), &settings);
    let said = match opened {
        Ok(model) => format!("opened {}", model.name()),
        Err(error) => error.to_string(),
    };
    assert_eq!(said, expected);
}

#[test]
fn a_missing_key_is_said_with_its_variable() {
    let openai = "the model `m` needs a key: set `OPENAI_API_KEY` or `MODEL_KEY`";
    let anthropic = "the model `m` needs a key: set `ANTHROPIC_API_KEY`";
    check("openai", &[], None, openai);
    check("openai", &[("OPENAI_API_KEY", " ")], None, openai);
    check("anthropic", &[("OPENAI_API_KEY", "k")], None, anthropic);
    check(
        "anthropic",
        &[("ANTHROPIC_API_KEY", "k")],
        None,
        "opened anthropic:m",
    );
    check("openai", &[("MODEL_KEY", "k")], None, "opened openai:m");
    check("openai-responses", &[], None, openai);
    check(
        "openai-responses",
        &[("OPENAI_API_KEY", "k")],
        None,
        "opened openai-responses:m",
    );
    let gemini = "the model `m` needs a key: set `GEMINI_API_KEY` or `GOOGLE_API_KEY`";
    check("gemini", &[], None, gemini);
    for name in ["GEMINI_API_KEY", "GOOGLE_API_KEY"] {
        check("gemini", &[(name, "k")], None, "opened gemini:m");
    }
    let own = "the model `m` needs a key: set `MINE`";
    check("openai", &[("OPENAI_API_KEY", "k")], Some("MINE"), own);
    check(
        "openai",
        &[("MODEL_BASE_URL", "http://x")],
        Some("MINE"),
        own,
    );
    check("openai", &[("MINE", "k")], Some("MINE"), "opened openai:m");
}

#[test]
fn a_server_of_ones_own_needs_no_key() {
    for name in ["OPENAI_BASE_URL", "MODEL_BASE_URL"] {
        check(
            "openai",
            &[(name, "http://127.0.0.1:1/v1")],
            None,
            "opened openai:m",
        );
    }
    check(
        "anthropic",
        &[("ANTHROPIC_BASE_URL", "http://127.0.0.1:1")],
        None,
        "opened anthropic:m",
    );
}

#[test]
fn what_can_not_be_opened_says_why() {
    // No reference can name a provider that is not known.
    let unknown = ModelRef::parse("bogus:m").unwrap_err().to_string();
    let known = "`openai`, `openai-responses`, `anthropic`, `gemini`, `google`, `scripted`";
    let expected = format!("unknown model provider `bogus`; known: {known}");
    assert_eq!(unknown, expected);
    for url in ["not a url", "ftp://x/v1", "file:///etc"] {
        let said = format!("invalid model URL `{url}`: expected `http://` or `https://`");
        check("openai", &[("OPENAI_BASE_URL", url)], None, &said);
    }
    check(
        "openai",
        &[("OPENAI_BASE_URL", "ftp://me:pass@host/v1?key=1")],
        None,
        "invalid model URL `ftp://host/v1`: expected `http://` or `https://`",
    );
    check(
        "openai",
        &[("OPENAI_API_KEY", "se\ncret")],
        None,
        "the key in `OPENAI_API_KEY` has characters that are invalid in an HTTP header",
    );
    let env = env(&[]);
    let error = Model::open(&reference(None), &Settings::of(&env)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "missing provider in `m`; write `provider:m`"
    );
}

#[tokio::test]
async fn addresses_are_read_as_their_users_write_them() {
    for (provider, ends) in [
        (
            Provider::OpenAi,
            &["/v1", "/v1/", "/v1/chat/completions"][..],
        ),
        (
            Provider::Anthropic,
            &["", "/", "/v1", "/v1/", "/v1/messages"],
        ),
        (Provider::Responses, &["/v1", "/v1/", "/v1/responses"]),
        (Provider::Gemini, &["", "/", "/v1beta", "/v1beta/", "/v1"]),
    ] {
        for end in ends {
            let fixture = FixtureModel::start([provider.says("hi")]);
            let url = format!("{}{end}", fixture.url());
            let env = env(&[
                ("OPENAI_BASE_URL", &url),
                ("ANTHROPIC_BASE_URL", &url),
                ("GOOGLE_GEMINI_BASE_URL", &url),
            ]);
            let name = reference(Some(provider.word()));
            let model = Model::open(&name, &Settings::of(&env)).unwrap();
            assert_eq!(model.ask(&hello()).await.unwrap().turn.text, "hi", "{end}");
            let head = fixture.questions()[0].head.to_lowercase();
            assert!(!head.contains("authorization") && !head.contains("api-key"));
        }
    }
}

#[tokio::test]
async fn the_key_that_goes_with_an_address_is_sent_there() {
    for (name, key) in [
        ("OPENAI_BASE_URL", "openai-key"),
        ("MODEL_BASE_URL", "model-key"),
    ] {
        let fixture = FixtureModel::start([Provider::OpenAi.says("hi")]);
        let url = format!("{}/v1", fixture.url());
        let env = env(&[
            (name, &url),
            ("OPENAI_API_KEY", "openai-key"),
            ("MODEL_KEY", "model-key"),
        ]);
        let model = Model::open(&reference(Some("openai")), &Settings::of(&env)).unwrap();
        model.ask(&hello()).await.unwrap();
        let head = fixture.questions()[0].head.clone();
        assert!(head.contains(&format!("Bearer {key}")), "{head}");
    }
}

#[tokio::test]
async fn an_older_judge_is_named_by_variables() {
    let fixture = FixtureModel::start([Provider::Anthropic.says("hi")]);
    let some = |name: &str| Some(name.to_owned());
    let judge = JudgeModel::Environment {
        provider: some("J_TYPE"),
        base_url: some("J_URL"),
        api_key: some("J_KEY"),
        model: some("J_MODEL"),
    };
    let said = |pairs: &[(&str, &str)]| {
        let env = env(pairs);
        Model::open_judge(&judge, &Settings::of(&env)).map(|model| model.name().to_owned())
    };
    assert_eq!(
        said(&[]).unwrap_err().to_string(),
        "the judge's model is missing: set `J_MODEL`"
    );
    assert_eq!(
        said(&[("J_MODEL", "m")]).unwrap_err().to_string(),
        "the model `m` needs a key: set `J_KEY`"
    );
    assert_eq!(
        said(&[("J_MODEL", "m"), ("J_KEY", "k")]).unwrap(),
        "openai:m"
    );
    assert_eq!(
        said(&[("J_MODEL", "m"), ("J_URL", "http://x")]).unwrap(),
        "openai:m"
    );
    assert!(
        said(&[("J_MODEL", "m"), ("J_TYPE", "x")])
            .unwrap_err()
            .to_string()
            .contains("unknown provider `x`")
    );
    let env = env(&[
        ("J_MODEL", "m"),
        ("J_TYPE", "Anthropic"),
        ("J_URL", fixture.url()),
        ("J_KEY", "key-of-the-judge"),
    ]);
    let model = Model::open_judge(&judge, &Settings::of(&env)).unwrap();
    model.ask(&hello()).await.unwrap();
    assert!(
        fixture.questions()[0]
            .head
            .contains("x-api-key: key-of-the-judge")
    );
}

#[tokio::test]
async fn a_proxy_of_the_environment_is_used_for_what_is_encrypted() {
    let proxy = FixtureModel::start([]);
    let ask = async |base_url: &str, except: &str| {
        let env = env(&[
            ("OPENAI_BASE_URL", base_url),
            ("HTTPS_PROXY", proxy.url()),
            ("NO_PROXY", except),
        ]);
        let model = Model::open(&reference(Some("openai")), &Settings::of(&env)).unwrap();
        model.ask(&hello()).await
    };
    assert!(
        ask("https://model.invalid/v1", "other.invalid")
            .await
            .is_err()
    );
    let paths: Vec<String> = proxy.questions().into_iter().map(|q| q.path).collect();
    assert_eq!(paths, ["model.invalid:443"]);
    assert!(
        ask("https://model.invalid/v1", "model.invalid")
            .await
            .is_err()
    );
    let near = FixtureModel::start([Provider::OpenAi.says("hi")]);
    assert!(ask(&format!("{}/v1", near.url()), "").await.is_ok());
    assert_eq!(proxy.questions().len(), 1);
}
