//! Whether Proctor can start a program, and end it with everything that it started.

use std::path::Path;
use std::time::Duration;

use proctor_contain::os;
use proctor_contain::process::{GRACE, ProcessExit, Spawn};
use rustix::process::{Pid, test_kill_process};
use tokio::io::AsyncReadExt;

use super::{Diagnosis, DiagnosisArea, DiagnosisState};
use crate::engine::Engine;

/// Leaves a process behind, and prints its id.
const LEAVES_ONE: &str = "sleep 600 </dev/null >/dev/null 2>&1 & echo $!";

/// The guard ends what a program leaves within seconds.
const TIMEOUT: Duration = Duration::from_mins(1);

pub(super) fn version(program: &Path) -> Diagnosis {
    let name = format!("proctor {}", env!("CARGO_PKG_VERSION"));
    let (system, processor) = (std::env::consts::OS, std::env::consts::ARCH);
    let detail = format!("{} ({system}, {processor})", program.display());
    Diagnosis::new(DiagnosisArea::Proctor, name, DiagnosisState::Ok, detail)
}

/// Starts a program that leaves a process behind, and checks that the process is ended.
pub(super) async fn contains(engine: &Engine) -> Diagnosis {
    let area = DiagnosisArea::Proctor;
    let tried = tokio::time::timeout(TIMEOUT, leave_one(engine)).await;
    match tried.unwrap_or_else(|_| Err("the program did not end".to_owned())) {
        Ok(()) => {
            let detail = format!("ended what a program left running, {}", os::SEARCH);
            Diagnosis::new(area, "containment", DiagnosisState::Ok, detail)
        }
        Err(reason) => Diagnosis::new(area, "containment", DiagnosisState::Failed, reason)
            .mended_by("allow Proctor to start and signal processes; in a container, check its seccomp profile"),
    }
}

async fn leave_one(engine: &Engine) -> Result<(), String> {
    let spawn = Spawn {
        program: "sh".into(),
        args: vec!["-c".into(), LEAVES_ONE.into()],
        env: engine.environment.clone(),
        folder: std::env::temp_dir(),
        guard: engine.program.clone(),
        grace: GRACE,
    };
    let mut process = spawn.start().map_err(|error| error.to_string())?;
    process.stdin = None;
    let mut printed = String::new();
    if let Some(mut stdout) = process.stdout.take() {
        let read = stdout.read_to_string(&mut printed).await;
        read.map_err(|error| format!("can't read the output of `sh`: {error}"))?;
    }
    let ended = process.wait().await;
    if ended != ProcessExit::Exited(0) {
        return Err(format!("`sh` {ended}"));
    }
    let pid = printed.trim().parse().ok().and_then(Pid::from_raw);
    let pid = pid.ok_or_else(|| "`sh` printed no process id".to_owned())?;
    match test_kill_process(pid) {
        Err(rustix::io::Errno::SRCH) => Ok(()),
        _ => Err("a process that a program left is still running".to_owned()),
    }
}
