//! Records the end of a step, even if the step is dropped.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use proctor_core::suite::step::Step;
use proctor_record::event::{Body, EventKind, Phase, StepEnded};
use proctor_record::redact::Redactor;
use proctor_record::verdict::Verdict;

use super::ActionOutcome;
use proctor_contain::tail::Tail;
use proctor_wire::recorder::Recorder;

/// The recorded length of one output. The source of the output is recorded in full.
const OUTPUT: usize = 1000;

/// Writes the end of the step when it ends or is dropped.
pub(super) struct StepEndRecorder {
    recorder: Recorder,
    redactor: Redactor,
    phase: Phase,
    id: String,
    kind: String,
    started: Instant,
    /// The output of the step so far.
    pub(super) written: Option<Tail>,
    is_over: bool,
}

impl StepEndRecorder {
    pub(super) fn start(recorder: Recorder, redactor: Redactor, phase: Phase, step: &Step) -> Self {
        Self {
            recorder,
            redactor,
            phase,
            id: step.id.clone(),
            kind: step.kind.clone(),
            started: Instant::now(),
            written: None,
            is_over: false,
        }
    }

    /// Writes the result of the step, and returns its duration.
    pub(super) fn end(mut self, done: &ActionOutcome) -> Duration {
        self.is_over = true;
        let outputs = done.outputs.iter();
        let shown = outputs.map(|(name, value)| {
            let value: Cow<'_, str> = match name.strip_prefix("header-") {
                Some(header) => self.redactor.header(header, value).into(),
                None => value.into(),
            };
            (name.clone(), self.redactor.head(value.as_bytes(), OUTPUT))
        });
        self.write(done.verdict.clone(), done.output.clone(), shown.collect())
    }

    fn write(
        &self,
        verdict: Verdict,
        output: Option<String>,
        outputs: BTreeMap<String, String>,
    ) -> Duration {
        let duration = self.started.elapsed();
        self.recorder.record(EventKind::StepEnded(StepEnded {
            phase: self.phase,
            id: self.id.clone(),
            kind: self.kind.clone(),
            verdict,
            output: output.filter(|text| !text.is_empty()).map(Body::Text),
            outputs,
            duration: u64::try_from(duration.as_micros()).unwrap_or(u64::MAX),
        }));
        duration
    }
}

impl Drop for StepEndRecorder {
    fn drop(&mut self) {
        if !self.is_over {
            let output = self.written.as_ref();
            let output = output.map(|written| written.text_and_gap(&self.redactor));
            let verdict = Verdict::unknown("the step was interrupted");
            self.write(verdict, output, BTreeMap::new());
        }
    }
}
