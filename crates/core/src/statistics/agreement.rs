//! How far a judge agrees with people: Cohen's kappa, sensitivity and specificity.

use super::interval::{Interval, normal_quantile};

/// The verdicts of people and of a judge on the same answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Agreement {
    /// People and judge: pass.
    pub both_pass: u32,
    /// People: pass, judge: fail.
    pub only_people_pass: u32,
    /// People: fail, judge: pass.
    pub only_judge_passes: u32,
    pub both_fail: u32,
}

/// Cohen's kappa.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Kappa {
    pub value: f64,
    /// The 95 % interval; `None` if one side gave only one verdict, so that there is no error to
    /// estimate.
    pub interval: Option<Interval>,
}

impl Agreement {
    pub fn total(&self) -> u32 {
        self.both_pass + self.only_people_pass + self.only_judge_passes + self.both_fail
    }

    /// The number of answers that people passed.
    pub fn people_pass(&self) -> u32 {
        self.both_pass + self.only_people_pass
    }

    /// The number of answers that people failed.
    pub fn people_fail(&self) -> u32 {
        self.both_fail + self.only_judge_passes
    }

    /// The share of equal verdicts; `None` without any verdict.
    pub fn share(&self) -> Option<f64> {
        share(self.both_pass + self.both_fail, self.total())
    }

    /// The share of the answers passed by people that the judge passes too.
    pub fn sensitivity(&self) -> Option<f64> {
        share(self.both_pass, self.people_pass())
    }

    /// The share of the answers failed by people that the judge fails too.
    pub fn specificity(&self) -> Option<f64> {
        share(self.both_fail, self.people_fail())
    }

    /// Agreement beyond chance, with the standard error of Fleiss, Cohen and Everitt; `None` if chance
    /// alone would always agree.
    pub fn kappa(&self) -> Option<Kappa> {
        let total = f64::from(self.total());
        let cells = [
            [self.both_pass, self.only_people_pass],
            [self.only_judge_passes, self.both_fail],
        ];
        let p = cells.map(|row| row.map(|count| f64::from(count) / total));
        let rows = [p[0][0] + p[0][1], p[1][0] + p[1][1]];
        let columns = [p[0][0] + p[1][0], p[0][1] + p[1][1]];
        let observed = p[0][0] + p[1][1];
        let expected = rows[0] * columns[0] + rows[1] * columns[1];
        if total <= 0.0 || expected >= 1.0 {
            return None;
        }
        let kappa = (observed - expected) / (1.0 - expected);
        let apart = 1.0 - kappa;
        let mut variance = -(kappa - expected * apart).powi(2);
        for i in 0..2 {
            for j in 0..2 {
                variance += p[i][j]
                    * if i == j {
                        (1.0 - (rows[i] + columns[i]) * apart).powi(2)
                    } else {
                        (apart * (columns[i] + rows[j])).powi(2)
                    };
            }
        }
        let error = (variance.max(0.0) / total).sqrt() / (1.0 - expected);
        let is_constant = rows.contains(&0.0) || columns.contains(&0.0);
        let half = normal_quantile(0.975) * error;
        Some(Kappa {
            value: kappa,
            interval: (!is_constant).then_some(Interval {
                low: kappa - half,
                high: kappa + half,
            }),
        })
    }
}

fn share(part: u32, of: u32) -> Option<f64> {
    (of > 0).then(|| f64::from(part) / f64::from(of))
}
