//! Every complete example of the documents works as printed.
//!
//! A file is complete if it has a `kind`, `mcpServers` or `profiles`; it starts with `# NAME`, or has the comment
//! `<!-- file: NAME -->` before it. A block of shell commands is run, unless the comment `<!-- not run: REASON -->` is
//! before it. It must succeed, or end with N if the comment has `exit: N`. It runs beside the suite of `init`; with
//! `with files` in the comment, the files of its document are there too.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::super::proctor::{proctor, write_files};

/// A fenced block of a document.
struct Example {
    /// The document and the line where the block starts.
    place: String,
    /// The word behind the fence.
    language: String,
    /// The comment before it, without its marks.
    comment: Option<String>,
    text: String,
}

impl Example {
    fn is_file(&self) -> bool {
        let is_key = |line: &str| {
            ["kind:", "mcpServers:", "profiles:"]
                .iter()
                .any(|key| line.starts_with(key))
        };
        match self.language.as_str() {
            "yaml" => self.text.lines().any(is_key),
            "json" => self.text.contains("\"mcpServers\""),
            _ => false,
        }
    }

    fn has_comment(&self, start: &str) -> bool {
        let comment = self.comment.as_deref();
        comment.is_some_and(|comment| comment.starts_with(start))
    }

    /// The exit code that the commands must end with.
    fn exit_code(&self) -> i32 {
        let comment = self.comment.as_deref().unwrap_or_default();
        let code = comment.split("exit: ").nth(1);
        code.map_or(0, |code| code.parse().expect("an exit code"))
    }

    /// The name of the file that it shows.
    fn name(&self) -> Option<&str> {
        let comment = self
            .comment
            .as_deref()
            .and_then(|c| c.strip_prefix("file: "));
        let first = self
            .text
            .lines()
            .next()
            .and_then(|line| line.strip_prefix("# "));
        comment.or(first).filter(|name| !name.contains(' '))
    }
}

fn docs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs")
}

/// The documents and the README, with their examples.
fn documents() -> Vec<(String, Vec<Example>)> {
    let mut documents = Vec::new();
    for entry in fs::read_dir(docs()).expect("it is there") {
        let path = entry.expect("it is there").path();
        if path.extension().is_some_and(|extension| extension == "md") {
            let name = path
                .file_name()
                .expect("it is there")
                .to_str()
                .expect("it is there")
                .to_owned();
            let examples = examples(&name, &fs::read_to_string(&path).expect("it is there"));
            documents.push((name, examples));
        }
    }
    let readme = fs::read_to_string(docs().join("../README.md")).expect("it is there");
    let readme = examples("../README.md", &readme).into_iter();
    // CI runs the commands that have its mark.
    let readme = readme.filter(|example| !example.has_comment("ci: "));
    documents.push(("README.md".to_owned(), readme.collect()));
    assert!(documents.len() > 10, "{}", documents.len());
    documents
}

/// The documents without the pages on CI and the tutorial, which have tests of their own: their commands depend on each
/// other.
fn pages() -> impl Iterator<Item = (String, Vec<Example>)> {
    let all = documents().into_iter();
    all.filter(|(name, _)| name != "ci.md" && name != "tutorial.md")
}

/// Writes the files of a document into a folder.
pub(super) fn write(document: &str, folder: &Path) {
    let text = fs::read_to_string(docs().join(document)).expect("it is there");
    for example in examples(document, &text) {
        if let ("yaml", Some(name)) = (example.language.as_str(), example.name()) {
            write_files(folder, &[(name, &example.text)]);
        }
    }
}

fn examples(document: &str, text: &str) -> Vec<Example> {
    let mut examples = Vec::new();
    let mut lines = text.lines().enumerate();
    let mut before = "";
    while let Some((at, line)) = lines.next() {
        if let Some(language) = line.strip_prefix("```") {
            let body: Vec<&str> = lines
                .by_ref()
                .map(|(_, line)| line)
                .take_while(|line| *line != "```")
                .collect();
            let comment = before.strip_prefix("<!-- ");
            let comment = comment.and_then(|comment| comment.strip_suffix(" -->"));
            examples.push(Example {
                place: format!("docs/{document}:{}", at + 1),
                language: language.to_owned(),
                comment: comment.map(str::to_owned),
                text: body.join("\n") + "\n",
            });
        }
        before = line;
    }
    examples
}

