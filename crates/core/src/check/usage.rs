//! Counts how often the entries of a check were used.
//!
//! With `d` calls that count for certain and `p` that may, the count is anywhere from `d` to
//! `d + p`: the answer is certain only if it is the same for all of these.

use proctor_record::excerpt::excerpt;
use proctor_record::transcript::{CallRequest, Transcript};

use super::CheckResult;
use super::fit::{CallFit, NearMiss, fit, tool_calls};
use super::target::{NameMatcher, SkillMatcher, Times, ToolMatcher};
use super::wording::{called, distinct, label, listed, numbers};

/// How often each entry of a check was used.
pub(super) struct UsageCounts {
    tallies: Vec<EntryTally>,
    /// The verb for messages: called, read, used or loaded.
    deed: &'static str,
    /// A list of everything that was used.
    used: String,
}

/// How often one entry was used.
struct EntryTally {
    entry: String,
    times: Times,
    certain: Vec<u64>,
    possible: Vec<(u64, String)>,
    nearest: Option<(u64, NearMiss)>,
}

pub(super) fn tools(entries: &[ToolMatcher], transcript: &Transcript) -> UsageCounts {
    let calls = tool_calls(transcript);
    let tally = |entry: &ToolMatcher| {
        let mut tally = EntryTally::new(entry.to_string(), entry.times);
        for tool in &calls {
            tally.add(tool.call.seq, fit(entry, *tool));
        }
        tally
    };
    UsageCounts {
        tallies: entries.iter().map(tally).collect(),
        deed: "called",
        used: called(&calls),
    }
}

pub(super) fn resources(entries: &[NameMatcher], transcript: &Transcript) -> UsageCounts {
    let uri = |request: &CallRequest| match request {
        CallRequest::Resource { uri } => Some(uri.clone()),
        CallRequest::Tool { .. } | CallRequest::Prompt { .. } => None,
    };
    named(entries, transcript, uri, "resource", "read")
}

pub(super) fn prompts(entries: &[NameMatcher], transcript: &Transcript) -> UsageCounts {
    let name = |request: &CallRequest| match request {
        CallRequest::Prompt { name, .. } => Some(name.clone()),
        CallRequest::Tool { .. } | CallRequest::Resource { .. } => None,
    };
    named(entries, transcript, name, "prompt", "used")
}

fn named(
    entries: &[NameMatcher],
    transcript: &Transcript,
    name_of: impl Fn(&CallRequest) -> Option<String>,
    noun: &str,
    deed: &'static str,
) -> UsageCounts {
    let uses: Vec<(u64, &str, String)> = transcript
        .calls
        .iter()
        .filter_map(|call| Some((call.seq, call.server.as_str(), name_of(&call.request)?)))
        .collect();
    let tally = |entry: &NameMatcher| {
        let certain = uses
            .iter()
            .filter(|(_, server, name)| entry.matches(server, name));
        EntryTally {
            certain: certain.map(|(seq, ..)| *seq).collect(),
            ..EntryTally::new(entry.to_string(), Times::default())
        }
    };
    let labels = uses.iter().map(|(_, server, name)| label(server, name));
    UsageCounts {
        tallies: entries.iter().map(tally).collect(),
        deed,
        used: used(labels.collect(), noun, deed),
    }
}

/// `None` if the agent does not report which skills it loads.
pub(super) fn skills(entries: &[SkillMatcher], transcript: &Transcript) -> Option<UsageCounts> {
    let loads = transcript.skills.as_ref()?;
    let tally = |entry: &SkillMatcher| {
        let certain = loads.iter().filter(|load| entry.matches(&load.name));
        EntryTally {
            certain: certain.map(|load| load.seq).collect(),
            ..EntryTally::new(format!("skill {entry}"), Times::default())
        }
    };
    let labels = loads
        .iter()
        .map(|load| format!("`{}`", excerpt(&load.name)));
    Some(UsageCounts {
        tallies: entries.iter().map(tally).collect(),
        deed: "loaded",
        used: used(labels.collect(), "skill", "loaded"),
    })
}

fn used(labels: Vec<String>, noun: &str, deed: &str) -> String {
    if labels.is_empty() {
        format!("no {noun} was {deed}")
    } else {
        format!("{deed}: {}", distinct(labels))
    }
}

/// Every entry was used as often as it says.
pub(super) fn all(counts: &UsageCounts) -> CheckResult {
    if let Some(result) = counts.unusable() {
        return result;
    }
    let short = counts.with(CountStatus::Out);
    let open = counts.with(CountStatus::Open);
    if !short.is_empty() {
        return counts.failure(&short);
    }
    if !open.is_empty() {
        return doubt(&open);
    }
    CheckResult::pass(certain(&counts.with(CountStatus::In)))
}

/// At least one entry was used as often as it says.
pub(super) fn any(counts: &UsageCounts) -> CheckResult {
    if let Some(result) = counts.unusable() {
        return result;
    }
    let met = counts.with(CountStatus::In);
    if !met.is_empty() {
        return CheckResult::pass(certain(&met));
    }
    let open = counts.with(CountStatus::Open);
    if !open.is_empty() {
        return doubt(&open);
    }
    counts.failure(&counts.with(CountStatus::Out))
}

