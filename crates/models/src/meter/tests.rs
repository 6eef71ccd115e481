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
fn without_a_budget_every_request_is_allowed() {
    let meter = meter(None, None);
    meter.charge(Purpose::Agent, "openai:unheard-of", &Usage::default());
    assert_eq!(meter.check(), Ok(()));
    assert_eq!(meter.refusal("openai:unheard-of"), None);
}

#[test]
fn a_budget_in_dollars_is_enforced() {
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
fn a_budget_in_tokens_is_enforced() {
    let meter = meter(None, Some(100));
    meter.charge(Purpose::Agent, "openai:local", &usage(60, 39));
    assert_eq!(meter.check(), Ok(()));
    meter.charge(Purpose::Agent, "openai:local", &usage(1, 0));
    assert_eq!(refused(&meter), "the budget of 100 tokens is spent: 100");
    assert_eq!(meter.spent().total().known_cost(), None);
}

#[test]
fn a_budget_that_can_not_be_enforced_is_an_error() {
    let dollars = meter(Some(1.0), None);
    assert_eq!(dollars.refusal(MODEL), None);
    assert_eq!(dollars.refusal("scripted:a.yaml"), None);
    assert_eq!(
        dollars.refusal("openai:local").unwrap(),
        "can't enforce the budget of $1.00: the price of `openai:local` is unknown"
    );
    dollars.charge(Purpose::Agent, MODEL, &Usage::default());
    assert!(refused(&dollars).contains("the cost of 1 reply is unknown"));
    let tokens = meter(None, Some(5));
    assert_eq!(tokens.refusal("openai:local"), None);
    tokens.charge(Purpose::Agent, "scripted:a.yaml", &Usage::default());
    assert_eq!(tokens.check(), Ok(()));
    tokens.charge(Purpose::Agent, MODEL, &Usage::default());
    assert!(refused(&tokens).contains("the token usage of 1 reply is unknown"));
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
fn a_budget_of_zero_allows_no_request() {
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