#[test]
fn every_complete_file_of_the_documents_validates() {
    let mut count = 0;
    for (document, examples) in pages() {
        let folder = tempfile::tempdir().unwrap();
        let files: Vec<&Example> = examples
            .iter()
            .filter(|example| example.is_file())
            .collect();
        let mut names = Vec::new();
        for file in &files {
            let name = file.name();
            let name = name.unwrap_or_else(|| panic!("{}: the file has no name", file.place));
            assert!(!names.contains(&name), "{}: `{name}` twice", file.place);
            write_files(folder.path(), &[(name, &file.text)]);
            names.push(name);
        }
        for (name, file) in names.iter().zip(&files) {
            let checked = proctor(["validate", "--strict", name])
                .current_dir(folder.path())
                .env("CI_TOKEN", "a")
                .output();
            assert_eq!(checked.code, Some(0), "{}: {checked}", file.place);
            count += 1;
        }
        assert_eq!(names.len(), files.len(), "{document}");
    }
    assert!(count >= 12, "{count}");
}

/// A folder with the suite of `init`, and programs that stand for servers from a registry.
fn stage() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("it is there");
    let init = proctor(["init", "."]).current_dir(folder.path()).output();
    assert_eq!(init.code, Some(0), "{init}");
    let config = fs::read_to_string(folder.path().join("mcp-config.yaml")).expect("it is there");
    let binary = env!("CARGO_BIN_EXE_proctor");
    let program = format!("#!/bin/sh\nexec '{binary}' __demo\n");
    let own = format!("#!/bin/sh\nexec '{binary}' \"$@\"\n");
    write_files(
        folder.path(),
        &[
            ("mcp.yaml", &config),
            ("shared-tasks/README", "a checkout"),
            ("bin/npx", &program),
            ("bin/my-server", &program),
            ("bin/proctor", &own),
            // A user's own script, which the pages only name.
            ("install-proctor", "#!/bin/sh\n"),
        ],
    );
    for name in ["bin/npx", "bin/my-server", "bin/proctor", "install-proctor"] {
        use std::os::unix::fs::PermissionsExt;
        let path = folder.path().join(name);
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("it is there");
    }
    folder
}

/// Runs commands as a shell does, and checks that each succeeds.
fn run(folder: &Path, text: &str, place: &str) {
    run_to(0, folder, text, place);
}

/// Runs commands as a shell does, and checks that the first one that fails, or the last one, ends with this code.
fn run_to(code: i32, folder: &Path, text: &str, place: &str) {
    let path = std::env::var("PATH").expect("it is there");
    let path = format!("{}:{path}", folder.join("bin").display());
    let ran = Command::new("sh")
        .args(["-e", "-c", text])
        .current_dir(folder)
        .env("PATH", path)
        .env_remove("CI")
        .output()
        .expect("a shell runs");
    let said = String::from_utf8_lossy(&ran.stderr);
    let told = String::from_utf8_lossy(&ran.stdout);
    assert_eq!(
        ran.status.code(),
        Some(code),
        "{place}: {}\n{text}\n{told}\n{said}",
        ran.status
    );
}

#[test]
fn every_shell_command_of_the_documents_runs() {
    let mut count = 0;
    for (document, examples) in pages() {
        let shell = examples.iter().filter(|example| example.language == "sh");
        for example in shell {
            let comment = example.comment.as_deref().unwrap_or_default();
            if let Some(reason) = comment.strip_prefix("not run: ") {
                assert!(!reason.is_empty(), "{}", example.place);
                continue;
            }
            let folder = stage();
            // Commands name `latest`, and compare with a lock.
            let before = "proctor check eval.yaml >before.txt && \
                          proctor tools --config mcp.yaml --lock surface.lock.json >>before.txt";
            run(folder.path(), before, &example.place);
            if example.text.contains("--lock") {
                fs::remove_file(folder.path().join("surface.lock.json")).unwrap();
            }
            if example.has_comment("with files") {
                write(&document, folder.path());
            }
            let code = example.exit_code();
            run_to(code, folder.path(), &example.text, &example.place);
            count += 1;
        }
    }
    assert!(count >= 5, "{count}");
}

#[test]
fn every_command_of_the_workflows_runs() {
    let text = fs::read_to_string(docs().join("ci.md")).unwrap();
    let commands: Vec<&str> = text
        .lines()
        .map(|line| line.trim_start().trim_start_matches("- "))
        .filter_map(|line| line.strip_prefix("run: "))
        .collect();
    assert!(commands.len() >= 4, "{commands:?}");
    let folder = stage();
    write("ci.md", folder.path());
    let lock = "proctor tools --config mcp.yaml --lock surface.lock.json >lock.txt";
    run(folder.path(), lock, "docs/ci.md");
    for command in commands {
        run(folder.path(), command, "docs/ci.md");
    }
}
