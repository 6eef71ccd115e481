//! What a run spends on models, and how much it may.
//!
//! Its main type is [`Meter`], which all trials of a run share. What questions that are on their
//! way will cost is not known, so a run can spend a little more than its budget, never go on after.

use std::sync::{Mutex, MutexGuard, PoisonError};

use proctor_core::event::Purpose;
use proctor_core::model::Usage;
use proctor_core::price::Prices;
use proctor_core::provider::Provider;

use super::{AskError, RetryPolicy};

/// What a run may spend. Absent is no limit.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Budget {
    /// In US dollars.
    pub usd: Option<f64>,
    /// In tokens, in and out.
    pub tokens: Option<u64>,
}

/// What was spent for one purpose, or in all.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct SpendingTotal {
    /// How many replies came.
    pub replies: u64,
    /// What they took, as far as they say.
    pub usage: Usage,
    /// What they cost in US dollars, as far as is known.
    pub cost_usd: f64,
    /// How many replies have an unknown cost. With any, the cost is at least what it says.
    pub unknown_costs: u64,
    /// How many replies did not say what they took.
    pub unknown_usages: u64,
}

impl SpendingTotal {
    /// The cost, if that of every reply is known.
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
    /// To do the tasks.
    pub agent: SpendingTotal,
    /// To judge them.
    pub judge: SpendingTotal,
}

impl RunSpending {
    /// In all.
    pub fn total(&self) -> SpendingTotal {
        let mut total = self.agent;
        total.add(&self.judge);
        total
    }
}

/// What a run has spent, and may spend.
#[derive(Debug, Default)]
pub struct Meter {
    prices: Prices,
    budget: Budget,
    patience: RetryPolicy,
    spent: Mutex<RunSpending>,
}

impl Meter {
    /// Nothing is spent yet.
    pub fn new(prices: Prices, budget: Budget) -> Self {
        Self {
            prices,
            budget,
            ..Self::default()
        }
    }

    /// Asks again as often as this says.
    #[must_use]
    pub fn with_patience(mut self, patience: RetryPolicy) -> Self {
        self.patience = patience;
        self
    }

    /// How often models are asked again.
    pub fn patience(&self) -> RetryPolicy {
        self.patience
    }

    /// Why the budget can't be kept with a model, before it is asked: nobody knows what it costs.
    pub fn refusal(&self, model: &str) -> Option<String> {
        let budget = self.budget.usd?;
        self.prices.of(model).is_none().then(|| {
            format!(
                "a budget of {} can't be kept: the price of `{model}` is unknown",
                dollars(budget)
            )
        })
    }

    /// What was spent so far.
    pub fn spent(&self) -> RunSpending {
        *self.lock()
    }

    /// Counts what a reply took, and says what it cost, if that is known.
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

    /// Counts what was spent elsewhere: by the part of a run that is resumed.
    pub fn add(&self, purpose: Purpose, account: &SpendingTotal) {
        let mut spent = self.lock();
        match purpose {
            Purpose::Agent | Purpose::Side => spent.agent.add(account),
            Purpose::Judge => spent.judge.add(account),
        }
    }

