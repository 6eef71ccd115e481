//! A trial as a conversation: prompt, model turns, calls with results, answer, then the checks.
//!
//! Main function: [`render`]. It shows a [`FoldedTrial`] and reads no events. No line is wider than the
//! terminal, text from outside is printable, and words say what colours say.

mod calls;
mod checks;
mod follow;
mod screen;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use anstyle::{AnsiColor, Style};
use proctor_core::duration;
use proctor_core::event::{AgentClaimed, CheckPlace, Claim, Outcome, Phase};
use proctor_core::fold::{ClippedText, FoldOptions, FoldedTrial, ModelTurn, TurnReply};
use proctor_core::hint::listed;
use proctor_core::transcript::{Call, CallRequest};
use proctor_core::verdict::Verdict;

pub use self::follow::Follower;
use self::screen::Screen;
use crate::terminal::TerminalStyle;
use crate::words;

const GOOD: Style = AnsiColor::Green.on_default().bold();
const BAD: Style = AnsiColor::BrightRed.on_default().bold();
const DOUBTFUL: Style = AnsiColor::BrightYellow.on_default().bold();
const STRONG: Style = Style::new().bold();
const FAINT: Style = Style::new().dimmed();

/// How a conversation is shown.
#[derive(Debug, Clone, Copy)]
pub struct ConversationOptions {
    pub style: TerminalStyle,
    /// Whether long texts are shown whole. Otherwise their middle is left out.
    pub full: bool,
}

/// Which trial it is, in the words of reports.
#[derive(Debug, Clone)]
pub struct TrialHeading {
    /// The name of the case.
    pub case: String,
    pub agent: Option<String>,
    pub repeat: u32,
    /// The number of trials that were planned for the case and the agent.
    pub runs: u32,
    pub attempt: u32,
    /// Where the checks of the case are written.
    pub places: Arc<[CheckPlace]>,
}

impl TrialHeading {
    /// The agent, and the number of the trial if there are several.
    fn facts(&self) -> Vec<String> {
        let mut facts = Vec::new();
        facts.extend(self.agent.as_ref().map(|agent| format!("agent {agent}")));
        if self.runs > 1 {
            facts.push(format!("trial {} of {}", self.repeat, self.runs));
        }
        if self.attempt > 1 {
            facts.push(format!("attempt {}", self.attempt));
        }
        facts
    }
}

impl ConversationOptions {
    /// The options for the fold that [`render`] shows.
    pub fn fold_options(&self) -> FoldOptions {
        let defaults = FoldOptions::default();
        FoldOptions {
            text_bytes: if self.full {
                32 * 1024 * 1024
            } else {
                defaults.text_bytes
            },
            turns: true,
            ..defaults
        }
    }
}

/// Renders one trial.
pub fn render(
    heading: &TrialHeading,
    folded: &FoldedTrial,
    options: &ConversationOptions,
) -> String {
    let mut screen = Screen::new(options);
    let conversation = Conversation {
        folded,
        decides: decides(folded),
    };
    conversation.head(&mut screen, heading);
    conversation.steps(&mut screen, |phase| phase == Phase::Setup);
    Conversation::text(&mut screen, "Prompt", folded.work.prompt.as_ref());
    conversation.timeline(&mut screen);
    conversation.end(&mut screen);
    checks::render(&mut screen, folded, &heading.places);
    conversation.steps(&mut screen, not_graded);
    conversation.findings(&mut screen);
    screen.into_text()
}

/// Whether the steps of a phase are shown after the checks. Those that grade are checks.
fn not_graded(phase: Phase) -> bool {
    !matches!(phase, Phase::Setup | Phase::Grade)
}

/// The checks that each call decides, by the number of the call.
fn decides(folded: &FoldedTrial) -> BTreeMap<u64, Vec<&str>> {
    let mut out: BTreeMap<u64, Vec<&str>> = BTreeMap::new();
    for check in &folded.work.checks {
        for seq in &check.evidence {
            let checks = out.entry(*seq).or_default();
            if !checks.contains(&check.check.as_str()) {
                checks.push(&check.check);
            }
        }
    }
    out
}

struct Conversation<'a> {
    folded: &'a FoldedTrial,
    decides: BTreeMap<u64, Vec<&'a str>>,
}

