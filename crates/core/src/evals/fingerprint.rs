//! Fingerprints of servers: hashes that reveal later changes.
//!
//! Its main type is [`Fingerprint`]. It covers the server's command or URL, its tools and its evals;
//! it contains no values from the environment.

use std::collections::BTreeMap;
use std::fmt;

use data_encoding::HEXLOWER;
use mcp_evals::{Level, ListedEval};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use proctor_record::hint::listed;
use proctor_record::json::canonical;

/// The maximum number of names per type in a difference. The others are counted.
const SHOWN: usize = 20;

/// The command, tools and evals of a server, as hashes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fingerprint {
    /// Its command or URL, as the file has it.
    pub target: String,
    /// The names of its environment variables or headers.
    pub given: Vec<String>,
    /// The hash of each tool, by name.
    pub tools: BTreeMap<String, String>,
    /// The level and the hash of each eval, by id.
    pub evals: BTreeMap<String, EvalMark>,
}

/// The level and hash of an eval.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EvalMark {
    /// Its level in a word, or `other`.
    pub level: String,
    /// The hash of all of it.
    pub sha256: String,
}

impl Fingerprint {
    /// The fingerprint of a server with these tools and evals.
    pub fn new(target: String, given: Vec<String>, tools: &[Value], evals: &[ListedEval]) -> Self {
        let mut named: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for tool in tools {
            let name = tool.get("name").and_then(Value::as_str).unwrap_or("");
            let all = named.entry(name.to_owned()).or_default();
            all.push(canonical(tool));
        }
        let mut marked: BTreeMap<String, (String, Vec<String>)> = BTreeMap::new();
        for item in evals {
            let level = item.eval().and_then(mcp_evals::Eval::level);
            let level = level.map_or("other", Level::as_str);
            let id = item.id().unwrap_or("").to_owned();
            let all = marked.entry(id).or_insert((level.to_owned(), Vec::new()));
            all.1.push(canonical(&item.to_value()));
        }
        let evals = marked.into_iter().map(|(id, (level, all))| {
            let sha256 = sha256(&all.join("\n"));
            (id, EvalMark { level, sha256 })
        });
        Self {
            target,
            given,
            tools: named
                .into_iter()
                .map(|(name, all)| (name, sha256(&all.join("\n"))))
                .collect(),
            evals: evals.collect(),
        }
    }

    /// The SHA-256 of the whole fingerprint.
    pub fn sha256(&self) -> String {
        let evals = self.evals.iter();
        let evals: Vec<Value> = evals
            .map(|(id, mark)| json!([id, mark.level, mark.sha256]))
            .collect();
        let content = json!([self.target, self.given, self.tools, evals]);
        sha256(&canonical(&content))
    }

    /// The same with the evals of one level only.
    #[must_use]
    pub fn of_level(mut self, level: Option<Level>) -> Self {
        if let Some(level) = level {
            self.evals.retain(|_, mark| mark.level == level.as_str());
        }
        self
    }

    /// The changes since, if any.
    pub fn difference(&self, now: &Self) -> Option<FingerprintDifference> {
        let difference = FingerprintDifference {
            target: (self.target != now.target).then(|| (self.target.clone(), now.target.clone())),
            given: (self.given != now.given).then(|| (self.given.clone(), now.given.clone())),
            tools: Changes::between(&self.tools, &now.tools),
            evals: Changes::between(&self.evals, &now.evals),
        };
        (self != now).then_some(difference)
    }
}

/// The differences between two fingerprints.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FingerprintDifference {
    /// The command or URL, then and now.
    pub target: Option<(String, String)>,
    /// The names of variables or headers, then and now.
    pub given: Option<(Vec<String>, Vec<String>)>,
    pub tools: Changes,
    pub evals: Changes,
}

/// The names of added, removed and changed items.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Changes {
    pub added: Vec<String>,
    pub removed: Vec<String>,
    pub changed: Vec<String>,
}

impl Changes {
    fn between<T: PartialEq>(old: &BTreeMap<String, T>, new: &BTreeMap<String, T>) -> Self {
        let missing = |from: &BTreeMap<String, T>, of: &BTreeMap<String, T>| {
            let names = of.keys().filter(|name| !from.contains_key(*name));
            names.cloned().collect::<Vec<String>>()
        };
        let changed = new
            .iter()
            .filter(|(name, mark)| old.get(*name).is_some_and(|old| old != *mark));
        Self {
            added: missing(old, new),
            removed: missing(new, old),
            changed: changed.map(|(name, _)| name.clone()).collect(),
        }
    }

