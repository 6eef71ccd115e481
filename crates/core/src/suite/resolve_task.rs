//! Resolves a task file, of either version, to a case.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use proctor_record::event::{CheckId, CheckPlace};
use proctor_record::hint::nearest_hint;
use proctor_record::phase::Phase;
use proctor_record::problem::{Code, Problem, Span, WithSpan};

use super::eval_file::ApiVersion;
use super::files::{self, FileOrigin};
use super::replies::{ClientReplies, WrittenReplies};
use super::replies_file::RepliesFile;
use super::resolve_assertions::ServerScope;
use super::rows::{self, Row, RowFile, Rows};
use super::server::TextScope;
use super::server_list::ServerList;
use super::step::resolve::{
    AliasTarget, RowNames, StepOwner, StepScope, resolve_file, resolve_phases, resolve_prompt,
    step_id,
};
use super::step_file::{JudgeStepFile, ScriptStepFile, StepBody, StepFile};
use super::task_file::{
    LegacyStepsFile, LegacyVerifyFile, RequirementFile, TaskFile, TaskMetadata, TextSourceFile,
};
use super::template::Template;
use super::turns::{self, UserTurn};
use super::turns_file::UserTurnFile;
use super::variables::Environment;
use super::{Case, CaseId, Isolation, Limits, Workspace};
use crate::check::Check;
use crate::decode::{Context, LooseText, NonEmpty, Table};

/// The context in which a task is resolved.
pub(super) struct TaskScope<'a> {
    pub(super) cx: &'a Context<'a>,
    pub(super) origin: &'a FileOrigin,
    pub(super) env: &'a Environment,
    pub(super) servers: ServerScope<'a>,
    /// The aliases of the suite's extensions; absent if the task is checked
    /// without a suite.
    pub(super) extensions: Option<&'a [String]>,
    pub(super) has_judge: Option<bool>,
    /// The path that goes into the case's id.
    pub(super) shown_path: String,
}

impl<'a> TaskScope<'a> {
    /// The scope of a task without a suite: its servers are not checked.
    pub(super) fn alone(cx: &'a Context<'a>, env: &'a Environment) -> Self {
        Self {
            cx,
            origin: &FileOrigin::Own,
            env,
            servers: ServerScope::unknown(),
            extensions: None,
            has_judge: None,
            shown_path: cx.source.path().display().to_string(),
        }
    }
}

/// A task of either version, brought to the newer form.
struct TaskParts<'a> {
    requires: &'a [WithSpan<RequirementFile>],
    workspace: Option<&'a WithSpan<String>>,
    limits: Limits,
    setup: Vec<StepFile>,
    verify: Vec<StepFile>,
    cleanup: Vec<StepFile>,
    prompt: Option<&'a WithSpan<TextSourceFile>>,
    rows: Option<&'a [RowFile]>,
    rows_from: Option<&'a WithSpan<String>>,
    servers: Option<&'a NonEmpty<WithSpan<String>>>,
    replies: Option<&'a Table<RepliesFile>>,
    turns: &'a [UserTurnFile],
}

/// A resolved task, whose rows are not filled in yet.
pub(super) struct ResolvedTask {
    pub(super) case: Case,
    pub(super) rows: Option<Rows>,
    /// The servers that the task lists.
    pub(super) servers: Option<ServerList>,
}

impl ResolvedTask {
    /// The cases of the task: one for each row, or the only one. `used` are the names that its
    /// assertions refer to.
    pub(super) fn cases(
        &self,
        used: &BTreeSet<String>,
        cx: &Context<'_>,
    ) -> Vec<(Case, Option<&Row>)> {
        let Some(rows) = &self.rows else {
            return vec![(self.case.clone(), None)];
        };
        let mut used = used.clone();
        // A template that no row fills has been reported.
        let of_templates = rows::names_of(&self.case);
        used.extend(of_templates.intersection(&rows.names).cloned());
        let inner = cx.beside(rows.source.clone());
        let filled = rows.list.iter().filter_map(|row| {
            let lacking = used.iter().find(|name| row.get(name).is_none());
            if let Some(name) = lacking {
                let message = format!("the row has no value `{name}`, which the task uses");
                inner.report(row.span, Problem::error(Code::Missing, message));
                return None;
            }
            let mut case = self.case.clone();
            rows::fill_case(&mut case, row);
            if case.prompt.to_string().trim().is_empty() {
                let message = "the prompt of this row is empty";
                inner.report(row.span, Problem::error(Code::Value, message));
            }
            case.id = CaseId(format!("{}[{}]", case.id, row.id));
            case.name = format!("{}[{}]", case.name, row.id);
            let labels = row.labels.iter().map(|(k, v)| (k.clone(), v.clone()));
            case.labels.extend(labels);
            Some((case, Some(row)))
        });
        filled.collect()
    }
}

