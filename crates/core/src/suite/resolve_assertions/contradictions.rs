//! Finds assertions that contradict each other, such as a required tool that is also forbidden.

use proctor_record::problem::{Code, Problem, Span, WithSpan};

use crate::check::{OrderKind, Times};
use crate::decode::{Context, NonEmpty, OptionalNonEmpty};
use crate::pattern::Pattern;
use crate::suite::assertion_file::{
    AssertionsFile, OrderFile, PromptFile, ResourceFile, SkillFile, ToolFile,
};

/// Reports every entry that another assertion of the same task set rules out.
pub(super) fn report(file: &AssertionsFile, cx: &Context<'_>) {
    Sides::new(file, file, None, cx).report();
}

/// Reports every entry of one of two task sets that the other one rules out, for a task that both select.
pub(in crate::suite) fn report_between(
    one: &AssertionsFile,
    other: &AssertionsFile,
    task: &str,
    cx: &Context<'_>,
) {
    Sides::new(one, other, Some(task), cx).report();
    Sides::new(other, one, Some(task), cx).report();
}

fn entries<T>(list: &OptionalNonEmpty<NonEmpty<T>>) -> &[T] {
    list.as_ref().map_or(&[], |list| &list.0)
}

/// Assertions that require calls, and assertions that may forbid them.
struct Sides<'a> {
    asks: &'a AssertionsFile,
    rules_out: &'a AssertionsFile,
    /// The task that two task sets select, if it is two.
    task: Option<&'a str>,
    cx: &'a Context<'a>,
}

impl<'a> Sides<'a> {
    fn new(
        asks: &'a AssertionsFile,
        rules_out: &'a AssertionsFile,
        task: Option<&'a str>,
        cx: &'a Context<'a>,
    ) -> Self {
        Self {
            asks,
            rules_out,
            task,
            cx,
        }
    }

    fn report(&self) {
        let (asks, not) = (self.asks, self.rules_out);
        let calls = asks.calls.as_ref().map_or(&[][..], |calls| &calls.list.0);
        for tool in entries(&asks.tools_used).iter().chain(calls) {
            self.tool(tool);
        }
        let any = entries(&asks.require_any);
        if any.iter().all(|tool| self.forbids(tool)) {
            for tool in any {
                self.tool(tool);
            }
        }
        for used in entries(&asks.resources_read) {
            let not = entries(&not.resources_not_read).iter();
            self.unless(
                &used.named(),
                not.map(ResourceFile::named),
                "resourcesNotRead",
            );
        }
        for used in entries(&asks.prompts_used) {
            let not = entries(&not.prompts_not_used).iter();
            self.unless(&used.named(), not.map(PromptFile::named), "promptsNotUsed");
        }
        for used in entries(&asks.skills_loaded) {
            let not = entries(&not.skills_not_loaded).iter();
            self.unless(&used.named(), not.map(SkillFile::named), "skillsNotLoaded");
        }
        for place in entries(&asks.call_order) {
            self.place(place);
        }
        self.too_many();
    }

    fn conflict(&self, span: Span, key: &str) {
        let message = match self.task {
            None => format!("the assertions contradict each other: `{key}` forbids this"),
            Some(task) => format!(
                "the assertions of two task sets contradict each other for the task `{task}`: \
                 `{key}` forbids this"
            ),
        };
        self.cx
            .report(span, Problem::error(Code::Conflict, message));
    }

    /// Reports if more calls are required than allowed.
    fn too_many(&self) {
        let Some(max) = self.rules_out.max_tool_calls.as_ref() else {
            return;
        };
        let task = self.task.map_or(String::new(), |task| {
            format!(" of the task `{task}`, which two task sets select,")
        });
        let min = self.asks.min_tool_calls.as_ref();
        if let Some(min) = min.filter(|min| min.value > max.value) {
            let message = format!(
                "at least {} and at most {} tool calls{task} can't both hold",
                min.value, max.value
            );
            self.cx
                .report(max.span, Problem::error(Code::Conflict, message));
        }
        let most = entries(&self.asks.tools_used).iter().map(least).max();
        let any = entries(&self.asks.require_any).iter().map(least).min();
        let calls = self.asks.calls.as_ref().map(|calls| {
            let all = calls.list.0.iter().map(least);
            all.fold(0, u64::saturating_add)
        });
        let needed = [most, any, calls].into_iter().flatten().max().unwrap_or(0);
        if needed > max.value {
            let message = format!(
                "at most {} tool calls{task} are allowed, but the other assertions need {needed}",
                max.value
            );
            self.cx
                .report(max.span, Problem::error(Code::Conflict, message));
        }
    }

