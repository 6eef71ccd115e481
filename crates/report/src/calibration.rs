//! Renders how far a judge agrees with people: for a terminal and as JSON.

use std::path::Path;

use proctor_core::calibration::{
    Calibration, HumanVerdict, JudgeChoice, JudgeVerdict, JudgedLabel,
};
use proctor_core::printable::printable;
use proctor_core::statistics::{Interval, Kappa, wilson};
use serde_json::{Value, json};

use crate::terminal::lines::cut;
use crate::words;

/// The maximum number of labels of each list in the text.
const SHOWN: usize = 50;

/// The version of the JSON document.
const VERSION: u32 = 1;

/// Everything that a rendered calibration shows.
#[derive(Debug)]
pub struct CalibrationReport<'a> {
    pub calibration: &'a Calibration,
    /// The labels file, as the command line names it.
    pub file: &'a Path,
    /// The judge that was asked, with its number of votes; `None` if the file holds the verdicts.
    pub judge: Option<(&'a str, u32)>,
}

/// Renders the text, in lines of at most `width` columns.
pub fn text(report: &CalibrationReport<'_>, width: usize) -> String {
    let found = report.calibration;
    let agreement = &found.agreement;
    let mut out = String::new();
    let mut fact = |label: &str, text: &str| {
        out.push_str(&format!(
            "{label:<13}{}\n",
            cut(text, width.saturating_sub(13))
        ));
    };
    fact(
        "Agreement",
        &share(agreement.both_pass + agreement.both_fail, agreement.total()),
    );
    fact("Kappa", &kappa(agreement.kappa().as_ref()));
    let passed = share(agreement.both_pass, agreement.people_pass());
    fact(
        "Sensitivity",
        &format!("{passed}: people pass, the judge too"),
    );
    let failed = share(agreement.both_fail, agreement.people_fail());
    fact(
        "Specificity",
        &format!("{failed}: people fail, the judge too"),
    );
    let unknown = u64::from(found.unknown[0] + found.unknown[1]);
    if unknown > 0 {
        let verdicts = words::count(unknown, "unknown verdict");
        fact("Unknown", &format!("{verdicts}, not in the numbers above"));
    }
    fact("Judge", &judge(report));
    out.push_str(&table(found));
    if let Some(shortage) = found.shortage() {
        // Not cut: it must be read to its end.
        out.push_str(&format!("\nInconclusive: {}\n", printable(&shortage)));
    }
    for (title, labels) in [
        ("Disagreements", &found.disagreements),
        ("Unknown", &found.unknown_labels),
        ("No answer", &found.failed),
    ] {
        if labels.is_empty() {
            continue;
        }
        out.push_str(&format!("\n{title}\n"));
        for one in labels.iter().take(SHOWN) {
            out.push_str(&cut(&format!("  {}", line(report.file, one)), width));
            out.push('\n');
        }
        if labels.len() > SHOWN {
            out.push_str(&format!("  … and {} more\n", labels.len() - SHOWN));
        }
    }
    out
}

fn judge(report: &CalibrationReport<'_>) -> String {
    match report.judge {
        Some((name, 1)) => printable(name).into_owned(),
        Some((name, votes)) => format!("{}, {votes} votes", printable(name)),
        None => "the verdicts in the file".to_owned(),
    }
}

/// The confusion table.
fn table(found: &Calibration) -> String {
    let agreement = &found.agreement;
    let row = |name: &str, cells: [String; 3]| {
        let [pass, fail, unknown] = cells;
        format!("{name:<13}{pass:>12}{fail:>12}{unknown:>15}\n")
    };
    let numbers = |cells: [u32; 3]| cells.map(|cell| cell.to_string());
    let head = ["judge pass", "judge fail", "judge unknown"].map(str::to_owned);
    let passed = [
        agreement.both_pass,
        agreement.only_people_pass,
        found.unknown[0],
    ];
    let failed = [
        agreement.only_judge_passes,
        agreement.both_fail,
        found.unknown[1],
    ];
    format!(
        "\n{}{}{}",
        row("", head),
        row("people pass", numbers(passed)),
        row("people fail", numbers(failed)),
    )
}

