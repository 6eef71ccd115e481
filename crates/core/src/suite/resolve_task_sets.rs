//! Resolves task sets to cases: their files, labels and checks.
//!
//! A file that two task sets match is one case with the checks of both.

mod origins;
mod paths;
mod row_checks;
mod selections;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::PathBuf;
use std::sync::Arc;

use proctor_record::event::{CheckId, CheckPlace};
use proctor_record::problem::{Code, Problem, Span, WithSpan};

use self::paths::TaskPath;
use self::row_checks::RowChecks;
use super::assertion_file::AssertionsFile;
use super::eval_file::{AssertionsFileOrRows, EvalConfig, TaskSetFile};
use super::files::FileOrigin;
use super::load::{Loader, Namer};
use super::resolve_assertions::{self, ServerScope, contradictions};
use super::resolve_sources;
use super::resolve_task::{self, ResolvedTask, TaskScope};
use super::server::Servers;
use super::server_list::ServerList;
use super::task_file::TaskFile;
use super::{Case, PassRule, ShippedEvalSet, TaskSource};
use crate::check::Check;
use crate::decode::{Context, Decode};
use crate::document::Node;

/// The context in which cases are resolved.
pub(super) struct Scope {
    /// The servers; absent if they could not be loaded.
    pub(super) servers: Option<Servers>,
    pub(super) extensions: Vec<String>,
    pub(super) has_judge: bool,
}

/// The resolved task sets of a suite.
pub(super) struct ResolvedTaskSets {
    pub(super) cases: Vec<Case>,
    pub(super) shipped: Vec<ShippedEvalSet>,
    pub(super) sources: Vec<TaskSource>,
}

/// Loads the cases of all task sets.
pub(super) fn load(
    loader: &Loader<'_>,
    config: &EvalConfig,
    scope: &Scope,
    cx: &Context<'_>,
) -> ResolvedTaskSets {
    let mut tasks = Tasks {
        loader,
        cx,
        config,
        scope,
        sets: Vec::new(),
        compared: BTreeSet::new(),
        reported: BTreeSet::new(),
        paths: Vec::new(),
        index: HashMap::new(),
        selections: Vec::new(),
        shipped: Vec::new(),
        sources: resolve_sources::load(loader, config, cx),
        absent: BTreeSet::new(),
    };
    let cases = tasks.load();
    ResolvedTaskSets {
        cases,
        shipped: tasks.shipped,
        sources: tasks.sources,
    }
}

/// A task set whose tasks are not yet resolved.
struct TaskSet<'a> {
    span: Span,
    labels: BTreeMap<String, String>,
    assertions: Option<&'a AssertionsFile>,
    /// The assertions, if each row has its own.
    per_row: Option<&'a Node>,
    checks: Vec<Arc<Check>>,
    /// Where the checks are written.
    places: Vec<CheckPlace>,
    pass: Option<WithSpan<PassRule>>,
    servers: Option<ServerList>,
    origin: FileOrigin,
    mapping: BTreeMap<String, String>,
    /// Whether any task has the labels.
    selected: bool,
}

/// The task sets that are being resolved to cases.
struct Tasks<'a> {
    loader: &'a Loader<'a>,
    cx: &'a Context<'a>,
    config: &'a EvalConfig,
    scope: &'a Scope,
    sets: Vec<TaskSet<'a>>,
    /// The pairs of task sets that were already compared.
    compared: BTreeSet<(usize, usize)>,
    /// The messages about servers that were reported for another task.
    reported: BTreeSet<String>,
    paths: Vec<TaskPath>,
    index: HashMap<PathBuf, usize>,
    /// The cases of selection files.
    selections: Vec<Case>,
    shipped: Vec<ShippedEvalSet>,
    sources: Vec<TaskSource>,
    /// The sources that were reported as absent.
    absent: BTreeSet<String>,
}

impl<'a> Tasks<'a> {
    fn load(&mut self) -> Vec<Case> {
        let Some(sets) = self.config.task_sets.get() else {
            return Vec::new();
        };
        if sets.is_empty() {
            let message = "the suite has no task sets: nothing to run";
            self.cx
                .report(sets.span, Problem::error(Code::Vacuous, message));
        }
        for file in &sets.value {
            self.add_set(file);
        }
        let paths = std::mem::take(&mut self.paths);
        let mut cases: Vec<Case> = paths.iter().flat_map(|path| self.cases(path)).collect();
        cases.append(&mut self.selections);
        for set in self.sets.iter().filter(|set| !set.selected) {
            if !set.labels.is_empty() {
                let pairs = set.labels.iter().map(|(k, v)| format!("{k}={v}"));
                let labels = pairs.collect::<Vec<_>>().join(", ");
                let message = format!("no task of this set has the labels `{labels}`");
                self.cx
                    .report(set.span, Problem::error(Code::Vacuous, message));
            }
        }
        self.warn_of_pass_rules(&cases);
        cases
    }

