//! `proctor result view --raw`: shows every recorded event of a run, in order.

use std::time::Duration;

use proctor_core::contract;
use proctor_core::printable::printable;
use proctor_core::trial_names::NamedTrial;
use proctor_record::duration;
use proctor_record::event::{
    Body, Direction, Event, EventKind, Purpose, SurfaceCompared, ToolsSelected, TrialFolder,
};
use proctor_record::record::{EventReader, RecordError, RunReader, TrialFile};
use proctor_record::verdict::Verdict;

use crate::args::{ViewArgs, ViewFormat};
use crate::exit::Exit;
use crate::output;

/// The maximum length of a message or text without `--full`, in bytes.
const SHOWN: usize = 4096;

/// Shows the events of a run; of these trials only, if some are given.
pub(crate) fn run(
    run: &RunReader,
    args: &ViewArgs,
    only: Option<&[NamedTrial]>,
) -> anyhow::Result<Exit> {
    let view = View { run, args, only };
    if only.is_none() {
        view.title(&format!("run {}", run.started().name))?;
        view.events(run.events()?)?;
    }
    for trial in run.trials()? {
        if !view.selects(&trial) {
            continue;
        }
        let state = if trial.ended { "" } else { ", unfinished" };
        view.title(&format!(
            "trial {} (attempt {}){state}",
            trial.stem, trial.attempt
        ))?;
        view.events(run.trial(&trial)?)?;
    }
    Ok(Exit::Ok)
}

struct View<'a> {
    run: &'a RunReader,
    args: &'a ViewArgs,
    only: Option<&'a [NamedTrial]>,
}