/// `labels.jsonl:3 weather: people fail, judge pass`, with the judge's reason.
fn line(file: &Path, one: &JudgedLabel) -> String {
    let mut text = format!("{}:{}", file.display(), one.label.line);
    if let Some(id) = &one.label.id {
        text.push_str(&format!(" {id}"));
    }
    let JudgeVerdict { choice, reason } = &one.judge;
    let word = self::choice(*choice);
    text.push_str(&format!(
        ": people {}, judge {word}",
        human(one.label.human)
    ));
    if !reason.is_empty() {
        text.push_str(&format!(": {reason}"));
    }
    printable(&text).into_owned()
}

fn human(verdict: HumanVerdict) -> &'static str {
    match verdict {
        HumanVerdict::Pass => "pass",
        HumanVerdict::Fail => "fail",
    }
}

fn choice(choice: JudgeChoice) -> &'static str {
    match choice {
        JudgeChoice::Pass => "pass",
        JudgeChoice::Fail => "fail",
        JudgeChoice::Unknown => "unknown",
        JudgeChoice::NoAnswer => "without an answer",
    }
}

/// `18/20 (90%, 95% CI 70–97%)`.
fn share(part: u32, of: u32) -> String {
    match interval(part, of) {
        Some(Interval { low, high }) => {
            let whole = |share: f64| format!("{:.0}", share * 100.0);
            let found = f64::from(part) / f64::from(of);
            format!(
                "{part}/{of} ({}%, 95% CI {}–{}%)",
                whole(found),
                whole(low),
                whole(high)
            )
        }
        None => "–".to_owned(),
    }
}

/// Wilson's interval; `None` without any label.
fn interval(part: u32, of: u32) -> Option<Interval> {
    let (part, total) = (f64::from(part), f64::from(of));
    (of > 0).then(|| wilson(part / total, total))
}

fn kappa(kappa: Option<&Kappa>) -> String {
    match kappa {
        Some(Kappa {
            value,
            interval: Some(Interval { low, high }),
        }) => format!("{value:.2} (95% CI {low:.2} to {:.2})", high.min(1.0)),
        Some(Kappa {
            value,
            interval: None,
        }) => format!("{value:.2}, without an interval: one side gave only one verdict"),
        None => "not defined: people and judge gave only one verdict".to_owned(),
    }
}

/// The document. Its fields are described in `docs/judge.md`.
pub fn value(report: &CalibrationReport<'_>) -> Value {
    let found = report.calibration;
    let agreement = &found.agreement;
    let rate = |part: u32, of: u32| {
        let interval = interval(part, of);
        json!({
            "count": part,
            "of": of,
            "share": interval.map(|_| f64::from(part) / f64::from(of)),
            "low95": interval.map(|interval| interval.low),
            "high95": interval.map(|interval| interval.high),
        })
    };
    let kappa = agreement.kappa().map(|kappa| {
        json!({
            "value": kappa.value,
            "low95": kappa.interval.map(|interval| interval.low),
            "high95": kappa.interval.map(|interval| interval.high.min(1.0)),
        })
    });
    let labels = |labels: &[JudgedLabel]| labels.iter().map(label).collect::<Vec<_>>();
    json!({
        "version": VERSION,
        "file": report.file.to_string_lossy(),
        "judge": report.judge.map(|(name, votes)| json!({ "model": name, "votes": votes })),
        "agreement": rate(agreement.both_pass + agreement.both_fail, agreement.total()),
        "kappa": kappa,
        "sensitivity": rate(agreement.both_pass, agreement.people_pass()),
        "specificity": rate(agreement.both_fail, agreement.people_fail()),
        "table": {
            "peoplePass": {
                "judgePass": agreement.both_pass,
                "judgeFail": agreement.only_people_pass,
                "judgeUnknown": found.unknown[0],
            },
            "peopleFail": {
                "judgePass": agreement.only_judge_passes,
                "judgeFail": agreement.both_fail,
                "judgeUnknown": found.unknown[1],
            },
        },
        "shortage": found.shortage(),
        "disagreements": labels(&found.disagreements),
        "unknown": labels(&found.unknown_labels),
        "noAnswer": labels(&found.failed),
    })
}

fn label(one: &JudgedLabel) -> Value {
    let judge = match one.judge.choice {
        JudgeChoice::NoAnswer => None,
        given @ (JudgeChoice::Pass | JudgeChoice::Fail | JudgeChoice::Unknown) => {
            Some(choice(given))
        }
    };
    json!({
        "line": one.label.line,
        "id": one.label.id,
        "criterion": { "kind": one.label.criterion.kind(), "text": one.label.criterion.text() },
        "human": human(one.label.human),
        "judge": judge,
        "reason": one.judge.reason,
    })
}