impl TaskMetadata {
    /// The case that the metadata describes. `shown_path` is the path that goes into its id.
    pub(super) fn case(&self, shown_path: &str, cx: &Context<'_>) -> Option<Case> {
        let name = self.name.get()?;
        if name.value.0.trim().is_empty() {
            cx.report(name.span, Problem::error(Code::Value, "the name is empty"));
        }
        let name = name.value.0.clone();
        let id = CaseId(format!("{shown_path}#{name}"));
        let labels = self.labels.iter();
        Some(Case {
            difficulty: self.difficulty,
            labels: labels
                .map(|(key, value)| (key.value.clone(), value.0.clone()))
                .collect(),
            runs: self.runs.map(|runs| runs.0),
            ..Case::new(id, name, cx.source.path().to_path_buf())
        })
    }
}

/// Resolves a task. Its checks come from the task sets that match it.
pub(super) fn resolve(file: &TaskFile, scope: &TaskScope<'_>) -> Option<ResolvedTask> {
    let cx = scope.cx;
    check_version(file, cx);
    let parts = match (&file.spec, &file.steps) {
        (Some(spec), _) => TaskParts {
            requires: &spec.requires,
            workspace: spec.workspace.as_ref(),
            limits: spec.limits.as_ref().map(Limits::from).unwrap_or_default(),
            setup: spec.setup.clone(),
            verify: spec.verify.0.clone(),
            cleanup: spec.cleanup.clone(),
            prompt: spec.prompt.get(),
            rows: spec.rows.as_ref().map(|rows| &rows.0[..]),
            rows_from: spec.rows_from.as_ref(),
            servers: spec.servers.as_ref(),
            replies: Some(&spec.replies),
            turns: spec.turns.as_ref().map_or(&[], |turns| &turns.0.0[..]),
        },
        (None, Some(steps)) => legacy_parts(steps),
        (None, None) => return None,
    };
    let has_rows = parts.rows.is_some() || parts.rows_from.is_some();
    let rows = Rows::load(parts.rows, parts.rows_from, scope.origin, cx);
    let columns = match &rows {
        Some(rows) => RowNames::Known(&rows.names),
        None if has_rows => RowNames::Unknown,
        None => RowNames::NoRows,
    };
    let mut unmet = Vec::new();
    let providers = providers(parts.requires, scope, &mut unmet);
    let steps = StepScope {
        cx,
        origin: scope.origin,
        env: scope.env,
        providers: &providers,
        has_judge: scope.has_judge,
        columns,
        owner: StepOwner::Task,
    };
    let [setup, verify, cleanup] = resolve_phases(
        [
            (Phase::Setup, &parts.setup),
            (Phase::Grade, &parts.verify),
            (Phase::Cleanup, &parts.cleanup),
        ],
        &steps,
    );
    let prompt = prompt(parts.prompt?, &parts.setup, &steps)?;
    let (turns, turn_checks) = turns(&parts, &steps, scope);
    let (checks, turn_places): (Vec<_>, Vec<_>) = turn_checks.into_iter().unzip();
    let metadata = file.metadata.get()?;
    let case = Case {
        parallel: metadata.parallel.unwrap_or(false),
        limits: parts.limits,
        workspace: parts
            .workspace
            .and_then(|written| files::existing_folder(scope.origin, written, cx))
            .map(|path| Arc::new(Workspace::new(path))),
        prompt,
        turns,
        replies: replies(parts.replies, scope),
        setup,
        verify,
        cleanup,
        checks,
        places: [verify_places(&parts.verify, cx), turn_places].concat(),
        unmet,
        ..metadata.case(&scope.shown_path, cx)?
    };
    let servers = parts.servers;
    let servers = servers.map(|list| ServerList::resolve("task", list, scope.servers, cx));
    (rows.is_some() || !has_rows).then_some(ResolvedTask {
        case,
        rows,
        servers,
    })
}

