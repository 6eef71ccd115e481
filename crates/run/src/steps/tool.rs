//! Tool call steps, on a connection of their own.

use std::collections::BTreeMap;

use proctor_core::suite::step::ToolStep;
use proctor_core::suite::step::content::{ContentExpectation, ObservedContent};
use proctor_core::suite::step::values::{FillError, TemplateValues};
use proctor_record::event::Blame;
use proctor_record::hint::nearest;
use proctor_record::json;
use proctor_record::verdict::Verdict;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::{ActionOutcome, Steps};
use proctor_contain::process::SpawnError;
use proctor_wire::client::{CallError, CallResult, Client, ConnectError, ListLimits};
use proctor_wire::worker;

/// How much of a tool's text is shown.
const SHOWN: usize = 500;

/// The parts of a result that steps check. A malformed part counts as absent.
struct StepResultParts {
    /// The text blocks, joined by line breaks.
    text: String,
    content: Option<Value>,
    structured: Option<Value>,
    /// Why a part can't be read.
    unreadable: Option<String>,
}

impl Steps {
    pub(super) async fn call_tool(&mut self, call: &ToolStep) -> ActionOutcome {
        let (arguments, expected) = match self.apart(|values| arguments(call, values)) {
            Ok(prepared) => prepared,
            Err(error) => return ActionOutcome::unknown(&error, Blame::Suite),
        };
        let client = match self.client(&call.server).await {
            Ok(client) => client,
            Err(done) => return done,
        };
        let called = client.call_tool(&call.tool, arguments).await;
        let is_error = match &called {
            Ok(result) => result.is_error,
            Err(error) => matches!(error, CallError::Rpc(_)),
        };
        // A tool that does not exist proves nothing, even if an error is expected.
        if is_error && let Some(why) = missing(client, call).await {
            return ActionOutcome::unknown(&why, Blame::Suite);
        }
        match called {
            Ok(result) => worker::on_body(result.raw.get().len(), || {
                self.judge_result(call, expected.as_ref(), &result)
            }),
            Err(CallError::Rpc(error)) => {
                let said = self.options.redactor.head(error.message.as_bytes(), SHOWN);
                let said = format!("error {}: {said}", error.code);
                if call.is_error == Some(true) && expected.is_none() {
                    return ActionOutcome::new(Verdict::Pass).shows(said);
                }
                let reason = format!("the server answered `{}` with {said}", call.tool);
                ActionOutcome {
                    blame: match error.code {
                        // Unknown method or invalid parameters: the step is wrong.
                        -32601 | -32602 => Some(Blame::Suite),
                        -32603 => Some(Blame::Server),
                        _ => None,
                    },
                    is_unclear: true,
                    ..ActionOutcome::new(Verdict::fail(reason)).shows(said)
                }
            }
            Err(error) => {
                if matches!(error, CallError::Gone { .. })
                    && let Some(client) = self.clients.remove(&call.server)
                {
                    client.close().await;
                }
                let reason = format!("calling `{}` failed: {error}", call.tool);
                let is_ours = matches!(error, CallError::Unauthorized(_));
                let blame = if is_ours { Blame::Infra } else { Blame::Server };
                ActionOutcome::unknown(&reason, blame)
            }
        }
    }

    /// The connection to a server, opened on first use.
    async fn client(&mut self, name: &str) -> Result<&Client, ActionOutcome> {
        if !self.clients.contains_key(name) {
            let server = self.options.servers.iter().find(|s| s.name == name);
            let Some(server) = server else {
                let reason = format!("the suite has no server `{name}`");
                return Err(ActionOutcome::unknown(&reason, Blame::Suite));
            };
            let client = Client::connect(server, &self.options.connect).await;
            let client = client.map_err(|error| not_connected(&error))?;
            self.clients.insert(name.to_owned(), client);
        }
        let missing = || ActionOutcome::unknown(&"the connection is closed", Blame::Server);
        self.clients.get(name).ok_or_else(missing)
    }

