//! The paths into a manifest that `kubectl` accepts: `{.spec.containers[*].name}`.

use serde_json::Value;

/// Returns the values at a path as text, separated by spaces.
pub(crate) fn find(value: &Value, path: &str) -> Result<String, String> {
    let inner = path.strip_prefix("{.").and_then(|p| p.strip_suffix('}'));
    let inner = inner.ok_or_else(|| format!("`{path}` is not a path"))?;
    let mut found = vec![value];
    for step in inner.split(['.', '[']) {
        found = match step.strip_suffix(']') {
            Some("*") => found.into_iter().flat_map(members).collect(),
            Some(index) => {
                let index: usize = index.parse().map_err(|_| format!("`{path}`: {index}"))?;
                found.into_iter().filter_map(|v| v.get(index)).collect()
            }
            None => found.into_iter().filter_map(|v| v.get(step)).collect(),
        };
    }
    let texts = found.into_iter().map(|value| match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    });
    Ok(texts.collect::<Vec<_>>().join(" "))
}

fn members(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_path_leads_to_what_it_names() {
        let pod = json!({"spec": {"containers": [{"name": "a"}, {"name": "b"}]}, "n": 1});
        for (path, expected) in [
            ("{.spec.containers[0].name}", Ok("a")),
            ("{.spec.containers[*].name}", Ok("a b")),
            ("{.spec.nothing.name}", Ok("")),
            ("{.n}", Ok("1")),
            ("spec", Err("`spec` is not a path")),
        ] {
            let expected = expected.map(str::to_owned).map_err(str::to_owned);
            assert_eq!(find(&pod, path), expected, "{path}");
        }
    }
}
