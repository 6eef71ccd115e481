//! The consent file: which shipped evals the user agreed to run, as reviewable text for the repository.
//!
//! Its main type is [`Consents`]. An entry contains the hashes of the server, tools and evals, and a hash over
//! itself: an edited entry is an error and not a consent.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use mcp_evals::Level;
use proctor_record::json::canonical;
use proctor_record::problem::{Code, Problem, Problems, WithSpan};
use serde_json::json;

use super::fingerprint::{EvalMark, Fingerprint, FingerprintDifference, sha256};
use crate::decode::{Context, Decode, LooseText, Table, record};
use crate::document::yaml::{key, quoted};
use crate::document::{self, MAX_BYTES, MAX_NODES};
use crate::suite::files;

const KIND: &str = "Consent";
const VERSION: &str = "1";

const HEADING: &str = "\
# Consent to run the evals that servers ship. Written by Proctor; review it like code.
# If a server's command, tools or evals change, Proctor shows the difference and asks again.
";

/// The consents by server name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Consents {
    pub servers: BTreeMap<String, Consent>,
}

/// The consent for one server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Consent {
    /// The fingerprint of the server at that time.
    pub fingerprint: Fingerprint,
    /// The ids of the evals that were shown and agreed to.
    pub agreed: BTreeSet<String>,
    /// The calls that were shown, for reviewers of the file.
    pub calls: BTreeSet<String>,
}

record! {
    /// A file of consents.
    struct ConsentFile {
        "kind" => kind: WithSpan<String>,
        "version" => version: WithSpan<LooseText>,
        "servers" => servers: Table<ConsentEntry>,
    }
}

record! {
    /// The consent for one server.
    struct ConsentEntry {
        "target" => target: LooseText,
        "given" => given: Vec<LooseText>,
        "sha256" => sha256: WithSpan<LooseText>,
        "calls" => calls: Vec<LooseText>,
        "agreed" => agreed: Vec<LooseText>,
        "tools" => tools: Vec<WithSpan<String>>,
        "evals" => evals: Vec<WithSpan<String>>,
    }
}

impl Consent {
    /// The changes since the consent, if any. With a level, only its evals count.
    pub fn difference(
        &self,
        now: &Fingerprint,
        level: Option<Level>,
    ) -> Option<FingerprintDifference> {
        let agreed = self.fingerprint.clone().of_level(level);
        agreed.difference(&now.clone().of_level(level))
    }

    /// The hash over the whole entry.
    fn sha256(&self) -> String {
        // What a reviewer reads is what was agreed to.
        let whole = json!([self.fingerprint.sha256(), self.agreed, self.calls]);
        sha256(&canonical(&whole))
    }

    fn read(entry: &ConsentEntry, cx: &Context<'_>) -> Option<Self> {
        let mut tools = BTreeMap::new();
        for line in &entry.tools {
            let read = line.rsplit_once(' ');
            let (name, sha256) = read.or_else(|| unreadable(line, cx))?;
            tools.insert(name.to_owned(), sha256.to_owned());
        }
        let mut evals = BTreeMap::new();
        for line in &entry.evals {
            let read = line.split_once(' ').and_then(|(level, rest)| {
                let (id, sha256) = rest.rsplit_once(' ')?;
                Some((level, id, sha256))
            });
            let (level, id, sha256) = read.or_else(|| unreadable(line, cx))?;
            let mark = EvalMark {
                level: level.to_owned(),
                sha256: sha256.to_owned(),
            };
            evals.insert(id.to_owned(), mark);
        }
        let set = |texts: &[LooseText]| texts.iter().map(|text| text.0.clone()).collect();
        let consent = Self {
            fingerprint: Fingerprint {
                target: entry.target.0.clone(),
                given: entry.given.iter().map(|name| name.0.clone()).collect(),
                tools,
                evals,
            },
            agreed: set(&entry.agreed),
            calls: set(&entry.calls),
        };
        if consent.sha256() != entry.sha256.0 {
            let message = "the entry was edited: its hash does not match";
            let problem = Problem::error(Code::Value, message);
            cx.report(
                entry.sha256.span,
                problem.hint("remove the entry to be asked again"),
            );
            return None;
        }
        Some(consent)
    }

    fn push(&self, name: &str, out: &mut String) {
        let Fingerprint {
            target,
            given,
            tools,
            evals,
        } = &self.fingerprint;
        out.push_str(&format!("  {}:\n", key(name)));
        out.push_str(&format!("    target: {}\n", quoted(target)));
        push_list("given", given.iter().cloned(), out);
        out.push_str(&format!("    sha256: {}\n", quoted(&self.sha256())));
        push_list("calls", self.calls.iter().cloned(), out);
        push_list("agreed", self.agreed.iter().cloned(), out);
        let tools = tools
            .iter()
            .map(|(name, sha256)| format!("{name} {sha256}"));
        push_list("tools", tools, out);
        let evals = evals
            .iter()
            .map(|(id, mark)| format!("{} {id} {}", mark.level, mark.sha256));
        push_list("evals", evals, out);
    }
}

