//! The plan of an imported run: its cases, agents and servers, and which trial each entry is.
//!
//! The main type is [`ImportPlan`]. Every entry gets a trial of its own, even if several entries claim to be
//! the same run of a task: a lost entry could hide a failure. Runs that the file announces and does not hold
//! are planned too, so they count as not run.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};

use jiff::{SignedDuration, Timestamp};

use proctor_record::event::{
    AgentConfig, Body, PlannedAgent, PlannedCase, PlannedWarning, RunConfig, RunKind, RunPlanned,
    ServerConfig, ServerSeen, WireKind,
};
use proctor_record::json;

use super::result_file::{CallEntry, ResultEntry, ResultServer, ResultSummary, read};
use super::{ImportError, time};

/// The name of an agent that the file does not name.
const UNKNOWN_AGENT: &str = "unknown";

/// The most runs of all tasks together that a file may announce.
const MAX_RUNS: u64 = 1_000_000;

/// What the trials of an imported run have in common.
#[derive(Debug)]
pub(super) struct ImportPlan {
    path: PathBuf,
    summary: Option<ResultSummary>,
    /// The time of the first call; without calls, the time of the file.
    pub(super) started: Timestamp,
    cases: Vec<PlannedCase>,
    agents: Vec<String>,
    /// The servers that were called.
    called: BTreeSet<String>,
    /// The trial of each entry.
    pub(super) slots: Vec<Slot>,
    renumbered: u64,
}

/// The trial that an entry describes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Slot {
    case: usize,
    agent: usize,
    pub(super) repeat: u32,
}

impl ImportPlan {
    pub(super) fn read(path: &Path) -> Result<Self, ImportError> {
        let mut plan = Self {
            path: path.to_owned(),
            summary: None,
            started: Timestamp::MAX,
            cases: Vec::new(),
            agents: Vec::new(),
            called: BTreeSet::new(),
            slots: Vec::new(),
            renumbered: 0,
        };
        let mut known = KnownTrials::default();
        plan.summary = read(path, |_, entry| {
            plan.add(&entry, &mut known);
            Ok(())
        })?;
        if plan.slots.is_empty() {
            let path = path.to_owned();
            return Err(ImportError::Empty { path });
        }
        let runs: u64 = plan.cases.iter().map(|case| u64::from(case.runs)).sum();
        if runs * plan.agents.len() as u64 > MAX_RUNS {
            return Err(ImportError::Implausible {
                path: path.to_owned(),
                reason: format!("`totalRuns` announces over {MAX_RUNS} runs"),
            });
        }
        if plan.started == Timestamp::MAX {
            plan.started = written_at(path)?;
        }
        plan.name_agent();
        Ok(plan)
    }

    fn add(&mut self, entry: &ResultEntry, known: &mut KnownTrials) {
        let own = entry.proctor.as_ref();
        let agent = own.and_then(|own| own.agent.clone()).unwrap_or_default();
        let known_agent = self.agents.iter().position(|name| *name == agent);
        let agent = known_agent.unwrap_or_else(|| {
            self.agents.push(agent);
            self.agents.len() - 1
        });
        let key = (entry.task_path.clone(), entry.task_name.clone());
        let case = *known.cases.entry(key).or_insert_with(|| {
            self.cases.push(planned_case(entry));
            self.cases.len() - 1
        });
        let wanted = entry.run_index.saturating_add(1);
        let last = known.last.entry((case, agent)).or_default();
        let repeat = if known.taken.insert((case, agent, wanted)) {
            wanted
        } else {
            self.renumbered += 1;
            let next = last.saturating_add(1);
            known.taken.insert((case, agent, next));
            next
        };
        *last = (*last).max(repeat);
        let planned = &mut self.cases[case];
        planned.runs = planned.runs.max(repeat).max(entry.total_runs);
        self.slots.push(Slot {
            case,
            agent,
            repeat,
        });
        for call in calls(entry) {
            self.called.insert(call.server_name.clone());
            if let Some(time) = time(call.timestamp.as_deref()) {
                self.started = self.started.min(time);
            }
        }
    }

    /// Names the agent of entries that don't name one, as the summary does.
    fn name_agent(&mut self) {
        let configured = self.summary.as_ref().and_then(|s| s.agent.as_ref());
        let name = configured.map(|agent| match agent.name.as_str() {
            "" => agent.kind.clone(),
            name => name.to_owned(),
        });
        let name = name.filter(|name| !name.is_empty());
        let mut name = name.unwrap_or_else(|| UNKNOWN_AGENT.to_owned());
        while self.agents.contains(&name) {
            name.push('\'');
        }
        for agent in self.agents.iter_mut().filter(|agent| agent.is_empty()) {
            agent.clone_from(&name);
        }
    }

    pub(super) fn case(&self, slot: &Slot) -> &PlannedCase {
        &self.cases[slot.case]
    }

    pub(super) fn agent(&self, slot: &Slot) -> &str {
        &self.agents[slot.agent]
    }

    /// The command of the agent, if the file has it.
    pub(super) fn agent_command(&self) -> Vec<String> {
        let agent = self.summary.as_ref().and_then(|s| s.agent.as_ref());
        Vec::from_iter(agent.and_then(|agent| agent.command.clone()))
    }

    /// The microseconds from the start of the run to a time of the file.
    pub(super) fn micros(&self, time: Timestamp) -> u64 {
        let since: SignedDuration = time.duration_since(self.started);
        u64::try_from(since.as_micros()).unwrap_or(0)
    }

