//! The answer of a comparison in one sentence, always in the same words.

use proctor_record::hint::counted;

use super::{CellPair, Comparison, ComparisonAnswer, InconclusiveCause, MoreData};
use crate::pass_rule::TrialCounts;
use crate::statistics::{Difference, RegressionTest, TARGET_DROP};

/// The answer with its numbers. Names in it are quoted by `quote`, so that they can't become markup.
pub fn answer(comparison: &Comparison, quote: &dyn Fn(&str) -> String) -> String {
    match &comparison.answer {
        ComparisonAnswer::Regression => regression(comparison, quote),
        ComparisonAnswer::NoRegressionShown => no_regression(comparison),
        ComparisonAnswer::Inconclusive { cause, more } => {
            inconclusive(comparison, cause, *more, quote)
        }
    }
}

fn regression(comparison: &Comparison, quote: &dyn Fn(&str) -> String) -> String {
    let suite = suite(comparison);
    let regressed: Vec<_> = comparison
        .worse()
        .into_iter()
        .filter(|cell| comparison.is_regressed(cell))
        .collect();
    let of_suite = comparison
        .test
        .as_ref()
        .is_some_and(RegressionTest::suite_is_worse);
    // The surest one; the others follow in the list.
    match regressed.first() {
        Some(cell) if !of_suite => {
            let p = cell.test.map_or(1.0, |test| test.adjusted);
            let more = match regressed.len() - 1 {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            let tested = comparison
                .compared()
                .filter(|cell| cell.test.is_some())
                .count();
            format!(
                "Regression: {} {} → {}{more} ({} after Holm over {}); all cases: {suite}",
                quote(&cell.name),
                passed(cell.base),
                passed(cell.new),
                p_value(p),
                counted(tested, noun(comparison)),
            )
        }
        Some(_) | None => format!("Regression: {suite}"),
    }
}

/// `38/40 → 31/40 cases (−18 points, 95% CI −31 to −6, p = 0.016)`.
fn suite(comparison: &Comparison) -> String {
    let (mut base, mut new, mut pairs) = ((0, 0), (0, 0), 0);
    for cell in comparison.compared() {
        base = (base.0 + cell.base.passed, base.1 + cell.base.counted());
        new = (new.0 + cell.new.passed, new.1 + cell.new.counted());
        pairs += 1;
    }
    let unit = if comparison.is_single() {
        format!("{}s", noun(comparison))
    } else {
        format!("trials of {}", counted(pairs, noun(comparison)))
    };
    let mut facts = Vec::new();
    if let Some(difference) = &comparison.difference {
        facts.push(points(difference));
    }
    if let Some(test) = &comparison.test {
        facts.push(p_value(test.suite.two_sided));
    }
    let facts = facts.join(", ");
    let (base_passed, base_trials) = base;
    let (new_passed, new_trials) = new;
    format!("{base_passed}/{base_trials} → {new_passed}/{new_trials} {unit} ({facts})")
}

fn no_regression(comparison: &Comparison) -> String {
    let (worse, better) = (comparison.worse().len(), comparison.better().len());
    let pairs = comparison.compared().count();
    let drop = comparison
        .difference
        .as_ref()
        .map_or(1.0, Difference::largest_drop);
    let drop = rounded(drop * 100.0);
    format!(
        "No regression shown: worse on {worse}, better on {better} of {}; a drop of up to {drop} \
         points is not ruled out",
        counted(pairs, noun(comparison))
    )
}

fn inconclusive(
    comparison: &Comparison,
    cause: &InconclusiveCause,
    more: Option<MoreData>,
    quote: &dyn Fn(&str) -> String,
) -> String {
    let cause = match cause {
        InconclusiveCause::ChangedRecord { run, trials } => format!(
            "the record of {} was changed after its trials ended: {}",
            quote(run),
            trials.first().map_or(String::new(), |trial| quote(trial))
        ),
        InconclusiveCause::NothingPaired if !comparison.pairing.known_failures.is_empty() => {
            "every case that both runs have is a known failure of the new run".to_owned()
        }
        InconclusiveCause::Unfinished { run } => format!(
            "{} is not a whole run: it was interrupted or killed, or shards or trials are missing. Finish it with \
             `proctor check --resume RUN` or `proctor result merge`",
            quote(run)
        ),
        InconclusiveCause::Curtailed { run } => format!(
            "{} was stopped when its gate was decided (`--stop-when-decided`), so its trials are not a \
             fair sample",
            quote(run)
        ),
        InconclusiveCause::NothingPaired => {
            "no case has the same id and content in both runs, with the same agent".to_owned()
        }
        InconclusiveCause::NoVerdicts => "no case has a verdict in both runs".to_owned(),
        InconclusiveCause::OpenTrials { base, new } => format!(
            "trials without a verdict could change the answer: {base} in the base, {new} in the new \
             run. Run them with `proctor check --retry-errors RUN`"
        ),
        InconclusiveCause::Collapsed { case, base, new } => format!(
            "{} passed {}/{} before and {}/{} now, which are too few trials to show more than chance. Run it \
             more often (`-n`)",
            quote(case),
            base.0,
            base.1,
            new.0,
            new.1
        ),
        InconclusiveCause::TooFewTrials => {
            let pairs = counted(comparison.compared().count(), noun(comparison));
            let trials = if comparison.is_single() {
                "with one trial each ".to_owned()
            } else {
                let sum = |side: fn(&CellPair) -> TrialCounts| -> u32 {
                    let cells = comparison.compared();
                    cells.map(|cell| side(cell).counted()).sum()
                };
                let (base, new) = (sum(|cell| cell.base), sum(|cell| cell.new));
                format!("with {base} → {new} trials ")
            };
            let base = base_rarely_passes(comparison);
            format!("{pairs} {trials}{base}can't show a regression, even if every new trial failed")
        }
    };
    let more = more.map_or(String::new(), |more| format!("; {}", more_data(more)));
    format!("Inconclusive: {cause}{more}")
}

fn base_rarely_passes(comparison: &Comparison) -> String {
    let (passed, counted) = comparison
        .compared()
        .fold((0, 0), |(passed, counted), cell| {
            (passed + cell.base.passed, counted + cell.base.counted())
        });
    if passed * 2 < counted {
        format!("and a base that passed {passed} of {counted} ")
    } else {
        String::new()
    }
}

fn more_data(more: MoreData) -> String {
    let points = (TARGET_DROP * 100.0).round();
    let shows = format!("would show a drop of {points} points four times in five");
    match (more.cases, more.runs) {
        (Some(cases), Some(runs)) => {
            format!("about {cases} more cases, or {runs} runs of each case in both runs, {shows}")
        }
        (Some(cases), None) => format!("about {cases} more cases {shows}"),
        (None, Some(runs)) => format!("about {runs} runs of each case in both runs {shows}"),
        (None, None) => {
            format!("no number of runs {shows}: the base passes too rarely")
        }
    }
}

/// `−18 points, 95% CI −31 to −6`.
fn points(difference: &Difference) -> String {
    format!(
        "{} points, 95% CI {} to {}",
        signed(difference.value() * 100.0),
        signed(difference.interval.low * 100.0),
        signed(difference.interval.high * 100.0)
    )
}

/// Half a point is rounded away from zero, whatever binary fractions make of it.
fn rounded(number: f64) -> String {
    format!("{:.0}", (number + 1e-9).round())
}

/// A rounded number with its sign.
pub fn signed(number: f64) -> String {
    let text = rounded(number.abs());
    match text.as_str() {
        "0" => "0".to_owned(),
        _ if number < 0.0 => format!("−{text}"),
        _ => format!("+{text}"),
    }
}

/// `p = 0.016`, with two digits that matter.
pub fn p_value(p: f64) -> String {
    if p < 0.001 {
        "p < 0.001".to_owned()
    } else if p < 0.0995 {
        format!("p = {p:.3}")
    } else {
        format!("p = {p:.2}")
    }
}

fn noun(comparison: &Comparison) -> &'static str {
    if comparison.pairing.agents.len() > 1 {
        "case × agent pair"
    } else {
        "case"
    }
}

/// `5/6`, with the trials that have no verdict.
pub fn passed(counts: TrialCounts) -> String {
    let (passed, counted) = (counts.passed, counts.counted());
    match counts.open {
        0 => format!("{passed}/{counted}"),
        open => format!("{passed}/{counted} (+{open} without a verdict)"),
    }
}
