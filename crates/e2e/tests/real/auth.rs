//! A server that wants tokens of a real OAuth server: they are renewed, they fail with a clear reason, and
//! they are in no record, process list or file of an agent.

mod stage;

use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Command};

use proctor_e2e::session::{Session, SessionOutcome};
use proctor_record::event::Outcome;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use self::stage::{OauthStage, SECRET, client, ends, expect_error};

#[track_caller]
fn expect_passed(seen: &SessionOutcome, trials: usize) {
    let ends = ends(seen);
    let is_good = |end: &&proctor_record::event::TrialEnded| end.outcome == Outcome::Passed;
    assert_eq!(
        ends.iter().filter(is_good).count(),
        trials,
        "{ends:?}\n{}",
        seen.stderr
    );
    assert_eq!(seen.code, Some(0), "{}", seen.stderr);
}

#[test]
fn a_token_that_expires_in_mid_trial_is_renewed_and_the_trial_goes_on() {
    for suite_of in [OauthStage::by_loop, OauthStage::by_spy] {
        let stage = OauthStage::start();
        stage.set(&json!({"expireOn": "tools/call"}));
        let suite = suite_of(&stage, &client());
        let seen = stage.session(suite.check(&[])).run();
        expect_passed(&seen, 1);
        let server = stage.seen();
        assert_eq!((server.grants, server.tokens.len()), (2, 2));
        assert_ne!(server.accepted.first(), server.accepted.last());
        stage.check_hidden(&seen);
    }
}

#[test]
fn a_token_with_a_short_life_is_renewed_before_it_ends() {
    let stage = OauthStage::start();
    stage.set(&json!({"lifetime": 2}));
    let rules = "  - {when: {results: 0}, reply: {calls: [{tool: sleep, arguments: {ms: 2500}}]}}\n  - {when: {results: 1}, reply: {calls: [{tool: echo, arguments: {text: hi}}]}}\n  - reply: {text: done}\n";
    let suite = stage.by_loop_with(rules, &client());
    let used = json!({"toolsUsed": [{"server": "api", "tool": "echo"}], "maxToolCalls": 2});
    suite.eval(&json!({}), &json!({"assertions": used}));
    let seen = stage.session(suite.check(&[])).run();
    expect_passed(&seen, 1);
    assert!(stage.seen().grants >= 2);
    stage.check_hidden(&seen);
}

#[test]
fn trials_at_the_same_time_renew_a_token_once() {
    let stage = OauthStage::start();
    // The renewal takes so long that all trials meet the expired token.
    stage.set(&json!({"expireOn": "tools/call", "delayGrants": 500}));
    let suite = stage.by_loop(&client());
    let seen = stage
        .session(suite.check(&["-n", "8", "--jobs", "8"]))
        .run();
    expect_passed(&seen, 8);
    let server = stage.seen();
    assert_eq!((server.grants, server.most), (2, 1));
    stage.check_hidden(&seen);
}

#[test]
fn a_renewal_that_fails_ends_the_trial_with_the_reason_and_blames_no_server() {
    for suite_of in [OauthStage::by_loop, OauthStage::by_spy] {
        let stage = OauthStage::start();
        stage.set(&json!({"expireOn": "tools/call", "refuseAfter": 1}));
        let suite = suite_of(&stage, &client());
        let seen = stage.session(suite.check(&[])).run();
        expect_error(&seen, "invalid_grant (the grant was revoked)");
        assert_eq!(seen.code, Some(3), "{}", seen.stderr);
        // The token of one request is renewed once, not for every request after it.
        assert_eq!(stage.seen().tokens.len(), 1);
        stage.check_hidden(&seen);
    }
}

#[test]
fn an_agent_that_could_not_use_the_server_never_passes() {
    let stage = OauthStage::start();
    // Its first message is refused, so the agent makes no call, as this check wants.
    stage.set(&json!({"expireOn": "spy", "refuseAfter": 1}));
    let suite = stage.by_spy(&client());
    let agent = json!({"agent": {"type": "file", "path": "agent.yaml"}});
    suite.eval(&agent, &json!({"assertions": {"maxToolCalls": 5}}));
    let seen = stage.session(suite.check(&[])).run();
    expect_error(&seen, "invalid_grant (the grant was revoked)");
    assert_eq!(seen.code, Some(3), "{}", seen.stderr);
    stage.check_hidden(&seen);
}

#[test]
fn a_token_for_another_audience_is_refused_with_the_reason_and_renewed_only_once() {
    let stage = OauthStage::start();
    stage.set(&json!({"audience": "https://another.example/mcp"}));
    let suite = stage.by_loop(&client());
    let seen = stage.session(suite.check(&[])).run();
    assert_eq!(seen.code, Some(3), "{}", seen.stderr);
    let says = "the server refuses the token: invalid_token (the token is for another audience than \
                https://another.example/mcp)";
    assert!(seen.stderr.contains(says), "{}", seen.stderr);
    let server = stage.seen();
    assert_eq!((server.grants, server.accepted.len()), (2, 0));
    stage.check_hidden(&seen);
}

