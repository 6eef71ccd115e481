//! Finds the commit and the CI job of a run, from files and variables alone.
//!
//! It starts no program, and ignores files that git would not write. `dirty` stays unset, because
//! only git's objects show what is staged. It does not read remotes, since their URLs may contain
//! passwords.

mod ci;
mod git;

use std::path::Path;

use proctor_core::suite::Environment;
use proctor_record::event::SourceContext;

/// The context of a run in this folder; `None` without a repository and CI. The checkout takes
/// precedence over CI variables.
pub(super) fn read(folder: &Path, env: &Environment) -> Option<SourceContext> {
    let head = git::head(folder).unwrap_or_default();
    let job = ci::job(env).unwrap_or_default();
    let context = SourceContext {
        commit: head.commit.or(job.commit),
        branch: head.branch.or(job.branch),
        dirty: None,
        pull_request: job.pull_request,
        job_url: job.job_url,
    };
    (context != SourceContext::default()).then_some(context)
}

#[cfg(test)]
mod tests {
    use super::*;

    const OTHER: &str = "ffffffffffffffffffffffffffffffffffffffff";

    fn environment(pairs: &[(&str, &str)]) -> Environment {
        let pairs = pairs.iter();
        pairs
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect()
    }

    #[test]
    fn the_checkout_takes_precedence_over_ci_variables() {
        let circle = environment(&[
            ("CIRCLECI", "true"),
            ("CIRCLE_SHA1", OTHER),
            ("CIRCLE_BRANCH", "topic"),
            ("CIRCLE_BUILD_URL", "https://ci/1"),
        ]);
        let folder = tempfile::tempdir().unwrap();
        let outside = read(folder.path(), &circle).unwrap();
        assert_eq!(outside.commit.as_deref(), Some(OTHER));
        let commit = "0123456789012345678901234567890123456789";
        let git = folder.path().join(".git");
        std::fs::create_dir(&git).unwrap();
        std::fs::write(git.join("HEAD"), format!("{commit}\n")).unwrap();
        let inside = read(folder.path(), &circle).unwrap();
        assert_eq!(inside.commit.as_deref(), Some(commit));
        // HEAD is detached, as in most CI jobs.
        assert_eq!(inside.branch.as_deref(), Some("topic"));
        assert_eq!(inside.job_url.as_deref(), Some("https://ci/1"));
    }

    #[test]
    fn without_a_repository_and_ci_there_is_no_context() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(read(folder.path(), &Environment::new()), None);
    }
}
