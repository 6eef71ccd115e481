//! Trials of shipped evals: one call, one turn of a model, or an agent at work, with only the tools
//! of the server that ships the eval.
//!
//! The server's text is data: no variables in it are replaced, and it chooses neither judge nor
//! limits.

use mcp_evals::matching::{self, match_content, match_invocation};
use mcp_evals::{ExactMatch, Expected, Input};
use proctor_core::grading::{CaseChecks, Grading, NextCheck, SILENT, is_blank};
use proctor_core::suite::ShippedEval;
use proctor_record::decision::{blame_for_failure, server_failure};
use proctor_record::event::{
    Blame, Body, CheckEvaluated, CheckId, EventKind, Phase, Purpose, SelectedCall, ToolName,
    ToolsSelected, TrialEnded,
};
use proctor_record::fold::FoldedTrial;
use proctor_record::hint::listed;
use proctor_record::json;
use proctor_record::model::{Arguments, ModelMessage, ModelRequest, ToolCall, Turn};
use proctor_record::transcript::{CallOutcome, Transcript};
use proctor_record::verdict::Verdict;
use serde_json::{Map, Value};

use super::ending::{cancelled, errored, failed, timed_out};
use super::{Trial, close, early_end, unanswered};
pub use crate::agent::{AgentOutcome, AgentSpending, LoopLimits, Task, Toolbox, drive};
use crate::context::Worker;
use crate::judge::{Criterion, Exhibits};
use proctor_models::{AskError, ModelClient};
use proctor_wire::client::{CallError, Era, ListLimits};

pub(super) mod conversation;

/// The work of a trial, in addition to the transcript.
struct EvalWork {
    prompt: String,
    /// The answer, including calls.
    answer: String,
    /// The calls of its only turn, with the server's own tool names.
    calls: Vec<(String, Map<String, Value>)>,
    /// The tools of calls that can't be made, because their arguments are not JSON.
    broken: Vec<String>,
    /// Whether a model was asked and returned neither text nor calls.
    is_silent: bool,
    /// A note for the judge.
    note: Option<String>,
}

impl Trial {
    /// Runs and grades a shipped eval.
    pub(super) async fn work_shipped(
        &self,
        shipped: &ShippedEval,
        toolbox: &mut Option<Toolbox>,
    ) -> TrialEnded {
        if let Expected::LlmJudge(expected) = &shipped.eval.expected
            && expected.is_unfinished()
        {
            return errored(Blame::Suite, "the rubric still says TODO");
        }
        self.phase(Phase::Serve);
        match self.serve_one(shipped).await {
            Ok(opened) => *toolbox = Some(opened),
            Err((blame, reason)) => return errored(blame, reason),
        }
        self.phase(Phase::Drive);
        let Some(tools) = toolbox.as_ref() else {
            return errored(Blame::Infra, "the trial has no server");
        };
        let done = match &shipped.eval.input {
            Input::Execution(input) => {
                let arguments = input.arguments.clone();
                self.execute(shipped, tools, &input.tool_name, arguments)
                    .await
            }
            Input::Invocation(input) => self.invoke(shipped, tools, &input.messages).await,
            Input::Scenario(input) => self.play(shipped, tools, &input.messages).await,
            Input::Other(_) => Err(errored(Blame::Suite, "the eval has an unknown type")),
        };
        if let Some(ended) = Self::reply_failure(tools) {
            return ended;
        }
        let shared_breach = self.shared_breach(tools);
        close(toolbox.take()).await;
        let folded = match self.folded().await {
            Ok(folded) => folded,
            Err(ended) => return ended,
        };
        // The complete record takes precedence over what was seen during the work.
        let is_open = |ended: &TrialEnded| ended.blame == Some(Blame::Server);
        let failure = server_failure(&folded.conduct);
        let done = match (done, failure) {
            (Err(ended), Some(failure)) if is_open(&ended) => return early_end::ended(failure),
            (Err(ended), _) => return ended,
            (Ok(_), Some(failure)) => return early_end::ended(failure),
            (Ok(done), None) => done,
        };
        if let Some(failure) = shared_breach.or_else(|| self.breach(&folded)) {
            return early_end::ended(failure);
        }
        self.phase(Phase::Grade);
        self.grade_shipped(shipped, &done, &folded).await
    }

