#![expect(
    clippy::disallowed_methods,
    reason = "what a shell makes of a command is what is tested"
)]

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command as Process;

use proptest::prelude::*;

use super::*;
use crate::external::ModelAccess;

fn templates(run_prompt: &str) -> Commands {
    Commands {
        run_prompt: run_prompt.to_owned(),
        mcp_server: Some("--mcp {{ .File }}".to_owned()),
        allowed_tools: Some("{{ .ServerName }}/{{ .ToolName }}".to_owned()),
        separator: ",".to_owned(),
        skip_permissions: false,
        virtual_home: true,
        version: None,
        folder: PathBuf::new(),
    }
}

fn assignment(prompt: &str) -> Assignment {
    let server = |name: &str, tools: &[&str]| AgentServer {
        name: name.to_owned(),
        way: ServerRoute::Http {
            url: "http://127.0.0.1:1/t0ken/mcp".to_owned(),
            headers: Vec::new(),
        },
        allowed: AllowedTools::Only(tools.iter().map(|tool| (*tool).to_owned()).collect()),
        tools: Vec::new(),
    };
    Assignment {
        prompt: prompt.to_owned(),
        servers: vec![server("a b", &["x", "$(touch y)"]), server("c", &["z"])],
        access: ModelAccess::default(),
        folder: PathBuf::from("/w"),
        skills: None,
        home: PathBuf::from("/h h"),
        environment: BTreeMap::from([("PATH".to_owned(), std::env::var("PATH").unwrap())]),
        max_turns: None,
    }
}

/// The arguments that a program gets; `show` stands for the program in the command.
fn arguments(run_prompt: &str, prompt: &str) -> Vec<String> {
    let show = "printf '%s\\0'";
    let run_prompt = run_prompt.replace("show", show);
    let launch = prepare(&templates(&run_prompt), &assignment(prompt)).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let output = Process::new(&launch.program)
        .args(&launch.args)
        .env_clear()
        .envs(&launch.env)
        .current_dir(folder.path())
        .output()
        .unwrap();
    assert!(output.status.success(), "{launch:?}: {output:?}");
    let left = std::fs::read_dir(folder.path()).unwrap().count();
    assert_eq!(left, 0, "something was executed: {:?}", launch.args);
    let text = String::from_utf8(output.stdout).unwrap();
    let words = text.strip_suffix('\0').unwrap_or(&text).split('\0');
    words.map(str::to_owned).collect()
}

const HOSTILE: &str = "-rf 'a' \"b\" $(touch pwned) `touch pwned` ${HOME} \\ \n;touch pwned\n# * ~ !! %s {{ .Prompt }} é\u{1F600}";

/// Equivalent commands with different quotes.
const QUOTED: [&str; 9] = [
    "show \"{{ .Prompt }}\"",
    "show {{ .Prompt }}",
    "show '{{ .Prompt }}'",
    "show \"{{.Prompt}}\" # \"{{ .Prompt }}",
    "# it's\nshow \"{{ .Prompt }}\"",
    "echo \\' >/dev/null; show \"{{ .Prompt }}\"",
    "true \"$(echo \"x y\" 'z')\" && show '{{ .Prompt }}'",
    "show \"$(printf %s. \"{{ .Prompt }}\" | sed '$s/\\.$//')\"",
    "x=`printf %s {{ .Prompt }}.`; show \"${x%.}\"",
];

/// Commands that pass the prompt unchanged, as Go templates can write it.
const WRITTEN: [&str; 9] = [
    "show {{ printf \"%q\" .Prompt }}",
    "show {{ .Prompt | printf \"%q\" }}",
    "show \"{{ printf \"%q\" .Prompt }}\"",
    "show {{- /* trimmed */ -}} {{- print \" \" .Prompt }}",
    "show '{{ .Prompt | printf \"%s\" }}'",
    "show {{ if .Prompt }}{{ printf \"%q\" .Prompt }}{{ else }}\"\"{{ end }}",
    "show {{ with $.Prompt }}{{ printf \"%v\" . }}{{ else }}''{{ end }}",
    "show{{ if .DangerouslySkipPermissions }} --yes{{ end }} {{ or .Prompt \"''\" }}",
    "x={{ printf \"%q\" .Prompt }}; show \"$x\"",
];

