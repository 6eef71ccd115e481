//! The HTML report as a file: what it holds, and what it must not hold.

use std::io::{Read, Write};
use std::process::{Command, Stdio};

use data_encoding::BASE64;
use flate2::read::DeflateDecoder;
use proctor_report::html;
use regex::Regex;
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::outside;
use crate::sample::Sample;

fn written(sample: &Sample, max_bytes: u64) -> (String, html::HtmlContents) {
    let mut out = Vec::new();
    let contents = html::write(&sample.report(), max_bytes, &mut out).expect("a report");
    assert_eq!(contents.bytes, out.len() as u64);
    (String::from_utf8(out).expect("UTF-8"), contents)
}

/// The data in the element with this id.
fn data(page: &str, id: &str) -> Option<String> {
    let start = format!("<script type=\"application/octet-stream\" id=\"{id}\">");
    let from = page.find(&start)? + start.len();
    let end = from + page[from..].find("</script>")?;
    let bytes = BASE64.decode(&page.as_bytes()[from..end]).expect("base64");
    let mut text = String::new();
    DeflateDecoder::new(&bytes[..])
        .read_to_string(&mut text)
        .expect("a whole stream");
    Some(text)
}

fn index(page: &str) -> Value {
    serde_json::from_str(&data(page, "index").expect("an index")).expect("JSON")
}

/// The details of all trials in the file, in their order.
fn details(page: &str) -> Vec<Value> {
    let blocks = (0..).map_while(|number| data(page, &format!("d{number}")));
    let blocks: Vec<String> = blocks.collect();
    let lines = blocks.iter().flat_map(|block| block.lines());
    lines
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect()
}

#[test]
fn every_recorded_trial_has_its_details() {
    let sample = Sample::with_more(40);
    let (page, contents) = written(&sample, html::MAX_BYTES);
    assert_eq!(contents.detailed, contents.recorded);
    let (index, details) = (index(&page), details(&page));
    assert_eq!(details.len(), contents.detailed);
    let positions = index["positions"].as_array().unwrap();
    let columns = &index["overview"]["trials"];
    let outcomes = index["overview"]["outcomes"].as_array().unwrap();
    for (trial, position) in positions.iter().enumerate() {
        let outcome = columns["outcome"][trial].as_u64().unwrap();
        let outcome = &outcomes[usize::try_from(outcome).unwrap()];
        match position.as_u64() {
            Some(position) => {
                let details = &details[usize::try_from(position).unwrap()];
                assert_eq!(details["outcome"], *outcome, "trial {trial}");
            }
            None => assert_eq!(outcome, "not-run"),
        }
    }
}

/// An attempt that was stopped is in the file, and never as a result.
#[test]
fn a_trial_without_an_end_has_details_but_no_outcome() {
    let (page, _) = written(&Sample::new(), html::MAX_BYTES);
    let stopped = details(&page)
        .into_iter()
        .find(|details| details["file"].as_str().unwrap().ends_with(".part"));
    assert_eq!(stopped.expect("the stopped trial")["outcome"], "not-run");
}

#[test]
fn failures_come_first_if_there_is_little_room() {
    let sample = Sample::with_more(40);
    let (whole, all) = written(&sample, html::MAX_BYTES);
    let bare = written(&sample, 1).1;
    assert_eq!(bare.detailed, 0);
    let order = |page: &str| -> Vec<bool> {
        let details = details(page);
        let passed = details.iter().map(|trial| trial["outcome"] == "passed");
        passed.collect()
    };
    let passed = order(&whole);
    assert!(passed.is_sorted(), "trials that did not pass come first");
    let mut last = 0;
    for part in 1..8 {
        let limit = bare.bytes + (all.bytes - bare.bytes) * part / 8;
        let (page, contents) = written(&sample, limit);
        assert!(contents.bytes <= limit, "{} > {limit}", contents.bytes);
        assert!(contents.detailed >= last && contents.detailed < all.detailed);
        assert_eq!(order(&page), passed[..contents.detailed]);
        assert!(page.ends_with("</html>\n"));
        last = contents.detailed;
    }
    assert!(last > 0);
}

/// The policy allows exactly the script and the style that are in the file.
#[test]
fn the_policy_names_what_the_file_runs() {
    let (page, _) = written(&Sample::new(), html::MAX_BYTES);
    let policy = Regex::new("<meta http-equiv=\"Content-Security-Policy\" content=\"([^\"]*)\">");
    let policy = policy.unwrap().captures(&page).expect("a policy")[1].to_owned();
    let before = &page[..page.find("Content-Security-Policy").unwrap()];
    assert!(!before.contains("<script") && !before.contains("<style"));
    let hash = |open: &str, close: &str| {
        let from = page.find(open).unwrap() + open.len();
        let end = from + page[from..].find(close).unwrap();
        BASE64.encode(&Sha256::digest(&page[from..end]))
    };
    let script = hash("<script>", "</script>");
    let style = hash("<style>", "</style>");
    assert_eq!(
        policy,
        format!(
            "default-src 'none'; script-src 'sha256-{script}'; style-src 'sha256-{style}'; base-uri 'none'; \
             form-action 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
        )
    );
    assert_eq!(page.matches("<script>").count(), 1);
    assert_eq!(page.matches("<style>").count(), 1);
}

/// Whatever a record says, the HTML around the data is the same.
#[test]
fn no_text_of_a_record_is_part_of_the_html() {
    let without_data = |sample: &Sample| {
        let (page, _) = written(sample, html::MAX_BYTES);
        let data = Regex::new(
            "(<script type=\"application/octet-stream\" id=\"[a-z0-9]+\">)[A-Za-z0-9+/=]*</script>",
        );
        data.unwrap().replace_all(&page, "$1</script>").into_owned()
    };
    let plain = outside::run(&|number| format!("text {number}"));
    let harm = outside::run(&|number| {
        format!(
            "</script><script>alert({number})</script><!-- \u{202e}\u{0} --><img src=x onerror=a>"
        )
    });
    assert_eq!(without_data(&plain), without_data(&harm));
}

#[test]
fn the_script_is_valid() {
    let node = Command::new("node")
        .args(["--check", "-"])
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    // Without Node, the tests in browsers show it.
    let Ok(mut node) = node else { return };
    let mut stdin = node.stdin.take().unwrap();
    stdin.write_all(html::script().as_bytes()).unwrap();
    drop(stdin);
    let output = node.wait_with_output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
}

#[test]
fn a_run_that_did_not_start_has_a_report_that_says_so() {
    let mut out = Vec::new();
    html::write_error("suite", 2, "</script> no such file", &mut out).unwrap();
    let page = String::from_utf8(out).unwrap();
    assert_eq!(index(&page)["refused"]["message"], "</script> no such file");
    assert!(!page.contains("no such file"));
}
