//! The built-in price table, from the providers' published prices.
//!
//! Anthropic's are from its own pages. OpenAI's are from public sources of 2026 that quote its page,
//! not from the page itself. Other models are absent. Surcharges (long input, priority,
//! regions, one-hour caches) are not included: where they apply, the price is unknown.

use super::Price;

/// The date on which the prices were looked up.
pub const AS_OF: &str = "2026-11";

pub(super) const NOTHING: Price = Price {
    input: 0.0,
    output: 0.0,
    cached: None,
    cache_written: None,
    holds_to: None,
};

/// `provider:id` without a date, and the price.
pub(super) const TABLE: [(&str, Price); 23] = [
    ("anthropic:claude-opus-5-5", claude(4.0, 5.0, 0.2, 20.0)),
    ("anthropic:claude-opus-5", claude(5.0, 6.25, 0.5, 25.0)),
    ("anthropic:claude-opus-4-8", claude(5.0, 6.25, 0.5, 25.0)),
    ("anthropic:claude-opus-4-7", claude(5.0, 6.25, 0.5, 25.0)),
    ("anthropic:claude-opus-4-6", claude(5.0, 6.25, 0.5, 25.0)),
    ("anthropic:claude-opus-4-5", claude(5.0, 6.25, 0.5, 25.0)),
    ("anthropic:claude-opus-4-1", claude(15.0, 18.75, 1.5, 75.0)),
    ("anthropic:claude-fable-5", claude(10.0, 12.5, 1.0, 50.0)),
    ("anthropic:claude-sonnet-5-5", claude(2.0, 2.5, 0.2, 10.0)),
    ("anthropic:claude-sonnet-5", claude(2.0, 2.5, 0.2, 10.0)),
    ("anthropic:claude-sonnet-4-5", plain(3.0, 15.0, None)),
    ("anthropic:claude-haiku-5-5", plain(0.1, 0.5, Some(100_000))),
    ("anthropic:claude-haiku-4-5", plain(1.0, 5.0, None)),
    ("openai:gpt-5.5", gpt(5.0, 0.5, 30.0, Some(LONG))),
    ("openai:gpt-5.4", gpt(2.5, 0.25, 15.0, Some(LONG))),
    ("openai:gpt-5.4-mini", gpt(0.75, 0.075, 4.5, None)),
    ("openai:gpt-5.4-nano", gpt(0.2, 0.02, 1.25, None)),
    ("openai:gpt-5.2", gpt(1.75, 0.175, 14.0, None)),
    ("openai:gpt-5", gpt(1.25, 0.125, 10.0, None)),
    ("openai:gpt-5-mini", gpt(0.25, 0.025, 2.0, None)),
    ("openai:gpt-4.1", gpt(2.0, 0.5, 8.0, None)),
    ("openai:gpt-4o", gpt(2.5, 1.25, 10.0, None)),
    ("openai:gpt-4o-mini", gpt(0.15, 0.075, 0.6, None)),
];

/// The input length above which some models cost more.
const LONG: u64 = 272_000;

const fn claude(input: f64, cache_written: f64, cached: f64, output: f64) -> Price {
    Price {
        input,
        output,
        cached: Some(cached),
        cache_written: Some(cache_written),
        holds_to: None,
    }
}

/// A price without cache prices, which were not looked up.
const fn plain(input: f64, output: f64, holds_to: Option<u64>) -> Price {
    Price {
        input,
        output,
        cached: None,
        cache_written: None,
        holds_to,
    }
}

const fn gpt(input: f64, cached: f64, output: f64, holds_to: Option<u64>) -> Price {
    Price {
        input,
        output,
        cached: Some(cached),
        cache_written: None,
        holds_to,
    }
}