    fn write(&self, what: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = [
            ("added", &self.added),
            ("removed", &self.removed),
            ("changed", &self.changed),
        ];
        for (word, names) in parts.into_iter().filter(|(_, names)| !names.is_empty()) {
            let shown = listed(names.iter().take(SHOWN).map(String::as_str));
            write!(f, "\n  {what} {word}: {shown}")?;
            if names.len() > SHOWN {
                write!(f, " and {} more", names.len() - SHOWN)?;
            }
        }
        Ok(())
    }
}

impl fmt::Display for FingerprintDifference {
    /// One line per type of change, each after a line break.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some((old, new)) = &self.target {
            write!(f, "\n  the server changed from `{old}` to `{new}`")?;
        }
        if let Some((old, new)) = &self.given {
            let named = |names: &[String]| match names {
                [] => "none".to_owned(),
                names => listed(names.iter().map(String::as_str)),
            };
            write!(
                f,
                "\n  its variables or headers changed from {} to {}",
                named(old),
                named(new)
            )?;
        }
        self.tools.write("tools", f)?;
        self.evals.write("evals", f)
    }
}

pub(super) fn sha256(text: &str) -> String {
    HEXLOWER.encode(&Sha256::digest(text.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn eval(id: &str, level: &str, extra: i64) -> ListedEval {
        ListedEval::from(json!({
            "id": id, "name": "n", "gradingType": "llm-as-judge", "extra": extra,
            "input": {"type": level, "messages": [], "toolName": "t", "arguments": {}},
            "expected": {"type": "llm-as-judge", "rubric": "r"},
        }))
    }

    fn print(tools: &[Value], evals: &[ListedEval]) -> Fingerprint {
        Fingerprint::new("server --x".to_owned(), Vec::new(), tools, evals)
    }

    #[test]
    fn e30_every_change_of_a_server_is_reported() {
        let tools = [json!({"name": "a", "n": 1}), json!({"name": "b"})];
        let evals = [eval("one", "execution", 1), eval("two", "scenario", 1)];
        let old = print(&tools, &evals);
        let check = |now: &Fingerprint, expected: &str| {
            let difference = old.difference(now);
            let text = difference.map(|difference| difference.to_string());
            assert_eq!(text.unwrap_or_default(), expected);
            assert_eq!(old.sha256() == now.sha256(), expected.is_empty());
        };
        // The order of tools, evals and keys, and how a number is spelled, mean nothing.
        let same: Value = serde_json::from_str(r#"{"n": 1.0, "name": "a"}"#).unwrap();
        let [one, two] = evals.clone();
        check(&print(&[tools[1].clone(), same], &[two, one.clone()]), "");
        check(
            &print(
                &[json!({"name": "a", "n": 2}), json!({"name": "c"})],
                &evals,
            ),
            "\n  tools added: `c`\n  tools removed: `b`\n  tools changed: `a`",
        );
        check(
            &print(
                &tools,
                &[eval("one", "execution", 2), eval("new", "scenario", 1)],
            ),
            "\n  evals added: `new`\n  evals removed: `two`\n  evals changed: `one`",
        );
        let two_of_one = [one.clone(), one, eval("two", "scenario", 1)];
        check(&print(&tools, &two_of_one), "\n  evals changed: `one`");
        let mut other = old.clone();
        other.target = "server --y".to_owned();
        other.given = vec!["KEY".to_owned()];
        let expected = "\n  the server changed from `server --x` to `server --y`\
             \n  its variables or headers changed from none to `KEY`";
        check(&other, expected);
    }

    #[test]
    fn e30_of_a_level_only_its_evals_count() {
        let one = eval("one", "execution", 1);
        let all = print(&[], &[one.clone(), eval("two", "scenario", 1)]);
        let part = print(&[], &[one]);
        let level = Some(Level::Execution);
        assert!(all.difference(&part).is_some());
        assert_eq!(all.of_level(level).difference(&part.of_level(level)), None);
    }
}
