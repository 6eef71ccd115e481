//! Runs the real binary, and shows all that came of it.

use std::ffi::OsStr;
use std::fmt;
use std::path::Path;
use std::process::Command;

/// The binary with arguments, in an environment without colours or servers.
pub fn proctor<S: AsRef<OsStr>>(args: impl IntoIterator<Item = S>) -> Proctor {
    let mut command = Command::new(env!("CARGO_BIN_EXE_proctor"));
    command.args(args);
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("MCP_") {
            command.env_remove(name);
        }
    }
    // Without a locale, the output is UTF-8.
    for name in ["LC_ALL", "LC_CTYPE", "LANG"] {
        command.env_remove(name);
    }
    command
        .env_remove("CLICOLOR_FORCE")
        .env_remove("PROCTOR_TEST_UNSET");
    Proctor(command)
}

pub struct Proctor(Command);

impl Proctor {
    pub fn current_dir(mut self, folder: impl AsRef<Path>) -> Self {
        self.0.current_dir(folder);
        self
    }

    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.0.env(name, value);
        self
    }

    pub fn output(mut self) -> Output {
        let output = self.0.output().expect("proctor starts");
        Output {
            code: output.status.code(),
            stdout: String::from_utf8(output.stdout).expect("stdout is UTF-8"),
            stderr: String::from_utf8(output.stderr).expect("stderr is UTF-8"),
        }
    }
}

/// Writes files into a folder.
pub fn write_files(folder: &Path, files: &[(&str, &str)]) {
    for (name, text) in files {
        let path = folder.join(name);
        let parent = path.parent().expect("a file is in a folder");
        std::fs::create_dir_all(parent).expect("the folder can be made");
        std::fs::write(path, text).expect("the file can be written");
    }
}

pub struct Output {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl fmt::Display for Output {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.code {
            Some(code) => writeln!(f, "exit: {code}")?,
            None => writeln!(f, "exit: by a signal")?,
        }
        writeln!(f, "--- stdout\n{}--- stderr\n{}", self.stdout, self.stderr)
    }
}