#[test]
fn metadata_that_does_not_match_is_an_error_before_any_secret_is_sent() {
    let check = |faults: &Value, auth: &Value, says: &str| {
        let stage = OauthStage::start();
        stage.set(faults);
        let suite = stage.by_loop(auth);
        let seen = stage.session(suite.check(&[])).run();
        assert_eq!(seen.code, Some(3), "{}", seen.stderr);
        assert!(seen.stderr.contains(says), "{}", seen.stderr);
        assert_eq!(stage.seen().grants, 0);
    };
    check(
        &json!({"resource": "https://another.example/mcp"}),
        &client(),
        "is for another resource: `https://another.example/mcp`",
    );
    check(
        &json!({"issuer": "https://another.example"}),
        &client(),
        "is of another issuer: `https://another.example`",
    );
    let mut pinned = client();
    pinned["issuer"] = "https://another.example".into();
    let says = "but `issuer` is `https://another.example`";
    check(&json!({}), &pinned, says);
}

#[test]
fn a_command_prints_the_token() {
    let stage = OauthStage::start();
    let ask = format!(
        "curl -s -u suite:$SECRET -d grant_type=client_credentials -d scope=mcp -d resource={} {}/token",
        stage.url, stage.issuer
    );
    let env = json!({"SECRET": "${SUITE_SECRET}"});
    let only = "node -pe 'JSON.parse(fs.readFileSync(0)).access_token'";
    for script in [ask.clone(), format!("{ask} | {only}")] {
        stage.set(&json!({"expireOn": "tools/call"}));
        let before = stage.seen().grants;
        let auth = json!({"command": "sh", "args": ["-c", script], "env": env});
        let suite = stage.by_spy(&auth);
        let seen = stage.session(suite.check(&[])).run();
        expect_passed(&seen, 1);
        assert_eq!(stage.seen().grants - before, 2);
        stage.check_hidden(&seen);
    }
}

#[test]
fn a_command_without_a_token_is_an_error_that_shows_nothing_that_it_printed() {
    let stage = OauthStage::start();
    let check = |script: &str, says: &str| {
        let suite = stage.by_loop(&json!({"command": "sh", "args": ["-c", script]}));
        let seen = stage.session(suite.check(&[])).run();
        assert_eq!(seen.code, Some(3), "{}", seen.stderr);
        assert!(seen.stderr.contains(says), "{}", seen.stderr);
        assert!(!seen.stderr.contains("printed-token"), "{}", seen.stderr);
    };
    check(
        "echo a-printed-token; echo failed: a-printed-token >&2; exit 4",
        "the command `sh` exited with code 4; the end of its stderr:\nfailed: [redacted:output]",
    );
    // Such words come from scripts that found no token, and could not be redacted.
    check("echo undefined", "the token is invalid");
    check("true", "the token is invalid");
    check("echo a printed-token", "the token is invalid");
    check(
        r#"echo '{"key": "a-printed-token"}'"#,
        "printed JSON that has neither",
    );
    check("exec sleep 1000 >&- 2>&-", "the command `sh`");
}

#[test]
fn an_agent_finds_no_token_and_its_own_never_reaches_the_server() {
    let stage = OauthStage::start();
    // The agent meets a refusal too: it must not learn where to log in itself.
    stage.set(&json!({"expireOn": "tools/call", "refuseAfter": 1}));
    let suite = stage.by_spy(&client());
    let seen = stage.session(suite.check(&[])).run();
    expect_error(&seen, "invalid_grant");
    let found = std::fs::read(suite.path("found")).unwrap();
    let text = String::from_utf8_lossy(&found);
    assert!(text.contains("spy.py"), "it saw the process list: {text}");
    assert!(
        text.contains("None"),
        "it saw the refusal without its header: {text}"
    );
    let server = stage.seen();
    for secret in server.tokens.iter().map(String::as_str).chain([SECRET]) {
        assert!(!text.contains(secret), "{text}");
    }
    let own = "of-the-agent-itself".to_owned();
    assert!(!server.accepted.contains(&own));
}

/// The end of a login: its exit code, and what it printed for people.
fn finished(mut login: Child) -> (Option<i32>, String) {
    let mut stderr = String::new();
    login
        .stderr
        .take()
        .unwrap()
        .read_to_string(&mut stderr)
        .unwrap();
    (login.wait().unwrap().code(), stderr)
}

fn output(command: &mut Command) -> (Option<i32>, String) {
    let done = command.output().unwrap();
    let all = [done.stdout, done.stderr].concat();
    (done.status.code(), String::from_utf8(all).unwrap())
}

