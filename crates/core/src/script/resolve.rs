//! Resolves a script file to a [`Script`], and reports all mistakes in it.

use std::time::Duration;

use proctor_record::json;
use proctor_record::model::StopReason;
use proctor_record::problem::{Code, Problem, Span, WithSpan};
use serde_json::Value;

use super::quote::{QuoteProblem, QuotingValue, TextWithQuotes};
use super::script_file::{
    CallFile, FaultFile, FaultKind, ReplyFile, RuleFile, ScriptFile, StopWord, WhenFile,
};
use super::{
    CallArguments, ProviderFault, ReplyTemplate, RuleAnswer, RuleCondition, Script, ScriptRule,
};
use crate::decode::{Context, LooseText};
use crate::pattern::Pattern;

/// Resolves a script, and reports its problems.
pub(crate) fn resolve(file: &ScriptFile, cx: &Context<'_>) -> Option<Script> {
    let rules = &file.rules.get()?.0;
    if let Some(at) = rules.iter().position(|rule| rule.when.is_none())
        && let Some(later) = rules.get(at + 1)
    {
        let problem = Problem::warning(Code::Vacuous, "this rule is never reached");
        let hint = format!("the rule at line {} always matches", rules[at].span.line);
        cx.report(later.span, problem.hint(hint));
    }
    let metadata = file.metadata.as_ref();
    Some(Script {
        source: cx.source.clone(),
        name: metadata.and_then(|m| m.name.as_ref()).map(|n| n.0.clone()),
        rules: rules
            .iter()
            .filter_map(|rule| resolve_rule(rule, cx))
            .collect(),
    })
}

fn resolve_rule(file: &WithSpan<RuleFile>, cx: &Context<'_>) -> Option<ScriptRule> {
    let when = file.when.as_ref().map(resolve_when).unwrap_or_default();
    let reply = file.reply.get()?;
    Some(ScriptRule {
        line: file.span.line,
        delay: reply.delay.unwrap_or(Duration::ZERO),
        answer: OneReply {
            reply,
            pattern: when.quoted_pattern(),
            cx,
        }
        .resolve()?,
        when,
    })
}

fn resolve_when(file: &WhenFile) -> RuleCondition {
    RuleCondition {
        turn: file.turn.map(|turn| turn.0 as usize),
        results: *file.results,
        prompt: (*file.prompt).clone(),
        user: (*file.user).clone(),
        system: (*file.system).clone(),
        result: (*file.result).clone(),
        error: *file.error,
        tool: (*file.tool).clone(),
        tool_pattern: (*file.tool_pattern).clone(),
        must_call: (*file.must_call).clone(),
    }
}

/// A reply, with the pattern whose groups it can quote.
struct OneReply<'a, 'c> {
    reply: &'a WithSpan<ReplyFile>,
    pattern: Option<&'a Pattern>,
    cx: &'a Context<'c>,
}

impl OneReply<'_, '_> {
    fn resolve(&self) -> Option<RuleAnswer> {
        let reply = self.reply;
        if let Some(error) = &reply.error {
            self.refuse_beside("error", reply.refuse.is_some() || self.says_something());
            return Some(RuleAnswer::Fails(fault(error)));
        }
        let refuses = reply.refuse.is_some();
        if refuses {
            let beside = reply.text.is_some() || reply.calls.is_some() || reply.stop.is_some();
            self.refuse_beside("refuse", beside);
        }
        let text = reply.refuse.as_ref().or(reply.text.as_ref());
        let text = text.map(|text| self.quoting(text));
        let thinking = reply.thinking.as_ref().map(|text| self.quoting(text));
        let calls: Option<Vec<_>> = reply
            .calls
            .iter()
            .flat_map(|calls| &calls.0)
            .map(|call| Some((call.tool.clone(), self.arguments(call)?)))
            .collect();
        let calls = calls?;
        let stop = match reply.stop {
            _ if refuses => StopReason::Refusal,
            Some(StopWord::Done) => StopReason::Done,
            Some(StopWord::Length) => StopReason::Length,
            None if calls.is_empty() => StopReason::Done,
            Some(StopWord::Calls) | None => StopReason::Calls,
        };
        let usage = reply.usage.as_ref();
        Some(RuleAnswer::Says(Box::new(ReplyTemplate {
            text,
            thinking,
            calls,
            stop,
            input: usage.and_then(|usage| usage.input),
            output: usage.and_then(|usage| usage.output),
            cached: usage.and_then(|usage| usage.cached),
            reasoning: usage.and_then(|usage| usage.reasoning),
        })))
    }