/// A part of the conversation.
enum Item<'a> {
    Turn(&'a ModelTurn),
    Call(&'a Call),
    Claim(u64, &'a AgentClaimed),
}

impl Item<'_> {
    fn seq(&self) -> u64 {
        match self {
            Self::Turn(turn) => turn.seq,
            Self::Call(call) => call.seq,
            Self::Claim(seq, _) => *seq,
        }
    }
}

impl Conversation<'_> {
    fn title(screen: &mut Screen, (label, style): (&str, Style), case: &str, facts: &[String]) {
        let text = match facts.join(", ").as_str() {
            "" => case.to_owned(),
            facts => format!("{case}  ({facts})"),
        };
        screen.title(label, style, &text);
    }

    fn head(&self, screen: &mut Screen, heading: &TrialHeading) {
        let work = &self.folded.work;
        let (label, style) = match work.ended.as_ref().map(|ended| ended.outcome) {
            Some(Outcome::Passed) => ("PASS", GOOD),
            Some(Outcome::Failed) => ("FAIL", BAD),
            Some(Outcome::TimedOut) => ("TIMED OUT", BAD),
            Some(Outcome::Errored) => ("ERROR", DOUBTFUL),
            Some(Outcome::Cancelled) => ("CANCELLED", DOUBTFUL),
            None => ("UNFINISHED", DOUBTFUL),
        };
        let mut facts = heading.facts();
        let blame = work.ended.as_ref().and_then(|ended| ended.blame);
        facts.extend(blame.map(|blame| format!("blame: {}", words::blame(blame))));
        facts.extend(words::time(work.duration));
        Self::title(screen, (label, style), &heading.case, &facts);
        if let Some(reason) = work.ended.as_ref().and_then(|ended| ended.reason.as_ref()) {
            screen.block(2, reason, None);
        }
        let calls = words::count(self.folded.transcript.calls.len() as u64, "call");
        let turns = words::count(u64::from(work.agent.turns), "model turn");
        let tokens = words::tokens(&work.agent);
        screen.line(
            2,
            &format!("{calls}, {turns}, tokens: {tokens}"),
            Some(FAINT),
        );
        screen.blank();
    }

    fn text(screen: &mut Screen, title: &str, text: Option<&ClippedText>) {
        if let Some(text) = text {
            screen.line(0, title, Some(STRONG));
            screen.block(2, &text.to_string(), None);
            screen.blank();
        }
    }

    /// Turns, calls and claims of the agent, in the order of the record.
    fn items(&self) -> Vec<Item<'_>> {
        let folded = self.folded;
        let mut items: Vec<Item> = Vec::new();
        items.extend(folded.turns.iter().map(Item::Turn));
        items.extend(folded.transcript.calls.iter().map(Item::Call));
        let external = folded.work.external.as_ref();
        let claims = external.map_or(&[][..], |external| &external.claims);
        let claims = claims.iter().filter(|(_, claim)| self.adds(claim));
        items.extend(claims.map(|(seq, claim)| Item::Claim(*seq, claim)));
        items.sort_by_key(Item::seq);
        items
    }

    fn item(&self, screen: &mut Screen, item: &Item<'_>) {
        match item {
            Item::Turn(turn) => self.turn(screen, turn),
            Item::Call(call) => self.call(screen, call),
            Item::Claim(seq, claim) => claimed(screen, *seq, claim),
        }
    }

    fn timeline(&self, screen: &mut Screen) {
        let items = self.items();
        for item in &items {
            self.item(screen, item);
            screen.blank();
        }
        if items.is_empty() {
            screen.line(0, "no calls; `--raw` shows every message", Some(FAINT));
            screen.blank();
        }
    }

    /// Whether a claim of the agent says more than the recorded calls: it was denied or failed, or names
    /// a tool of the agent's own.
    fn adds(&self, claim: &AgentClaimed) -> bool {
        let is_recorded = |call: &Call| match &call.request {
            CallRequest::Tool { name, .. } => claim.tool.ends_with(name.as_str()),
            CallRequest::Resource { .. } | CallRequest::Prompt { .. } => false,
        };
        match claim.status {
            Claim::Denied => true,
            Claim::Completed | Claim::Failed | Claim::Unknown => {
                !self.folded.transcript.calls.iter().any(is_recorded)
            }
        }
    }

    fn call(&self, screen: &mut Screen, call: &Call) {
        let decides = self.decides.get(&call.seq);
        let decides = decides.map(|checks| format!("decides {}", checks.join(", ")));
        calls::render(screen, call, decides.as_deref());
    }

    fn turn(&self, screen: &mut Screen, turn: &ModelTurn) {
        let time = turn.micros.map(Duration::from_micros).map(duration::brief);
        let mut facts = Vec::from_iter(time);
        match &turn.reply {
            TurnReply::Failed { attempt, reason } => {
                // The time counts from the request, so it includes the waits between attempts.
                let mut facts: Vec<String> = facts.iter().map(|t| format!("after {t}")).collect();
                facts.insert(0, format!("attempt {attempt}"));
                screen.numbered(turn.seq, "Model failed", BAD, &facts.join(", "));
                screen.block(2, reason, None);
            }
            TurnReply::Unreadable => {
                screen.numbered(turn.seq, "Model", STRONG, &facts.join(", "));
                screen.line(2, "the record does not hold this turn", Some(FAINT));
            }
            TurnReply::Said { text, calls, usage } => {
                if let (Some(input), Some(output)) = (usage.input, usage.output) {
                    let (input, output) = (words::thousands(input), words::thousands(output));
                    facts.push(format!("tokens: {input} in, {output} out"));
                }
                let is_answer = self.is_answer(turn);
                let title = if is_answer { "Answer" } else { "Model" };
                screen.numbered(turn.seq, title, STRONG, &facts.join(", "));
                screen.block(2, &text.to_string(), None);
                if !calls.is_empty() {
                    let tools = listed(calls.iter().map(|call| call.tool.as_str()));
                    screen.line(2, &format!("calls {tools}"), Some(FAINT));
                }
                for call in calls.iter().filter(|call| call.offered == Some(false)) {
                    let text = format!("invented tool: `{}` was not offered", call.tool);
                    screen.line(2, &text, Some(BAD));
                }
                for call in calls {
                    if let Some(reason) = &call.malformed {
                        let text = format!("malformed arguments of `{}`: {reason}", call.tool);
                        screen.line(2, &text, Some(BAD));
                    }
                }
            }
        }
    }

    /// Whether the turn is the agent's final answer, which is then not shown twice.
    fn is_answer(&self, turn: &ModelTurn) -> bool {
        let is_last = self.folded.turns.last() == Some(turn);
        let TurnReply::Said { text, calls, .. } = &turn.reply else {
            return false;
        };
        is_last && calls.is_empty() && self.folded.work.answer.as_ref() == Some(text)
    }

    fn end(&self, screen: &mut Screen) {
        let folded = self.folded;
        let is_shown = folded.turns.last().is_some_and(|turn| self.is_answer(turn));
        if !is_shown {
            Self::text(screen, "Answer", folded.work.answer.as_ref());
        }
        let unread = folded.transcript.unread.iter();
        for message in unread {
            screen.numbered(message.seq, "Unreadable call", BAD, &message.to_string());
        }
        if let Some(torn) = &folded.torn {
            let bytes = words::thousands(torn.bytes);
            let text = format!("the last line of the record is incomplete: {bytes} bytes skipped");
            screen.line(0, &text, Some(DOUBTFUL));
        }
        screen.blank();
    }

    /// Steps around the agent's work. Steps that grade are checks.
    fn steps(&self, screen: &mut Screen, wanted: impl Fn(Phase) -> bool) {
        for step in self.folded.work.steps.iter().filter(|s| wanted(s.phase)) {
            let (label, style) = checks::label(&step.verdict);
            let mut facts = vec![step.kind.clone()];
            facts.extend(words::time(step.duration));
            let text = format!("{} {} ({})", step.phase, step.id, facts.join(", "));
            screen.title(label, style, &text);
            match &step.verdict {
                Verdict::Pass => {}
                Verdict::Fail { reason } | Verdict::Unknown { reason } => {
                    screen.block(2, reason, None);
                }
            }
            if let Some(output) = step
                .output
                .as_ref()
                .filter(|_| step.verdict != Verdict::Pass)
            {
                screen.block(2, &output.to_string(), Some("| "));
            }
        }
        screen.blank();
    }

    fn findings(&self, screen: &mut Screen) {
        if self.folded.findings.is_empty() {
            return;
        }
        screen.line(0, "Protocol problems", Some(STRONG));
        for finding in &self.folded.findings {
            let times = match finding.count {
                0 | 1 => String::new(),
                count => format!(" ({}×)", words::thousands(count)),
            };
            let server = self.folded.work.server(finding.conn).unwrap_or("?");
            screen.line(2, &format!("{server}: {}{times}", finding.detail), None);
        }
        screen.blank();
    }
}

fn claimed(screen: &mut Screen, seq: u64, claim: &AgentClaimed) {
    let (title, style) = match claim.status {
        Claim::Denied => ("Denied", BAD),
        Claim::Failed => ("Agent's own tool failed", DOUBTFUL),
        Claim::Completed | Claim::Unknown => ("Agent's own tool", STRONG),
    };
    screen.numbered(seq, title, style, &claim.tool);
    if let Some(detail) = &claim.detail {
        screen.block(2, detail, None);
    }
}