fn unreadable<T>(line: &WithSpan<String>, cx: &Context<'_>) -> Option<T> {
    let problem = Problem::error(Code::Value, "malformed entry: not written by Proctor");
    cx.report(
        line.span,
        problem.hint("remove the entry to be asked again"),
    );
    None
}

fn push_list(name: &str, lines: impl Iterator<Item = String>, out: &mut String) {
    for (at, line) in lines.enumerate() {
        if at == 0 {
            out.push_str(&format!("    {name}:\n"));
        }
        out.push_str(&format!("      - {}\n", quoted(&line)));
    }
}

/// A consent does not fit in a file.
#[derive(Debug, thiserror::Error)]
#[error("too many tools and evals for a consent file")]
pub struct ConsentTooLarge;

impl Consents {
    /// Loads an existing file. If it returns `None`, it has reported an error.
    pub fn load(path: &Path, problems: &mut Problems) -> Option<Self> {
        let source = match files::read(path) {
            Ok(source) => source,
            Err(problem) => {
                problems.push(problem);
                return None;
            }
        };
        let document = document::parse(&source, problems)?;
        let shared = RefCell::new(std::mem::take(problems));
        let cx = Context::new(source, &shared);
        let file = ConsentFile::decode(&document.root, &cx);
        let read = file.map(|file| Self::read(&file, &cx));
        *problems = shared.into_inner();
        // What is not understood may have been meant to say something.
        problems.promote_all();
        read.filter(|_| !problems.has_errors())
    }

    fn read(file: &ConsentFile, cx: &Context<'_>) -> Self {
        if file.kind.value != KIND {
            let message = format!(
                "expected a file of kind `{KIND}`, found `{}`",
                file.kind.value
            );
            cx.report(file.kind.span, Problem::error(Code::Kind, message));
        } else if file.version.value.0 != VERSION {
            let message = format!("unsupported version `{}`", file.version.value.0);
            cx.report(file.version.span, Problem::error(Code::Value, message));
        }
        let entries = file.servers.iter();
        let servers = entries
            .filter_map(|(name, entry)| Some((name.value.clone(), Consent::read(entry, cx)?)));
        Self {
            servers: servers.collect(),
        }
    }

    /// The text of the file. The same consents always give the same text.
    pub fn render(&self) -> Result<String, ConsentTooLarge> {
        let mut out = format!("{HEADING}kind: {KIND}\nversion: {VERSION}\nservers:\n");
        let mut nodes = 10;
        for (name, consent) in &self.servers {
            consent.push(name, &mut out);
            let print = &consent.fingerprint;
            nodes += 10 + print.given.len() + consent.calls.len() + consent.agreed.len();
            nodes += print.tools.len() + print.evals.len();
        }
        // What could not be read back would be no consent.
        if out.len() as u64 > MAX_BYTES || nodes > MAX_NODES {
            return Err(ConsentTooLarge);
        }
        Ok(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn consents() -> Consents {
        let tools = [json!({"name": "borrow book\u{202e}"}), json!({"name": ""})];
        let eval = json!({"id": "a b \"c\"", "input": 5});
        let fingerprint = Fingerprint::new(
            "server 'a b'".to_owned(),
            vec!["KEY".to_owned()],
            &tools,
            &[eval.into()],
        );
        let consent = Consent {
            fingerprint,
            agreed: ["a b \"c\"".to_owned()].into(),
            calls: ["t {\"x\":1}".to_owned()].into(),
        };
        let servers = [
            ("one".to_owned(), consent.clone()),
            ("t w o".to_owned(), consent),
        ];
        Consents {
            servers: servers.into_iter().collect(),
        }
    }

    fn load(text: &str) -> Result<Consents, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("consent.yaml");
        std::fs::write(&path, text).unwrap();
        let mut problems = Problems::default();
        Consents::load(&path, &mut problems).ok_or_else(|| {
            let first = problems.iter().next();
            first
                .map(|problem| problem.message.clone())
                .unwrap_or_default()
        })
    }

    #[test]
    fn e30_a_consent_file_is_read_back_as_it_was_written() {
        let text = consents().render().unwrap();
        assert_eq!(load(&text), Ok(consents()), "{text}");
        assert!(text.contains("\n      - \"t {\\\"x\\\":1}\"\n"), "{text}");
    }

    #[test]
    fn e30_a_consent_file_that_was_tampered_with_is_an_error() {
        let text = consents().render().unwrap();
        let check = |from: &str, to: &str, expected: &str| {
            let changed = text.replacen(from, to, 1);
            assert_ne!(changed, text);
            let error = load(&changed).unwrap_err();
            assert!(error.contains(expected), "{error}");
        };
        let hash = "its hash does not match";
        check("server 'a b'", "server b", hash);
        check("- \"t {", "- \"u {", hash);
        check("    agreed:\n", "    agreed:\n      - more\n", hash);
        check("KEY", "YEK", hash);
        check("other a b", "execution a b", hash);
        check("other a b \\\"c\\\" ", "x", "not written by Proctor");
        check(
            "kind: Consent",
            "kind: Task",
            "expected a file of kind `Consent`, found `Task`",
        );
        check("version: 1", "version: 2", "unsupported version `2`");
        check("    target:", "    targets:", "unknown key `targets`");
        check("kind: Consent", "kind: [", "invalid YAML");
    }
}