    /// Connects to the server that ships the eval.
    async fn serve_one(&self, shipped: &ShippedEval) -> Result<Toolbox, (Blame, String)> {
        let mut servers = self.context.suite.servers.iter();
        let Some(server) = servers.find(|server| server.name == shipped.server) else {
            let reason = format!("unknown server `{}`", shipped.server);
            return Err((Blame::Suite, reason));
        };
        let connected = vec![self.connect(server).await?];
        if matches!(shipped.eval.input, Input::Execution(_)) {
            return Ok(Toolbox::bare(connected));
        }
        let opened = Toolbox::open(connected, false, &self.context.offers).await;
        opened.map_err(|(server, error)| {
            let reason = format!("the server `{server}`: {error}");
            (Blame::Server, reason)
        })
    }

    /// Calls the tool with exactly these arguments.
    async fn execute(
        &self,
        shipped: &ShippedEval,
        tools: &Toolbox,
        tool: &str,
        arguments: Map<String, Value>,
    ) -> Result<EvalWork, TrialEnded> {
        let Some(connected) = tools.servers().first() else {
            return Err(errored(Blame::Infra, "the trial has no server"));
        };
        let client = &connected.client;
        // The stateless era repeats arguments in headers, which the tool list defines.
        if client.identity().era == Era::Stateless {
            let _ = client.list_tools(&ListLimits::default()).await;
        }
        self.watch.called(crate::agent::ToolCallNotice {
            server: shipped.server.clone(),
            name: tool.to_owned(),
        });
        match client.call_tool(tool, arguments).await {
            Ok(_) => Ok(EvalWork {
                prompt: String::new(),
                answer: String::new(),
                calls: Vec::new(),
                broken: Vec::new(),
                is_silent: false,
                note: None,
            }),
            Err(error @ (CallError::TooLarge { .. } | CallError::Unauthorized(_))) => {
                Err(errored(Blame::Infra, error.to_string()))
            }
            Err(error) => Err(failed(Blame::Server, error.to_string())),
        }
    }

    fn agent_asker(&self) -> Result<ModelClient, TrialEnded> {
        match &self.context.agents[self.agent] {
            Worker::Model(model) => Ok(self.asker(model, Purpose::Agent)),
            Worker::NoAgent => Err(errored(Blame::Suite, "the case needs a model")),
            Worker::External(external) => {
                let name = &external.agent().name;
                let reason = format!(
                    "shipped evals need a model, and `{name}` is an external agent: set one with \
                     `--model`"
                );
                Err(errored(Blame::Suite, reason))
            }
        }
    }

    /// Asks the model once, and makes no calls.
    async fn invoke(
        &self,
        shipped: &ShippedEval,
        tools: &Toolbox,
        messages: &[mcp_evals::Message],
    ) -> Result<EvalWork, TrialEnded> {
        let asker = self.agent_asker()?;
        let messages = conversation::read(messages, &shipped.server, tools)
            .map_err(|reason| errored(Blame::Suite, reason))?;
        let prompt = conversation::text(&messages);
        self.prompted(&prompt);
        let request = ModelRequest {
            system: tools.instructions(),
            messages,
            tools: tools.tools().clone(),
            ..ModelRequest::default()
        };
        let said = asker.ask(&request).await.map_err(|e| unanswered(&e))?;
        let turn = by_own_names(said.reply.turn, tools);
        let answer = conversation::turn_text(&turn);
        self.answered(&answer);
        self.invoked(shipped, &turn, tools);
        let (mut calls, mut broken) = (Vec::new(), Vec::new());
        for call in turn.calls {
            match call.arguments {
                Arguments::Object(arguments) => calls.push((call.name, arguments)),
                Arguments::Malformed { .. } => broken.push(call.name),
            }
        }
        Ok(EvalWork {
            prompt,
            is_silent: is_blank(&answer),
            answer,
            calls,
            broken,
            note: None,
        })
    }

    /// Records the choice, if the eval expects a certain tool. Such an eval allows other calls.
    fn invoked(&self, shipped: &ShippedEval, turn: &Turn, tools: &Toolbox) {
        let Expected::ExactMatch(ExactMatch {
            tool_name: Some(tool),
            ..
        }) = &shipped.eval.expected
        else {
            return;
        };
        let call = |call: &ToolCall| SelectedCall {
            server: tools
                .name_of(&shipped.server, &call.name)
                .map(|_| shipped.server.clone()),
            tool: call.name.clone(),
            arguments: Body::Text(match &call.arguments {
                Arguments::Object(arguments) => Value::from(arguments.clone()).to_string(),
                Arguments::Malformed { text, .. } => text.clone(),
            }),
        };
        self.recorder
            .record(EventKind::ToolsSelected(ToolsSelected {
                expected: vec![ToolName {
                    server: shipped.server.clone(),
                    tool: tool.clone(),
                }],
                others_allowed: true,
                calls: turn.calls.iter().map(call).collect(),
            }));
    }

