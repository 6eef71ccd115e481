//! The environment of steps and extensions: the user's, without model keys.

use std::collections::BTreeMap;

/// Variables that hold model keys. Steps don't get them.
pub const MODEL_KEYS: [&str; 5] = [
    "OPENAI_API_KEY",
    "ANTHROPIC_API_KEY",
    "GEMINI_API_KEY",
    "GOOGLE_API_KEY",
    "MODEL_KEY",
];

/// The kernel's limit for one variable: name, `=`, value and NUL.
const LONGEST: usize = 128 * 1024;

/// The user's environment without [`MODEL_KEYS`], and without the keys of the suite's models.
pub fn step_environment(
    users: &BTreeMap<String, String>,
    withheld: &[String],
) -> BTreeMap<String, String> {
    let is_kept = |name: &str| !MODEL_KEYS.contains(&name) && !withheld.iter().any(|w| w == name);
    users
        .iter()
        .filter(|(name, _)| is_kept(name))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect()
}

/// Why a program can't get a variable.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum VariableError {
    #[error("`{0}` is not a valid name of an environment variable")]
    Name(String),
    #[error("the value of `{0}` contains a NUL character, which environment variables can't hold")]
    Nul(String),
    #[error("the value of `{name}` has {bytes} bytes, more than an environment variable can hold")]
    TooLong { name: String, bytes: usize },
}

/// Checks that a program can get this variable.
pub(super) fn check_variable(name: &str, value: &str) -> Result<(), VariableError> {
    if name.is_empty() || name.contains(['=', '\0']) {
        return Err(VariableError::Name(name.to_owned()));
    }
    if value.contains('\0') {
        return Err(VariableError::Nul(name.to_owned()));
    }
    if name.len() + value.len() + 2 > LONGEST {
        return Err(VariableError::TooLong {
            name: name.to_owned(),
            bytes: value.len(),
        });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_get_everything_but_model_keys() {
        let variables = |names: &[&str]| {
            let pairs = names
                .iter()
                .map(|name| ((*name).to_owned(), "v".to_owned()));
            pairs.collect::<BTreeMap<_, _>>()
        };
        let mut all = MODEL_KEYS.to_vec();
        all.extend(["PATH", "KUBECONFIG", "TOKEN", "MY_KEY", "MY_KEY_2"]);
        assert_eq!(
            step_environment(&variables(&all), &["MY_KEY".to_owned()]),
            variables(&["PATH", "KUBECONFIG", "TOKEN", "MY_KEY_2"])
        );
    }

    #[test]
    fn invalid_variables_are_refused() {
        let name = "N".to_owned();
        let fits = "x".repeat(LONGEST - 3);
        assert_eq!(check_variable("N", &fits), Ok(()));
        let bytes = fits.len() + 1;
        assert_eq!(
            check_variable("N", &(fits + "x")),
            Err(VariableError::TooLong { name, bytes })
        );
        assert_eq!(
            check_variable("N", "a\0b"),
            Err(VariableError::Nul("N".to_owned()))
        );
        for name in ["", "A=B", "A\0"] {
            let refused = Err(VariableError::Name(name.to_owned()));
            assert_eq!(check_variable(name, ""), refused);
        }
    }
}
