//! A server's list, page by page.

use mcp_evals::{
    Eval, EvalFile, Expected, Input, Level, ListParams, ListedEval, Message, PageError, Suite,
};
use proptest::prelude::*;
use serde_json::json;

fn eval(id: &str, level: Level) -> Eval {
    let messages = [Message::user("go")];
    let input = match level {
        Level::Invocation => Input::invocation(messages),
        Level::Execution => Input::execution("t", json!({})),
        Level::Scenario => Input::scenario(messages),
    };
    Eval::new(id, id, input, Expected::rubric("good"))
}

fn suite(ids: &[&str]) -> Suite {
    let evals = ids.iter().map(|id| eval(id, Level::Execution)).collect();
    Suite::new(evals)
        .expect("the evals are valid")
        .with_page_size(2)
}

fn ids(items: &[ListedEval]) -> Vec<&str> {
    items.iter().filter_map(ListedEval::id).collect()
}

#[test]
fn e4_pages_follow_each_other_to_the_end() {
    let suite = suite(&["a", "b", "c", "d", "e"]);
    let mut params = ListParams::default();
    let mut seen = Vec::new();
    let mut sizes = Vec::new();
    loop {
        let page = suite.page(&params).unwrap();
        sizes.push(page.evals.len());
        seen.extend(ids(&page.evals).into_iter().map(str::to_owned));
        match page.next_cursor {
            Some(cursor) => params.cursor = Some(cursor),
            None => break,
        }
    }
    assert_eq!(seen, ["a", "b", "c", "d", "e"]);
    assert_eq!(sizes, [2, 2, 1]);
}

#[test]
fn e4_the_last_full_page_has_no_cursor() {
    let suite = suite(&["a", "b"]);
    assert_eq!(
        suite.page(&ListParams::default()).unwrap().next_cursor,
        None
    );
    let empty = Suite::default().page(&ListParams::default()).unwrap();
    assert_eq!(empty.to_value(), json!({"evals": []}));
}

#[test]
fn e4_the_level_is_a_filter() {
    let evals = (0..9)
        .map(|n| eval(&n.to_string(), Level::ALL[n % 3]))
        .collect();
    let suite = Suite::new(evals).unwrap().with_page_size(2);
    let params = ListParams::of_level(Level::Scenario);
    let first = suite.page(&params).unwrap();
    assert_eq!(ids(&first.evals), ["2", "5"]);
    let second = suite
        .page(&params.after(first.next_cursor.unwrap()))
        .unwrap();
    assert_eq!(ids(&second.evals), ["8"]);
    assert_eq!(second.next_cursor, None);
}

#[test]
fn e4_a_cursor_holds_when_evals_come_and_go() {
    let before = suite(&["a", "b", "c", "d"]);
    let cursor = before
        .page(&ListParams::default())
        .unwrap()
        .next_cursor
        .unwrap();
    let cases: [(&[&str], &[&str]); 5] = [
        (&["new", "a", "b", "c", "d"], &["c", "d"]),
        (&["b", "c", "d"], &["c", "d"]),
        (&["d", "c", "b", "a"], &["a"]),
        (&["a"], &[]),
        (&[], &[]),
    ];
    for (after, expected) in cases {
        let params = ListParams::default().after(&cursor);
        assert_eq!(ids(&suite(after).page(&params).unwrap().evals), expected);
    }
}

#[test]
fn e4_wrong_params_are_refused() {
    let suite = suite(&["a"]);
    for cursor in [
        "2",
        "x-0123456789abcdef",
        "0-0",
        "-",
        "0-0123456789ABCDEF",
        "+1-0123456789abcdef",
    ] {
        let error = suite
            .page(&ListParams::default().after(cursor))
            .unwrap_err();
        assert_eq!(error, PageError::Cursor(cursor.to_owned()));
        assert_eq!(error.code(), -32602);
    }
    for params in [
        json!([]),
        json!({"cursor": null}),
        json!({"level": "unit"}),
        json!({"level": 1}),
    ] {
        let error = suite.answer(Some(&params)).unwrap_err();
        assert!(matches!(error, PageError::Params(_)), "{params}");
        assert_eq!(error.code(), -32602);
    }
    let good = [
        None,
        Some(json!({})),
        Some(json!({"cursor": "", "level": "execution", "_meta": {}})),
    ];
    for params in good {
        assert_eq!(suite.answer(params.as_ref()).unwrap().evals.len(), 1);
    }
}

#[test]
fn e10_a_suite_has_no_invalid_evals() {
    let twice = vec![eval("a", Level::Execution), eval("a", Level::Scenario)];
    let error = Suite::new(twice).unwrap_err();
    assert!(
        error.to_string().contains("2 evals have this id"),
        "{error}"
    );
    let file = EvalFile::from_json(r#"[{"id": "a"}]"#).unwrap();
    assert!(file.into_suite().is_err());
    let newer = EvalFile::from_json(r#"[{"id": "a", "gradingType": "regex"}]"#).unwrap();
    assert_eq!(newer.into_suite().unwrap().items().len(), 1);
}

proptest! {
    #[test]
    fn every_eval_is_listed_once(count in 0_usize..40, size in 0_usize..9, level in 0_usize..4) {
        let evals = (0..count).map(|n| eval(&n.to_string(), Level::ALL[n % 3])).collect();
        let suite = Suite::new(evals).unwrap().with_page_size(size);
        let level = Level::ALL.get(level).copied();
        let mut params = ListParams { level, ..ListParams::default() };
        let mut seen = Vec::new();
        loop {
            let page = suite.page(&params).unwrap();
            seen.extend(ids(&page.evals).into_iter().map(str::to_owned));
            prop_assert!(page.next_cursor.is_none() || !page.evals.is_empty());
            match page.next_cursor {
                Some(cursor) => params.cursor = Some(cursor),
                None => break,
            }
        }
        let wanted: Vec<String> = (0..count)
            .filter(|n| level.is_none_or(|level| Level::ALL[n % 3] == level))
            .map(|n| n.to_string())
            .collect();
        prop_assert_eq!(seen, wanted);
    }

    #[test]
    fn any_cursor_is_answered_or_refused(cursor in ".*|[0-9a-f]{1,20}-[0-9a-f]{16}") {
        let suite = suite(&["a", "b", "c"]);
        if let Err(error) = suite.page(&ListParams::default().after(cursor)) {
            prop_assert_eq!(error.code(), -32602);
        }
    }
}
