//! Resolves assertions to checks.

pub(super) mod contradictions;

use std::collections::BTreeMap;
use std::time::Duration;

use proctor_record::hint::{listed, nearest};
use proctor_record::problem::{Code, Problem, Span, WithSpan};

use super::assertion_file::{
    AssertionsFile, CallsFile, OrderFile, PromptFile, ResourceFile, SkillFile, TimesFile, ToolFile,
};
use super::server::Servers;
use crate::check::{CallsMode, Check, NameMatcher, OrderEntry, SkillMatcher, Times, ToolMatcher};
use crate::decode::{Context, NonEmpty};
use crate::matcher::Matcher;

/// The maximum number of expected calls in one list. More are probably a mistake, and slow to assign.
const MAX_EXPECTED: u64 = 1_000;

/// More calls than any trial makes: a bound above this can't fail.
const MAX_CALLS: u64 = 1_000_000;

/// Longer than any call: a limit above this can't fail.
const LONGEST_CALL: Duration = Duration::from_hours(24);

/// The servers that a suite's checks and steps may name.
#[derive(Clone, Copy)]
pub(super) struct ServerScope<'a> {
    /// The declared servers; absent if they are not loaded.
    pub(super) servers: Option<&'a Servers>,
    /// Maps server names of the source to servers of the suite.
    pub(super) mapping: &'a BTreeMap<String, String>,
}

static NO_MAPPING: BTreeMap<String, String> = BTreeMap::new();

impl ServerScope<'_> {
    /// A scope that accepts every name, for a file without a suite.
    pub(super) fn unknown() -> ServerScope<'static> {
        ServerScope {
            servers: None,
            mapping: &NO_MAPPING,
        }
    }

    /// Maps a server name, and reports it if there is no such server.
    pub(super) fn resolve(
        &self,
        what: &str,
        written: &WithSpan<String>,
        cx: &Context<'_>,
    ) -> String {
        if let Some(absence) = self.absence(written) {
            absence.report(Code::Reference, what, written.span, cx);
        }
        self.meant(written)
    }

    /// Maps a server name without checking it.
    pub(super) fn meant(&self, written: &WithSpan<String>) -> String {
        let name = self.mapping.get(&written.value).unwrap_or(&written.value);
        name.clone()
    }

    /// Why a server is absent, if the servers are known.
    pub(super) fn absence(&self, written: &WithSpan<String>) -> Option<ServerAbsence> {
        let (servers, name) = (self.servers?, self.meant(written));
        if servers.enabled.iter().any(|server| server.name == name) {
            return None;
        }
        if servers.disabled.contains(&name) {
            return Some(ServerAbsence { name, hint: None });
        }
        let declared = || servers.enabled.iter().map(|s| s.name.as_str());
        let list = match declared().count() {
            0 => "no server is declared".to_owned(),
            _ => format!("declared servers: {}", listed(declared())),
        };
        let hint = match nearest(&name, declared()) {
            Some(near) => format!("did you mean `{near}`? {list}"),
            None => list,
        };
        Some(ServerAbsence {
            name,
            hint: Some(hint),
        })
    }
}

/// A reference to a server that is absent or disabled.
pub(super) struct ServerAbsence {
    pub(super) name: String,
    /// A suggestion; absent if the server is disabled.
    hint: Option<String>,
}

impl ServerAbsence {
    pub(super) fn is_disabled(&self) -> bool {
        self.hint.is_none()
    }

    pub(super) fn report(self, code: Code, what: &str, span: Span, cx: &Context<'_>) {
        let name = &self.name;
        let problem = match self.hint {
            None => {
                let message = format!("{what} names the server `{name}`, which is disabled");
                Problem::error(code, message)
            }
            Some(hint) => {
                let message = format!("{what} names unknown server `{name}`");
                Problem::error(code, message).hint(hint)
            }
        };
        cx.report(span, problem);
    }
}

