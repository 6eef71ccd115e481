//! Assertions that can't hold together, such as a tool that must be called and must not be.

use crate::check::{OrderKind, Times};
use crate::decode::{Context, Given, NonEmpty};
use crate::pattern::Pattern;
use crate::problem::{Code, Located, Problem, Span};
use crate::suite::assertion_file::{
    AssertionsFile, OrderFile, PromptFile, ResourceFile, SkillFile, ToolFile,
};

/// Reports every entry that another assertion of the same task set rules out.
pub(super) fn report(file: &AssertionsFile, cx: &Context<'_>) {
    let forbidden = Forbidden {
        tools: entries(&file.tools_not_used),
        resources: entries(&file.resources_not_read),
        prompts: entries(&file.prompts_not_used),
    };
    let calls = file.calls.as_ref().map_or(&[][..], |calls| &calls.list.0);
    for tool in entries(&file.tools_used).iter().chain(calls) {
        forbidden.tool(tool, cx);
    }
    let any = entries(&file.require_any);
    if any.iter().all(|tool| forbidden.has_tool(tool)) {
        for tool in any {
            forbidden.tool(tool, cx);
        }
    }
    for used in entries(&file.resources_read) {
        let not = forbidden.resources.iter().map(ResourceFile::named);
        used.named().unless(not, "resourcesNotRead", cx);
    }
    for used in entries(&file.prompts_used) {
        let not = forbidden.prompts.iter().map(PromptFile::named);
        used.named().unless(not, "promptsNotUsed", cx);
    }
    for used in entries(&file.skills_loaded) {
        let not = entries(&file.skills_not_loaded).iter();
        let not = not.map(SkillFile::named);
        used.named().unless(not, "skillsNotLoaded", cx);
    }
    for place in entries(&file.call_order) {
        forbidden.place(place, cx);
    }
    too_many(file, cx);
}

fn entries<T>(list: &Given<NonEmpty<T>>) -> &[T] {
    list.as_ref().map_or(&[], |list| &list.0)
}

fn conflict(span: Span, key: &str, cx: &Context<'_>) {
    let message = format!("the assertions contradict each other: `{key}` forbids this");
    cx.report(span, Problem::error(Code::Conflict, message));
}

/// Reports more calls that must be made than may be.
fn too_many(file: &AssertionsFile, cx: &Context<'_>) {
    let Some(max) = file.max_tool_calls.as_ref() else {
        return;
    };
    let most = entries(&file.tools_used).iter().map(least).max();
    let any = entries(&file.require_any).iter().map(least).min();
    let calls = file.calls.as_ref().map(|calls| {
        let all = calls.list.0.iter().map(least);
        all.fold(0, u64::saturating_add)
    });
    let needed = [most, any, calls].into_iter().flatten().max().unwrap_or(0);
    if needed > max.value {
        let message = format!(
            "at most {} tool calls are allowed, and the other assertions ask for {needed}",
            max.value
        );
        cx.report(max.span, Problem::error(Code::Conflict, message));
    }
}

/// The fewest calls that an entry asks for.
fn least(tool: &ToolFile) -> u64 {
    let times = tool.times.as_ref().map(|times| Times {
        min: *times.min,
        max: *times.max,
    });
    // More than the most is told elsewhere.
    let times = times.filter(|times| times.least() <= times.most());
    times.unwrap_or_default().least()
}

/// What must not be used.
struct Forbidden<'a> {
    tools: &'a [ToolFile],
    resources: &'a [ResourceFile],
    prompts: &'a [PromptFile],
}