impl View<'_> {
    fn selects(&self, trial: &TrialFile) -> bool {
        self.only
            .is_none_or(|only| only.iter().any(|named| named.file == *trial))
    }

    fn title(&self, text: &str) -> anyhow::Result<()> {
        match self.args.output {
            ViewFormat::Text => output::result(&format!("{}\n", printable(text))),
            ViewFormat::Json => Ok(()),
        }
    }

    fn events(&self, mut events: EventReader) -> anyhow::Result<()> {
        for event in events.by_ref() {
            let event = event?;
            if self.args.findings && !is_finding(&event.event) {
                continue;
            }
            match self.args.output {
                ViewFormat::Json => {
                    output::result(&format!("{}\n", serde_json::to_string(&event)?))?;
                }
                ViewFormat::Text => output::result(&self.line(&event)?)?,
            }
        }
        if let Some(torn) = events.torn() {
            let text = format!(
                "warning: the last line is truncated; skipped {} bytes\n",
                torn.bytes
            );
            output::message(&text)?;
        }
        Ok(())
    }

    fn line(&self, event: &Event) -> Result<String, RecordError> {
        let at = duration::render(Duration::from_micros(event.at));
        let what = self.what(&event.event)?;
        Ok(format!("{:>6}  {at:>16}  {what}\n", event.seq))
    }

    fn what(&self, what: &EventKind) -> Result<String, RecordError> {
        let text = match what {
            EventKind::RunStarted(run) => {
                format!(
                    "run started {} by Proctor {}: {}",
                    run.started,
                    run.proctor,
                    run.command.join(" ")
                )
            }
            EventKind::RunEnded(run) => {
                let reason = run
                    .reason
                    .as_deref()
                    .map_or(String::new(), |r| format!(": {r}"));
                format!("run ended with exit code {}{reason}", run.exit)
            }
            EventKind::TrialStarted(trial) => {
                let agent = trial
                    .agent
                    .as_deref()
                    .map_or(String::new(), |a| format!(" by {a}"));
                format!("trial of {}{agent}, repeat {}", trial.case, trial.repeat)
            }
            EventKind::PhaseStarted { phase } => format!("phase {phase}"),
            EventKind::TrialEnded(trial) => {
                let reason = trial
                    .reason
                    .as_deref()
                    .map_or(String::new(), |r| format!(": {r}"));
                format!("trial {}{reason}", word(&trial.outcome))
            }
            EventKind::ConnectionOpened(open) => format!(
                "#{} {} connects to {} over {}: {}",
                open.conn.0,
                word(&open.actor),
                open.server,
                word(&open.transport),
                open.target
            ),
            EventKind::ConnectionClosed(closed) => {
                let stderr = closed.stderr.as_deref().unwrap_or("").trim_end();
                let stderr = if stderr.is_empty() {
                    String::new()
                } else {
                    format!("; stderr: {stderr}")
                };
                format!("#{} closed: {}{stderr}", closed.conn.0, closed.reason)
            }
            EventKind::Frame(frame) => {
                let arrow = arrow(frame.direction);
                format!("#{} {arrow} {}", frame.conn.0, self.body(&frame.body)?)
            }
            EventKind::Http(http) => {
                let headers: Vec<String> = http
                    .headers
                    .iter()
                    .map(|(k, v)| format!("{k}: {v}"))
                    .collect();
                let arrow = arrow(http.direction);
                format!(
                    "#{} {arrow} HTTP {} {} [{}]",
                    http.conn.0,
                    http.exchange,
                    http.line,
                    headers.join("; ")
                )
            }
            EventKind::Finding(finding) => {
                let times = if finding.count > 1 {
                    format!(", {} more times", finding.count)
                } else {
                    String::new()
                };
                format!(
                    "#{} finding {}: {}{times}",
                    finding.conn.0,
                    word(&finding.kind),
                    finding.detail
                )
            }
            work => self.work(work)?,
        };
        Ok(printable(&text).into_owned())
    }

    /// The line of an event that is not about a connection.
    fn work(&self, what: &EventKind) -> Result<String, RecordError> {
        Ok(match what {
            EventKind::RunPlanned(plan) => {
                let cases = count(plan.cases.len() as u64, "case");
                let agents = count(plan.agents.len() as u64, "agent");
                format!("planned {}: {cases}, {agents}", plan.suite)
            }
            EventKind::ServerSeen(seen) => format!(
                "server {} is {} {}, protocol {}: {}, {}, {}",
                seen.server,
                seen.name.as_deref().unwrap_or("(no name)"),
                seen.version.as_deref().unwrap_or("(no version)"),
                seen.protocol,
                count(seen.tools, "tool"),
                count(seen.resources, "resource"),
                count(seen.prompts, "prompt")
            ),
            EventKind::SurfaceCompared(compared) => compared_surface(compared),
            EventKind::Prompted { text, turn: None } => format!("prompt: {}", self.body(text)?),
            EventKind::Prompted {
                text,
                turn: Some(turn),
            } => format!("message of turn {turn}: {}", self.body(text)?),
            EventKind::ToolsOffered { tools } => format!("tools available: {}", self.body(tools)?),
            EventKind::TrialFolder(folder) => end_of_folder(folder),
            EventKind::CallWithheld(name) => {
                format!(
                    "call of {} on {} withheld: not executed",
                    name.tool, name.server
                )
            }
            EventKind::ToolsSelected(selected) => chosen(selected),
            EventKind::ModelAsked(asked) => format!(
                "model {} request ({}): {}",
                asked.ask,
                asked.model,
                self.body(&asked.request)?
            ),
            EventKind::ModelFailed(failed) => format!(
                "model {} failed, attempt {}: {}",
                failed.ask, failed.attempt, failed.reason
            ),
            EventKind::ModelReplied(replied) => {
                format!(
                    "model {} replied: {}",
                    replied.ask,
                    self.body(&replied.turn)?
                )
            }
            EventKind::Replayed { ask, drifted } => {
                let changed = if *drifted {
                    "; the request differs from the recorded one"
                } else {
                    ""
                };
                format!("model {ask} replayed{changed}")
            }
            EventKind::AgentStarted(started) => {
                let version = after(", version ", started.version.as_deref().unwrap_or_default());
                let who = match started.purpose {
                    Purpose::Judge => "judge",
                    Purpose::Sampling => "sampling",
                    Purpose::User => "user",
                    Purpose::Agent | Purpose::Side => "agent",
                };
                format!("{who} started: {}{version}", started.command.join(" "))
            }
            EventKind::AgentWrote { line } => format!("agent wrote: {}", self.body(line)?),
            EventKind::AgentClaimed(claim) => {
                let arguments = claim.arguments.as_ref().map(|body| self.body(body));
                let arguments = after(" ", &arguments.transpose()?.unwrap_or_default());
                let detail = after(": ", claim.detail.as_deref().unwrap_or_default());
                let (tool, status) = (&claim.tool, word(&claim.status));
                format!("agent reports: {tool}{arguments} {status}{detail}")
            }
            EventKind::AgentEnded(ended) => format!("agent {}", ended.how),
            EventKind::AgentAnswered { text } => format!("answer: {}", self.body(text)?),
            EventKind::StepEnded(step) => {
                let output = step.output.as_ref().map(|output| self.body(output));
                let output = output.transpose()?.unwrap_or_default();
                let output = after(": ", output.trim_end());
                format!("step {} {}{output}", step.id, answer(&step.verdict))
            }
            EventKind::Graded(graded) => {
                let notes = after("; ", &graded.notes.join("; "));
                format!("check {} {}{notes}", graded.check, answer(&graded.verdict))
            }
            EventKind::Unknown(unknown) => {
                let content = Body::Text(unknown.content.clone().unwrap_or_default());
                let content = after(": ", &self.body(&content)?);
                format!(
                    "unknown event {} of a newer Proctor version{content}",
                    unknown.name
                )
            }
            _ => String::new(),
        })
    }

    fn body(&self, body: &Body) -> Result<String, RecordError> {
        Ok(match (self.run.body_bytes(body)?, body) {
            (Some(bytes), _) if bytes.len() > SHOWN && !self.args.full => {
                let left = bytes.len() - SHOWN;
                let text = String::from_utf8_lossy(&bytes[..SHOWN]);
                let text = text.trim_end_matches('\u{fffd}');
                format!("{text}… ({left} more bytes; show them with --full)")
            }
            (Some(bytes), _) => String::from_utf8_lossy(&bytes).into_owned(),
            (None, Body::Cut { bytes, sha256 }) => {
                format!("({bytes} bytes, not recorded; SHA-256 {sha256})")
            }
            (None, _) => "(not in the record)".to_owned(),
        })
    }
}