/// The turns of the task after the prompt, with the checks on each.
fn turns(
    parts: &TaskParts<'_>,
    steps: &StepScope<'_>,
    scope: &TaskScope<'_>,
) -> (Vec<UserTurn>, Vec<(Arc<Check>, CheckPlace)>) {
    let (mut turns, mut checks) = (Vec::new(), Vec::new());
    // The prompt is turn 1.
    for (file, turn) in parts.turns.iter().zip(2..) {
        checks.extend(turns::checks(file, turn, scope.servers, scope.cx));
        turns.extend(match (&file.prompt, &file.user) {
            (Some(text), _) => prompt(text, &parts.setup, steps).map(UserTurn::Message),
            (None, Some(user)) => turns::user(user, scope.origin, scope.cx, |text| {
                resolve_prompt(&text.value.0, text.span, &parts.setup, steps)
            }),
            (None, None) => None,
        });
    }
    (turns, checks)
}

/// The replies of the task, by the name of the server in the suite.
fn replies(
    written: Option<&Table<RepliesFile>>,
    scope: &TaskScope<'_>,
) -> BTreeMap<String, ClientReplies> {
    let texts = TextScope {
        env: scope.env,
        isolation: Isolation::Trial,
        has_templates: true,
        cx: scope.cx,
    };
    let written = written.into_iter().flat_map(Table::iter);
    let resolved = written.map(|(server, file)| {
        let name = scope.servers.resolve("`replies`", server, scope.cx);
        let written = WrittenReplies {
            elicitation: file.elicitation.as_ref(),
            sampling: file.sampling.as_ref(),
            roots: file.roots.as_deref(),
        };
        (name, written.resolve(scope.origin, &texts))
    });
    resolved.collect()
}

/// Where the verify steps are written.
fn verify_places(verify: &[StepFile], cx: &Context<'_>) -> Vec<CheckPlace> {
    let path = cx.source.path().display().to_string();
    let places = verify.iter().enumerate().map(|(index, file)| {
        let id = step_id(file, Phase::Grade, index);
        let check = match &file.body {
            StepBody::Judge(_) => CheckId::Judge(id),
            StepBody::Script(_) | StepBody::Http(_) | StepBody::Aliased { .. } => CheckId::Step(id),
        };
        CheckPlace {
            check,
            path: path.clone(),
            line: file.kind.span.line,
        }
    });
    // The place of a step in the older form may be unknown.
    places.filter(|place| place.line > 0).collect()
}

/// Checks that the version fits the form of the task.
fn check_version(file: &TaskFile, cx: &Context<'_>) {
    let newer = file
        .api_version
        .as_ref()
        .is_some_and(|v| v.value == ApiVersion::V1Alpha2);
    let (span, message, hint) = match (&file.spec, &file.steps) {
        (Some(spec), None) if !newer => (
            spec.span,
            "`spec` needs `apiVersion: mcpchecker/v1alpha2`",
            "set it, or move the steps to `steps`",
        ),
        (None, Some(steps)) if newer => (
            steps.span,
            "a task of version `mcpchecker/v1alpha2` needs `spec`",
            "remove `apiVersion`, or move the steps to `spec`",
        ),
        _ => return,
    };
    cx.report(span, Problem::error(Code::Conflict, message).hint(hint));
}

fn legacy_parts(file: &LegacyStepsFile) -> TaskParts<'_> {
    let script = |source: Option<&TextSourceFile>| {
        let step = source.map(|s| script_step(s.inline.as_ref(), s.file.as_ref(), Span::default()));
        step.into_iter().collect()
    };
    TaskParts {
        requires: &[],
        workspace: None,
        limits: Limits::default(),
        setup: script(file.setup.as_ref()),
        verify: file
            .verify
            .as_ref()
            .map(|verify| legacy_verify(verify))
            .into_iter()
            .collect(),
        cleanup: script(file.cleanup.as_ref()),
        prompt: file.prompt.get(),
        rows: None,
        rows_from: None,
        servers: None,
        replies: None,
        turns: &[],
    }
}

