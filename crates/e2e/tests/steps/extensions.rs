//! Extensions: a program in Python that does as it is told, and what comes of it.

use std::fs;
use std::path::PathBuf;

use proctor_core::suite::step::Action;
use proctor_core::suite::{Extension, Package, ReleasePackage};
use proctor_record::event::{Blame, Phase};
use serde_json::{Value, json};

use crate::stage::{Stage, cannot_tell, fails, passes, value};

const PROGRAM: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/steps/extension.py");

/// A trial with the extension, under the name `k8s`.
fn stage(config: &Value) -> Stage {
    let extension = Extension {
        alias: "k8s".to_owned(),
        package: Package::Local(PROGRAM.into()),
        config: config.clone(),
        env: [("OWN".to_owned(), "its own".to_owned())].into(),
    };
    let missing = Extension {
        alias: "gone".to_owned(),
        package: Package::Local("/no/such/program".into()),
        ..extension.clone()
    };
    let release = Extension {
        alias: "released".to_owned(),
        package: Package::Release(
            ReleasePackage::parse("https://github.com/acme/steps@v1").expect("a package"),
        ),
        ..extension.clone()
    };
    let extensions = vec![extension, missing, release];
    Stage::with(Vec::new(), extensions)
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
    let mut stage = stage(&json!({"goodbye": goodbye}));
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
    let mut stage = stage(&Value::Null);
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
        "malformed response",
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
    cannot_tell(
        &released,
        suite,
        "the extension `released` is not in the cache: run `proctor extensions fetch`",
    );
    let unknown = stage.verify(ask("nobody", "echo", &json!({}))).await;
    cannot_tell(&unknown, suite, "unknown extension `nobody`");
    stage.close().await;
}

#[tokio::test]
async fn one_that_does_not_come_up_is_said() {
    let mut stage = stage(&json!({"mute": true}));
    let result = stage.setup(ask("k8s", "echo", &json!({}))).await;
    let says = "the extension `k8s` failed to start: it exited with code 5; the end of its output:\non stderr";
    cannot_tell(&result, Blame::Suite, says);
    stage.close().await;
}

/// A step that hangs, with the file that it makes first, and the file that it waits for.
fn hang(stage: &Stage) -> (Action, PathBuf, PathBuf) {
    let (begun, go) = (stage.folder().join("begun"), stage.folder().join("go"));
    let hang = ask("k8s", "hang", &json!({"begun": begun, "go": go}));
    (hang, begun, go)
}

#[tokio::test]
async fn a_dropped_step_leaves_the_extension_as_it_was() {
    let mut stage = stage(&Value::Null);
    passes(&stage.setup(ask("k8s", "echo", &json!({}))).await);
    let (hang, begun, go) = hang(&stage);
    stage.drop_when(hang, || begun.exists()).await;
    fs::write(go, "").unwrap();
    let echo = ask("k8s", "echo", &json!({}));
    passes(&stage.run(Phase::Cleanup, "cleanup_0", echo).await);
    assert_eq!(stage.fill("{steps.cleanup_0.asked}"), "3");
    stage.close().await;
}

#[tokio::test]
async fn one_that_hangs_is_ended() {
    let mut stage = stage(&Value::Null);
    let (hang, begun, _) = hang(&stage);
    stage.drop_when(hang, || begun.exists()).await;
    stage.close().await;
}
