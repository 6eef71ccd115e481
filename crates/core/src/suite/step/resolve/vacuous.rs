//! What a verification can't fail on, as far as its text tells.

use crate::suite::template::{Part, Reference, Template};

/// What a script's text says about whether it can fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ScriptText {
    /// It does something.
    Acts,
    /// Blank lines and comments, perhaps below a `#!` line.
    OnlyComments,
    /// Besides comments only what always succeeds, such as `exit 0`.
    AlwaysPasses,
}

impl ScriptText {
    pub(super) fn of(text: &str) -> Self {
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

/// Whether a line of a shell script does nothing but succeed.
fn always_succeeds(line: &str) -> bool {
    let line = line.split(" #").next().unwrap_or(line).trim();
    let mut statements = line.split(';').map(str::trim);
    statements.all(|one| matches!(one, "" | "true" | ":" | "exit" | "exit 0" | "return 0"))
}

/// Whether a criterion asks whether the answer has what the answer has.
pub(super) fn is_only_the_answer(criterion: &Template) -> bool {
    let mut names_answer = false;
    let rest_is_empty = criterion.parts.iter().all(|part| match part {
        Part::Text(text) => !text.chars().any(char::is_alphanumeric),
        Part::Reference(reference) => {
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
