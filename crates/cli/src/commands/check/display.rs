//! The progress of a run on stderr: progress bars on a terminal, plain lines elsewhere.
//!
//! Its main type is [`Display`]. It knows only the [`Progress`] updates. It can't fail: a closed terminal
//! must not stop a run.

use std::collections::BTreeMap;
use std::time::Duration;

use anstyle::{AnsiColor, Style};
use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use proctor_core::printable::printable;
use proctor_record::duration;
use proctor_record::event::{Outcome, TrialEnded};
use proctor_record::redact::Redactor;
use proctor_run::engine::TrialLabels;
use proctor_run::progress::Progress;

use crate::args::{ReportFormat, RunArgs};
use crate::commands::counted;
use crate::output;

/// The maximum number of running trials with their own line.
const LINES: usize = 8;

/// The maximum length of a reason in one line, in bytes.
const REASON: usize = 300;

/// Shows the progress of a run.
pub(super) struct Display {
    /// The lines about the plan, which come first.
    heading: String,
    labels: TrialLabels,
    /// One for each suite.
    redactors: Vec<Redactor>,
    verbose: bool,
    /// Whether lines say why a trial did not pass. A report for people says it anyway.
    tells_why: bool,
    terminal: Option<Terminal>,
    done: usize,
    tally: BTreeMap<&'static str, usize>,
    /// Lines that are not written yet. There are none on a terminal.
    lines: String,
}

/// The progress bars on a terminal.
struct Terminal {
    all: MultiProgress,
    bar: ProgressBar,
    running: BTreeMap<usize, ProgressBar>,
}

impl Display {
    pub(super) fn new(
        labels: TrialLabels,
        redactors: Vec<Redactor>,
        flags: &RunArgs,
        is_terminal: bool,
    ) -> Self {
        let terminal = is_terminal.then(|| Terminal::new(labels.count()));
        Self {
            heading: String::new(),
            labels,
            redactors,
            verbose: flags.verbose,
            tells_why: flags.verbose || flags.output.output != ReportFormat::Text,
            terminal,
            done: 0,
            tally: BTreeMap::new(),
            lines: String::new(),
        }
    }

    /// Adds lines about the plan. They are shown with the progress, since a blocked terminal must not keep the
    /// run from starting.
    pub(super) fn with_heading(self, heading: String) -> Self {
        Self { heading, ..self }
    }

    /// Shows the lines about the plan.
    pub(super) fn begin(&mut self) {
        if !self.heading.is_empty() {
            let heading = std::mem::take(&mut self.heading);
            self.line(heading.trim_end());
            self.flush();
        }
    }

    /// Whether it shows the phases and calls of trials.
    pub(super) fn is_detailed(&self) -> bool {
        self.verbose || self.terminal.is_some()
    }

    /// Shows one update.
    pub(super) fn take(&mut self, progress: &Progress) {
        match progress {
            Progress::Started { trial } => {
                let name = self.name(*trial);
                if let Some(terminal) = &mut self.terminal {
                    terminal.start(*trial, &name);
                } else if self.verbose {
                    self.line(&format!("          start    {name}"));
                }
            }
            Progress::Phase { trial, phase } => self.note(*trial, phase.name()),
            Progress::Called { trial, called } => {
                let what = match called.server.as_str() {
                    "" => called.name.clone(),
                    server => format!("{server}.{}", called.name),
                };
                self.note(*trial, &format!("calls {what}"));
            }
            Progress::Ended {
                trial,
                ended,
                duration,
            } => self.ended(*trial, ended, *duration),
            Progress::NotNeeded { trial } => {
                self.done += 1;
                if self.verbose {
                    let name = self.name(*trial);
                    self.line(&format!("          decided  {name} is not needed"));
                }
            }
            Progress::Stopping { reason } => {
                let reason = self.shown(reason);
                self.line(&match reason.strip_prefix("stopped ") {
                    Some(why) => format!("stopping {why}"),
                    None => format!("stopping: {reason}; cleaning up running trials"),
                });
            }
        }
    }

    /// Counts trials whose lines were skipped because the terminal was blocked.
    pub(super) fn skipped(&mut self, outcomes: &[Outcome]) {
        if outcomes.is_empty() {
            return;
        }
        self.done += outcomes.len();
        for outcome in outcomes {
            *self.tally.entry(outcome_word(*outcome)).or_default() += 1;
        }
        let lines = counted(outcomes.len(), "line");
        self.line(&format!("({lines} skipped: the terminal was blocked)"));
    }

    /// Whether it has progress bars that need [`Display::tick`].
    pub(super) fn moves(&self) -> bool {
        self.terminal.is_some()
    }

    /// Redraws the progress bars.
    pub(super) fn tick(&self) {
        if let Some(terminal) = &self.terminal {
            terminal.bar.tick();
            terminal.running.values().for_each(ProgressBar::tick);
        }
    }