/// Whether an event is a finding, also of a kind that only a newer version knows.
fn is_finding(what: &EventKind) -> bool {
    match what {
        EventKind::Finding(_) => true,
        EventKind::Unknown(unknown) => unknown.name == "finding",
        _ => false,
    }
}

/// `1 tool`, `2 tools`.
fn count(number: u64, noun: &str) -> String {
    let s = if number == 1 { "" } else { "s" };
    format!("{number} {noun}{s}")
}

fn end_of_folder(folder: &TrialFolder) -> String {
    match (folder.kept, &folder.reason) {
        (true, None) => format!("folder kept: {}", folder.path),
        (true, Some(reason)) => format!("folder can't be removed: {}: {reason}", folder.path),
        (false, _) => format!("folder removed: {}", folder.path),
    }
}

fn compared_surface(compared: &SurfaceCompared) -> String {
    let changes = compared.changes.iter();
    let lines: Vec<String> = changes
        .map(|change| contract::line(&compared.server, change))
        .collect();
    format!(
        "server {} compared with its surface lock: {} {}",
        compared.server,
        count(lines.len() as u64, "change"),
        lines.join("; ")
    )
}

fn chosen(selected: &ToolsSelected) -> String {
    let names: Vec<&str> = selected.calls.iter().map(|c| c.tool.as_str()).collect();
    match &names[..] {
        [] => "chose no tool".to_owned(),
        names => format!("chose {}, not executed", names.join(", ")),
    }
}

/// A text with a prefix, or nothing if the text is empty.
fn after(mark: &str, text: &str) -> String {
    match text {
        "" => String::new(),
        text => format!("{mark}{text}"),
    }
}

fn answer(verdict: &Verdict) -> String {
    match verdict {
        Verdict::Pass => "passed".to_owned(),
        Verdict::Fail { reason } => format!("failed: {reason}"),
        Verdict::Unknown { reason } => format!("unknown: {reason}"),
    }
}

fn arrow(direction: Direction) -> &'static str {
    match direction {
        Direction::ToServer => "→",
        Direction::ToClient => "←",
    }
}

/// The word that the record uses.
fn word(value: &impl serde::Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(word)) => word,
        _ => "?".to_owned(),
    }
}
