//! The folders of an external agent: an empty working folder and an empty home.
//!
//! Its main type is [`AgentFolders`].

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use proctor_contain::scratch::Scratch;

/// A working folder and a home, which are removed on drop.
#[derive(Debug)]
pub(crate) struct AgentFolders {
    root: Option<Scratch>,
    pub(crate) folder: PathBuf,
    pub(crate) home: PathBuf,
    /// A temporary folder, since some agents leave files in the user's.
    pub(crate) temporary: PathBuf,
}

impl AgentFolders {
    pub(crate) fn new() -> io::Result<Self> {
        let root = Scratch::new()?;
        let (folder, home) = (root.folder("work")?, root.folder("home")?);
        let temporary = root.folder("tmp")?;
        Ok(Self {
            root: Some(root),
            folder,
            home,
            temporary,
        })
    }

    /// The home and the temporary folder.
    pub(crate) fn homes(&self) -> (&Path, &Path) {
        (&self.home, &self.temporary)
    }

    /// Copies skills into the folder. A source is one skill, or a folder of skills.
    pub(crate) fn mount(&self, sources: &[PathBuf], at: &str) -> io::Result<()> {
        let target = self.folder.join(at);
        for source in sources {
            match (source.join("SKILL.md").is_file(), source.file_name()) {
                (true, Some(name)) => copy(source, &target.join(name))?,
                _ => copy(source, &target)?,
            }
        }
        Ok(())
    }

    /// Removes everything and waits until it is gone.
    pub(crate) async fn clear(mut self) {
        if let Some(root) = self.root.take() {
            // A panic in the task only leaves a folder behind.
            let _ = tokio::task::spawn_blocking(move || drop(root)).await;
        }
    }
}

fn copy(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let (from, to) = (entry.path(), to.join(entry.file_name()));
        if fs::metadata(&from)?.is_dir() {
            copy(&from, &to)?;
        } else {
            fs::copy(&from, &to)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn skills_are_mounted_one_by_one_and_by_the_folder() {
        let sources = tempfile::tempdir().unwrap();
        let write = |name: &str| {
            let path = sources.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, name).unwrap();
        };
        write("one/SKILL.md");
        write("one/deep/extra.md");
        write("many/two/SKILL.md");
        let stage = AgentFolders::new().unwrap();
        let paths = [sources.path().join("one"), sources.path().join("many")];
        stage.mount(&paths, ".x/skills").unwrap();
        for (name, text) in [
            ("one/SKILL.md", "one/SKILL.md"),
            ("one/deep/extra.md", "one/deep/extra.md"),
            ("two/SKILL.md", "many/two/SKILL.md"),
        ] {
            let path = stage.folder.join(".x/skills").join(name);
            assert_eq!(fs::read_to_string(path).unwrap(), text);
        }
        let root = stage.folder.parent().unwrap().to_owned();
        drop(stage);
        assert!(!root.exists());
    }
}
