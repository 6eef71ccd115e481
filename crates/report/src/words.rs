//! Formats numbers, rates, outcomes and costs as text.

use std::fmt::Write;
use std::time::Duration;

use proctor_core::statistics::Rate;
use proctor_core::summary::Summary;
use proctor_record::duration;
use proctor_record::event::{Blame, FindingKind, Outcome};
use proctor_record::fold::ModelActivity;
use serde_json::{Value, json};

pub(crate) fn outcome(outcome: Option<Outcome>) -> &'static str {
    match outcome {
        Some(Outcome::Passed) => "passed",
        Some(Outcome::Failed) => "failed",
        Some(Outcome::TimedOut) => "timed-out",
        Some(Outcome::Errored) => "errored",
        Some(Outcome::Cancelled) => "cancelled",
        None => "not-run",
    }
}

pub(crate) fn blame(blame: Blame) -> &'static str {
    match blame {
        Blame::Server => "server",
        Blame::Agent => "agent",
        Blame::Suite => "suite",
        Blame::Judge => "judge",
        Blame::Infra => "infra",
    }
}

/// One line for each server and kind of finding.
pub(crate) fn findings(summary: &Summary) -> Vec<String> {
    let servers = summary.findings.iter();
    let lines = servers.flat_map(|(server, found)| {
        found.iter().map(move |(kind, found)| {
            let (count, kind) = (thousands(found.count), finding(*kind));
            format!("{server}: {count}× {kind}, such as: {}", found.example)
        })
    });
    lines.collect()
}

/// The name of a kind of finding, as in records.
pub(crate) fn finding(kind: FindingKind) -> String {
    match serde_json::to_value(kind) {
        Ok(serde_json::Value::String(word)) => word,
        _ => "?".to_owned(),
    }
}

/// Formats a number with a noun: `1 trial`, `2 trials`.
pub(crate) fn count(number: u64, noun: &str) -> String {
    let s = if number == 1 { "" } else { "s" };
    format!("{} {noun}{s}", thousands(number))
}

/// Formats a number with separators: `12,345`.
pub(crate) fn thousands(number: u64) -> String {
    proctor_record::hint::thousands(&number.to_string())
}

/// Formats a pass rate: `80%, 95% CI 49–94%`.
pub(crate) fn rate(rate: &Rate) -> String {
    let interval = &rate.interval;
    // 99.9% must not look like 100%, nor 0.1% like 0%.
    let whole = |share: f64| format!("{:.0}", share * 100.0);
    let inner = |share: f64| match whole(share).as_str() {
        "100" if share < 1.0 => "99".to_owned(),
        "0" if share > 0.0 => "1".to_owned(),
        text => text.to_owned(),
    };
    let low = match whole(interval.low).as_str() {
        "100" if interval.low < 1.0 => "99".to_owned(),
        text => text.to_owned(),
    };
    // The share of passed trials differs from the mean if cases have different numbers of trials.
    let pooled = f64::from(rate.tally.passed) / f64::from(rate.tally.counted);
    let mean = if inner(pooled) == inner(rate.mean) {
        ""
    } else {
        " on average over cases"
    };
    format!(
        "{}%{mean}, 95% CI {low}–{}%",
        inner(rate.mean),
        whole(interval.high)
    )
}

/// A pass rate as JSON.
pub(crate) fn rate_document(rate: &Rate) -> Value {
    json!({
        "passed": rate.tally.passed,
        "counted": rate.tally.counted,
        "mean": rate.mean,
        "low95": rate.interval.low,
        "high95": rate.interval.high,
        "method": "wilson",
        "designEffect": rate.design_effect,
        "clustered": rate.is_clustered,
    })
}

/// Formats token usage. A provider may not report it, so it can be unknown.
pub(crate) fn tokens(activity: &ModelActivity) -> String {
    // Some agents report tokens, but no turns.
    let is_idle = activity.turns == 0 && activity.unmetered == 0;
    if is_idle && activity.usage.input.is_none() && activity.usage.output.is_none() {
        return "none".to_owned();
    }
    let (Some(input), Some(output)) = (activity.usage.input, activity.usage.output) else {
        return "unknown".to_owned();
    };
    let mut out = String::new();
    if activity.unmetered > 0 {
        out.push_str("at least ");
    }
    // Writing to a string can't fail.
    let _ = write!(out, "{} in, {} out", thousands(input), thousands(output));
    if activity.unmetered > 0 {
        let turns = count(u64::from(activity.unmetered), "turn");
        let _ = write!(out, " (token usage unknown for {turns})");
    }
    out
}

/// Formats a duration; `None` if it is not known, as in an imported result.
pub(crate) fn time(duration: Duration) -> Option<String> {
    (!duration.is_zero()).then(|| duration::brief(duration))
}

/// Formats a cost: `$0.0123`, or `unknown`.
pub(crate) fn cost(cost: Option<f64>) -> String {
    match cost {
        None => "unknown".to_owned(),
        Some(0.0) => "$0".to_owned(),
        Some(cost) if cost >= 100.0 => format!("${cost:.2}"),
        Some(cost) if cost > 0.0 && cost < 0.0001 => "under $0.0001".to_owned(),
        Some(cost) => format!("${cost:.4}"),
    }
}

#[cfg(test)]
mod tests {
    use proctor_core::statistics::PassCount;
    use proctor_record::model::Usage;

    use super::*;

    #[test]
    fn numbers_have_commas() {
        let check = |number, text: &str| assert_eq!(thousands(number), text);
        check(0, "0");
        check(999, "999");
        check(1_000, "1,000");
        check(12_345_678, "12,345,678");
    }

    #[test]
    fn a_rate_is_shown_with_its_interval() {
        let check = |passed: u32, counted: u32, text: &str| {
            let cases: Vec<PassCount> = (0..counted)
                .map(|n| PassCount {
                    passed: u32::from(n < passed),
                    counted: 1,
                })
                .collect();
            assert_eq!(rate(&Rate::of(&cases).unwrap()), text);
        };
        check(8, 10, "80%, 95% CI 49–94%");
        check(10, 10, "100%, 95% CI 72–100%");
        check(0, 3, "0%, 95% CI 0–56%");
        check(9_999, 10_000, "99%, 95% CI 99–100%");
    }

    #[test]
    fn unknown_usage_is_not_zero() {
        let asked = |turns, input, unmetered| ModelActivity {
            turns,
            unmetered,
            usage: Usage {
                input,
                output: input,
                ..Usage::default()
            },
            ..ModelActivity::default()
        };
        assert_eq!(tokens(&asked(0, None, 0)), "none");
        assert_eq!(tokens(&asked(0, None, 1)), "unknown");
        assert_eq!(tokens(&asked(0, Some(5_160), 0)), "5,160 in, 5,160 out");
        assert_eq!(tokens(&asked(2, None, 2)), "unknown");
        assert_eq!(tokens(&asked(2, Some(5), 0)), "5 in, 5 out");
        let some = tokens(&asked(2, Some(5), 1));
        assert_eq!(
            some,
            "at least 5 in, 5 out (token usage unknown for 1 turn)"
        );
        assert_eq!(cost(None), "unknown");
        assert_eq!(cost(Some(0.0)), "$0");
        assert_eq!(cost(Some(0.000_01)), "under $0.0001");
    }
}
