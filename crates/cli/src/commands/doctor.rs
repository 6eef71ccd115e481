//! `proctor doctor`: what is installed and works here, what is missing, and how to mend it.

use std::path::Path;

use anstyle::{AnsiColor, Style};
use anyhow::Context;
use proctor_core::printable::printable;
use proctor_core::suite::{Inputs, LoadedFile, Suite, load_any};
use proctor_record::problem::{Code, Problems};
use proctor_run::engine::diagnosis::{Diagnosis, DiagnosisArea, DiagnosisOptions, DiagnosisState};
use serde_json::{Value, json};

use super::{counted, drawn, engine, environment, tally, until_stopped};
use crate::args::{DoctorArgs, OutputFormat};
use crate::exit::Exit;
use crate::output;

pub(crate) fn run(args: &DoctorArgs) -> anyhow::Result<Exit> {
    let engine = engine()?;
    let suite = args.file.as_deref().map(|file| load(file, args));
    let suite = suite.transpose()?;
    let options = DiagnosisOptions {
        folder: std::env::current_dir().context("can't determine the working directory")?,
        pass_env: args.pass_env.clone(),
        timeouts: args.timeouts.timeouts(),
        reach_models: args.reach,
    };
    let loaded = suite.as_ref().and_then(|suite| suite.as_ref().ok());
    let mut all = until_stopped(engine.diagnose(loaded, &options))?;
    // Programs and servers may print secrets.
    let redactor = engine.redactor(loaded.map_or(&[], |suite| &suite.servers));
    for check in &mut all {
        check.detail = redactor.text(&check.detail).into_owned();
    }
    all.extend(suite.and_then(Result::err));
    match args.output.output {
        OutputFormat::Json => output::json(&document(&all))?,
        OutputFormat::Text => output::report(&render(&all))?,
    }
    Ok(if is_healthy(&all) {
        Exit::Ok
    } else {
        Exit::Failed
    })
}

/// The suite of a file, or the check that failed. Shows the problems of its files.
fn load(file: &Path, args: &DoctorArgs) -> anyhow::Result<Result<Suite, Diagnosis>> {
    let (env, roots) = (environment(), args.loading.source_roots());
    let inputs = Inputs {
        env: &env,
        source_roots: &roots,
        runs: None,
        mcp_config: args.loading.mcp_config_file.as_deref(),
        judge_given: false,
    };
    let mut problems = Problems::default();
    let loaded = load_any(file, &inputs, &mut problems);
    problems.promote(Code::UnsetVariable);
    output::message(&drawn(&problems))?;
    let detail = match loaded {
        Some(LoadedFile::Suite(suite)) if !problems.has_errors() => return Ok(Ok(*suite)),
        _ if problems.has_errors() => tally(&problems),
        _ => "not an eval file".to_owned(),
    };
    let name = file.display().to_string();
    let failed = Diagnosis::new(DiagnosisArea::Suite, name, DiagnosisState::Failed, detail);
    Ok(Err(failed.mended_by(format!(
        "proctor validate '{}'",
        file.display()
    ))))
}

fn is_healthy(all: &[Diagnosis]) -> bool {
    all.iter()
        .all(|check| check.state != DiagnosisState::Failed)
}

fn document(all: &[Diagnosis]) -> Value {
    let checks = all.iter().map(|check| {
        json!({
            "area": check.area.word(),
            "name": check.name,
            "state": check.state.word(),
            "detail": check.detail,
            "remedy": check.remedy,
        })
    });
    json!({"healthy": is_healthy(all), "checks": checks.collect::<Vec<_>>()})
}

fn render(all: &[Diagnosis]) -> String {
    let mut out = String::new();
    let mut area = None;
    let shown = |check: &Diagnosis| printable(&check.name).into_owned();
    let widest = all.iter().map(|check| shown(check).chars().count()).max();
    let widest = widest.unwrap_or(0).min(24);
    for check in all {
        if area.replace(check.area) != Some(check.area) {
            out.push_str(&format!("{}\n", title(check.area)));
        }
        let (style, word) = (style(check.state), check.state.word());
        let detail = output::printable_lines(&check.detail);
        let detail = detail.replace('\n', "\n    ");
        let name = shown(check);
        out.push_str(&format!(
            "  {style}{word:<7}{style:#}  {name:<widest$}  {detail}\n"
        ));
        if let Some(remedy) = &check.remedy {
            out.push_str(&format!("           → {}\n", printable(remedy)));
        }
    }
    let failed = all.iter().filter(|it| it.state == DiagnosisState::Failed);
    out.push_str(&match failed.count() {
        0 => "\nEverything required works.\n".to_owned(),
        count => format!("\n{} failed.\n", counted(count, "check")),
    });
    out
}

fn title(area: DiagnosisArea) -> &'static str {
    match area {
        DiagnosisArea::Proctor => "Proctor",
        DiagnosisArea::Folder => "This folder",
        DiagnosisArea::Programs => "Programs that servers often need",
        DiagnosisArea::Agents => "Agents",
        DiagnosisArea::Models => "Keys for models",
        DiagnosisArea::Suite => "Suite",
    }
}

fn style(state: DiagnosisState) -> Style {
    let colour = match state {
        DiagnosisState::Ok => AnsiColor::Green,
        DiagnosisState::Missing => AnsiColor::BrightYellow,
        DiagnosisState::Failed => AnsiColor::BrightRed,
    };
    colour.on_default().bold()
}
