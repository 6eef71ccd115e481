//! Extensions: programs that add step types. They speak JSON-RPC on stdin and stdout, one message
//! per line.
//!
//! Its main type is [`RunningExtension`]. Separate tasks read and write, so that a dropped step
//! leaves no partial message behind and the next step finds the extension in order.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use proctor_core::suite::{Extension, Package};
use proctor_record::duration;
use proctor_record::event::{Blame, Phase};
use proctor_record::hint::nearest_hint;
use proctor_record::json;
use proctor_record::redact::Redactor;
use proctor_record::verdict::Verdict;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::timeout;

use self::wire::{ExtensionStreams, ExtensionWireError};
use super::environment::check_variable;
use super::scoring::{self, ReportedVerdict};
use super::script::{not_started, with_end};
use super::{ActionOutcome, STEP_TIMEOUT, Steps, TRANSCRIPT};
use proctor_contain::process::{GRACE, Process, Spawn};
use proctor_wire::worker;

mod wire;

/// The supported version of the protocol.
const PROTOCOL: &str = "0.0.1";
/// The timeout of `initialize`.
const INITIALIZE_TIMEOUT: Duration = Duration::from_secs(30);
/// The timeout of `shutdown`, and then of the exit.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(2);

/// An extension that answered `initialize`.
pub(super) struct RunningExtension {
    process: Process,
    wire: ExtensionStreams,
    operations: Vec<String>,
}

/// The result of `initialize`.
#[derive(Deserialize)]
struct Manifest {
    #[serde(default)]
    operations: BTreeMap<String, Value>,
}

/// The result of `execute`.
#[derive(Deserialize)]
struct OperationResult {
    success: bool,
    #[serde(default)]
    message: Option<String>,
    #[serde(default)]
    error: Option<String>,
    #[serde(default)]
    outputs: Option<BTreeMap<String, Value>>,
    /// A verdict on the transcript, with `reason`, `score` and `evidence`. A pass needs `success` too.
    #[serde(default)]
    verdict: Option<Value>,
    #[serde(default)]
    reason: Option<Value>,
    #[serde(default)]
    score: Option<Value>,
    #[serde(default)]
    evidence: Option<Value>,
}

/// Why an extension is unusable.
#[derive(Debug, thiserror::Error)]
enum ExtensionError {
    #[error("unknown extension `{0}`")]
    Unknown(String),
    #[error("the extension `{alias}` is not in the cache: run `proctor extensions fetch`")]
    NotFetched { alias: String },
    #[error("the extension `{alias}` failed to start: {reason}")]
    StartFailed { alias: String, reason: String },
    #[error("the extension `{alias}` has no operation `{operation}`{hint}")]
    NoOperation {
        alias: String,
        operation: String,
        hint: String,
    },
}

impl Steps {
    pub(super) async fn ask_extension(
        &mut self,
        alias: &str,
        operation: &str,
        args: Value,
        phase: Phase,
    ) -> ActionOutcome {
        if let Err(done) = self.start_extension(alias).await {
            return done;
        }
        let transcript = match self.transcript {
            Some(_) => self.transcript_path().ok(),
            None => None,
        };
        let params = self.execution(operation, &args, phase, transcript.as_deref());
        let Some(running) = self.extensions.get_mut(alias) else {
            return suite(&ExtensionError::Unknown(alias.to_owned()));
        };
        if let Err(error) = running.check(alias, operation) {
            return suite(&error);
        }
        let answer = running.wire.request("execute", &params, STEP_TIMEOUT).await;
        let said = running.wire.take_log(&self.options.redactor);
        let stderr = running.process.stderr();
        let redactor = self.options.redactor.clone();
        let failed = |error: ExtensionWireError| {
            let reason = format!("the extension `{alias}` gave no result: {error}");
            let written = [&*said, &stderr.text(&redactor)].concat();
            let reason = with_end(&reason, &redactor.text(&written));
            ActionOutcome::unknown(&reason, Blame::Suite).shows(written)
        };
        match answer {
            Ok(result) => match worker::parse::<OperationResult>(result.get().as_bytes()) {
                Ok(executed) => {
                    let known = self.transcript.as_ref().filter(|_| phase == Phase::Grade);
                    executed.judge(&said, known)
                }
                Err(error) => failed(ExtensionWireError::Malformed(error.to_string())),
            },
            Err(error) => {
                if matches!(error, ExtensionWireError::Gone)
                    && let Some(running) = self.extensions.remove(alias)
                {
                    let how = running.process.stop(SHUTDOWN_TIMEOUT).await;
                    return failed(ExtensionWireError::Ended(how));
                }
                failed(error)
            }
        }
    }

