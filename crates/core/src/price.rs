//! The prices of models.
//!
//! Its main type is [`Prices`]: a built-in table with a date, and the user's own prices. An unknown
//! price stays unknown; it never counts as zero.

pub mod file;
mod table;

use std::path::Path;

use proctor_record::model::Usage;
use proctor_record::problem::Problems;

use crate::provider::Provider;

pub use self::table::AS_OF;

/// The price of a model, in US dollars per million tokens.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Price {
    pub input: f64,
    /// The price of output tokens, including thinking.
    pub output: f64,
    /// The price of input tokens that are read from the cache, if known.
    pub cached: Option<f64>,
    /// The price of input tokens that are written to the cache, if known.
    pub cache_written: Option<f64>,
    /// The longest input, in tokens, for which this price holds. Longer input costs more.
    pub holds_to: Option<u64>,
}

impl Price {
    /// The cost of this usage, if the prices of all its parts are known.
    pub fn cost(&self, usage: &Usage) -> Option<f64> {
        let (input, output) = (usage.input?, usage.output?);
        if self.holds_to.is_some_and(|limit| input > limit) {
            return None;
        }
        let cached = usage.cached.unwrap_or(0).min(input);
        let written = usage.cache_written.unwrap_or(0).min(input - cached);
        let plain = input - cached - written;
        let dollars = count(plain) * self.input
            + part(cached, self.cached)?
            + part(written, self.cache_written)?
            + count(output) * self.output;
        Some(dollars / 1e6)
    }
}

/// The cost of some tokens. Zero tokens cost nothing, even if the price is unknown.
fn part(tokens: u64, price: Option<f64>) -> Option<f64> {
    if tokens == 0 {
        return Some(0.0);
    }
    price.map(|price| count(tokens) * price)
}

#[expect(
    clippy::cast_precision_loss,
    reason = "no run uses more than 2^53 tokens"
)]
fn count(tokens: u64) -> f64 {
    tokens as f64
}

/// The prices of models.
#[derive(Debug, Clone, Default)]
pub struct Prices {
    /// The user's own prices by `provider:id`.
    own: Vec<(String, Price)>,
}

impl Prices {
    /// Loads a price file. Its prices take precedence over the table. If it returns `None`, it has
    /// reported at least one error.
    pub fn load(path: &Path, problems: &mut Problems) -> Option<Self> {
        file::load(path, problems).map(|own| Self { own })
    }

    /// The JSON Schema of a price file.
    pub fn schema() -> serde_json::Value {
        file::schema()
    }

    /// The price of a model by `provider:id`, if known.
    ///
    /// A dated name (`openai:gpt-5-2025-08-07`) means the same model as the name without its date.
    /// A scripted model costs nothing, unless the user sets a price.
    pub fn of(&self, model: &str) -> Option<Price> {
        let own = self.own.iter().map(|(name, price)| (name.as_str(), *price));
        longest(own, model)
            .or_else(|| longest(table::TABLE.iter().copied(), model))
            .or_else(|| Provider::Scripted.serves(model).then_some(table::NOTHING))
    }

    /// The cost of this usage of a model, if known.
    pub fn cost(&self, model: &str, usage: &Usage) -> Option<f64> {
        let price = self.of(model)?;
        let is_free = price.input + price.output == 0.0;
        if is_free {
            return Some(0.0);
        }
        price.cost(usage)
    }
}

/// The price of the longest known name that the model's name starts with, if only a date follows.
fn longest<'a>(prices: impl Iterator<Item = (&'a str, Price)>, model: &str) -> Option<Price> {
    let fitting = prices.filter(|(name, _)| model.strip_prefix(name).is_some_and(is_version));
    fitting
        .max_by_key(|(name, _)| name.len())
        .map(|(_, price)| price)
}

