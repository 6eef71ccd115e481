//! Detects answers without content: empty, only punctuation, or only an introduction. Judges have
//! been seen to pass them.

use proctor_core::printable::is_hidden;

/// Words that introduce an answer.
const OPENERS: [&str; 34] = [
    "thought",
    "thoughts",
    "process",
    "thinking",
    "reasoning",
    "answer",
    "solution",
    "response",
    "result",
    "results",
    "output",
    "explanation",
    "analysis",
    "summary",
    "step",
    "steps",
    "final",
    "sure",
    "okay",
    "here",
    "here's",
    "let's",
    "lets",
    "follows",
    "following",
    "respuesta",
    "solución",
    "antwort",
    "lösung",
    "réponse",
    "解",
    "解答",
    "回答",
    "かいせつ",
];

/// The maximum number of words of an introduction.
const OPENER_WORDS: usize = 10;

/// Why an answer has no content, if it has none.
pub(super) fn lack_of_content(answer: &str) -> Option<&'static str> {
    let visible = |c: char| !c.is_whitespace() && !is_hidden(c);
    if !answer.chars().any(visible) {
        return Some("the answer is empty");
    }
    if answer.chars().filter(|c| visible(*c)).all(is_punctuation) {
        return Some("the answer is only punctuation");
    }
    is_opener(answer).then_some("the answer is only an introduction")
}

/// Whether a character is common Unicode punctuation. Symbols such as `+` and `€` may be an answer.
fn is_punctuation(c: char) -> bool {
    if c.is_ascii() {
        return c.is_ascii_punctuation() && !"$+<=>^|~".contains(c);
    }
    matches!(c,
        '¡' | '§' | '«' | '¶' | '·' | '»' | '¿'
        | '\u{2010}'..='\u{2027}' | '\u{2030}'..='\u{205e}'
        | '\u{3001}'..='\u{3003}' | '\u{3008}'..='\u{3011}' | '\u{3014}'..='\u{301f}' | '・'
        | '！' | '，' | '．' | '：' | '；' | '？' | '｡')
}

/// Whether an answer is one short line that ends in a colon, or a phrase that announces thinking.
fn is_opener(answer: &str) -> bool {
    let line =
        answer.trim_matches(|c: char| c.is_whitespace() || is_hidden(c) || "*_#`>~".contains(c));
    let lower = line.to_lowercase().replace('’', "'");
    let bare = lower.trim_end_matches(['.', '!', ':', '…']);
    if bare.starts_with("let's ") && bare.ends_with("step by step") && !bare.contains(['.', '\n']) {
        return true;
    }
    let Some(words) = lower.strip_suffix([':', '：']) else {
        return false;
    };
    let legal = |c: char| c.is_alphabetic() || " '-,!*_".contains(c);
    if !words.chars().all(legal) {
        return false;
    }
    let words: Vec<&str> = words.split([' ', ',', '!', '*', '_']).collect();
    words.len() <= OPENER_WORDS && words.iter().any(|word| OPENERS.contains(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_without_content_are_detected() {
        for answer in ["", " \n\t", "\u{200b}\u{feff}"] {
            assert_eq!(lack_of_content(answer), Some("the answer is empty"));
        }
        for answer in [".", ":", " … ", "---", "\"\"", "?!", "。", "\u{200b}."] {
            assert_eq!(
                lack_of_content(answer),
                Some("the answer is only punctuation"),
                "{answer}"
            );
        }
        for answer in [
            "Thought process:",
            "**Thought process:**",
            "Final answer:",
            "Here is the answer:",
            "Sure, here's the result:",
            "## Solution:\n",
            "Let's solve this problem step by step.",
            "Let’s think step by step:",
            "解：",
            "Respuesta:",
        ] {
            assert_eq!(
                lack_of_content(answer),
                Some("the answer is only an introduction"),
                "{answer}"
            );
        }
    }

    #[test]
    fn answers_with_content_are_left_to_the_judge() {
        for answer in [
            "5",
            "€",
            "+",
            "no",
            "C:",
            "Drive C:",
            "Solution",
            "👍",
            "解",
            "Final answer: 5",
            "Result",
            "Here is the answer:\n5",
            "12:",
            "Let's go. It is 5, step by step",
            "<=",
            "$",
        ] {
            assert_eq!(lack_of_content(answer), None, "{answer}");
        }
    }
}
