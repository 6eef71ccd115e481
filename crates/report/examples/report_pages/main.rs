//! Writes HTML reports of runs of every sort into a folder, for the tests in browsers (`crates/report/browser`).
//!
//! The runs are written by the real writer, except that most trials of the large one are copies.

#![expect(clippy::print_stdout, reason = "the figures are the result")]
#![expect(clippy::expect_used, reason = "a failure ends the program")]

mod events;
mod runs;
mod trial;

use std::fs::{self, File};
use std::io::BufWriter;
use std::path::{Path, PathBuf};

use proctor_core::gate::Gate;
use proctor_core::import::import;
use proctor_core::summary::Summary;
use proctor_record::record::RunReader;
use proctor_record::redact::Redactor;
use proctor_report::{Report, html, json};

/// Writes a run into a folder.
type RunWriterFn = fn(&Path);

fn main() {
    let mut words = std::env::args().skip(1);
    let folder = PathBuf::from(words.next().expect("usage: report_pages FOLDER [KIND]..."));
    let wanted: Vec<String> = words.collect();
    let kinds: [(&str, RunWriterFn); 7] = [
        ("two-agents", runs::two_agents),
        ("one", runs::one),
        ("interrupted", runs::interrupted),
        ("killed", runs::killed),
        ("hostile", runs::hostile),
        ("imported", imported),
        ("large", runs::large),
    ];
    fs::create_dir_all(&folder).expect("a folder");
    for (kind, write) in kinds {
        if !wanted.is_empty() && !wanted.iter().any(|word| word == kind) {
            continue;
        }
        let run = folder.join(kind);
        if run.exists() {
            fs::remove_dir_all(&run).expect("the old run can be removed");
        }
        write(&run);
        report(&run, &folder, kind);
    }
    let file = File::create(folder.join("refused.html")).expect("a file");
    html::write_error(
        "suite",
        2,
        "can't read `eval.yaml`",
        &mut BufWriter::new(file),
    )
    .expect("a page");
}

/// Writes the report as HTML, and as JSON to compare it with.
fn report(folder: &Path, out: &Path, kind: &str) {
    let run = RunReader::open(folder).expect("a run");
    let summary = Summary::checked(&run).expect("a summary");
    let gate = Gate::of(&summary);
    let report = Report::new(&run, &summary, &gate);
    let page = File::create(out.join(format!("{kind}.html"))).expect("a file");
    let contents =
        html::write(&report, html::MAX_BYTES, &mut BufWriter::new(page)).expect("a page");
    if kind != "large" {
        let text = File::create(out.join(format!("{kind}.json"))).expect("a file");
        json::write(&report, &mut BufWriter::new(text)).expect("a document");
    }
    println!(
        "{kind}: {} trials, details of {}, {} kB",
        summary.trials().count(),
        contents.detailed,
        contents.bytes / 1000
    );
}

/// A result file of mcpchecker.
fn imported(folder: &Path) {
    let results = Path::new(env!("CARGO_MANIFEST_DIR")).join("../core/tests/results");
    let file = results.join("mcpchecker-shop-out.json");
    import(&file, folder, Redactor::default()).expect("a result file");
}
