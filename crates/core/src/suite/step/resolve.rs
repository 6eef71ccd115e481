//! Resolves the steps of a task file.
//!
//! Its main function is [`resolve_phases`]. Steps are resolved in the order in which they run,
//! because a template can only refer to earlier steps.

mod templates;
mod vacuous;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Duration;

use proctor_record::hint::nearest_hint;
use proctor_record::phase::Phase;
use proctor_record::problem::{Code, Problem, Span, WithSpan};

use self::vacuous::is_only_the_answer;
use super::{
    Action, ContentCheck, Field, HttpBody, HttpStep, Judgement, PatternTemplate, ScriptSource,
    ScriptStep, Step, ToolStep,
};
use crate::decode::{Context, Decode, LooseText};
use crate::document::{Node, NodeValue};
use crate::pattern::Pattern;
use crate::suite::checkout::file_digest;
use crate::suite::files::{FileOrigin, neighbour_hint};
use crate::suite::rows::row_names;
use crate::suite::step_file::{
    ContentFile, FieldFile, HttpFile, JudgeStepFile, ScriptStepFile, ServerToolFile, StepBody,
    StepFile,
};
use crate::suite::template::{Reference, Template, TemplateValue};
use crate::suite::variables::Environment;

/// The default timeout of a script.
const SCRIPT_TIMEOUT: Duration = Duration::from_mins(5);

/// The server or extension of an alias.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AliasTarget {
    /// A server of the suite.
    Server(String),
    /// An extension of the suite.
    Extension(String),
}

/// The context in which steps are resolved.
pub struct StepScope<'a> {
    /// The file that contains the steps.
    pub cx: &'a Context<'a>,
    /// The origin of that file.
    pub origin: &'a FileOrigin,
    /// The environment that templates see.
    pub env: &'a Environment,
    /// The aliases of the task.
    pub providers: &'a BTreeMap<String, AliasTarget>,
    /// Whether the suite has a judge; unknown if the task is checked without a suite.
    pub has_judge: Option<bool>,
    /// The names that `{row.NAME}` can refer to.
    pub columns: RowNames<'a>,
    pub owner: StepOwner,
}

/// What steps belong to.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum StepOwner {
    Task,
    /// A whole run: no server has started, and there is no agent.
    Run,
}

/// The names of the values that a task's rows have.
#[derive(Clone, Copy)]
pub enum RowNames<'a> {
    /// The task has no rows.
    NoRows,
    /// The rows could not be loaded.
    Unknown,
    Known(&'a BTreeSet<String>),
}

/// Resolves all steps of a case, phase by phase: later steps may refer to earlier ones.
pub fn resolve_phases(phases: [(Phase, &[StepFile]); 3], scope: &StepScope<'_>) -> [Vec<Step>; 3] {
    let mut known = BTreeSet::new();
    let mut ids = BTreeSet::new();
    phases.map(|(phase, steps)| {
        let mut resolved = Vec::with_capacity(steps.len());
        for (index, file) in steps.iter().enumerate() {
            let id = step_id(file, phase, index);
            let mut one = OneStep {
                scope,
                phase,
                known: &known,
            };
            let action = one.resolve(file);
            if !ids.insert(id.clone()) {
                let span = file.id.as_ref().map_or(file.kind.span, |id| id.span);
                let message = format!("duplicate step id `{id}`");
                scope
                    .cx
                    .report(span, Problem::error(Code::Conflict, message));
            }
            known.insert(id.clone());
            known.insert(file.kind.value.clone());
            if let Some(action) = action {
                resolved.push(Step {
                    id,
                    kind: file.kind.value.clone(),
                    action,
                });
            }
        }
        resolved
    })
}

/// Resolves the text of a prompt, which may refer to outputs of setup steps.
pub fn resolve_prompt(
    text: &str,
    span: Span,
    setup: &[StepFile],
    scope: &StepScope<'_>,
) -> Option<Template> {
    let mut known = BTreeSet::new();
    for (index, file) in setup.iter().enumerate() {
        known.insert(step_id(file, Phase::Setup, index));
        known.insert(file.kind.value.clone());
    }
    let prompt = OneStep {
        scope,
        phase: Phase::Setup,
        known: &known,
    };
    let template = prompt.template(text, span)?;
    if template.references().any(|r| *r == Reference::AgentPrompt) {
        let message = "the prompt can't contain itself (`{agent.prompt}`)";
        prompt.report(span, Problem::error(Code::Reference, message));
    }
    Some(template)
}