    fn judge_result(
        &self,
        call: &ToolStep,
        expected: Option<&ContentExpectation>,
        result: &CallResult,
    ) -> ActionOutcome {
        let parts = StepResultParts::read(&result.raw);
        let mut failures = Vec::new();
        let tool = &call.tool;
        match (call.is_error == Some(true), result.is_error) {
            (true, false) => failures.push(format!("`{tool}`: expected an error, found success")),
            (false, true) => {
                let said = self.options.redactor.head(parts.text.as_bytes(), SHOWN);
                failures.push(format!("`{tool}` failed: `{said}`"));
            }
            (true, true) | (false, false) => {}
        }
        if let (Some(why), Some(_)) = (&parts.unreadable, expected) {
            let reason = format!("the result is not valid JSON: {why}");
            return ActionOutcome::unknown(&reason, Blame::Server);
        }
        if let Some(expected) = expected {
            let in_text = json::from_str(&parts.text).ok();
            let documents = [&parts.structured, &in_text, &parts.content];
            let documents: Vec<Value> = documents.into_iter().flatten().cloned().collect();
            let found = expected.failures(ObservedContent {
                name: "the result",
                text: &parts.text,
                documents: &documents,
                redactor: &self.options.redactor,
            });
            let has_fields = call.content.as_ref().is_some_and(|c| !c.fields.is_empty());
            if has_fields && !found.is_empty() && documents.len() < 2 {
                let said = self.options.redactor.head(parts.text.as_bytes(), SHOWN);
                failures.push(format!("the text of the result is not JSON: `{said}`"));
            }
            failures.extend(found);
        }
        let verdict = match &failures[..] {
            [] => Verdict::Pass,
            failures => Verdict::fail(failures.join("; ")),
        };
        ActionOutcome {
            outputs: parts.outputs(result.is_error),
            // A failed tool does not say why.
            is_unclear: result.is_error && call.is_error != Some(true),
            ..ActionOutcome::new(verdict).shows(parts.text)
        }
    }
}

/// The arguments of a call and the expectations for its result.
fn arguments(
    call: &ToolStep,
    values: &TemplateValues,
) -> Result<(Map<String, Value>, Option<ContentExpectation>), FillError> {
    // The loader accepts only objects.
    let arguments = values.fill_value(&call.args)?;
    let arguments = arguments.as_object().cloned().unwrap_or_default();
    let content = call.content.as_ref();
    let expected = content.map(|content| content.expected(values));
    Ok((arguments, expected.transpose()?))
}

/// Why a call can only fail: the server does not list the tool.
async fn missing(client: &Client, call: &ToolStep) -> Option<String> {
    let listed = client.list_tools(&ListLimits::default()).await.ok()?;
    let names: Vec<String> = listed
        .items
        .iter()
        .filter_map(|raw| json::from_str::<ToolListEntry>(raw.get()).ok())
        .map(|tool| tool.name)
        .collect();
    let ToolStep { server, tool, .. } = call;
    if names.contains(tool) {
        return None;
    }
    let near = nearest(tool, names.iter().map(String::as_str));
    let hint = near.map_or(String::new(), |near| format!("; did you mean `{near}`?"));
    Some(format!("the server `{server}` has no tool `{tool}`{hint}"))
}

#[derive(Deserialize)]
struct ToolListEntry {
    name: String,
}

/// The result if a server can't be reached: the server is to blame, unless it could not be started
/// at all.
fn not_connected(error: &ConnectError) -> ActionOutcome {
    match error {
        ConnectError::Spawn(error @ SpawnError::Guard { .. }) => super::script::not_started(error),
        ConnectError::Spawn(_) | ConnectError::Address(_) => {
            ActionOutcome::unknown(&error, Blame::Suite)
        }
        ConnectError::Template(_) | ConnectError::Unauthorized { .. } => {
            ActionOutcome::unknown(&error, Blame::Infra)
        }
        ConnectError::StartFailed { .. } => ActionOutcome::unknown(&error, Blame::Server),
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawParts<'a> {
    #[serde(default, borrow)]
    content: Option<&'a RawValue>,
    #[serde(default, borrow)]
    structured_content: Option<&'a RawValue>,
}

impl StepResultParts {
    fn read(raw: &RawValue) -> Self {
        let mut unreadable = None;
        let mut note = |error: serde_json::Error| {
            unreadable.get_or_insert(error.to_string());
        };
        let parts = json::from_str(raw.get()).unwrap_or_else(|error| {
            note(error);
            RawParts {
                content: None,
                structured_content: None,
            }
        });
        let mut value = |raw: &RawValue| json::decode(raw.get()).map_err(&mut note).ok();
        let content = parts.content.and_then(&mut value);
        let structured = parts.structured_content.and_then(value);
        let blocks = content.as_ref().and_then(Value::as_array);
        let texts: Vec<&str> = blocks
            .into_iter()
            .flatten()
            .filter(|block| block.get("type").and_then(Value::as_str) == Some("text"))
            .filter_map(|block| block.get("text")?.as_str())
            .collect();
        Self {
            text: texts.join("\n"),
            structured,
            content,
            unreadable,
        }
    }

    fn outputs(&self, is_error: bool) -> BTreeMap<String, String> {
        let written = |value: &Value| json::spelled(&value.to_string()).into_owned();
        let json = |value: &Option<Value>| value.as_ref().map(written);
        let outputs = [
            ("text", Some(json::spelled(&self.text).into_owned())),
            ("content", json(&self.content)),
            ("structuredContent", json(&self.structured)),
            ("isError", Some(is_error.to_string())),
        ];
        outputs
            .into_iter()
            .filter_map(|(name, value)| Some((name.to_owned(), value?)))
            .collect()
    }
}
