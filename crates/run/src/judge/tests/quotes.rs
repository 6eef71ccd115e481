//! Quotes are looked up in the exhibits.

use super::*;

#[test]
fn quotes_are_looked_up_in_the_exhibits() {
    let transcript =
        transcript(json!({"content": [{"type": "text", "text": "ready:  3\nof 3\u{200b}!"}]}));
    let exhibits = exhibits("There are\n  three.", Some(&transcript));
    let check = |choice, quotes: &[&str], expected: Result<Vec<u64>, BallotRejection>| {
        let rubric = Criterion::Rubric("It says how many.".to_owned());
        let question = JudgeQuestion::new(&rubric, &exhibits, boundary(), None);
        assert_eq!(
            question.check(&ballot(choice, quotes)),
            expected,
            "{quotes:?}"
        );
    };
    let invented = |quote: &str| Err(BallotRejection::Invented(quote.to_owned()));
    check(BallotVerdict::Pass, &["There are three."], Ok(vec![]));
    check(BallotVerdict::Pass, &["There  are\nthree"], Ok(vec![]));
    check(
        BallotVerdict::Pass,
        &["ready: 3 of 3\\u{200b}!"],
        Ok(vec![7]),
    );
    check(
        BallotVerdict::Pass,
        &["tool: get", "There are three"],
        Ok(vec![7]),
    );
    // A few letters are in every text.
    for quotes in [&["t"][..], &["three"], &["tool: get", "three."]] {
        check(BallotVerdict::Pass, quotes, Err(BallotRejection::Short));
    }
    check(
        BallotVerdict::Pass,
        &["3\\u{200b}", "How many replicas"],
        Err(BallotRejection::Short),
    );
    check(BallotVerdict::Fail, &["three"], Ok(vec![]));
    check(
        BallotVerdict::Pass,
        &["There are four."],
        invented("There are four."),
    );
    check(BallotVerdict::Pass, &["three", "four"], invented("four"));
    check(BallotVerdict::Fail, &["four"], invented("four"));
    check(BallotVerdict::Unknown, &["four"], invented("four"));
    check(BallotVerdict::Pass, &["THREE"], invented("THREE"));
    // Text of the user or the suite is shown, but proves nothing about the agent.
    check(
        BallotVerdict::Pass,
        &["How many replicas"],
        Err(BallotRejection::Missing),
    );
    check(
        BallotVerdict::Pass,
        &["It says how many."],
        Err(BallotRejection::Missing),
    );
    check(BallotVerdict::Pass, &[], Err(BallotRejection::Missing));
    check(BallotVerdict::Fail, &["How many replicas"], Ok(vec![]));
    check(BallotVerdict::Fail, &[], Ok(vec![]));
    check(BallotVerdict::Unknown, &[], Ok(vec![]));
}

#[test]
fn a_quote_does_not_span_an_omitted_part() {
    let long = format!("{}b{}", "a".repeat(32 * 1024), "c".repeat(40_000));
    let exhibits = exhibits(&long, None);
    let question = JudgeQuestion::new(&reference(), &exhibits, boundary(), None);
    for quote in ["a c", "ac", "bytes left out"] {
        let found = question.check(&ballot(BallotVerdict::Pass, &[quote]));
        assert_eq!(found, Err(BallotRejection::Invented(quote.to_owned())));
    }
    let quote = "a".repeat(12);
    assert_eq!(
        question.check(&ballot(BallotVerdict::Pass, &[&quote])),
        Ok(vec![])
    );
}

#[test]
fn a_short_quote_is_enough_if_it_is_the_whole_exhibit() {
    let check = |answer: &str, quote: &str, expected| {
        let exhibits = exhibits(answer, None);
        let question = JudgeQuestion::new(&reference(), &exhibits, boundary(), None);
        assert_eq!(
            question.check(&ballot(BallotVerdict::Pass, &[quote])),
            expected
        );
    };
    check("5", "5", Ok(vec![]));
    check(" 5\n", "5", Ok(vec![]));
    check("55", "5", Err(BallotRejection::Short));
    check("twelve chars", "twelve chars", Ok(vec![]));
    check("twelve chars.", "twelve chars", Ok(vec![]));
    check("eleven char.", "eleven char", Err(BallotRejection::Short));
}

#[test]
fn a_pass_without_quotable_exhibits_needs_no_quote() {
    let rubric = Criterion::Rubric("The agent does nothing.".to_owned());
    let question = JudgeQuestion::new(&rubric, &exhibits(" \n", None), boundary(), None);
    assert_eq!(
        question.check(&ballot(BallotVerdict::Pass, &[])),
        Ok(vec![])
    );
}
