//! Where results and messages go: readers that are gone, full or asleep change neither the run nor its exit code.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::unix::fs::{FileTypeExt, PermissionsExt, symlink};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use proctor_core::summary::Summary;
use proctor_e2e::suite::SuiteFixture;
use proctor_record::event::RunEnded;
use proctor_record::record::RunReader;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

const RULES: &str = r"
  - when: {prompt: good, results: 0}
    reply: {calls: [{tool: echo, arguments: {text: hi}}]}
  - reply: {text: done}
";

fn suite(tasks: &[&str]) -> SuiteFixture {
    let suite = SuiteFixture::new(RULES, &[]);
    let assertions = json!({"toolsUsed": [{"server": "fixture", "tool": "echo"}]});
    suite.eval(&json!({}), &json!({"assertions": assertions}));
    for task in tasks {
        suite.task(task, &json!({}));
    }
    suite
}

/// `proctor check`, with its record in `run` beside the suite.
fn start(suite: &SuiteFixture, words: &[&str], stdout: Stdio, stderr: Stdio) -> Child {
    let mut command = Command::new(proctor_e2e::proctor());
    command
        .arg("check")
        .arg(suite.path("eval.yaml"))
        .arg("--record")
        .arg(suite.path("run"))
        .args(words)
        .current_dir(suite.folder())
        .stdin(Stdio::null())
        .stdout(stdout)
        .stderr(stderr);
    command.spawn().unwrap()
}

