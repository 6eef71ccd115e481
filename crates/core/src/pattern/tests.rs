use super::*;

#[track_caller]
fn check(pattern: &str, matches: &[&str], misses: &[&str]) {
    let compiled = Pattern::compile(pattern).unwrap();
    for text in matches {
        assert!(compiled.is_match(text), "`{pattern}` should match `{text}`");
    }
    for text in misses {
        assert!(!compiled.is_match(text), "`{pattern}` should miss `{text}`");
    }
}

#[test]
fn a_pattern_means_what_it_means_in_re2() {
    check("pods_.*", &["pods_list", "my_pods_x"], &["pod"]);
    check("^pods$", &["pods"], &["pods\n", "xpods"]);
    check(r"^\d+$", &["123"], &["١٢٣", ""]);
    check(r"^\w+$", &["a_1"], &["é", "a-b"]);
    check(r"^[\w-]+$", &["a-b_1"], &["é"]);
    check(r"^[\D]+$", &["abc"], &["1"]);
    check(r"^[^\d]$", &["a"], &["1"]);
    check(r"^\s$", &[" ", "\t"], &["\u{a0}", "\u{b}"]);
    check(r"\bfoo\b", &["a foo b", "éfoo"], &["afoo"]);
    check(r"a\Bb", &["ab"], &["a b"]);
    check("a{,5}", &["a{,5}"], &["aaa"]);
    check("a{", &["a{"], &["a"]);
    check("{name}", &["x{name}"], &["name"]);
    check("^a{2}$", &["aa"], &["a"]);
    check("^a{2,}$", &["aaaa"], &["a"]);
    check("^a{1,2}$", &["aa"], &["aaa"]);
    check(r"\Qa.b\E.c", &["a.bxc"], &["axbxc"]);
    check(r"\Qa.b", &["a.b"], &["axb"]);
    check("^[[]$", &["["], &["]"]);
    check("^[]a]$", &["]", "a"], &["["]);
    check("^[^]a]$", &["b"], &["]", "a"]);
    check("^[a&&b]$", &["a", "&", "b"], &["c"]);
    check("^[+--]$", &["+", ",", "-"], &["."]);
    check("^[--/]$", &["-", ".", "/"], &["0"]);
    check("^[a-]$", &["a", "-"], &["b"]);
    check("^[[:alpha:]_]+$", &["ab_"], &["a1"]);
    check("^[[:^alpha:]]$", &["1"], &["a"]);
    check(r"^\101$", &["A"], &["B"]);
    check(r"^\x41\x{42}$", &["AB"], &[]);
    check("(?i)PODS", &["pods"], &[]);
    check(r"^\p{Greek}$", &["λ"], &["l"]);
}

#[test]
fn invalid_patterns_are_explained() {
    let error = |p: &str| Pattern::compile(p).unwrap_err().to_string();
    assert_eq!(error("("), "unclosed group");
    assert_eq!(error("[a"), "unclosed character class");
    assert_eq!(error("a\\"), "the pattern ends with a single backslash");
    assert_eq!(error(r"\C"), r"`\C` is not supported");
    assert_eq!(
        error("((a{1000}){1000}){1000}"),
        "the compiled pattern needs more than 1048576 bytes"
    );
}

proptest::proptest! {
    #[test]
    fn an_escaped_text_matches_itself_alone(text: String, other: String) {
        let pattern = Pattern::compile(&format!("^{}$", Pattern::escape(&text))).unwrap();
        proptest::prop_assert!(pattern.is_match(&text));
        proptest::prop_assert_eq!(pattern.is_match(&other), text == other);
    }

    #[test]
    fn no_pattern_panics(pattern in r"[\\\[\]\{\}\(\)\^a-c0-9,:dQEwb&~-]{0,20}", text in ".{0,20}") {
        if let Ok(compiled) = Pattern::compile(&pattern) {
            compiled.is_match(&text);
        }
    }

    #[test]
    fn a_quoted_literal_matches_itself(text in r"[^\\]{0,20}") {
        let compiled = Pattern::compile(&format!(r"^\Q{text}\E$")).unwrap();
        proptest::prop_assert!(compiled.is_match(&text));
    }
}

#[test]
fn a_pattern_that_matches_every_text_is_recognised() {
    let check = |text: &str, expected: bool| {
        let pattern = Pattern::compile(text).unwrap();
        assert_eq!(pattern.matches_every_text(), expected, "{text}");
    };
    for text in [".*", "^", "(?s)^.*$", "x*", "a?|b", "$", "()"] {
        check(text, true);
    }
    for text in [".+", "^$", "ok", "[0-9]*x", r"\bok\b|^$"] {
        check(text, false);
    }
}