    fn tool(&self, used: &ToolFile) {
        if self.forbids(used) {
            self.conflict(used.server.span, "toolsNotUsed");
        }
    }

    /// Whether all calls that an entry requires are forbidden.
    fn forbids(&self, used: &ToolFile) -> bool {
        let asked = least(used);
        asked > 0
            && entries(&self.rules_out.tools_not_used).iter().any(|not| {
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

    fn place(&self, place: &OrderFile) {
        let used = NamedTarget {
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
        let not = self.rules_out;
        match place.kind {
            OrderKind::Tool => {
                let not = entries(&not.tools_not_used).iter().filter(is_any_call);
                self.unless(&used, not.map(ToolFile::named), "toolsNotUsed");
            }
            OrderKind::Resource => {
                let not = entries(&not.resources_not_read).iter();
                self.unless(&used, not.map(ResourceFile::named), "resourcesNotRead");
            }
            OrderKind::Prompt => {
                let not = entries(&not.prompts_not_used).iter();
                self.unless(&used, not.map(PromptFile::named), "promptsNotUsed");
            }
        }
    }

    /// Reports a required entry if one of `forbidden` covers it.
    fn unless<'b>(
        &self,
        used: &NamedTarget<'_>,
        mut forbidden: impl Iterator<Item = NamedTarget<'b>>,
        key: &str,
    ) {
        if forbidden.any(|not| not.covers(used)) {
            self.conflict(used.span, key);
        }
    }
}

/// The minimum number of calls that an entry requires.
fn least(tool: &ToolFile) -> u64 {
    let times = tool.times.as_ref().map(|times| Times {
        min: *times.min,
        max: *times.max,
    });
    // More than the most is told elsewhere.
    let times = times.filter(|times| times.least() <= times.most());
    times.unwrap_or_default().least()
}

/// Whether the forbidden entry has no stricter conditions than the required one.
fn is_laxer<T>(
    not: &OptionalNonEmpty<T>,
    used: &OptionalNonEmpty<T>,
    holds: impl Fn(&T, &T) -> bool,
) -> bool {
    match (not.as_ref(), used.as_ref()) {
        (None, _) => true,
        (Some(not), Some(used)) => holds(not, used),
        (Some(_), None) => false,
    }
}

/// The name or pattern of an entry, and its place.
struct NamedTarget<'a> {
    server: &'a str,
    name: Option<&'a str>,
    pattern: Option<&'a Pattern>,
    span: Span,
}

impl NamedTarget<'_> {
    /// Whether this entry covers everything that another entry names.
    fn covers(&self, other: &NamedTarget<'_>) -> bool {
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
    fn named(&self) -> NamedTarget<'_> {
        named(
            &self.server,
            self.tool.as_deref(),
            self.tool_pattern.as_ref(),
        )
    }
}

impl ResourceFile {
    fn named(&self) -> NamedTarget<'_> {
        named(&self.server, self.uri.as_deref(), self.uri_pattern.as_ref())
    }
}

impl PromptFile {
    fn named(&self) -> NamedTarget<'_> {
        named(
            &self.server,
            self.prompt.as_deref(),
            self.prompt_pattern.as_ref(),
        )
    }
}

impl SkillFile {
    fn named(&self) -> NamedTarget<'_> {
        let skill = self.skill.as_ref();
        NamedTarget {
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
    server: &'a WithSpan<String>,
    name: Option<&'a str>,
    pattern: Option<&'a Pattern>,
) -> NamedTarget<'a> {
    NamedTarget {
        server: &server.value,
        name,
        pattern,
        span: server.span,
    }
}
