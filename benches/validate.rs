//! `proctor validate` on generated suites of growing size: time, time per task, memory.
//!
//! Sizes are run in turns, so that a slow moment of the machine touches all of them.

#![expect(clippy::disallowed_methods, reason = "the binary itself has no guard")]
#![expect(clippy::print_stdout, reason = "the figures are the result")]

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::resource::{UsageWho, getrusage};

const SIZES: [usize; 3] = [100, 1_000, 10_000];
const ROUNDS: usize = 15;

fn main() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    for size in SIZES {
        write_suite(&folder.path().join(size.to_string()), size);
    }
    let start_up = fastest(|| run(folder.path(), &["--version"]));
    let mut times = vec![Vec::new(); SIZES.len()];
    let mut memory = Vec::new();
    for round in 0..ROUNDS {
        for (times, size) in times.iter_mut().zip(SIZES) {
            let eval = format!("{size}/eval.yaml");
            times.push(run(folder.path(), &["validate", &eval]));
            if round == 0 {
                // Children are run from small to large, so the highest so far is this one's.
                memory.push(peak_of_children_kib());
            }
        }
    }
    println!("start-up (--version): {start_up:.1?}");
    println!(
        "{:>7} {:>10} {:>10} {:>12} {:>10}",
        "tasks", "fastest", "median", "per task", "peak MB"
    );
    for ((size, mut times), memory) in SIZES.into_iter().zip(times).zip(memory) {
        times.sort();
        let per_task =
            times[0].saturating_sub(start_up) / u32::try_from(size).expect("a small number");
        println!(
            "{size:>7} {:>10.1?} {:>10.1?} {per_task:>12.1?} {:>10}",
            times[0],
            times[times.len() / 2],
            memory.div_euclid(1024),
        );
    }
}

fn run(folder: &Path, args: &[&str]) -> Duration {
    let start = Instant::now();
    let status = Command::new(env!("CARGO_BIN_EXE_proctor"))
        .args(args)
        .current_dir(folder)
        .stdout(Stdio::null())
        .status()
        .expect("proctor starts");
    let elapsed = start.elapsed();
    assert!(status.success(), "proctor {args:?} failed");
    elapsed
}

fn fastest(mut run: impl FnMut() -> Duration) -> Duration {
    (0..ROUNDS)
        .map(|_| run())
        .min()
        .expect("at least one round")
}

fn peak_of_children_kib() -> i64 {
    getrusage(UsageWho::RUSAGE_CHILDREN)
        .expect("usage can be read")
        .max_rss()
}

fn write_suite(folder: &Path, tasks: usize) {
    let write = |name: &str, text: String| {
        fs::write(folder.join(name), text).expect("a file can be written");
    };
    fs::create_dir_all(folder.join("tasks")).expect("a folder can be made");
    write(
        "mcp.yaml",
        "mcpServers:\n  kubernetes: {url: 'http://localhost:8080/mcp'}\n".to_owned(),
    );
    write(
        "eval.yaml",
        "kind: Eval\nmetadata: {name: large}\nconfig:\n  agent: {type: builtin.claude-code}\n  mcpConfigFile: mcp.yaml\n  taskSets:\n    - glob: tasks/**/*.yaml\n      assertions:\n        toolsUsed: [{server: kubernetes, toolPattern: 'pods_.*', arguments: {namespace: {$match: '^test-'}}}]\n        maxToolCalls: 10\n".to_owned(),
    );
    for task in 0..tasks {
        write(
            &format!("tasks/task-{task:05}.yaml"),
            format!(
                "kind: Task\napiVersion: mcpchecker/v1alpha2\nmetadata:\n  name: create-pod-{task}\n  difficulty: easy\n  labels:\n    suite: basic\n    number: {task}\nspec:\n  limits:\n    timeout: 5m\n  setup:\n    - script:\n        inline: |\n          #!/bin/bash\n          kubectl create namespace test-{task}\n  prompt:\n    inline: Create a pod called web-{task} from nginx:1.27 in the namespace test-{task}.\n  verify:\n    - script:\n        env:\n          ANSWER: \"{{agent.output}}\"\n        inline: |\n          kubectl get pod web-{task} -n test-{task} -o jsonpath='{{.status.phase}}'\n    - http:\n        url: http://localhost:8080/{{random.id}}\n        expect: {{status: 200, body: {{fields: [{{path: 'items[0].name', exists: true}}]}}}}\n  cleanup:\n    - script:\n        inline: kubectl delete namespace test-{task}\n"
            ),
        );
    }
}
