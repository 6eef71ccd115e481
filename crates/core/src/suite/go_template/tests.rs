use super::TextOrigin::{Author, Prompt, Value};
use super::*;

fn value(text: &str, origin: TextOrigin) -> FieldValue {
    FieldValue::Text(vec![RenderedPiece::new(text, origin)])
}

fn field(name: &str) -> FieldValue {
    match name {
        "Prompt" => value("say \"hi\" & go", TextOrigin::Prompt),
        "McpServerFileArgs" => FieldValue::Text(vec![
            RenderedPiece::new("--mcp ", TextOrigin::Author),
            RenderedPiece::new("/a b", TextOrigin::Value),
        ]),
        "AllowedToolArgs" => FieldValue::Text(Vec::new()),
        _ => FieldValue::Truth(true),
    }
}

fn written(text: &str) -> String {
    let template = GoTemplate::parse(text, TemplateUse::RunPrompt).unwrap();
    let pieces = template.render(&mut field);
    pieces.iter().map(RenderedPiece::written).collect()
}

#[test]
fn templates_give_what_go_gives() {
    let check = |text: &str, expected: &str| assert_eq!(written(text), expected, "{text}");
    check("", "");
    check("awk '{print}'", "awk '{print}'");
    check("a {{ .Prompt }} b", "a say \"hi\" & go b");
    check("{{.Prompt|printf \"%q\"}}", r#""say \"hi\" & go""#);
    check("{{ printf \"%q\" .Prompt }}", r#""say \"hi\" & go""#);
    check(
        "{{ .Prompt | printf \"%s: %s\" \"Do\" }}",
        "Do: say \"hi\" & go",
    );
    check("{{ printf \"%d%%\" (len .Prompt) }}", "13%");
    check("{{ .Prompt | js }}", r#"say \"hi\" \u0026 go"#);
    check("{{ .Prompt | html }}", "say &#34;hi&#34; &amp; go");
    check("{{ .Prompt | urlquery }}", "say+%22hi%22+%26+go");
    check("{{ print .Prompt \"x\" 1 2 }}", "say \"hi\" & gox1 2");
    check("{{ println 1 \"x\" }}", "1 x\n");
    check("{{ \"a\\tb\\u00e9\\\"\" }}{{ `c\\` }}", "a\tb\u{e9}\"c\\");
    check("a {{- /* nothing */ -}} b", "ab");
    check("a  {{- .McpServerFileArgs -}}\n b", "a--mcp /a bb");
    check("a {{ -1 }}{{- 2 }}", "a -12");
    check("{{ printf \"%q\" .McpServerFileArgs }}", "\"--mcp /a b\"");
}

#[test]
fn conditions_choose() {
    let check = |text: &str, expected: &str| assert_eq!(written(text), expected, "{text}");
    check(
        "x{{ if .DangerouslySkipPermissions }} --yes{{ end }}",
        "x --yes",
    );
    check(
        "x{{ if .AllowedToolArgs }} --tools{{ else }} --all{{ end }}",
        "x --all",
    );
    check("{{ if not .AllowedToolArgs }}none{{ end }}", "none");
    check(
        "{{ if and .Prompt (eq (len .AllowedToolArgs) 0) }}both{{ end }}",
        "both",
    );
    check(
        "{{ if .AllowedToolArgs }}a{{ else if false }}b{{ else }}c{{ end }}",
        "c",
    );
    check(
        "{{ with .Prompt }}[{{ . }}|{{ len $.Prompt }}]{{ end }}",
        "[say \"hi\" & go|13]",
    );
    check("{{ or .AllowedToolArgs \"default\" }}", "default");
    check(
        "{{ if or (eq .Prompt \"a\" \"b\") (ne 1 2) }}y{{ end }}",
        "y",
    );
    check("{{ if lt (len .Prompt) 100 }}short{{ end }}", "short");
}

#[test]
fn only_the_authors_text_is_for_a_shell() {
    let origins = |text: &str| {
        let template = GoTemplate::parse(text, TemplateUse::RunPrompt).unwrap();
        let pieces = template.render(&mut field);
        pieces.iter().map(|piece| piece.origin).collect::<Vec<_>>()
    };
    assert_eq!(origins("{{ printf \"-p %s\" .Prompt }}"), [Author, Prompt]);
    assert_eq!(origins("{{ .McpServerFileArgs }}"), [Author, Value]);
    for text in [
        "{{ printf \"%q\" .Prompt }}",
        "{{ .Prompt | js }}",
        "{{ html \"x\" .Prompt }}",
        "{{ print .Prompt }}",
        "{{ or .Prompt \"x\" }}",
        "{{ with .Prompt }}{{ . }}{{ end }}",
        "{{ .Prompt | printf \"%s\" | printf \"%q\" | urlquery }}",
    ] {
        assert_eq!(origins(text), [Prompt], "{text}");
    }
    assert_eq!(origins("{{ printf \"%q\" .McpServerFileArgs }}"), [Value]);
}

#[track_caller]
fn fails(text: &str, at: &str, message: &str) {
    let faults = GoTemplate::parse(text, TemplateUse::RunPrompt).unwrap_err();
    let fault = &faults[0];
    assert_eq!(fault.message, message, "{text}");
    assert_eq!(&text[fault.at..fault.at + fault.len], at, "{text}");
    assert!(text[fault.action..].starts_with("{{"), "{text}");
}

#[test]
fn mistakes_with_printf_are_reported_at_their_places() {
    fails(
        "{{ printf .Prompt }}",
        "printf",
        "the format of `printf` must be a string literal",
    );
    fails(
        "{{ .Prompt | printf }}",
        "printf",
        "the format of `printf` must be a string literal",
    );
    fails(
        "{{ printf \"%x\" .Prompt }}",
        "printf",
        "unsupported `printf` verb `%x`",
    );
    fails(
        "{{ printf \"%s\" }}",
        "printf",
        "the format of `printf` takes 1 values, found 0",
    );
    fails(
        "{{ printf \"%d\" .Prompt }}",
        "printf",
        "`%d` does not take a string",
    );
}

#[test]
fn mistakes_are_reported_at_their_places() {
    fails("{{ .Promt }}", ".Promt", "unknown template field `.Promt`");
    fails("x {{ .Prompt", "{{", "unclosed `{{`");
    fails("{{ if .Prompt }}x", "if", "`if` without an `end`");
    fails(
        "{{ end }}",
        "end",
        "`end` without an `if` or `with` before it",
    );
    fails(
        "{{ .Prompt | quote }}",
        "quote",
        "unknown template function `quote`",
    );
    fails(
        "{{ range .Prompt }}{{ end }}",
        "range",
        "`range` is not supported in the templates of agent files",
    );
    fails(
        "{{ $x := .Prompt }}",
        "$x",
        "variables are not supported in the templates of agent files",
    );
    fails(
        "{{ if eq .Prompt 1 }}{{ end }}",
        "eq",
        "`eq` can't compare a string with a number",
    );
    fails("{{ . }}", ".", "`.` alone is not a value");
    fails("{{ }}", "{{", "missing value");
    fails(
        "{{ .Prompt .Prompt }}",
        ".Prompt",
        "unexpected text at the end of an action",
    );
    fails("{{ .Prompt.Name }}", ".Prompt.", "`.Prompt` has no fields");
    fails("{{ \"a }}", "\"", "unclosed string in quotes");
    fails("{{ (.Prompt }}", ".Prompt", "unclosed `(`");
    fails(
        "{{ .Prompt | .Prompt }}",
        ".Prompt",
        "only a function can follow `|`",
    );
    fails(
        "{{ with .Prompt }}{{ .Prompt }}{{ end }}",
        ".Prompt",
        "inside `with`, `.` is a string without a field `Prompt`",
    );
    fails("{{-.Prompt}}", "-", "unexpected `-` in a template");
    let deep = format!("{}x", "{{ if .Prompt }}".repeat(1000));
    fails(&deep, "if", "the template is nested too deeply");
    let both = "{{ .A }} {{ .B }}";
    let faults = GoTemplate::parse(both, TemplateUse::McpServer).unwrap_err();
    assert_eq!(faults.len(), 2);
}

proptest::proptest! {
    #[test]
    fn any_text_is_a_template_or_has_a_fault_in_it(
        text in r#"(\{\{-? ?|-?\}\}| ?[|()$."`-]|if |else|end|with |printf "%[sqv]"|\.Prompt|[a-z0-9é]| ){0,24}"#,
    ) {
        match GoTemplate::parse(&text, TemplateUse::RunPrompt) {
            Ok(template) => { template.render(&mut field); }
            Err(faults) => for fault in faults {
                proptest::prop_assert!(text.get(fault.at..fault.at + fault.len).is_some(), "{:?}", fault);
            },
        }
    }

    #[test]
    fn what_is_quoted_can_be_read_again(text in "\\PC{0,20}|[\\x00-\\x7f]{0,20}") {
        let quoted = format::go_quote(&text);
        let template = GoTemplate::parse(&format!("{{{{ {quoted} }}}}"), TemplateUse::RunPrompt).unwrap();
        let read: String = template.render(&mut field).iter().map(RenderedPiece::written).collect();
        proptest::prop_assert_eq!(read, text);
    }
}
