//! Whether shards belong to the same plan, and what differs if not.
//!
//! The hash covers everything that decides which trials run and what they mean. It leaves out what may differ between
//! machines: the folder of the checkout, the number of parallel trials, warnings, and the number of the shard.

use std::collections::{BTreeMap, BTreeSet};

use data_encoding::HEXLOWER;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use proctor_record::event::{PlannedCase, RunPlanned};
use proctor_record::json::canonical;

/// How many names a difference lists.
const LISTED: usize = 5;

/// The SHA-256 of a plan, with the version of Proctor that made it.
pub fn plan_hash(plan: &RunPlanned, proctor: &str) -> String {
    let content = json!([proctor, portable(plan)]);
    HEXLOWER.encode(&Sha256::digest(canonical(&content)))
}

/// Whether two plans are the same but for the number of the shard, so that their hashes are equal.
pub fn is_same(one: &RunPlanned, other: &mut RunPlanned) -> bool {
    let count = |plan: &RunPlanned| plan.asked.shard.as_ref().map(|shard| shard.count);
    if count(one) != count(other) {
        return false;
    }
    // A plan is long, so it is compared in place.
    let own = std::mem::replace(&mut other.asked.shard, one.asked.shard.clone());
    let is_same = *one == *other;
    other.asked.shard = own;
    is_same
}

/// The plan as JSON, without what differs between machines.
fn portable(plan: &RunPlanned) -> Value {
    let config = plan.config.as_deref();
    let folder = config.map_or("", |config| config.folder.as_str());
    // A plan holds only texts, numbers and lists, which always serialize.
    let mut value = serde_json::to_value(plan).unwrap_or_default();
    if let Some(plan) = value.as_object_mut() {
        plan.remove("warnings");
    }
    if let Some(config) = value.get_mut("config").and_then(Value::as_object_mut) {
        config.remove("workers");
        config.remove("folder");
    }
    if let Some(shard) = value
        .pointer_mut("/asked/shard")
        .and_then(Value::as_object_mut)
    {
        shard.retain(|key, _| key == "count");
    }
    relative(&mut value, folder);
    value
}

/// Makes the paths below a folder relative to it.
fn relative(value: &mut Value, folder: &str) {
    match value {
        Value::String(text) => {
            let below = text.strip_prefix(folder).filter(|_| !folder.is_empty());
            if let Some(below) = below.and_then(|rest| rest.strip_prefix('/')) {
                *text = below.to_owned();
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| relative(item, folder)),
        Value::Object(fields) => fields
            .values_mut()
            .for_each(|field| relative(field, folder)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// What differs between two plans, for people; empty if their hashes are equal.
pub fn differences(
    (one, one_proctor): (&RunPlanned, &str),
    (other, other_proctor): (&RunPlanned, &str),
) -> Vec<String> {
    let mut all = Vec::new();
    if one_proctor != other_proctor {
        all.push(format!("Proctor {one_proctor} and {other_proctor}"));
    }
    let count = |plan: &RunPlanned| plan.asked.shard.as_ref().map_or(1, |shard| shard.count);
    if count(one) != count(other) {
        all.push(format!("{} and {} shards", count(one), count(other)));
    }
    all.extend(case_differences(&one.cases, &other.cases));
    let (one, other) = (portable(one), portable(other));
    let named = [
        ("/suite", "the eval file"),
        ("/mcpConfig", "the MCP config"),
        ("/agents", "the agents"),
        ("/agentSettings", "the settings of the agents"),
        ("/judge", "the judge"),
        ("/serverSettings", "the settings of the servers"),
        (
            "/surroundings",
            "the servers, model scripts or steps of the run",
        ),
        ("/asked", "the options or gates"),
        ("/notRun", "the shipped evals"),
    ];
    for (path, name) in named {
        if path == "/asked" && count_only(one.pointer(path), other.pointer(path)) {
            continue;
        }
        if one.pointer(path) != other.pointer(path) {
            all.push(name.to_owned());
        }
    }
    if all.is_empty() && one != other {
        all.push("the configuration of the suite".to_owned());
    }
    all
}

/// Whether options differ at most in the number of shards, which is a difference of its own.
fn count_only(one: Option<&Value>, other: Option<&Value>) -> bool {
    let without = |value: Option<&Value>| {
        let mut value = value.cloned().unwrap_or_default();
        if let Some(asked) = value.as_object_mut() {
            asked.remove("shard");
        }
        value
    };
    without(one) == without(other)
}

fn case_differences(one: &[PlannedCase], other: &[PlannedCase]) -> Vec<String> {
    let by_id = |cases: &'_ [PlannedCase]| -> BTreeMap<String, PlannedCase> {
        let cases = cases.iter().cloned();
        cases.map(|case| (case.id.clone(), case)).collect()
    };
    let (one, other) = (by_id(one), by_id(other));
    let ids: BTreeSet<&String> = one.keys().chain(other.keys()).collect();
    let (mut absent, mut changed, mut runs) = (Vec::new(), Vec::new(), Vec::new());
    for id in ids {
        match (one.get(id), other.get(id)) {
            (Some(a), Some(b)) if a.hash != b.hash => changed.push(id.as_str()),
            (Some(a), Some(b)) if a.runs != b.runs => runs.push(id.as_str()),
            (Some(a), Some(b)) if a != b => changed.push(id.as_str()),
            (Some(_), Some(_)) => {}
            (_, _) => absent.push(id.as_str()),
        }
    }
    let texts = [
        ("only one of them has", absent),
        ("changed:", changed),
        ("another number of runs of", runs),
    ];
    let texts = texts.into_iter().filter(|(_, ids)| !ids.is_empty());
    texts
        .map(|(text, ids)| format!("{text} {}", listed(&ids)))
        .collect()
}

fn listed(ids: &[&str]) -> String {
    let shown: Vec<String> = ids
        .iter()
        .take(LISTED)
        .map(|id| format!("`{id}`"))
        .collect();
    match ids.len().saturating_sub(LISTED) {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}