/// Resolves the assertions of a task set.
pub(super) fn resolve(
    file: &AssertionsFile,
    scope: ServerScope<'_>,
    cx: &Context<'_>,
) -> Vec<Check> {
    let to = Resolver { scope, cx };
    let mut checks = Vec::new();
    checks.extend(to.tools(file.tools_used.as_ref(), 0).map(Check::ToolsUsed));
    checks.extend(
        to.tools(file.require_any.as_ref(), 0)
            .map(Check::RequireAny),
    );
    checks.extend(
        to.tools(file.tools_not_used.as_ref(), 1)
            .map(Check::ToolsNotUsed),
    );
    checks.extend(to.call_counts(file));
    let resources = |list: Option<&NonEmpty<ResourceFile>>| {
        list.map(|list| list.0.iter().map(|r| to.resource(r)).collect())
    };
    checks.extend(resources(file.resources_read.as_ref()).map(Check::ResourcesRead));
    checks.extend(resources(file.resources_not_read.as_ref()).map(Check::ResourcesNotRead));
    let prompts = |list: Option<&NonEmpty<PromptFile>>| {
        list.map(|list| list.0.iter().map(|p| to.prompt(p)).collect())
    };
    checks.extend(prompts(file.prompts_used.as_ref()).map(Check::PromptsUsed));
    checks.extend(prompts(file.prompts_not_used.as_ref()).map(Check::PromptsNotUsed));
    if let Some(order) = file.call_order.as_ref() {
        let entries = order.0.iter().map(|entry| to.order(entry)).collect();
        checks.push(Check::CallOrder(entries));
    }
    if *file.no_duplicate_calls == Some(true) {
        checks.push(Check::NoDuplicateCalls);
    }
    checks.extend(file.calls.as_ref().map(|calls| to.calls(calls)));
    let skills =
        |list: Option<&NonEmpty<SkillFile>>| list.map(|list| list.0.iter().map(skill).collect());
    checks.extend(skills(file.skills_loaded.as_ref()).map(Check::SkillsLoaded));
    checks.extend(skills(file.skills_not_loaded.as_ref()).map(Check::SkillsNotLoaded));
    contradictions::report(file, cx);
    checks
}

struct Resolver<'a> {
    scope: ServerScope<'a>,
    cx: &'a Context<'a>,
}