    /// Runs the agent loop.
    async fn play(
        &self,
        shipped: &ShippedEval,
        tools: &Toolbox,
        messages: &[mcp_evals::Message],
    ) -> Result<EvalWork, TrialEnded> {
        let asker = self.agent_asker()?;
        let messages = conversation::read(messages, &shipped.server, tools)
            .map_err(|reason| errored(Blame::Suite, reason))?;
        let before = messages.len();
        let prompt = conversation::text(&messages);
        self.prompted(&prompt);
        let (driven, messages) = drive(Task {
            messages,
            asker: &asker,
            toolbox: tools,
            limits: LoopLimits {
                turns: Some(shipped.max_turns),
                tokens: self.limits.max_tokens,
                cost_usd: self.limits.max_cost_usd,
            },
            spent: &mut AgentSpending::default(),
            watch: &|called| self.watch.called(called),
        })
        .await;
        let note = match driven {
            AgentOutcome::Answered(_) => None,
            // The judge weighs this; it is not an outcome by itself.
            AgentOutcome::Turns(reason) | AgentOutcome::Stopped(reason) => Some(reason),
            AgentOutcome::Limit(reason) => return Err(timed_out(reason)),
            AgentOutcome::Lost(lost) => return Err(failed(Blame::Server, lost.to_string())),
            AgentOutcome::Unanswered(error) => return Err(unanswered(&error)),
        };
        let said = &messages[before..];
        let is_empty = |message: &ModelMessage| match message {
            ModelMessage::Assistant(turn) => is_blank(&conversation::turn_text(turn)),
            ModelMessage::User(_) | ModelMessage::Media(_) | ModelMessage::Results(_) => true,
        };
        let is_silent = said.iter().all(is_empty);
        let answer = conversation::text(said);
        self.answered(&answer);
        Ok(EvalWork {
            prompt,
            answer,
            calls: Vec::new(),
            broken: Vec::new(),
            is_silent,
            note,
        })
    }

    fn prompted(&self, text: &str) {
        let text = Body::Text(text.to_owned());
        self.recorder
            .record(EventKind::Prompted { text, turn: None });
    }

    fn answered(&self, text: &str) {
        let text = Body::Text(text.to_owned());
        self.recorder.record(EventKind::AgentAnswered { text });
    }

    async fn grade_shipped(
        &self,
        shipped: &ShippedEval,
        done: &EvalWork,
        folded: &FoldedTrial,
    ) -> TrialEnded {
        let transcript = &folded.transcript;
        let outcome = match &shipped.eval.expected {
            Expected::ExactMatch(expected) => {
                Ok(self.on_record(|| self.match_exactly(shipped, expected, done, transcript)))
            }
            Expected::LlmJudge(expected) => {
                self.judge_rubric(&expected.rubric, done, transcript).await
            }
            Expected::Other(_) => Err(errored(Blame::Suite, "the grading has an unknown type")),
        };
        let main = match outcome {
            Ok(main) => main,
            Err(ended) => return ended,
        };
        let blame = match (&main.verdict, &shipped.eval.expected, &shipped.eval.input) {
            (Verdict::Unknown { .. }, Expected::LlmJudge(_), _) => Some(Blame::Judge),
            (Verdict::Unknown { .. }, ..) => Some(Blame::Infra),
            // The server defines the result of its own tool.
            (Verdict::Pass | Verdict::Fail { .. }, _, Input::Execution(_)) => Some(Blame::Server),
            (Verdict::Pass | Verdict::Fail { .. }, ..) => blame_for_failure(folded),
        };
        let mut grading = Grading::new(CaseChecks::of(self.case()), folded, &done.answer);
        grading.shipped(&main, blame);
        self.graded(Some(main));
        loop {
            match grading.next_check() {
                NextCheck::Assertion => self.graded(self.on_record(|| grading.evaluate())),
                NextCheck::End(ended) => return ended,
                NextCheck::Shipped | NextCheck::Step(_) | NextCheck::Judge(_) => {
                    return errored(Blame::Suite, "a shipped eval has no verify steps");
                }
            }
        }
    }

