//! How evals came out, read from the record of their run.

use std::collections::BTreeMap;
use std::path::Path;

use proctor_record::event::{Blame, CheckEvaluated, EventKind, Outcome, Purpose, TrialEnded};
use proctor_record::fold::{FoldOptions, FoldedTrial, fold_trial};
use proctor_record::record::RunReader;

/// How an eval came out.
#[derive(Debug, Clone, PartialEq)]
pub enum EvalEnd {
    Ran(TrialEnded),
    Invalid(String),
    Skipped(String),
}

/// What a model was asked.
#[derive(Debug)]
pub struct ModelRequestSeen {
    pub purpose: Purpose,
    pub model: String,
    pub request: String,
}

/// The record of one eval that was run.
pub struct Record {
    pub folded: FoldedTrial,
    pub asked: Vec<ModelRequestSeen>,
    pub graded: Vec<CheckEvaluated>,
}

/// How all evals came out, by id.
pub struct EvalRun {
    pub ends: BTreeMap<String, EvalEnd>,
    pub records: BTreeMap<String, Record>,
}

/// The records of a run, by the ids of the evals.
pub fn read(run: &Path) -> BTreeMap<String, Record> {
    let reader = RunReader::open(run).unwrap();
    let mut records = BTreeMap::new();
    for trial in reader.trials().unwrap() {
        let folded = fold_trial(&reader, &trial, &FoldOptions::default()).unwrap();
        let (mut asked, mut graded) = (Vec::new(), Vec::new());
        for event in reader.trial(&trial).unwrap() {
            match event.unwrap().event {
                EventKind::ModelAsked(question) => {
                    let bytes = reader.body_bytes(&question.request).unwrap();
                    asked.push(ModelRequestSeen {
                        purpose: question.purpose,
                        model: question.model,
                        request: String::from_utf8(bytes.unwrap_or_default().to_vec()).unwrap(),
                    });
                }
                EventKind::Graded(grade) => graded.push(grade),
                _ => {}
            }
        }
        let case = &folded.started.as_ref().unwrap().case;
        let id = case.split_once('#').unwrap().1.to_owned();
        let record = Record {
            folded,
            asked,
            graded,
        };
        records.insert(id, record);
    }
    records
}

impl EvalRun {
    /// In a word, and who is to blame.
    pub fn end(&self, id: &str) -> (&'static str, Option<Blame>) {
        match &self.ends[id] {
            EvalEnd::Invalid(_) => ("invalid", None),
            EvalEnd::Skipped(_) => ("skipped", None),
            EvalEnd::Ran(ended) => {
                let word = match ended.outcome {
                    Outcome::Passed => "passed",
                    Outcome::Failed => "failed",
                    Outcome::TimedOut => "timed out",
                    Outcome::Errored => "errored",
                    Outcome::Cancelled => "cancelled",
                };
                (word, ended.blame)
            }
        }
    }

    pub fn reason(&self, id: &str) -> &str {
        match &self.ends[id] {
            EvalEnd::Invalid(reason) | EvalEnd::Skipped(reason) => reason,
            EvalEnd::Ran(ended) => ended.reason.as_deref().unwrap_or(""),
        }
    }

    /// Everything that was asked of the model, or of the judge, for an eval.
    pub fn asked(&self, id: &str, purpose: Purpose) -> Vec<&str> {
        let all = self.records[id].asked.iter();
        let those = all.filter(|asked| asked.purpose == purpose);
        those.map(|asked| asked.request.as_str()).collect()
    }

    #[track_caller]
    pub fn assert(&self, id: &str, end: &str, blame: Option<Blame>) {
        let (found, blamed) = self.end(id);
        assert_eq!((found, blamed), (end, blame), "{id}: {:?}", self.ends[id]);
    }
}