fn code(mut child: Child) -> Option<i32> {
    let deadline = Instant::now() + Duration::from_mins(3);
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status.code();
        }
        if Instant::now() > deadline {
            child.kill().unwrap();
            panic!("proctor did not end");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A pipe whose reader is gone.
fn gone() -> Stdio {
    let (_, writer) = std::io::pipe().unwrap();
    writer.into()
}

/// A device that takes nothing.
fn full() -> Stdio {
    File::options()
        .write(true)
        .open("/dev/full")
        .unwrap()
        .into()
}

/// How the run ended, by its record.
fn ended(suite: &SuiteFixture) -> Option<RunEnded> {
    let run = RunReader::open(&suite.path("run")).unwrap();
    Summary::of_run(&run).unwrap().ended
}

#[test]
fn a_reader_who_is_gone_does_not_turn_a_failure_into_a_success() {
    for words in [
        &["--out", "out.json", "--junit", "out.xml"][..],
        &["-o", "json", "--out", "out.json", "--junit", "out.xml"],
    ] {
        let suite = suite(&["good", "bad"]);
        assert_eq!(
            code(start(&suite, words, gone(), Stdio::null())),
            Some(1),
            "{words:?}"
        );
        assert_eq!(ended(&suite).unwrap().exit, 1);
        let document = fs::read_to_string(suite.path("out.json")).unwrap();
        assert!(document.ends_with("\n]}\n"), "{document}");
        assert!(suite.path("out.xml").exists());
    }
}

#[test]
fn a_success_that_nobody_reads_is_one() {
    let suite = suite(&["good"]);
    assert_eq!(code(start(&suite, &[], gone(), gone())), Some(0));
}

#[test]
fn what_is_wrong_with_a_suite_is_wrong_if_nobody_reads_it_too() {
    let suite = suite(&["good"]);
    suite.write("model.yaml", "kind: Script\nrules: []\n");
    assert_eq!(code(start(&suite, &[], gone(), gone())), Some(2));
    let suite = self::suite(&["good"]);
    let words = ["-r", "nothing", "-o", "json"];
    assert_eq!(code(start(&suite, &words, gone(), gone())), Some(4));
}

#[test]
fn a_result_that_could_not_be_written_is_no_success() {
    let suite = suite(&["good"]);
    assert_eq!(code(start(&suite, &[], full(), Stdio::null())), Some(3));
    assert_eq!(ended(&suite).unwrap().exit, 0);
    let suite = self::suite(&["bad"]);
    assert_eq!(
        code(start(&suite, &["-o", "json"], full(), Stdio::null())),
        Some(1)
    );
}

#[test]
fn a_run_goes_on_if_nobody_takes_its_messages() {
    for stderr in [gone, full] {
        let suite = suite(&["bad", "good"]);
        let mark = suite.path("cleaned");
        let script = format!("touch {}", mark.display());
        let cleanup = json!([{"script": {"inline": script}}]);
        suite.task("good", &json!({"cleanup": cleanup}));
        assert_eq!(
            code(start(&suite, &["-v"], Stdio::null(), stderr())),
            Some(1)
        );
        assert_eq!(ended(&suite).unwrap().exit, 1);
        assert!(mark.exists());
    }
}

/// A pipe that is full, and its reader.
fn blocked() -> (std::io::PipeReader, Stdio) {
    let (reader, mut writer) = std::io::pipe().unwrap();
    let room = rustix::pipe::fcntl_getpipe_size(&writer).unwrap();
    writer.write_all(&vec![b'x'; room]).unwrap();
    (reader, writer.into())
}

fn wait_for_the_end(suite: &SuiteFixture) {
    let deadline = Instant::now() + Duration::from_mins(3);
    let record = suite.path("run/run.jsonl");
    while !fs::read_to_string(&record).is_ok_and(|text| text.contains("\"exit\":")) {
        assert!(Instant::now() < deadline, "the run did not end");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn signals_are_heard_while_nobody_reads() {
    for is_stdout in [true, false] {
        let suite = suite(&["good"]);
        let (_reader, pipe) = blocked();
        let child = if is_stdout {
            start(&suite, &["-o", "json"], pipe, Stdio::null())
        } else {
            start(&suite, &["-v"], Stdio::null(), pipe)
        };
        wait_for_the_end(&suite);
        let pid = Pid::from_child(&child);
        kill_process(pid, Signal::INT).unwrap();
        std::thread::sleep(Duration::from_millis(50));
        // It may have ended at the first.
        kill_process(pid, Signal::TERM).unwrap();
        assert_eq!(code(child), Some(130));
        assert_eq!(ended(&suite).unwrap().exit, 0);
    }
}

#[test]
fn a_run_can_be_interrupted_while_nobody_reads_its_messages() {
    let suite = suite(&["good"]);
    suite.write(
        "model.yaml",
        "kind: Script\nrules:\n  - reply: {calls: [{tool: sleep, arguments: {ms: 600000}}]}\n",
    );
    let (reader, pipe) = blocked();
    let child = start(&suite, &["-v"], Stdio::null(), pipe);
    let deadline = Instant::now() + Duration::from_mins(3);
    while fs::read_dir(suite.path("run/trials")).map_or(0, Iterator::count) == 0 {
        assert!(Instant::now() < deadline, "no trial was started");
        std::thread::sleep(Duration::from_millis(5));
    }
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    wait_for_the_end(&suite);
    drop(reader);
    assert_eq!(code(child), Some(130));
    assert_eq!(ended(&suite).unwrap().reason.unwrap(), "interrupted");
}

fn quiet(suite: &SuiteFixture, words: &[&str]) -> Option<i32> {
    code(start(suite, words, Stdio::null(), Stdio::null()))
}

fn is_document(text: &str) -> bool {
    text.starts_with("{\"summary\":") && text.ends_with("\n]}\n")
}

#[test]
fn a_file_is_replaced_and_for_its_owner_only() {
    let suite = suite(&["good"]);
    suite.write("out.json", "old");
    assert_eq!(quiet(&suite, &["--out", "out.json"]), Some(0));
    let written = fs::read_to_string(suite.path("out.json")).unwrap();
    assert!(is_document(&written), "{written}");
    let mode = fs::metadata(suite.path("out.json")).unwrap().permissions();
    assert_eq!(mode.mode() & 0o777, 0o600);
    let names = fs::read_dir(suite.folder()).unwrap();
    let names: Vec<_> = names.map(|entry| entry.unwrap().file_name()).collect();
    let is_hidden = |name: &std::ffi::OsString| name.as_encoded_bytes().starts_with(b".");
    assert!(!names.iter().any(is_hidden), "{names:?}");
}

#[test]
fn a_link_stays_one_and_its_target_is_written() {
    let suite = suite(&["good"]);
    suite.write("there/old.json", "old");
    symlink("there/old.json", suite.path("out.json")).unwrap();
    symlink("there/new.xml", suite.path("out.xml")).unwrap();
    let words = ["--out", "out.json", "--junit", "out.xml"];
    assert_eq!(quiet(&suite, &words), Some(0));
    for (link, target) in [("out.json", "there/old.json"), ("out.xml", "there/new.xml")] {
        assert!(suite.path(link).is_symlink());
        assert!(fs::read_to_string(suite.path(target)).unwrap().len() > 100);
    }
}

#[test]
fn a_fifo_is_written_to_and_stays_one() {
    let suite = suite(&["good"]);
    let fifo = suite.path("out.json");
    let made = Command::new("mkfifo").arg(&fifo).status().unwrap();
    assert!(made.success());
    let child = start(&suite, &["--out", "out.json"], Stdio::null(), Stdio::null());
    // Who waits for a writer that never comes would wait for ever.
    let reader = std::thread::spawn({
        let fifo = fifo.clone();
        move || fs::read_to_string(fifo).unwrap()
    });
    assert_eq!(code(child), Some(0));
    assert!(fs::metadata(&fifo).unwrap().file_type().is_fifo());
    assert!(is_document(&reader.join().unwrap()));
}

#[test]
fn a_place_that_can_t_be_written_is_known_before_anything_is_started() {
    let words = [
        &["--out", "no/such/folder/out.json"][..],
        &["--junit", "tasks"],
        &["--junit", "/proc/nothing.xml"],
        &["--out", "same", "--junit", "./same"],
        &["--out", "same", "--junit", "link"],
    ];
    for words in words {
        let suite = suite(&["good"]);
        symlink("same", suite.path("link")).unwrap();
        assert_eq!(quiet(&suite, words), Some(2), "{words:?}");
        assert!(!suite.path("run").exists(), "{words:?}");
    }
}

#[test]
fn a_file_that_can_t_be_written_does_not_keep_the_other_from_it() {
    for (task, expected) in [("good", 3), ("bad", 1)] {
        let suite = suite(&[task]);
        symlink("/dev/full", suite.path("full")).unwrap();
        let words = ["--out", "full", "--junit", "out.xml"];
        assert_eq!(quiet(&suite, &words), Some(expected));
        assert!(suite.path("full").is_symlink());
        assert!(suite.path("out.xml").exists());
    }
}

#[test]
fn secrets_in_names_are_not_shown_and_name_no_folder() {
    let suite = suite(&["hunter2-hunter2"]);
    let eval = fs::read_to_string(suite.path("eval.yaml")).unwrap();
    let named = eval.replace("\"name\":\"suite\"", "\"name\":\"of hunter2-hunter2\"");
    assert_ne!(eval, named);
    suite.write("eval.yaml", &named);
    let output = Command::new(proctor_e2e::proctor())
        .args(["check", "eval.yaml", "-v"])
        .env("PROCTOR_TEST_API_KEY", "hunter2-hunter2")
        .current_dir(suite.folder())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8(said).unwrap();
    assert!(said.contains("[redacted:PROCTOR_TEST_API_KEY]"), "{said}");
    assert!(!said.contains("hunter2"), "{said}");
    let runs = fs::read_dir(suite.path(".proctor/runs")).unwrap();
    let runs: Vec<_> = runs.map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(runs.len(), 1);
    let name = runs[0].to_string_lossy();
    assert!(!name.contains("hunter2"), "{name}");
}

#[test]
fn a_record_that_can_t_be_written_says_why() {
    let suite = suite(&["good"]);
    suite.task("long", &json!({"prompt": {"inline": "x".repeat(100_000)}}));
    // Enough for the plan, and not for the trial.
    let limited = "ulimit -f 50; exec \"$@\"";
    let seen = suite
        .check(&["-o", "json"])
        .under(&["bash", "-c", limited, "bash"])
        .run();
    assert_eq!(seen.code, Some(3), "{}", seen.stderr);
    let cause = "File too large";
    assert!(
        seen.stderr.contains(&format!("  caused by: {cause}")),
        "{}",
        seen.stderr
    );
    let document: serde_json::Value = serde_json::from_str(&seen.stdout).unwrap();
    let reason = document["proctor"]["exit"]["note"].to_string();
    assert!(reason.contains(cause), "{reason}");
}

/// What is said of a run of two tasks, eight times each, one of which says that it may run beside others.
fn said(words: &[&str], limits: &str) -> String {
    let suite = suite(&["good"]);
    suite.task("good-too", &json!({}));
    let path = suite.path("tasks/good-too.yaml");
    let task = fs::read_to_string(&path).unwrap();
    let willing = task.replace("\"metadata\":{", "\"metadata\":{\"parallel\":true,");
    assert_ne!(task, willing);
    fs::write(&path, willing).unwrap();
    let limited = format!("{limits}; exec \"$@\"");
    let all = [&["-n", "8"][..], words].concat();
    let seen = suite
        .check(&all)
        .under(&["bash", "-c", &limited, "bash"])
        .run();
    assert_eq!(seen.code, Some(0), "{}\n{}", seen.stdout, seen.stderr);
    seen.stderr
}

#[test]
fn jobs_beside_which_a_task_may_not_run_are_told_of() {
    let note = "note: `--jobs` runs 8 trials of tasks without `parallel: true` in parallel";
    assert!(said(&["--jobs", "2"], "true").contains(note));
    for words in [["--jobs", "1"], ["--parallel", "2"]] {
        assert!(!said(&words, "true").contains("note:"), "{words:?}");
    }
}

#[test]
fn no_more_trials_run_at_once_than_there_are_files_for() {
    let warning = "warning: `--jobs 4000000000` is too high: running at most 3 trials at once \
                   because of the limit of 120 open files";
    let words = ["--jobs", "4000000000"];
    let said_so = said(&words, "ulimit -n 120");
    assert!(said_so.contains(warning), "{said_so}");
    // A limit that may be raised is.
    let raised = said(&words, "ulimit -Sn 120");
    assert!(!raised.contains("warning:"), "{raised}");
}

#[test]
fn lines_that_there_was_no_room_for_are_counted() {
    const TRIALS: usize = 250;
    let suite = suite(&["good"]);
    let (mut reader, pipe) = blocked();
    let runs = TRIALS.to_string();
    let child = start(
        &suite,
        &["-v", "-n", &runs, "--jobs", "4"],
        Stdio::null(),
        pipe,
    );
    // The first thing that is said is the note on jobs, before the run.
    let mut before = vec![0; 4096];
    reader.read_exact(&mut before).unwrap();
    wait_for_the_end(&suite);
    let mut said = String::new();
    reader.read_to_string(&mut said).unwrap();
    assert_eq!(code(child), Some(0));
    let shown = said.matches(" passed ").count();
    let left_out = said.lines().filter_map(|line| {
        let (count, _) = line.strip_prefix('(')?.split_once(" line")?;
        count.parse::<usize>().ok()
    });
    let left_out: usize = left_out.sum();
    assert!(left_out > 0, "{said}");
    assert_eq!(shown + left_out, TRIALS, "{said}");
}

#[test]
fn a_task_passed_only_if_its_judge_was_asked() {
    let suite = suite(&[]);
    let judge = json!({"ref": {"type": "builtin.llm-agent", "model": "scripted:model.yaml"}});
    let assertions = json!({"toolsUsed": [{"server": "fixture", "tool": "echo"}]});
    suite.eval(
        &json!({"llmJudge": judge}),
        &json!({"assertions": assertions}),
    );
    let script = json!({"script": {"inline": "true"}});
    suite.task("scripted", &json!({"verify": [script]}));
    suite.task(
        "judged",
        &json!({"verify": [script, {"llmJudge": {"contains": "done"}}]}),
    );
    let seen = suite.check(&["-o", "json"]).run();
    assert_eq!(seen.code, Some(1), "{}", seen.stderr);
    let document: serde_json::Value = serde_json::from_str(&seen.stdout).unwrap();
    let results = document["results"].as_array().unwrap();
    let passed = |name: &str| {
        let entry = results.iter().find(|entry| entry["taskName"] == name);
        entry.unwrap()["taskPassed"].as_bool().unwrap()
    };
    assert!(passed("scripted"));
    assert!(!passed("judged"));
}

#[test]
fn junit_of_a_run_whose_server_does_not_come_up_is_an_error() {
    let suite = SuiteFixture::on(RULES, &json!({"gone": {"command": "false"}}));
    suite.eval(&json!({}), &json!({"assertions": {"minToolCalls": 1}}));
    suite.task("good", &json!({}));
    assert_eq!(quiet(&suite, &["--junit", "out.xml"]), Some(3));
    let document = fs::read_to_string(suite.path("out.xml")).unwrap();
    assert!(document.contains("errors=\"1\""), "{document}");
    assert!(document.contains("`gone` failed to start"), "{document}");
}