impl Forbidden<'_> {
    fn tool(&self, used: &ToolFile, cx: &Context<'_>) {
        if self.has_tool(used) {
            conflict(used.server.span, "toolsNotUsed", cx);
        }
    }

    /// Whether the calls that an entry asks for are all forbidden.
    fn has_tool(&self, used: &ToolFile) -> bool {
        let asked = least(used);
        asked > 0
            && self.tools.iter().any(|not| {
                not.named().covers(&used.named())
                    && least(not) <= asked
                    && is_laxer(&not.arguments, &used.arguments, |a, b| a.value == b.value)
                    && is_laxer(&not.result, &used.result, |a, b| a.value == b.value)
                    && is_laxer(&not.is_error, &used.is_error, |a, b| a == b)
                    && is_laxer(&not.max_duration, &used.max_duration, |a, b| {
                        a.value >= b.value
                    })
            })
    }

    fn place(&self, place: &OrderFile, cx: &Context<'_>) {
        let used = Named {
            server: &place.server.value,
            name: Some(&place.name),
            pattern: None,
            span: place.server.span,
        };
        let is_any_call = |not: &&ToolFile| {
            not.arguments.is_none()
                && not.result.is_none()
                && not.is_error.is_none()
                && not.max_duration.is_none()
                && least(not) <= 1
        };
        match place.kind {
            OrderKind::Tool => {
                let not = self.tools.iter().filter(is_any_call);
                used.unless(not.map(ToolFile::named), "toolsNotUsed", cx);
            }
            OrderKind::Resource => {
                let not = self.resources.iter().map(ResourceFile::named);
                used.unless(not, "resourcesNotRead", cx);
            }
            OrderKind::Prompt => {
                let not = self.prompts.iter().map(PromptFile::named);
                used.unless(not, "promptsNotUsed", cx);
            }
        }
    }
}

/// Whether what is forbidden asks for no more than what must be used.
fn is_laxer<T>(not: &Given<T>, used: &Given<T>, holds: impl Fn(&T, &T) -> bool) -> bool {
    match (not.as_ref(), used.as_ref()) {
        (None, _) => true,
        (Some(not), Some(used)) => holds(not, used),
        (Some(_), None) => false,
    }
}

/// What an entry names, and where it stands.
struct Named<'a> {
    server: &'a str,
    name: Option<&'a str>,
    pattern: Option<&'a Pattern>,
    span: Span,
}

impl Named<'_> {
    /// Reports that this must be used, where one of `forbidden` covers it.
    fn unless<'a>(
        &self,
        mut forbidden: impl Iterator<Item = Named<'a>>,
        key: &str,
        cx: &Context<'_>,
    ) {
        if forbidden.any(|not| not.covers(self)) {
            conflict(self.span, key, cx);
        }
    }

    /// Whether everything that another entry names is named here.
    fn covers(&self, other: &Named<'_>) -> bool {
        if self.server != other.server {
            return false;
        }
        match (self.name, self.pattern, other.name, other.pattern) {
            (None, None, ..) => true,
            (name, pattern, Some(exact), None) => {
                name == Some(exact) || pattern.is_some_and(|pattern| pattern.is_match(exact))
            }
            (name, pattern, ..) => name == other.name && pattern == other.pattern,
        }
    }
}

impl ToolFile {
    fn named(&self) -> Named<'_> {
        named(
            &self.server,
            self.tool.as_deref(),
            self.tool_pattern.as_ref(),
        )
    }
}

impl ResourceFile {
    fn named(&self) -> Named<'_> {
        named(&self.server, self.uri.as_deref(), self.uri_pattern.as_ref())
    }
}

impl PromptFile {
    fn named(&self) -> Named<'_> {
        named(
            &self.server,
            self.prompt.as_deref(),
            self.prompt_pattern.as_ref(),
        )
    }
}

impl SkillFile {
    fn named(&self) -> Named<'_> {
        let skill = self.skill.as_ref();
        Named {
            server: "",
            name: skill.map(|skill| skill.value.as_str()),
            pattern: self.skill_pattern.as_ref().map(|pattern| &pattern.value),
            span: match (skill, self.skill_pattern.as_ref()) {
                (Some(skill), _) => skill.span,
                (None, Some(pattern)) => pattern.span,
                (None, None) => Span::default(),
            },
        }
    }
}

fn named<'a>(
    server: &'a Located<String>,
    name: Option<&'a str>,
    pattern: Option<&'a Pattern>,
) -> Named<'a> {
    Named {
        server: &server.value,
        name,
        pattern,
        span: server.span,
    }
}
