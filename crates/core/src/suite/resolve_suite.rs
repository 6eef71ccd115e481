//! Resolves an eval file, with all files that it names, to a suite.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use proctor_record::event::{PlannedGates, PlannedKnownFailure, TaskSetConfig};
use proctor_record::hint::nearest_hint;
use proctor_record::problem::{Code, Problem, SourceText, Span, WithSpan};

use super::eval_file::{EvalConfig, ExtensionFile, JudgeFile, SuiteFile};
use super::files::{self, FileOrigin};
use super::known_failures_file::is_unmatched;
use super::load::{Loader, ParsedFile};
use super::mcp_file::McpFile;
use super::replies;
use super::resolve_assertions::ServerScope;
use super::resolve_run_steps::preflight;
use super::resolve_task_sets::{self, ResolvedTaskSets, Scope};
use super::server::{self, Servers};
use super::surface_file;
use super::template::{Reference, Template, TemplateError, TemplatePart, TemplateValue};
use super::{
    Agent, Extension, Isolation, JudgeConfig, JudgeModel, Limits, Package, ReleasePackage, Suite,
    Workspace,
};
use crate::builtin_agent::BuiltinAgent;
use crate::decode::{Context, Decode};
use crate::document;

impl Loader<'_> {
    pub(super) fn resolve_suite(&self, file: &SuiteFile, cx: &Context<'_>) -> Option<Suite> {
        let config = file.config.get()?;
        let agents = self.agents(config, cx);
        let judge = config
            .judge
            .as_ref()
            .and_then(|judge| self.judge(judge, cx));
        let extensions = self.extensions(config, cx);
        let scope = Scope {
            servers: self.servers(config, cx),
            extensions: config
                .extensions
                .iter()
                .map(|(n, _)| n.value.clone())
                .collect(),
            has_judge: config.judge.is_some() || self.inputs.judge_given,
        };
        if let Some(servers) = &scope.servers {
            check_mappings(config, servers, cx);
        }
        let workspace = workspace(config, cx);
        let mut tasks = resolve_task_sets::load(self, config, &scope, cx);
        for case in &mut tasks.cases {
            case.workspace = case.workspace.take().or_else(|| workspace.clone());
        }
        let known_failures = known_failures(config, &tasks, &agents, cx);
        let (setup, cleanup) = self.run_steps(config, cx);
        if config.isolation == Some(Isolation::Run) {
            replies::refuse_shared(scope.servers.as_ref(), &tasks.cases, cx);
        }
        let name = file.metadata.get()?.name.get()?;
        if name.value.0.trim().is_empty() {
            cx.report(name.span, Problem::error(Code::Value, "the name is empty"));
        }
        let default_limits = config.default_limits.as_ref().map(Limits::from);
        let default_limits = default_limits.unwrap_or_default();
        Some(Suite {
            name: name.value.0.clone(),
            path: cx.source.path().to_path_buf(),
            servers: scope.servers.map(|s| s.enabled).unwrap_or_default(),
            agents,
            judge,
            cleanup_timeout: config.cleanup_timeout.or(default_limits.cleanup_timeout),
            default_limits,
            extensions,
            skills: skills(config, cx),
            setup,
            cleanup,
            preflight: preflight(config, cx),
            workspace,
            isolation: config.isolation.unwrap_or(Isolation::Trial),
            gates: config
                .gates
                .as_ref()
                .map(|gates| PlannedGates::from(&**gates))
                .unwrap_or_default(),
            no_regression: config
                .gates
                .as_ref()
                .and_then(|gates| gates.no_regression.as_ref())
                .map(|base| base.0.clone()),
            known_failures,
            surface: config
                .surface
                .as_ref()
                .and_then(|surface| surface_file::contract(surface, cx)),
            lint_off: config
                .lint
                .as_ref()
                .map(|lint| surface_file::switched_off(lint, cx))
                .unwrap_or_default(),
            task_sets: task_sets(config),
            cases: tasks.cases,
            shipped: tasks.shipped,
            sources: tasks.sources,
        })
    }

    fn agents(&self, config: &EvalConfig, cx: &Context<'_>) -> Vec<Agent> {
        if let Some(path) = &config.agent_file {
            return self.agent_file(path, cx).into_iter().collect();
        }
        let several = config.agents.iter().flat_map(|agents| &agents.0);
        let references = config.agent.iter().chain(several);
        let mut agents: Vec<Agent> = Vec::new();
        for reference in references {
            let Some(agent) = self.agent(reference, cx) else {
                continue;
            };
            // Results are kept by the agent's name.
            if agents.iter().any(|known| known.name == agent.name) {
                let message = format!("two agents have the name `{}`", agent.name);
                cx.report(reference.span, Problem::error(Code::Conflict, message));
            }
            agents.push(agent);
        }
        agents
    }

    fn judge(&self, file: &WithSpan<JudgeFile>, cx: &Context<'_>) -> Option<JudgeConfig> {
        if let Some(votes) = &file.votes
            && votes.value.0.is_multiple_of(2)
        {
            let message = format!("`votes` is {}: an even number can tie", votes.value.0);
            let problem = Problem::error(Code::Value, message);
            cx.report(votes.span, problem.hint("use an odd number"));
        }
        let model = match (&file.agent, &file.env) {
            (Some(agent), _) => JudgeModel::Agent(Box::new(self.agent(agent, cx)?)),
            (None, Some(env)) => {
                let name = |key: &Option<WithSpan<String>>| key.as_ref().map(|k| k.value.clone());
                JudgeModel::Environment {
                    provider: name(&env.type_key),
                    base_url: name(&env.base_url_key),
                    api_key: name(&env.api_key_key),
                    model: name(&env.model_name_key),
                }
            }
            (None, None) => return None,
        };
        Some(JudgeConfig {
            model,
            votes: file.votes.as_ref().map_or(1, |votes| votes.value.0),
        })
    }

    /// The servers, or `None` if they could not be loaded.
    fn servers(&self, config: &EvalConfig, cx: &Context<'_>) -> Option<Servers> {
        let opened = match (self.inputs.mcp_config, &config.mcp_config_file) {
            (Some(path), _) => match files::read(path) {
                Ok(source) => self.parse_mcp(source)?,
                Err(problem) => {
                    cx.report_elsewhere(problem);
                    return None;
                }
            },
            (None, Some(written)) => {
                let written = written.get()?;
                let path = FileOrigin::Own
                    .resolve(cx.source.folder(), &written.value)
                    .ok()?;
                self.open_named(&path, written.span, cx)?
            }
            (None, None) => return self.servers_from_environment(config, cx),
        };
        let inner = self.context(&opened);
        let file = McpFile::decode(&opened.root, &inner)?;
        let table = file.servers.get()?;
        let isolation = config.isolation.unwrap_or(Isolation::Trial);
        let servers = server::resolve(&file, self.inputs.env, isolation, &inner);
        let all_disabled = servers.enabled.is_empty() && !servers.disabled.is_empty();
        if all_disabled && config.skills.is_none() {
            let message = "every server is disabled: nothing to test";
            inner.report(table.span, Problem::error(Code::Missing, message));
        }
        Some(servers)
    }

    fn parse_mcp(&self, source: SourceText) -> Option<ParsedFile> {
        let parsed = document::parse(&source, &mut self.problems.borrow_mut())?;
        self.one_map(source, parsed)
    }

    fn servers_from_environment(&self, config: &EvalConfig, cx: &Context<'_>) -> Option<Servers> {
        let found = server::from_environment(
            self.inputs.env,
            cx.source.folder(),
            &mut self.problems.borrow_mut(),
        );
        if found.is_none() && config.skills.is_none() {
            cx.report_elsewhere(
                Problem::error(Code::Missing, "the suite has no server")
                    .in_file(cx.source.path())
                    .hint("add `config.mcpConfigFile`, or set MCP_URL or MCP_COMMAND"),
            );
            return None;
        }
        Some(Servers {
            enabled: found.into_iter().collect(),
            disabled: Vec::new(),
        })
    }

    fn extensions(&self, config: &EvalConfig, cx: &Context<'_>) -> Vec<Extension> {
        let mut extensions = Vec::new();
        for (alias, file) in config.extensions.iter() {
            if alias.value.contains('.') {
                let message = format!("the alias `{}` contains a dot", alias.value);
                cx.report(alias.span, Problem::error(Code::Value, message));
            }
            extensions.extend(self.extension(&alias.value, file, cx));
        }
        extensions
    }

    fn extension(&self, alias: &str, file: &ExtensionFile, cx: &Context<'_>) -> Option<Extension> {
        let config = match &file.config {
            None => serde_json::Value::Object(serde_json::Map::new()),
            Some(node) => {
                let value = TemplateValue::parse(&node.to_json());
                let value = value
                    .map_err(|errors| report_templates(errors, node.span, cx))
                    .ok()?;
                value.fill(&mut |t| self.fill_env(t, node.span, cx)).ok()?
            }
        };
        let mut env = BTreeMap::new();
        for (key, text) in file.env.iter() {
            let template = Template::parse(&text.value.0);
            let template = template
                .map_err(|errors| report_templates(errors, text.span, cx))
                .ok()?;
            let value = self.fill_env(&template, text.span, cx).ok()?;
            env.insert(key.value.clone(), value);
        }
        Some(Extension {
            alias: alias.to_owned(),
            package: self.package(&file.package, cx)?,
            config,
            env,
        })
    }

    fn package(&self, written: &WithSpan<String>, cx: &Context<'_>) -> Option<Package> {
        if !written.value.starts_with("https://") {
            let path = FileOrigin::Own
                .resolve(cx.source.folder(), &written.value)
                .ok()?;
            if !path.exists() {
                let message = format!(
                    "the extension `{}` is not installed: the file does not exist",
                    path.display()
                );
                cx.report(written.span, Problem::warning(Code::File, message));
            }
            return Some(Package::Local(path));
        }
        let Some(package) = ReleasePackage::parse(&written.value) else {
            let message = format!("invalid extension package `{}`", written.value);
            let problem = Problem::error(Code::Value, message);
            cx.report(
                written.span,
                problem.hint("write a local path, or `https://github.com/OWNER/REPO@TAG`"),
            );
            return None;
        };
        let package = package.looked_up(self.lock(cx), self.inputs.env);
        Some(Package::Release(package))
    }

    /// Fills in a template that can only refer to the environment.
    fn fill_env(&self, template: &Template, span: Span, cx: &Context<'_>) -> Result<String, ()> {
        let mut out = String::new();
        for part in &template.parts {
            match part {
                TemplatePart::Text(text) => out.push_str(text),
                TemplatePart::Reference(Reference::Env(name)) => {
                    if let Some(value) = self.inputs.env.get(name) {
                        out.push_str(value);
                    } else {
                        let message = format!("the environment variable `{name}` is not set");
                        cx.report(span, Problem::warning(Code::UnsetVariable, message));
                    }
                }
                TemplatePart::Reference(_) => {
                    let message =
                        "only `{env.NAME}` can be used in the declaration of an extension";
                    cx.report(span, Problem::error(Code::Reference, message));
                    return Err(());
                }
            }
        }
        Ok(out)
    }
}

