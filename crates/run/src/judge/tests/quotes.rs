//! Quotes, looked up in what was shown.

use super::*;

#[test]
fn quotes_are_looked_up_in_what_was_shown() {
    let transcript =
        transcript(json!({"content": [{"type": "text", "text": "ready:  3\nof 3\u{200b}!"}]}));
    let exhibits = exhibits("There are\n  three.", Some(&transcript));
    let check = |choice, quotes: &[&str], expected: Result<Vec<u64>, Unproven>| {
        let rubric = Criterion::Rubric("It says how many.".to_owned());
        let question = Question::new(&rubric, &exhibits, boundary(), None);
        assert_eq!(
            question.check(&ballot(choice, quotes)),
            expected,
            "{quotes:?}"
        );
    };
    let invented = |quote: &str| Err(Unproven::Invented(quote.to_owned()));
    check(Choice::Pass, &["There are three."], Ok(vec![]));
    check(Choice::Pass, &["There  are\nthree"], Ok(vec![]));
    check(Choice::Pass, &["ready: 3 of 3\\u{200b}!"], Ok(vec![7]));
    check(Choice::Pass, &["tool: get", "There are three"], Ok(vec![7]));
    // A few letters are in every text.
    for quotes in [&["t"][..], &["three"], &["tool: get", "three."]] {
        check(Choice::Pass, quotes, Err(Unproven::Short));
    }
    check(
        Choice::Pass,
        &["3\\u{200b}", "How many replicas"],
        Err(Unproven::Short),
    );
    check(Choice::Fail, &["three"], Ok(vec![]));
    check(
        Choice::Pass,
        &["There are four."],
        invented("There are four."),
    );
    check(Choice::Pass, &["three", "four"], invented("four"));
    check(Choice::Fail, &["four"], invented("four"));
    check(Choice::Unknown, &["four"], invented("four"));
    check(Choice::Pass, &["THREE"], invented("THREE"));
    // What the user or the suite wrote is there, but proves nothing about the agent.
    check(Choice::Pass, &["How many replicas"], Err(Unproven::Missing));
    check(Choice::Pass, &["It says how many."], Err(Unproven::Missing));
    check(Choice::Pass, &[], Err(Unproven::Missing));
    check(Choice::Fail, &["How many replicas"], Ok(vec![]));
    check(Choice::Fail, &[], Ok(vec![]));
    check(Choice::Unknown, &[], Ok(vec![]));
}

#[test]
fn a_quote_does_not_span_what_was_left_out() {
    let long = format!("{}b{}", "a".repeat(32 * 1024), "c".repeat(40_000));
    let exhibits = exhibits(&long, None);
    let question = Question::new(&reference(), &exhibits, boundary(), None);
    for quote in ["a c", "ac", "bytes left out"] {
        let found = question.check(&ballot(Choice::Pass, &[quote]));
        assert_eq!(found, Err(Unproven::Invented(quote.to_owned())));
    }
    let quote = "a".repeat(12);
    assert_eq!(question.check(&ballot(Choice::Pass, &[&quote])), Ok(vec![]));
}

#[test]
fn a_short_quote_is_enough_if_it_is_all_there_is() {
    let check = |answer: &str, quote: &str, expected| {
        let exhibits = exhibits(answer, None);
        let question = Question::new(&reference(), &exhibits, boundary(), None);
        assert_eq!(question.check(&ballot(Choice::Pass, &[quote])), expected);
    };
    check("5", "5", Ok(vec![]));
    check(" 5\n", "5", Ok(vec![]));
    check("55", "5", Err(Unproven::Short));
    check("twelve chars", "twelve chars", Ok(vec![]));
    check("twelve chars.", "twelve chars", Ok(vec![]));
    check("eleven char.", "eleven char", Err(Unproven::Short));
}

#[test]
fn where_there_is_nothing_to_quote_a_pass_needs_no_quote() {
    let rubric = Criterion::Rubric("The agent does nothing.".to_owned());
    let question = Question::new(&rubric, &exhibits(" \n", None), boundary(), None);
    assert_eq!(question.check(&ballot(Choice::Pass, &[])), Ok(vec![]));
}
