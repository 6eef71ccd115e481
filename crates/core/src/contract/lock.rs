//! The surface lock: a file with what servers offer, one line per leaf.
//!
//! Main type: [`SurfaceLock`]. A lock that is empty, malformed or of another version is an error: it could not
//! show that anything changed.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use data_encoding::HEXLOWER;
use proctor_record::event::{ChangeClass, SurfaceChange, SurfaceCompared};
use proctor_record::hint::listed;
use proctor_record::json;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::content::SurfaceContent;
use super::items::changes;
use crate::printable::is_hidden;

/// The version of the file that this program writes and reads.
const VERSION: u64 = 1;

const KIND: &str = "SurfaceLock";

/// The name of a server that a command line starts.
const UNNAMED: &str = "server";

/// What servers offered when the file was written.
#[derive(Debug, Clone, PartialEq)]
pub struct SurfaceLock {
    /// Each server by its name in the MCP config.
    pub servers: BTreeMap<String, SurfaceContent>,
    /// The SHA-256 of the file.
    pub digest: String,
}

/// Why a file is not a usable lock.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    #[error("can't read the surface lock `{}`", .path.display())]
    Read {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    #[error("`{}` is not a surface lock: {reason}", .path.display())]
    Malformed { path: PathBuf, reason: String },
    #[error(
        "the surface lock `{}` has version {found}, and this Proctor reads version {VERSION}; write it again with \
         `proctor tools --lock`", .path.display()
    )]
    Version { path: PathBuf, found: String },
    #[error("the surface lock `{}` is empty: {what} has no tools, resources or prompts", .path.display())]
    Empty { path: PathBuf, what: String },
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct LockFile {
    kind: String,
    servers: BTreeMap<String, SurfaceContent>,
    version: Value,
}

impl SurfaceLock {
    /// Reads a lock.
    pub fn load(path: &Path) -> Result<Self, LockError> {
        let text = std::fs::read_to_string(path).map_err(|source| LockError::Read {
            path: path.to_owned(),
            source,
        })?;
        Self::parse(&text, path)
    }

    fn parse(text: &str, path: &Path) -> Result<Self, LockError> {
        let malformed = |reason: String| LockError::Malformed {
            path: path.to_owned(),
            reason,
        };
        let value: Value = json::from_str(text).map_err(|error| malformed(error.to_string()))?;
        if value.get("kind").and_then(Value::as_str) != Some(KIND) {
            return Err(malformed(format!("it has no `\"kind\": \"{KIND}\"`")));
        }
        match value.get("version") {
            Some(version) if json::equal(version, &Value::from(VERSION)) => {}
            version => {
                return Err(LockError::Version {
                    path: path.to_owned(),
                    found: version.map_or("none".to_owned(), json::brief),
                });
            }
        }
        // A merge can leave an item twice, and only one of the two would be compared.
        if json::repeats_a_key(text.as_bytes()) {
            return Err(malformed("a key occurs twice in one map".to_owned()));
        }
        let file: LockFile = json::from_str(text).map_err(|error| malformed(error.to_string()))?;
        let empty = |what: String| LockError::Empty {
            path: path.to_owned(),
            what,
        };
        if file.servers.is_empty() {
            return Err(empty("it names no server, so it".to_owned()));
        }
        if let Some((name, _)) = file.servers.iter().find(|(_, content)| content.is_empty()) {
            return Err(empty(format!("its server `{name}`")));
        }
        Ok(Self {
            servers: file.servers,
            digest: HEXLOWER.encode(&Sha256::digest(text)),
        })
    }

    /// The text of a lock: canonical, and the same for the same servers.
    pub fn render(servers: &BTreeMap<String, SurfaceContent>) -> String {
        let file = LockFile {
            kind: KIND.to_owned(),
            servers: servers.clone(),
            version: Value::from(VERSION),
        };
        // Maps with text keys can't fail to serialize.
        let text = serde_json::to_string_pretty(&file).unwrap_or_default();
        visible(&text) + "\n"
    }

    /// Compares servers with the lock, one entry per server. With `is_whole`, the servers of the lock that are not
    /// offered are gone.
    pub fn compare(
        &self,
        offered: &BTreeMap<String, SurfaceContent>,
        is_whole: bool,
    ) -> Vec<SurfaceCompared> {
        let compared = |server: &str, changes| SurfaceCompared {
            server: server.to_owned(),
            lock_digest: self.digest.clone(),
            changes,
        };
        let whole = |class, message: &str| SurfaceChange {
            class,
            place: String::new(),
            message: message.to_owned(),
            witness: None,
        };
        let mut all = Vec::new();
        if let Some((server, old, new)) = self.only_pair(offered) {
            return vec![compared(server, changes(old, new))];
        }
        for (server, new) in offered {
            let found = match self.servers.get(server) {
                Some(old) => changes(old, new),
                None => vec![whole(
                    ChangeClass::Review,
                    "new server: the lock does not have it",
                )],
            };
            all.push(compared(server, found));
        }
        let gone = |server: &&String| is_whole && !offered.contains_key(*server);
        for server in self.servers.keys().filter(gone) {
            let change = whole(ChangeClass::Breaking, "the server is gone");
            all.push(compared(server, vec![change]));
        }
        all
    }

    /// The only server of the lock and the only one offered, if one of them has no name of its own, since a command
    /// line started it.
    fn only_pair<'a>(
        &'a self,
        offered: &'a BTreeMap<String, SurfaceContent>,
    ) -> Option<(&'a str, &'a SurfaceContent, &'a SurfaceContent)> {
        let (locked, old) = self.servers.first_key_value()?;
        let (server, new) = offered.first_key_value()?;
        let is_only = self.servers.len() == 1 && offered.len() == 1;
        match (locked.as_str(), server.as_str()) {
            (UNNAMED, name) | (name, UNNAMED) if is_only => Some((name, old, new)),
            _ => None,
        }
    }

    /// Why a comparison would be inconclusive: a server did not return a list.
    pub fn unknown_list(&self, offered: &BTreeMap<String, SurfaceContent>) -> Option<String> {
        let only = self.only_pair(offered).map(|(_, old, _)| old);
        offered.iter().find_map(|(server, new)| {
            let old = only.or_else(|| self.servers.get(server))?;
            let is_needed = !old.resource_templates.is_empty();
            let mut needed = new.unlisted.iter().filter(|_| is_needed);
            let needed = needed
                .next()
                .map(|(list, reason)| format!("did not list its {list}: {reason}"));
            let reason = new.unknown_list().or(needed)?;
            Some(format!("the server `{server}` {reason}"))
        })
    }

    /// Why the lock can't be compared with these servers: a command line started one, and the lock has several.
    pub fn mismatch(&self, offered: &BTreeMap<String, SurfaceContent>) -> Option<String> {
        let is_unnamed = offered.len() == 1 && offered.contains_key(UNNAMED);
        let is_known = self.servers.len() == 1 || self.servers.contains_key(UNNAMED);
        (is_unnamed && !is_known).then(|| {
            format!(
                "the lock has several servers ({}); name one with `--config FILE --server NAME`",
                listed(self.servers.keys().map(String::as_str))
            )
        })
    }
}

/// The JSON with hidden characters inside its texts as escapes, so that people see all that they review.
fn visible(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    for c in json.chars() {
        if c != '\n' && is_hidden(c) {
            let mut units = [0; 2];
            for unit in c.encode_utf16(&mut units) {
                out.push_str(&format!("\\u{unit:04x}"));
            }
        } else {
            out.push(c);
        }
    }
    out
}
