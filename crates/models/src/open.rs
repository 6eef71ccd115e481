//! Opens a model by its name, or reports what is missing before anything starts.

use std::collections::BTreeMap;
use std::path::Path;

use proctor_core::provider::{Provider, Variables};
use proctor_core::suite::JudgeModel;
use proctor_core::suite::agent::{Agent, AgentKind, ModelRef};
use reqwest::Url;

use super::anthropic::Anthropic;
use super::gemini::Gemini;
use super::http::{ApiKey, KeyHeader, ModelEndpoint};
use super::open_error::ModelOpenError;
use super::openai::OpenAi;
use super::openai_responses::OpenAiResponses;
use super::timeouts::ModelTimeouts;
use super::vertex::{self, Publisher, Vertex};
use super::wire::WireFormat;
use super::{Model, ScriptedModel};

/// The settings for opening a model, besides its name.
#[derive(Debug, Clone, Copy)]
pub struct Settings<'a> {
    /// The base URL, if not the provider's default.
    pub base_url: Option<&'a str>,
    /// The environment variable that holds the key, if not the provider's default.
    pub api_key_variable: Option<&'a str>,
    pub env: &'a BTreeMap<String, String>,
    pub timeouts: ModelTimeouts,
}

impl<'a> Settings<'a> {
    /// Takes all settings from the environment.
    pub fn of(env: &'a BTreeMap<String, String>) -> Self {
        Self {
            base_url: None,
            api_key_variable: None,
            env,
            timeouts: ModelTimeouts::default(),
        }
    }

    /// The value of a variable that is set and not empty.
    fn value(&self, name: &str) -> Option<&'a str> {
        let value = self.env.get(name).map(|value| value.trim());
        value.filter(|value| !value.is_empty())
    }
}

impl Model {
    /// Opens a model without sending a request. Reports everything that is known to be missing.
    pub fn open(reference: &ModelRef, settings: &Settings<'_>) -> Result<Self, ModelOpenError> {
        let id = reference.id.as_str();
        let Some(provider) = reference.provider else {
            return Err(ModelOpenError::NoProvider(id.to_owned()));
        };
        let endpoint = || usual(id, settings, provider.variables());
        match provider {
            Provider::OpenAi => openai(id, endpoint()?, settings),
            Provider::OpenAiResponses => openai_responses(id, endpoint()?, settings),
            Provider::Anthropic => match on_vertex(&vertex::ANTHROPIC, id, settings)? {
                Some(vertex) => Ok(Model::Anthropic(Box::new(Anthropic::on_vertex(id, vertex)))),
                None => anthropic(id, endpoint()?, settings),
            },
            Provider::Gemini => match on_vertex(&vertex::GOOGLE, id, settings)? {
                Some(vertex) => Ok(Model::Gemini(Box::new(Gemini::new(id, vertex)))),
                None => gemini(id, endpoint()?, settings),
            },
            Provider::Scripted => scripted(reference),
        }
    }

    /// Opens the model of an agent in Proctor's own loop. The agent defines the base URL and the
    /// key's variable; `settings` defines the rest.
    pub fn open_agent(agent: &Agent, settings: &Settings<'_>) -> Result<Self, ModelOpenError> {
        // An external agent talks to its model itself.
        let (
            Some(model),
            AgentKind::Builtin {
                base_url,
                api_key_variable,
                ..
            },
        ) = (agent.model_in_loop(), &agent.kind)
        else {
            return Err(ModelOpenError::NotAModel(agent.name.clone()));
        };
        let settings = Settings {
            base_url: base_url.as_deref().or(settings.base_url),
            api_key_variable: api_key_variable.as_deref().or(settings.api_key_variable),
            ..*settings
        };
        Self::open(model, &settings)
    }

    /// Opens the judge's model: the model of an agent, or the one that environment variables name.
    pub fn open_judge(judge: &JudgeModel, settings: &Settings<'_>) -> Result<Self, ModelOpenError> {
        let (provider, base_url, api_key, model) = match judge {
            JudgeModel::Agent(agent) => return Self::open_agent(agent, settings),
            JudgeModel::Environment {
                provider,
                base_url,
                api_key,
                model,
            } => (provider, base_url, api_key, model),
        };
        let value = |name: &Option<String>| settings.value(name.as_deref()?);
        let Some(id) = value(model) else {
            return Err(ModelOpenError::MissingVariable {
                what: "model",
                variable: model.clone(),
            });
        };
        let provider = value(provider)
            .unwrap_or(Provider::OpenAi.name())
            .to_lowercase();
        let known = Provider::parse(&provider);
        let reference = ModelRef {
            provider: Some(known.ok_or(ModelOpenError::UnknownProvider(provider))?),
            id: id.to_owned(),
            script: None,
        };
        let base_url = value(base_url).or(settings.base_url);
        // With its own base URL, a judge may work without the key that it names.
        let names_key = base_url.is_none() || value(api_key).is_some();
        let settings = Settings {
            base_url,
            api_key_variable: api_key.as_deref().filter(|_| names_key),
            ..*settings
        };
        Self::open(&reference, &settings)
    }
}

