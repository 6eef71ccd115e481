//! `proctor lint`: what makes the tools of servers hard to use or unsafe.

use proctor_core::lint::{LintFinding, LintedServer, SwitchedOffRule, lint};
use proctor_report::lint as report;

use super::session::CommandOutcome;
use super::survey::{OfferedServers, survey, survey_suite};
use crate::args::{LintArgs, LintFormat};
use crate::exit::Exit;
use crate::output;

pub(crate) fn run(args: &LintArgs) -> anyhow::Result<Exit> {
    let show = |offered: OfferedServers, off: Vec<SwitchedOffRule>| {
        let findings = lint(&linted(offered), &off);
        match args.output {
            LintFormat::Text => output::report(&report::text(&findings))?,
            LintFormat::Json => output::json(&report::document(&findings))?,
            LintFormat::Github => output::ci_result(&report::github(&findings))?,
        }
        let limit = args.fail_on.severity();
        let counts =
            |finding: &&LintFinding| finding.off.is_none() && finding.rule.severity() <= limit;
        Ok(match findings.iter().filter(counts).count() {
            0 => CommandOutcome::ok(),
            count => {
                let count = super::counted(count, "finding");
                let word = limit.word();
                let reason = format!("{count} of severity `{word}` or above");
                CommandOutcome::because(Exit::Failed, reason)
            }
        })
    };
    match &args.file {
        Some(file) => survey_suite(file, &args.server, "lint", |offered, suite| {
            let off = args.off.iter().chain(&suite.lint_off).cloned().collect();
            show(offered, off)
        }),
        None => survey(&args.server, "lint", |offered, _| {
            show(offered, args.off.clone())
        }),
    }
}

fn linted(offered: OfferedServers) -> Vec<LintedServer> {
    let servers = offered.0.into_iter();
    servers
        .map(|(name, surface)| LintedServer { name, surface })
        .collect()
}
