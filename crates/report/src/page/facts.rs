//! What the index tells about trials beyond their results.
//!
//! The main type is [`TrialFacts`]. Outcomes never come from here: they are those of the summary.

use std::collections::HashMap;
use std::path::Path;

use proctor_core::coverage::{Coverage, CoverageCounter};
use proctor_record::event::{ServerSeen, TrialStarted};
use proctor_record::index::{self, IndexEntry, IndexScrutiny};
use proctor_record::record::{RecordError, RunReader};
use proctor_record::verdict::Verdict;

/// Facts about the trials of a run, taken from its index.
#[derive(Debug, Default)]
pub struct TrialFacts {
    attempts: HashMap<String, AttemptFacts>,
    /// The attempts without an end, by case and repeat.
    unfinished: HashMap<(String, u32), Vec<UnfinishedAttempt>>,
    counter: CoverageCounter,
}

/// An attempt without an end.
#[derive(Debug)]
struct UnfinishedAttempt {
    agent: Option<String>,
    file: String,
}

/// Facts about one attempt.
#[derive(Debug, Default)]
pub(super) struct AttemptFacts {
    /// When it started, in microseconds since the run started.
    pub(super) began_at: u64,
    pub(super) calls: u64,
    /// The tools, resources and prompts that the agent used, as `server.name`.
    pub(super) tools: Vec<String>,
    /// The names of the checks that did not pass.
    pub(super) unmet: Vec<String>,
}

impl TrialFacts {
    /// Reads the index of a run.
    pub fn load(run: &RunReader) -> Result<Self, RecordError> {
        let mut facts = Self::default();
        index::each(run, IndexScrutiny::Length, |_, entry| facts.add(&entry))?;
        Ok(facts)
    }

    /// Adds an entry of the index, such as
    /// [`Summary::observed`](proctor_core::summary::Summary::observed) shows.
    pub fn add(&mut self, entry: &IndexEntry) {
        self.counter.add(entry);
        let attempt = &entry.attempt;
        // The rename to this extension ends a trial.
        let extension = Path::new(&entry.file).extension();
        if extension.is_none_or(|extension| extension != "jsonl")
            && let Some(TrialStarted {
                case,
                agent,
                repeat,
                ..
            }) = attempt.trial.clone()
        {
            let files = self.unfinished.entry((case, repeat)).or_default();
            let file = entry.file.clone();
            files.push(UnfinishedAttempt { agent, file });
        }
        let calls = attempt.calls.iter();
        let tools = calls.map(|call| format!("{}.{}", call.server, call.name));
        let unmet = attempt.checks.iter();
        let unmet = unmet.filter(|check| check.verdict != Verdict::Pass);
        let facts = AttemptFacts {
            began_at: attempt.began_at,
            calls: attempt.calls.iter().map(|call| call.count).sum::<u64>() + attempt.other_calls,
            tools: tools.collect(),
            unmet: unmet.map(|check| check.check.clone()).collect(),
        };
        self.attempts.insert(entry.file.clone(), facts);
    }

    /// The coverage by tools, resources and prompts, without arguments. A second call finds no calls.
    pub fn take_coverage(
        &mut self,
        run: &RunReader,
        servers: &[ServerSeen],
    ) -> Result<Coverage, RecordError> {
        std::mem::take(&mut self.counter).finish(run, servers)
    }

    /// The file of a trial that has begun and not ended.
    pub fn unfinished(&self, case: &str, agent: &str, repeat: u32) -> Option<&str> {
        let files = self.unfinished.get(&(case.to_owned(), repeat))?;
        let is_meant = |named: &Option<String>| named.as_deref().is_none_or(|name| name == agent);
        let found = files.iter().rfind(|attempt| is_meant(&attempt.agent));
        found.map(|attempt| attempt.file.as_str())
    }

    pub(super) fn attempt(&self, file: &str) -> Option<&AttemptFacts> {
        self.attempts.get(file)
    }
}