    /// Compares the result with the expected one after redacting both.
    fn match_exactly(
        &self,
        shipped: &ShippedEval,
        expected: &ExactMatch,
        done: &EvalWork,
        transcript: &Transcript,
    ) -> CheckEvaluated {
        let expected = ExactMatch {
            tool_name: expected.tool_name.clone(),
            arguments: expected.arguments.as_ref().map(|all| self.redacted(all)),
            content: expected
                .content
                .as_ref()
                .map(|content| self.redacted(content)),
            extra: expected.extra.clone(),
        };
        let call = transcript.calls.first();
        let verdict = if matches!(shipped.eval.input, Input::Execution(_)) {
            match call.map(|call| &call.answer) {
                Some(CallOutcome::Result(payload)) => match payload.read() {
                    Ok(result) => match result.and_then(|result| result.get("content")) {
                        Some(content) => matched(match_content(&expected, content)),
                        None => Verdict::fail("the result has no `content`"),
                    },
                    Err(unread) => Verdict::unknown(format!("the result {unread}")),
                },
                Some(CallOutcome::Error { .. } | CallOutcome::None) | None => {
                    Verdict::unknown("the record holds no result")
                }
            }
        } else {
            let redacted: Vec<_> = done
                .calls
                .iter()
                .map(|(name, arguments)| (name, self.redacted(arguments)))
                .collect();
            let calls: Vec<_> = redacted
                .iter()
                .map(|(name, arguments)| matching::ModelToolCall { name, arguments })
                .collect();
            match matched(match_invocation(&expected, &calls)) {
                Verdict::Fail { reason } if !done.broken.is_empty() => {
                    let tools = listed(done.broken.iter().map(String::as_str));
                    Verdict::fail(format!("{reason} (the arguments of {tools} are not JSON)"))
                }
                verdict @ (Verdict::Pass | Verdict::Fail { .. } | Verdict::Unknown { .. }) => {
                    verdict
                }
            }
        };
        CheckEvaluated {
            check: "exact-match".to_owned(),
            id: Some(CheckId::Grading("exact-match".to_owned())),
            details: Vec::new(),
            verdict,
            evidence: call.map(|call| call.seq).into_iter().collect(),
            notes: Vec::new(),
        }
    }

    /// A value after redaction, as the record contains it.
    fn redacted<T: serde::Serialize + serde::de::DeserializeOwned + Clone>(&self, value: &T) -> T {
        let text = serde_json::to_string(value).unwrap_or_default();
        match self.recorder.redactor().text(&text) {
            std::borrow::Cow::Borrowed(_) => value.clone(),
            // Redacted JSON is still JSON.
            std::borrow::Cow::Owned(text) => {
                json::from_str(&text).unwrap_or_else(|_| value.clone())
            }
        }
    }

    async fn judge_rubric(
        &self,
        rubric: &str,
        done: &EvalWork,
        transcript: &Transcript,
    ) -> Result<CheckEvaluated, TrialEnded> {
        if done.is_silent {
            // Silence meets a criterion that only forbids something, and a judge might pass it.
            return Ok(CheckEvaluated {
                check: "llm-as-judge".to_owned(),
                id: Some(CheckId::Grading("llm-as-judge".to_owned())),
                details: Vec::new(),
                verdict: Verdict::fail(SILENT),
                evidence: Vec::new(),
                notes: Vec::new(),
            });
        }
        let redact = |text: &str| self.redacted_text(text);
        let answer = match &done.note {
            Some(note) => format!("{}\n\n[{note}]", redact(&done.answer)),
            None => redact(&done.answer),
        };
        let exhibits = Exhibits {
            prompt: &redact(&done.prompt),
            answer: &answer,
            transcript: Some(transcript),
            answer_required: false,
        };
        let criterion = Criterion::Rubric(redact(rubric));
        match self.panel().rule(&criterion, &exhibits).await {
            Ok(ruling) => Ok(CheckEvaluated {
                check: "llm-as-judge".to_owned(),
                id: Some(CheckId::Grading("llm-as-judge".to_owned())),
                details: Vec::new(),
                verdict: ruling.verdict,
                evidence: ruling.evidence,
                notes: ruling.notes,
            }),
            Err(AskError::Budget(reason)) => Err(cancelled(reason)),
            Err(error) => Err(errored(Blame::Judge, format!("the judge: {error}"))),
        }
    }
}

fn matched(outcome: Result<(), matching::Mismatch>) -> Verdict {
    match outcome {
        Ok(()) => Verdict::Pass,
        Err(mismatch) => Verdict::fail(mismatch.to_string()),
    }
}

/// A turn with the server's own tool names.
fn by_own_names(turn: Turn, tools: &Toolbox) -> Turn {
    let own = |call: ToolCall| match tools.called(&call) {
        Some(called) => ToolCall {
            name: called.name,
            ..call
        },
        None => call,
    };
    Turn {
        calls: turn.calls.into_iter().map(own).collect(),
        ..turn
    }
}
