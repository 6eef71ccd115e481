//! Redacts every string of an event.

use std::collections::BTreeMap;

use data_encoding::BASE64;

use crate::event::SkippedEval;
use crate::event::{
    AgentClaimed, AgentEnded, AgentStarted, Body, CaseTally, CheckEvaluated, CheckId, CheckPlace,
    ConnectionClosed, ConnectionOpened, Event, EventKind, Finding, Frame, ModelAsked, ModelFailed,
    ModelReplied, PlannedAgent, PlannedCase, PlannedEval, PlannedGates, PlannedKnownFailure,
    PlannedOptions, PlannedProfile, PlannedWarning, RunConfig, RunEnded, RunPlanned, RunStarted,
    RunTally, SelectedCall, ServerSeen, SourceContext, StepEnded, SurfaceChange, SurfaceCompared,
    ToolName, ToolsSelected, TrialEnded, TrialFolder, TrialStarted, UnknownEvent,
};
use crate::json;
use crate::verdict::Verdict;

use super::Redactor;

impl Redactor {
    /// The event without secrets.
    pub fn event(&self, event: Event) -> Event {
        Event {
            event: self.what(event.event),
            ..event
        }
    }

    /// The content of an event without secrets.
    pub fn what(&self, what: EventKind) -> EventKind {
        match what {
            EventKind::RunStarted(run) => EventKind::RunStarted(self.run_started(run)),
            EventKind::RunEnded(run) => EventKind::RunEnded(self.run_ended(run)),
            EventKind::TrialStarted(trial) => EventKind::TrialStarted(self.trial_started(trial)),
            EventKind::PhaseStarted { phase } => EventKind::PhaseStarted { phase },
            EventKind::TrialEnded(trial) => EventKind::TrialEnded(self.trial_ended(trial)),
            EventKind::ConnectionOpened(opened) => EventKind::ConnectionOpened(ConnectionOpened {
                server: self.owned(opened.server),
                target: self.address(&opened.target),
                ..opened
            }),
            EventKind::ConnectionClosed(closed) => EventKind::ConnectionClosed(ConnectionClosed {
                conn: closed.conn,
                reason: self.owned(closed.reason),
                stderr: self.optional(closed.stderr),
                end: closed.end,
            }),
            EventKind::Frame(frame) => EventKind::Frame(Frame {
                body: self.body(frame.body),
                ..frame
            }),
            EventKind::Http(http) => EventKind::Http(self.http(http)),
            EventKind::Finding(finding) => EventKind::Finding(Finding {
                detail: self.owned(finding.detail),
                ..finding
            }),
            EventKind::RunPlanned(planned) => {
                EventKind::RunPlanned(Box::new(self.planned(*planned)))
            }
            EventKind::ServerSeen(seen) => EventKind::ServerSeen(self.server_seen(seen)),
            EventKind::SurfaceCompared(compared) => {
                EventKind::SurfaceCompared(self.surface_compared(compared))
            }
            EventKind::Prompted { text, turn } => EventKind::Prompted {
                text: self.body(text),
                turn,
            },
            EventKind::ToolsOffered { tools } => EventKind::ToolsOffered {
                tools: self.body(tools),
            },
            EventKind::ModelAsked(asked) => EventKind::ModelAsked(ModelAsked {
                model: self.owned(asked.model),
                request: self.body(asked.request),
                ..asked
            }),
            EventKind::ModelFailed(failed) => EventKind::ModelFailed(ModelFailed {
                reason: self.owned(failed.reason),
                ..failed
            }),
            EventKind::ModelReplied(replied) => EventKind::ModelReplied(ModelReplied {
                turn: self.body(replied.turn),
                raw: replied.raw.map(|raw| self.body(raw)),
                ..replied
            }),
            EventKind::Replayed { ask, drifted } => EventKind::Replayed { ask, drifted },
            EventKind::AgentAnswered { text } => EventKind::AgentAnswered {
                text: self.body(text),
            },
            agent @ (EventKind::AgentStarted(_)
            | EventKind::AgentWrote { .. }
            | EventKind::AgentClaimed(_)
            | EventKind::AgentEnded(_)) => self.of_agent(agent),
            EventKind::TrialFolder(folder) => EventKind::TrialFolder(TrialFolder {
                path: self.owned(folder.path),
                kept: folder.kept,
                reason: folder.reason.map(|reason| self.owned(reason)),
            }),
            EventKind::CallWithheld(name) => EventKind::CallWithheld(self.tool_name(name)),
            EventKind::ToolsSelected(selected) => {
                EventKind::ToolsSelected(self.tools_selected(selected))
            }
            EventKind::StepEnded(step) => EventKind::StepEnded(self.step_ended(step)),
            EventKind::Graded(graded) => EventKind::Graded(self.graded(graded)),
            EventKind::Unknown(event) => EventKind::Unknown(UnknownEvent {
                name: self.owned(event.name),
                content: event.content.map(|content| self.json(&content)),
            }),
        }
    }

