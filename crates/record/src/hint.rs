//! Suggestions for mistyped words: the nearest of some known words.

/// The nearest of some known words, as a hint; otherwise the whole list, if it is short.
pub fn nearest_hint<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<String> {
    let known: Vec<&str> = known.into_iter().collect();
    nearest(word, known.iter().copied())
        .map(|near| format!("did you mean `{near}`?"))
        .or_else(|| {
            (!known.is_empty() && known.len() <= 12).then(|| format!("known: {}", listed(known)))
        })
}

/// The known word that `word` was most probably meant to be.
pub fn nearest<W: AsRef<str>>(word: &str, known: impl IntoIterator<Item = W>) -> Option<W> {
    // Longer words are not typing mistakes, and computing their distance is slow.
    if word.len() > 200 {
        return None;
    }
    let lower = word.to_lowercase();
    known
        .into_iter()
        .filter_map(|candidate| {
            let known = candidate.as_ref().to_lowercase();
            let distance = strsim::damerau_levenshtein(&lower, &known);
            let near = distance <= (candidate.as_ref().chars().count() / 3).max(1);
            // An abbreviation is a better match than similar letters.
            let cut_off = lower.len() >= 3 && known.starts_with(&lower);
            let short = is_short_for(&lower, &known) || is_short_for(&known, &lower);
            (near || cut_off || short).then_some((!cut_off, !near, distance, candidate))
        })
        .min_by_key(|(whole, far, distance, _)| (*whole, *far, *distance))
        .map(|(.., candidate)| candidate)
}

/// Whether a word is another one with letters left out: `args` for `arguments`.
fn is_short_for(word: &str, whole: &str) -> bool {
    let mut rest = whole.chars();
    let alike = word.chars().zip(whole.chars()).take_while(|(a, b)| a == b);
    alike.count() >= 3 && word.chars().all(|c| rest.any(|other| other == c))
}

/// Words in backticks, with commas.
pub fn listed<'a>(words: impl IntoIterator<Item = &'a str>) -> String {
    let quoted: Vec<String> = words.into_iter().map(|w| format!("`{w}`")).collect();
    quoted.join(", ")
}

/// The digits of a number with separators: `12,345`.
pub fn thousands(digits: &str) -> String {
    let mut out = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// `1 case`, `2 cases`.
pub fn counted(count: usize, word: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {word}{plural}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_word_is_close_or_nothing() {
        let known = ["toolsUsed", "toolsNotUsed", "path"];
        assert_eq!(nearest("toolUsed", known), Some("toolsUsed"));
        assert_eq!(nearest("toolsused", known), Some("toolsUsed"));
        assert_eq!(nearest("pahts", known), None);
        assert_eq!(nearest("paht", known), Some("path"));
        assert_eq!(nearest("zebra", known), None);
        assert_eq!(nearest("tools", known), Some("toolsUsed"));
        assert_eq!(nearest("args", ["server", "arguments"]), Some("arguments"));
        assert_eq!(nearest("arguments", ["args", "expect"]), Some("args"));
        assert_eq!(nearest("argot", ["arguments"]), None);
    }
}
