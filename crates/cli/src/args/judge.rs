//! The arguments of `proctor judge`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::OutputArgs;

/// Measure judges.
#[derive(Debug, Subcommand)]
#[command(after_help = "Examples:
  proctor judge calibrate labels.jsonl --judge openai:gpt-5")]
pub(crate) enum JudgeCommand {
    Calibrate(CalibrateArgs),
}

/// Compare a judge with people: how often do its verdicts agree with theirs?
///
/// LABELS has one JSON object a line: the criterion (`contains`, `exact` or `rubric`), the `answer`, the verdict
/// of a person as `human` (`pass` or `fail`), and optionally an `id`, the `prompt` and a recorded verdict as
/// `judge` (`pass`, `fail` or `unknown`) with its `reason`.
///
/// With `--judge` or `--with`, Proctor asks the judge about every line, as `llmJudge` steps do. Otherwise every
/// line needs a recorded verdict.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  proctor judge calibrate labels.jsonl
  proctor judge calibrate labels.jsonl --judge openai:gpt-5
  proctor judge calibrate labels.jsonl --with eval.yaml --votes 3
  proctor judge calibrate labels.jsonl --judge scripted:judge.yaml -o json | jq .kappa

Exit codes: 0 measured, 2 wrong labels or usage error, 3 inconclusive: too few labels, or the judge could
not be asked.")]
pub(crate) struct CalibrateArgs {
    /// Labels of people, as JSON lines
    #[arg(value_name = "LABELS")]
    pub(crate) labels: PathBuf,

    /// Ask this model, as provider:model-id or scripted:FILE
    #[arg(long, value_name = "MODEL")]
    pub(crate) judge: Option<String>,

    /// Ask the judge of this eval file (`config.llmJudge`)
    #[arg(long, value_name = "FILE")]
    pub(crate) with: Option<PathBuf>,

    /// Votes per label, an odd number; by default as in the eval file, or 1
    #[arg(long, value_name = "N", value_parser = votes)]
    pub(crate) votes: Option<u32>,

    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

fn votes(text: &str) -> Result<u32, String> {
    match text.parse::<u32>() {
        Ok(votes) if votes % 2 == 1 => Ok(votes),
        Ok(_) => Err("an even number can tie; use an odd number".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}
