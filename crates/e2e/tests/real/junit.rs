//! `JUnit` files, validated against the schema of Jenkins and pytest by Python's `xmlschema`. It runs with
//! `PROCTOR_EXTENDED=1`; a test of `proctor-report` checks the same without an installation.

use std::path::Path;
use std::process::Command;

use proctor_e2e::suite::SuiteFixture;
use serde_json::json;

use crate::servers::installed;

/// Whether the file is valid, by a real validator.
fn is_valid(file: &Path) -> bool {
    let schema = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../report/tests/all/junit-10.xsd"
    );
    let code = "import sys, xmlschema; xmlschema.XMLSchema(sys.argv[1]).validate(sys.argv[2])";
    let output = Command::new(installed("evals/python/bin/python"))
        .args(["-c", code, schema])
        .arg(file)
        .env("PYTHONPATH", installed("sdks/xmlschema"))
        .output()
        .unwrap();
    output.status.success()
}

#[test]
fn junit_files_are_valid() {
    if std::env::var("PROCTOR_EXTENDED").is_ok_and(|value| value == "1") {
        let rules = "  - when: {prompt: good}\n    reply: {text: ']]> <b> &amp; \\u001b[1m'}\n";
        let suite = SuiteFixture::new(rules, &[]);
        suite.task(
            "good",
            &json!({"verify": [{"script": {"inline": "true #"}}]}),
        );
        suite.task(
            "bad <&>",
            &json!({"verify": [{"script": {"inline": "echo ']]>'; exit 1"}}]}),
        );
        for (words, exit) in [
            (&["eval.yaml", "-n", "2"][..], 1),
            (&["eval.yaml", "-r", "nothing"][..], 4),
            (&["no-such-file.yaml"][..], 2),
        ] {
            let status = Command::new(proctor_e2e::proctor())
                .arg("check")
                .args(words)
                .args(["--junit", "out.xml"])
                .current_dir(suite.folder())
                .output()
                .unwrap()
                .status;
            assert!(
                status.code().is_some_and(|code| code == exit || code == 3),
                "{words:?}"
            );
            assert!(is_valid(&suite.path("out.xml")), "{words:?}");
        }
        suite.write("old.xml", r#"<testsuites skipped="0"/>"#);
        assert!(!is_valid(&suite.path("old.xml")));
    }
}
