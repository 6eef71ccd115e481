//! The keys of model providers, by name only, and whether their APIs can be reached.

use std::time::Duration;

use proctor_core::provider::Provider;
use proctor_core::suite::Environment;
use proctor_models::{Settings, proxy};
use proctor_wire::network::reason;

use super::{Diagnosis, DiagnosisArea, DiagnosisState};
use crate::engine::Engine;

/// The timeout for one connection.
const TIMEOUT: Duration = Duration::from_secs(20);

pub(super) async fn check(engine: &Engine, reach: bool) -> Vec<Diagnosis> {
    let mut all = Vec::new();
    let env = &engine.environment;
    for provider in Provider::ALL {
        // Two APIs of one company share their variables.
        if provider.variables().is_empty() || provider == Provider::OpenAiResponses {
            continue;
        }
        let key = key(provider, env);
        let is_set = key.state == DiagnosisState::Ok;
        all.push(key);
        if reach && is_set {
            all.push(reached(provider, env).await);
        }
    }
    all
}

fn is_set(env: &Environment, name: &str) -> bool {
    env.get(name).is_some_and(|value| !value.trim().is_empty())
}

fn key(provider: Provider, env: &Environment) -> Diagnosis {
    let (area, name) = (DiagnosisArea::Models, provider.name());
    let variables = provider.variables();
    if let Some((_, key)) = variables.iter().find(|(_, key)| is_set(env, key)) {
        return Diagnosis::new(area, name, DiagnosisState::Ok, format!("{key} is set"));
    }
    let keys: Vec<&str> = variables.iter().map(|(_, key)| *key).collect();
    Diagnosis::new(area, name, DiagnosisState::Missing, "no key is set")
        .mended_by(format!("export {}=…", keys.join("=…  or  export ")))
}

/// Connects to the API of a provider, without the key. Every response shows that it can be reached.
async fn reached(provider: Provider, env: &Environment) -> Diagnosis {
    let area = DiagnosisArea::Models;
    let name = format!("{} API", provider.name());
    let url = url(provider, env);
    match status(&url, env).await {
        Ok(status) => {
            let detail = format!("{url} answered (HTTP {status})");
            Diagnosis::new(area, name, DiagnosisState::Ok, detail)
        }
        Err(reason) => {
            let detail = format!("{url}: {reason}");
            Diagnosis::new(area, name, DiagnosisState::Failed, detail)
                .mended_by("check the network, HTTPS_PROXY and the URL")
        }
    }
}

/// The base URL whose key is set, or the usual one.
fn url(provider: Provider, env: &Environment) -> String {
    let variables = provider.variables().iter();
    let mut named = variables.filter(|(url, key)| is_set(env, url) && is_set(env, key));
    let named = named.next().and_then(|(url, _)| env.get(*url));
    named.map_or_else(|| provider.base_url().to_owned(), Clone::clone)
}

async fn status(url: &str, env: &Environment) -> Result<u16, String> {
    // Another part of the process may have installed one already.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mut builder = reqwest::Client::builder().timeout(TIMEOUT).no_proxy();
    let settings = Settings::of(env);
    if let Some(proxy) = proxy(&settings).map_err(|error| error.to_string())? {
        builder = builder.proxy(proxy);
    }
    let client = builder.build().map_err(|error| reason(&error))?;
    let response = client.get(url).send().await;
    let response = response.map_err(|error| reason(&error))?;
    Ok(response.status().as_u16())
}