/// The text that a template renders for a prompt, outside of any shell.
fn go(action: &str, prompt: &str) -> String {
    let template = GoTemplate::parse(action, TemplateUse::RunPrompt).unwrap();
    let pieces = template
        .render(&mut |_| FieldValue::Text(vec![RenderedPiece::new(prompt, TextOrigin::Prompt)]));
    pieces.iter().map(RenderedPiece::written).collect()
}

#[test]
fn a_template_passes_the_prompt_as_data() {
    for command in WRITTEN {
        assert_eq!(arguments(command, HOSTILE), [HOSTILE], "{command}");
        assert_eq!(arguments(command, ""), [""], "{command}");
    }
    // Where quotes are text, the quoted form arrives.
    let quoted = go("{{ printf \"%q\" .Prompt }}", HOSTILE);
    let json = "show '{\"p\": {{ printf \"%q\" .Prompt }}}'";
    assert_eq!(arguments(json, HOSTILE), [format!("{{\"p\": {quoted}}}")]);
    let document = "show \"$(cat <<EOF\n{{ printf \"%q\" .Prompt }}\nEOF\n)\"";
    assert_eq!(arguments(document, HOSTILE), [quoted]);
    let tools = "show --tools {{ printf \"%q\" .AllowedToolArgs }}";
    assert_eq!(
        arguments(tools, "x"),
        ["--tools", "a b/x,a b/$(touch y),c/z"]
    );
}

#[test]
fn no_function_lets_a_prompt_into_another_shell() {
    for action in [
        "printf \"%q\" .Prompt",
        ".Prompt | js",
        "print .Prompt",
        "or .Prompt 1",
    ] {
        let command = format!("sh -c \"agent {{{{ {action} }}}}\"");
        let error = prepare(&templates(&command), &assignment("x")).unwrap_err();
        assert!(
            error.to_string().contains("another shell"),
            "{command}: {error}"
        );
    }
}

#[test]
fn a_prompt_arrives_unchanged_in_any_quotes() {
    for command in QUOTED {
        assert_eq!(arguments(command, HOSTILE), [HOSTILE], "{command}");
        assert_eq!(arguments(command, ""), [""], "{command}");
    }
    for (command, before, after) in [
        ("show \"Do: {{ .Prompt }}!\"", "Do: ", "!"),
        ("show 'Do: {{ .Prompt }}!'", "Do: ", "!"),
        ("show pre{{ .Prompt }}post", "pre", "post"),
    ] {
        let expected = format!("{before}{HOSTILE}{after}");
        assert_eq!(arguments(command, HOSTILE), [expected], "{command}");
    }
    let long = "x\"'$(y)".repeat(100 * 1024 / 7);
    assert_eq!(arguments("show \"{{ .Prompt }}\"", &long), [long]);
}

#[test]
fn a_here_document_takes_a_prompt_without_quotes() {
    let command = "show \"$(cat <<EOF\n{{ .Prompt }}.\nEOF\n)\"";
    assert_eq!(arguments(command, HOSTILE), [format!("{HOSTILE}.")]);
    let quoted = "cat <<'EOF'\n{{ .Prompt }}\nEOF";
    let error = prepare(&templates(quoted), &assignment("x")).unwrap_err();
    assert!(error.to_string().contains("here-document"), "{error}");
}

#[test]
fn servers_and_tools_are_passed_as_data() {
    let command =
        "show {{ .McpServerFileArgs }} --tools \"{{ .AllowedToolArgs }}\" '{{ .AllowedToolArgs }}'";
    let tools = "a b/x,a b/$(touch y),c/z";
    assert_eq!(
        arguments(command, "x"),
        [
            "--mcp",
            "/h h/mcp-1.json",
            "--mcp",
            "/h h/mcp-2.json",
            "--tools",
            tools,
            tools
        ]
    );
    let mut commands = templates("show {{ .McpServerFileArgs }}");
    commands.mcp_server = Some("--url={{ .URL }}".to_owned());
    assert!(wants_url(&commands) && !wants_url(&templates("")));
    let launch = prepare(&commands, &assignment("x")).unwrap();
    assert!(
        !launch.args.join(" ").contains("t0ken"),
        "{:?}",
        launch.args
    );
    let files: Vec<&str> = launch.files.iter().map(|(_, text)| text.as_str()).collect();
    let expected =
        r#"{"mcpServers":{"c":{"type":"http","url":"http://127.0.0.1:1/t0ken/mcp","headers":{}}}}"#;
    assert_eq!(files[1], expected);
}

