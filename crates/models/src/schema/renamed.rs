//! Argument names that a provider does not accept.
//!
//! The main type is [`RenamedArguments`], which maps the names in a model's calls back to the
//! original names.

use serde_json::{Map, Value};

/// Arguments whose names a provider does not accept, with the names that replace them.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct RenamedArguments(Vec<(String, String)>);

impl RenamedArguments {
    /// Renames the arguments of an adapted schema where needed.
    pub(crate) fn in_schema(schema: &mut Value) -> Self {
        let names = schema["properties"].as_object();
        let names: Vec<String> = names.into_iter().flat_map(Map::keys).cloned().collect();
        let mut renamed = Self::default();
        for name in names.iter().filter(|name| !is_argument_name(name)) {
            let mut number = 1;
            let mut replacement = "argument_1".to_owned();
            while names.contains(&replacement) || renamed.original(&replacement).is_some() {
                number += 1;
                replacement = format!("argument_{number}");
            }
            if let Some(properties) = schema["properties"].as_object_mut()
                && let Some(mut property) = properties.remove(name)
            {
                let note = format!("The argument `{name}`.");
                if let Value::Object(property) = &mut property {
                    let said = property.get("description").and_then(Value::as_str);
                    let said = said.map_or(note.clone(), |said| format!("{note} {said}"));
                    property.insert("description".to_owned(), said.into());
                }
                properties.insert(replacement.clone(), property);
            }
            let required = schema.get_mut("required").and_then(Value::as_array_mut);
            for one in required
                .into_iter()
                .flatten()
                .filter(|one| one.as_str() == Some(name))
            {
                *one = replacement.clone().into();
            }
            renamed.0.push((replacement, name.clone()));
        }
        renamed
    }

    /// The arguments with the names that the server knows.
    pub(crate) fn back(&self, arguments: Map<String, Value>) -> Map<String, Value> {
        let back = arguments.into_iter().map(|(name, value)| {
            let original = self.original(&name).map(str::to_owned);
            (original.unwrap_or(name), value)
        });
        back.collect()
    }

    fn original(&self, replacement: &str) -> Option<&str> {
        let found = self.0.iter().find(|(known, _)| known == replacement);
        found.map(|(_, original)| original.as_str())
    }
}

fn is_argument_name(name: &str) -> bool {
    let is_legal = |c: char| c.is_ascii_alphanumeric() || "_.-".contains(c);
    (1..=64).contains(&name.len()) && name.chars().all(is_legal)
}
