//! The difference between two moments of a run, for pages that show the earlier one.
//!
//! The main type is [`Patch`]. Rows carry their texts, so a page does not depend on how the server numbers them.

use std::collections::BTreeMap;

use proctor_report::page::{Overview, TrialColumns};
use serde::Serialize;
use serde_json::{Value, json};

use super::snapshot::{RunStatus, Snapshot};

/// What changed after a revision.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Patch<'a> {
    revision: u64,
    status: &'a RunStatus,
    /// Whether the page must load everything again.
    is_reset: bool,
    /// The overview without its rows.
    #[serde(skip_serializing_if = "Option::is_none")]
    overview: Option<Value>,
    rows: ChangedRows,
}

/// The rows that changed, column by column.
#[derive(Debug, Default, Serialize)]
struct ChangedRows {
    /// The positions of the rows.
    at: Vec<usize>,
    columns: BTreeMap<&'static str, Vec<Value>>,
}

/// Numbers a new snapshot, and marks the rows that changed after the one before. `next` is a number that no snapshot
/// has yet.
pub(super) fn number(new: &mut Snapshot, before: Option<&Snapshot>, next: u64) {
    let is_same = |before: &&Snapshot| {
        let (one, other) = (&before.overview, &new.overview);
        one.run.started == other.run.started && is_same_plan(&one.trials, &other.trials)
    };
    let Some(before) = before.filter(is_same) else {
        new.revision = next;
        new.planned = next;
        new.changed.fill(next);
        return;
    };
    new.planned = before.planned;
    new.revision = before.revision;
    if head(&before.overview) != head(&new.overview) || before.status != new.status {
        new.revision = next;
    }
    for row in 0..new.changed.len() {
        let is_changed = row_of(&before.overview, row) != row_of(&new.overview, row);
        if is_changed {
            new.revision = next;
        }
        new.changed[row] = if is_changed {
            next
        } else {
            before.changed[row]
        };
    }
}

/// What a page that shows a revision needs; `None` if it is up to date.
pub(super) fn since(snapshot: &Snapshot, revision: u64) -> Option<Patch<'_>> {
    if revision == snapshot.revision {
        return None;
    }
    // The page shows another run, or another process served it.
    let is_reset = revision < snapshot.planned || revision > snapshot.revision;
    let mut rows = ChangedRows::default();
    if !is_reset {
        for (row, changed) in snapshot.changed.iter().enumerate() {
            if *changed > revision {
                rows.add(&snapshot.overview, row);
            }
        }
    }
    Some(Patch {
        revision: snapshot.revision,
        status: &snapshot.status,
        is_reset,
        overview: (!is_reset).then(|| head(&snapshot.overview)),
        rows,
    })
}

impl ChangedRows {
    fn add(&mut self, overview: &Overview, row: usize) {
        self.at.push(row);
        for (column, value) in COLUMNS.into_iter().zip(row_of(overview, row)) {
            self.columns.entry(column).or_default().push(value);
        }
    }
}

/// Whether the rows of two overviews mean the same trials.
fn is_same_plan(one: &TrialColumns, other: &TrialColumns) -> bool {
    one.case == other.case && one.agent == other.agent && one.repeat == other.repeat
}

/// The columns of a row that can change.
const COLUMNS: [&str; 14] = [
    "attempts", "outcome", "blame", "began", "duration", "input", "output", "cost", "calls",
    "cause", "check", "reason", "tools", "unmet",
];

/// The values of a row, with its texts.
fn row_of(overview: &Overview, row: usize) -> [Value; COLUMNS.len()] {
    // Without `..`: a new column must be sent too.
    let TrialColumns {
        case: _,
        agent: _,
        repeat: _,
        attempts,
        outcome,
        blame,
        began,
        duration,
        input,
        output,
        cost,
        calls,
        check,
        reason,
        cause,
        tools,
        unmet,
    } = &overview.trials;
    let text = |column: &[Option<usize>]| {
        let string = column.get(row).copied().flatten();
        json!(string.and_then(|string| overview.strings.get(string)))
    };
    let set = |column: &[Option<usize>]| {
        let set = column.get(row).copied().flatten();
        let set = set.and_then(|set| overview.sets.get(set));
        let texts = |set: &Vec<usize>| -> Vec<&String> {
            set.iter()
                .filter_map(|at| overview.strings.get(*at))
                .collect()
        };
        json!(set.map(texts))
    };
    [
        json!(attempts.get(row)),
        json!(outcome.get(row)),
        json!(blame.get(row)),
        json!(began.get(row)),
        json!(duration.get(row)),
        json!(input.get(row)),
        json!(output.get(row)),
        json!(cost.get(row)),
        json!(calls.get(row)),
        json!(cause.get(row)),
        text(check),
        text(reason),
        set(tools),
        set(unmet),
    ]
}

/// The overview without its rows.
fn head(overview: &Overview) -> Value {
    // Without the columns, which may be large.
    let short = Overview {
        trials: TrialColumns::default(),
        strings: Vec::new(),
        sets: Vec::new(),
        version: overview.version,
        run: overview.run.clone(),
        gate: overview.gate.clone(),
        counts: overview.counts,
        rate: overview.rate.clone(),
        agents: overview.agents.clone(),
        cases: overview.cases.clone(),
        worst_first: overview.worst_first.clone(),
        causes: overview.causes.clone(),
        selection: overview.selection.clone(),
        coverage: overview.coverage.clone(),
        servers: overview.servers.clone(),
        outcomes: overview.outcomes.clone(),
        blames: overview.blames.clone(),
    };
    let mut value = serde_json::to_value(short).unwrap_or_default();
    if let Some(fields) = value.as_object_mut() {
        for column in ["trials", "strings", "sets"] {
            fields.remove(column);
        }
    }
    value
}
