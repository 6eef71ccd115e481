//! An external agent as judge: it gets a model's question as one prompt.
//!
//! Its main type is [`JudgeProgram`]. Every question is a separate session in an empty folder with
//! an empty home and without servers. The program's final answer is the reply; if the program
//! fails, there is no verdict.

use std::path::PathBuf;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use proctor_core::price::Prices;
use proctor_core::suite::Environment;
use proctor_record::event::Purpose;
use proctor_record::model::{ModelMessage, ModelRequest, Reply, StopReason, Turn, Usage};
use tokio::time::timeout;

use super::{AgentFolders, AgentReport, Assignment, ExternalAgent, LineOptions, ModelLine, Post};
use proctor_contain::process::ProcessEnd;
use proctor_models::LoopLimits;
use proctor_models::{Budget, Meter, ModelError, PromptedProgram};
use proctor_wire::recorder::Recorder;

/// The timeout of a verdict.
const VERDICT_TIMEOUT: Duration = Duration::from_mins(10);

/// The timeout of the program's exit, including its grace period.
const EXIT_TIMEOUT: Duration = Duration::from_secs(8);

pub struct JudgeProgram {
    external: ExternalAgent,
    name: String,
    environment: Environment,
    pass: Vec<String>,
    guard: PathBuf,
}

impl std::fmt::Debug for JudgeProgram {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The environment contains keys.
        write!(f, "JudgeProgram({})", self.name)
    }
}

impl PromptedProgram for JudgeProgram {
    fn name(&self) -> &str {
        &self.name
    }

    fn ask<'a>(
        &'a self,
        request: &'a ModelRequest,
        recorder: &'a Recorder,
    ) -> Pin<Box<dyn Future<Output = Result<Reply, ModelError>> + Send + 'a>> {
        Box::pin(self.answer(request, recorder))
    }
}

impl JudgeProgram {
    /// Creates a judge from an agent. It gets the part of `environment` that the agent would get;
    /// `pass` names the variables that agents from files get in addition; `guard` is the `proctor`
    /// binary.
    pub fn new(
        external: ExternalAgent,
        environment: Environment,
        pass: Vec<String>,
        guard: PathBuf,
    ) -> Self {
        Self {
            name: external.asked_model(),
            external,
            environment,
            pass,
            guard,
        }
    }

    async fn answer(
        &self,
        request: &ModelRequest,
        recorder: &Recorder,
    ) -> Result<Reply, ModelError> {
        let meter = Arc::new(Meter::new(Prices::default(), Budget::default()));
        let options = LineOptions {
            environment: &self.environment,
            limits: LoopLimits::default(),
            meter: meter.clone(),
            // The record already has the question.
            recorder: Recorder::nothing(),
            replay: None,
            waiting: proctor_models::RetryWait::default(),
        };
        let line = match ModelLine::open(&self.external, options).await {
            Ok(line) => line,
            Err(error) => return Ok(no_verdict(&error.to_string(), Usage::default())),
        };
        let worked = tokio::time::timeout(
            VERDICT_TIMEOUT,
            self.session(request, line.as_ref(), recorder),
        );
        let worked = Box::pin(worked).await;
        if let Some(detail) = line.as_ref().and_then(ModelLine::trouble) {
            return Err(ModelError::Script { detail });
        }
        let seen = line.is_some().then(|| meter.spent().total().usage);
        Ok(match worked {
            Ok(Ok(report)) => {
                let usage = seen.or(report.usage).unwrap_or_default();
                reply(report, usage)
            }
            Ok(Err(why)) => no_verdict(&why, seen.unwrap_or_default()),
            Err(_) => {
                let after = proctor_record::duration::brief(VERDICT_TIMEOUT);
                let why = format!("it gave no verdict within {after}");
                no_verdict(&why, seen.unwrap_or_default())
            }
        })
    }

    /// Runs one session of the program and cleans up.
    async fn session(
        &self,
        request: &ModelRequest,
        line: Option<&ModelLine>,
        recorder: &Recorder,
    ) -> Result<AgentReport, String> {
        let stage = AgentFolders::new().map_err(|error| error.to_string())?;
        let program = OnceLock::new();
        let line_ended = async {
            match line {
                Some(line) => line.ended().await,
                None => std::future::pending().await,
            }
        };
        let report = tokio::select! {
            biased;
            // A program may wait much longer for an unreachable model.
            ended = line_ended => Err(ended.to_string()),
            report = self.work(request, line, recorder, &stage, &program) => report,
        };
        if let Some(program) = program.into_inner() {
            // A program still writes to its home while it ends.
            let _ = timeout(EXIT_TIMEOUT, program.wait()).await;
        }
        stage.clear().await;
        report
    }

