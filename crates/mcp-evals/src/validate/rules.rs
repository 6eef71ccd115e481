//! The rules for a single eval, without the server's tools.

use crate::eval::{Eval, GradingType};
use crate::expected::{ExactMatch, Expected};
use crate::input::Input;
use crate::keys::deciding_unknown;
use crate::list::{ListedEval, MalformedEval};
use crate::message::Content;

use super::{EvalFindings, FindingRule, Severity};

pub(super) fn check(item: &ListedEval, about: &mut EvalFindings<'_>) {
    match item {
        ListedEval::Broken(broken) => check_shape(broken, about),
        ListedEval::Eval(eval) => check_eval(eval, about),
    }
}

fn check_shape(broken: &MalformedEval, about: &mut EvalFindings<'_>) {
    if let Some(unknown) = broken.unknown_type() {
        skip("", &unknown, about);
        return;
    }
    for fault in &broken.faults {
        about.error(&fault.path, FindingRule::Shape, fault.text.as_str());
    }
}

fn check_eval(eval: &Eval, about: &mut EvalFindings<'_>) {
    if eval.id.is_empty() {
        about.warn(
            "/id",
            FindingRule::EmptyId,
            "is empty, so the eval can't be selected",
        );
    }
    if let Input::Other(_) = &eval.input {
        let unknown = format!("input type `{}`", eval.input.kind());
        return skip("/input/type", &unknown, about);
    }
    if let GradingType::Other(name) = &eval.grading_type {
        return skip("/gradingType", &format!("grading type `{name}`"), about);
    }
    for path in deciding_unknown(eval) {
        let key = path.rsplit('/').next().unwrap_or_default();
        let text = format!("unknown key `{key}`, which may change what is tested");
        about.add(&path, Severity::Skip, FindingRule::UnknownKey, text);
    }
    check_messages(&eval.input, about);
    if eval.expected.kind() != eval.grading_type.as_str() {
        let text = format!(
            "is `{}`, but `gradingType` is `{}`",
            eval.expected.kind(),
            eval.grading_type.as_str()
        );
        about.error("/expected/type", FindingRule::TypeMismatch, text);
    }
    match &eval.expected {
        Expected::ExactMatch(expected) => check_exact(&eval.input, expected, about),
        Expected::LlmJudge(expected) if expected.rubric.trim().is_empty() => {
            let text = "is empty, so the judge has no criterion";
            about.error("/expected/rubric", FindingRule::CannotFail, text);
        }
        Expected::LlmJudge(expected) if expected.is_unfinished() => {
            let text = "still says TODO: write what the judge looks for";
            about.warn("/expected/rubric", FindingRule::Unfinished, text);
        }
        Expected::LlmJudge(_) | Expected::Other(_) => {}
    }
}

fn skip(path: &str, unknown: &str, about: &mut EvalFindings<'_>) {
    let text = format!("unknown {unknown}");
    about.add(path, Severity::Skip, FindingRule::UnknownType, text);
}

fn check_messages(input: &Input, about: &mut EvalFindings<'_>) {
    if let Input::Scenario(scenario) = input
        && let Some(written) = &scenario.max_turns
        && scenario.turn_limit().is_none()
    {
        let text = format!("must be a whole number of at least 1, but is `{written}`");
        about.error("/input/maxTurns", FindingRule::MaxTurns, text);
    }
    if matches!(input, Input::Execution(_)) {
        return;
    }
    if input.messages().is_empty() {
        let text = "is empty, so there is no conversation to start from";
        about.error("/input/messages", FindingRule::NoMessages, text);
    }
    let blocks = input.messages().iter().flat_map(|m| m.content.blocks());
    for block in blocks {
        match block {
            Content::Other(_) => {
                let unknown = format!("content type `{}`", block.kind());
                skip("/input/messages", &unknown, about);
            }
            Content::Text(block) if block.text.trim_start().starts_with("TODO") => {
                let text = "still says TODO: write what a user would say";
                about.warn("/input/messages", FindingRule::Unfinished, text);
            }
            _ => {}
        }
    }
}

fn check_exact(input: &Input, expected: &ExactMatch, about: &mut EvalFindings<'_>) {
    let useless = |about: &mut EvalFindings<'_>, key: &str, level: &str| {
        let text = format!("has no effect in an {level} eval");
        about.warn(&format!("/expected/{key}"), FindingRule::NoEffect, text);
    };
    match input {
        Input::Invocation(_) => {
            if expected.tool_name.is_none() && expected.arguments.is_none() {
                let text = "has neither `toolName` nor `arguments`, so any call would pass; to forbid calls, use `llm-as-judge`";
                about.error("/expected", FindingRule::CannotFail, text);
            }
            if expected.content.is_some() {
                useless(about, "content", "invocation");
            }
        }
        Input::Execution(_) => {
            if expected.content.is_none() {
                let text = "has no `content`, so any result would pass";
                about.error("/expected", FindingRule::CannotFail, text);
            }
            if expected.tool_name.is_some() {
                useless(about, "toolName", "execution");
            }
            if expected.arguments.is_some() {
                useless(about, "arguments", "execution");
            }
        }
        Input::Scenario(_) => {
            let text = "a scenario can't be graded by `exact-match`: every run is different";
            about.error("/expected/type", FindingRule::ScenarioExactMatch, text);
        }
        Input::Other(_) => {}
    }
}
