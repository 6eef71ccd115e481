//! Loads a suite from disk, and reports all problems in it.
//!
//! Its main function is [`load`]. It uses no network, and only the environment that is passed in.

use std::cell::{OnceCell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use proctor_record::hint::nearest_hint;
use proctor_record::problem::{Code, Problem, Problems, SourceText, Span, WithSpan};

use super::agent_file::AgentFile;
use super::assertion_file::AssertionsFile;
use super::eval_file::{AgentRefFile, SuiteFile};
use super::files::{self, FileOrigin};
use super::lock_file::LockFile;
use super::mcp_file::McpFile;
use super::resolve_assertions::ServerScope;
use super::resolve_selection::{self, SelectionScope};
use super::resolve_task::TaskScope;
use super::selection_file::SelectionFile;
use super::task_file::TaskFile;
use super::variables::Environment;
use super::{Agent, Case, Isolation, Server, Suite, server};
use crate::builtin_agent::BuiltinAgent;
use crate::decode::{Context, Decode};
use crate::document::{self, Document, Node, NodeValue};
use crate::script::script_file::ScriptFile;
use crate::script::{self, Script};

/// The inputs for loading a suite, besides its files.
#[derive(Debug, Clone, Copy)]
pub struct Inputs<'a> {
    /// The environment that `${VAR}`, `{env.NAME}` and `MCP_URL` and the like are looked up in.
    pub env: &'a Environment,
    /// The checkouts of sources, by name.
    pub source_roots: &'a BTreeMap<String, PathBuf>,
    /// The number of runs of each case, which overrides its file.
    pub runs: Option<u32>,
    /// An MCP config that replaces the one in the eval file.
    pub mcp_config: Option<&'a Path>,
    /// Whether there is a judge, even if the eval file names none.
    pub judge_given: bool,
}

impl Inputs<'_> {
    /// Empty inputs, for files that need none.
    fn none() -> Inputs<'static> {
        const NOTHING: &Environment = &Environment::new();
        const NOWHERE: &BTreeMap<String, PathBuf> = &BTreeMap::new();
        Inputs {
            env: NOTHING,
            source_roots: NOWHERE,
            runs: None,
            mcp_config: None,
            judge_given: false,
        }
    }
}

/// A loaded file of any kind.
#[derive(Debug)]
pub enum LoadedFile {
    /// An eval file, with everything it names.
    Suite(Box<Suite>),
    /// A task file, by itself, with the number of its cases.
    Case(Box<Case>, usize),
    Agent(Box<Agent>),
    Servers(Vec<Server>),
    Script(Box<Script>),
    /// The cases of a selection file, by itself.
    Selection(Vec<Case>),
}

/// Loads a suite. If it returns `None`, it has reported at least one error; otherwise only
/// warnings.
pub fn load(path: &Path, inputs: &Inputs<'_>, problems: &mut Problems) -> Option<Suite> {
    with_loader(inputs, problems, |loader| {
        let opened = loader.open_first(path)?;
        loader.expect_kind(&opened, "Eval", None).then_some(())?;
        loader.suite(&opened)
    })
}

/// Loads a file of whatever kind it is.
pub fn load_any(path: &Path, inputs: &Inputs<'_>, problems: &mut Problems) -> Option<LoadedFile> {
    with_loader(inputs, problems, |loader| {
        let opened = loader.open_first(path)?;
        let cx = loader.context(&opened);
        match kind_of(&opened.root) {
            Some("Eval") => loader
                .suite(&opened)
                .map(|s| LoadedFile::Suite(Box::new(s))),
            Some("Agent") => {
                let file = AgentFile::decode(&opened.root, &cx)?;
                let agent = loader.resolve_agent(&file, &cx)?;
                Some(LoadedFile::Agent(Box::new(agent)))
            }
            Some("Task") => {
                let file = TaskFile::decode(&opened.root, &cx)?;
                let scope = TaskScope::alone(&cx, inputs.env);
                let task = super::resolve_task::resolve(&file, &scope)?;
                let rows = task.cases(&BTreeSet::new(), &cx).len();
                Some(LoadedFile::Case(Box::new(task.case), rows))
            }
            Some("Selection") => {
                let file = SelectionFile::decode(&opened.root, &cx)?;
                let scope = SelectionScope {
                    cx: &cx,
                    origin: &FileOrigin::Own,
                    servers: ServerScope::unknown(),
                    server: None,
                    shown_path: cx.source.path().display().to_string(),
                };
                resolve_selection::resolve(&file, &scope).map(LoadedFile::Selection)
            }
            Some("Script") => loader
                .script(&opened)
                .map(|s| LoadedFile::Script(Box::new(s))),
            None if opened.root.get("mcpServers").is_some() => {
                let file = McpFile::decode(&opened.root, &cx)?;
                Some(LoadedFile::Servers(
                    server::resolve(&file, inputs.env, Isolation::Trial, &cx).enabled,
                ))
            }
            _ => {
                loader.report_unknown_kind(&opened);
                None
            }
        }
    })
}

