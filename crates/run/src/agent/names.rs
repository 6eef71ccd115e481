//! Assigns tool names that every provider accepts and that are unique across all servers.

use std::collections::{BTreeMap, BTreeSet};

use data_encoding::HEXLOWER;
use sha2::{Digest, Sha256};

/// The longest name that every provider accepts.
const LONGEST: usize = 64;

/// The length of the hash that replaces the rest of a long name.
const HASH: usize = 8;

/// Returns a name for each tool, in the same order. A tool keeps its own name if that is legal and
/// unique; otherwise the server's name is put before it.
pub(super) fn assign(tools: &[(&str, &str)]) -> Vec<String> {
    let plain: Vec<String> = tools.iter().map(|(_, tool)| legal(tool)).collect();
    let mut wanted: BTreeMap<&str, usize> = BTreeMap::new();
    for name in &plain {
        *wanted.entry(name).or_default() += 1;
    }
    let mut taken: BTreeSet<String> = plain
        .iter()
        .filter(|name| wanted[name.as_str()] == 1)
        .cloned()
        .collect();
    let names = plain.iter().zip(tools).map(|(name, (server, tool))| {
        if wanted[name.as_str()] == 1 {
            return name.clone();
        }
        let prefixed = format!("{server}__{tool}");
        let mut name = legal(&prefixed);
        let mut number = 2;
        while taken.contains(&name) {
            name = legal(&format!("{prefixed}_{number}"));
            number += 1;
        }
        taken.insert(name.clone());
        name
    });
    names.collect()
}

/// Replaces illegal characters, so that the name is a letter followed by letters, digits, `_` and
/// `-`.
fn legal(name: &str) -> String {
    let mut legal: String = name
        .chars()
        .map(|c| match c {
            c if c.is_ascii_alphanumeric() || matches!(c, '_' | '-') => c,
            _ => '_',
        })
        .collect();
    if !legal.starts_with(|c: char| c.is_ascii_alphabetic()) {
        legal.insert_str(0, "t_");
    }
    if legal.len() > LONGEST {
        let hash = HEXLOWER.encode(&Sha256::digest(name));
        legal.truncate(LONGEST - HASH - 1);
        legal = format!("{legal}_{}", &hash[..HASH]);
    }
    legal
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_tool_keeps_its_name_if_it_is_legal_and_unique() {
        let check = |tools: &[(&str, &str)], expected: &[&str]| {
            assert_eq!(assign(tools), expected, "{tools:?}");
        };
        check(&[], &[]);
        check(
            &[("fs", "read_file"), ("git", "log")],
            &["read_file", "log"],
        );
        check(
            &[("a", "read"), ("b", "read"), ("b", "write")],
            &["a__read", "b__read", "write"],
        );
        check(&[("a", "x.y/z")], &["x_y_z"]);
        check(&[("a", "x.y"), ("a", "x_y")], &["a__x_y", "a__x_y_2"]);
        check(
            &[("a", "1st"), ("a", "-"), ("a", "")],
            &["t_1st", "t_-", "t_"],
        );
        check(
            &[("a", "b"), ("c", "b"), ("x", "a__b")],
            &["a__b_2", "c__b", "a__b"],
        );
        let long = "x".repeat(100);
        let name = &assign(&[("a", &long)])[0];
        assert_eq!(name.len(), 64);
        assert!(name.starts_with("xxxx"));
    }

    proptest! {
        #[test]
        fn every_name_is_legal_and_unique(
            tools in prop::collection::vec(("[a-c./é]{0,3}", "[ab._é-]{0,4}|[a-z]{60,70}"), 0..12),
        ) {
            let pairs: Vec<(&str, &str)> =
                tools.iter().map(|(s, t)| (s.as_str(), t.as_str())).collect();
            let names = assign(&pairs);
            prop_assert_eq!(names.len(), pairs.len());
            let distinct: BTreeSet<&String> = names.iter().collect();
            prop_assert_eq!(distinct.len(), names.len());
            for name in &names {
                prop_assert!((1..=64).contains(&name.len()));
                prop_assert!(name.starts_with(|c: char| c.is_ascii_alphabetic()));
                let is_legal = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
                prop_assert!(name.chars().all(is_legal));
            }
        }
    }
}
