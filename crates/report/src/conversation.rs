//! A trial as a conversation: prompt, model turns, calls with results, answer, then the checks.
//!
//! The main type is [`Conversation`]. It shows a [`TrialOutline`] and gets the items of its timeline one by one, so that a long
//! trial need not be in memory; it reads no events. No line is wider than the terminal, text from outside is printable, and
//! words say what colours say.

mod calls;
mod checks;
mod follow;
mod screen;
mod steps;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use anstyle::{AnsiColor, Style};
use proctor_record::duration;
use proctor_record::event::{AgentClaimed, CheckPlace, Claim, Outcome, Phase};
use proctor_record::fold::{
    ClippedText, FoldOptions, ModelTurn, ServerRequest, TimelineItem, TrialOutline, TurnReply,
};
use proctor_record::hint::listed;
use proctor_record::transcript::Call;
use proctor_record::verdict::Verdict;

use self::checks::CallText;
pub use self::follow::Follower;
use self::screen::Screen;
pub use self::steps::run_steps;
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
    /// Whether the turns of the model are shown.
    pub turns: bool,
    /// The maximum number of turns and calls; all without it.
    pub max_items: Option<usize>,
    /// The maximum number of lines of a text, unless texts are shown whole; a few by default.
    pub max_lines: Option<usize>,
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
    /// The options for the fold that a [`Conversation`] shows.
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

/// Whether the steps of a phase are shown after the checks. Those that grade are checks.
fn not_graded(phase: Phase) -> bool {
    !matches!(phase, Phase::Setup | Phase::Grade)
}

/// A trial as text, piece by piece: its beginning, each [item](Conversation::item), and its [end](Conversation::finish).
pub struct Conversation<'a> {
    screen: Screen,
    outline: &'a TrialOutline,
    /// The checks that each call decides, by the number of the call.
    decides: BTreeMap<u64, Vec<&'a str>>,
    /// The calls that are shown with a check.
    evidence: BTreeSet<u64>,
    /// The text of each of them, as far as they are known.
    described: BTreeMap<u64, CallText>,
    /// Where the checks are written.
    places: Arc<[CheckPlace]>,
    /// The claims of the agent that are still to be shown, the last one first.
    claims: Vec<&'a (u64, AgentClaimed)>,
    is_empty: bool,
    /// Whether the turns of the model are shown.
    turns: bool,
    /// How many more turns and calls are shown, and how many were left out.
    room: usize,
    left_out: u64,
}

impl<'a> Conversation<'a> {
    /// Begins a trial with its outcome, setup and prompt.
    pub fn new(
        heading: &TrialHeading,
        outline: &'a TrialOutline,
        options: &ConversationOptions,
    ) -> Self {
        let mut conversation = Self::begin(heading, outline, options);
        conversation.head(heading);
        conversation.setup();
        conversation
    }

    fn begin(
        heading: &TrialHeading,
        outline: &'a TrialOutline,
        options: &ConversationOptions,
    ) -> Self {
        let work = &outline.folded.work;
        let mut decides: BTreeMap<u64, Vec<&str>> = BTreeMap::new();
        for check in &work.checks {
            for seq in &check.evidence {
                let checks = decides.entry(*seq).or_default();
                if !checks.contains(&check.check.as_str()) {
                    checks.push(&check.check);
                }
            }
        }
        let external = work.external.as_ref();
        let claims = external.map_or(&[][..], |external| &external.claims);
        let claims = claims.iter().rev();
        Self {
            screen: Screen::new(options),
            outline,
            decides,
            evidence: checks::evidence(&work.checks),
            described: BTreeMap::new(),
            places: Arc::clone(&heading.places),
            claims: claims.filter(|(_, claim)| adds(outline, claim)).collect(),
            is_empty: true,
            turns: options.turns,
            room: options.max_items.unwrap_or(usize::MAX),
            left_out: 0,
        }
    }

    /// The text since the last call of this function.
    pub fn take(&mut self) -> String {
        self.screen.take()
    }

    /// The length of the text that was not taken.
    pub fn waiting_bytes(&self) -> usize {
        self.screen.waiting_bytes()
    }

    /// Adds the next item of the timeline.
    pub fn item(&mut self, item: &TimelineItem) {
        self.claims_before(Some(item.seq()));
        self.is_empty = false;
        self.remember(item);
        if !self.turns && matches!(item, TimelineItem::Turn(_)) {
            return;
        }
        let Some(room) = self.room.checked_sub(1) else {
            self.left_out += 1;
            return;
        };
        self.room = room;
        match item {
            TimelineItem::Turn(turn) => self.turn(turn),
            TimelineItem::Call(call) => self.call(call),
            TimelineItem::ServerRequest(request) => server_request(&mut self.screen, request),
            TimelineItem::Message(message) => {
                let turn = format!("turn {}", message.turn);
                self.screen.numbered(message.seq, "User", STRONG, &turn);
                self.screen.block(2, &message.text.to_string(), None);
            }
        }
        self.screen.blank();
    }

    /// Ends the trial with its answer, checks and protocol problems.
    pub fn finish(&mut self) {
        self.claims_before(None);
        if self.is_empty {
            let text = "no calls; `--raw` shows every message";
            self.screen.line(0, text, Some(FAINT));
            self.screen.blank();
        }
        if self.left_out > 0 {
            let events = words::count(self.left_out, "more event");
            let text = format!("… {events} left out; `--max-events 0` shows all …");
            self.screen.line(0, &text, Some(FAINT));
            self.screen.blank();
        }
        self.conclusion();
    }