    /// The parameters of `execute`.
    fn execution(
        &self,
        operation: &str,
        args: &Value,
        phase: Phase,
        transcript: Option<&Path>,
    ) -> Value {
        let output = self.values.agent_output.as_ref();
        let agent = output.filter(|_| phase == Phase::Grade).map(|output| {
            let prompt = &self.values.agent_prompt;
            json!({"prompt": prompt, "output": output})
        });
        let mut context = json!({
            "workdir": self.options.folder,
            "phase": phase.step_word(),
            "env": {},
            "timeout": duration::render(STEP_TIMEOUT),
        });
        if let Some(agent) = agent {
            context["agent"] = agent;
        }
        if let (Some(path), Phase::Grade) = (transcript, phase) {
            context["transcript"] = json!(path);
        }
        json!({"operation": operation, "args": args, "context": context})
    }

    async fn start_extension(&mut self, alias: &str) -> Result<(), ActionOutcome> {
        if self.extensions.contains_key(alias) {
            return Ok(());
        }
        let transcript = self.transcript_path();
        let extension = self.options.extensions.iter().find(|e| e.alias == alias);
        let unknown = || suite(&ExtensionError::Unknown(alias.to_owned()));
        let extension = extension.ok_or_else(unknown)?;
        let mut env = self.values.variables();
        for (name, value) in &extension.env {
            check_variable(name, value)
                .map_err(|error| ActionOutcome::unknown(&error, Blame::Suite))?;
            env.insert(name.clone(), value.clone());
        }
        // The file exists from the first verify step on.
        let path = transcript.map_err(|error| ActionOutcome::unknown(&error, Blame::Infra))?;
        env.insert(TRANSCRIPT.to_owned(), path.display().to_string());
        let program = program(extension).map_err(|error| suite(&error))?;
        let spawn = Spawn {
            program: program.into(),
            args: Vec::new(),
            env,
            folder: self.options.folder.clone(),
            guard: self.options.connect.guard.clone(),
            grace: GRACE,
        };
        let process = spawn.start().map_err(|error| not_started(&error))?;
        let running =
            RunningExtension::introduce(process, extension, &self.options.redactor).await?;
        self.extensions.insert(alias.to_owned(), running);
        Ok(())
    }
}

fn suite(error: &ExtensionError) -> ActionOutcome {
    ActionOutcome::unknown(&error, Blame::Suite)
}

/// The path of an extension's program. Released programs were fetched before the run, or are absent.
fn program(extension: &Extension) -> Result<PathBuf, ExtensionError> {
    let absent = || ExtensionError::NotFetched {
        alias: extension.alias.clone(),
    };
    match &extension.package {
        Package::Local(path) => Ok(std::path::absolute(path).unwrap_or(path.clone())),
        Package::Release(package) => package.program().map(Path::to_owned).ok_or_else(absent),
    }
}