#[test]
fn a_login_in_the_browser_is_stored_used_and_renewed() {
    let stage = OauthStage::start();
    let (login, page) = stage.log_in(&[]);
    let browsed = OauthStage::browse(&page, &[]);
    let shown = String::from_utf8_lossy(&browsed.stdout);
    assert!(shown.starts_with("/callback "), "{shown}");
    assert!(shown.contains("You can close this window"), "{shown}");
    let (code, stderr) = finished(login);
    assert_eq!(code, Some(0), "{stderr}");
    let mode = std::fs::metadata(stage.logins())
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);
    let (_, listed) = output(&mut stage.proctor(&["login", "--list"]));
    let expected = format!("{}  {}  renewed when needed\n", stage.url, stage.issuer);
    assert_eq!(listed, expected);

    // The commands use it for this URL, and renew it.
    for words in [&["tools"][..], &["call", "echo", "text=hi"], &["lint"]] {
        let expired = if words[0] == "call" {
            "tools/call"
        } else {
            "tools/list"
        };
        stage.set(&json!({"expireOn": expired}));
        let before = stage.seen().grants;
        let seen = stage.session(Session::new(words)).at(&stage.url).run();
        assert_eq!(seen.code, Some(0), "{words:?}: {}", seen.stderr);
        assert_eq!(stage.seen().grants - before, 1, "{words:?}");
        stage.check_hidden(&seen);
    }
    let suite = stage.by_spy(&json!({"login": true}));
    stage.set(&json!({"expireOn": "tools/call"}));
    let seen = stage.session(suite.check(&[])).run();
    expect_passed(&seen, 1);
    stage.check_hidden(&seen);
    let found = std::fs::read_to_string(suite.path("found")).unwrap();
    for token in stage.seen().tokens {
        assert!(!found.contains(&token), "{found}");
    }
    assert_eq!(
        output(&mut stage.proctor(&["evals", "list", "--url", &stage.url])).0,
        Some(0)
    );

    // A refused refresh says what to do.
    let grants = stage.seen().grants;
    stage.set(&json!({"expireOn": "tools/list", "refuseAfter": grants}));
    let seen = stage.session(Session::new(&["tools"])).at(&stage.url).run();
    assert_eq!(seen.code, Some(3), "{}", seen.stderr);
    let says = format!("(the grant was revoked); run `proctor login {}`", stage.url);
    assert!(seen.stderr.contains(&says), "{}", seen.stderr);

    assert_eq!(
        output(&mut stage.proctor(&["logout", &stage.url])).0,
        Some(0)
    );
    let (code, said) = output(&mut stage.proctor(&["tools", "--url", &stage.url]));
    assert_eq!(code, Some(3), "{said}");
    assert!(
        said.contains("it wants a token: run `proctor login"),
        "{said}"
    );
}

#[test]
fn a_login_that_is_cancelled_refused_or_late_stores_nothing() {
    let stage = OauthStage::start();
    let (login, page) = stage.log_in(&[]);
    OauthStage::browse(&page, &["cancel"]);
    let (code, stderr) = finished(login);
    assert_eq!(code, Some(1), "{stderr}");
    assert!(stderr.contains("access_denied"), "{stderr}");

    let (login, _) = stage.log_in(&[]);
    let pid = Pid::from_raw(i32::try_from(login.id()).unwrap()).unwrap();
    kill_process(pid, Signal::INT).unwrap();
    let (code, stderr) = finished(login);
    assert_eq!(code, Some(130), "{stderr}");

    let (login, _) = stage.log_in(&["--timeout", "1ms"]);
    let (code, stderr) = finished(login);
    assert_eq!(code, Some(1), "{stderr}");
    assert!(stderr.contains("no login within"), "{stderr}");

    // Another page answers: its state is wrong, so the login goes on waiting.
    let (login, page) = stage.log_in(&[]);
    let query = page.split_once("redirect_uri=").unwrap().1;
    let port = query.split_once("127.0.0.1%3A").unwrap().1;
    let port = port.split_once("%2F").unwrap().0;
    let forged = format!("http://127.0.0.1:{port}/callback?code=stolen&state=guessed");
    let (_, answer) = output(Command::new("curl").args(["-s", &forged]));
    assert!(answer.contains("The login failed"), "{answer}");
    let rebound = format!("http://localhost:{port}/callback?code=stolen&state=guessed");
    let (_, answer) = output(Command::new("curl").args(["-s", &rebound]));
    assert_eq!(answer, "not found\n");
    assert_eq!(stage.seen().grants, 0, "no code was sent");
    // The server wants tokens for another audience, so the login is of no use.
    stage.set(&json!({"audience": "https://another.example/mcp"}));
    OauthStage::browse(&page, &[]);
    let (code, stderr) = finished(login);
    assert_eq!(code, Some(1), "{stderr}");
    assert!(stderr.contains("another audience"), "{stderr}");

    let (_, listed) = output(&mut stage.proctor(&["login", "--list"]));
    assert_eq!(listed, "no logins are stored\n");
}