impl Resolver<'_> {
    fn server(&self, written: &WithSpan<String>) -> String {
        self.scope.resolve("task set", written, self.cx)
    }

    fn tools(&self, list: Option<&NonEmpty<ToolFile>>, least: u64) -> Option<Vec<ToolMatcher>> {
        Some(list?.0.iter().map(|file| self.tool(file, least)).collect())
    }

    fn tool(&self, file: &ToolFile, least: u64) -> ToolMatcher {
        ToolMatcher {
            target: NameMatcher {
                server: self.server(&file.server),
                name: (*file.tool).clone(),
                pattern: (*file.tool_pattern).clone(),
            },
            arguments: self.object_matcher(
                self.arguments(file),
                "a call's arguments are a map",
                "write the arguments by name: `arguments: {path: …}`",
            ),
            result: self.object_matcher(
                file.result.as_ref(),
                "a tool's result is a map",
                "match its text with `result: {content: {$contains: {text: {$match: …}}}}`",
            ),
            is_error: *file.is_error,
            max_duration: self.max_duration(file),
            times: self.times(file.times.as_ref(), least),
        }
    }

    fn max_duration(&self, file: &ToolFile) -> Option<Duration> {
        let written = file.max_duration.as_ref()?;
        if written.value > LONGEST_CALL {
            let message = "no call takes that long, so this can't fail";
            let problem = Problem::error(Code::Vacuous, message);
            self.cx.report(
                written.span,
                problem.hint("the largest `maxDuration` is 24h"),
            );
        }
        Some(written.value)
    }

    /// Refuses a matcher that any arguments match: its author probably wanted "no arguments".
    fn arguments<'a>(&self, file: &'a ToolFile) -> Option<&'a WithSpan<Matcher>> {
        let written = file.arguments.as_ref()?;
        if written.value.matches_every_object() {
            let problem = Problem::error(Code::Vacuous, "this matches any arguments");
            let hint = "remove the key, or write `{$exact: {}}` for a call without arguments";
            self.cx.report(written.span, problem.hint(hint));
        }
        Some(written)
    }

    /// Refuses a matcher that can never match.
    fn object_matcher(
        &self,
        written: Option<&WithSpan<Matcher>>,
        why: &str,
        hint: &str,
    ) -> Option<Matcher> {
        let written = written?;
        if !written.value.can_match() {
            let message = "this can never match: a part of it matches no value";
            self.cx
                .report(written.span, Problem::error(Code::Vacuous, message));
        } else if !written.value.can_match_object() {
            let message = format!("this can never match: {why}");
            let problem = Problem::error(Code::Vacuous, message);
            self.cx.report(written.span, problem.hint(hint));
        }
        Some(written.value.clone())
    }

    fn times(&self, written: Option<&WithSpan<TimesFile>>, least: u64) -> Times {
        let Some(written) = written else {
            return Times::default();
        };
        let times = Times {
            min: *written.min,
            max: *written.max,
        };
        let low = times.least();
        if low > times.most() {
            let message = format!(
                "`times` requires at least {low} and at most {}",
                times.most()
            );
            self.cx
                .report(written.span, Problem::error(Code::Conflict, message));
        } else if least > 0 && times.max.is_some() {
            let message = "`times.max` would allow more calls than it forbids";
            let problem = Problem::error(Code::Conflict, message);
            let hint = "with `min: 3`, three calls or more are forbidden";
            self.cx.report(written.span, problem.hint(hint));
        } else if low < least {
            let message = "with `min: 0`, `times` forbids even zero calls";
            self.cx
                .report(written.span, Problem::error(Code::Conflict, message));
        } else if low == 0 && times.max.is_none() {
            let message = "with `min: 0` and no `max`, `times` can't fail";
            self.cx
                .report(written.span, Problem::error(Code::Vacuous, message));
        } else if let Some(bound) = times.max.or(times.min.filter(|_| least > 0)) {
            self.reachable(bound, written.span);
        }
        times
    }

    /// Refuses a bound that no trial reaches, because it can't fail.
    fn reachable(&self, bound: u64, span: Span) {
        if bound > MAX_CALLS {
            let message = format!("no trial makes {bound} calls, so this can't fail");
            let problem = Problem::error(Code::Vacuous, message);
            let hint = format!("the largest bound is {MAX_CALLS}");
            self.cx.report(span, problem.hint(hint));
        }
    }

    fn call_counts(&self, file: &AssertionsFile) -> Vec<Check> {
        if let Some(min) = file.min_tool_calls.as_ref().filter(|min| min.value == 0) {
            let message = "`minToolCalls: 0` can't fail";
            self.cx
                .report(min.span, Problem::warning(Code::Vacuous, message));
        }
        let min = file.min_tool_calls.as_ref().filter(|min| min.value > 0);
        let min = min.map(|min| Check::MinToolCalls(min.value));
        let max = file.max_tool_calls.as_ref();
        if let Some(max) = max {
            self.reachable(max.value, max.span);
        }
        min.into_iter()
            .chain(max.map(|max| Check::MaxToolCalls(max.value)))
            .collect()
    }

    fn resource(&self, file: &ResourceFile) -> NameMatcher {
        NameMatcher {
            server: self.server(&file.server),
            name: (*file.uri).clone(),
            pattern: (*file.uri_pattern).clone(),
        }
    }

    fn prompt(&self, file: &PromptFile) -> NameMatcher {
        NameMatcher {
            server: self.server(&file.server),
            name: (*file.prompt).clone(),
            pattern: (*file.prompt_pattern).clone(),
        }
    }

    fn order(&self, file: &OrderFile) -> OrderEntry {
        OrderEntry {
            kind: file.kind,
            server: self.server(&file.server),
            name: file.name.clone(),
        }
    }

    fn calls(&self, file: &CallsFile) -> Check {
        let mut expected: u64 = 0;
        for entry in &file.list.0 {
            let times = entry.times.as_ref();
            let min = times.and_then(|t| *t.min).unwrap_or(1);
            let max = times.and_then(|t| *t.max);
            expected = expected.saturating_add(max.unwrap_or(min));
            if let (Some(times), Some(_)) = (times, max)
                && file.mode != CallsMode::Exact
            {
                let message = "`times.max` has no effect: this mode allows further calls";
                let problem = Problem::error(Code::Vacuous, message);
                let hint = "use mode `exact`, or `toolsUsed` with `times`";
                self.cx.report(times.span, problem.hint(hint));
            }
        }
        if expected > MAX_EXPECTED
            && let Some(first) = file.list.0.first()
        {
            let message = format!("the list expects more than {MAX_EXPECTED} calls");
            self.cx
                .report(first.server.span, Problem::error(Code::Limit, message));
        }
        Check::Calls {
            mode: file.mode,
            list: file
                .list
                .0
                .iter()
                .map(|entry| self.tool(entry, 0))
                .collect(),
        }
    }
}

fn skill(file: &SkillFile) -> SkillMatcher {
    SkillMatcher {
        name: file.skill.as_ref().map(|skill| skill.value.clone()),
        pattern: file.skill_pattern.as_ref().map(|p| p.value.clone()),
    }
}
