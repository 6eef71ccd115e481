//! Steps, resolved.
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

/// Something that is done before or after the agent works.
#[derive(Debug, Clone, Serialize)]
pub struct Step {
    /// Its name within the case.
    pub id: String,
    /// Its type, as written: other steps may use it as a name too.
    pub kind: String,
    /// What it does.
    pub action: Action,
}

/// What a step does.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Action {
    /// Runs a script.
    Script(ScriptStep),
    /// Makes an HTTP request.
    Http(Box<HttpStep>),
    /// Asks the judge about the agent's answer.
    Judge(Judgement),
    /// Calls a tool of a server.
    CallTool(ToolStep),
    /// Asks an extension.
    Extension {
        /// The extension's name in the suite.
        extension: String,
        /// What it is asked to do.
        operation: String,
        /// With which arguments.
        args: TemplateValue,
    },
}

/// A script; it passes if it exits with 0.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ScriptStep {
    /// Where its text is.
    pub source: ScriptSource,
    /// The folder it runs in.
    pub folder: PathBuf,
    /// What is added to its environment.
    pub env: BTreeMap<String, Template>,
    /// How long it may take.
    #[serde(serialize_with = "super::serialize_duration")]
    pub timeout: Duration,
    /// Whether the trial goes on when it fails.
    pub continue_on_error: bool,
}

/// Where a script's text is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum ScriptSource {
    /// In a file.
    File(PathBuf),
    /// Here.
    Inline(String),
}

/// An HTTP request, and what the response must be.
#[derive(Debug, Clone, Serialize)]
pub struct HttpStep {
    /// Where to.
    pub url: Template,
    /// The method, in capitals.
    pub method: String,
    /// Headers to send.
    pub headers: BTreeMap<String, Template>,
    /// What to send.
    pub body: Option<HttpBody>,
    /// How long it may take.
    #[serde(serialize_with = "super::serialize_optional_duration")]
    pub timeout: Option<Duration>,
    /// The status code that is expected.
    pub status: Option<u16>,
    /// What the body must be.
    pub content: Option<ContentCheck>,
}

/// What an HTTP request sends.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum HttpBody {
    /// A text.
    Raw(Template),
    /// A value, as JSON.
    Json(TemplateValue),
}

/// What a text must be.
#[derive(Debug, Clone, Serialize)]
pub struct ContentCheck {
    /// A pattern that it matches.
    pub pattern: Option<PatternTemplate>,
    /// Fields of it, read as JSON.
    pub fields: Vec<Field>,
}

/// What a field of a JSON text must be.
#[derive(Debug, Clone, Serialize)]
pub struct Field {
    /// Where it is.
    pub path: Vec<String>,
    /// What it equals.
    pub equals: Option<TemplateValue>,
    /// Of which type it is.
    pub kind: Option<JsonType>,
    /// A pattern that it matches.
    pub pattern: Option<PatternTemplate>,
    /// Whether it is there.
    pub exists: Option<bool>,
}

/// A regular expression whose templates, if it has any, are filled in as literal text.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PatternTemplate(pub Template);

/// What the judge is asked about the agent's answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Judgement {
    /// Every fact of this is in the answer; more may be.
    Contains(Template),
    /// The answer has the facts of this, no more and no fewer.
    Exact(Template),
}

/// A call of a server's tool by a step.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolStep {
    /// The server's name in the suite.
    pub server: String,
    /// The tool.
    pub tool: String,
    /// Its arguments.
    pub args: TemplateValue,
    /// Whether the tool is expected to say that it failed.
    pub is_error: Option<bool>,
    /// What the result's text must be.
    pub content: Option<ContentCheck>,
}
