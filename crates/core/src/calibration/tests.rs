use super::*;

fn line(human: &str, judge: &str) -> String {
    format!(
        r#"{{"contains":"22 degrees","answer":"It is 22.","human":"{human}","judge":"{judge}"}}"#
    )
}

fn calibrated(lines: &[(usize, &str, &str)]) -> Calibration {
    let text: Vec<String> = lines
        .iter()
        .flat_map(|(count, human, judge)| vec![line(human, judge); *count])
        .collect();
    let labels = parse(&text.join("\n")).unwrap();
    Calibration::of(labels.into_iter().map(|label| JudgedLabel {
        judge: label.recorded.clone().unwrap(),
        label,
    }))
}

#[test]
fn every_pair_of_verdicts_is_counted_once_and_unknown_ones_apart() {
    let found = calibrated(&[
        (20, "pass", "pass"),
        (5, "pass", "fail"),
        (10, "fail", "pass"),
        (15, "fail", "fail"),
        (2, "pass", "unknown"),
        (3, "fail", "unknown"),
    ]);
    let expected = Agreement {
        both_pass: 20,
        only_people_pass: 5,
        only_judge_passes: 10,
        both_fail: 15,
    };
    assert_eq!(found.agreement, expected);
    assert_eq!(found.unknown, [2, 3]);
    assert_eq!(found.disagreements.len(), 15);
    assert_eq!(found.unknown_labels.len(), 5);
    assert_eq!(found.shortage(), None);
    // The first table of the reference values.
    let kappa = found.agreement.kappa().unwrap();
    assert!((kappa.value - 0.4).abs() < 1e-12);
    assert_eq!(found.agreement.sensitivity(), Some(0.8));
    assert_eq!(found.agreement.specificity(), Some(0.6));
}

#[test]
fn too_few_labels_of_either_kind_say_so() {
    let check = |passed: usize, failed: usize, is_short: bool| {
        let found = calibrated(&[(passed, "pass", "pass"), (failed, "fail", "fail")]);
        assert_eq!(found.shortage().is_some(), is_short, "{passed} {failed}");
    };
    check(10, 10, false);
    check(9, 100, true);
    check(100, 9, true);
    check(0, 0, true);
    // Unknown verdicts are not evidence.
    let found = calibrated(&[(10, "pass", "unknown"), (10, "fail", "fail")]);
    assert!(found.shortage().unwrap().contains("passed 0 and failed 10"));
}

#[test]
fn a_judge_without_an_answer_is_a_shortage() {
    let labels = parse(&line("pass", "pass")).unwrap();
    let found = Calibration::of(labels.into_iter().map(|label| JudgedLabel {
        judge: JudgeVerdict {
            choice: JudgeChoice::NoAnswer,
            reason: "no such key".to_owned(),
        },
        label,
    }));
    assert_eq!(found.agreement.total(), 0);
    assert!(found.shortage().unwrap().contains("no such key"));
}

#[test]
fn every_wrong_line_is_named() {
    let check = |line: &str, message: &str| {
        let text = format!("\n{}\n{line}\n", super::tests::line("pass", "pass"));
        let errors = parse(&text).unwrap_err();
        assert_eq!(errors.len(), 1, "{errors:?}");
        assert_eq!(errors[0].line, 3);
        assert!(errors[0].message.contains(message), "{}", errors[0]);
    };
    check("not json", "a JSON object");
    check("{]", "key must be a string");
    check(
        "[null,\"a\",null,null,null,\"a\",\"pass\",null,null]",
        "a JSON object",
    );
    check("{}", "missing field `answer`");
    check(
        r#"{"contains":"a","answer":"a","human":"pass","judge":"noanswer"}"#,
        "unknown variant `noanswer`",
    );
    check(r#"{"answer":"a","human":"pass"}"#, "one of `contains`");
    check(
        r#"{"contains":"a","exact":"b","answer":"a","human":"pass"}"#,
        "one of `contains`",
    );
    check(r#"{"contains":" ","answer":"a","human":"pass"}"#, "empty");
    check(
        r#"{"contains":"a","human":"pass"}"#,
        "missing field `answer`",
    );
    check(r#"{"contains":"a","answer":"a"}"#, "missing field `human`");
    check(
        r#"{"contains":"a","answer":"a","human":"unknown"}"#,
        "unknown variant `unknown`",
    );
    check(
        r#"{"contains":"a","answer":"a","human":"Pass"}"#,
        "unknown variant `Pass`",
    );
    check(
        r#"{"contains":"a","answer":"a","human":"pass","verdict":"pass"}"#,
        "unknown field `verdict`",
    );
    check(
        r#"{"contains":"a","answer":"a","human":"pass","human":"fail"}"#,
        "duplicate field `human`",
    );
    assert_eq!(parse("x\n\ny").unwrap_err().len(), 2);
    assert_eq!(parse(" \n"), Ok(Vec::new()));
}