    fn run_started(&self, run: RunStarted) -> RunStarted {
        RunStarted {
            record: run.record,
            proctor: self.owned(run.proctor),
            started: self.owned(run.started),
            name: self.owned(run.name),
            command: self.command(run.command),
            context: run.context.map(|context| self.context(context)),
        }
    }

    fn run_ended(&self, run: RunEnded) -> RunEnded {
        RunEnded {
            exit: run.exit,
            reason: self.optional(run.reason),
            changed_trials: {
                let trials = run.changed_trials.into_iter();
                trials.map(|trial| self.owned(trial)).collect()
            },
            failed_cleanup: self.optional(run.failed_cleanup),
            missing: self.list(run.missing),
            ..run
        }
    }

    fn server_seen(&self, seen: ServerSeen) -> ServerSeen {
        ServerSeen {
            server: self.owned(seen.server),
            name: self.optional(seen.name),
            version: self.optional(seen.version),
            protocol: self.owned(seen.protocol),
            tool_list: seen.tool_list.map(|list| self.body(list)),
            surface: seen.surface.map(|surface| self.body(surface)),
            ..seen
        }
    }

    fn tool_name(&self, name: ToolName) -> ToolName {
        ToolName {
            server: self.owned(name.server),
            tool: self.owned(name.tool),
        }
    }

    fn tools_selected(&self, selected: ToolsSelected) -> ToolsSelected {
        let expected = selected.expected.into_iter();
        let expected = expected.map(|name| self.tool_name(name));
        let calls = selected.calls.into_iter().map(|call| SelectedCall {
            server: self.optional(call.server),
            tool: self.owned(call.tool),
            arguments: self.body(call.arguments),
        });
        ToolsSelected {
            expected: expected.collect(),
            calls: calls.collect(),
            ..selected
        }
    }

    fn surface_compared(&self, compared: SurfaceCompared) -> SurfaceCompared {
        let changes = compared.changes.into_iter();
        SurfaceCompared {
            server: self.owned(compared.server),
            changes: changes.map(|change| self.surface_change(change)).collect(),
            ..compared
        }
    }

    /// A change of a surface without secrets.
    pub fn surface_change(&self, change: SurfaceChange) -> SurfaceChange {
        SurfaceChange {
            place: self.owned(change.place),
            message: self.owned(change.message),
            witness: change
                .witness
                .and_then(|witness| json::from_str(&self.json(&witness.to_string())).ok()),
            ..change
        }
    }

    fn step_ended(&self, step: StepEnded) -> StepEnded {
        StepEnded {
            id: self.owned(step.id),
            kind: self.owned(step.kind),
            verdict: self.verdict(step.verdict),
            output: step.output.map(|output| self.body(output)),
            outputs: self.table(step.outputs),
            ..step
        }
    }

    fn graded(&self, graded: CheckEvaluated) -> CheckEvaluated {
        CheckEvaluated {
            check: self.owned(graded.check),
            id: graded.id.map(|id| self.check_id(id)),
            details: self.list(graded.details),
            verdict: self.verdict(graded.verdict),
            evidence: graded.evidence,
            notes: self.list(graded.notes),
        }
    }