fn report_templates(errors: Vec<TemplateError>, span: Span, cx: &Context<'_>) {
    for error in errors {
        let problem = Problem::error(Code::Reference, error.message);
        cx.report(span, problem.maybe_hint(error.hint));
    }
}

fn workspace(config: &EvalConfig, cx: &Context<'_>) -> Option<Arc<Workspace>> {
    let written = config.workspace.as_ref()?;
    let path = files::existing_folder(&FileOrigin::Own, written, cx)?;
    Some(Arc::new(Workspace::new(path)))
}

fn skills(config: &EvalConfig, cx: &Context<'_>) -> Vec<PathBuf> {
    let sources = config.skills.iter().flat_map(|skills| &skills.sources);
    let existing = sources.map(|source| files::existing_folder(&FileOrigin::Own, &source.path, cx));
    existing.flatten().collect()
}

fn check_mappings(config: &EvalConfig, servers: &Servers, cx: &Context<'_>) {
    let none = BTreeMap::new();
    let scope = ServerScope {
        servers: Some(servers),
        mapping: &none,
    };
    for (_, source) in config.sources.iter() {
        for (_, target) in source.server_mapping.iter() {
            let target = WithSpan {
                value: target.value.0.clone(),
                span: target.span,
            };
            scope.resolve("server mapping", &target, cx);
        }
    }
}

