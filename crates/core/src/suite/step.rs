//! Resolved steps.
//!
//! Its main type is [`Step`].

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use serde::Serialize;

use super::step_file::JsonType;
use super::template::{Template, TemplateValue};

pub mod content;
pub(super) mod resolve;
pub mod values;

/// An action before or after the agent works.
#[derive(Debug, Clone, Serialize)]
pub struct Step {
    /// Its name within the case.
    pub id: String,
    /// Its type. Other steps may refer to the step by it.
    pub kind: String,
    pub action: Action,
}

/// The action of a step.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Action {
    Script(ScriptStep),
    /// Makes an HTTP request.
    Http(Box<HttpStep>),
    /// Asks the judge about the agent's answer.
    Judge(Judgement),
    /// Calls a tool of a server.
    CallTool(ToolStep),
    Extension {
        /// The extension's name in the suite.
        extension: String,
        /// The name of the operation.
        operation: String,
        args: TemplateValue,
    },
}

/// A script. It passes if it exits with 0.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ScriptStep {
    pub source: ScriptSource,
    /// The digest of its file when the suite was loaded, so that what runs is what was loaded.
    #[serde(skip)]
    pub digest: Option<String>,
    /// The folder it runs in.
    pub folder: PathBuf,
    pub env: BTreeMap<String, Template>,
    #[serde(serialize_with = "super::serialize_duration")]
    pub timeout: Duration,
    /// Whether the trial continues if it fails.
    pub continue_on_error: bool,
}

/// The location of a script's text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum ScriptSource {
    File(PathBuf),
    Inline(String),
}

/// An HTTP request and the expected response.
#[derive(Debug, Clone, Serialize)]
pub struct HttpStep {
    pub url: Template,
    /// The method, in capitals.
    pub method: String,
    pub headers: BTreeMap<String, Template>,
    pub body: Option<HttpBody>,
    #[serde(serialize_with = "super::serialize_optional_duration")]
    pub timeout: Option<Duration>,
    /// The status code that is expected.
    pub status: Option<u16>,
    pub content: Option<ContentCheck>,
}

/// The body of an HTTP request.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum HttpBody {
    Raw(Template),
    /// A value, as JSON.
    Json(TemplateValue),
}

/// The expected content of a text.
#[derive(Debug, Clone, Serialize)]
pub struct ContentCheck {
    /// A pattern that it matches.
    pub pattern: Option<PatternTemplate>,
    /// Fields of it, read as JSON.
    pub fields: Vec<Field>,
}

/// The expected value of a field of a JSON text.
#[derive(Debug, Clone, Serialize)]
pub struct Field {
    pub path: Vec<String>,
    pub equals: Option<TemplateValue>,
    pub kind: Option<JsonType>,
    /// A pattern that it matches.
    pub pattern: Option<PatternTemplate>,
    /// Whether it is there.
    pub exists: Option<bool>,
}

/// A regular expression with templates, which are filled in as literal text.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PatternTemplate(pub Template);

/// The criterion for the judge.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Judgement {
    /// The answer must contain every fact of this text. It may contain more.
    Contains(Template),
    /// The answer must contain exactly the facts of this text.
    Exact(Template),
}

/// A call of a server's tool by a step.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolStep {
    /// The server's name in the suite.
    pub server: String,
    pub tool: String,
    pub args: TemplateValue,
    /// Whether the tool must report an error.
    pub is_error: Option<bool>,
    /// The expected text of the result.
    pub content: Option<ContentCheck>,
}
