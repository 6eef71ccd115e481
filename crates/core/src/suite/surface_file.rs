//! The file format of `surface` and `lint` in an eval file.

use std::sync::Arc;

use proctor_record::event::ChangeClass;
use proctor_record::hint::{listed, nearest_hint};
use proctor_record::problem::{Code, Problem, WithSpan};

use super::files::FileOrigin;
use crate::contract::{ALLOWED_BY_DEFAULT, SurfaceContract, SurfaceLock};
use crate::decode::{Context, NonEmpty, PositiveInteger, RequiredKey, record, words};
use crate::lint::{LintRule, SwitchedOffRule};

record! {
    /// The surface contract: what may change about the servers. Checked before any model is asked. Only Proctor supports this key.
    pub struct SurfaceFile {
        /// The surface lock, which `proctor tools --lock FILE` writes.
        "lock" => lock: RequiredKey<WithSpan<String>>,
        /// The classes of changes that are allowed; by default `safe` and `review`.
        "allow" => allow: Option<Vec<AllowedChange>>,
        /// The highest estimated number of tokens of all tools in a model request.
        "maxSchemaTokens" => max_schema_tokens: Option<PositiveInteger>,
    }
}

words! {
    /// A class of changes.
    pub enum AllowedChange {
        /// Everything that worked before still works.
        "safe" => Safe,
        /// A person should look at it, such as a changed description.
        "review" => Review,
        /// Something that worked before no longer works.
        "breaking" => Breaking,
    }
}

record! {
    /// The rules of `proctor lint`. Only Proctor supports this key.
    pub struct LintFile {
        /// The rules that are switched off.
        "off" => off: Option<NonEmpty<LintOffFile>>,
    }
}

record! {
    /// A rule that is switched off.
    pub struct LintOffFile {
        /// The id of the rule.
        "rule" => rule: RequiredKey<WithSpan<String>>,
        /// Why the rule is switched off.
        "reason" => reason: RequiredKey<WithSpan<String>>,
        /// The tool for which it is switched off; by default all.
        "tool" => tool: Option<String>,
    }
}

/// The contract of a suite. A lock that can't be used is an error of the suite.
pub(super) fn contract(file: &SurfaceFile, cx: &Context<'_>) -> Option<SurfaceContract> {
    let written = file.lock.get()?;
    let path = FileOrigin::Own.resolve(cx.source.folder(), &written.value);
    let path = path.ok()?;
    let lock = match SurfaceLock::load(&path) {
        Ok(lock) => lock,
        Err(error) => {
            let cause = std::error::Error::source(&error);
            let cause = cause.map_or(String::new(), |cause| format!(": {cause}"));
            let problem = Problem::error(Code::File, format!("{error}{cause}"));
            let hint = "write it with `proctor tools --lock FILE`";
            cx.report(written.span, problem.hint(hint));
            return None;
        }
    };
    let class = |word: &AllowedChange| match word {
        AllowedChange::Safe => ChangeClass::Safe,
        AllowedChange::Review => ChangeClass::Review,
        AllowedChange::Breaking => ChangeClass::Breaking,
    };
    Some(SurfaceContract {
        path,
        lock: Arc::new(lock),
        allow: match &file.allow {
            Some(allow) => allow.iter().map(class).collect(),
            None => ALLOWED_BY_DEFAULT.to_vec(),
        },
        max_schema_tokens: file.max_schema_tokens.map(|most| u64::from(most.0)),
    })
}

/// The rules that a suite switches off.
pub(super) fn switched_off(file: &LintFile, cx: &Context<'_>) -> Vec<SwitchedOffRule> {
    let mut found = Vec::new();
    for off in file.off.iter().flat_map(|off| &off.0) {
        let (Some(rule), Some(reason)) = (off.rule.get(), off.reason.get()) else {
            continue;
        };
        if reason.value.trim().is_empty() {
            let problem = Problem::error(Code::Value, "the reason is empty");
            cx.report(reason.span, problem.hint("say why the rule does not apply"));
        }
        let Some(id) = LintRule::parse(&rule.value) else {
            let known = || LintRule::ALL.iter().map(|rule| rule.id());
            let hint = nearest_hint(&rule.value, known());
            let hint = hint.unwrap_or_else(|| format!("known: {}", listed(known())));
            let message = format!("unknown lint rule `{}`", rule.value);
            cx.report(rule.span, Problem::error(Code::Value, message).hint(hint));
            continue;
        };
        found.push(SwitchedOffRule {
            rule: id,
            reason: reason.value.clone(),
            tool: off.tool.clone(),
        });
    }
    found
}
