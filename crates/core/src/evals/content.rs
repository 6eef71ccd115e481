//! What a server offers, in full: a change is shown with its old and its new value.
//!
//! The main type is [`OfferContent`]. Fingerprints say what changed, this says how.

use std::collections::BTreeMap;

use mcp_evals::ListedEval;
use proctor_record::excerpt::excerpt;
use proctor_record::json;
use serde_json::Value;

use super::fingerprint::FingerprintDifference;

/// The maximum number of changed values that are shown.
const SHOWN: usize = 40;

/// The tools and evals of a server, by name and id.
#[derive(Debug, Clone, Default)]
pub struct OfferContent {
    tools: BTreeMap<String, Value>,
    evals: BTreeMap<String, Value>,
}

impl OfferContent {
    pub fn of(tools: &[Value], evals: &[ListedEval]) -> Self {
        let tools = tools.iter().filter_map(|tool| {
            let name = tool.get("name")?.as_str()?;
            Some((name.to_owned(), tool.clone()))
        });
        let evals = evals.iter();
        let evals = evals.filter_map(|eval| Some((eval.id()?.to_owned(), eval.to_value())));
        Self {
            tools: tools.collect(),
            evals: evals.collect(),
        }
    }

    /// A line for each changed value of the tools and evals that changed: where it is, and what it was and is.
    pub fn changes(&self, new: &Self, names: &FingerprintDifference) -> Vec<String> {
        let mut lines = Vec::new();
        for (kind, old, new, changed) in [
            ("tool", &self.tools, &new.tools, &names.tools.changed),
            ("eval", &self.evals, &new.evals, &names.evals.changed),
        ] {
            for name in changed {
                let start = format!("{kind} `{name}` ");
                compare(old.get(name), new.get(name), &start, "", &mut lines);
            }
        }
        if lines.len() > SHOWN {
            let more = lines.len() - SHOWN;
            lines.truncate(SHOWN);
            lines.push(format!("and {more} more changed values"));
        }
        lines
    }
}

fn compare(
    old: Option<&Value>,
    new: Option<&Value>,
    start: &str,
    path: &str,
    lines: &mut Vec<String>,
) {
    let below = |key: &str| match path {
        "" => key.to_owned(),
        path => format!("{path}.{key}"),
    };
    match (old, new) {
        (Some(Value::Object(old)), Some(Value::Object(new))) => {
            let added = new.keys().filter(|key| !old.contains_key(*key));
            for key in old.keys().chain(added) {
                compare(old.get(key), new.get(key), start, &below(key), lines);
            }
        }
        (Some(Value::Array(old)), Some(Value::Array(new))) => {
            for at in 0..old.len().max(new.len()) {
                let path = format!("{path}[{at}]");
                compare(old.get(at), new.get(at), start, &path, lines);
            }
        }
        (Some(old), Some(new)) if json::equal(old, new) => {}
        (old, new) => {
            let shown = |value: Option<&Value>| match value {
                Some(value) => excerpt(&value.to_string()).to_string(),
                None => "(absent)".to_owned(),
            };
            lines.push(format!("{start}{path}: {} → {}", shown(old), shown(new)));
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::fingerprint::Fingerprint;
    use super::*;

    #[test]
    fn e30_changed_values_are_shown_old_and_new() {
        let offer = |tool: Value| {
            let tools = [tool, json!({"name": "same"})];
            let print = Fingerprint::new(String::new(), Vec::new(), &tools, &[]);
            (print, OfferContent::of(&tools, &[]))
        };
        let (old_print, old) = offer(json!({"name": "a", "n": [1, 2], "x": {"y": "b"}, "same": 1}));
        let (new_print, new) = offer(json!({"name": "a", "n": [1, 3, 4], "x": {}, "same": 1.0}));
        let names = old_print.difference(&new_print).unwrap();
        assert_eq!(
            old.changes(&new, &names),
            [
                "tool `a` n[1]: 2 → 3",
                "tool `a` n[2]: (absent) → 4",
                "tool `a` x.y: \"b\" → (absent)",
            ]
        );
    }
}
