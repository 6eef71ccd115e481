//! What a selection that matches nothing was probably meant to be.

use std::collections::{BTreeMap, BTreeSet};

use proctor_record::hint::nearest;

use super::{LabelSelector, Selection};
use crate::pattern::Pattern;
use crate::suite::Case;

impl Selection {
    /// Hints for a selection that matches no case: the conditions that can't match, each with what would.
    pub fn suggestions(&self, cases: &[Case]) -> Vec<String> {
        let labels = || cases.iter().map(|case| &case.labels);
        let mut hints = self.labels.suggestions(labels());
        let names = || cases.iter().map(|case| case.name.as_str());
        hints.extend(self.name.as_ref().and_then(|name| similar(name, names())));
        let conditions = self.labels.0.len() + usize::from(self.name.is_some());
        let is_met = |name: &Pattern| names().any(|case| name.is_match(case));
        if hints.is_empty() && conditions > 1 && self.name.as_ref().is_none_or(is_met) {
            hints.push(
                "cases match each of the conditions, but no case matches all of them".to_owned(),
            );
        }
        hints
    }
}

impl LabelSelector {
    /// Hints for labels that no case has.
    pub fn suggestions<'a>(
        &self,
        cases: impl IntoIterator<Item = &'a BTreeMap<String, String>>,
    ) -> Vec<String> {
        let mut known: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for (key, value) in cases.into_iter().flatten() {
            known.entry(key).or_default().insert(value);
        }
        let mut hints = Vec::new();
        for (key, values) in &self.0 {
            let Some(own) = known.get(key.as_str()) else {
                let near = nearest(key, known.keys().copied());
                hints.push(format!("no case has the label `{key}`{}", meant(near)));
                continue;
            };
            if values.iter().any(|value| own.contains(value.as_str())) {
                continue;
            }
            for value in values {
                let near = nearest(value, own.iter().copied());
                let near = near.map(|near| format!("{key}={near}"));
                let meant = meant(near.as_deref());
                hints.push(format!("no case has the label `{key}={value}`{meant}"));
            }
        }
        hints
    }
}

/// A hint for a pattern that matches none of the names, if one of them is similar.
pub fn similar<'a>(pattern: &Pattern, names: impl IntoIterator<Item = &'a str>) -> Option<String> {
    let names: Vec<&str> = names.into_iter().collect();
    if names.iter().any(|name| pattern.is_match(name)) {
        return None;
    }
    // What people write between the anchors is mostly a name or the start of one.
    let written = pattern.as_str().trim_start_matches("(?i)");
    let word = written.trim_matches(['^', '$']);
    let lower = word.to_lowercase();
    let contains = |name: &&&str| name.to_lowercase().contains(&lower);
    let near = names.iter().find(contains).copied();
    let near = near.or_else(|| nearest_name(word, &names));
    near.map(|near| format!("no case matches `{written}`{}", meant(Some(near))))
}

/// The name that is nearest to the word, as a whole or by its beginning of the same length.
fn nearest_name<'a>(word: &str, names: &[&'a str]) -> Option<&'a str> {
    let length = word.chars().count();
    let start = |name: &str| name.chars().take(length).collect::<String>();
    let candidates = names
        .iter()
        .flat_map(|name| [(*name).to_owned(), start(name)]);
    let candidates: Vec<String> = candidates.collect();
    let found = nearest(word, candidates.iter().map(String::as_str))?;
    let at = candidates.iter().position(|candidate| candidate == found)?;
    names.get(at / 2).copied()
}

fn meant(near: Option<&str>) -> String {
    near.map_or(String::new(), |near| format!("; did you mean `{near}`?"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_that_no_case_has_are_named_with_the_nearest() {
        let case = |pairs: &[(&str, &str)]| -> BTreeMap<String, String> {
            let pairs = pairs.iter();
            pairs
                .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
                .collect()
        };
        let cases = [
            case(&[("suite", "basic"), ("kind", "write")]),
            case(&[("suite", "full")]),
        ];
        let check = |selector: &str, expected: &[&str]| {
            let selector = LabelSelector::parse(selector).unwrap();
            assert_eq!(selector.suggestions(&cases), expected, "{selector:?}");
        };
        check("suite=basic", &[]);
        check(
            "sute=basic",
            &["no case has the label `sute`; did you mean `suite`?"],
        );
        check(
            "suite=basc",
            &["no case has the label `suite=basc`; did you mean `suite=basic`?"],
        );
        check("suite=zebra", &["no case has the label `suite=zebra`"]);
        check("suite=basc,suite=full", &[]);
        check("x=1", &["no case has the label `x`"]);
    }

    #[test]
    fn a_pattern_that_matches_no_name_is_shown_with_a_similar_one() {
        let names = ["create-pod-in-namespace", "delete-pod", "Read a file"];
        let check = |pattern: &str, expected: Option<&str>| {
            let pattern = Pattern::compile(pattern).unwrap();
            let hint = similar(&pattern, names);
            let near = hint
                .as_deref()
                .and_then(|hint| hint.split("did you mean ").nth(1));
            assert_eq!(near, expected, "{pattern:?}: {hint:?}");
        };
        check("^create-", None);
        check("^delete-pdo$", Some("`delete-pod`?"));
        check("read A", Some("`Read a file`?"));
        check("^craete-pod", Some("`create-pod-in-namespace`?"));
        check("zebra", None);
    }
}
