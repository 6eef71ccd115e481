//! The filter of `proctor result show`, as written and as resolved.

use std::collections::BTreeSet;

use proctor_core::pattern::Pattern;
use proctor_core::plan::{LabelSelector, similar};
use proctor_core::printable::printable;
use proctor_core::summary::{Summary, TrialFilter};
use proctor_record::hint::{listed, nearest_hint};
use proctor_record::record::RunReader;
use proctor_report::ReportPart;

use crate::args::FilterArgs;

/// The maximum number of names in a message.
const NAMED: usize = 10;

/// A filter with at least one condition.
pub(in crate::commands) struct Filter {
    pub(in crate::commands) trials: TrialFilter,
    /// The flags, as a report shows them.
    pub(in crate::commands) words: String,
}

impl Filter {
    /// The filter of the command line; `None` without any flag.
    pub(super) fn resolve(args: &FilterArgs) -> anyhow::Result<Option<Self>> {
        let labels = args
            .label
            .as_deref()
            .map(LabelSelector::parse)
            .transpose()?;
        let trials = TrialFilter {
            failed: args.failed,
            case: args.case.clone(),
            agents: args.agents.clone(),
            labels,
        };
        let mut words = Vec::new();
        if args.failed {
            words.push("--failed".to_owned());
        }
        words.extend(
            args.case
                .iter()
                .map(|case| format!("--case {}", case.as_str())),
        );
        words.extend(args.agents.iter().map(|agent| format!("--agent {agent}")));
        words.extend(args.label.iter().map(|label| format!("--label {label}")));
        Ok((!trials.is_empty()).then(|| Self {
            trials,
            words: words.join(" "),
        }))
    }

    /// The part of a run that it selects, for a report.
    pub(in crate::commands) fn part(&self, whole: &Summary) -> ReportPart<'_> {
        ReportPart {
            filter: &self.words,
            trials: whole.trials().count(),
            by_outcome: self.trials.failed,
        }
    }

    /// The ids of the planned cases that it selects by their name.
    pub(in crate::commands) fn cases(&self, run: &RunReader) -> anyhow::Result<BTreeSet<String>> {
        let cases = Summary::planned(run)?.cases.into_iter();
        let pattern = self.trials.case.as_ref();
        let selected = cases.filter(|c| pattern.is_none_or(|p| p.is_match(&c.case.name)));
        Ok(selected.map(|case| case.case.id).collect())
    }

    /// The filter of `--task`, which selects cases by a part of their name, in any case.
    pub(in crate::commands) fn of_task(text: &str) -> anyhow::Result<Self> {
        let pattern = format!("(?i){}", Pattern::escape(text));
        Ok(Self {
            trials: TrialFilter {
                case: Some(Pattern::compile(&pattern)?),
                ..TrialFilter::default()
            },
            words: format!("--task {text}"),
        })
    }

    /// The message if no trial matches: which flag can't match, and what would.
    pub(in crate::commands) fn nothing_selected(&self, summary: &Summary) -> String {
        let agents: Vec<&str> = summary
            .plan
            .agents
            .iter()
            .map(|a| a.name.as_str())
            .collect();
        let mut text = format!("error: no trial matches `{}`", printable(&self.words));
        for name in &self.trials.agents {
            if !agents
                .iter()
                .any(|agent| TrialFilter::names_agent(name, agent))
            {
                let hint = nearest_hint(name, agents.iter().copied());
                text.push_str(&format!(
                    "\nhint: the run has no agent `{}`",
                    printable(name)
                ));
                text.push_str(
                    &hint.map_or(String::new(), |hint| format!("; {}", printable(&hint))),
                );
            }
        }
        if self.trials.failed {
            text.push_str("\nhint: `--failed` selects trials that failed, timed out or errored");
        }
        if let Some(pattern) = &self.trials.case {
            let names = summary.cases.iter().map(|case| case.case.name.as_str());
            let names: Vec<&str> = names.collect();
            if let Some(hint) = similar(pattern, names.iter().copied()) {
                text.push_str(&format!("\nhint: {}", printable(&hint)));
            }
            text.push_str(&format!("\nhint: cases: {}", some(&names)));
        }
        if let Some(selector) = &self.trials.labels {
            let known = summary.cases.iter().map(|case| &case.case.labels);
            for hint in selector.suggestions(known) {
                text.push_str(&format!("\nhint: {}", printable(&hint)));
            }
            let labels = summary.cases.iter().flat_map(|case| &case.case.labels);
            let labels: BTreeSet<String> = labels.map(|(k, v)| format!("{k}={v}")).collect();
            let labels: Vec<&str> = labels.iter().map(String::as_str).collect();
            text.push_str(&format!("\nhint: labels: {}", some(&labels)));
        }
        text.push('\n');
        text
    }
}

/// The first names of a list, and the number of the others.
fn some(names: &[&str]) -> String {
    if names.is_empty() {
        return "none".to_owned();
    }
    let shown = listed(names.iter().take(NAMED).copied());
    let shown = printable(&shown).into_owned();
    match names.len().saturating_sub(NAMED) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}
