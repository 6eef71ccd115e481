//! The changes of a surface, item by item.

use std::collections::{BTreeMap, BTreeSet};

use proctor_record::event::{ChangeClass, SurfaceChange};
use proctor_record::json;
use serde_json::Value;

use super::content::SurfaceContent;
use super::message::SchemaSubject;
use super::schema;

/// The growth of all tools, in percent, from which on a person should look at it.
const HEAVIER_PERCENT: u64 = 10;

/// Every change from one surface to another, the worst first.
pub fn changes(old: &SurfaceContent, new: &SurfaceContent) -> Vec<SurfaceChange> {
    let mut found = Changes::default();
    found.capabilities(old, new);
    found.texts(
        "instructions",
        "the instructions",
        text(old).as_ref(),
        text(new).as_ref(),
    );
    found.items("tools", "tool", &old.tools, &new.tools, Changes::tool);
    let lists = [
        ("resources", "resource", &old.resources, &new.resources),
        (
            "resourceTemplates",
            "resource template",
            &old.resource_templates,
            &new.resource_templates,
        ),
    ];
    for (list, kind, before, now) in lists {
        // A list that the server did not return is unknown, not gone.
        if old.unlisted.contains_key(list) || new.unlisted.contains_key(list) {
            continue;
        }
        found.items(list, kind, before, now, |found, place, old, new| {
            found.fields(place, old, new, &[]);
        });
    }
    found.items(
        "prompts",
        "prompt",
        &old.prompts,
        &new.prompts,
        Changes::prompt,
    );
    found.weight(old.schema_tokens(), new.schema_tokens());
    found
        .0
        .sort_by_key(|change| std::cmp::Reverse(change.class));
    found.0
}

fn text(content: &SurfaceContent) -> Option<Value> {
    content.instructions.as_deref().map(Value::from)
}

#[derive(Default)]
struct Changes(Vec<SurfaceChange>);

impl Changes {
    fn add(&mut self, class: ChangeClass, place: &str, message: impl Into<String>) {
        self.0.push(SurfaceChange {
            class,
            place: place.to_owned(),
            message: message.into(),
            witness: None,
        });
    }

    fn items(
        &mut self,
        list: &str,
        kind: &str,
        old: &BTreeMap<String, Value>,
        new: &BTreeMap<String, Value>,
        both: impl Fn(&mut Self, &str, &Value, &Value),
    ) {
        let names: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
        for name in names {
            let place = format!("{list}/{name}");
            match (old.get(name), new.get(name)) {
                (Some(old), Some(new)) => both(self, &place, old, new),
                (Some(_), None) => {
                    let message = format!("the {kind} is gone");
                    self.add(ChangeClass::Breaking, &place, message);
                }
                (None, _) => self.add(ChangeClass::Review, &place, format!("new {kind}")),
            }
        }
    }

    fn tool(&mut self, place: &str, old: &Value, new: &Value) {
        let apart = ["annotations", "inputSchema", "outputSchema"];
        self.fields(place, old, new, &apart);
        let of = |tool: &Value, key: &str| tool.get(key).cloned().unwrap_or(Value::Null);
        self.annotations(place, &of(old, "annotations"), &of(new, "annotations"));
        let any = Value::Object(serde_json::Map::new());
        let input = |tool: &Value| tool.get("inputSchema").unwrap_or(&any).clone();
        self.schema(
            &format!("{place}/arguments"),
            SchemaSubject::Arguments,
            &input(old),
            &input(new),
        );
        let place = format!("{place}/output");
        match (old.get("outputSchema"), new.get("outputSchema")) {
            (Some(old), Some(new)) => self.schema(&place, SchemaSubject::Results, old, new),
            (Some(_), None) => {
                self.add(ChangeClass::Breaking, &place, "the output schema is gone");
            }
            (None, Some(_)) => self.add(ChangeClass::Review, &place, "new output schema"),
            (None, None) => {}
        }
    }

    fn schema(&mut self, place: &str, subject: SchemaSubject, old: &Value, new: &Value) {
        for change in schema::changes(subject, old, new) {
            let mut steps = vec![place.to_owned()];
            steps.extend(change.path);
            self.0.push(SurfaceChange {
                class: change.class,
                place: steps.join("/"),
                message: change.message,
                witness: change.witness,
            });
        }
    }

    fn annotations(&mut self, place: &str, old: &Value, new: &Value) {
        let place = format!("{place}/annotations");
        let hint = |annotations: &Value, key: &str| annotations.get(key).and_then(Value::as_bool);
        let is_read_only = |annotations: &Value| hint(annotations, "readOnlyHint") == Some(true);
        match (is_read_only(old), is_read_only(new)) {
            (true, false) => {
                self.add(ChangeClass::Breaking, &place, "`readOnlyHint` is lost");
            }
            (false, true) => {
                let message = "`readOnlyHint` is new: clients may call the tool without asking";
                self.add(ChangeClass::Review, &place, message);
            }
            _ => {}
        }
        let destroys = |annotations: &Value| hint(annotations, "destructiveHint");
        match (destroys(old), destroys(new)) {
            (Some(false) | None, Some(true)) => {
                self.add(ChangeClass::Breaking, &place, "`destructiveHint` is gained");
            }
            // A tool that is not read-only is destructive unless it says otherwise.
            (Some(false), None) if !is_read_only(new) => {
                let message = "`destructiveHint: false` is lost, so the tool counts as destructive";
                self.add(ChangeClass::Breaking, &place, message);
            }
            (before, now) if before != now => {
                self.add(ChangeClass::Review, &place, "`destructiveHint` changed");
            }
            _ => {}
        }
        self.fields(&place, old, new, &["readOnlyHint", "destructiveHint"]);
    }