impl RunningExtension {
    async fn introduce(
        mut process: Process,
        extension: &Extension,
        redactor: &Redactor,
    ) -> Result<Self, ActionOutcome> {
        let streams = (process.stdin.take(), process.stdout.take());
        let (Some(stdin), Some(stdout)) = streams else {
            return Err(ActionOutcome::unknown(
                &"can't open the pipes of the extension",
                Blame::Infra,
            ));
        };
        let mut wire = ExtensionStreams::start(stdin, stdout);
        let params = json!({"protocolVersion": PROTOCOL, "config": extension.config});
        let answer = wire
            .request("initialize", &params, INITIALIZE_TIMEOUT)
            .await;
        let answer = answer.and_then(|result| {
            let manifest = json::from_str::<Manifest>(result.get());
            manifest.map_err(|error| ExtensionWireError::Malformed(error.to_string()))
        });
        match answer {
            Ok(manifest) => Ok(Self {
                process,
                wire,
                operations: manifest.operations.into_keys().collect(),
            }),
            Err(error) => {
                let stderr = process.stderr();
                let how = process.stop(SHUTDOWN_TIMEOUT).await;
                let is_gone = matches!(error, ExtensionWireError::Gone);
                let error = if is_gone {
                    ExtensionWireError::Ended(how)
                } else {
                    error
                };
                let reason = with_end(&error.to_string(), &stderr.redacted(redactor));
                let alias = extension.alias.clone();
                Err(suite(&ExtensionError::StartFailed { alias, reason }))
            }
        }
    }

    fn check(&self, alias: &str, operation: &str) -> Result<(), ExtensionError> {
        if self.operations.iter().any(|known| known == operation) {
            return Ok(());
        }
        let known = self.operations.iter().map(String::as_str);
        let hint = match nearest_hint(operation, known) {
            Some(hint) => format!("; {hint}"),
            None => format!("; available: `{}`", self.operations.join("`, `")),
        };
        Err(ExtensionError::NoOperation {
            alias: alias.to_owned(),
            operation: operation.to_owned(),
            hint,
        })
    }

    /// Sends `shutdown` and ends the process.
    pub(super) async fn close(mut self) {
        // The process is ended whatever it answers.
        let _ = self
            .wire
            .request("shutdown", &json!({}), SHUTDOWN_TIMEOUT)
            .await;
        let Self { process, wire, .. } = self;
        // This closes its stdin.
        let _ = timeout(SHUTDOWN_TIMEOUT, wire.close()).await;
        process.stop(SHUTDOWN_TIMEOUT).await;
    }
}

impl OperationResult {
    /// The verdict on the transcript, if the extension reports one.
    fn reported(&self) -> Option<Result<ReportedVerdict, String>> {
        let mut members = serde_json::Map::new();
        members.insert("verdict".to_owned(), self.verdict.clone()?);
        let others = [
            ("reason", &self.reason),
            ("score", &self.score),
            ("evidence", &self.evidence),
        ];
        for (name, value) in others {
            if let Some(value) = value {
                members.insert(name.to_owned(), value.clone());
            }
        }
        Some(ReportedVerdict::read(Value::Object(members)))
    }

    fn judge(self, said: &str, known: Option<&BTreeSet<u64>>) -> ActionOutcome {
        let reported = known.and_then(|known| Some((known, self.reported()?)));
        let message = self.message.unwrap_or_default();
        let error = self.error.unwrap_or_default();
        let verdict = match (self.success, &*error, &*message) {
            (true, ..) => Verdict::Pass,
            (false, "", "") => Verdict::fail("the extension failed without a message"),
            (false, "", message) => Verdict::fail(message),
            (false, error, _) => Verdict::fail(error),
        };
        let outputs = self.outputs.unwrap_or_default().into_iter();
        let outputs = outputs.map(|(name, value)| {
            let text = value.as_str().map(str::to_owned);
            (name, text.unwrap_or_else(|| value.to_string()))
        });
        let parts = [&*message, &error, said];
        let parts: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        let done = match reported {
            None => ActionOutcome::new(verdict),
            Some((_, Err(error))) => {
                scoring::unusable(&format!("its verdict is malformed: {error}"))
            }
            Some((known, Ok(report))) => report.judge(self.success, known, "failed"),
        };
        ActionOutcome {
            outputs: outputs.chain(done.outputs.clone()).collect(),
            ..done.shows(parts.join("\n"))
        }
    }
}
