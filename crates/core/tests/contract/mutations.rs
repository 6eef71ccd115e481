//! Changes of real tool lists, each with its class.

use std::path::Path;

use proctor_core::contract::{SurfaceContent, changes};
use proctor_record::event::ChangeClass;
use serde_json::{Map, Value, json};

use super::{content, validator};

fn tools(list: &str) -> Vec<Value> {
    let lists = Path::new(env!("CARGO_MANIFEST_DIR")).join("../e2e/tests/tool-lists");
    let text = std::fs::read_to_string(lists.join(format!("{list}.json"))).unwrap();
    let mut list: Value = serde_json::from_str(&text).unwrap();
    serde_json::from_value(list["tools"].take()).unwrap()
}

/// Sets or removes the value at a JSON pointer.
fn set(tool: &mut Value, pointer: &str, value: Option<Value>) {
    let (parent, key) = pointer.rsplit_once('/').unwrap();
    let parent = tool.pointer_mut(parent).unwrap().as_object_mut().unwrap();
    match value {
        Some(value) => {
            parent.insert(key.to_owned(), value);
        }
        None => {
            parent.remove(key).expect("there is something to remove");
        }
    }
}

#[test]
fn changes_of_real_tool_lists_have_the_expected_class() {
    let table = include_str!("mutations.tsv");
    let rows = table.lines().filter(|line| !line.starts_with('#'));
    let mut wrong = Vec::new();
    let mut count = 0;
    for row in rows {
        let cells: Vec<&str> = row.split('\t').collect();
        let [list, name, pointer, value, class, place] = cells[..] else {
            panic!("six cells: {row}");
        };
        let old = tools(list);
        let mut new = old.clone();
        let at = new.iter().position(|tool| tool["name"] == name).unwrap();
        let value = (value != "-").then(|| serde_json::from_str(value).unwrap());
        if pointer.is_empty() {
            new.remove(at);
        } else {
            set(&mut new[at], pointer, value);
        }
        let found = changes(&content(&old), &content(&new));
        let class = ChangeClass::parse(class).unwrap();
        let worst = found.iter().map(|change| change.class).max();
        let is_there = found
            .iter()
            .any(|change| change.class == class && change.place == place);
        if worst != Some(class) || !is_there {
            wrong.push(format!("{row}\n  {found:#?}"));
        }
        check_witnesses(&old[at], new.get(at), &found);
        count += 1;
    }
    assert!(
        wrong.is_empty(),
        "{} of {count}:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
    assert!(count >= 60, "{count} mutations");
}

/// A witness is valid before and not after; for results the other way round.
fn check_witnesses(
    old: &Value,
    new: Option<&Value>,
    found: &[proctor_record::event::SurfaceChange],
) {
    for change in found {
        let Some(witness) = &change.witness else {
            continue;
        };
        let new = new.unwrap();
        let key = if change.place.contains("/output") {
            "outputSchema"
        } else {
            "inputSchema"
        };
        let [old, new] = [old, new].map(|tool| validator(&tool[key]).is_valid(witness));
        assert_eq!(
            (old, new),
            (key == "inputSchema", key != "inputSchema"),
            "{change:?}"
        );
    }
}

#[test]
fn broken_arguments_of_real_tools_have_a_witness() {
    let table = include_str!("mutations.tsv");
    let section = |line: &&str| line.contains("\tbreaking\t") && line.contains("/inputSchema/");
    for row in table.lines().filter(section) {
        let cells: Vec<&str> = row.split('\t').collect();
        let old = tools(cells[0]);
        let mut tool = old
            .iter()
            .find(|tool| tool["name"] == cells[1])
            .unwrap()
            .clone();
        let before = tool.clone();
        if cells[3] == "-" {
            // A schema that accepts an argument that it no longer names breaks no call.
            continue;
        }
        set(&mut tool, cells[2], serde_json::from_str(cells[3]).ok());
        let found = changes(&content(&[before]), &content(&[tool]));
        let broken = found
            .iter()
            .find(|change| change.class == ChangeClass::Breaking)
            .unwrap();
        assert!(broken.witness.is_some(), "{row}\n{found:#?}");
    }
}

fn reversed(value: &Value) -> Value {
    match value {
        Value::Object(map) => {
            let members = map
                .iter()
                .rev()
                .map(|(key, value)| (key.clone(), reversed(value)));
            Value::Object(members.collect::<Map<_, _>>())
        }
        Value::Array(list) => Value::Array(list.iter().map(reversed).collect()),
        other => other.clone(),
    }
}

#[test]
fn shuffled_tools_and_keys_are_no_change() {
    let lists = [
        "everything",
        "filesystem",
        "git",
        "kubernetes",
        "memory",
        "notion",
        "playwright",
        "redis",
    ];
    for list in lists {
        let old = tools(list);
        let new: Vec<Value> = old.iter().rev().map(reversed).collect();
        assert_ne!(json!(old).to_string(), json!(new).to_string());
        let (old, new): (SurfaceContent, SurfaceContent) = (content(&old), content(&new));
        assert_eq!(changes(&old, &new), [], "{list}");
    }
}

#[test]
fn heavier_tools_are_to_be_reviewed() {
    let old = tools("git");
    let mut new = old.clone();
    set(
        &mut new[0],
        "/description",
        Some(json!("long ".repeat(400))),
    );
    let found = changes(&content(&old), &content(&new));
    let weight = found.iter().find(|change| change.place == "tools").unwrap();
    assert_eq!(weight.class, ChangeClass::Review);
    assert!(weight.message.contains("% more"), "{}", weight.message);
}