    fn prompt(&mut self, place: &str, old: &Value, new: &Value) {
        self.fields(place, old, new, &["arguments"]);
        let arguments = |prompt: &Value| -> BTreeMap<String, Value> {
            let all = prompt.get("arguments").and_then(Value::as_array);
            let named = all.into_iter().flatten().filter_map(|argument| {
                let name = argument.get("name")?.as_str()?.to_owned();
                Some((name, argument.clone()))
            });
            named.collect()
        };
        let (before, now) = (arguments(old), arguments(new));
        let is_required =
            |argument: &Value| argument.get("required").and_then(Value::as_bool) == Some(true);
        let names: BTreeSet<&String> = before.keys().chain(now.keys()).collect();
        for name in names {
            let place = format!("{place}/arguments/{name}");
            match (before.get(name), now.get(name)) {
                (Some(_), None) => self.add(ChangeClass::Breaking, &place, "the argument is gone"),
                (None, Some(new)) if is_required(new) => {
                    self.add(ChangeClass::Breaking, &place, "new required argument");
                }
                (None, _) => self.add(ChangeClass::Safe, &place, "new optional argument"),
                (Some(old), Some(new)) => {
                    match (is_required(old), is_required(new)) {
                        (false, true) => {
                            self.add(
                                ChangeClass::Breaking,
                                &place,
                                "the argument is now required",
                            );
                        }
                        (true, false) => {
                            self.add(ChangeClass::Safe, &place, "the argument is now optional");
                        }
                        _ => {}
                    }
                    self.fields(&place, old, new, &["required"]);
                }
            }
        }
    }

    /// Review changes for all fields except those that are compared apart.
    fn fields(&mut self, place: &str, old: &Value, new: &Value, apart: &[&str]) {
        let keys = |value: &Value| -> BTreeSet<String> {
            let keys = value.as_object().into_iter().flat_map(|map| map.keys());
            keys.cloned().collect()
        };
        for key in keys(old).union(&keys(new)) {
            if !apart.contains(&key.as_str()) {
                let subject = format!("`{key}`");
                let place = format!("{place}/{key}");
                self.texts(&place, &subject, old.get(key), new.get(key));
            }
        }
    }

    fn texts(&mut self, place: &str, subject: &str, old: Option<&Value>, new: Option<&Value>) {
        let message = match (old, new) {
            (Some(old), Some(new)) if !json::equal(old, new) => {
                let (old, new) = json::brief_pair(old, new);
                format!("{subject} changed from {old} to {new}")
            }
            (Some(old), None) => format!("no longer has {subject} (was {})", json::brief(old)),
            (None, Some(new)) => format!("now has {subject} {}", json::brief(new)),
            (Some(_), Some(_)) | (None, None) => return,
        };
        self.add(ChangeClass::Review, place, message);
    }

    fn capabilities(&mut self, old: &SurfaceContent, new: &SurfaceContent) {
        // Older records don't hold them.
        let (Some(old), Some(new)) = (&old.capabilities, &new.capabilities) else {
            return;
        };
        let names: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
        for name in names {
            let place = format!("capabilities/{name}");
            match (old.get(name), new.get(name)) {
                (Some(_), None) => {
                    self.add(ChangeClass::Breaking, &place, "the capability is gone");
                }
                (None, _) => self.add(ChangeClass::Safe, &place, "new capability"),
                (Some(old), Some(new)) => self.flags(&place, old, new),
            }
        }
    }

    /// The flags of a capability, such as `subscribe`.
    fn flags(&mut self, place: &str, old: &Value, new: &Value) {
        let none = serde_json::Map::new();
        let flags = |value: &Value| value.as_object().unwrap_or(&none).clone();
        for (name, before) in flags(old) {
            let place = format!("{place}/{name}");
            match new.get(&name) {
                None => self.add(ChangeClass::Breaking, &place, "the capability is gone"),
                Some(now) if !json::equal(&before, now) => {
                    self.add(ChangeClass::Review, &place, "the capability changed");
                }
                Some(_) => {}
            }
        }
        for name in flags(new).keys().filter(|name| old.get(*name).is_none()) {
            self.add(
                ChangeClass::Safe,
                &format!("{place}/{name}"),
                "new capability",
            );
        }
    }

    fn weight(&mut self, old: u64, new: u64) {
        if new * 100 > old * (100 + HEAVIER_PERCENT) && old > 0 {
            let percent = (new - old) * 100 / old;
            let message = format!(
                "the tools weigh {percent} % more: about {new} tokens in each model request (was {old})"
            );
            self.add(ChangeClass::Review, "tools", message);
        }
    }
}