/// No entry was used as often as it says.
pub(super) fn none(counts: &UsageCounts) -> CheckResult {
    if let Some(result) = counts.unusable() {
        return result;
    }
    let met = counts.with(CountStatus::In);
    if !met.is_empty() {
        let lines = met.iter().map(|tally| tally.offence(counts.deed));
        return CheckResult::fail(listed(lines.collect(), "\n"), certain(&met));
    }
    let open = counts.with(CountStatus::Open);
    if !open.is_empty() {
        return doubt(&open);
    }
    CheckResult::pass(Vec::new())
}

fn doubt(open: &[&EntryTally]) -> CheckResult {
    let possible = || open.iter().flat_map(|tally| &tally.possible);
    let lines = open.iter().filter_map(|tally| {
        let (seq, why) = tally.possible.first()?;
        Some(format!("{}: call #{seq} may match, but {why}", tally.entry))
    });
    CheckResult::unknown(
        listed(lines.collect(), "\n"),
        possible().map(|(seq, _)| *seq).collect(),
    )
}

fn certain(tallies: &[&EntryTally]) -> Vec<u64> {
    tallies
        .iter()
        .flat_map(|tally| tally.certain.iter().copied())
        .collect()
}

/// How an entry's count compares with its `times`.
#[derive(Clone, Copy, PartialEq, Eq)]
enum CountStatus {
    In,
    Out,
    Open,
}

impl UsageCounts {
    /// The result for lists that no transcript could pass or fail.
    fn unusable(&self) -> Option<CheckResult> {
        if self.tallies.is_empty() {
            return Some(CheckResult::nothing_to_check());
        }
        let contradiction = self.tallies.iter().find_map(|tally| {
            let why = tally.times.contradiction()?;
            Some(format!("{}: {why}", tally.entry))
        })?;
        Some(CheckResult::unknown(contradiction, Vec::new()))
    }

    fn with(&self, status: CountStatus) -> Vec<&EntryTally> {
        self.tallies
            .iter()
            .filter(|tally| tally.status() == status)
            .collect()
    }

    fn failure(&self, short: &[&EntryTally]) -> CheckResult {
        let mut lines: Vec<String> = short
            .iter()
            .map(|tally| tally.shortfall(self.deed))
            .collect();
        // What was used instead is the same for all entries that were never used.
        if let Some(at) = short.iter().position(|tally| tally.is_untouched()) {
            lines[at] = format!("{}; {}", lines[at], self.used);
        }
        let nearest = short.iter().filter_map(|tally| tally.nearest.as_ref());
        let mut evidence = certain(short);
        evidence.extend(nearest.map(|(seq, _)| *seq));
        CheckResult::fail(listed(lines, "\n"), evidence)
    }
}

impl EntryTally {
    fn new(entry: String, times: Times) -> Self {
        Self {
            entry,
            times,
            certain: Vec::new(),
            possible: Vec::new(),
            nearest: None,
        }
    }

    fn add(&mut self, seq: u64, fit: CallFit) {
        match fit {
            CallFit::Yes => self.certain.push(seq),
            CallFit::Maybe(why) => self.possible.push((seq, why)),
            CallFit::OtherTool => {}
            CallFit::No(miss) => {
                let nearer = |(_, best): &(u64, NearMiss)| miss.distance < best.distance;
                if self.nearest.as_ref().is_none_or(nearer) {
                    self.nearest = Some((seq, miss));
                }
            }
        }
    }

    fn status(&self) -> CountStatus {
        let count = |len: usize| u64::try_from(len).unwrap_or(u64::MAX);
        let low = count(self.certain.len());
        let high = count(self.certain.len() + self.possible.len());
        let (least, most) = (self.times.least(), self.times.most());
        if least <= low && high <= most {
            CountStatus::In
        } else if high < least || most < low {
            CountStatus::Out
        } else {
            CountStatus::Open
        }
    }

    fn is_untouched(&self) -> bool {
        self.certain.is_empty() && self.possible.is_empty() && self.nearest.is_none()
    }

    /// The reason why the entry's count is too low or too high.
    fn shortfall(&self, deed: &str) -> String {
        let Self { entry, times, .. } = self;
        let nearest = self
            .nearest
            .as_ref()
            .map(|(seq, miss)| format!("nearest is call #{seq}: {}", miss.reason));
        if self.certain.is_empty() && self.possible.is_empty() && *times == Times::default() {
            return match nearest {
                Some(nearest) => format!("{entry}: no call matches; {nearest}"),
                None => format!("{entry} was never {deed}"),
            };
        }
        let mut line = format!("{entry}: expected {times}, found {}", self.found());
        let too_few = self.times.most() > self.certain.len() as u64;
        if let (true, Some(nearest)) = (too_few, nearest) {
            line = format!("{line}; {nearest}");
        }
        line
    }

    /// The reason why a forbidden entry fails the check.
    fn offence(&self, deed: &str) -> String {
        let Self { entry, times, .. } = self;
        if *times == Times::default() {
            return format!("{entry} was {deed}: {}", numbers(&self.certain));
        }
        format!("{entry}: {times} forbidden, found {}", self.found())
    }

    fn found(&self) -> String {
        let mut found = self.certain.len().to_string();
        if !self.certain.is_empty() {
            found = format!("{found} ({})", numbers(&self.certain));
        }
        if !self.possible.is_empty() {
            let possible: Vec<u64> = self.possible.iter().map(|(seq, _)| *seq).collect();
            found = format!("{found}, plus {} that may match", numbers(&possible));
        }
        found
    }
}
