//! Removes the random part of a judge request, so that two requests can be compared.
//!
//! The instructions of the request, which are Proctor's own, define which tokens are random. The
//! output of an agent or a server can't define any, so no change in it is hidden. One pass finds
//! the tokens and another removes them, however many there are.

use std::collections::HashSet;

/// The length of a token in hexadecimal digits.
const DIGITS: usize = 32;

/// The text before a token.
const MARK: &str = "<<<";

/// The tokens after a mark, if no further digit follows.
pub(super) fn tokens(text: &str) -> HashSet<u128> {
    let marks = memchr::memmem::find_iter(text.as_bytes(), MARK);
    let behind = marks.filter_map(|at| {
        let rest = &text.as_bytes()[at + MARK.len()..];
        let length = rest.iter().take(DIGITS + 1);
        let length = length.take_while(|byte| byte.is_ascii_hexdigit()).count();
        (length == DIGITS).then(|| {
            rest[..DIGITS]
                .iter()
                .fold(0, |token, digit| next(token, *digit))
        })
    });
    behind.collect()
}

/// The text without any of these tokens.
pub(super) fn without(text: &str, tokens: &HashSet<u128>) -> String {
    let bytes = text.as_bytes();
    let mut out = String::with_capacity(text.len());
    let (mut copied, mut digits, mut token) = (0, 0, 0);
    for (at, byte) in bytes.iter().enumerate() {
        if !byte.is_ascii_hexdigit() {
            digits = 0;
            continue;
        }
        digits += 1;
        // Digits before the last 32 are shifted out.
        token = next(token, *byte);
        if digits >= DIGITS && tokens.contains(&token) {
            out.push_str(&text[copied..at + 1 - DIGITS]);
            copied = at + 1;
            digits = 0;
        }
    }
    out.push_str(&text[copied..]);
    out
}

fn next(token: u128, digit: u8) -> u128 {
    let digit = char::from(digit).to_digit(16).unwrap_or(0);
    token << 4 | u128::from(digit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_removed_everywhere() {
        let (a, b) = ("0123456789abcdef".repeat(2), "fedcba9876543210".repeat(2));
        let check = |rules: &str, text: &str, expected: &str| {
            assert_eq!(without(text, &tokens(rules)), expected, "{text}");
        };
        let rules = format!("<<<{a} begin>>>");
        check(&rules, &format!("x{a}y{a}{a}z"), "xyz");
        check(&rules, &format!("0{a}0"), "00");
        check(
            &rules,
            &format!("<<<{b} begin>>>"),
            &format!("<<<{b} begin>>>"),
        );
        check(&format!("<<<{a}0"), &a, &a);
        check("<<<0123", &a, &a);
        check(&format!("<<<{a}<<<{b}"), &format!("é{b}é{a}"), "éé");
    }
}