    fn context(&self, context: SourceContext) -> SourceContext {
        let address = |text: Option<String>| text.map(|text| self.address(&text));
        SourceContext {
            commit: self.optional(context.commit),
            branch: self.optional(context.branch),
            dirty: context.dirty,
            pull_request: address(context.pull_request),
            job_url: address(context.job_url),
        }
    }

    /// Redacts the events of an external agent.
    fn of_agent(&self, what: EventKind) -> EventKind {
        match what {
            EventKind::AgentStarted(started) => EventKind::AgentStarted(self.started(started)),
            EventKind::AgentWrote { line } => EventKind::AgentWrote {
                line: self.body(line),
            },
            EventKind::AgentClaimed(claim) => EventKind::AgentClaimed(AgentClaimed {
                tool: self.owned(claim.tool),
                arguments: claim.arguments.map(|arguments| self.body(arguments)),
                status: claim.status,
                detail: self.optional(claim.detail),
            }),
            EventKind::AgentEnded(ended) => EventKind::AgentEnded(AgentEnded {
                how: self.owned(ended.how),
                stderr: self.optional(ended.stderr),
                ..ended
            }),
            other => other,
        }
    }

    /// Redacts a text that is JSON, so that it stays JSON.
    fn json(&self, text: &str) -> String {
        String::from_utf8_lossy(&self.bytes(text.as_bytes())).into_owned()
    }

    fn planned(&self, planned: RunPlanned) -> RunPlanned {
        let place = |place: CheckPlace| CheckPlace {
            check: self.check_id(place.check),
            path: self.owned(place.path),
            line: place.line,
        };
        let case = |case: PlannedCase| PlannedCase {
            id: self.owned(case.id),
            name: self.owned(case.name),
            path: self.owned(case.path),
            labels: self.table(case.labels),
            places: case.places.into_iter().map(place).collect(),
            eval: case.eval.map(|eval| PlannedEval {
                server: self.owned(eval.server),
                id: self.owned(eval.id),
                ..eval
            }),
            ..case
        };
        let agent = |agent: PlannedAgent| PlannedAgent {
            name: self.owned(agent.name),
            model: self.optional(agent.model),
        };
        let warning = |warning: PlannedWarning| PlannedWarning {
            message: self.owned(warning.message),
            path: self.optional(warning.path),
            hint: self.optional(warning.hint),
            ..warning
        };
        let known = |known: PlannedKnownFailure| PlannedKnownFailure {
            case: self.owned(known.case),
            agent: self.optional(known.agent),
            reason: self.owned(known.reason),
            ..known
        };
        let not_run = |eval: SkippedEval| SkippedEval {
            eval_id: self.optional(eval.eval_id),
            server: self.owned(eval.server),
            reason: self.owned(eval.reason),
            ..eval
        };
        RunPlanned {
            suite: self.owned(planned.suite),
            mcp_config: self.optional(planned.mcp_config),
            cases: planned.cases.into_iter().map(case).collect(),
            agents: planned.agents.into_iter().map(agent).collect(),
            judge: self.optional(planned.judge),
            server_settings: self.named(planned.server_settings),
            agent_settings: self.named(planned.agent_settings),
            config: planned.config.map(|config| Box::new(self.config(&config))),
            not_run: planned.not_run.into_iter().map(not_run).collect(),
            asked: PlannedOptions {
                agents: self.list(planned.asked.agents),
                model: self.optional(planned.asked.model),
                judge: self.optional(planned.asked.judge),
                gates: planned
                    .asked
                    .gates
                    .map(|gates| Box::new(self.gates(*gates))),
                known_failures: planned
                    .asked
                    .known_failures
                    .into_iter()
                    .map(known)
                    .collect(),
                profile: planned
                    .asked
                    .profile
                    .map(|profile| Box::new(self.profile(*profile))),
                ..planned.asked
            },
            warnings: planned.warnings.into_iter().map(warning).collect(),
            ..planned
        }
    }