/// The id of a step: its own, or one from its position.
pub fn step_id(file: &StepFile, phase: Phase, index: usize) -> String {
    match &file.id {
        Some(id) => id.value.clone(),
        None => format!("{}_{index}", phase.step_word()),
    }
}

/// The step that is being resolved.
struct OneStep<'a> {
    scope: &'a StepScope<'a>,
    phase: Phase,
    /// The types and ids of the steps before it.
    known: &'a BTreeSet<String>,
}

impl OneStep<'_> {
    fn resolve(&mut self, file: &StepFile) -> Option<Action> {
        match &file.body {
            StepBody::Script(script) => self.script(script).map(Action::Script),
            StepBody::Http(http) => self.http(http).map(|http| Action::Http(Box::new(http))),
            StepBody::Judge(judge) => self.judge(judge, file.kind.span).map(Action::Judge),
            StepBody::Aliased {
                alias,
                operation,
                value,
            } => self.aliased(alias, operation, value, file.kind.span),
        }
    }

    fn report(&self, span: Span, problem: Problem) {
        self.scope.cx.report(span, problem);
    }

    fn script(&self, file: &ScriptStepFile) -> Option<ScriptStep> {
        let task_folder = self.scope.cx.source.folder().to_path_buf();
        let (source, folder) = match (&file.inline, &file.file) {
            (Some(text), _) => (self.inline(text)?, task_folder),
            (None, Some(path)) => {
                let path = resolve_file(path, self.scope.origin, self.scope.cx)?;
                let folder = path.parent().map_or(task_folder, PathBuf::from);
                (ScriptSource::File(path), folder)
            }
            (None, None) => return None,
        };
        let span = file.inline.as_ref().map(|text| text.span);
        let span = span.or(file.file.as_ref().map(|path| path.span));
        self.can_fail(&source, span.unwrap_or_default())?;
        let message = "with `continueOnError`, this script checks nothing";
        let span = file
            .continue_on_error
            .as_ref()
            .map_or(Span::default(), |c| c.span);
        let may_fail = file.continue_on_error.as_ref().is_some_and(|c| c.value);
        self.warn_of_vacuous(may_fail, span, message);
        let digest = match &source {
            ScriptSource::File(path) => file_digest(path).ok(),
            ScriptSource::Inline(_) => None,
        };
        Some(ScriptStep {
            source,
            digest,
            folder,
            env: self.templates(&file.env),
            timeout: file.timeout.unwrap_or(SCRIPT_TIMEOUT),
            continue_on_error: may_fail,
        })
    }

    fn inline(&self, text: &WithSpan<LooseText>) -> Option<ScriptSource> {
        if text.value.0.trim().is_empty() {
            self.report(
                text.span,
                Problem::error(Code::Vacuous, "the script is empty"),
            );
            return None;
        }
        if !matches!(self.scope.columns, RowNames::NoRows)
            && let Some(name) = row_names(&text.value.0).first()
        {
            let message = format!("`{{row.{name}}}` is not filled into the text of a script");
            let hint = format!("pass it as a variable: `env: {{VALUE: \"{{row.{name}}}\"}}`");
            let problem = Problem::error(Code::Reference, message);
            self.report(text.span, problem.hint(hint));
            return None;
        }
        Some(ScriptSource::Inline(text.value.0.clone()))
    }

    /// Warns of a verification that can't fail.
    fn warn_of_vacuous(&self, vacuous: bool, span: Span, message: &str) {
        if vacuous && self.phase == Phase::Grade {
            self.report(span, Problem::warning(Code::Vacuous, message));
        }
    }

    fn http(&self, file: &HttpFile) -> Option<HttpStep> {
        let status = file.expect.as_ref().and_then(|e| e.status.as_ref());
        let status = status.and_then(|status| {
            let code = u16::try_from(status.value).ok();
            let code = code.filter(|code| (100..600).contains(code));
            if code.is_none() {
                let message = format!("invalid HTTP status `{}`", status.value);
                self.report(status.span, Problem::error(Code::Value, message));
            }
            code
        });
        // Everything is looked at before anything that is wrong ends the step.
        let body = file
            .body
            .as_ref()
            .map(|body| match (&body.raw, &body.json) {
                (Some(raw), _) => self.template(&raw.value.0, raw.span).map(HttpBody::Raw),
                (None, Some(json)) => self.value(json).map(HttpBody::Json),
                (None, None) => None,
            });
        let url = self.template(&file.url.value, file.url.span);
        let method = self.method(file.method.as_ref());
        let headers = self.templates(&file.headers);
        let expected = file.expect.as_ref().and_then(|e| e.body.as_ref());
        let content = expected.map(|content| self.content(content));
        if let Some(literal) = url.as_ref().and_then(Template::as_literal)
            && !literal.starts_with("http://")
            && !literal.starts_with("https://")
        {
            let message = format!("invalid URL `{literal}`");
            let problem = Problem::error(Code::Value, message);
            self.report(
                file.url.span,
                problem.hint("write a URL that starts with `http://` or `https://`"),
            );
        }
        Some(HttpStep {
            url: url?,
            method,
            headers,
            body: match body {
                Some(body) => Some(body?),
                None => None,
            },
            timeout: file.timeout,
            status,
            content,
        })
    }

    fn method(&self, written: Option<&WithSpan<String>>) -> String {
        const METHODS: [&str; 7] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];
        let Some(written) = written else {
            return "GET".to_owned();
        };
        let method = written.value.to_ascii_uppercase();
        if !METHODS.contains(&&*method) {
            let message = format!("unknown HTTP method `{}`", written.value);
            let problem = Problem::error(Code::Value, message);
            self.report(
                written.span,
                problem.maybe_hint(nearest_hint(&written.value, METHODS)),
            );
        }
        method
    }

    fn judge(&self, file: &JudgeStepFile, span: Span) -> Option<Judgement> {
        if self.phase != Phase::Grade {
            let message = "`llmJudge` works only in `verify`";
            let problem = Problem::error(Code::Conflict, message);
            self.report(
                span,
                problem.hint("move it to the `verify` of a task: it judges the agent's answer"),
            );
        }
        require_judge(self.scope.has_judge, span, self.scope.cx);
        match (&file.contains, &file.exact) {
            (Some(text), _) => Some(Judgement::Contains(self.criterion(text)?)),
            (None, Some(text)) => Some(Judgement::Exact(self.criterion(text)?)),
            (None, None) => None,
        }
    }

    fn criterion(&self, text: &WithSpan<LooseText>) -> Option<Template> {
        if text.value.0.trim().is_empty() {
            let message = "the judge's criterion is empty";
            self.report(text.span, Problem::error(Code::Vacuous, message));
            return None;
        }
        let criterion = self.template(&text.value.0, text.span)?;
        if is_only_the_answer(&criterion) {
            let message = "the criterion is the answer itself, so the judge always passes it";
            let problem = Problem::error(Code::Vacuous, message);
            let hint = "write what the answer must say; the judge sees the answer anyway";
            self.report(text.span, problem.hint(hint));
        }
        Some(criterion)
    }

    fn aliased(&self, alias: &str, operation: &str, value: &Node, span: Span) -> Option<Action> {
        match self.scope.providers.get(alias) {
            Some(AliasTarget::Server(server)) => {
                let file = if value.is_null() {
                    None
                } else {
                    self.direct_arguments(operation, value)?;
                    Some(self.tool_file(value)?)
                };
                let written = file.as_ref().and_then(|f| f.args.as_ref());
                if let Some(args) = written
                    && !matches!(args.value.data, NodeValue::Mapping(_))
                {
                    self.scope.cx.wrong_type(&args.value, "a map of arguments");
                    return None;
                }
                let expect = file.as_ref().and_then(|f| f.expect.as_ref());
                let content = expect.and_then(|e| e.content.as_ref());
                Some(Action::CallTool(ToolStep {
                    server: server.clone(),
                    tool: operation.to_owned(),
                    args: match written {
                        Some(args) => self.value(&args.value)?,
                        None => TemplateValue::Object(Vec::new()),
                    },
                    is_error: expect.and_then(|e| *e.is_error),
                    content: content.map(|content| self.content(content)),
                }))
            }
            Some(AliasTarget::Extension(extension)) => Some(Action::Extension {
                extension: extension.clone(),
                operation: operation.to_owned(),
                args: self.value(value)?,
            }),
            None => {
                let (message, hint) = match self.scope.owner {
                    StepOwner::Task => (
                        format!("unknown server or extension `{alias}` in this task"),
                        "add the server or extension to `requires`",
                    ),
                    StepOwner::Run => (
                        format!("unknown extension `{alias}`"),
                        "declare it under `config.extensions`; steps of a run can't call servers",
                    ),
                };
                let known = self.scope.providers.keys().map(String::as_str);
                let hint = nearest_hint(alias, known).unwrap_or_else(|| hint.to_owned());
                self.report(span, Problem::error(Code::Reference, message).hint(hint));
                None
            }
        }
    }

    fn tool_file(&self, value: &Node) -> Option<ServerToolFile> {
        let cx = self.scope.cx;
        let decode = || ServerToolFile::decode(value, cx);
        if self.phase == Phase::Grade {
            cx.deciding(decode)
        } else {
            decode()
        }
    }

    fn content(&self, file: &ContentFile) -> ContentCheck {
        let pattern = self.pattern(file.pattern.as_ref());
        if let (Some(written), Some(PatternTemplate(template))) = (file.pattern.as_ref(), &pattern)
            && let Some(Ok(literal)) = template.as_literal().map(Pattern::compile)
            && literal.matches_every_text()
        {
            let message = format!("`{}` matches every string", written.value);
            let problem = Problem::error(Code::Vacuous, message);
            self.report(
                written.span,
                problem.hint("use `.+` to require a non-empty string"),
            );
        }
        let fields = file.fields.as_ref().map_or(&[][..], |fields| &fields.0);
        ContentCheck {
            pattern,
            fields: fields.iter().map(|field| self.field(field)).collect(),
        }
    }

    fn field(&self, file: &FieldFile) -> Field {
        let tests = [
            file.equals.is_some(),
            file.kind.is_some(),
            file.pattern.is_some(),
            file.exists.is_some(),
        ];
        if !tests.contains(&true) {
            let message = format!("the field `{}` has no condition", file.path.value);
            let problem = Problem::error(Code::Vacuous, message);
            self.report(
                file.path.span,
                problem.hint("add `equals`, `type`, `match` or `exists`"),
            );
        }
        Field {
            path: self.field_path(&file.path),
            equals: file.equals.as_ref().and_then(|value| self.value(value)),
            kind: *file.kind,
            pattern: self.pattern(file.pattern.as_ref()),
            exists: *file.exists,
        }
    }

    /// `a.b[0].c` and `a.b.0.c` are the same path.
    fn field_path(&self, written: &WithSpan<String>) -> Vec<String> {
        let dotted = written.value.replace('[', ".").replace(']', "");
        let parts: Vec<String> = dotted.split('.').map(str::to_owned).collect();
        let skip = usize::from(written.value.starts_with('['));
        if parts.iter().skip(skip).any(String::is_empty) {
            let message = format!("invalid path `{}`", written.value);
            let problem = Problem::error(Code::Value, message);
            self.report(
                written.span,
                problem.hint("paths look like `a.b[0].c` or `a.b.0.c`"),
            );
        }
        parts.into_iter().skip(skip).collect()
    }
}

/// Resolves the path of a file that must exist.
pub(crate) fn resolve_file(
    written: &WithSpan<String>,
    origin: &FileOrigin,
    cx: &Context<'_>,
) -> Option<PathBuf> {
    let path = match origin.resolve(cx.source.folder(), &written.value) {
        Ok(path) => path,
        Err(problem) => {
            cx.report(written.span, problem);
            return None;
        }
    };
    if !path.is_file() {
        let what = if path.is_dir() {
            "is a folder"
        } else {
            "does not exist"
        };
        let message = format!("`{}` {what}", path.display());
        let problem = Problem::error(Code::File, message);
        cx.report(written.span, problem.maybe_hint(neighbour_hint(&path)));
        return None;
    }
    Some(path)
}

/// Reports a judge step in a suite without a judge.
fn require_judge(has_judge: Option<bool>, span: Span, cx: &Context<'_>) {
    if has_judge == Some(false) {
        let message = "the suite has no judge for this step";
        let problem = Problem::error(Code::Reference, message);
        cx.report(span, problem.hint("add `config.llmJudge` to the eval file"));
    }
}
