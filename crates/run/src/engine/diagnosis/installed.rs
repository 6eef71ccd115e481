//! The programs that servers often need, and the agents that Proctor knows.

use std::path::Path;

use proctor_contain::program;

use super::{Diagnosis, DiagnosisArea, DiagnosisState};
use crate::engine::Engine;
use crate::external::{AgentKey, Survey, check_programs, program_version, survey_known};

/// Programs that start servers, with how to install them.
const PROGRAMS: [(&str, &str); 5] = [
    ("node", "install Node.js: https://nodejs.org/en/download"),
    ("npx", "install Node.js: https://nodejs.org/en/download"),
    (
        "python3",
        "install Python: https://www.python.org/downloads/",
    ),
    ("uvx", "pip install uv"),
    ("git", "install git: https://git-scm.com/downloads"),
];

pub(super) async fn programs(engine: &Engine) -> Vec<Diagnosis> {
    let checks = PROGRAMS.map(|(name, install)| program(engine, name, install));
    let mut all = Vec::new();
    for check in checks {
        all.push(check.await);
    }
    all
}

async fn program(engine: &Engine, name: &str, install: &str) -> Diagnosis {
    let area = DiagnosisArea::Programs;
    let env = &engine.environment;
    let path = env.get("PATH").map(String::as_str);
    let path = match program::resolve(name.as_ref(), Path::new("."), path) {
        Ok(path) => path,
        Err(error) => {
            return Diagnosis::new(area, name, DiagnosisState::Missing, error.to_string())
                .mended_by(install);
        }
    };
    let version = program_version(name, env, &std::env::temp_dir(), &engine.program).await;
    match version {
        Ok(version) => {
            let detail = format!("{version} ({})", path.display());
            Diagnosis::new(area, name, DiagnosisState::Ok, detail)
        }
        Err(reason) => {
            let detail = format!("{}: {reason}", path.display());
            Diagnosis::new(area, name, DiagnosisState::Missing, detail).mended_by(install)
        }
    }
}

/// The external agents that Proctor knows.
pub(super) async fn agents(engine: &Engine) -> Vec<Diagnosis> {
    let mut surveys = survey_known(&engine.environment);
    surveys.retain(|survey| survey.program.is_some());
    let checked = check_programs(&mut surveys, &engine.environment, &[], &engine.program).await;
    if let Err(error) = checked {
        let detail = format!("can't start programs: {error}");
        let state = DiagnosisState::Missing;
        return vec![Diagnosis::new(
            DiagnosisArea::Agents,
            "agents",
            state,
            detail,
        )];
    }
    let diagnosis = |survey: &Survey| agent(DiagnosisArea::Agents, survey, DiagnosisState::Missing);
    surveys.iter().map(diagnosis).collect()
}

/// The check of one agent. `lacking` is its state if it can't run.
pub(super) fn agent(area: DiagnosisArea, survey: &Survey, lacking: DiagnosisState) -> Diagnosis {
    let name = survey.name.clone();
    if survey.is_usable() {
        let program = survey.program.as_ref();
        let version = program.and_then(|program| program.version.clone());
        let version = version.unwrap_or_else(|| "can run".to_owned());
        let key = match &survey.key {
            AgentKey::Found(variable) => format!(", {variable} is set"),
            AgentKey::NotNeeded | AgentKey::Wanted(_) | AgentKey::Own => String::new(),
        };
        return Diagnosis::new(area, name, DiagnosisState::Ok, format!("{version}{key}"));
    }
    let is_absent = |survey: &Survey| {
        let program = survey.program.as_ref();
        program.is_some_and(|program| program.path.is_none())
    };
    let detail = match (&survey.broken, &survey.key) {
        (Some(broken), _) => broken.clone(),
        (None, _) if is_absent(survey) => "program not found".to_owned(),
        (None, AgentKey::Wanted(_)) => "no key is set".to_owned(),
        (None, _) => survey.problem.clone().unwrap_or_default(),
    };
    let diagnosis = Diagnosis::new(area, name, lacking, detail);
    match survey.remedies().first() {
        Some(remedy) => diagnosis.mended_by(remedy),
        None => diagnosis,
    }
}
