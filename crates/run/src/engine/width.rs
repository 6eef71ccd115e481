//! The number of parallel trials: the requested one, as far as system limits allow.
//!
//! [`settle`] reports every reduction.

use proctor_contain::os::raise_file_limit;
use proctor_record::hint::counted;

use super::options::WidthOption;
use crate::runner::{Parallelism, TrialList};

/// The number of open files that Proctor needs apart from trials.
const OWN_FILES: u64 = 64;

/// The number of open files of a trial apart from its servers, for its record and its model.
const TRIAL_FILES: u64 = 8;

/// The number of open files per server of a trial: pipes, the guard, or connections.
const SERVER_FILES: u64 = 8;

/// The maximum of open files to request. Servers inherit this limit, and some loop over all
/// descriptors.
const ENOUGH_FILES: u64 = 65_536;

/// The maximum of parallel trials.
const MOST: u64 = 1000;

/// The number of parallel trials, with warnings and notes about it.
pub fn settle(
    option: WidthOption,
    trials: &TrialList,
    servers: usize,
) -> (Parallelism, Vec<String>) {
    let files = raise_file_limit(ENOUGH_FILES);
    let (flag, asked) = match option {
        WidthOption::Jobs(jobs) => ("--jobs", jobs),
        WidthOption::Parallel(parallel) => ("--parallel", parallel),
    };
    let wanted = u64::from(asked).min(trials.len().max(1) as u64);
    let allowed = allowed(servers as u64, files);
    let mut said = Vec::new();
    if wanted > allowed {
        let at_once = counted(usize::try_from(allowed).unwrap_or(usize::MAX), "trial");
        let why = match files {
            Some(files) if allowed < MOST => format!("the limit of {files} open files"),
            _ => "Proctor's own limit".to_owned(),
        };
        said.push(format!(
            "warning: `{flag} {asked}` is too high: running at most {at_once} at once because of {why}"
        ));
    }
    let width = usize::try_from(wanted.min(allowed)).unwrap_or(1);
    let unwilling = trials.iter().filter(|trial| !trial.parallel).count();
    let is_jobs = matches!(option, WidthOption::Jobs(_));
    if is_jobs && width > 1 && unwilling > 0 {
        let unwilling = counted(unwilling, "trial");
        said.push(format!(
            "note: `--jobs` runs {unwilling} of tasks without `parallel: true` in parallel"
        ));
    }
    let width = if is_jobs {
        Parallelism::Any(width)
    } else {
        Parallelism::Willing(width)
    };
    (width, said)
}

/// The number of trials with this many servers for which enough files can be open.
fn allowed(servers: u64, files: Option<u64>) -> u64 {
    let Some(files) = files else {
        return MOST;
    };
    let each = TRIAL_FILES.saturating_add(SERVER_FILES.saturating_mul(servers));
    (files.saturating_sub(OWN_FILES) / each).clamp(1, MOST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn open_files_limit_the_number_of_parallel_trials() {
        for (servers, files, expected) in [
            (1, None, 1000),
            (1, Some(1024), 60),
            (4, Some(1024), 24),
            (1, Some(120), 3),
            (1, Some(64), 1),
            (0, Some(0), 1),
            (1, Some(u64::MAX), 1000),
            (u64::MAX, Some(1024), 1),
        ] {
            assert_eq!(allowed(servers, files), expected, "{servers} {files:?}");
        }
    }
}