/// Whether the rest of a model's name is only a version.
fn is_version(rest: &str) -> bool {
    let Some(rest) = rest.strip_prefix(['-', '@']) else {
        return rest.is_empty();
    };
    let digits = rest.chars().filter(char::is_ascii_digit).count();
    rest == "latest" || digits == 8 && rest.chars().all(|c| c.is_ascii_digit() || c == '-')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usage(input: u64, output: u64) -> Usage {
        Usage {
            input: Some(input),
            output: Some(output),
            ..Usage::default()
        }
    }

    #[track_caller]
    fn near(actual: Option<f64>, expected: f64) {
        let actual = actual.unwrap();
        assert!((actual - expected).abs() < 1e-12, "{actual} {expected}");
    }

    #[test]
    fn cached_and_written_tokens_are_part_of_the_input() {
        let price = Price {
            input: 10.0,
            output: 50.0,
            cached: Some(1.0),
            cache_written: Some(12.5),
            holds_to: None,
        };
        near(price.cost(&usage(1_000_000, 100_000)), 15.0);
        let cached = Usage {
            cached: Some(500_000),
            cache_written: Some(400_000),
            ..usage(1_000_000, 0)
        };
        near(price.cost(&cached), 1.0 + 0.5 + 5.0);
        let plain = Price {
            cached: None,
            cache_written: None,
            ..price
        };
        assert_eq!(plain.cost(&cached), None);
        near(plain.cost(&usage(1_000_000, 0)), 10.0);
    }

    #[test]
    fn what_is_not_known_has_no_cost() {
        let prices = Prices::default();
        assert_eq!(prices.cost("openai:llama3", &usage(1, 1)), None);
        assert_eq!(
            prices.cost("anthropic:claude-opus-5", &Usage::default()),
            None
        );
        let half = Usage {
            output: None,
            ..usage(5, 0)
        };
        assert_eq!(prices.cost("anthropic:claude-opus-5", &half), None);
        // Dearer beyond a length, by a rule that the table does not have.
        assert!(prices.cost("openai:gpt-5.4", &usage(200_000, 1)).is_some());
        assert_eq!(prices.cost("openai:gpt-5.4", &usage(300_000, 1)), None);
    }

    #[test]
    fn a_script_costs_nothing() {
        let prices = Prices::default();
        assert_eq!(prices.cost("scripted:a.yaml", &Usage::default()), Some(0.0));
    }

    #[test]
    fn a_dated_name_is_the_same_model_and_another_name_is_not() {
        let prices = Prices::default();
        for (name, same) in [
            ("openai:gpt-5", Some("openai:gpt-5")),
            ("openai:gpt-5-2025-08-07", Some("openai:gpt-5")),
            ("openai:gpt-5-mini-2025-08-07", Some("openai:gpt-5-mini")),
            (
                "anthropic:claude-haiku-4-5-20251001",
                Some("anthropic:claude-haiku-4-5"),
            ),
            (
                "anthropic:claude-opus-5-5",
                Some("anthropic:claude-opus-5-5"),
            ),
            ("anthropic:claude-opus-5-9", None),
            ("openai:gpt-5.9", None),
            ("openai:gpt-5-turbo", None),
            ("openai:gpt-5-2025", None),
            ("gpt-5", None),
        ] {
            let expected = same.map(|same| {
                let exact = table::TABLE.iter().find(|(known, _)| *known == same);
                exact.unwrap().1
            });
            assert_eq!(prices.of(name), expected, "{name}");
        }
    }

    #[test]
    fn the_table_names_each_model_once_and_makes_sense() {
        for (at, (name, price)) in table::TABLE.iter().enumerate() {
            assert!(table::TABLE[..at].iter().all(|(other, _)| other != name));
            assert!(price.input > 0.0 && price.output > price.input, "{name}");
            assert!(
                price.cached.is_none_or(|cached| cached < price.input),
                "{name}"
            );
        }
    }

    fn load(text: &str) -> (Option<Prices>, Vec<String>) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("prices.yaml");
        std::fs::write(&path, text).unwrap();
        let mut problems = Problems::default();
        let prices = Prices::load(&path, &mut problems);
        let said = problems.iter().map(|p| p.message.clone()).collect();
        (prices, said)
    }

    #[test]
    fn the_users_prices_win() {
        let (prices, said) = load(
            "prices:\n  openai:gpt-5: {input: 1, output: 2}\n  openai:local: {input: 0, output: 0}\n  \
             scripted:a.yaml: {input: 5, output: 5, cached: 0.5, cacheWritten: 6}\n",
        );
        assert_eq!(said, Vec::<String>::new());
        let prices = prices.unwrap();
        near(
            prices.cost("openai:gpt-5-2025-08-07", &usage(1_000_000, 0)),
            1.0,
        );
        near(prices.cost("openai:local", &usage(1_000_000, 0)), 0.0);
        let cached = Usage {
            cached: Some(1_000_000),
            ..usage(1_000_000, 0)
        };
        near(prices.cost("openai:gpt-5", &cached), 1.0);
        near(prices.cost("scripted:a.yaml", &usage(1_000_000, 0)), 5.0);
        assert!(prices.of("openai:gpt-5-mini").is_some());
    }

    #[test]
    fn an_invalid_price_file_reports_all_problems() {
        let (prices, said) = load(
            "prices:\n  openai:a: {input: -1, output: x}\n  b: {input: 1, output: 1}\n  openai:c: {input: 1}\n",
        );
        assert!(prices.is_none());
        assert_eq!(
            said,
            [
                "expected a number, zero or more, found the number `-1`",
                "expected a number, zero or more, found the string `x`",
                "`output` is missing",
                "missing provider in `b`",
            ]
        );
    }
}