/// Loads a script: the rules of a scripted model.
pub fn load_script(path: &Path, problems: &mut Problems) -> Option<Script> {
    with_loader(&Inputs::none(), problems, |loader| {
        let opened = loader.open_first(path)?;
        loader.expect_kind(&opened, "Script", None).then_some(())?;
        loader.script(&opened)
    })
}

/// Loads an agent that the command line names: `builtin.NAME`, `NAME` or the path of an agent file,
/// with a model after `=`. Without one, the agent uses `model`, if given.
pub fn load_agent(text: &str, model: Option<&str>, problems: &mut Problems) -> Option<Agent> {
    let (named, own) = match text.split_once('=') {
        Some((named, own)) => (named, Some(own)),
        None => (text, None),
    };
    let mut reference = serde_json::Map::new();
    if named.starts_with(BuiltinAgent::PREFIX) {
        reference.insert("type".to_owned(), named.into());
    } else if let Some(agent) = BuiltinAgent::parse(named) {
        reference.insert("type".to_owned(), agent.type_name().into());
    } else if !Path::new(named).exists() {
        let message = format!("`{named}` is neither a built-in agent nor a file");
        let problem = Problem::error(Code::Reference, message);
        problems.push(problem.maybe_hint(nearest_hint(named, BuiltinAgent::names())));
        return None;
    } else {
        reference.insert("type".to_owned(), "file".into());
        reference.insert("path".to_owned(), named.into());
    }
    if let Some(model) = own.or(model) {
        reference.insert("model".to_owned(), model.into());
    }
    resolve_reference(reference, problems)
}

/// Loads an agent file.
pub fn load_agent_file(path: &Path, problems: &mut Problems) -> Option<Agent> {
    let mut reference = serde_json::Map::new();
    reference.insert("type".to_owned(), "file".into());
    reference.insert("path".to_owned(), path.display().to_string().into());
    resolve_reference(reference, problems)
}

/// Resolves a reference to an agent that comes from the command line.
fn resolve_reference(
    reference: serde_json::Map<String, serde_json::Value>,
    problems: &mut Problems,
) -> Option<Agent> {
    let written = serde_json::Value::Object(reference).to_string();
    with_loader(&Inputs::none(), problems, |loader| {
        // Read as if a file in the working folder named it.
        let opened = loader.parse(SourceText::new("--agent", written))?;
        let cx = loader.context(&opened);
        let reference = AgentRefFile::decode(&opened.root, &cx)?;
        let located = WithSpan {
            value: reference,
            span: opened.root.span,
        };
        loader.agent(&located, &cx)
    })
}

fn with_loader<T>(
    inputs: &Inputs<'_>,
    problems: &mut Problems,
    run: impl FnOnce(&Loader<'_>) -> Option<T>,
) -> Option<T> {
    // Errors of other files of the same command do not spoil this one.
    let before = problems.fatal();
    let shared = RefCell::new(std::mem::take(problems));
    let loaded = run(&Loader {
        inputs,
        problems: &shared,
        lock: OnceCell::new(),
    });
    *problems = shared.into_inner();
    problems.sort();
    loaded.filter(|_| problems.fatal() == before)
}

/// A load in progress.
pub(super) struct Loader<'a> {
    pub(super) inputs: &'a Inputs<'a>,
    pub(super) problems: &'a RefCell<Problems>,
    lock: OnceCell<LockFile>,
}

/// A parsed file whose root is a map.
pub(super) struct ParsedFile {
    pub(super) source: SourceText,
    pub(super) root: Node,
}

/// The place that refers to a file, for messages about that file.
pub(super) struct Namer(String);

impl Namer {
    pub(super) fn new(cx: &Context<'_>, span: Span) -> Self {
        Self(format!("{}:{}", cx.source.path().display(), span.line))
    }
}

