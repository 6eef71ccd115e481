//! Resolves the steps of a run: `config.setup` and `config.cleanup` of an eval file.

use std::collections::BTreeMap;

use proctor_record::phase::Phase;
use proctor_record::problem::{Code, Problem};

use super::Step;
use super::eval_file::{EvalConfig, Isolation};
use super::files::FileOrigin;
use super::load::Loader;
use super::step::resolve::{AliasTarget, RowNames, StepOwner, StepScope, resolve_phases};
use crate::decode::Context;

impl Loader<'_> {
    /// The setup and the cleanup of a run. They can use extensions, but no servers: none has started.
    pub(super) fn run_steps(
        &self,
        config: &EvalConfig,
        cx: &Context<'_>,
    ) -> (Vec<Step>, Vec<Step>) {
        let aliases = config.extensions.iter().map(|(alias, _)| &alias.value);
        let providers: BTreeMap<String, AliasTarget> = aliases
            .map(|alias| (alias.clone(), AliasTarget::Extension(alias.clone())))
            .collect();
        let scope = StepScope {
            cx,
            origin: &FileOrigin::Own,
            env: self.inputs.env,
            providers: &providers,
            has_judge: Some(true),
            columns: RowNames::NoRows,
            owner: StepOwner::Run,
        };
        let [setup, _, cleanup] = resolve_phases(
            [
                (Phase::Setup, &config.setup),
                (Phase::Grade, &[]),
                (Phase::Cleanup, &config.cleanup),
            ],
            &scope,
        );
        (setup, cleanup)
    }
}

/// Whether servers are started before the first trial. Reports what needs that.
pub(super) fn preflight(config: &EvalConfig, cx: &Context<'_>) -> bool {
    let Some(written) = config.preflight.as_ref().filter(|written| !written.value) else {
        return true;
    };
    let conflicts = [
        (
            config.isolation == Some(Isolation::Run),
            "`isolation: run`, whose servers start before the first trial",
        ),
        (
            config.surface.is_some(),
            "`surface`, which is checked before the first trial",
        ),
    ];
    for (_, other) in conflicts.iter().filter(|(is_there, _)| *is_there) {
        let message = format!("`preflight: false` conflicts with {other}");
        cx.report(written.span, Problem::error(Code::Conflict, message));
    }
    false
}
