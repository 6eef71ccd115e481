//! Properties of all matchers.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::super::Matcher;
use super::compile;

fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(json!(null)),
        any::<bool>().prop_map(Value::from),
        (0..4).prop_map(Value::from),
        "[ab]{0,2}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 16, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::btree_map("[a-c]", inner, 0..4)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

/// Values, some of them operators, a few of them wrong.
fn any_matcher() -> impl Strategy<Value = Value> {
    any_value().prop_recursive(3, 12, 3, |inner| {
        let list = prop::collection::vec(inner.clone(), 1..3);
        prop_oneof![
            inner.clone().prop_map(|operand| json!({"$not": operand})),
            inner
                .clone()
                .prop_map(|operand| json!({"$contains": operand})),
            inner.clone().prop_map(|operand| json!({"$exact": operand})),
            inner.clone().prop_map(|operand| json!({"a": operand})),
            list.clone().prop_map(|operand| json!({"$oneOf": operand})),
            list.prop_map(|operand| json!({"$unordered": operand})),
            any::<bool>().prop_map(|operand| json!({"$exists": operand})),
            (0..3, 0..5).prop_map(|(min, max)| json!({"$min": min, "$max": max})),
            prop::sample::select(vec!["object", "string", "integer"])
                .prop_map(|operand| json!({"$type": operand})),
        ]
    })
}

fn accepts(matcher: &Matcher, value: Option<&Value>) -> bool {
    matcher.evaluate(value).is_ok()
}

proptest! {
    #[test]
    fn every_value_matches_itself(value in any_value()) {
        prop_assert!(accepts(&compile(&value), Some(&value)));
    }

    #[test]
    fn every_value_matches_exactly_itself(value in any_matcher()) {
        let exact = compile(&json!({"$exact": value}));
        prop_assert!(accepts(&exact, Some(&value)));
    }

    #[test]
    fn exact_is_equality(a in any_value(), b in any_value()) {
        let exact = compile(&json!({"$exact": a}));
        prop_assert_eq!(accepts(&exact, Some(&b)), proctor_record::json::equal(&a, &b));
    }

    #[test]
    fn asking_for_fewer_keys_never_breaks_a_match(
        mut asked in prop::collection::btree_map("[a-c]", any_value(), 1..4),
        value in any_value(),
        dropped in any::<prop::sample::Index>(),
    ) {
        let more = compile(&json!(asked));
        let key = asked.keys().nth(dropped.index(asked.len())).unwrap().clone();
        asked.remove(&key);
        let fewer = compile(&json!(asked));
        for value in [value, more.written().clone()] {
            if accepts(&more, Some(&value)) {
                prop_assert!(accepts(&fewer, Some(&value)));
            }
        }
    }

    #[test]
    fn not_is_an_involution(written in any_matcher(), value in prop::option::of(any_value())) {
        if let Ok(matcher) = Matcher::compile(&written) {
            let not = compile(&json!({"$not": written}));
            let twice = compile(&json!({"$not": {"$not": written}}));
            prop_assert_eq!(accepts(&matcher, value.as_ref()), !accepts(&not, value.as_ref()));
            prop_assert_eq!(accepts(&matcher, value.as_ref()), accepts(&twice, value.as_ref()));
        }
    }

    #[test]
    fn unordered_does_not_see_order(
        (elements, shuffled) in prop::collection::vec(any_value(), 0..5)
            .prop_flat_map(|elements| (Just(elements.clone()), Just(elements).prop_shuffle())),
        (found, reordered) in prop::collection::vec(any_value(), 0..5)
            .prop_flat_map(|found| (Just(found.clone()), Just(found).prop_shuffle())),
    ) {
        let matcher = compile(&json!({"$unordered": elements}));
        prop_assert!(accepts(&matcher, Some(&Value::from(shuffled.clone()))));
        let other = compile(&json!({"$unordered": shuffled}));
        let (found, reordered) = (Value::from(found), Value::from(reordered));
        prop_assert_eq!(accepts(&matcher, Some(&found)), accepts(&matcher, Some(&reordered)));
        prop_assert_eq!(accepts(&matcher, Some(&found)), accepts(&other, Some(&found)));
    }

    #[test]
    fn a_distance_of_nothing_is_a_match(
        written in any_matcher(),
        value in prop::option::of(any_value()),
    ) {
        if let Ok(matcher) = Matcher::compile(&written) {
            let accepted = accepts(&matcher, value.as_ref());
            prop_assert_eq!(accepted, matcher.distance(value.as_ref()) == 0);
        }
    }

    #[test]
    fn what_can_never_match_does_not(
        written in any_matcher(),
        value in prop::option::of(any_value()),
    ) {
        if let Ok(matcher) = Matcher::compile(&written) {
            prop_assert!(!accepts(&matcher, value.as_ref()) || matcher.can_match());
        }
    }

    #[test]
    fn what_cannot_match_an_object_does_not(
        written in any_matcher(),
        members in prop::collection::btree_map("[a-c]", any_value(), 0..3),
    ) {
        if let Ok(matcher) = Matcher::compile(&written) {
            let accepted = accepts(&matcher, Some(&json!(members)));
            prop_assert!(!accepted || matcher.can_match_object());
            prop_assert!(accepted || !matcher.matches_every_object());
        }
    }
}