    /// Refuses once the budget is spent, or can't be watched any more.
    pub fn check(&self) -> Result<(), AskError> {
        let total = self.spent().total();
        let over = |text: String| Err(AskError::Budget(text));
        if let Some(budget) = self.budget.usd {
            let (budget, spent) = (dollars(budget), dollars(total.cost_usd));
            if total.unknown_costs > 0 {
                return over(format!(
                    "the budget of {budget} can't be kept: the cost of {} is unknown, beside {spent} spent",
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
                    "the budget of {budget} tokens can't be kept: {} did not say how many, beside {spent} spent",
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

/// Whether a model's reply says how many tokens it took. A script that does not has taken none.
fn is_metered(model: &str, usage: &Usage) -> bool {
    Provider::Scripted.serves(model) || usage.is_known()
}

fn replies(number: u64) -> String {
    match number {
        1 => "1 reply".to_owned(),
        _ => format!("{number} replies"),
    }
}

/// A sum of many amounts can miss by less than this.
const DUST: f64 = 1e-9;

/// Cents, and more digits for less than a dollar: a question can cost very little.
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
mod tests {
    use super::*;

    const MODEL: &str = "anthropic:claude-opus-5";

    fn usage(input: u64, output: u64) -> Usage {
        Usage {
            input: Some(input),
            output: Some(output),
            ..Usage::default()
        }
    }

    fn meter(usd: Option<f64>, tokens: Option<u64>) -> Meter {
        Meter::new(Prices::default(), Budget { usd, tokens })
    }

    fn refused(meter: &Meter) -> String {
        meter.check().unwrap_err().to_string()
    }

    #[test]
    fn without_a_budget_nothing_is_refused() {
        let meter = meter(None, None);
        meter.charge(Purpose::Agent, "openai:unheard-of", &Usage::default());
        assert_eq!(meter.check(), Ok(()));
        assert_eq!(meter.refusal("openai:unheard-of"), None);
    }

    #[test]
    fn money_is_counted_and_refused_once_spent() {
        let meter = meter(Some(0.05), None);
        let cost = meter
            .charge(Purpose::Agent, MODEL, &usage(4_000, 1_000))
            .unwrap();
        assert!((cost - 0.045).abs() < 1e-9);
        assert_eq!(meter.check(), Ok(()));
        meter.charge(Purpose::Judge, MODEL, &usage(1_000, 0));
        assert_eq!(refused(&meter), "the budget of $0.05 is spent: $0.05");
        let spent = meter.spent();
        assert_eq!((spent.agent.replies, spent.judge.replies), (1, 1));
        assert_eq!(spent.total().usage.input, Some(5_000));
        assert!(spent.total().known_cost().is_some());
    }

    #[test]
    fn tokens_are_counted_and_refused_once_spent() {
        let meter = meter(None, Some(100));
        meter.charge(Purpose::Agent, "openai:local", &usage(60, 39));
        assert_eq!(meter.check(), Ok(()));
        meter.charge(Purpose::Agent, "openai:local", &usage(1, 0));
        assert_eq!(refused(&meter), "the budget of 100 tokens is spent: 100");
        assert_eq!(meter.spent().total().known_cost(), None);
    }

    #[test]
    fn a_budget_that_can_not_be_watched_is_not_pretended_to_be_kept() {
        let dollars = meter(Some(1.0), None);
        assert_eq!(dollars.refusal(MODEL), None);
        assert_eq!(dollars.refusal("scripted:a.yaml"), None);
        assert_eq!(
            dollars.refusal("openai:local").unwrap(),
            "a budget of $1.00 can't be kept: the price of `openai:local` is unknown"
        );
        dollars.charge(Purpose::Agent, MODEL, &Usage::default());
        assert!(refused(&dollars).contains("the cost of 1 reply is unknown"));
        let tokens = meter(None, Some(5));
        assert_eq!(tokens.refusal("openai:local"), None);
        tokens.charge(Purpose::Agent, "scripted:a.yaml", &Usage::default());
        assert_eq!(tokens.check(), Ok(()));
        tokens.charge(Purpose::Agent, MODEL, &Usage::default());
        assert!(refused(&tokens).contains("1 reply did not say how many"));
    }

    #[test]
    fn sums_never_wrap() {
        let meter = meter(None, Some(100));
        for _ in 0..3 {
            meter.charge(Purpose::Agent, MODEL, &usage(u64::MAX, u64::MAX - 1));
        }
        assert_eq!(meter.spent().total().usage.total(), u64::MAX);
        assert!(refused(&meter).starts_with("the budget of 100 tokens is spent"));
    }

    #[test]
    fn a_budget_of_nothing_refuses_the_first_question() {
        assert_eq!(
            refused(&meter(None, Some(0))),
            "the budget of 0 tokens is spent: 0"
        );
        assert_eq!(
            refused(&meter(Some(0.0), None)),
            "the budget of $0 is spent: $0"
        );
    }

    #[test]
    fn many_trials_spend_together() {
        let meter = meter(None, None);
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for _ in 0..500 {
                        meter.charge(Purpose::Agent, MODEL, &usage(1, 1));
                    }
                });
            }
        });
        let total = meter.spent().total();
        assert_eq!((total.replies, total.usage.total()), (4_000, 8_000));
    }

    #[test]
    fn small_amounts_keep_their_digits() {
        for (amount, shown) in [
            (12.5, "$12.50"),
            (0.5, "$0.50"),
            (0.05, "$0.05"),
            (0.0123, "$0.0123"),
            (0.000_04, "$0.00004"),
            (0.0, "$0"),
        ] {
            assert_eq!(dollars(amount), shown);
        }
    }
}
