//! Google's Vertex AI, which serves models of Anthropic and Google behind Google's own credentials.
//!
//! The main type is [`Vertex`]. The environment selects it, with the variables of mcpchecker and of the vendors' SDKs.

use super::http::ApiKey;
use super::open_error::ModelOpenError;

/// The version of Anthropic's API, which is in the body on Vertex AI.
pub(super) const ANTHROPIC_VERSION: &str = "vertex-2023-10-16";

const TOKEN: [&str; 2] = ["GOOGLE_OAUTH_ACCESS_TOKEN", "CLOUDSDK_AUTH_ACCESS_TOKEN"];

/// How the models of one vendor are served.
pub(super) struct Publisher {
    name: &'static str,
    /// The variables that select Vertex AI.
    switches: &'static [&'static str],
    project: &'static [&'static str],
    location: &'static [&'static str],
    base_url: &'static str,
    version: &'static str,
    verb: &'static str,
}

pub(super) const ANTHROPIC: Publisher = Publisher {
    name: "anthropic",
    switches: &["ANTHROPIC_USE_VERTEX"],
    project: &["GOOGLE_CLOUD_PROJECT", "ANTHROPIC_VERTEX_PROJECT_ID"],
    location: &["GOOGLE_CLOUD_LOCATION", "CLOUD_ML_REGION"],
    base_url: "ANTHROPIC_VERTEX_BASE_URL",
    version: "v1",
    verb: "rawPredict",
};

pub(super) const GOOGLE: Publisher = Publisher {
    name: "google",
    switches: &[
        "GEMINI_USE_VERTEX",
        "GOOGLE_USE_VERTEX",
        "GOOGLE_GENAI_USE_VERTEXAI",
    ],
    project: &["GOOGLE_CLOUD_PROJECT"],
    location: &["GOOGLE_CLOUD_LOCATION"],
    base_url: "GOOGLE_VERTEX_BASE_URL",
    version: "v1beta1",
    verb: "generateContent",
};

/// A model on Vertex AI, and the access token for it.
pub(super) struct Vertex {
    pub(super) base_url: String,
    /// The segments of the path below the base URL.
    pub(super) path: Vec<String>,
    pub(super) token: ApiKey,
}

impl Vertex {
    /// The model on Vertex AI; `None` if the environment does not select it. `value` reads a variable, and
    /// `token_variable` is the agent's own.
    pub(super) fn of<'a>(
        publisher: &Publisher,
        model: &str,
        token_variable: Option<&str>,
        value: impl Fn(&str) -> Option<&'a str>,
    ) -> Result<Option<Self>, ModelOpenError> {
        let is_on = |name: &&str| value(name).is_some_and(|value| ["1", "true"].contains(&value));
        if !publisher.switches.iter().any(is_on) {
            return Ok(None);
        }
        let needed = |what: &'static str, names: &[&str]| {
            let found = names.iter().find_map(|name| Some((*name, value(name)?)));
            let found = found.map(|(name, value)| (name.to_owned(), value.to_owned()));
            found.ok_or_else(|| ModelOpenError::MissingOnVertex {
                model: model.to_owned(),
                what,
                variables: names.iter().map(|name| (*name).to_owned()).collect(),
            })
        };
        let (_, project) = needed("a project", publisher.project)?;
        let (_, location) = needed("a location", publisher.location)?;
        let (variable, token) = match token_variable {
            Some(name) => needed("an access token", &[name])?,
            None => needed("an access token", &TOKEN)?,
        };
        let base_url = match value(publisher.base_url) {
            Some(base) => base.trim_end_matches('/').to_owned(),
            None => host(&location),
        };
        let has_version = base_url.ends_with(&format!("/{}", publisher.version));
        let model = model.trim_start_matches("models/");
        let path = format!(
            "{}/projects/{project}/locations/{location}/publishers/{}/models/{model}:{}",
            publisher.version, publisher.name, publisher.verb
        );
        let path = path.split('/').skip(usize::from(has_version));
        Ok(Some(Self {
            base_url,
            path: path.map(str::to_owned).collect(),
            token: ApiKey {
                variable,
                value: token,
            },
        }))
    }
}

/// The base URL of a location. `us` and `eu` are several regions, `global` is all.
fn host(location: &str) -> String {
    match location {
        "global" => "https://aiplatform.googleapis.com".to_owned(),
        "us" | "eu" => format!("https://aiplatform.{location}.rep.googleapis.com"),
        region => format!("https://{region}-aiplatform.googleapis.com"),
    }
}