/// The known failures. An entry that matches no case misses the gate of every run, so it is reported before
/// a run starts; the cases of servers and of other repositories are not known yet.
fn known_failures(
    config: &EvalConfig,
    tasks: &ResolvedTaskSets,
    agents: &[Agent],
    cx: &Context<'_>,
) -> Vec<PlannedKnownFailure> {
    let is_complete =
        tasks.shipped.is_empty() && tasks.sources.iter().all(|source| source.root().is_some());
    let mut all = Vec::new();
    for entry in config.known_failures.iter().flat_map(|list| &**list) {
        let Some(known) = entry.resolve() else {
            continue;
        };
        let names = agents.iter().map(|agent| agent.name.as_str());
        if is_complete && is_unmatched(&known, &tasks.cases, names) {
            let cases = || tasks.cases.iter();
            let has_case = cases().any(|case| known.is_about(&case.name, &case.id.0));
            let problem = match &known.agent {
                Some(agent) if has_case => {
                    let mut names: Vec<&str> = agents.iter().map(|a| a.name.as_str()).collect();
                    for builtin in BuiltinAgent::names() {
                        names.push(builtin);
                    }
                    let message = format!("the known failure names the unknown agent `{agent}`");
                    let hint = nearest_hint(agent, names);
                    Problem::warning(Code::Reference, message).maybe_hint(hint)
                }
                Some(_) | None => {
                    let message = format!("the known failure `{}` matches no case", known.case);
                    let names = cases().map(|case| case.name.as_str());
                    let hint = nearest_hint(&known.case, names);
                    Problem::warning(Code::Reference, message).maybe_hint(hint)
                }
            };
            cx.report(entry.span, problem);
        }
        all.push(known);
    }
    all
}

/// The task sets as the eval file has them.
fn task_sets(config: &EvalConfig) -> Vec<TaskSetConfig> {
    let text = |written: &Option<WithSpan<String>>| Some(written.as_ref()?.value.clone());
    let sets = config
        .task_sets
        .get()
        .into_iter()
        .flat_map(|sets| &sets.value);
    sets.filter(|set| set.evals.is_none())
        .map(|set| TaskSetConfig {
            path: text(&set.path).or_else(|| text(&set.selection)),
            glob: text(&set.glob),
            label_selector: set
                .label_selector
                .iter()
                .map(|(key, value)| (key.value.clone(), value.0.clone()))
                .collect(),
        })
        .collect()
}
