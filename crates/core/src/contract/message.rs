//! The sentences for changes of schemas.

use proctor_record::excerpt::excerpt;
use proctor_record::json;
use serde_json::Value;

use super::leaves::{Leaf, LeafKind};

/// Added to a change that is not proved to be safe, and for which no broken value was found.
pub(super) const UNPROVED: &str = "; Proctor can't prove that this is safe";

/// What a schema describes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SchemaSubject {
    Arguments,
    Results,
}

impl SchemaSubject {
    fn whole(self) -> &'static str {
        match self {
            Self::Arguments => "the input schema",
            Self::Results => "the output schema",
        }
    }

    fn part(self, path: &[String]) -> String {
        if path.is_empty() {
            return self.whole().to_owned();
        }
        let name = path.join(".").replace(".[]", "[]");
        match self {
            Self::Arguments => format!("argument `{name}`"),
            Self::Results => format!("output field `{name}`"),
        }
    }
}

/// The sentence for one difference.
pub(super) fn leaf(subject: SchemaSubject, leaf: &Leaf) -> String {
    let part = subject.part(&leaf.path);
    let none = Value::Null;
    let (old, new) = (leaf.old.as_ref(), leaf.new.as_ref());
    match (leaf.kind, leaf.keyword.as_str()) {
        (LeafKind::Added, _) => match subject {
            SchemaSubject::Arguments => format!("new optional {part}"),
            SchemaSubject::Results => format!("new {part}"),
        },
        (LeafKind::Removed, _) => format!("{part} is gone"),
        (LeafKind::Assertion, "required") => required(subject, leaf),
        (LeafKind::Assertion, "enum") => values(&part, old, new),
        (LeafKind::Assertion, "type") => {
            let [old, new] = [old, new].map(|kind| kinds(kind.unwrap_or(&none)));
            format!("the type of {part} is now {new} (was {old})")
        }
        (LeafKind::Assertion, "additionalProperties") if new == Some(&Value::Bool(false)) => {
            format!("{part} no longer accepts properties that it does not name")
        }
        (_, keyword) => changed(keyword, &part, old, new),
    }
}

fn changed(keyword: &str, part: &str, old: Option<&Value>, new: Option<&Value>) -> String {
    match (old, new) {
        (Some(old), Some(new)) => {
            let (old, new) = json::brief_pair(old, new);
            format!("`{keyword}` of {part} is now {new} (was {old})")
        }
        (None, Some(new)) => format!("{part} now has `{keyword}` {}", json::brief(new)),
        (Some(old), None) => {
            let old = json::brief(old);
            format!("{part} no longer has `{keyword}` (was {old})")
        }
        (None, None) => format!("`{keyword}` of {part} changed"),
    }
}

fn required(subject: SchemaSubject, leaf: &Leaf) -> String {
    let names = |list: &Option<Value>| -> Vec<String> {
        let list = list.as_ref().and_then(Value::as_array);
        let names = list.into_iter().flatten().filter_map(Value::as_str);
        names.map(str::to_owned).collect()
    };
    let (old, new) = (names(&leaf.old), names(&leaf.new));
    let parts = |names: &[String], others: &[String]| -> Option<String> {
        let left = names.iter().filter(|name| !others.contains(name));
        let left: Vec<String> = left
            .map(|name| {
                let mut path = leaf.path.clone();
                path.push(name.clone());
                subject.part(&path)
            })
            .collect();
        (!left.is_empty()).then(|| left.join(", "))
    };
    let (gained, lost) = match subject {
        SchemaSubject::Arguments => ("now required", "now optional"),
        SchemaSubject::Results => ("now always present", "no longer always present"),
    };
    let gained = parts(&new, &old).map(|names| format!("{gained}: {names}"));
    let lost = parts(&old, &new).map(|names| format!("{lost}: {names}"));
    let both: Vec<String> = gained.into_iter().chain(lost).collect();
    if both.is_empty() {
        return changed(
            "required",
            subject.whole(),
            leaf.old.as_ref(),
            leaf.new.as_ref(),
        );
    }
    both.join("; ")
}

fn values(part: &str, old: Option<&Value>, new: Option<&Value>) -> String {
    let (Some(Value::Array(before)), Some(Value::Array(now))) = (old, new) else {
        return changed("enum", part, old, new);
    };
    let missing = |all: &[Value], others: &[Value]| -> Option<String> {
        let holds = |one: &Value| others.iter().any(|other| json::equal(one, other));
        let left = all.iter().filter(|one| !holds(one)).map(json::brief);
        let left: Vec<String> = left.collect();
        (!left.is_empty()).then(|| left.join(", "))
    };
    let gone = missing(before, now).map(|values| format!("no longer has {values}"));
    let added = missing(now, before).map(|values| format!("now has {values}"));
    let both: Vec<String> = gone.into_iter().chain(added).collect();
    if both.is_empty() {
        return format!("the values of {part} are in another order");
    }
    format!("the enum of {part} {}", both.join(" and "))
}

fn kinds(kind: &Value) -> String {
    match kind {
        Value::String(kind) => kind.clone(),
        Value::Array(kinds) => {
            let kinds: Vec<&str> = kinds.iter().filter_map(Value::as_str).collect();
            kinds.join(" or ")
        }
        _ => "any".to_owned(),
    }
}

/// The sentence for schemas that differ as a whole.
pub(super) fn whole(subject: SchemaSubject, is_broken: bool) -> String {
    let part = subject.whole();
    match (subject, is_broken) {
        (SchemaSubject::Arguments, true) => {
            format!("{part} no longer accepts all arguments that it accepted")
        }
        (SchemaSubject::Results, true) => format!("{part} allows results that it did not allow"),
        (_, false) => format!("{part} changed{UNPROVED}"),
    }
}

pub(super) fn invalid(subject: SchemaSubject, error: &str) -> String {
    let part = subject.whole();
    format!(
        "{part} is no longer a valid JSON Schema: {}",
        excerpt(error)
    )
}

pub(super) fn was_invalid(subject: SchemaSubject, error: &str) -> String {
    let part = subject.whole();
    format!(
        "{part} changed, and can't be compared: it was not a valid JSON Schema: {}",
        excerpt(error)
    )
}
