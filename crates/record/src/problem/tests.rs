use super::*;

#[test]
fn an_excerpt_of_a_long_line_is_short_and_keeps_the_place() {
    let text = format!("{}HERE{}", "é".repeat(5_000), "x".repeat(5_000));
    let span = Span {
        line: 1,
        column: 5_001,
        chars: 4,
    };
    let found = excerpt(&SourceText::new("a", text), span);
    let offset = (found.column - 1 - found.skipped) as usize;
    let at: String = found.text.chars().skip(offset).take(4).collect();
    assert_eq!(at, "HERE");
    assert_eq!(found.end_column, 5_005);
    assert!(found.text.chars().count() <= 2 * EXCERPT_CHARS);
}

#[test]
fn a_span_behind_the_text_gives_an_empty_line() {
    let span = Span {
        line: 9,
        column: 3,
        chars: 1,
    };
    let found = excerpt(&SourceText::new("a", "a\nb\n".into()), span);
    assert_eq!((found.text.as_str(), found.end_column), ("", 4));
}

#[test]
fn problems_are_deduplicated_and_counted_beyond_the_limit() {
    let mut problems = Problems::default();
    problems.push(Problem::error(Code::File, "same"));
    problems.push(Problem::error(Code::File, "same"));
    assert_eq!(problems.errors(), 1);
    for n in 0..2 * KEPT {
        problems.push(Problem::warning(Code::Value, n.to_string()));
    }
    assert_eq!(problems.iter().count(), KEPT);
    assert_eq!(problems.dropped(), KEPT + 1);
}