    /// Removes the progress bars.
    pub(super) fn finish(self) {
        if let Some(terminal) = self.terminal {
            terminal.bar.finish_and_clear();
            for bar in terminal.running.into_values() {
                bar.finish_and_clear();
            }
            // The terminal may be gone.
            let _ = terminal.all.clear();
        }
    }

    fn ended(&mut self, trial: usize, ended: &TrialEnded, took: Duration) {
        self.done += 1;
        *self.tally.entry(outcome_word(ended.outcome)).or_default() += 1;
        if let Some(terminal) = &mut self.terminal {
            let tally: Vec<String> = self.tally.iter().map(|(w, n)| format!("{n} {w}")).collect();
            terminal.end(trial, self.done, &tally.join(", "));
            if ended.outcome == Outcome::Passed && !self.verbose {
                return;
            }
        }
        let (done, all) = (self.done, self.labels.count());
        let took = duration::brief(took);
        let reason = ended.reason.as_deref().filter(|_| self.tells_why);
        let reason = reason.map_or(String::new(), |reason| format!(": {}", self.shown(reason)));
        let style = outcome_style(ended.outcome);
        let word = outcome_word(ended.outcome);
        let name = self.name(trial);
        let width = all.to_string().len();
        self.line(&format!(
            "{done:>width$}/{all} {style}{word:<9}{style:#} {name} ({took}){reason}"
        ));
    }

    fn note(&mut self, trial: usize, what: &str) {
        let what = self.shown(what);
        if let Some(terminal) = &self.terminal {
            terminal.note(trial, &what);
        } else if self.verbose {
            let name = self.name(trial);
            self.line(&format!("          {what:<8} {name}"));
        }
    }

    /// Writes a permanent line above the progress bars. Without a terminal, [`Display::flush`] writes it.
    fn line(&mut self, text: &str) {
        let write = |text: &str| drop(output::message(text));
        if let Some(terminal) = &self.terminal {
            terminal.all.suspend(|| write(&format!("{text}\n")));
        } else {
            self.lines.push_str(text);
            self.lines.push('\n');
        }
    }

    /// Writes the lines since the last flush at once.
    pub(super) fn flush(&mut self) {
        if !self.lines.is_empty() {
            // A closed stderr is not an error.
            let _ = output::message(&self.lines);
            self.lines.clear();
        }
    }

    fn name(&self, trial: usize) -> String {
        printable(&self.labels.label(trial)).into_owned()
    }

    /// A text from outside, redacted, shortened and on one line.
    fn shown(&self, text: &str) -> String {
        let mut head = text.to_owned();
        for redactor in &self.redactors {
            head = redactor.text(&head).into_owned();
        }
        if let Some(redactor) = self.redactors.last() {
            head = redactor.head(head.as_bytes(), REASON);
        }
        let lines: Vec<&str> = head.lines().map(str::trim).collect();
        printable(&lines.join(" ")).into_owned()
    }
}

impl Terminal {
    fn new(trials: usize) -> Self {
        let all = MultiProgress::with_draw_target(ProgressDrawTarget::stderr());
        let bar = all.add(ProgressBar::new(trials as u64));
        bar.set_style(style("{bar:30} {pos}/{len} trials, {elapsed} {wide_msg}"));
        Self {
            all,
            bar,
            running: BTreeMap::new(),
        }
    }

    fn start(&mut self, trial: usize, name: &str) {
        if self.running.len() >= LINES {
            return;
        }
        let line = self.all.add(ProgressBar::new_spinner());
        line.set_style(style("{spinner} {prefix} {elapsed} {wide_msg}"));
        line.set_prefix(name.to_owned());
        self.running.insert(trial, line);
    }

    fn note(&self, trial: usize, what: &str) {
        if let Some(line) = self.running.get(&trial) {
            line.set_message(what.to_owned());
        }
    }

    fn end(&mut self, trial: usize, done: usize, tally: &str) {
        if let Some(line) = self.running.remove(&trial) {
            line.finish_and_clear();
            self.all.remove(&line);
        }
        self.bar.set_position(done as u64);
        self.bar.set_message(tally.to_owned());
    }
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}

fn outcome_word(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Passed => "passed",
        Outcome::Failed => "failed",
        Outcome::TimedOut => "timed-out",
        Outcome::Errored => "errored",
        Outcome::Cancelled => "cancelled",
    }
}

fn outcome_style(outcome: Outcome) -> Style {
    let colour = match outcome {
        Outcome::Passed => AnsiColor::Green,
        Outcome::Failed | Outcome::TimedOut => AnsiColor::Red,
        Outcome::Errored | Outcome::Cancelled => AnsiColor::Yellow,
    };
    Style::new().fg_color(Some(colour.into()))
}
