//! Extensions: a program in Python that does as it is told, and what comes of it.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use proctor_core::event::{Blame, Phase};
use proctor_core::suite::step::Action;
use proctor_core::suite::{Extension, Package};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::time::timeout;

use crate::stage::{Stage, cannot_tell, fails, passes, value};

const PROGRAM: &str = r#"#!/usr/bin/env python3
import json, os, sys, time

config = {}
asked = 0
print("a banner", flush=True)
print("on stderr", file=sys.stderr, flush=True)
for line in sys.stdin:
    message = json.loads(line)
    method, params = message["method"], message.get("params", {})
    def say(**members):
        print(json.dumps({"jsonrpc": "2.0", **members}), flush=True)
    def answer(result):
        say(id=message["id"], result=result)
    if method == "initialize":
        config = params.get("config") or {}
        if config.get("mute"):
            sys.exit(5)
        names = ["echo", "fail", "crash", "hang", "flood", "error", "nonsense"]
        operations = {name: {"description": name, "params": {}} for name in names}
        answer({"name": "fixture", "version": "1", "protocolVersion": params["protocolVersion"],
                "operations": operations})
    elif method == "shutdown":
        if "goodbye" in config:
            open(config["goodbye"], "w").write("bye")
        answer({})
        sys.exit(0)
    elif method == "execute":
        asked += 1
        operation = params["operation"]
        say(method="log", params={"level": "info", "message": "doing " + operation, "data": {"n": asked}})
        if operation == "echo":
            answer({"success": True, "message": "done", "outputs": {
                "args": json.dumps(params["args"]), "context": json.dumps(params["context"]),
                "asked": asked, "own": os.environ.get("OWN", ""), "key": os.environ.get("OPENAI_API_KEY", "")}})
        elif operation == "fail":
            answer({"success": False, "error": "the pod is not ready"})
        elif operation == "crash":
            print("about to die", file=sys.stderr, flush=True)
            os._exit(7)
        elif operation == "hang":
            time.sleep(params["args"]["seconds"])
            answer({"success": True})
        elif operation == "flood":
            for n in range(20000):
                say(method="log", params={"level": "debug", "message": "x" * 500})
            sys.stdout.write("y" * 20000000 + "\n")
            answer({"success": True})
        elif operation == "error":
            say(id=message["id"], error={"code": -32000, "message": "not today"})
        elif operation == "nonsense":
            answer(["?"])
"#;

/// A trial with the extension, under the name `k8s`.
fn stage(config: &Value) -> (Stage, TempDir) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("extension");
    fs::write(&path, PROGRAM).expect("a file");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("a program");
    let extension = Extension {
        alias: "k8s".to_owned(),
        package: Package::Local(path),
        config: config.clone(),
        env: [("OWN".to_owned(), "its own".to_owned())].into(),
    };
    let missing = Extension {
        alias: "gone".to_owned(),
        package: Package::Local(folder.path().join("nothing")),
        ..extension.clone()
    };
    let release = Extension {
        alias: "released".to_owned(),
        package: Package::Release {
            repository: "https://github.com/acme/steps".to_owned(),
            version: "v1".to_owned(),
        },
        ..extension.clone()
    };
    let extensions = vec![extension, missing, release];
    (Stage::with(Vec::new(), extensions), folder)
}

fn ask(extension: &str, operation: &str, args: &Value) -> Action {
    Action::Extension {
        extension: extension.to_owned(),
        operation: operation.to_owned(),
        args: value(args),
    }
}

