//! `grades/NAME.jsonl`: the results of a regrade, beside the record that they are about.
//!
//! The main type is [`GradesWriter`]. The first line is [`GradesHeader`], then there is a line for each
//! trial, and the last line is [`GradesEnd`]: a file without it is incomplete. The record itself never
//! changes.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use data_encoding::HEXLOWER;
use proctor_record::record::{GRADES, RecordError, RunReader};
use proctor_record::redact::Redactor;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::regrade::GradedTrial;

/// The version of the files that this program writes.
pub const GRADES_VERSION: u32 = 1;

/// How a run was graded again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GradesHeader {
    pub version: u32,
    /// The version of Proctor that graded.
    pub proctor: String,
    /// The start of the graded run by the wall clock, which identifies it.
    pub run: String,
    /// The path of the eval file; `None` for shipped evals without a suite.
    pub eval: Option<String>,
    /// The SHA-256 of all checks.
    pub hash: String,
    /// The judge that was asked; `None` if none was.
    pub judge: Option<String>,
    pub cases: Vec<GradedCase>,
}

/// The checks of a case.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GradedCase {
    /// The case, as the plan identifies it.
    pub case: String,
    /// The SHA-256 of the case and the files that it names.
    pub hash: String,
    /// The assertions, as Proctor reads them.
    pub checks: Vec<Value>,
    /// The ids of the verify steps.
    pub verify: Vec<String>,
}

/// The end of a grades file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GradesEnd {
    pub trials: u64,
    pub changed: u64,
    /// The exit code of the gate by these grades.
    pub exit: u8,
}

/// A line of the file.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum GradesLine<H = GradesHeader, T = GradedTrial, E = GradesEnd> {
    Grades(H),
    Trial(T),
    Ended(E),
}

/// Writes a grades file. It gets its name when it is complete.
#[derive(Debug)]
pub struct GradesWriter {
    temporary: PathBuf,
    path: PathBuf,
    file: BufWriter<File>,
    redactor: Redactor,
}

impl GradesWriter {
    /// Starts a file in the folder of a run.
    pub fn create(
        run: &RunReader,
        name: &str,
        redactor: Redactor,
        header: &GradesHeader,
    ) -> Result<Self, RecordError> {
        let (path, temporary, file) = run.file_beside(GRADES, &format!("{name}.jsonl"))?;
        let mut writer = Self {
            temporary,
            path,
            file: BufWriter::new(file),
            redactor,
        };
        let line: GradesLine<&GradesHeader, GradedTrial, GradesEnd> = GradesLine::Grades(header);
        writer.line(&line)?;
        Ok(writer)
    }

    pub fn trial(&mut self, trial: &GradedTrial) -> Result<(), RecordError> {
        let line: GradesLine<GradesHeader, &GradedTrial, GradesEnd> = GradesLine::Trial(trial);
        self.line(&line)
    }

    /// Ends the file and returns its path. A file of the same name is replaced.
    pub fn end(mut self, ended: GradesEnd) -> Result<PathBuf, RecordError> {
        self.line(&GradesLine::<GradesHeader, GradedTrial>::Ended(ended))?;
        let Self {
            temporary,
            path,
            file,
            ..
        } = self;
        let failed = |error: std::io::Error| RecordError::io("write", &temporary)(error);
        let file = file
            .into_inner()
            .map_err(|error| failed(error.into_error()))?;
        file.sync_data().map_err(failed)?;
        fs::rename(&temporary, &path).map_err(RecordError::io("rename", &temporary))?;
        Ok(path)
    }

    /// Writes a line, redacted: a suite may contain secrets that the record does not.
    fn line(&mut self, line: &impl Serialize) -> Result<(), RecordError> {
        let written = serde_json::to_string(line)
            .map_err(std::io::Error::from)
            .and_then(|text| {
                self.file.write_all(self.redactor.text(&text).as_bytes())?;
                self.file.write_all(b"\n")
            });
        written.map_err(RecordError::io("write", &self.temporary))
    }
}

/// The SHA-256 of the checks of all cases.
pub fn hash_of(cases: &[GradedCase]) -> String {
    let mut hash = Sha256::new();
    for case in cases {
        // Neither an id nor a hash contains a line feed.
        hash.update(format!("{}\n{}\n", case.case, case.hash));
    }
    HEXLOWER.encode(&hash.finalize())
}

/// The name of a grades file for an eval file and its checks: the same checks have the same name.
pub fn file_name(eval: Option<&Path>, hash: &str) -> String {
    let stem = eval
        .and_then(Path::file_stem)
        .map(|stem| stem.to_string_lossy());
    let stem = proctor_record::record::trial_stem(stem.as_deref().unwrap_or("evals"));
    let hash: String = hash.chars().take(8).collect();
    format!("{stem}-{hash}")
}