    /// The transport and the address of a server, as far as the file has them.
    pub(super) fn server(&self, name: &str) -> (WireKind, String) {
        let server = self.configured().find(|server| server.name == name);
        let Some(server) = server else {
            return (WireKind::Unknown, String::new());
        };
        let wire = match server.kind.as_str() {
            "stdio" => WireKind::Stdio,
            "http" => WireKind::Http,
            "sse" => WireKind::Sse,
            _ => WireKind::Unknown,
        };
        let address = server.url.as_ref().or(server.command.as_ref());
        (wire, address.cloned().unwrap_or_default())
    }

    fn configured(&self) -> impl Iterator<Item = &ResultServer> {
        self.summary.iter().flat_map(|summary| &summary.mcp_servers)
    }

    /// The servers whose tools the file lists.
    pub(super) fn servers(&self) -> Vec<ServerSeen> {
        let seen = self.configured().filter_map(|server| {
            let tools = server.tools.as_ref()?;
            let list: Vec<serde::de::IgnoredAny> = json::from_str(tools.get()).ok()?;
            Some(ServerSeen {
                server: server.name.clone(),
                name: None,
                version: None,
                protocol: String::new(),
                tools: list.len() as u64,
                resources: 0,
                prompts: 0,
                tools_digest: None,
                tool_list: Some(Body::Text(tools.get().to_owned())),
                surface: None,
                started_in: None,
            })
        });
        seen.collect()
    }

    pub(super) fn planned(&self, kind: RunKind) -> RunPlanned {
        let summary = self.summary.as_ref();
        let agent = summary.and_then(|summary| summary.agent.as_ref());
        let judge = summary.and_then(|summary| summary.judge.as_ref());
        // The file describes one agent; only Proctor's own documents have several.
        let model = agent.and_then(|agent| agent.model.clone());
        let model = model.filter(|_| self.agents.len() == 1);
        let agents = self.agents.iter().map(|name| PlannedAgent {
            name: name.clone(),
            model: model.clone(),
        });
        let path = self.path.display().to_string();
        RunPlanned {
            judge: judge.and_then(|judge| judge.model.clone().or(Some(judge.name.clone()))),
            kind,
            config: Some(Box::new(self.config(agent, judge))),
            warnings: self.warnings(path.clone()),
            ..RunPlanned::new(path, self.cases.clone(), agents.collect())
        }
    }

    fn config(&self, agent: Option<&AgentConfig>, judge: Option<&AgentConfig>) -> RunConfig {
        let mut servers: Vec<ServerConfig> = Vec::new();
        servers.extend(self.configured().map(|server| ServerConfig {
            name: server.name.clone(),
            kind: server.kind.clone(),
            url: server.url.clone(),
            command: server.command.clone(),
        }));
        for name in &self.called {
            if !servers.iter().any(|server| server.name == *name) {
                let name = name.clone();
                servers.push(ServerConfig {
                    name,
                    ..ServerConfig::default()
                });
            }
        }
        let summary = self.summary.as_ref();
        RunConfig {
            agents: agent.cloned().into_iter().collect(),
            judge: judge.cloned(),
            servers,
            task_sets: summary.map_or_else(Vec::new, |s| s.evals.task_sets.clone()),
            skills: summary.map_or_else(Vec::new, |s| {
                s.skills.iter().map(|skill| skill.path.clone()).collect()
            }),
            timeouts: summary.map_or_else(Default::default, |s| s.timeout.clone()),
            workers: summary.map_or(0, |summary| summary.parallel_workers),
            ..RunConfig::default()
        }
    }

    fn warnings(&self, path: String) -> Vec<PlannedWarning> {
        if self.renumbered == 0 {
            return Vec::new();
        }
        let count = usize::try_from(self.renumbered).unwrap_or(usize::MAX);
        vec![PlannedWarning {
            code: "duplicate-run".to_owned(),
            message: format!(
                "{} of the file repeat the task and `runIndex` of another, and count as further trials",
                proctor_record::hint::counted(count, "result")
            ),
            path: Some(path),
            line: None,
            column: None,
            hint: None,
        }]
    }
}

/// The cases and trials of the entries so far.
#[derive(Debug, Default)]
struct KnownTrials {
    cases: HashMap<(String, String), usize>,
    taken: HashSet<(usize, usize, u32)>,
    /// The highest number of a trial.
    last: HashMap<(usize, usize), u32>,
}

fn planned_case(entry: &ResultEntry) -> PlannedCase {
    let (name, path) = (entry.task_name.clone(), entry.task_path.clone());
    let id = if path.is_empty() {
        name.clone()
    } else {
        format!("{path}#{name}")
    };
    PlannedCase {
        path,
        difficulty: Some(entry.difficulty.clone()).filter(|text| !text.is_empty()),
        parallel: entry.parallel,
        ..PlannedCase::new(id, name, 1)
    }
}

/// All calls of an entry.
pub(super) fn calls(entry: &ResultEntry) -> impl Iterator<Item = &CallEntry> {
    let history = &entry.call_history;
    let others = history.resource_reads.iter().chain(&history.prompt_gets);
    history.tool_calls.iter().chain(others)
}

fn written_at(path: &Path) -> Result<Timestamp, ImportError> {
    let io = |source| ImportError::Io {
        path: path.to_owned(),
        source,
    };
    let modified = fs::metadata(path).and_then(|file| file.modified());
    let time = Timestamp::try_from(modified.map_err(io)?);
    Ok(time.unwrap_or(Timestamp::UNIX_EPOCH))
}