    fn add_set(&mut self, file: &'a WithSpan<TaskSetFile>) {
        let Some((origin, mapping)) = self.origin(file) else {
            return;
        };
        let scope = ServerScope {
            servers: self.scope.servers.as_ref(),
            mapping: &mapping,
        };
        let servers = file.servers.as_ref();
        let servers = servers.map(|list| ServerList::resolve("task set", list, scope, self.cx));
        if let Some(selection) = &file.selection {
            return self.add_selection(file, selection, &origin, scope);
        }
        if let Some(server) = &file.server {
            let message = "`server` needs `selection`";
            self.cx
                .report(server.span, Problem::error(Code::Conflict, message));
        }
        let (checks, places) = match &file.assertions {
            Some(AssertionsFileOrRows::Fixed(assertions)) => (
                shared_checks(assertions, scope, self.cx),
                self.places(&assertions.spans),
            ),
            Some(AssertionsFileOrRows::PerRow(node)) => {
                (Vec::new(), self.places(&row_checks::key_spans(node)))
            }
            None => (Vec::new(), Vec::new()),
        };
        if let Some(evals) = &file.evals {
            let server = scope.resolve("task set", &evals.server, self.cx);
            if let Some(list) = &servers {
                let message = "`servers` has no effect here: an eval gets the server that ships it";
                self.cx
                    .report(list.span, Problem::warning(Code::Conflict, message));
            }
            if let Some((label, _)) = file.label_selector.iter().next() {
                let message = "`labelSelector` has no effect here: shipped evals have no labels";
                self.cx
                    .report(label.span, Problem::warning(Code::Conflict, message));
            }
            self.shipped.push(ShippedEvalSet {
                server,
                level: evals.level,
                checks,
                places,
                pass: file.pass.as_ref().map(|pass| pass.value),
            });
            return;
        }
        let set = self.sets.len();
        let labels = file.label_selector.iter();
        self.sets.push(TaskSet {
            span: file.span,
            labels: labels
                .map(|(k, v)| (k.value.clone(), v.0.clone()))
                .collect(),
            assertions: match &file.assertions {
                Some(AssertionsFileOrRows::Fixed(assertions)) => Some(&assertions.value),
                Some(AssertionsFileOrRows::PerRow(_)) | None => None,
            },
            per_row: match &file.assertions {
                Some(AssertionsFileOrRows::PerRow(node)) => Some(node),
                Some(AssertionsFileOrRows::Fixed(_)) | None => None,
            },
            places,
            checks,
            pass: file.pass,
            servers,
            origin,
            mapping,
            selected: false,
        });
        self.add_paths(file, set);
    }

    /// Where assertions are written.
    fn places(&self, keys: &[(String, Span)]) -> Vec<CheckPlace> {
        let path = self.cx.source.path().display().to_string();
        let place = |(key, span): &(String, Span)| CheckPlace {
            check: CheckId::Assertion(key.clone()),
            path: path.clone(),
            line: span.line,
        };
        keys.iter().map(place).collect()
    }

    fn cases(&mut self, task: &TaskPath) -> Vec<Case> {
        let Some((resolved, inner)) = self.resolve(task) else {
            return Vec::new();
        };
        let used = row_checks::names(task.sets.iter().map(|at| &self.sets[*at]));
        let mut row_checks = RowChecks::default();
        let mut found = Vec::new();
        let mut selected_by = BTreeSet::new();
        for (mut case, row) in resolved.cases(&used, &inner) {
            let mut is_selected = false;
            for at in &task.sets {
                let set = &mut self.sets[*at];
                let has = |(key, value): (&String, &String)| case.labels.get(key) == Some(value);
                if !set.labels.iter().all(has) {
                    continue;
                }
                is_selected = true;
                set.selected = true;
                selected_by.insert(*at);
                let set = &self.sets[*at];
                case.checks.extend(set.checks.iter().cloned());
                case.checks
                    .extend(row_checks.of(set, row, &case.name, self));
                case.places.extend(set.places.iter().cloned());
                case.pass = case.pass.or(set.pass.map(|pass| pass.value));
            }
            if is_selected {
                self.settle_servers(&mut case, task, resolved.servers.as_ref(), &inner);
                found.push(case);
            }
        }
        let selected: Vec<usize> = selected_by.into_iter().collect();
        self.report_contradictions(&selected, &resolved.case.name);
        // After an error, what was meant to be checked may just not be known.
        if let Some(case) = found.iter().find(|case| !case.has_checks())
            && !self.loader.problems.borrow().has_errors()
        {
            let message = format!("the task `{}` has no checks", case.name);
            let problem = Problem::warning(Code::Vacuous, message).in_file(&task.path);
            inner.report_elsewhere(
                problem.hint("add `verify` to it, or `assertions` to its task set"),
            );
        }
        found
    }

