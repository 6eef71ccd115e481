//! The heads of HTTP messages.
//!
//! Its main type is [`KnownHeads`]. The heads of a connection are alike, so a part that was searched for secrets is
//! not searched again.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{MutexGuard, PoisonError};

use super::Redactor;
use crate::event::{Direction, HttpHead};

/// The number of header names that are remembered in each direction.
const NAMES: usize = 64;
/// The length up to which a value is remembered.
const LONGEST: usize = 1024;

/// Parts of heads that were searched: the last of each kind.
#[derive(Default)]
pub(super) struct KnownHeads {
    /// The number of secrets that were known when the parts were searched.
    secrets: (usize, usize),
    to_server: KnownParts,
    to_client: KnownParts,
}

/// The parts of one direction. Requests and responses differ in the values of the same headers.
#[derive(Default)]
struct KnownParts {
    /// The last request line or status that holds no secret.
    line: String,
    /// The last value of each header whose name holds no secret.
    values: BTreeMap<String, KnownValue>,
}

#[derive(Default)]
struct KnownValue {
    value: String,
    /// The value without secrets; `None` if it has none.
    redacted: Option<String>,
}

impl fmt::Debug for KnownHeads {
    /// Shows no value.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KnownHeads")
    }
}

impl KnownHeads {
    fn of(&mut self, direction: Direction) -> &mut KnownParts {
        match direction {
            Direction::ToServer => &mut self.to_server,
            Direction::ToClient => &mut self.to_client,
        }
    }
}

impl KnownParts {
    /// Whether the name itself holds no secret.
    fn knows(&self, name: &str) -> bool {
        self.values.contains_key(name)
    }

    fn add(&mut self, name: &str, value: &str, redacted: &str) {
        if value.len() > LONGEST {
            return;
        }
        if !self.knows(name) && self.values.len() == NAMES {
            return;
        }
        let known = self.values.entry(name.to_owned()).or_default();
        value.clone_into(&mut known.value);
        known.redacted = (redacted != value).then(|| redacted.to_owned());
    }
}

impl Redactor {
    /// The head of an HTTP message without secrets.
    pub(super) fn http(&self, mut http: HttpHead) -> HttpHead {
        let mut known = self.known_heads();
        let known = known.of(http.direction);
        if http.line != known.line {
            let line = self.address(&http.line);
            if line == http.line && line.len() <= LONGEST {
                line.clone_into(&mut known.line);
            }
            http.line = line;
        }
        let mut has_secret_name = false;
        for (name, value) in &mut http.headers {
            if let Some(last) = known.values.get(name).filter(|last| last.value == *value) {
                if let Some(redacted) = &last.redacted {
                    redacted.clone_into(value);
                }
                continue;
            }
            let is_plain = known.knows(name) || self.text(name) == *name;
            let redacted = self.header(name, value);
            if is_plain {
                known.add(name, value, &redacted);
            }
            *value = redacted;
            has_secret_name |= !is_plain;
        }
        if has_secret_name {
            let headers = std::mem::take(&mut http.headers).into_iter();
            let renamed = headers.map(|(name, value)| (self.text(&name).into_owned(), value));
            http.headers = renamed.collect();
        }
        http
    }

    /// What was searched for the secrets that are known now.
    fn known_heads(&self) -> MutexGuard<'_, KnownHeads> {
        let mut known = self.heads.lock().unwrap_or_else(PoisonError::into_inner);
        // Read before anything is searched: what another thread learns meanwhile counts as new the next time.
        let secrets = (self.learned.count(), self.obtained.count());
        if known.secrets != secrets {
            *known = KnownHeads {
                secrets,
                ..KnownHeads::default()
            };
        }
        known
    }
}

#[cfg(test)]
mod tests {
    use super::super::SharedSecrets;
    use super::*;
    use crate::event::ConnectionId;

    fn head(direction: Direction, line: &str, headers: &[(&str, &str)]) -> HttpHead {
        let headers = headers.iter().map(|(n, v)| ((*n).into(), (*v).into()));
        HttpHead {
            conn: ConnectionId(1),
            exchange: 1,
            direction,
            line: line.to_owned(),
            headers: headers.collect(),
            failure: None,
        }
    }

    fn secrets(value: &str) -> [(String, String); 1] {
        [("A".to_owned(), value.to_owned())]
    }

    #[test]
    fn a_redactor_that_knows_heads_redacts_like_a_new_one() {
        let request = |line, value| head(Direction::ToServer, line, &[("x", value), ("y", "1")]);
        let heads = [
            request("GET /a", "plain value"),
            request("GET /a", "plain value"),
            request("GET /?q=8675309123", "8675309123"),
            request("GET /a", "plain value"),
            head(
                Direction::ToClient,
                "GET /a",
                &[("8675309123", "8675309123")],
            ),
            head(Direction::ToClient, "200 OK", &[("cookie", "c"), ("x", "")]),
            head(Direction::ToClient, "200 OK", &[("cookie", "c"), ("x", "")]),
            head(Direction::ToClient, "200 OK", &[("cookie", "d"), ("x", "")]),
            head(
                Direction::ToClient,
                "200 OK",
                &[("cookie", "[redacted:cookie]")],
            ),
            head(Direction::ToClient, "200 OK", &[("cookie", "c")]),
            head(Direction::ToClient, "200 OK", &[]),
            request(&"/".repeat(LONGEST + 1), &"v".repeat(LONGEST + 1)),
            request(&"/".repeat(LONGEST + 1), &"v".repeat(LONGEST + 1)),
        ];
        let redactor = Redactor::new(secrets("8675309123"));
        for head in heads {
            let expected = Redactor::new(secrets("8675309123")).http(head.clone());
            assert_eq!(redactor.http(head), expected);
        }
    }

    #[test]
    fn a_harmless_value_that_becomes_a_secret_is_redacted() {
        let all = SharedSecrets::default();
        let redactor = Redactor::new([]).sharing(&all);
        let head = head(Direction::ToServer, "GET /token-one", &[("x", "token-two")]);
        assert_eq!(redactor.http(head.clone()), head);
        redactor.learn(secrets("token-one"));
        assert_eq!(redactor.http(head.clone()).line, "GET /[redacted:A]");
        assert_eq!(redactor.http(head.clone()).headers["x"], "token-two");
        all.learn(secrets("token-two"));
        assert_eq!(redactor.http(head).headers["x"], "[redacted:A]");
    }

    #[test]
    fn many_names_are_not_remembered() {
        let redactor = Redactor::default();
        for number in 0..2 * NAMES {
            redactor.http(head(
                Direction::ToServer,
                "",
                &[(&format!("x{number}"), "value")],
            ));
        }
        assert_eq!(redactor.known_heads().to_server.values.len(), NAMES);
    }
}
