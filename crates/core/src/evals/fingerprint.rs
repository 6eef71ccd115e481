//! What a server is and offers, as hashes, so that a change is seen later.
//!
//! Its main type is [`Fingerprint`]. It covers the server's command or address, its tools and its evals;
//! no value from the environment is in it.

use std::collections::BTreeMap;
use std::fmt;

use data_encoding::HEXLOWER;
use mcp_evals::{Level, ListedEval};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::hint::listed;
use crate::json::canonical;

/// How many names of each sort a difference shows; the rest are counted.
const SHOWN: usize = 20;

/// What a server was when somebody looked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fingerprint {
    /// Its command or address, as it was written.
    pub target: String,
    /// The names of the variables or headers that it is given.
    pub given: Vec<String>,
    /// The hash of each tool, by name.
    pub tools: BTreeMap<String, String>,
    /// The level and the hash of each eval, by id.
    pub evals: BTreeMap<String, EvalMark>,
}

/// What is kept of an eval.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EvalMark {
    /// Its level in a word, or `other`.
    pub level: String,
    /// The hash of all of it.
    pub sha256: String,
}

impl Fingerprint {
    /// Of a server with these tools and evals, as they were listed.
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

    /// The SHA-256 of all of it.
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

    /// What has changed since, if anything has.
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

/// What is not as it was.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FingerprintDifference {
    /// The command or address, then and now.
    pub target: Option<(String, String)>,
    /// The variables or headers that it is given, then and now.
    pub given: Option<(Vec<String>, Vec<String>)>,
    /// Tools, by name.
    pub tools: Changes,
    /// Evals, by id.
    pub evals: Changes,
}

/// Names of what came, went, and is another.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Changes {
    /// What came.
    pub added: Vec<String>,
    /// What went.
    pub removed: Vec<String>,
    /// What is another.
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
    /// A line for each sort of change, each behind a line break.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some((old, new)) = &self.target {
            write!(f, "\n  the server was `{old}` and is `{new}`")?;
        }
        if let Some((old, new)) = &self.given {
            let named = |names: &[String]| match names {
                [] => "nothing".to_owned(),
                names => listed(names.iter().map(String::as_str)),
            };
            write!(
                f,
                "\n  it was given {} and is given {}",
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
    fn e30_every_change_of_a_server_is_seen_and_said() {
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
        let expected = "\n  the server was `server --x` and is `server --y`\
             \n  it was given nothing and is given `KEY`";
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