    async fn work(
        &self,
        request: &ModelRequest,
        line: Option<&ModelLine>,
        recorder: &Recorder,
        stage: &AgentFolders,
        program: &OnceLock<ProcessEnd>,
    ) -> Result<AgentReport, String> {
        let external = &self.external;
        let adapter = external.adapter().ok_or("the judge has no program")?;
        let access = match line {
            Some(line) => line.access(external),
            None => external
                .access(&self.environment)
                .map_err(|error| error.to_string())?,
        };
        let assignment = Assignment {
            prompt: prompt(request),
            servers: Vec::new(),
            access,
            folder: stage.folder.clone(),
            skills: None,
            home: stage.home.clone(),
            environment: external.environment(
                &self.environment,
                &self.pass,
                stage.homes(),
                line.is_some(),
            ),
            max_turns: None,
        };
        let version = external.version(&assignment.environment, &stage.folder, &self.guard);
        let post = Post {
            recorder,
            purpose: Purpose::Judge,
            guard: &self.guard,
            folder: &stage.folder,
            admit: &|_, end| {
                let _ = program.set(end);
            },
            version: version.await,
            skill_tool: None,
            watch: &|_| {},
        };
        let worked = adapter.work(&assignment, &post).await;
        worked.map_err(|error| format!("it can't be started: {error}"))
    }
}

/// A model request as one prompt. Instead of calling a tool, the program writes out the arguments.
fn prompt(request: &ModelRequest) -> String {
    let mut text = String::new();
    if let Some(system) = &request.system {
        text.push_str(system);
        text.push_str("\n\n");
    }
    for message in &request.messages {
        if let ModelMessage::User(said) = message {
            text.push_str(said);
            text.push_str("\n\n");
        }
    }
    for tool in request.tools.iter() {
        let (name, schema) = (&tool.name, &tool.schema);
        text.push_str(&format!(
            "There is no tool `{name}` here to be called. Instead, your whole reply must be what it would be \
             called with: one JSON object that fits the schema below, alone or in one code block, with not a word \
             before or after it. Use no other tools either, and look at no files.\n\n{schema}\n"
        ));
    }
    text
}

/// The program's answer as a model's reply.
fn reply(report: AgentReport, usage: Usage) -> Reply {
    let trouble = match &report {
        AgentReport {
            error: Some(error), ..
        } => Some(format!("it ended with an error: {error}")),
        AgentReport {
            out_of_turns: true, ..
        } => Some("it reached its turn limit".to_owned()),
        AgentReport { denied, .. } if !denied.is_empty() => {
            let tools = proctor_record::hint::listed(denied.iter().map(String::as_str));
            Some(format!(
                "it tried to use {tools}, which is not allowed for a judge"
            ))
        }
        _ => None,
    };
    match (trouble, report.answer) {
        (Some(why), _) => no_verdict(&why, usage),
        (None, None) => no_verdict("it gave no answer", usage),
        (None, Some(text)) => Reply {
            turn: Turn {
                text,
                ..Turn::default()
            },
            stop: StopReason::Done,
            usage,
            raw: None,
        },
    }
}

/// A reply that can't be read as a verdict.
fn no_verdict(why: &str, usage: Usage) -> Reply {
    Reply {
        turn: Turn::default(),
        stop: StopReason::Other(why.to_owned()),
        usage,
        raw: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_asked_for_the_object_that_a_model_would_call_the_tool_with() {
        let request = ModelRequest {
            system: Some("Be strict.".to_owned()),
            messages: vec![ModelMessage::User("Is it so?".to_owned())],
            tools: vec![proctor_record::model::Tool {
                name: "verdict".to_owned(),
                description: None,
                schema: serde_json::json!({"required": ["reason"]}),
            }]
            .into(),
            ..ModelRequest::default()
        };
        let prompt = prompt(&request);
        let (rules, rest) = prompt.split_once("Is it so?").unwrap();
        assert_eq!(rules, "Be strict.\n\n");
        assert!(rest.contains("one JSON object"), "{rest}");
        assert!(rest.ends_with("{\"required\":[\"reason\"]}\n"), "{rest}");
    }

    #[test]
    fn a_failed_program_gives_no_verdict() {
        let pass = || Some("{\"verdict\": \"pass\"}".to_owned());
        let check = |report: AgentReport, why: Option<&str>| {
            let reply = reply(report, Usage::default());
            match (&reply.stop, why) {
                (StopReason::Done, None) => assert_eq!(Some(reply.turn.text), pass()),
                (StopReason::Other(said), Some(why)) => {
                    assert!(said.contains(why), "{said}");
                    assert_eq!(reply.turn, Turn::default());
                }
                other => panic!("{other:?}"),
            }
        };
        let report = || AgentReport {
            answer: pass(),
            ..AgentReport::default()
        };
        check(report(), None);
        check(AgentReport::default(), Some("it gave no answer"));
        let error = Some("no credit".to_owned());
        check(AgentReport { error, ..report() }, Some("no credit"));
        let denied = vec!["Bash".to_owned()];
        check(AgentReport { denied, ..report() }, Some("`Bash`"));
        let out_of_turns = true;
        check(
            AgentReport {
                out_of_turns,
                ..report()
            },
            Some("turn limit"),
        );
    }
}
