//! The spending of a run on models, and its budget.
//!
//! The main type is [`Meter`], which all trials of a run share. The cost of open requests is not
//! known yet, so a run can exceed its budget slightly, but sends no request after that.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use proctor_core::price::Prices;
use proctor_core::provider::Provider;
use proctor_record::event::Purpose;
use proctor_record::model::Usage;

use super::pace::{Pace, Paces};
use super::{AskError, Model, RetryPolicy};

/// The budget of a run. `None` means no limit.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Budget {
    pub usd: Option<f64>,
    /// Input and output tokens.
    pub tokens: Option<u64>,
}

/// The spending for one purpose, or in total.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct SpendingTotal {
    pub replies: u64,
    /// The token usage that the replies reported.
    pub usage: Usage,
    /// The known cost in US dollars.
    pub cost_usd: f64,
    /// The number of replies with unknown cost. If it is not zero, `cost_usd` is a lower bound.
    pub unknown_costs: u64,
    /// The number of replies that did not report their token usage.
    pub unknown_usages: u64,
}

impl SpendingTotal {
    /// The cost, if it is known for every reply.
    pub fn known_cost(&self) -> Option<f64> {
        (self.unknown_costs == 0).then_some(self.cost_usd)
    }

    fn add(&mut self, other: &Self) {
        self.replies += other.replies;
        self.usage.add(&other.usage);
        self.cost_usd += other.cost_usd;
        self.unknown_costs += other.unknown_costs;
        self.unknown_usages += other.unknown_usages;
    }
}

/// What a run has spent.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct RunSpending {
    pub agent: SpendingTotal,
    pub judge: SpendingTotal,
}

impl RunSpending {
    pub fn total(&self) -> SpendingTotal {
        let mut total = self.agent;
        total.add(&self.judge);
        total
    }
}

/// Counts the spending of a run and enforces its budget.
#[derive(Debug, Default)]
pub struct Meter {
    prices: Prices,
    budget: Budget,
    patience: RetryPolicy,
    paces: Paces,
    spent: Mutex<RunSpending>,
}

impl Meter {
    /// A meter without any spending.
    pub fn new(prices: Prices, budget: Budget) -> Self {
        Self {
            prices,
            budget,
            ..Self::default()
        }
    }

    /// Sets the retry policy.
    #[must_use]
    pub fn with_patience(mut self, patience: RetryPolicy) -> Self {
        self.patience = patience;
        self
    }

    pub fn prices(&self) -> &Prices {
        &self.prices
    }

    /// The retry policy for models.
    pub fn patience(&self) -> RetryPolicy {
        self.patience
    }

    /// The pace of requests to a model, which all models of the same provider account share.
    pub(crate) fn pace(&self, model: &Model) -> Option<Arc<Pace>> {
        model.account().map(|account| self.paces.of(account))
    }

    /// Why the budget can't be enforced for a model: its price is unknown.
    pub fn refusal(&self, model: &str) -> Option<String> {
        let budget = self.budget.usd?;
        self.prices.of(model).is_none().then(|| {
            format!(
                "can't enforce the budget of {}: the price of `{model}` is unknown",
                dollars(budget)
            )
        })
    }

    /// The spending so far.
    pub fn spent(&self) -> RunSpending {
        *self.lock()
    }

    /// Adds a reply's token usage, and returns its cost if the price is known.
    pub fn charge(&self, purpose: Purpose, model: &str, usage: &Usage) -> Option<f64> {
        let cost = self.prices.cost(model, usage);
        let account = SpendingTotal {
            replies: 1,
            usage: *usage,
            cost_usd: cost.unwrap_or(0.0),
            unknown_costs: u64::from(cost.is_none()),
            unknown_usages: u64::from(!is_metered(model, usage)),
        };
        self.add(purpose, &account);
        cost
    }

    /// Adds spending from elsewhere: from the earlier part of a resumed run.
    pub fn add(&self, purpose: Purpose, account: &SpendingTotal) {
        let mut spent = self.lock();
        match purpose {
            Purpose::Agent | Purpose::Side | Purpose::Sampling | Purpose::User => {
                spent.agent.add(account);
            }
            Purpose::Judge => spent.judge.add(account),
        }
    }

    /// Fails once the budget is spent, or can no longer be enforced.
    pub fn check(&self) -> Result<(), AskError> {
        let total = self.spent().total();
        let over = |text: String| Err(AskError::Budget(text));
        if let Some(budget) = self.budget.usd {
            let (budget, spent) = (dollars(budget), dollars(total.cost_usd));
            if total.unknown_costs > 0 {
                return over(format!(
                    "can't enforce the budget of {budget}: {spent} spent, but the cost of {} is unknown",
                    replies(total.unknown_costs)
                ));
            }
            if self
                .budget
                .usd
                .is_some_and(|budget| total.cost_usd + DUST >= budget)
            {
                return over(format!("the budget of {budget} is spent: {spent}"));
            }
        }
        if let Some(budget) = self.budget.tokens {
            let spent = total.usage.total();
            if total.unknown_usages > 0 {
                return over(format!(
                    "can't enforce the budget of {budget} tokens: {spent} used, but the token usage of {} is unknown",
                    replies(total.unknown_usages)
                ));
            }
            if spent >= budget {
                return over(format!("the budget of {budget} tokens is spent: {spent}"));
            }
        }
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, RunSpending> {
        self.spent.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether a reply has a token usage. A script without one has used no tokens.
fn is_metered(model: &str, usage: &Usage) -> bool {
    Provider::Scripted.serves(model) || usage.is_known()
}

fn replies(number: u64) -> String {
    match number {
        1 => "1 reply".to_owned(),
        _ => format!("{number} replies"),
    }
}

/// The tolerance for rounding errors in a sum.
const DUST: f64 = 1e-9;

/// Formats with two decimals, and with more below one dollar, since a request can cost very little.
fn dollars(amount: f64) -> String {
    match amount {
        0.0 => "$0".to_owned(),
        1.0.. => format!("${amount:.2}"),
        _ => {
            let text = format!("${amount:.6}");
            let short = text.trim_end_matches('0');
            if short.len() < 5 {
                format!("{short:0<5}")
            } else {
                short.to_owned()
            }
        }
    }
}

#[cfg(test)]
mod tests;
