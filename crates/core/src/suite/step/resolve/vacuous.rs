//! Finds checks that prove nothing: scripts and criteria that can't fail, and ignored arguments.

use proctor_record::hint::nearest;
use proctor_record::phase::Phase;
use proctor_record::problem::{Code, Problem, Span};

use super::OneStep;
use crate::decode::Decode;
use crate::document::{Node, NodeValue};
use crate::suite::files;
use crate::suite::step::ScriptSource;
use crate::suite::step_file::ServerToolFile;
use crate::suite::template::{Reference, Template, TemplatePart};

impl OneStep<'_> {
    /// Reports a verification whose script can't fail. A script such as `exit 0` is skipped.
    pub(super) fn can_fail(&self, source: &ScriptSource, span: Span) -> Option<()> {
        if self.phase != Phase::Grade {
            return Some(());
        }
        let text = match source {
            ScriptSource::Inline(text) => text.clone(),
            ScriptSource::File(path) => match files::read(path) {
                Ok(source) => source.text().to_owned(),
                // What is not a text may still be a program.
                Err(_) => return Some(()),
            },
        };
        let problem = match ScriptText::of(&text) {
            ScriptText::Acts => return Some(()),
            ScriptText::OnlyComments => {
                let message = "the script contains only comments, so it can't fail";
                Problem::error(Code::Vacuous, message)
            }
            ScriptText::AlwaysPasses => {
                let message = "the script always passes, so Proctor skips it";
                Problem::warning(Code::Vacuous, message)
            }
        };
        self.report(
            span,
            problem.hint("exit with a non-zero code if the task failed"),
        );
        None
    }

    /// Refuses arguments that are not under `args`: the tool would be called without them.
    pub(super) fn direct_arguments(&self, tool: &str, value: &Node) -> Option<()> {
        let NodeValue::Mapping(entries) = &value.data else {
            return Some(());
        };
        let is_stray = |key: &str| !ServerToolFile::KEYS.contains(&key);
        let mut found = Some(());
        for entry in entries.iter().filter(|entry| is_stray(&entry.key)) {
            let key = &entry.key;
            let message =
                format!("unknown key `{key}`: the arguments of `{tool}` go under `args:`");
            let hint = match nearest(key, ServerToolFile::KEYS.iter().copied()) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("write `args: {{{key}: …}}`"),
            };
            let problem = Problem::error(Code::UnknownKey, message);
            self.report(entry.key_span, problem.hint(hint));
            found = None;
        }
        found
    }
}

/// Whether the text of a script can fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ScriptText {
    /// It contains commands that may fail.
    Acts,
    /// Blank lines and comments, perhaps below a `#!` line.
    OnlyComments,
    /// Besides comments, only commands that always succeed, such as `exit 0`.
    AlwaysPasses,
}

impl ScriptText {
    fn of(text: &str) -> Self {
        let (interpreter, body) = match text.strip_prefix("#!") {
            Some(rest) => rest.split_once('\n').unwrap_or((rest, "")),
            None => ("sh", text),
        };
        let marks: &[&str] = if ["node", "deno", "bun"]
            .iter()
            .any(|js| interpreter.contains(js))
        {
            &["#", "//"]
        } else {
            &["#"]
        };
        let is_comment = |line: &&str| line.is_empty() || marks.iter().any(|m| line.starts_with(m));
        let mut acts = body
            .lines()
            .map(str::trim)
            .filter(|line| !is_comment(line))
            .peekable();
        if acts.peek().is_none() {
            return Self::OnlyComments;
        }
        if interpreter.contains("sh") && acts.all(always_succeeds) {
            return Self::AlwaysPasses;
        }
        Self::Acts
    }
}

/// Whether a line of a shell script always succeeds.
fn always_succeeds(line: &str) -> bool {
    let line = line.split(" #").next().unwrap_or(line).trim();
    let mut statements = line.split(';').map(str::trim);
    statements.all(|one| matches!(one, "" | "true" | ":" | "exit" | "exit 0" | "return 0"))
}

/// Whether a criterion consists only of the answer itself.
pub(super) fn is_only_the_answer(criterion: &Template) -> bool {
    let mut names_answer = false;
    let rest_is_empty = criterion.parts.iter().all(|part| match part {
        TemplatePart::Text(text) => !text.chars().any(char::is_alphanumeric),
        TemplatePart::Reference(reference) => {
            names_answer = true;
            *reference == Reference::AgentOutput
        }
    });
    names_answer && rest_is_empty
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_that_can_t_fail_is_recognised() {
        let check = |text: &str, expected: ScriptText| {
            assert_eq!(ScriptText::of(text), expected, "{text:?}");
        };
        check("# nothing yet", ScriptText::OnlyComments);
        check("#!/bin/sh\n\n  # later\n\t#x", ScriptText::OnlyComments);
        check("#!/usr/bin/env node\n// later\n", ScriptText::OnlyComments);
        check("#!/bin/bash", ScriptText::OnlyComments);
        check("true", ScriptText::AlwaysPasses);
        check("#!/bin/bash\n:; exit 0  # fine\n", ScriptText::AlwaysPasses);
        check("// later", ScriptText::Acts);
        check("test -f x\nexit 0", ScriptText::Acts);
        check("exit 1", ScriptText::Acts);
        check("#!/usr/bin/env python3\nexit", ScriptText::Acts);
    }

    #[test]
    fn a_criterion_of_the_answer_alone_is_recognised() {
        let check = |text: &str, expected: bool| {
            let template = Template::parse(text).unwrap();
            assert_eq!(is_only_the_answer(&template), expected, "{text}");
        };
        check("{agent.output}", true);
        check(" “{agent.output}”.\n", true);
        check("{agent.output} {agent.output}", true);
        check("the sum is {agent.output}", false);
        check("{agent.output} {agent.prompt}", false);
        check("{steps.script.stdout}", false);
        check("!", false);
    }
}
