//! Whether runs can be recorded here.

use std::path::Path;

use super::{Diagnosis, DiagnosisArea, DiagnosisState};

/// Records of a few trials fit.
const ENOUGH: u64 = 100 << 20;

pub(super) fn check(folder: &Path) -> Vec<Diagnosis> {
    // The folder of the runs may not exist yet.
    let runs = folder.join(".proctor");
    let folder = if runs.is_dir() { &runs } else { folder };
    vec![writable(folder), free_space(folder)]
}

fn writable(folder: &Path) -> Diagnosis {
    let (area, shown) = (DiagnosisArea::Folder, folder.display());
    match tempfile::NamedTempFile::new_in(folder) {
        Ok(_) => {
            let detail = format!("{shown} is writable");
            Diagnosis::new(area, "records", DiagnosisState::Ok, detail)
        }
        Err(error) => {
            let detail = format!("can't write to {shown}: {}", error.kind());
            Diagnosis::new(area, "records", DiagnosisState::Failed, detail)
                .mended_by(format!("chmod u+w '{shown}'"))
        }
    }
}

fn free_space(folder: &Path) -> Diagnosis {
    let area = DiagnosisArea::Folder;
    let Ok(system) = rustix::fs::statvfs(folder) else {
        let detail = format!("unknown for {}", folder.display());
        return Diagnosis::new(area, "free space", DiagnosisState::Missing, detail);
    };
    let free = system.f_bavail.saturating_mul(system.f_frsize);
    let detail = format!("{} MB", free / 1_000_000);
    if free >= ENOUGH {
        return Diagnosis::new(area, "free space", DiagnosisState::Ok, detail);
    }
    Diagnosis::new(area, "free space", DiagnosisState::Failed, detail)
        .mended_by("delete old runs in .proctor/runs, or free disk space")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_that_does_not_exist_fails() {
        let folder = tempfile::tempdir().unwrap();
        let found = check(folder.path());
        assert!(found.iter().all(|it| it.state == DiagnosisState::Ok));
        let found = check(&folder.path().join("none"));
        assert_eq!(found[0].state, DiagnosisState::Failed, "{found:?}");
        // Nothing is left behind.
        assert_eq!(folder.path().read_dir().unwrap().count(), 0);
    }
}