    fn says_something(&self) -> bool {
        let reply = self.reply;
        reply.text.is_some()
            || reply.thinking.is_some()
            || reply.calls.is_some()
            || reply.stop.is_some()
            || reply.usage.is_some()
    }

    fn refuse_beside(&self, key: &str, other: bool) {
        if other {
            let message = format!("`{key}` can't be combined with another answer");
            let problem = Problem::error(Code::Conflict, message);
            self.cx.report(self.reply.span, problem);
        }
    }

    fn quoting(&self, text: &WithSpan<LooseText>) -> TextWithQuotes {
        let mut problems = Vec::new();
        let quoting = TextWithQuotes::parse(&text.value.0, self.pattern, &mut problems);
        self.report(problems, text.span);
        quoting
    }

    fn arguments(&self, call: &WithSpan<CallFile>) -> Option<CallArguments> {
        if let Some(malformed) = &call.malformed {
            if !call.arguments.0.is_empty() {
                let message = "only one of `arguments` and `malformed` is allowed";
                let problem = Problem::error(Code::Conflict, message);
                self.cx.report(call.span, problem);
            }
            return self.malformed(malformed);
        }
        let entries = call.arguments.iter().map(|(key, node)| {
            let mut problems = Vec::new();
            let value = QuotingValue::parse(node.to_json(), self.pattern, &mut problems);
            self.report(problems, node.span);
            (key.value.clone(), value)
        });
        Some(CallArguments::Object(entries.collect()))
    }

    fn malformed(&self, written: &WithSpan<LooseText>) -> Option<CallArguments> {
        let text = written.value.0.clone();
        let reason = match json::from_str::<Value>(&text) {
            Ok(Value::Object(_)) if json::repeats_a_key(text.as_bytes()) => {
                "duplicate key".to_owned()
            }
            Ok(Value::Object(_)) => {
                let problem = Problem::error(Code::Value, "`malformed` holds a valid JSON object");
                self.cx.report(
                    written.span,
                    problem.hint("move it to `arguments`, or make it invalid"),
                );
                return None;
            }
            Ok(_) => "not a JSON object".to_owned(),
            Err(error) => error.to_string(),
        };
        Some(CallArguments::Malformed { text, reason })
    }

    fn report(&self, problems: Vec<QuoteProblem>, span: Span) {
        for found in problems {
            let problem = if found.harmless {
                Problem::warning(Code::Reference, found.message)
            } else {
                Problem::error(Code::Reference, found.message)
            };
            self.cx.report(span, problem.maybe_hint(found.hint));
        }
    }
}

fn fault(file: &FaultFile) -> ProviderFault {
    let detail = file
        .detail
        .as_ref()
        .map_or_else(|| "scripted failure".to_owned(), |text| text.0.clone());
    let retry_after = file.retry_after;
    match file.kind {
        FaultKind::RateLimit => ProviderFault::RateLimited {
            retry_after,
            detail,
        },
        FaultKind::Unavailable => ProviderFault::Unavailable {
            retry_after,
            detail,
        },
        FaultKind::Timeout => ProviderFault::TimedOut,
        FaultKind::Key => ProviderFault::Key { detail },
        FaultKind::Context => ProviderFault::ContextOverflow { detail },
        FaultKind::Rejected => ProviderFault::Rejected { detail },
        FaultKind::Malformed => ProviderFault::Malformed { detail },
    }
}