#[tokio::test]
async fn an_operation_is_asked_for_and_gives_outputs() {
    let goodbye = tempfile::tempdir().unwrap();
    let goodbye = goodbye.path().join("goodbye");
    let (mut stage, _folder) = stage(&json!({"goodbye": goodbye}));
    let echo = |text: &str| ask("k8s", "echo", &json!({"name": text}));
    let result = stage.run(Phase::Setup, "made", echo("a-{random.id}")).await;
    passes(&result);
    assert_eq!(
        result.output.unwrap(),
        "done\na banner\ninfo: doing echo {\"n\":1}\n"
    );
    let id = stage.fill("{random.id}");
    assert_eq!(
        stage.fill("{steps.made.args}"),
        format!(r#"{{"name": "a-{id}"}}"#)
    );
    assert_eq!(
        stage.fill("{steps.k8s.echo.own}|{steps.made.key}"),
        "its own|"
    );
    let context: Value = serde_json::from_str(&stage.fill("{steps.made.context}")).unwrap();
    let expected = json!({"workdir": stage.folder(), "phase": "setup", "env": {}, "timeout": "5m"});
    assert_eq!(context, expected);

    stage.steps.agent_answered("three".to_owned());
    passes(&stage.verify(echo("b")).await);
    let context: Value = serde_json::from_str(&stage.fill("{steps.k8s.echo.context}")).unwrap();
    assert_eq!(context["phase"], "verify");
    assert_eq!(
        context["agent"],
        json!({"prompt": "count the notes", "output": "three"})
    );
    // It is the same program all along.
    assert_eq!(stage.fill("{steps.k8s.echo.asked}"), "2");
    stage.close().await;
    assert_eq!(fs::read_to_string(goodbye).unwrap(), "bye");
}

#[tokio::test]
async fn what_fails_and_what_goes_wrong_are_two_things() {
    let (mut stage, _folder) = stage(&Value::Null);
    let verify = async |stage: &mut Stage, operation: &str| {
        stage.verify(ask("k8s", operation, &json!({}))).await
    };
    fails(
        &verify(&mut stage, "fail").await,
        Blame::Agent,
        "the pod is not ready",
    );
    let suite = Blame::Suite;
    cannot_tell(
        &verify(&mut stage, "error").await,
        suite,
        "error -32000: not today",
    );
    cannot_tell(
        &verify(&mut stage, "nonsense").await,
        suite,
        "makes no sense",
    );
    cannot_tell(
        &verify(&mut stage, "ecko").await,
        suite,
        "did you mean `echo`?",
    );
    let crashed = verify(&mut stage, "crash").await;
    cannot_tell(&crashed, suite, "it exited with code 7");
    cannot_tell(&crashed, suite, "about to die");
    // It is started anew for the next step.
    passes(&verify(&mut stage, "echo").await);
    passes(&verify(&mut stage, "flood").await);
    let gone = stage.verify(ask("gone", "echo", &json!({}))).await;
    cannot_tell(&gone, suite, "does not exist");
    let released = stage.verify(ask("released", "echo", &json!({}))).await;
    cannot_tell(&released, suite, "https://github.com/acme/steps@v1");
    let unknown = stage.verify(ask("nobody", "echo", &json!({}))).await;
    cannot_tell(&unknown, suite, "the suite has no extension `nobody`");
    stage.close().await;
}

#[tokio::test]
async fn one_that_does_not_come_up_is_said() {
    let (mut stage, _folder) = stage(&json!({"mute": true}));
    let result = stage.setup(ask("k8s", "echo", &json!({}))).await;
    let says = "the extension `k8s` did not come up: it exited with code 5; the end of its output:\non stderr";
    cannot_tell(&result, Blame::Suite, says);
    stage.close().await;
}

#[tokio::test]
async fn a_dropped_step_leaves_the_extension_as_it_was() {
    let (mut stage, _folder) = stage(&Value::Null);
    passes(&stage.setup(ask("k8s", "echo", &json!({}))).await);
    let hang = ask("k8s", "hang", &json!({"seconds": 0.6}));
    let dropped = timeout(Duration::from_millis(200), stage.verify(hang)).await;
    assert!(dropped.is_err());
    let echo = ask("k8s", "echo", &json!({}));
    passes(&stage.run(Phase::Cleanup, "cleanup_0", echo).await);
    assert_eq!(stage.fill("{steps.cleanup_0.asked}"), "3");
    stage.close().await;
}

#[tokio::test]
async fn one_that_hangs_is_ended() {
    let (mut stage, _folder) = stage(&Value::Null);
    let hang = ask("k8s", "hang", &json!({"seconds": 600}));
    let dropped = timeout(Duration::from_millis(500), stage.verify(hang)).await;
    assert!(dropped.is_err());
    stage.close().await;
}
