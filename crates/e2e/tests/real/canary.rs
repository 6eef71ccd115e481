//! No byte that a run leaves or prints has a secret in it, in any form in which secrets travel.

pub(crate) mod secret;

use std::fs;
use std::path::Path;
use std::process::Command;

use proctor_e2e::session::Session;
use proctor_e2e::suite::SuiteFixture;
use proctor_e2e::{Fixture, fixture};

use self::secret::{Canary, NAME, escaped};

fn canaries() -> [Canary; 2] {
    [Canary::plain(), Canary::awkward()]
}

fn echo(text: &str) -> String {
    serde_json::json!({ "text": text }).to_string()
}

#[test]
fn a_secret_of_the_environment_that_a_tool_shows_is_hidden() {
    for canary in canaries() {
        for format in ["text", "json"] {
            let arguments = format!(r#"{{"name": "{NAME}"}}"#);
            let words = ["call", "env", "--args", &arguments, "-o", format];
            let session = Session::new(&[&words[..], &["--pass-env", NAME]].concat());
            let seen = canary
                .in_env(session)
                .on(fixture().to_str().unwrap(), &[])
                .run();
            assert_eq!(seen.code, Some(0), "{}", seen.stderr);
            let marker = format!("[redacted:{NAME}]");
            assert!(seen.stdout.contains(&marker), "{}", seen.stdout);
            canary.check(&seen);
        }
    }
}

#[test]
fn a_secret_in_an_argument_is_hidden_in_every_form() {
    for canary in canaries() {
        // The long one is a blob.
        for text in [
            canary.in_all_forms(),
            format!("{} {}", "x".repeat(40_000), canary.in_all_forms()),
        ] {
            for format in ["text", "json"] {
                let arguments = echo(&text);
                let words = ["call", "echo", "--args", &arguments, "-o", format];
                let seen = canary
                    .in_env(Session::new(&words))
                    .on(fixture().to_str().unwrap(), &[])
                    .run();
                assert_eq!(seen.code, Some(0), "{}", seen.stderr);
                canary.check(&seen);
            }
        }
    }
}

#[test]
fn a_secret_in_the_name_of_a_tool_is_hidden() {
    let canary = Canary::plain();
    let seen = canary
        .in_env(Session::new(&["call", &canary.secret]))
        .on(fixture().to_str().unwrap(), &[])
        .run();
    assert_eq!(seen.code, Some(1), "{}", seen.stderr);
    canary.check(&seen);
}

#[test]
fn a_secret_of_headers_and_addresses_is_hidden() {
    for start in [Fixture::http, Fixture::sse] {
        let server = start(&[]);
        for (canary, header, in_url) in [
            (Canary::plain(), "Authorization: Bearer SECRET", false),
            (Canary::awkward(), "Authorization: Bearer SECRET", false),
            (Canary::awkward(), "X-Api-Key: SECRET", false),
            (Canary::plain(), "Cookie: sid=SECRET; theme=dark", false),
            (Canary::plain(), "Accept-Language: en", true),
        ] {
            let header = header.replace("SECRET", &canary.secret);
            let arguments = echo(&canary.in_all_forms());
            let words = ["call", "echo", "--args", &arguments, "--header", &header];
            let url = if in_url {
                format!("{}?page=2&api_key={}", server.url(), canary.secret)
            } else {
                server.url().to_owned()
            };
            // It is not in the environment: that it is a secret is known from its place alone.
            let seen = Session::new(&words).at(&url).run();
            assert_eq!(seen.code, Some(0), "{url}: {}", seen.stderr);
            canary.check(&seen);
        }
    }
}

#[test]
fn a_secret_of_an_address_that_nobody_answers_is_hidden() {
    let canary = Canary::plain();
    for url in [
        format!("http://127.0.0.1:1/mcp?token={}", canary.secret),
        format!("http://user:{}@127.0.0.1:1/mcp", canary.secret),
        format!("not-an-address?token={}", canary.secret),
    ] {
        let seen = Session::new(&["tools"]).at(&url).run();
        assert_eq!(seen.code, Some(3), "{}", seen.stderr);
        canary.check(&seen);
    }
}

#[test]
fn a_secret_of_a_config_is_hidden() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("mcp.json");
    for canary in canaries() {
        let servers = serde_json::json!({ "mcpServers": { "fixture": {
            "command": fixture(),
            "env": { NAME: canary.secret },
        } } });
        fs::write(&config, servers.to_string()).unwrap();
        let arguments = format!(r#"{{"name": "{NAME}"}}"#);
        let words = ["call", "env", "--args", &arguments, "--config"];
        let seen = Session::new(&[&words[..], &[config.to_str().unwrap()]].concat()).run();
        assert_eq!(seen.code, Some(0), "{}", seen.stderr);
        canary.check(&seen);
    }
}

#[test]
fn a_secret_of_a_command_line_is_hidden() {
    for canary in canaries() {
        let echoes = format!(r#"echo "$2" >&2; exec "{}""#, fixture().display());
        let option = ["-c", &echoes, "sh", "--api-key", &canary.secret];
        let seen = Session::new(&["tools"]).on("sh", &option).run();
        assert_eq!(seen.code, Some(0), "{}", seen.stderr);
        canary.check(&seen);
    }
}

#[test]
fn a_secret_that_a_server_says_before_it_fails_is_hidden() {
    for canary in canaries() {
        for script in [
            r#"printf '%s\n' "$CANARY_API_KEY" >&2; exit 3"#,
            r#"printf '%s\n' "$CANARY_API_KEY"; exit 3"#,
            r#"printf '\377%s\n' "$CANARY_API_KEY"; exit 3"#,
            r#"printf '{"jsonrpc": "2.0", "id": 1, "error": {"code": 1, "message": "%s"}}\n' "$CANARY_API_KEY""#,
        ] {
            let session = Session::new(&["tools", "--pass-env", NAME]);
            let seen = canary.in_env(session).on("sh", &["-c", script]).run();
            assert_eq!(seen.code, Some(3), "{script}: {}", seen.stderr);
            canary.check(&seen);
        }
    }
}

#[test]
fn no_part_of_a_secret_is_left_where_a_text_is_cut() {
    let canary = Canary::plain().with_parts();
    for script in [
        // The start of a line that is no message is shown, and the end of stderr.
        r#"printf '%0180d%s\n' 0 "$CANARY_API_KEY"; exit 3"#,
        r#"printf '%s\n' "$CANARY_API_KEY" >&2; head -c 65520 /dev/zero | tr '\0' y >&2; exit 3"#,
        r#"printf '%s' "$CANARY_API_KEY" >&2; head -c 65516 /dev/zero | tr '\0' y >&2; exit 3"#,
        r#"printf '%s' "$CANARY_API_KEY" >&2; head -c 65535 /dev/zero | tr '\0' y >&2; exit 3"#,
    ] {
        let session = Session::new(&["tools", "--pass-env", NAME]);
        let seen = canary.in_env(session).on("sh", &["-c", script]).run();
        assert_eq!(seen.code, Some(3), "{script}: {}", seen.stderr);
        canary.check(&seen);
    }
}

#[test]
fn a_secret_in_arguments_that_make_no_sense_is_hidden() {
    let canary = Canary::plain();
    for words in [
        ["tools", "--header", &canary.secret],
        ["tools", "--timeout", &canary.secret],
        ["call", "echo", &format!("--args={}", canary.secret)],
        ["tools", "--record", &format!("/dev/null/{}", canary.secret)],
    ] {
        let output = Command::new(proctor_e2e::proctor())
            .args(words)
            .args(["--url", "http://127.0.0.1:1/mcp"])
            .env(NAME, &canary.secret)
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(2));
        canary.look("stdout", &output.stdout);
        canary.look("stderr", &output.stderr);
    }
}

/// Writes whatever it is given into its answers, byte for byte.
const WRITER: &str = r#"
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    method, id = asked.get("method"), json.dumps(asked.get("id"))
    schema = '{"type":"object"}'
    said = {
        "initialize": '{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"w","version":"1"}}',
        "tools/list": '{"tools":[{"name":"show","description":"%s","inputSchema":%s}]}' % (sys.argv[1], schema),
        "tools/call": '{"content":[{"type":"text","text":"%s"}],"structuredContent":{"value":"%s"}}' % (sys.argv[1], sys.argv[1]),
    }.get(method)
    if "id" not in asked:
        continue
    if said is None:
        print('{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no %s"}}' % (id, sys.argv[1]), flush=True)
    else:
        print('{"jsonrpc":"2.0","id":%s,"result":%s}' % (id, said), flush=True)
"#;

#[test]
fn a_secret_whose_characters_are_escaped_is_hidden_also_where_json_is_decoded() {
    let rules = "  - when: {results: 0}
    reply: {calls: [{tool: show, arguments: {}}]}
  - reply: {text: 'it said {result}'}
";
    for canary in canaries() {
        let forms = escaped(&canary.secret).into_iter();
        let all: Vec<String> = forms.map(|(_, form)| form).collect();
        let server = serde_json::json!({"w": {
            "command": "python3", "args": ["-c", WRITER, all.join(" - ")],
        }});
        let suite = SuiteFixture::on(rules, &server);
        suite.task("show-it", &serde_json::json!({}));
        let out = suite.path("out.json").display().to_string();
        let checks =
            serde_json::json!({"assertions": {"toolsUsed": [{"server": "w", "tool": "show"}]}});
        suite.eval(&serde_json::json!({}), &checks);
        let session = suite.check(&["-o", "json", "--out", &out]);
        let seen = canary.in_env(session).run();
        assert_eq!(seen.code, Some(0), "{}", seen.stderr);
        let marker = format!("[redacted:{NAME}]");
        assert!(seen.stdout.contains(&marker), "{}", seen.stdout);
        canary.check(&seen);
        canary.look("the result", &fs::read(&out).unwrap());
    }
}

/// No file and no variable has it: it is made up in the trial, and what it is given as says what it is.
#[test]
fn a_secret_that_becomes_known_in_a_trial_is_hidden_from_then_on() {
    let rules = "  - when: {results: 0}
    reply: {calls: [{tool: echo, arguments: {text: '{prompt}'}}]}
  - reply: {text: 'it said {result}'}
";
    let server = Fixture::http(&[]);
    let suite = SuiteFixture::new(rules, &[]);
    let [token, key] = ["token", "key"].map(|name| suite.path(name));
    let keep = |value: &str, path: &Path| format!("printf '%s' \"{value}\" > '{}'", path.display());
    let show = "printf '%s\\n' \"$SESSION_TOKEN\"; printf '%s\\n' \"$SESSION_TOKEN\" >&2";
    let script = |inline: String| {
        let env = serde_json::json!({
            "SESSION_TOKEN": "canary-{random.id}-4711", "SHOWN": "of-header-{random.id}",
        });
        serde_json::json!({"script": {"inline": inline, "env": env}})
    };
    // Whatever the status is, a setup step takes it.
    let request = serde_json::json!({"http": {
        "url": server.url(), "method": "OPTIONS", "headers": {"X-Api-Key": "of-header-{random.id}"},
    }});
    let told = format!("{show}; echo \"$SHOWN\"");
    suite.task(
        "steps",
        &serde_json::json!({
            "setup": [
                request,
                script(format!(
                    "{}; {}; {told}",
                    keep("$SESSION_TOKEN", &token),
                    keep("$SHOWN", &key),
                )),
            ],
            "prompt": {"inline": "say canary-{random.id}-4711 and of-header-{random.id}"},
            "verify": [script(format!("{told}; exit 1"))],
        }),
    );
    let seen = suite.check(&["-o", "json"]).run();
    assert_eq!(seen.code, Some(1), "{}\n{}", seen.stdout, seen.stderr);
    for (path, marker) in [
        (&token, "[redacted:SESSION_TOKEN]"),
        (&key, "[redacted:X-Api-Key]"),
    ] {
        assert!(seen.stdout.contains(marker), "{}", seen.stdout);
        Canary::of(fs::read_to_string(path).unwrap()).check(&seen);
    }
}

#[test]
fn a_secret_that_a_step_is_given_is_hidden() {
    let rules = "  - reply: {text: done}\n";
    for canary in canaries() {
        let suite = SuiteFixture::new(rules, &[]);
        let script = "printf '%s\\n' \"$STEP_TOKEN\"; printf '%s\\n' \"$STEP_TOKEN\" >&2; exit 1";
        let step =
            serde_json::json!({"script": {"inline": script, "env": {"STEP_TOKEN": canary.secret}}});
        suite.task(
            "steps",
            &serde_json::json!({"setup": [step], "verify": [step]}),
        );
        // It is not in the environment: that it is a secret is known from the step alone.
        let seen = suite.check(&["-o", "json"]).run();
        assert!(
            seen.stdout.contains("[redacted:STEP_TOKEN]"),
            "{}",
            seen.stdout
        );
        canary.check(&seen);
    }
}