    fn profile(&self, profile: PlannedProfile) -> PlannedProfile {
        PlannedProfile {
            name: self.owned(profile.name),
            file: self.owned(profile.file),
            values: profile
                .values
                .into_iter()
                .map(|(key, value)| (self.owned(key), self.owned(value)))
                .collect(),
            overridden: self.list(profile.overridden),
        }
    }

    fn gates(&self, gates: PlannedGates) -> PlannedGates {
        let case = |case: CaseTally| CaseTally {
            id: self.owned(case.id),
            name: self.owned(case.name),
            known_failures: self.list(case.known_failures),
            ..case
        };
        PlannedGates {
            base: gates.base.map(|base| RunTally {
                run: self.owned(base.run),
                agents: self.list(base.agents),
                cases: base.cases.into_iter().map(case).collect(),
                changed_trials: self.list(base.changed_trials),
                ..base
            }),
            ..gates
        }
    }

    /// Redacts every text of a configuration; JSON stays JSON.
    fn config(&self, config: &RunConfig) -> RunConfig {
        let text = serde_json::to_string(config).unwrap_or_default();
        json::from_str(&self.text(&text)).unwrap_or_default()
    }

    fn check_id(&self, id: CheckId) -> CheckId {
        match id {
            CheckId::Assertion(name) => CheckId::Assertion(self.owned(name)),
            CheckId::Step(name) => CheckId::Step(self.owned(name)),
            CheckId::Judge(name) => CheckId::Judge(self.owned(name)),
            CheckId::Grading(name) => CheckId::Grading(self.owned(name)),
        }
    }

    fn verdict(&self, verdict: Verdict) -> Verdict {
        match verdict {
            Verdict::Pass => Verdict::Pass,
            Verdict::Fail { reason } => Verdict::fail(self.owned(reason)),
            Verdict::Unknown { reason } => Verdict::unknown(self.owned(reason)),
        }
    }

    /// Redacts the names of hashes.
    fn named(&self, hashes: BTreeMap<String, String>) -> BTreeMap<String, String> {
        let hashes = hashes.into_iter();
        hashes
            .map(|(name, hash)| (self.owned(name), hash))
            .collect()
    }

    fn list(&self, texts: Vec<String>) -> Vec<String> {
        texts.into_iter().map(|text| self.owned(text)).collect()
    }

    fn table(&self, table: BTreeMap<String, String>) -> BTreeMap<String, String> {
        let redacted = table
            .into_iter()
            .map(|(name, value)| (self.owned(name), self.owned(value)));
        redacted.collect()
    }

    pub(crate) fn trial_started(&self, trial: TrialStarted) -> TrialStarted {
        TrialStarted {
            case: self.owned(trial.case),
            agent: self.optional(trial.agent),
            ..trial
        }
    }

    pub(crate) fn trial_ended(&self, trial: TrialEnded) -> TrialEnded {
        TrialEnded {
            outcome: trial.outcome,
            reason: self.optional(trial.reason),
            blame: trial.blame,
        }
    }

    fn body(&self, body: Body) -> Body {
        match body {
            Body::Text(text) => Body::Text(self.owned(text)),
            Body::Base64(text) => Body::Base64(match BASE64.decode(text.as_bytes()) {
                Ok(bytes) => BASE64.encode(&self.bytes(&bytes)),
                Err(_) => self.owned(text),
            }),
            other @ (Body::Blob { .. } | Body::Cut { .. }) => other,
        }
    }

    fn started(&self, started: AgentStarted) -> AgentStarted {
        AgentStarted {
            command: self.command(started.command),
            version: self.optional(started.version),
            skill_tool: self.optional(started.skill_tool),
            purpose: started.purpose,
        }
    }

    fn optional(&self, text: Option<String>) -> Option<String> {
        text.map(|text| self.owned(text))
    }

    /// Returns the same string if it holds no secret, as most do.
    fn owned(&self, text: String) -> String {
        match self.text(&text) {
            std::borrow::Cow::Borrowed(_) => text,
            std::borrow::Cow::Owned(redacted) => redacted,
        }
    }
}
