//! The file format of `gates` in an eval file: the conditions for success.

use proctor_record::event::{PassHatGate, PlannedGates};
use proctor_record::problem::{Code, Problem};
use serde_json::{Value, json};

use super::known_failures_file::FilledText;
use crate::decode::{Context, Decode, Definitions, PositiveInteger, RequiredKey, record};
use crate::document::Node;

record! {
    /// The conditions for success. Flags of `proctor check` replace them one by one. Proctor's own.
    pub struct GatesFile {
        /// The lowest mean of the cases' pass rates, such as `0.9` or `90%`. Proctor's own.
        "minPassRate" => min_pass_rate: Option<ShareFile>,
        /// The lowest one-sided 95 % lower bound of the pass rate, such as `0.8` or `80%`. Proctor's own.
        "minLowerBound" => min_lower_bound: Option<ShareFile>,
        /// The lowest average chance that all of `k` trials of a case pass. Proctor's own.
        "passHat" => pass_hat: Option<PassHatFile>,
        /// The highest number of errored trials. Proctor's own.
        "maxErrors" => max_errors: Option<u64>,
        /// The run that a new run must not be worse than: a path relative to this file, or a name such as `latest`. Proctor's own.
        "noRegression" => no_regression: Option<FilledText>,
    }
}

record! {
    /// A gate on pass^k.
    pub struct PassHatFile {
        /// The number of trials that must all pass.
        "k" => k: RequiredKey<PositiveInteger>,
        /// The lowest average chance, such as `0.8` or `80%`.
        "rate" => rate: RequiredKey<ShareFile>,
    }
}

/// A share above 0 and up to 1, as a number or in percent.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ShareFile(pub f64);

/// Parses a share such as `0.9` or `90%`. Zero is rejected: such a gate could never be missed.
pub fn parse_share(text: &str) -> Result<f64, String> {
    let number = |text: &str| text.trim().parse::<f64>().ok().filter(|n| n.is_finite());
    let share = match text.trim().strip_suffix('%') {
        Some(percent) => number(percent).map(|percent| percent / 100.0),
        None => number(text),
    };
    match share {
        Some(share) if share > 0.0 && share <= 1.0 => Ok(share),
        Some(share) if share > 1.0 => Err(format!(
            "`{text}` is more than everything; write a share such as `0.9` or `90%`"
        )),
        Some(_) => Err(format!("a gate of `{text}` could never be missed")),
        None => Err(format!("invalid share `{text}`; write `0.9` or `90%`")),
    }
}

impl Decode for ShareFile {
    fn decode(node: &Node, cx: &Context<'_>) -> Option<Self> {
        let text = crate::decode::LooseText::decode(node, cx)?.0;
        match parse_share(&text) {
            Ok(share) => Some(Self(share)),
            Err(problem) => {
                cx.report(node.span, Problem::error(Code::Value, problem));
                None
            }
        }
    }

    fn schema(_: &mut Definitions) -> Value {
        json!({
            "oneOf": [
                {"type": "number", "exclusiveMinimum": 0, "maximum": 1},
                {"type": "string", "pattern": "^[0-9.]+%?$"},
            ]
        })
    }
}

impl From<&GatesFile> for PlannedGates {
    fn from(file: &GatesFile) -> Self {
        let pass_hat = file.pass_hat.as_ref().and_then(|gate| {
            Some(PassHatGate {
                k: gate.k.get()?.0,
                rate: gate.rate.get()?.0,
            })
        });
        Self {
            min_pass_rate: file.min_pass_rate.map(|share| share.0),
            min_lower_bound: file.min_lower_bound.map(|share| share.0),
            pass_hat,
            max_errors: file
                .max_errors
                .map(|most| u32::try_from(most).unwrap_or(u32::MAX)),
            base: None,
        }
    }
}