    fn conclusion(&mut self) {
        self.end();
        let folded = &self.outline.folded;
        let known = (&self.described, &*self.places);
        checks::render(&mut self.screen, folded, known);
        self.steps(not_graded);
        self.findings();
    }

    fn setup(&mut self) {
        self.steps(|phase| phase == Phase::Setup);
        self.text("Prompt", self.outline.folded.work.prompt.as_ref());
    }

    /// Shows the claims before an event, or all that are left. Returns the number of the last one, or zero.
    fn claims_before(&mut self, event: Option<u64>) -> u64 {
        let is_before =
            |claim: &mut &(u64, AgentClaimed)| event.is_none_or(|event| claim.0 < event);
        let mut last = 0;
        while let Some((seq, claim)) = self.claims.pop_if(is_before) {
            claimed(&mut self.screen, *seq, claim);
            self.screen.blank();
            self.is_empty = false;
            last = *seq;
        }
        last
    }

    /// Keeps the text of a call that a check refers to.
    fn remember(&mut self, item: &TimelineItem) {
        if let TimelineItem::Call(call) = item
            && self.evidence.contains(&call.seq)
            && !self.described.contains_key(&call.seq)
        {
            let text = checks::described(&self.screen, call);
            self.described.insert(call.seq, text);
        }
    }

    fn title(screen: &mut Screen, (label, style): (&str, Style), case: &str, facts: &[String]) {
        let text = match facts.join(", ").as_str() {
            "" => case.to_owned(),
            facts => format!("{case}  ({facts})"),
        };
        screen.title(label, style, &text);
    }

    fn head(&mut self, heading: &TrialHeading) {
        let screen = &mut self.screen;
        let work = &self.outline.folded.work;
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
        if let Some(folder) = &work.kept_folder {
            screen.line(2, &format!("folder kept: {folder}"), None);
        }
        let calls = words::count(self.outline.calls, "call");
        let turns = words::count(u64::from(work.agent.turns), "model turn");
        let tokens = words::tokens(&work.agent);
        screen.line(
            2,
            &format!("{calls}, {turns}, tokens: {tokens}"),
            Some(FAINT),
        );
        screen.blank();
    }

    fn text(&mut self, title: &str, text: Option<&ClippedText>) {
        if let Some(text) = text {
            self.screen.line(0, title, Some(STRONG));
            self.screen.block(2, &text.to_string(), None);
            self.screen.blank();
        }
    }

    fn call(&mut self, call: &Call) {
        let decides = self.decides.get(&call.seq);
        let decides = decides.map(|checks| format!("decides {}", checks.join(", ")));
        calls::render(&mut self.screen, call, decides.as_deref());
    }

    fn turn(&mut self, turn: &ModelTurn) {
        let is_answer = self.is_answer(turn);
        let screen = &mut self.screen;
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
        let is_last = self.outline.last_turn.as_ref() == Some(turn);
        let TurnReply::Said { text, calls, .. } = &turn.reply else {
            return false;
        };
        is_last && calls.is_empty() && self.outline.folded.work.answer.as_ref() == Some(text)
    }

    fn end(&mut self) {
        let folded = &self.outline.folded;
        let last = self.outline.last_turn.as_ref();
        let is_hidden = !self.turns || self.left_out > 0;
        if is_hidden || !last.is_some_and(|turn| self.is_answer(turn)) {
            self.text("Answer", folded.work.answer.as_ref());
        }
        let screen = &mut self.screen;
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
    fn steps(&mut self, wanted: impl Fn(Phase) -> bool) {
        let steps = self.outline.folded.work.steps.iter();
        for step in steps.filter(|step| wanted(step.phase)) {
            steps::render(&mut self.screen, "", step, step.verdict != Verdict::Pass);
        }
        self.screen.blank();
    }

    fn findings(&mut self) {
        let (screen, folded) = (&mut self.screen, &self.outline.folded);
        if folded.findings.is_empty() {
            return;
        }
        screen.line(0, "Protocol problems", Some(STRONG));
        for finding in &folded.findings {
            let times = match finding.count {
                0 | 1 => String::new(),
                count => format!(" ({}×)", words::thousands(count)),
            };
            let server = folded.work.server(finding.conn).unwrap_or("?");
            screen.line(2, &format!("{server}: {}{times}", finding.detail), None);
        }
        screen.blank();
    }
}

/// Whether a claim of the agent says more than the recorded calls: it was denied or failed, or names a tool of the agent's
/// own.
fn adds(outline: &TrialOutline, claim: &AgentClaimed) -> bool {
    let is_recorded = |name: &String| claim.tool.ends_with(name.as_str());
    match claim.status {
        Claim::Denied => true,
        Claim::Completed | Claim::Failed | Claim::Unknown => !outline.tools.iter().any(is_recorded),
    }
}

fn server_request(screen: &mut Screen, request: &ServerRequest) {
    let title = format!("{} asks", request.server);
    screen.numbered(request.seq, &title, STRONG, &request.method);
    screen.block(2, &request.text.to_string(), None);
    match &request.reply {
        Some(reply) => screen.block(2, &format!("→ {reply}"), None),
        None => screen.line(2, "no reply", Some(BAD)),
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
