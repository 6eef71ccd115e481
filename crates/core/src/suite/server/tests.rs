use super::*;

#[track_caller]
fn check(env: &[(&str, &str)], expected: Result<&str, &str>) {
    let env = env
        .iter()
        .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
        .collect();
    let mut problems = Problems::default();
    let server = from_environment(&env, Path::new("here"), &mut problems);
    match expected {
        Ok(json) => {
            assert!(!problems.has_errors(), "{problems:?}");
            assert_eq!(serde_json::to_string(&server).unwrap(), json);
        }
        Err(message) => {
            let first = problems.iter().next().map(|p| p.message.as_str());
            assert_eq!(first, Some(message));
        }
    }
}

#[test]
fn no_two_commands_look_alike() {
    let check = |words: &[&str], expected: &str| {
        assert_eq!(command_line(words.iter().copied()), expected);
    };
    check(&["npx", "-y", "${PACKAGE}"], "npx -y ${PACKAGE}");
    check(&["a b", "c"], "'a b' c");
    check(&["a", "b c", ""], "a 'b c' ''");
    check(&["it's"], r"'it'\''s'");
}

#[test]
fn a_config_without_a_folder_stands_in_this_one() {
    assert_eq!(working_folder(Path::new("")), Path::new("."));
    assert_eq!(working_folder(Path::new("a/b")), Path::new("a/b"));
}

#[test]
fn the_environment_can_name_a_server() {
    check(&[], Ok("null"));
    check(&[("MCP_PATH", "/x")], Ok("null"));
    check(
        &[("MCP_HOST", "h")],
        Ok(r#"{"name":"default","type":"http","url":"http://h/mcp","headers":{},"allowed":"all"}"#),
    );
    check(
        &[("MCP_PORT", "8080")],
        Ok(
            r#"{"name":"default","type":"http","url":"http://localhost:8080/mcp","headers":{},"allowed":"all"}"#,
        ),
    );
    check(
        &[
            ("MCP_URL", "http://x/mcp"),
            ("MCP_HEADERS", r#"{"A":"b"}"#),
            ("MCP_HOST", "ignored"),
        ],
        Ok(
            r#"{"name":"default","type":"http","url":"http://x/mcp","headers":{"A":"b"},"allowed":"all"}"#,
        ),
    );
    check(
        &[
            ("MCP_HOST", "h"),
            ("MCP_PORT", "1"),
            ("MCP_SERVER_NAME", "s"),
        ],
        Ok(r#"{"name":"s","type":"http","url":"http://h:1/mcp","headers":{},"allowed":"all"}"#),
    );
    check(
        &[
            ("MCP_HOST", "h"),
            ("MCP_PORT", "1"),
            ("MCP_PATH", "x"),
            ("MCP_ENABLE_ALL_TOOLS", "false"),
        ],
        Ok(
            r#"{"name":"default","type":"http","url":"http://h:1/x","headers":{},"allowed":{"only":[]}}"#,
        ),
    );
}

#[test]
fn the_environment_can_name_the_command_of_a_server() {
    check(
        &[("MCP_COMMAND", "npx"), ("MCP_URL", "http://ignored/mcp")],
        Ok(
            r#"{"name":"default","type":"stdio","command":"npx","args":[],"env":{},"folder":"here","allowed":"all"}"#,
        ),
    );
    check(
        &[
            ("MCP_COMMAND", "npx"),
            ("MCP_ARGS", "-y, server"),
            ("MCP_ENV", r#"{"K":"v"}"#),
        ],
        Ok(
            r#"{"name":"default","type":"stdio","command":"npx","args":["-y","server"],"env":{"K":"v"},"folder":"here","allowed":"all"}"#,
        ),
    );
    check(
        &[("MCP_COMMAND", "npx"), ("MCP_ARGS", r#"["a, b","c"]"#)],
        Ok(
            r#"{"name":"default","type":"stdio","command":"npx","args":["a, b","c"],"env":{},"folder":"here","allowed":"all"}"#,
        ),
    );
}

#[test]
fn an_invalid_environment_is_reported() {
    check(
        &[("MCP_COMMAND", "npx"), ("MCP_ARGS", "[1]")],
        Err(
            "`MCP_ARGS` must be a JSON array of strings: invalid type: integer `1`, expected a string at line 1 column 2",
        ),
    );
    check(
        &[("MCP_URL", "http://x"), ("MCP_HEADERS", "x")],
        Err("`MCP_HEADERS` must be a JSON object of strings: expected value at line 1 column 1"),
    );
    check(
        &[("MCP_URL", "http://x"), ("MCP_ENABLE_ALL_TOOLS", "maybe")],
        Err("`MCP_ENABLE_ALL_TOOLS` must be `true` or `false`, not `maybe`"),
    );
}

#[test]
fn a_trial_fills_in_every_text_and_names_its_folder() {
    let trial = TrialValues {
        dir: "/t".to_owned(),
        id: "one".to_owned(),
        random_id: "abc".to_owned(),
        random_port: crate::suite::RandomPort::new(|| Some(80)),
    };
    let stdio = |cwd: Option<&str>| Transport::Stdio {
        command: "{trial.dir}/serve".to_owned(),
        args: vec!["--id={trial.id}".to_owned(), "{other}".to_owned()],
        env: [("A".to_owned(), "{random.id}".to_owned())].into(),
        folder: "/config".into(),
        cwd: cwd.map(str::to_owned),
    };
    let check = |cwd: Option<&str>, folder: &str| {
        let found = stdio(cwd).in_trial(Some(&trial)).unwrap();
        let expected = Transport::Stdio {
            command: "/t/serve".to_owned(),
            args: vec!["--id=one".to_owned(), "{other}".to_owned()],
            env: [("A", "abc"), (TRIAL_DIR, "/t")]
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .into(),
            folder: folder.into(),
            cwd: None,
        };
        assert_eq!(found, expected);
    };
    check(None, "/config");
    check(Some("sub"), "/config/sub");
    check(Some("{trial.dir}/sub"), "/t/sub");
    let headers = |value: &str| [("X".to_owned(), value.to_owned())].into();
    let http = Transport::Http {
        url: "http://h:{random.port}/".to_owned(),
        headers: headers("{trial.id}"),
    };
    let filled = Transport::Http {
        url: "http://h:80/".to_owned(),
        headers: headers("one"),
    };
    assert_eq!(http.in_trial(Some(&trial)), Ok(filled));
    // A server that all trials share has no values, and still runs in its folder.
    let Ok(Transport::Stdio { folder, env, .. }) = stdio(Some("sub")).in_trial(None) else {
        panic!("it has no templates to fill in");
    };
    assert_eq!(folder, Path::new("/config/sub"));
    assert!(!env.contains_key(TRIAL_DIR));
}
