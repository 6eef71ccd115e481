//! Matchers: a value that matches does so again, `$not` turns every answer around, only `$exists` and `$not` accept an absent
//! value, and no matcher meets a check on a trial without calls.
#![no_main]

use libfuzzer_sys::fuzz_target;
use proctor_core::matcher::Matcher;
use proctor_fuzz::{halves, silent_trial, tool_used};
use proctor_record::verdict::Verdict;
use serde_json::{Value, json};

fuzz_target!(|data: &[u8]| {
    let Some((written, value)) = halves(data) else {
        return;
    };
    let Ok(written) = serde_json::from_slice::<Value>(written) else {
        return;
    };
    let value = serde_json::from_slice::<Value>(value).ok();
    matches_itself(&written);
    let Ok(matcher) = Matcher::compile(&written) else {
        return;
    };
    let accepts = |matcher: &Matcher, value: Option<&Value>| matcher.evaluate(value).is_ok();
    let again = Matcher::compile(matcher.written()).expect("it compiled before");
    assert_eq!(again, matcher);
    for value in [value.as_ref(), None, Some(&written), Some(&json!({}))] {
        let accepted = accepts(&matcher, value);
        assert_eq!(accepted, accepts(&matcher, value), "the second time");
        assert_eq!(accepted, accepts(&again, value), "compiled again");
        assert_eq!(accepted, matcher.distance(value) == 0);
        assert!(!accepted || matcher.can_match());
        if value.is_some_and(Value::is_object) {
            assert!(!accepted || matcher.can_match_object());
            assert!(accepted || !matcher.matches_every_object());
        }
        if let Ok(not) = Matcher::compile(&json!({ "$not": written })) {
            assert_eq!(accepted, !accepts(&not, value), "`$not`");
        }
        if value.is_none() && accepted {
            let text = written.to_string();
            assert!(text.contains("$exists") || text.contains("$not"));
        }
        let _ = matcher.reads_lone_surrogate(value);
    }
    let check = tool_used(Some(matcher));
    let verdict = check.evaluate(&silent_trial().transcript).verdict;
    assert_ne!(verdict, Verdict::Pass);
});

fn matches_itself(value: &Value) {
    if let Ok(exact) = Matcher::compile(&json!({ "$exact": value })) {
        assert!(exact.evaluate(Some(value)).is_ok(), "a value is itself");
    }
}
