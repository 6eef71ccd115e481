//! The changes of one JSON Schema: of a tool's arguments, or of its results.
//!
//! Main function: [`changes`]. A change is safe only if it is proved that every value that was valid stays valid
//! (for results: that every value that is valid now was valid before). A breaking change comes with a witness, if
//! one was found: a value that both schemas were asked about.

#![warn(
    clippy::wildcard_enum_match_arm,
    reason = "a new variant must not be safe by default"
)]

use jsonschema::Validator;
use jsonschema::canonical::Containment;
use proctor_record::event::ChangeClass;
use proctor_record::json;
use serde_json::Value;

use super::leaves::{Leaf, LeafKind, differences};
use super::message::{self, SchemaSubject};
use super::proof::{covers, validator, without_new_names};
use super::witness;

/// The maximum number of differences of one schema that are judged one by one.
const MOST_LEAVES: usize = 100;

/// One change of a schema.
#[derive(Debug, Clone)]
pub(super) struct SchemaChange {
    /// The steps to the part of a value that the change is about.
    pub(super) path: Vec<String>,
    pub(super) class: ChangeClass,
    pub(super) message: String,
    pub(super) witness: Option<Value>,
}

/// The changes from `old` to `new`.
pub(super) fn changes(subject: SchemaSubject, old: &Value, new: &Value) -> Vec<SchemaChange> {
    if json::equal(old, new) {
        return Vec::new();
    }
    let all = differences(old, new);
    let (assertions, others): (Vec<Leaf>, Vec<Leaf>) = all
        .into_iter()
        .partition(|leaf| !matches!(leaf.kind, LeafKind::Text | LeafKind::Other));
    let mut found: Vec<SchemaChange> = others
        .iter()
        .map(|leaf| SchemaChange {
            path: leaf.path.clone(),
            class: ChangeClass::Review,
            message: message::leaf(subject, leaf),
            witness: None,
        })
        .collect();
    if !assertions.is_empty() {
        found.extend(Judge::of(subject, old, new).judge(&assertions));
    }
    found.sort_by(|a, b| a.path.cmp(&b.path));
    found
}

/// Decides on the differences of one pair of schemas.
struct Judge<'a> {
    subject: SchemaSubject,
    old: &'a Value,
    new: &'a Value,
    validators: Result<(Validator, Validator), SchemaChange>,
}

impl<'a> Judge<'a> {
    fn of(subject: SchemaSubject, old: &'a Value, new: &'a Value) -> Self {
        Self {
            subject,
            old,
            new,
            validators: validators(subject, old, new),
        }
    }

    /// Whether `changed` accepts every value that matters to clients of the old schema.
    fn is_covered(&self, changed: &Value) -> Containment {
        let (goal, premise) = match self.subject {
            SchemaSubject::Arguments => (changed, self.old),
            SchemaSubject::Results => (self.old, changed),
        };
        covers(&without_new_names(goal, premise), premise)
    }

    fn judge(&self, leaves: &[Leaf]) -> Vec<SchemaChange> {
        let (old, new) = match &self.validators {
            Ok((old, new)) => (old, new),
            Err(change) => return vec![change.clone()],
        };
        let verdict = self.is_covered(self.new);
        if verdict == Containment::Yes {
            return leaves.iter().map(|leaf| self.covered(leaf)).collect();
        }
        let witnesses = self.witnesses(old, new);
        let mut found = Vec::new();
        for leaf in leaves.iter().take(MOST_LEAVES) {
            found.push(self.one(leaf, &witnesses));
        }
        let is_explained = found
            .iter()
            .any(|change| change.class != ChangeClass::Safe && !is_gone(change, leaves));
        if !is_explained || leaves.len() > MOST_LEAVES {
            let witness = witnesses.first().cloned();
            found.push(SchemaChange {
                path: Vec::new(),
                class: class(verdict, witness.is_some()),
                message: message::whole(
                    self.subject,
                    verdict == Containment::No || witness.is_some(),
                ),
                witness,
            });
        }
        found
    }

    /// A difference of schemas that are proved to be compatible.
    fn covered(&self, leaf: &Leaf) -> SchemaChange {
        SchemaChange {
            path: leaf.path.clone(),
            class: match leaf.kind {
                // The schema may accept it, but it no longer has an effect, or is no longer returned.
                LeafKind::Removed => ChangeClass::Breaking,
                LeafKind::Assertion | LeafKind::Added => ChangeClass::Safe,
                LeafKind::Text | LeafKind::Other => ChangeClass::Review,
            },
            message: message::leaf(self.subject, leaf),
            witness: None,
        }
    }

    /// One difference of schemas that are not proved to be compatible.
    fn one(&self, leaf: &Leaf, witnesses: &[Value]) -> SchemaChange {
        let changed = leaf.applied_to(self.old);
        let verdict = self.is_covered(&changed);
        if verdict == Containment::Yes {
            return self.covered(leaf);
        }
        let witness = validator(&changed).ok().and_then(|changed| {
            let is_rejected = |value: &&Value| match self.subject {
                SchemaSubject::Arguments => !changed.is_valid(value),
                SchemaSubject::Results => changed.is_valid(value),
            };
            witnesses.iter().find(is_rejected).cloned()
        });
        let class = match (self.subject, leaf.kind) {
            // Clients rarely refuse a field that they don't know.
            (SchemaSubject::Results, LeafKind::Added) => ChangeClass::Review,
            (_, LeafKind::Removed) => ChangeClass::Breaking,
            _ => class(verdict, witness.is_some()),
        };
        let mut message = message::leaf(self.subject, leaf);
        if class == ChangeClass::Review && leaf.kind != LeafKind::Added {
            message.push_str(message::UNPROVED);
        }
        SchemaChange {
            path: leaf.path.clone(),
            class,
            message,
            witness,
        }
    }

    /// Values that the change breaks, the shortest first: valid before and not now; for results the other way
    /// round. Both validators were asked about each.
    fn witnesses(&self, old: &Validator, new: &Validator) -> Vec<Value> {
        let (premise, goal, accepts, rejects) = match self.subject {
            SchemaSubject::Arguments => (self.old, self.new, old, new),
            SchemaSubject::Results => (self.new, self.old, new, old),
        };
        let mut found = witness::candidates(premise, goal);
        found.retain(|value| accepts.is_valid(value) && !rejects.is_valid(value));
        found.sort_by_cached_key(|value| value.to_string().len());
        found
    }
}

fn class(verdict: Containment, has_witness: bool) -> ChangeClass {
    if verdict == Containment::No || has_witness {
        ChangeClass::Breaking
    } else {
        ChangeClass::Review
    }
}

/// Whether a change says that a property is gone, which is breaking whatever the schema accepts.
fn is_gone(change: &SchemaChange, leaves: &[Leaf]) -> bool {
    let mut removed = leaves.iter().filter(|leaf| leaf.kind == LeafKind::Removed);
    change.witness.is_none() && removed.any(|leaf| leaf.path == change.path)
}

fn validators(
    subject: SchemaSubject,
    old: &Value,
    new: &Value,
) -> Result<(Validator, Validator), SchemaChange> {
    let invalid = |class, message| SchemaChange {
        path: Vec::new(),
        class,
        message,
        witness: None,
    };
    match (validator(old), validator(new)) {
        (Ok(old), Ok(new)) => Ok((old, new)),
        (Ok(_), Err(error)) => Err(invalid(
            ChangeClass::Breaking,
            message::invalid(subject, &error),
        )),
        (Err(error), _) => Err(invalid(
            ChangeClass::Review,
            message::was_invalid(subject, &error),
        )),
    }
}
