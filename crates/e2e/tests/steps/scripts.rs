//! Scripts: how they are run, what is made of their end, and what they may leave behind.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

use proctor_core::suite::step::{Action, ScriptSource, ScriptStep};
use proctor_record::event::{Blame, Body, Phase};
use proctor_record::verdict::Verdict;
use tokio::time::timeout;

use crate::stage::{Stage, cannot_tell, fails, passes, text};

fn change(action: Action, change: impl FnOnce(&mut ScriptStep)) -> Action {
    let Action::Script(mut script) = action else {
        panic!("{action:?}")
    };
    change(&mut script);
    Action::Script(script)
}

#[tokio::test]
async fn the_exit_code_decides() {
    let mut stage = Stage::new();
    passes(&stage.verify(stage.inline("true")).await);
    let action = stage.inline("echo one; echo two >&2; exit 3");
    let failed = stage.verify(action.clone()).await;
    fails(
        &failed,
        Blame::Agent,
        "the script exited with code 3; the end of its output:\n",
    );
    assert!(!failed.goes_on);
    fails(&stage.setup(action.clone()).await, Blame::Suite, "code 3");
    let may_fail = change(action, |script| script.continue_on_error = true);
    assert!(stage.setup(may_fail).await.goes_on);
    let killed = stage.verify(stage.inline("kill -9 $$")).await;
    cannot_tell(
        &killed,
        Blame::Suite,
        "was killed by signal 9 (SIGKILL) without output",
    );
    assert_eq!(stage.fill("{steps.script.exitCode}"), "137");
    stage.close().await;
}

#[tokio::test]
async fn what_it_wrote_is_there_for_later_steps() {
    let mut stage = Stage::new();
    // Two pipes have no order, so that each text waits until the one before has been read.
    let action = stage.inline(
        r#"#!/usr/bin/env python3
import fcntl, os, struct, termios, time
def say(stream, text):
    os.write(stream, text)
    while struct.unpack("i", fcntl.ioctl(stream, termios.FIONREAD, b"    "))[0]:
        time.sleep(0.01)
say(1, b"one\n")
say(2, b"two\n")
say(1, b"three\n")
time.sleep(0.1)
"#,
    );
    let result = stage.run(Phase::Setup, "made", action).await;
    passes(&result);
    assert_eq!(result.output.as_deref(), Some("one\ntwo\nthree\n"));
    assert_eq!(stage.fill("{steps.made.stdout}"), "one\nthree");
    assert_eq!(stage.fill("{steps.made.stderr}"), "two");
    assert_eq!(stage.fill("{steps.script.output}"), "one\ntwo\nthree");
    assert_eq!(stage.fill("{steps.script.exitCode}"), "0");
    let said = "error: the step `made` has no output `out`; its outputs are `exitCode`, `output`, `stderr`, `stdout`";
    assert!(stage.fill("{steps.made.out}").starts_with(said));
    let ended = &stage.ends()[0];
    assert_eq!(
        (ended.phase, &*ended.id, &*ended.kind),
        (Phase::Setup, "made", "script")
    );
    assert_eq!(ended.verdict, Verdict::Pass);
    assert_eq!(
        ended.output,
        Some(Body::Text("one\ntwo\nthree\n".to_owned()))
    );
    assert_eq!(ended.outputs["stderr"], "two");
    assert!(ended.duration >= 100_000);
    stage.close().await;
}

#[tokio::test]
async fn a_first_line_is_honoured_inline_and_in_files() {
    let mut stage = Stage::new();
    let python = "\n#!/usr/bin/env python3\nimport os, sys\nprint(os.getcwd(), sys.stdin.read())\n";
    passes(&stage.setup(stage.inline(python)).await);
    let here = fs::canonicalize(stage.folder()).unwrap();
    assert_eq!(
        stage.fill("{steps.script.stdout}").trim(),
        here.to_str().unwrap()
    );

    // Not executable, and in a folder of its own.
    let folder = stage.folder().join("scripts");
    fs::create_dir(&folder).unwrap();
    for (name, line) in [("plain", ""), ("python", "#!/usr/bin/env -S python3 -u\n")] {
        let body = if line.is_empty() {
            "pwd"
        } else {
            "import os; print(os.getcwd())"
        };
        fs::write(folder.join(name), format!("{line}{body}\n")).unwrap();
        let action = change(stage.inline("x"), |script| {
            script.source = ScriptSource::File(folder.join(name));
            script.folder.clone_from(&folder);
        });
        passes(&stage.setup(action).await);
        let found = stage.fill("{steps.script.stdout}");
        assert_eq!(
            Path::new(&found),
            fs::canonicalize(&folder).unwrap(),
            "{name}"
        );
    }
    let missing = stage.verify(stage.inline("#!/no/such/program\n")).await;
    cannot_tell(
        &missing,
        Blame::Suite,
        "program `/no/such/program` does not exist",
    );
    stage.close().await;
}

