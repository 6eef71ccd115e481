//! Where runs are kept that name no folder.

use std::process::{Command, Stdio};

use proctor_e2e::suite::SuiteFixture;
use serde_json::json;

#[test]
fn runs_that_start_at_once_have_a_folder_each() {
    const STARTS: usize = 32;
    let suite = SuiteFixture::new("  - reply: {text: done}\n", &[]);
    suite.eval(&json!({}), &json!({"assertions": {"maxToolCalls": 3}}));
    suite.task("quick", &json!({}));
    let start = |_| {
        let mut command = Command::new(proctor_e2e::proctor());
        command
            .args(["check", "eval.yaml"])
            .current_dir(suite.folder())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command.spawn().unwrap()
    };
    let running: Vec<_> = (0..STARTS).map(start).collect();
    for one in running {
        let done = one.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&done.stderr);
        assert_eq!(done.status.code(), Some(0), "{said}");
    }
    let folders = std::fs::read_dir(suite.path(".proctor/runs")).unwrap();
    assert_eq!(folders.count(), STARTS);
}