/// Opens the script that came with the reference, or loads the one at its path.
fn scripted(reference: &ModelRef) -> Result<Model, ModelOpenError> {
    let model = match &reference.script {
        Some(script) => Ok(ScriptedModel::new(&reference.id, script.clone())),
        None => ScriptedModel::open(Path::new(&reference.id)),
    };
    model.map(Model::Scripted).map_err(|problems| {
        let first = problems.into_iter().next();
        let reason = first.map_or_else(String::new, |problem| format!(": {}", problem.message));
        ModelOpenError::Script(format!("can't load the script `{}`{reason}", reference.id))
    })
}

/// The base URL and the key for a wire format, from the environment and `settings`.
pub(super) fn address_and_key(
    format: WireFormat,
    model: &str,
    settings: &Settings<'_>,
) -> Result<(String, Option<String>), ModelOpenError> {
    let provider = provider_of(format);
    let endpoint = usual(model, settings, provider.variables())?;
    let base = endpoint.base_url.unwrap_or(provider.base_url()).to_owned();
    Ok((base, endpoint.key.map(|key| key.value)))
}

/// The variable that holds the key for a wire format; `None` if a custom endpoint needs no key.
pub fn key_variable(
    format: WireFormat,
    model: &str,
    settings: &Settings<'_>,
) -> Result<Option<String>, ModelOpenError> {
    let endpoint = usual(model, settings, provider_of(format).variables())?;
    Ok(endpoint.key.map(|key| key.variable))
}

/// The provider whose base URL and key a wire format uses.
pub fn provider_of(format: WireFormat) -> Provider {
    match format {
        WireFormat::Chat => Provider::OpenAi,
        WireFormat::Responses => Provider::OpenAiResponses,
        WireFormat::Messages => Provider::Anthropic,
        WireFormat::Gemini => Provider::Gemini,
    }
}

/// The wire format of a provider's models; `None` for a script.
pub fn format_of(provider: Provider) -> Option<WireFormat> {
    match provider {
        Provider::OpenAi => Some(WireFormat::Chat),
        Provider::OpenAiResponses => Some(WireFormat::Responses),
        Provider::Anthropic => Some(WireFormat::Messages),
        Provider::Gemini => Some(WireFormat::Gemini),
        Provider::Scripted => None,
    }
}

struct ProviderSettings<'a> {
    base_url: Option<&'a str>,
    key: Option<ApiKey>,
}

/// The base URL and the key. A custom endpoint may need no key; the provider's own always does.
fn usual<'a>(
    id: &str,
    settings: &Settings<'a>,
    variables: &Variables,
) -> Result<ProviderSettings<'a>, ModelOpenError> {
    let mut pairs: Vec<_> = variables.to_vec();
    let set = pairs
        .iter()
        .position(|(url, _)| settings.value(url).is_some());
    let base_url = settings.base_url.or_else(|| settings.value(pairs[set?].0));
    if settings.base_url.is_none()
        && let Some(set) = set
    {
        // The key that belongs to the base URL comes first.
        pairs.swap(0, set);
    }
    let names: Vec<&str> = match settings.api_key_variable {
        Some(name) => vec![name],
        None => pairs.iter().map(|(_, key)| *key).collect(),
    };
    let key = names.iter().find_map(|name| {
        Some(ApiKey {
            variable: (*name).to_owned(),
            value: settings.value(name)?.to_owned(),
        })
    });
    let may_go_without = base_url.is_some() && settings.api_key_variable.is_none();
    if key.is_none() && !may_go_without {
        return Err(ModelOpenError::MissingKey {
            model: id.to_owned(),
            variables: names.into_iter().map(str::to_owned).collect(),
        });
    }
    Ok(ProviderSettings { base_url, key })
}

fn openai(
    id: &str,
    endpoint: ProviderSettings<'_>,
    settings: &Settings<'_>,
) -> Result<Model, ModelOpenError> {
    let url = address(
        endpoint.base_url.unwrap_or(Provider::OpenAi.base_url()),
        &["chat", "completions"],
    )?;
    let is_original = url
        .host_str()
        .is_some_and(|host| host.ends_with("openai.com"));
    let key = endpoint.key.map(|key| (KeyHeader::Bearer, key));
    let endpoint = ModelEndpoint::new(url, key, settings.timeouts, proxy(settings)?)?;
    Ok(Model::OpenAi(Box::new(OpenAi::new(
        id,
        endpoint,
        is_original,
    ))))
}

