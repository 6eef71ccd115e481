//! Servers, compared with their surface lock.
//!
//! Main functions: [`text`], [`markdown`], [`github`] and [`document`], one per format. Texts of servers are
//! escaped in each.

use proctor_core::contract::{ContractJudgement, example};
use proctor_core::printable::printable;
use proctor_record::event::{ChangeClass, SurfaceChange};
use serde_json::{Value, json};

use crate::annotations::{data, property};
use crate::markdown::code::{code, reason};
use crate::words;

/// The maximum number of changes in a comment. GitHub refuses long ones.
const SHOWN: usize = 200;

/// The maximum number of annotations of one kind. GitHub shows ten.
const ANNOTATIONS: usize = 10;

/// The changes of each server, for a terminal.
pub fn text(judged: &ContractJudgement) -> String {
    let mut out = String::new();
    for compared in &judged.compared {
        if compared.changes.is_empty() {
            continue;
        }
        out.push_str(&format!("{}\n", printable(&compared.server)));
        for change in &compared.changes {
            out.push_str(&format!(
                "  {:<8}  {}\n            {}\n",
                change.class.word(),
                printable(place(change)),
                printable(&change.message)
            ));
            if let Some(witness) = &change.witness {
                let example = example(&change.place, witness);
                out.push_str(&format!("            {}\n", printable(&example)));
            }
        }
        out.push('\n');
    }
    out.push_str(&format!("{}\n", tally(judged)));
    out
}

fn place(change: &SurfaceChange) -> &str {
    match change.place.as_str() {
        "" => "(the server)",
        place => place,
    }
}

/// The number of changes of each class, and whether they are allowed.
fn tally(judged: &ContractJudgement) -> String {
    let counts: Vec<String> = ChangeClass::ALL
        .into_iter()
        .map(|class| (judged.count(class), class))
        .filter(|(count, _)| *count > 0)
        .map(|(count, class)| format!("{count} {}", class.word()))
        .collect();
    let servers = words::count(judged.compared.len() as u64, "server");
    if counts.is_empty() && judged.is_kept() {
        return format!("{servers} compared: no changes");
    }
    let counts = if counts.is_empty() {
        "no changes".to_owned()
    } else {
        counts.join(", ")
    };
    format!("{servers} compared: {counts}; {}", judged.sentence())
}

/// A comment for a pull request.
pub fn markdown(judged: &ContractJudgement) -> String {
    let verdict = if judged.is_kept() { "kept" } else { "broken" };
    let mut out = format!("### Surface contract: {verdict}\n\n{}.\n", tally(judged));
    if judged.changes().next().is_none() {
        return out;
    }
    out.push_str("\n| class | place | change |\n|---|---|---|\n");
    for (server, change) in judged.changes().take(SHOWN) {
        let place = format!("{server}/{}", change.place);
        let mut message = reason(&change.message);
        if let Some(witness) = &change.witness {
            message.push_str(&format!(" {}", reason(&example(&change.place, witness))));
        }
        let class = change.class.word();
        let class = if judged.is_allowed(change) {
            class.to_owned()
        } else {
            format!("**{class}**")
        };
        out.push_str(&format!("| {class} | {} | {message} |\n", code(&place)));
    }
    let left = judged.changes().count().saturating_sub(SHOWN);
    if left > 0 {
        out.push_str(&format!(
            "\n{} more.\n",
            words::count(left as u64, "change")
        ));
    }
    out
}

/// Annotations on the lock file, changes that are not allowed first.
pub fn github(judged: &ContractJudgement, lock: &str) -> String {
    let mut out = String::new();
    let mut write = |kind: &str, title: &str, message: &str| {
        out.push_str(&format!(
            "::{kind} file={},title={}::{}\n",
            property(lock),
            property(title),
            data(message)
        ));
    };
    if let Some(message) = judged.overweight() {
        write("error", "surface contract", &message);
    }
    let kind = |change: &SurfaceChange| match (judged.is_allowed(change), change.class) {
        (false, _) => "error",
        (true, ChangeClass::Breaking | ChangeClass::Review) => "warning",
        (true, ChangeClass::Safe) => "notice",
    };
    for wanted in ["error", "warning", "notice"] {
        let changes = judged
            .changes()
            .filter(|(_, change)| kind(change) == wanted);
        for (server, change) in changes.take(ANNOTATIONS) {
            let title = format!("{}: {server}/{}", change.class.word(), change.place);
            let mut message = change.message.clone();
            if let Some(witness) = &change.witness {
                message.push_str(&format!("\n{}", example(&change.place, witness)));
            }
            write(wanted, &title, &message);
        }
    }
    out.push_str(&format!("{}\n", tally(judged)));
    out
}

/// The comparison as JSON.
pub fn document(judged: &ContractJudgement, lock: &str) -> Value {
    let servers: Vec<Value> = judged
        .compared
        .iter()
        .map(|compared| json!({"server": compared.server, "changes": compared.changes}))
        .collect();
    let digest = judged
        .compared
        .first()
        .map(|compared| &compared.lock_digest);
    let allow: Vec<&str> = judged.allow.iter().map(|class| class.word()).collect();
    json!({
        "lock": lock,
        "lockDigest": digest,
        "allow": allow,
        "kept": judged.is_kept(),
        "message": judged.sentence(),
        "breaking": judged.count(ChangeClass::Breaking),
        "review": judged.count(ChangeClass::Review),
        "safe": judged.count(ChangeClass::Safe),
        "notAllowed": judged.refused(),
        "schemaTokens": judged.schema_tokens,
        "maxSchemaTokens": judged.max_schema_tokens,
        "servers": servers,
    })
}
