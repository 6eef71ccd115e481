//! Reads templates: text with `{{ .Field }}` in it. `{{-` and `-}}` take the blanks beside them away.

/// A part of a template.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part<'a> {
    /// As it is.
    Text(&'a str),
    /// The name of a field.
    Field(&'a str),
}

/// The parts of a template, in order. The loader has seen to it that every field is closed.
pub(super) fn parts(template: &str) -> impl Iterator<Item = Part<'_>> {
    let mut rest = template;
    let mut field = None;
    std::iter::from_fn(move || {
        if let Some(name) = field.take() {
            return Some(Part::Field(name));
        }
        if rest.is_empty() {
            return None;
        }
        let Some((before, inside, after)) = next(rest) else {
            return Some(Part::Text(std::mem::take(&mut rest)));
        };
        let (before, inside) = match inside.strip_prefix('-') {
            Some(inside) => (before.trim_end(), inside),
            None => (before, inside),
        };
        let (inside, after) = match inside.strip_suffix('-') {
            Some(inside) => (inside, after.trim_start()),
            None => (inside, after),
        };
        rest = after;
        let name = inside.trim();
        field = Some(name.strip_prefix('.').unwrap_or(name));
        Some(Part::Text(before))
    })
}

/// What stands before, in and behind the next pair of braces.
fn next(text: &str) -> Option<(&str, &str, &str)> {
    let (before, rest) = text.split_once("{{")?;
    let (inside, after) = rest.split_once("}}")?;
    Some((before, inside, after))
}

#[cfg(test)]
mod tests {
    use super::Part::{Field, Text};
    use super::*;

    #[test]
    fn templates_are_taken_apart() {
        let check = |template: &str, expected: &[Part<'_>]| {
            let found: Vec<Part<'_>> = parts(template).collect();
            assert_eq!(found, expected, "{template}");
        };
        check("", &[]);
        check("ls", &[Text("ls")]);
        check("{{ .Prompt }}", &[Text(""), Field("Prompt")]);
        check("a {{.B}} c", &[Text("a "), Field("B"), Text(" c")]);
        check("a {{- .B -}}  c", &[Text("a"), Field("B"), Text("c")]);
        check(
            "a {{ .B }}{{ .C }}",
            &[Text("a "), Field("B"), Text(""), Field("C")],
        );
        check("awk '{print}' {{ x", &[Text("awk '{print}' {{ x")]);
    }
}