    /// Sets the servers of a case: those that its task lists, else those that its task sets list.
    fn settle_servers(
        &mut self,
        case: &mut Case,
        task: &TaskPath,
        own: Option<&ServerList>,
        inner: &Context<'_>,
    ) {
        let sets = task.sets.iter().map(|at| &self.sets[*at]);
        let of_sets = || sets.clone().filter_map(|set| set.servers.as_ref());
        let (list, cx) = match (own, of_sets().next()) {
            (Some(own), _) => (own, inner),
            (None, Some(first)) => (first, self.cx),
            (None, None) => return,
        };
        let names = match own {
            Some(own) => own.names.clone(),
            None => of_sets().flat_map(|list| list.names.clone()).collect(),
        };
        for problem in ServerList::problems(&names, case) {
            if self.reported.insert(problem.message.clone()) {
                cx.report(list.span, problem);
            }
        }
        case.servers = Some(names);
    }

    /// Reads and resolves a task file. Also returns the context of the file.
    fn resolve(&self, task: &TaskPath) -> Option<(ResolvedTask, Context<'a>)> {
        let opened = if task.swept {
            self.open_swept(task)?
        } else {
            let opened = self.loader.open_named(&task.path, task.span, self.cx)?;
            let namer = Namer::new(self.cx, task.span);
            let is_task = self.loader.expect_kind(&opened, "Task", Some(&namer));
            is_task.then_some(opened)?
        };
        let inner = self.loader.context(&opened);
        let file = TaskFile::decode(&opened.root, &inner)?;
        let first = &self.sets[*task.sets.first()?];
        let resolved = resolve_task::resolve(
            &file,
            &TaskScope {
                cx: &inner,
                origin: &first.origin,
                env: self.loader.inputs.env,
                servers: ServerScope {
                    servers: self.scope.servers.as_ref(),
                    mapping: &first.mapping,
                },
                extensions: Some(&self.scope.extensions),
                has_judge: Some(self.scope.has_judge),
                shown_path: self.shown_path(&task.path, &first.origin),
            },
        )?;
        Some((resolved, inner))
    }

    /// Reports assertions of different task sets that contradict each other for a task.
    fn report_contradictions(&mut self, selected: &[usize], task: &str) {
        for (place, first) in selected.iter().enumerate() {
            for second in &selected[place + 1..] {
                let (one, other) = (&self.sets[*first], &self.sets[*second]);
                // The same name means the same server only where the mapping is the same.
                if let (Some(a), Some(b)) = (one.assertions, other.assertions)
                    && one.mapping == other.mapping
                    && self.compared.insert((*first, *second))
                {
                    contradictions::report_between(a, b, task, self.cx);
                }
            }
        }
    }

    fn runs(&self, case: &Case) -> u32 {
        self.loader.inputs.runs.or(case.runs).unwrap_or(1)
    }

    fn warn_of_pass_rules(&self, cases: &[Case]) {
        for set in &self.sets {
            let Some(rule) = set.pass else { continue };
            let short = cases
                .iter()
                .find(|case| case.pass == Some(rule.value) && self.runs(case) < rule.value.of);
            if let Some(case) = short {
                let message = format!(
                    "pass rule `{}/{}` needs {} trials, but the task `{}` has {}",
                    rule.value.passed,
                    rule.value.of,
                    rule.value.of,
                    case.name,
                    self.runs(case)
                );
                let problem = Problem::warning(Code::Conflict, message);
                let hint = format!(
                    "set `metadata.runs: {0}`, or run with `--runs {0}`",
                    rule.value.of
                );
                self.cx.report(rule.span, problem.hint(hint));
            }
        }
    }
}

/// Checks that all cases of a task set share.
fn shared_checks(
    file: &AssertionsFile,
    scope: ServerScope<'_>,
    cx: &Context<'_>,
) -> Vec<Arc<Check>> {
    let checks = resolve_assertions::resolve(file, scope, cx);
    checks.into_iter().map(Arc::new).collect()
}
