//! The flags that set the conditions for success.

use std::path::PathBuf;

use clap::Args;
use proctor_core::suite::gates_file::parse_share;
use proctor_record::event::PassHatGate;

/// The gates. RATE is a share such as `0.9` or `90%`.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Gates (replace the rule that every trial passes)")]
pub(crate) struct GateArgs {
    /// The mean of the cases' pass rates must be at least RATE
    #[arg(long, value_name = "RATE", value_parser = parse_share)]
    pub(crate) min_pass_rate: Option<f64>,

    /// The one-sided 95% lower bound of the pass rate must be at least RATE
    #[arg(long, value_name = "RATE", value_parser = parse_share)]
    pub(crate) min_lower_bound: Option<f64>,

    /// pass^K, the average chance that K trials of a case all pass, must be at least RATE
    #[arg(long, value_name = "K=RATE", value_parser = pass_hat)]
    pub(crate) pass_hat: Option<PassHatGate>,

    /// The run must not be worse than BASE, as `proctor result diff` decides. BASE is a run's folder, `latest`,
    /// a unique part of a name, a pack, or a result file. Several suites: BASE is a folder with a run of each,
    /// and Holm corrects over suites
    #[arg(long, value_name = "BASE")]
    pub(crate) no_regression: Option<PathBuf>,

    /// At most N trials may end in an error; does not replace other gates
    #[arg(long, value_name = "N")]
    pub(crate) max_errors: Option<u32>,
}

fn pass_hat(text: &str) -> Result<PassHatGate, String> {
    let example = "write the number of trials and a rate, such as `5=0.8`";
    let (k, rate) = text.split_once('=').ok_or(example)?;
    match k.trim().parse() {
        Ok(k) if k > 0 => Ok(PassHatGate {
            k,
            rate: parse_share(rate)?,
        }),
        _ => Err(example.to_owned()),
    }
}
