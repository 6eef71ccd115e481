//! Finds the place of a template's mistake in its file.

use proctor_record::problem::{Code, Problem, Span};

use super::{GoTemplate, TemplateFault, TemplateUse};
use crate::decode::Context;

/// Parses a template of an agent file, and reports its mistakes at their places.
pub(in crate::suite) fn template(
    text: &str,
    span: Span,
    usage: TemplateUse,
    cx: &Context<'_>,
) -> Option<GoTemplate> {
    let faults = match GoTemplate::parse(text, usage) {
        Ok(template) => return Some(template),
        Err(faults) => faults,
    };
    for fault in faults {
        let place = place(cx.source.text(), span, text, &fault).unwrap_or(span);
        let problem = Problem::error(Code::Value, fault.message);
        cx.report(place, problem.maybe_hint(fault.hint));
    }
    None
}

/// The place of a fault in the file. YAML may indent, fold or escape a text, but it leaves the order
/// of its braces, so the fault's action is found by its number.
fn place(file: &str, span: Span, text: &str, fault: &TemplateFault) -> Option<Span> {
    let start = offset(file, span)?;
    let number = text[..fault.action].matches("{{").count();
    let (found, _) = file[start..].match_indices("{{").nth(number)?;
    let action = start + found;
    // What stands before the fault may be written differently there.
    let before = &text[fault.action..fault.at];
    let (at, len) = if file[action..].starts_with(before) {
        (action + before.len(), fault.len)
    } else {
        (action, 2)
    };
    let line_start = file[..at].rfind('\n').map_or(0, |end| end + 1);
    let meant = file.get(at..at + len).unwrap_or("{");
    Some(Span {
        line: u32::try_from(file[..at].matches('\n').count() + 1).ok()?,
        column: u32::try_from(file[line_start..at].chars().count() + 1).ok()?,
        chars: u32::try_from(meant.lines().next().map_or(1, |line| line.chars().count())).ok()?,
    })
}

fn offset(file: &str, span: Span) -> Option<usize> {
    let line = usize::try_from(span.line).ok()?.checked_sub(1)?;
    let mut lines = file.split_inclusive('\n');
    let before: usize = lines.by_ref().take(line).map(str::len).sum();
    let line = lines.next()?;
    let column = usize::try_from(span.column).ok()?.checked_sub(1)?;
    let (at, _) = line.char_indices().nth(column)?;
    Some(before + at)
}