#[test]
fn values_that_can_t_be_passed_are_reported() {
    let check = |command: &str, prompt: &str, part: &str| {
        let error = prepare(&templates(command), &assignment(prompt)).unwrap_err();
        assert!(error.to_string().contains(part), "{command}: {error}");
    };
    check("show \"{{ .Prompt }}\"", "a\0b", "NUL");
    check(
        "show \"{{ .Prompt }}\"",
        &"x".repeat(200_000),
        "200000 bytes",
    );
    for command in [
        "sh -c \"agent {{ .Prompt }}\"",
        "/bin/bash -lc 'agent \"{{ .Prompt }}\"'",
        "eval \"agent '{{ .Prompt }}'\"",
        "cd x && env A=b bash -c \"$(echo {{ .Prompt }})\"",
        "bash <<EOF\nagent {{ .Prompt }}\nEOF",
        "bash <<< \"agent {{ .Prompt }}\"",
        "sh -c -- \"agent {{ .Prompt }}\"",
        "su nobody -c \"agent {{ .Prompt }}\"",
    ] {
        check(command, "x", "another shell");
    }
    // Options of other programs, and other uses of shells.
    for command in [
        "agent <<< {{ .Prompt }}",
        "agent -c {{ .Prompt }}",
        "sh run.sh {{ .Prompt }}",
        "sh -c ls; agent {{ .Prompt }}",
    ] {
        assert!(
            prepare(&templates(command), &assignment("x")).is_ok(),
            "{command}"
        );
    }
}

#[test]
fn the_output_of_a_command_is_its_answer() {
    let read = |lines: &[&str]| {
        let mut reader = CommandReader::default();
        for line in lines {
            reader.line(line.as_bytes());
        }
        reader.end().answer
    };
    assert_eq!(
        read(&["", "  two", "words  ", ""]).as_deref(),
        Some("two\nwords")
    );
    assert_eq!(read(&["", " "]), None);
    let long = "x".repeat(ANSWER / 2);
    let answer = read(&["first", &long, &long, "last"]).unwrap();
    assert!(answer.ends_with("\nlast") && answer.len() <= ANSWER);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]
    #[test]
    fn any_prompt_arrives_as_it_is(
        prompt in "([a-z \\n\t'\"`$(){}\\\\;&|<>*?~!#%=-]|\\PC){0,60}",
        command in prop::sample::select(&QUOTED[..]),
    ) {
        // The shell strips line breaks from the end of a command substitution.
        let before = command.split("{{").next().unwrap_or_default();
        let is_substituted = before.matches("$(").count() > before.matches(')').count();
        let expected = if is_substituted { prompt.trim_end_matches('\n') } else { &prompt };
        prop_assert_eq!(arguments(command, &prompt), [expected]);
    }

    #[test]
    fn any_prompt_arrives_as_a_template_writes_it(
        prompt in "([a-z \\n\t'\"`$(){}\\\\;&|<>*?~!#%=-]|\\PC){0,60}",
        command in prop::sample::select(&WRITTEN[..]),
        action in prop::sample::select(&[
            "{{ .Prompt | js }}",
            "{{ .Prompt | html }}",
            "{{ .Prompt | urlquery }}",
            "{{ .Prompt | printf \"%s\" | js | printf \"<%v>\" | print }}",
            "{{ html .Prompt .Prompt }}",
        ][..]),
        quotes in prop::sample::select(&["", "\"", "'"][..]),
    ) {
        prop_assert_eq!(arguments(command, &prompt), [prompt.as_str()]);
        // The author's own characters are for the shell, so they are quoted here.
        let quotes = if action.contains('<') && quotes.is_empty() { "'" } else { quotes };
        let escaped = format!("show {quotes}{action}{quotes}");
        prop_assert_eq!(arguments(&escaped, &prompt), [go(action, &prompt)]);
        let quoted = arguments("show '{{ printf \"%q\" .Prompt }}'", &prompt);
        prop_assert_eq!(go(&format!("{{{{ {} }}}}", quoted[0]), ""), prompt);
    }
}