#[tokio::test]
async fn it_has_the_users_environment_without_the_keys_of_models() {
    let mut stage = Stage::new();
    stage.steps.agent_answered("it's \"$HOME\"\n42".to_owned());
    let script = r#"
        test -z "$OPENAI_API_KEY$ANTHROPIC_API_KEY$OTHER_KEY" || exit 1
        test -n "$PROCTOR_STEPS_MARK" || exit 2
        printf %s "$ANSWER"; printf %s "$ID" >&2
    "#;
    let action = change(stage.inline(script), |script| {
        script
            .env
            .insert("ANSWER".to_owned(), text("{agent.prompt}: {agent.output}"));
        script.env.insert("ID".to_owned(), text("{random.id}"));
    });
    passes(&stage.verify(action).await);
    let answer = "count the notes: it's \"$HOME\"\n42";
    assert_eq!(stage.fill("{steps.script.stdout}"), answer);
    assert_eq!(
        stage.fill("{steps.script.stderr}"),
        stage.fill("{random.id}")
    );
    let port = stage.fill("{random.port}");
    assert_eq!(stage.fill("{random.port}"), port);
    assert!(port.parse::<u16>().is_ok());

    let with = |value: &str| {
        change(stage.inline("true"), |script| {
            script.env.insert("X".to_owned(), text(value));
        })
    };
    let (key, nul) = (with("{env.OPENAI_API_KEY}"), with("{agent.output}"));
    cannot_tell(
        &stage.verify(key).await,
        Blame::Suite,
        "`OPENAI_API_KEY` is not set",
    );
    stage.steps.agent_answered("a\0b".to_owned());
    cannot_tell(
        &stage.verify(nul).await,
        Blame::Suite,
        "contains a NUL character",
    );
    stage.close().await;
}

#[tokio::test]
async fn one_that_does_not_end_is_ended() {
    let mut stage = Stage::new();
    // A busy machine may need longer to begin.
    for (limit, is_last) in [(300, false), (3000, false), (30_000, true)] {
        let action = change(
            stage.inline("trap '' TERM; echo begun; (sleep 600 &); sleep 600"),
            |script| script.timeout = Duration::from_millis(limit),
        );
        let result = stage.verify(action).await;
        assert_eq!(stage.left.count(), 0);
        let limit = proctor_record::duration::render(Duration::from_millis(limit));
        let reason = format!("the script timed out after {limit}");
        cannot_tell(&result, Blame::Suite, &reason);
        if is_last || result.output.as_deref() == Some("begun\n") {
            let reason = format!("{reason}; the end of its output:\nbegun");
            cannot_tell(&result, Blame::Suite, &reason);
            break;
        }
    }
    stage.close().await;
}

#[tokio::test]
async fn a_flood_is_read_and_only_its_end_kept() {
    let mut stage = Stage::new();
    let script = "yes | head -c 300000000; yes n | head -c 100000000 >&2; echo the end; exit 1";
    let action = stage.inline(script);
    let result = stage.verify(action).await;
    fails(&result, Blame::Agent, "the end");
    let output = result.output.unwrap();
    assert!(output.len() < 65_000 + 1000);
    assert!(output.contains(" bytes left out]\n"));
    let Verdict::Fail { reason } = result.verdict else {
        unreachable!()
    };
    assert!(reason.len() < 3000);
    stage.close().await;
}

#[tokio::test]
async fn a_dropped_step_leaves_nothing_but_its_end() {
    let mut stage = Stage::new();
    let script = "trap 'sleep 0.3; exit' TERM; echo $$ > pid; echo begun; (setsid sleep 600 &)
        touch ready; while true; do sleep 0.05; done";
    let (action, ready) = (stage.inline(script), stage.folder().join("ready"));
    stage.drop_when(action, || ready.exists()).await;
    let ended = &stage.ends()[0];
    let stopped = Verdict::unknown("the step was interrupted");
    assert_eq!(ended.verdict, stopped);
    assert_eq!(ended.output, Some(Body::Text("begun\n".to_owned())));
    // The next one begins when it is gone.
    let gone = stage.inline("! kill -0 $(cat pid)");
    passes(&stage.run(Phase::Cleanup, "cleanup_0", gone).await);
    stage.left.nothing().await;
    stage.close().await;
}

#[tokio::test]
async fn a_dropped_step_is_ended_though_no_other_follows() {
    let mut stage = Stage::new();
    let action = stage.inline("(setsid sleep 600 &) ; sleep 600");
    // On a thread of its own, as a trial may be.
    let stage = tokio::spawn(async move {
        let dropped = timeout(Duration::from_millis(300), stage.setup(action)).await;
        assert!(dropped.is_err());
        stage
    });
    stage.await.unwrap().left.nothing().await;
}

#[tokio::test]
async fn what_it_left_running_goes_on_until_the_end() {
    let mut stage = Stage::new();
    let script = "python3 -m http.server --bind 127.0.0.1 $PORT & echo $! > pid; echo started";
    let action = change(stage.inline(script), |script| {
        script.env.insert("PORT".to_owned(), text("{random.port}"));
    });
    let result = stage.setup(action).await;
    passes(&result);
    assert!(result.output.unwrap().contains("started"));
    let alive = stage.inline("sleep 0.1; kill -0 $(cat pid)");
    passes(&stage.verify(alive).await);
    assert!(stage.left.count() > 0);
    stage.close().await;
}

#[tokio::test]
async fn an_inline_script_is_a_private_file_that_goes_away() {
    let mut stage = Stage::new();
    passes(&stage.setup(stage.inline("echo $0")).await);
    let file = stage.fill("{steps.script.stdout}");
    let file = Path::new(&file);
    let mode = file
        .parent()
        .unwrap()
        .metadata()
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o700);
    stage.close().await;
    assert!(!file.parent().unwrap().exists());
}

#[tokio::test]
async fn dropping_the_steps_ends_what_they_started() {
    let mut stage = Stage::new();
    passes(
        &stage
            .setup(stage.inline("setsid sleep 600 >/dev/null 2>&1 &"))
            .await,
    );
    stage.left.something().await;
    let Stage { steps, left, .. } = stage;
    drop(steps);
    left.nothing().await;
}
