//! The values that differ by trial: its folder, its id, a random id and a free port.
//!
//! Its main type is [`TrialValues`]. Steps and prompts use them as templates among others. MCP
//! configs and agent files keep their texts as written until a trial fills them in.

use super::step::values::FillError;
use super::template::Reference;

/// The variable that holds the path of the trial's folder.
pub const TRIAL_DIR: &str = "PROCTOR_TRIAL_DIR";

/// The values that differ by trial.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TrialValues {
    /// The absolute path of the trial's folder.
    pub dir: String,
    /// The name of the trial's record, equal for all attempts.
    pub id: String,
    /// Eight lower-case letters and digits.
    pub random_id: String,
    /// A free port, if one was found.
    pub random_port: Option<u16>,
}

impl TrialValues {
    /// The free port as text.
    pub(super) fn port(&self) -> Result<String, FillError> {
        let port = self.random_port.ok_or(FillError::NoPort)?;
        Ok(port.to_string())
    }

    /// Fills in a text of an MCP config or an agent file. All other braces are text.
    pub fn fill(&self, text: &str) -> Result<String, FillError> {
        let values = [
            (Reference::TrialDir, Ok(self.dir.clone())),
            (Reference::TrialId, Ok(self.id.clone())),
            (Reference::RandomId, Ok(self.random_id.clone())),
            (Reference::RandomPort, self.port()),
        ]
        .map(|(reference, value)| (reference.to_string(), value));
        let mut filled = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(at) = rest.find('{') {
            filled.push_str(&rest[..at]);
            rest = &rest[at..];
            let found = values
                .iter()
                .find_map(|(written, value)| Some((rest.strip_prefix(written)?, value)));
            if let Some((after, value)) = found {
                filled.push_str(value.as_ref().map_err(Clone::clone)?);
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
    use super::*;

    #[test]
    fn only_the_values_of_a_trial_are_filled_in() {
        let values = TrialValues {
            dir: "/t/{trial.id}".to_owned(),
            id: "one".to_owned(),
            random_id: "k3x9q0ab".to_owned(),
            random_port: None,
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
}
