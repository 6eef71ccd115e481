//! Reads the variables of known CI services.

use proctor_core::suite::Environment;
use proctor_record::event::SourceContext;

/// The CI job of this process, if a known service runs it.
pub(super) fn job(env: &Environment) -> Option<SourceContext> {
    let job = Job(env);
    let is_set = |name: &str| job.get(name).is_some();
    let context = if is_set("GITHUB_ACTIONS") {
        job.github()
    } else if is_set("GITLAB_CI") {
        job.gitlab()
    } else if is_set("JENKINS_URL") {
        job.jenkins()
    } else if is_set("TF_BUILD") {
        job.azure()
    } else if is_set("BUILDKITE") {
        job.buildkite()
    } else if is_set("CIRCLECI") {
        job.circle()
    } else {
        return None;
    };
    let is_hash = |text: &String| text.bytes().all(|byte| byte.is_ascii_hexdigit());
    Some(SourceContext {
        commit: context.commit.filter(is_hash),
        ..context
    })
}

struct Job<'a>(&'a Environment);

impl Job<'_> {
    /// The value of a variable that is set and not empty.
    fn get(&self, name: &str) -> Option<String> {
        let value = self.0.get(name).map(|value| value.trim());
        value.filter(|value| !value.is_empty()).map(str::to_owned)
    }

    /// The first of these variables that is set.
    fn first(&self, names: &[&str]) -> Option<String> {
        names.iter().find_map(|name| self.get(name))
    }

    fn github(&self) -> SourceContext {
        let repository = || {
            let server = self.get("GITHUB_SERVER_URL")?;
            Some(format!("{server}/{}", self.get("GITHUB_REPOSITORY")?))
        };
        let pull_request = || {
            let name = self.get("GITHUB_REF")?;
            let number = name.strip_prefix("refs/pull/")?.split('/').next()?;
            Some(format!("{}/pull/{number}", repository()?))
        };
        let job_url = || {
            let run = self.get("GITHUB_RUN_ID")?;
            let attempt = self.get("GITHUB_RUN_ATTEMPT");
            let attempt = attempt.map_or_else(String::new, |number| format!("/attempts/{number}"));
            Some(format!("{}/actions/runs/{run}{attempt}", repository()?))
        };
        SourceContext {
            commit: self.get("GITHUB_SHA"),
            branch: self.first(&["GITHUB_HEAD_REF", "GITHUB_REF_NAME"]),
            dirty: None,
            pull_request: pull_request(),
            job_url: job_url(),
        }
    }

    fn gitlab(&self) -> SourceContext {
        let pull_request = || {
            let project = self.get("CI_MERGE_REQUEST_PROJECT_URL")?;
            let number = self.get("CI_MERGE_REQUEST_IID")?;
            Some(format!("{project}/-/merge_requests/{number}"))
        };
        SourceContext {
            commit: self.get("CI_COMMIT_SHA"),
            branch: self.first(&["CI_MERGE_REQUEST_SOURCE_BRANCH_NAME", "CI_COMMIT_REF_NAME"]),
            dirty: None,
            pull_request: pull_request(),
            job_url: self.get("CI_JOB_URL"),
        }
    }

    fn jenkins(&self) -> SourceContext {
        SourceContext {
            commit: self.get("GIT_COMMIT"),
            branch: self.first(&["CHANGE_BRANCH", "BRANCH_NAME", "GIT_BRANCH"]),
            dirty: None,
            pull_request: self.first(&["CHANGE_URL", "CHANGE_ID"]),
            job_url: self.get("BUILD_URL"),
        }
    }

    fn azure(&self) -> SourceContext {
        let branch = self.first(&["SYSTEM_PULLREQUEST_SOURCEBRANCH", "BUILD_SOURCEBRANCH"]);
        let job_url = || {
            let collection = self.get("SYSTEM_COLLECTIONURI")?;
            let project = self.get("SYSTEM_TEAMPROJECT")?.replace(' ', "%20");
            let build = self.get("BUILD_BUILDID")?;
            let collection = collection.trim_end_matches('/');
            Some(format!(
                "{collection}/{project}/_build/results?buildId={build}"
            ))
        };
        SourceContext {
            commit: self.get("BUILD_SOURCEVERSION"),
            branch: branch.map(|name| name.trim_start_matches("refs/heads/").to_owned()),
            dirty: None,
            pull_request: self.first(&[
                "SYSTEM_PULLREQUEST_PULLREQUESTNUMBER",
                "SYSTEM_PULLREQUEST_PULLREQUESTID",
            ]),
            job_url: job_url(),
        }
    }

    fn buildkite(&self) -> SourceContext {
        let job_url = || {
            let build = self.get("BUILDKITE_BUILD_URL")?;
            Some(match self.get("BUILDKITE_JOB_ID") {
                Some(job) => format!("{build}#{job}"),
                None => build,
            })
        };
        let pull_request = self.get("BUILDKITE_PULL_REQUEST");
        SourceContext {
            commit: self.get("BUILDKITE_COMMIT"),
            branch: self.get("BUILDKITE_BRANCH"),
            dirty: None,
            pull_request: pull_request.filter(|number| number != "false"),
            job_url: job_url(),
        }
    }

    fn circle(&self) -> SourceContext {
        SourceContext {
            commit: self.get("CIRCLE_SHA1"),
            branch: self.get("CIRCLE_BRANCH"),
            dirty: None,
            pull_request: self.get("CIRCLE_PULL_REQUEST"),
            job_url: self.get("CIRCLE_BUILD_URL"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COMMIT: &str = "0123456789abcdef0123456789abcdef01234567";

    /// Checks the branch, pull request and job for the variables of a service, given as
    /// `NAME=value` words.
    fn check(variables: &str, [branch, pull_request, job_url]: [&str; 3]) {
        let pairs = variables
            .split_whitespace()
            .filter_map(|pair| pair.split_once('='));
        let env: Environment = pairs.map(|(k, v)| (k.to_owned(), v.to_owned())).collect();
        let said = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
        let expected = SourceContext {
            commit: variables.contains(COMMIT).then(|| COMMIT.to_owned()),
            branch: said(branch),
            dirty: None,
            pull_request: said(pull_request),
            job_url: said(job_url),
        };
        assert_eq!(job(&env), Some(expected), "{variables}");
    }

    #[test]
    fn github_names_its_jobs() {
        let usual = format!(
            "GITHUB_ACTIONS=true GITHUB_SHA={COMMIT} GITHUB_SERVER_URL=https://github.com \
             GITHUB_REPOSITORY=a/b GITHUB_RUN_ID=7 GITHUB_RUN_ATTEMPT=2"
        );
        let url = "https://github.com/a/b/actions/runs/7/attempts/2";
        check(
            &format!("{usual} GITHUB_REF=refs/heads/main GITHUB_REF_NAME=main GITHUB_HEAD_REF="),
            ["main", "", url],
        );
        check(
            &format!(
                "{usual} GITHUB_REF=refs/pull/9/merge GITHUB_REF_NAME=9/merge GITHUB_HEAD_REF=fix"
            ),
            ["fix", "https://github.com/a/b/pull/9", url],
        );
    }

    #[test]
    fn gitlab_names_its_jobs() {
        let usual =
            format!("GITLAB_CI=true CI_COMMIT_SHA={COMMIT} CI_JOB_URL=https://gl/a/-/jobs/1");
        let url = "https://gl/a/-/jobs/1";
        check(
            &format!("{usual} CI_COMMIT_REF_NAME=main"),
            ["main", "", url],
        );
        check(
            &format!(
                "{usual} CI_COMMIT_REF_NAME=fix CI_MERGE_REQUEST_SOURCE_BRANCH_NAME=fix \
                 CI_MERGE_REQUEST_PROJECT_URL=https://gl/a CI_MERGE_REQUEST_IID=4"
            ),
            ["fix", "https://gl/a/-/merge_requests/4", url],
        );
    }

    #[test]
    fn jenkins_names_its_jobs() {
        let usual =
            format!("JENKINS_URL=https://j/ GIT_COMMIT={COMMIT} BUILD_URL=https://j/job/1/");
        let url = "https://j/job/1/";
        check(
            &format!("{usual} GIT_BRANCH=origin/main"),
            ["origin/main", "", url],
        );
        check(
            &format!(
                "{usual} BRANCH_NAME=PR-3 CHANGE_BRANCH=fix CHANGE_ID=3 CHANGE_URL=https://h/3"
            ),
            ["fix", "https://h/3", url],
        );
    }

    #[test]
    fn azure_names_its_jobs() {
        let usual = format!(
            "TF_BUILD=True BUILD_SOURCEVERSION={COMMIT} SYSTEM_COLLECTIONURI=https://dev.azure.com/o/ \
             SYSTEM_TEAMPROJECT=p BUILD_BUILDID=5"
        );
        let url = "https://dev.azure.com/o/p/_build/results?buildId=5";
        check(
            &format!("{usual} BUILD_SOURCEBRANCH=refs/heads/a/b"),
            ["a/b", "", url],
        );
        check(
            &format!(
                "{usual} BUILD_SOURCEBRANCH=refs/pull/8/merge SYSTEM_PULLREQUEST_PULLREQUESTID=8 \
                 SYSTEM_PULLREQUEST_SOURCEBRANCH=refs/heads/fix"
            ),
            ["fix", "8", url],
        );
    }

    #[test]
    fn buildkite_names_its_jobs() {
        let usual = "BUILDKITE=true BUILDKITE_BRANCH=main BUILDKITE_BUILD_URL=https://bk/1 BUILDKITE_JOB_ID=x";
        let url = "https://bk/1#x";
        check(
            &format!("{usual} BUILDKITE_COMMIT={COMMIT} BUILDKITE_PULL_REQUEST=false"),
            ["main", "", url],
        );
        // A build that a user started has no commit yet.
        check(
            &format!("{usual} BUILDKITE_COMMIT=HEAD BUILDKITE_PULL_REQUEST=12"),
            ["main", "12", url],
        );
    }

    #[test]
    fn circleci_names_its_jobs() {
        check(
            &format!(
                "CIRCLECI=true CIRCLE_SHA1={COMMIT} CIRCLE_BRANCH=fix CIRCLE_BUILD_URL=https://c/1 \
                 CIRCLE_PULL_REQUEST=https://h/2"
            ),
            ["fix", "https://h/2", "https://c/1"],
        );
    }

    #[test]
    fn an_unknown_ci_service_has_no_job() {
        assert_eq!(job(&Environment::new()), None);
        let unset = [("CIRCLECI".to_owned(), String::new())];
        assert_eq!(job(&unset.into_iter().collect()), None);
    }
}