impl<'a> Loader<'a> {
    pub(super) fn context(&self, opened: &ParsedFile) -> Context<'a> {
        Context::new(opened.source.clone(), self.problems).with_deciding_keys(DECIDING_KEYS)
    }

    /// The lock file beside the eval file. A malformed one is reported once, and pins nothing.
    pub(super) fn lock(&self, cx: &Context<'_>) -> &LockFile {
        self.lock.get_or_init(|| {
            let path = LockFile::path_for(cx.source.path());
            LockFile::load(&path, &mut self.problems.borrow_mut()).unwrap_or_default()
        })
    }

    fn push(&self, problem: Problem) {
        self.problems.borrow_mut().push(problem);
    }

    /// Opens a file that the user named.
    fn open_first(&self, path: &Path) -> Option<ParsedFile> {
        let source = files::read(path)
            .map_err(|problem| self.push(problem))
            .ok()?;
        self.parse(source)
    }

    /// Opens one of the user's own files that another file names, and checks its kind.
    pub(super) fn open(
        &self,
        written: &WithSpan<String>,
        kind: &str,
        cx: &Context<'_>,
    ) -> Option<ParsedFile> {
        let path = FileOrigin::Own
            .resolve(cx.source.folder(), &written.value)
            .map_err(|problem| cx.report(written.span, problem))
            .ok()?;
        let opened = self.open_named(&path, written.span, cx)?;
        let namer = Namer::new(cx, written.span);
        self.expect_kind(&opened, kind, Some(&namer))
            .then_some(opened)
    }

    /// Opens a file that another file names. If it can't be read, the problem is reported there.
    pub(super) fn open_named(
        &self,
        path: &Path,
        span: Span,
        cx: &Context<'_>,
    ) -> Option<ParsedFile> {
        match files::read(path) {
            Ok(source) => self.parse(source),
            Err(problem) if matches!(problem.code, Code::File | Code::Limit) => {
                cx.report(span, problem);
                None
            }
            Err(problem) => {
                self.push(problem);
                None
            }
        }
    }

    /// Parses a file that must contain one map.
    fn parse(&self, source: SourceText) -> Option<ParsedFile> {
        let document = document::parse(&source, &mut self.problems.borrow_mut())?;
        self.one_map(source, document)
    }

    pub(super) fn one_map(&self, source: SourceText, document: Document) -> Option<ParsedFile> {
        let root = document.root;
        match &root.data {
            NodeValue::Mapping(_) => {}
            NodeValue::Null => {
                let path = source.path().to_path_buf();
                self.push(Problem::error(Code::Missing, "the file is empty").in_file(path));
                return None;
            }
            _ => {
                let cx = Context::new(source, self.problems);
                cx.wrong_type(&root, "a map");
                return None;
            }
        }
        if let Some(span) = document.second {
            self.push(
                Problem::error(Code::Syntax, "the file contains more than one document")
                    .at(&source, span)
                    .hint("write each document to its own file"),
            );
        }
        Some(ParsedFile { source, root })
    }

    /// Checks that a file is of a kind. An MCP config has none.
    pub(super) fn expect_kind(
        &self,
        opened: &ParsedFile,
        kind: &str,
        namer: Option<&Namer>,
    ) -> bool {
        match kind_of(&opened.root) {
            Some(found) if found == kind => true,
            Some(found) if KINDS.contains(&found) => {
                let span = opened.root.get("kind").map_or(opened.root.span, |n| n.span);
                let message = format!("expected a file of kind `{kind}`, found `{found}`");
                let hint = namer.map(|Namer(place)| format!("`{place}` refers to this file"));
                self.push(
                    Problem::error(Code::Kind, message)
                        .at(&opened.source, span)
                        .maybe_hint(hint),
                );
                false
            }
            _ => {
                self.report_unknown_kind(opened);
                false
            }
        }
    }

    fn report_unknown_kind(&self, opened: &ParsedFile) {
        let problem = match opened.root.get("kind") {
            None if opened.root.get("evals").is_some() => {
                Problem::error(Code::Kind, "this is a file of shipped evals")
                    .at(&opened.source, opened.root.span)
                    .hint("check it with `proctor evals validate`")
            }
            None => Problem::error(Code::Missing, "`kind` is missing")
                .at(&opened.source, opened.root.span)
                .hint(
                    "add `kind: Eval`, `Task`, `Selection`, `Agent` or `Script`; an MCP config has `mcpServers`",
                ),
            Some(node) => {
                let found = node
                    .as_str()
                    .map_or(node.describe(), |text| format!("`{text}`"));
                let message = format!("unknown kind of file: {found}");
                let hint = node.as_str().and_then(|text| nearest_hint(text, KINDS));
                Problem::error(Code::Kind, message)
                    .at(&opened.source, node.span)
                    .maybe_hint(hint)
            }
        };
        self.push(problem);
    }

    pub(super) fn script(&self, opened: &ParsedFile) -> Option<Script> {
        let cx = self.context(opened);
        let file = ScriptFile::decode(&opened.root, &cx)?;
        script::resolve(&file, &cx)
    }

    fn suite(&self, opened: &ParsedFile) -> Option<Suite> {
        let cx = self.context(opened);
        let file = SuiteFile::decode(&opened.root, &cx)?;
        self.resolve_suite(&file, &cx)
    }
}

/// The keys that decide a verdict: the parts of files that hold checks, and the names of assertions.
const DECIDING_KEYS: &[&[&str]] = &[
    &["assertions", "verify", "llmJudge"],
    <AssertionsFile as Decode>::KEYS,
];

const KINDS: [&str; 5] = ["Eval", "Task", "Selection", "Agent", "Script"];

pub(super) fn kind_of(root: &Node) -> Option<&str> {
    root.get("kind").and_then(Node::as_str)
}

#[cfg(test)]
mod tests;
