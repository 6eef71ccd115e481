//! Votes are counted.

use super::*;

fn votes(text: &str) -> Vec<Vote> {
    let vote = |(number, c): (usize, char)| Vote {
        model: format!("scripted:{number}"),
        verdict: match c {
            'p' => Verdict::Pass,
            'f' => Verdict::fail("no"),
            _ => Verdict::unknown("who knows"),
        },
        reason: "so".to_owned(),
        quotes: vec![format!("quote {number}")],
        evidence: vec![number as u64],
        attempts: 1,
    };
    text.chars().enumerate().map(vote).collect()
}

#[test]
fn the_majority_of_definite_votes_decides_with_a_quorum() {
    let check = |given: &str, wanted: usize, expected: Verdict, evidence: &[u64]| {
        let ruling = tally::ruling(votes(given), wanted);
        assert_eq!(ruling.verdict, expected, "{given} of {wanted}");
        assert_eq!(ruling.evidence, evidence, "{given} of {wanted}");
    };
    check("p", 1, Verdict::Pass, &[0]);
    check("f", 1, Verdict::fail("no"), &[0]);
    check("u", 1, Verdict::unknown("who knows"), &[0]);
    check("ppf", 3, Verdict::Pass, &[0, 1]);
    check("fpf", 3, Verdict::fail("no"), &[0, 2]);
    check("ppu", 3, Verdict::Pass, &[0, 1]);
    check(
        "puu",
        3,
        Verdict::unknown("only 1 of 3 votes are definite: who knows"),
        &[1, 2],
    );
    check(
        "pfu",
        3,
        Verdict::unknown("the votes are split: 1 pass, 1 fail, 1 unknown"),
        &[2],
    );
    check("ppfuu", 5, Verdict::Pass, &[0, 1]);
    check(
        "ppuuu",
        5,
        Verdict::unknown("only 2 of 5 votes are definite: who knows"),
        &[2, 3, 4],
    );
    check(
        "",
        0,
        Verdict::unknown("only 0 of 0 votes are definite: no usable votes"),
        &[],
    );
    check("", 1, Verdict::unknown("no usable votes"), &[]);
}

#[test]
fn a_dropped_vote_is_an_error_only_if_it_could_change_the_result() {
    let settled = |given: &str, wanted: usize| tally::is_settled(&votes(given), wanted);
    assert!(settled("pp", 3));
    assert!(settled("ff", 3));
    assert!(!settled("pf", 3));
    assert!(!settled("pu", 3));
    assert!(!settled("p", 3));
    assert!(!settled("", 1));
    assert!(settled("pppf", 5));
    assert!(!settled("ppf", 5));
    assert_eq!(
        tally::ruling(votes("pp"), 3).notes[0],
        "votes: 2 pass, 0 fail, 0 unknown, 1 not given"
    );
}

#[test]
fn the_notes_of_a_ruling_hold_reasons_quotes_and_the_split() {
    assert_eq!(
        tally::ruling(votes("pfp"), 3).notes,
        [
            "votes: 2 pass, 1 fail, 0 unknown",
            "scripted:0: pass: so",
            "quote: \"quote 0\"",
            "scripted:1: fail: no",
            "scripted:2: pass: so",
            "quote: \"quote 2\"",
        ]
    );
    assert_eq!(tally::ruling(votes("f"), 1).notes, ["quote: \"quote 0\""]);
}

#[test]
fn a_majority_is_right_as_often_as_the_reference_values_say() {
    let text = include_str!("../../../../core/tests/statistics.json");
    let all: Value = serde_json::from_str(text).unwrap();
    let group = all["majority_accuracy_indep"].as_array().unwrap();
    assert!(group.len() > 9);
    for case in group {
        let right = case["q"].as_f64().unwrap();
        let count = u32::try_from(case["m"].as_u64().unwrap()).unwrap();
        let mut accuracy = 0.0;
        // Every sequence of right and wrong votes, with its chance.
        for ways in 0..1_u32 << count {
            let is_right = |vote: u32| ways >> vote & 1 == 1;
            let given: String = (0..count)
                .map(|vote| if is_right(vote) { 'p' } else { 'f' })
                .collect();
            let chance: f64 = (0..count)
                .map(|vote| if is_right(vote) { right } else { 1.0 - right })
                .product();
            if tally::ruling(votes(&given), count as usize).verdict == Verdict::Pass {
                accuracy += chance;
            }
        }
        assert!(
            (accuracy - case["acc"].as_f64().unwrap()).abs() < 1e-8,
            "{case} {accuracy}"
        );
    }
}
