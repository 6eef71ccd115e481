//! An estimate in one sentence.

use std::fmt;

use proctor_record::duration;
use proctor_record::hint::{counted, thousands};

use super::{Estimate, EstimatedRange};

impl fmt::Display for Estimate {
    /// `4–6 model calls, 1,200 tokens, $0.01–$0.02, 3s–5s, from 2 earlier runs`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.unknown_pairs == self.pairs {
            return write!(f, "unknown: no earlier run of {}", pairs(self.pairs));
        }
        let (least, most) = self.time();
        let (least, most) = (duration::brief(least), most.map(duration::brief));
        let time = match most {
            Some(most) if most == least => least,
            Some(most) => format!("{least}–{most}"),
            None => format!("at least {least}"),
        };
        let cost = if self.unknown_cost_pairs + self.unknown_pairs == self.pairs {
            "unknown cost".to_owned()
        } else {
            range(&self.cost_usd, dollars)
        };
        write!(
            f,
            "{} model calls, {} tokens, {cost}, {time}, from {}",
            range(&self.model_calls, whole),
            range(&self.tokens, whole),
            counted(self.runs, "earlier run")
        )?;
        if self.unknown_cost_pairs > 0 {
            let unknown = pairs(self.unknown_cost_pairs);
            write!(f, "; the price or usage of {unknown} is unknown")?;
        }
        if self.unknown_pairs > 0 {
            let (unknown, all) = (self.unknown_pairs, pairs(self.pairs));
            write!(f, "; no earlier run of {unknown} of {all}")?;
        }
        Ok(())
    }
}

fn pairs(count: u32) -> String {
    counted(count as usize, "case × agent pair")
}

fn range(range: &EstimatedRange, shown: impl Fn(f64) -> String) -> String {
    let low = shown(range.low);
    match range.high.map(shown) {
        Some(high) if high == low => low,
        Some(high) => format!("{low}–{high}"),
        None => format!("at least {low}"),
    }
}

fn whole(number: f64) -> String {
    thousands(&format!("{number:.0}"))
}

/// Dollars with as many digits as matter.
pub fn dollars(amount: f64) -> String {
    if amount == 0.0 {
        "$0".to_owned()
    } else if amount >= 1.0 {
        format!("${amount:.2}")
    } else {
        format!("${amount:.4}")
    }
}