fn legacy_verify(file: &WithSpan<LegacyVerifyFile>) -> StepFile {
    if file.contains.is_none() && file.exact.is_none() {
        return script_step(file.inline.as_ref(), file.file.as_ref(), file.span);
    }
    StepFile {
        id: None,
        kind: WithSpan {
            value: "llmJudge".to_owned(),
            span: file.span,
        },
        body: StepBody::Judge(JudgeStepFile {
            contains: file.contains.clone(),
            exact: file.exact.clone(),
            reason: None,
        }),
    }
}

fn script_step(
    inline: Option<&WithSpan<LooseText>>,
    file: Option<&WithSpan<String>>,
    span: Span,
) -> StepFile {
    StepFile {
        id: None,
        kind: WithSpan {
            value: "script".to_owned(),
            span,
        },
        body: StepBody::Script(ScriptStepFile {
            inline: inline.cloned(),
            file: file.cloned(),
            env: Table::default(),
            timeout: None,
            continue_on_error: None,
        }),
    }
}

fn providers(
    requires: &[WithSpan<RequirementFile>],
    scope: &TaskScope<'_>,
    unmet: &mut Vec<String>,
) -> BTreeMap<String, AliasTarget> {
    let cx = scope.cx;
    let mut providers = BTreeMap::new();
    for requirement in requires {
        let (name, provider) = match (&requirement.mcp_server, &requirement.extension) {
            (Some(server), _) => {
                if let Some(absence) = scope.servers.absence(server) {
                    let name = &absence.name;
                    let why = if absence.is_disabled() {
                        "is disabled"
                    } else {
                        "the suite does not declare"
                    };
                    unmet.push(format!("the task needs the server `{name}`, which {why}"));
                    absence.report(Code::UnmetRequirement, "task", server.span, cx);
                }
                (server, AliasTarget::Server(scope.servers.meant(server)))
            }
            (None, Some(extension)) => {
                if let Some(known) = scope.extensions
                    && !known.contains(&extension.value)
                {
                    let name = &extension.value;
                    unmet.push(format!(
                        "the task needs the extension `{name}`, which the suite does not declare"
                    ));
                    let message = format!("task names unknown extension `{name}`");
                    let hint = nearest_hint(&extension.value, known.iter().map(String::as_str))
                        .unwrap_or_else(|| "declare it under `config.extensions`".to_owned());
                    cx.report(
                        extension.span,
                        Problem::error(Code::UnmetRequirement, message).hint(hint),
                    );
                }
                (extension, AliasTarget::Extension(extension.value.clone()))
            }
            (None, None) => continue,
        };
        let (alias, span) = match &requirement.alias {
            Some(alias) => (alias.value.0.clone(), alias.span),
            None => (name.value.clone(), name.span),
        };
        if providers.insert(alias.clone(), provider).is_some() {
            let message = format!("two requirements have the name `{alias}`");
            let problem = Problem::error(Code::Conflict, message);
            cx.report(span, problem.hint("rename one of them with `as`"));
        }
    }
    providers
}

fn prompt(
    file: &WithSpan<TextSourceFile>,
    setup: &[StepFile],
    scope: &StepScope<'_>,
) -> Option<Template> {
    let cx = scope.cx;
    let span;
    let text = match (&file.inline, &file.file) {
        (Some(text), _) => {
            span = text.span;
            text.value.0.clone()
        }
        (None, Some(path)) => {
            span = path.span;
            let resolved = resolve_file(path, scope.origin, cx)?;
            match files::read(&resolved) {
                Ok(source) => source.text().to_owned(),
                Err(problem) => {
                    cx.report(path.span, problem);
                    return None;
                }
            }
        }
        (None, None) => return None,
    };
    if text.trim().is_empty() {
        cx.report(
            file.span,
            Problem::error(Code::Value, "the prompt is empty"),
        );
    }
    resolve_prompt(&text, span, setup, scope)
}