fn openai_responses(
    id: &str,
    endpoint: ProviderSettings<'_>,
    settings: &Settings<'_>,
) -> Result<Model, ModelOpenError> {
    let url = address(
        endpoint
            .base_url
            .unwrap_or(Provider::OpenAiResponses.base_url()),
        &["responses"],
    )?;
    let key = endpoint.key.map(|key| (KeyHeader::Bearer, key));
    let endpoint = ModelEndpoint::new(url, key, settings.timeouts, proxy(settings)?)?;
    Ok(Model::OpenAiResponses(Box::new(OpenAiResponses::new(
        id, endpoint,
    ))))
}

fn gemini(
    id: &str,
    endpoint: ProviderSettings<'_>,
    settings: &Settings<'_>,
) -> Result<Model, ModelOpenError> {
    let base = endpoint
        .base_url
        .unwrap_or(Provider::Gemini.base_url())
        .trim_end_matches('/');
    let verb = format!("{}:generateContent", id.trim_start_matches("models/"));
    // The usual base URL of this provider has no version.
    let has_version = ["/v1", "/v1beta", "/v1alpha"]
        .iter()
        .any(|version| base.ends_with(version));
    let path = ["v1beta", "models", verb.as_str()];
    let url = address(base, &path[usize::from(has_version)..])?;
    let key = endpoint.key.map(|key| (KeyHeader::Google, key));
    let endpoint = ModelEndpoint::new(url, key, settings.timeouts, proxy(settings)?)?;
    Ok(Model::Gemini(Box::new(Gemini::new(id, endpoint))))
}

fn anthropic(
    id: &str,
    endpoint: ProviderSettings<'_>,
    settings: &Settings<'_>,
) -> Result<Model, ModelOpenError> {
    let base = endpoint
        .base_url
        .unwrap_or(Provider::Anthropic.base_url())
        .trim_end_matches('/');
    // The usual base URL of this provider has no version.
    let path: &[&str] = if base.ends_with("/v1") {
        &["messages"]
    } else {
        &["v1", "messages"]
    };
    let url = address(base, path)?;
    let key = endpoint.key.map(|key| (KeyHeader::Plain, key));
    let endpoint = ModelEndpoint::new(url, key, settings.timeouts, proxy(settings)?)?;
    Ok(Model::Anthropic(Box::new(Anthropic::new(id, endpoint))))
}

/// The endpoint of a model on Vertex AI; `None` if the environment does not select it, or the agent has a base URL.
fn on_vertex(
    publisher: &Publisher,
    id: &str,
    settings: &Settings<'_>,
) -> Result<Option<ModelEndpoint>, ModelOpenError> {
    if settings.base_url.is_some() {
        return Ok(None);
    }
    let value = |name: &str| settings.value(name);
    let Some(vertex) = Vertex::of(publisher, id, settings.api_key_variable, value)? else {
        return Ok(None);
    };
    let path: Vec<&str> = vertex.path.iter().map(String::as_str).collect();
    let url = address(&vertex.base_url, &path)?;
    let key = Some((KeyHeader::Bearer, vertex.token));
    ModelEndpoint::new(url, key, settings.timeouts, proxy(settings)?).map(Some)
}

/// The URL of an API below a base URL, which may already include its path. Keeps the query.
fn address(base: &str, path: &[&str]) -> Result<Url, ModelOpenError> {
    let bad = || ModelOpenError::BadUrl(without_secrets(base));
    let mut url = Url::parse(base).map_err(|_| bad())?;
    if !["http", "https"].contains(&url.scheme()) || url.host_str().is_none() {
        return Err(bad());
    }
    let wanted = format!("/{}", path.join("/"));
    if !url.path().trim_end_matches('/').ends_with(&wanted) {
        let mut segments = url.path_segments_mut().map_err(|()| bad())?;
        segments.pop_if_empty().extend(path);
    }
    Ok(url)
}

/// A URL without the parts that may be secret: user name, password and query.
fn without_secrets(address: &str) -> String {
    let address = address.split(['?', '#']).next().unwrap_or_default();
    match (address.split_once("://"), address.rsplit_once('@')) {
        (Some((scheme, _)), Some((_, host))) => format!("{scheme}://{host}"),
        _ => address.to_owned(),
    }
}

/// The proxy that the environment configures. It is used for HTTPS only: plain HTTP is for local
/// endpoints.
pub fn proxy(settings: &Settings<'_>) -> Result<Option<reqwest::Proxy>, ModelOpenError> {
    let first = |names: &[&str]| names.iter().find_map(|name| settings.value(name));
    let Some(address) = first(&["https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"]) else {
        return Ok(None);
    };
    let except = first(&["no_proxy", "NO_PROXY"]).unwrap_or_default();
    let bad = |_| ModelOpenError::BadUrl(without_secrets(address));
    let proxy = reqwest::Proxy::https(address).map_err(bad)?;
    Ok(Some(proxy.no_proxy(reqwest::NoProxy::from_string(except))))
}
