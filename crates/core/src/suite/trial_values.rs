//! The values that differ by trial: its folder, its id, a random id and a free port.
//!
//! Its main type is [`TrialValues`]. Steps and prompts use them as templates among others. MCP
//! configs and agent files keep their texts as written until a trial fills them in.

use std::fmt;
use std::sync::{Arc, OnceLock};

use super::step::values::FillError;
use super::template::Reference;

/// The variable that holds the path of the trial's folder.
pub const TRIAL_DIR: &str = "PROCTOR_TRIAL_DIR";

/// The values that differ by trial.
#[derive(Debug, Clone, Default)]
pub struct TrialValues {
    /// The absolute path of the trial's folder.
    pub dir: String,
    /// The name of the trial's record, equal for all attempts.
    pub id: String,
    /// Eight lower-case letters and digits.
    pub random_id: String,
    /// A free port.
    pub random_port: RandomPort,
}

/// A free port, which is looked for when the first text needs it. Clones share it.
#[derive(Clone)]
pub struct RandomPort {
    find: fn() -> Option<u16>,
    found: Arc<OnceLock<Option<u16>>>,
}

impl RandomPort {
    /// A port that `find` returns; `None` if it finds no free port.
    pub fn new(find: fn() -> Option<u16>) -> Self {
        Self {
            find,
            found: Arc::default(),
        }
    }

    fn get(&self) -> Option<u16> {
        *self.found.get_or_init(self.find)
    }
}

impl Default for RandomPort {
    /// No port.
    fn default() -> Self {
        Self::new(|| None)
    }
}

impl fmt::Debug for RandomPort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("RandomPort").field(&self.found).finish()
    }
}

impl TrialValues {
    /// The free port as text.
    pub(super) fn port(&self) -> Result<String, FillError> {
        let port = self.random_port.get().ok_or(FillError::NoPort)?;
        Ok(port.to_string())
    }

    /// Fills in a text of an MCP config or an agent file. All other braces are text.
    pub fn fill(&self, text: &str) -> Result<String, FillError> {
        type Value<'a> = &'a dyn Fn() -> Result<String, FillError>;
        let values: [(Reference, Value<'_>); 4] = [
            (Reference::TrialDir, &|| Ok(self.dir.clone())),
            (Reference::TrialId, &|| Ok(self.id.clone())),
            (Reference::RandomId, &|| Ok(self.random_id.clone())),
            (Reference::RandomPort, &|| self.port()),
        ];
        let values = values.map(|(reference, value)| (reference.to_string(), value));
        let mut filled = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(at) = rest.find('{') {
            filled.push_str(&rest[..at]);
            rest = &rest[at..];
            let found = values
                .iter()
                .find_map(|(written, value)| Some((rest.strip_prefix(written)?, value)));
            if let Some((after, value)) = found {
                filled.push_str(&value()?);
                rest = after;
            } else {
                filled.push('{');
                rest = &rest[1..];
            }
        }
        filled.push_str(rest);
        Ok(filled)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU16, Ordering};

    use super::*;

    #[test]
    fn only_the_values_of_a_trial_are_filled_in() {
        let values = TrialValues {
            dir: "/t/{trial.id}".to_owned(),
            id: "one".to_owned(),
            random_id: "k3x9q0ab".to_owned(),
            random_port: RandomPort::default(),
        };
        let check = |text: &str, expected: &str| {
            assert_eq!(values.fill(text).as_deref(), Ok(expected), "{text}");
        };
        check("", "");
        check("{trial.id}-{random.id}", "one-k3x9q0ab");
        // A value is not filled in again.
        check("{trial.dir}/x", "/t/{trial.id}/x");
        check("{{trial.id}} {agent.output} {", "{one} {agent.output} {");
        assert_eq!(values.fill("h:{random.port}"), Err(FillError::NoPort));
    }

    #[test]
    fn a_port_is_looked_for_once_and_only_if_a_text_names_it() {
        static LOOKS: AtomicU16 = AtomicU16::new(0);
        let values = TrialValues {
            random_port: RandomPort::new(|| Some(LOOKS.fetch_add(1, Ordering::Relaxed) + 80)),
            ..TrialValues::default()
        };
        assert_eq!(values.fill("{trial.id} {other}").as_deref(), Ok(" {other}"));
        assert_eq!(LOOKS.load(Ordering::Relaxed), 0);
        assert_eq!(values.fill("{random.port}").as_deref(), Ok("80"));
        assert_eq!(values.clone().fill("{random.port}").as_deref(), Ok("80"));
    }
}
