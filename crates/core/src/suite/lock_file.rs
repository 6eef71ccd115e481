//! `proctor.lock`: the commits of sources and the digests of extension packages, beside the eval files that name them.
//!
//! Its main type is [`LockFile`]. Every unknown key or value in it is an error: a pin that is not understood would
//! protect nothing.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use proctor_record::problem::{Code, Problem, Problems, WithSpan};

use super::files;
use crate::decode::{Context, Decode, LooseText, Table, record};
use crate::document;
use crate::document::yaml::{key, quoted};

/// The name of the file.
pub const LOCK_FILE: &str = "proctor.lock";

const KIND: &str = "Lock";
const VERSION: &str = "1";

const HEADING: &str = "\
# The exact commits of sources and the exact extension packages. Written by Proctor; commit it, and review it like code.
# `proctor sources update` and `proctor extensions fetch --update` change it.
";

/// The pins for the eval files of a folder.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LockFile {
    sources: Vec<SourcePin>,
    extensions: Vec<ExtensionPin>,
}

/// The commit of a source.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct SourcePin {
    /// The repository and the reference as the eval file has them.
    pub repo: String,
    pub reference: Option<String>,
    /// The full id of the commit.
    pub commit: String,
    /// The digest over its files.
    pub tree: String,
}

/// The release of an extension package.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ExtensionPin {
    /// The package as the eval file has it.
    pub package: String,
    /// The tag of the release.
    pub release: String,
    /// The digests by platform, such as `linux-amd64`.
    pub files: BTreeMap<String, ProgramPin>,
}

/// The digests of a package for one platform.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ProgramPin {
    /// The digest of the archive.
    pub archive: String,
    /// The digest of the program in it.
    pub program: String,
    /// Who signed the archive.
    pub signer: Option<String>,
}

impl ProgramPin {
    /// Whether two pins are of the same archive and program.
    pub fn is_same_program(&self, other: &Self) -> bool {
        (&self.archive, &self.program) == (&other.archive, &other.program)
    }
}

record! {
    /// The file as written.
    struct LockFileText {
        "kind" => kind: WithSpan<String>,
        "version" => version: WithSpan<LooseText>,
        "sources" => sources: Vec<SourcePinText>,
        "extensions" => extensions: Vec<ExtensionPinText>,
    }
}

record! {
    /// The pin of a source as written.
    struct SourcePinText {
        "repo" => repo: WithSpan<String>,
        "ref" => reference: Option<LooseText>,
        "commit" => commit: WithSpan<LooseText>,
        "tree" => tree: WithSpan<LooseText>,
    }
}

record! {
    /// The pin of an extension package as written.
    struct ExtensionPinText {
        "package" => package: WithSpan<String>,
        "release" => release: WithSpan<LooseText>,
        "files" => files: Table<ProgramPinText>,
    }
}

record! {
    /// The digests for one platform as written.
    struct ProgramPinText {
        "archive" => archive: WithSpan<LooseText>,
        "program" => program: WithSpan<LooseText>,
        "signer" => signer: Option<LooseText>,
    }
}

impl SourcePin {
    /// The first characters of the commit, for people.
    pub fn short(&self) -> &str {
        short(&self.commit)
    }
}

/// The first 12 characters of a commit, for people.
pub fn short(commit: &str) -> &str {
    commit.get(..12).unwrap_or(commit)
}

/// Whether this is the full id of a commit.
pub fn is_commit(text: &str) -> bool {
    matches!(text.len(), 40 | 64) && text.chars().all(|c| matches!(c, '0'..='9' | 'a'..='f'))
}

fn is_digest(text: &str) -> bool {
    text.strip_prefix("sha256:")
        .is_some_and(|hex| hex.len() == 64 && is_commit(hex))
}

impl LockFile {
    /// The path of the lock file for an eval file.
    pub fn path_for(eval_file: &Path) -> PathBuf {
        eval_file.with_file_name(LOCK_FILE)
    }

    pub fn source(&self, repo: &str, reference: Option<&str>) -> Option<&SourcePin> {
        self.sources
            .iter()
            .find(|pin| pin.repo == repo && pin.reference.as_deref() == reference)
    }

    pub fn extension(&self, package: &str) -> Option<&ExtensionPin> {
        self.extensions.iter().find(|pin| pin.package == package)
    }

    /// Adds the pin of a source, in place of an earlier one.
    pub fn pin_source(&mut self, pin: SourcePin) {
        let is_same =
            |known: &SourcePin| known.repo == pin.repo && known.reference == pin.reference;
        self.sources.retain(|known| !is_same(known));
        self.sources.push(pin);
        self.sources.sort();
    }

    /// Adds the pin of an extension package, in place of an earlier one. The platforms of the same release stay.
    pub fn pin_extension(&mut self, mut pin: ExtensionPin) {
        let at = self
            .extensions
            .iter()
            .position(|known| known.package == pin.package);
        if let Some(known) = at.map(|at| self.extensions.remove(at))
            && known.release == pin.release
        {
            for (platform, program) in known.files {
                pin.files.entry(platform).or_insert(program);
            }
        }
        self.extensions.push(pin);
        self.extensions.sort();
    }

    /// Loads the file; a missing file pins nothing. If it returns `None`, it has reported an error.
    pub fn load(path: &Path, problems: &mut Problems) -> Option<Self> {
        if let Err(error) = path.symlink_metadata()
            && error.kind() == io::ErrorKind::NotFound
        {
            return Some(Self::default());
        }
        let source = match files::read(path) {
            Ok(source) => source,
            Err(problem) => {
                problems.push(problem);
                return None;
            }
        };
        let mut own = Problems::default();
        let document = document::parse(&source, &mut own);
        let shared = RefCell::new(own);
        let read = document.and_then(|document| {
            let cx = Context::new(source, &shared);
            LockFileText::decode(&document.root, &cx).map(|file| Self::read(&file, &cx))
        });
        let mut own = shared.into_inner();
        own.promote_all();
        let is_sound = !own.has_errors();
        problems.append(own);
        read.filter(|_| is_sound)
    }

    fn read(file: &LockFileText, cx: &Context<'_>) -> Self {
        if file.kind.value != KIND {
            let found = &file.kind.value;
            let message = format!("expected a file of kind `{KIND}`, found `{found}`");
            cx.report(file.kind.span, Problem::error(Code::Kind, message));
        } else if file.version.value.0 != VERSION {
            let message = format!("unsupported version `{}`", file.version.value.0);
            let problem = Problem::error(Code::Value, message);
            cx.report(file.version.span, problem.hint("use a newer Proctor"));
        }
        let mut lock = Self::default();
        for text in &file.sources {
            let pin = SourcePin {
                repo: text.repo.value.clone(),
                reference: text.reference.as_ref().map(|text| text.0.clone()),
                commit: checked(&text.commit, is_commit, "the full id of a commit", cx),
                tree: checked(&text.tree, is_digest, DIGEST, cx),
            };
            if lock.source(&pin.repo, pin.reference.as_deref()).is_some() {
                twice(&text.repo, cx);
            }
            lock.sources.push(pin);
        }
        for text in &file.extensions {
            let files = text.files.iter().map(|(platform, files)| {
                let pin = ProgramPin {
                    archive: checked(&files.archive, is_digest, DIGEST, cx),
                    program: checked(&files.program, is_digest, DIGEST, cx),
                    signer: files.signer.as_ref().map(|text| text.0.clone()),
                };
                (platform.value.clone(), pin)
            });
            let pin = ExtensionPin {
                package: text.package.value.clone(),
                release: checked(&text.release, super::is_release, "the tag of a release", cx),
                files: files.collect(),
            };
            if lock.extension(&pin.package).is_some() {
                twice(&text.package, cx);
            }
            lock.extensions.push(pin);
        }
        lock
    }

    /// The text of the file. The same pins always give the same text.
    pub fn render(&self) -> String {
        let mut out = format!("{HEADING}kind: {KIND}\nversion: {VERSION}\n");
        if !self.sources.is_empty() {
            out.push_str("sources:\n");
        }
        for pin in &self.sources {
            out.push_str(&format!("  - repo: {}\n", quoted(&pin.repo)));
            if let Some(reference) = &pin.reference {
                out.push_str(&format!("    ref: {}\n", quoted(reference)));
            }
            out.push_str(&format!("    commit: {}\n", quoted(&pin.commit)));
            out.push_str(&format!("    tree: {}\n", quoted(&pin.tree)));
        }
        if !self.extensions.is_empty() {
            out.push_str("extensions:\n");
        }
        for pin in &self.extensions {
            out.push_str(&format!("  - package: {}\n", quoted(&pin.package)));
            out.push_str(&format!("    release: {}\n", quoted(&pin.release)));
            out.push_str("    files:\n");
            for (platform, program) in &pin.files {
                out.push_str(&format!("      {}:\n", key(platform)));
                out.push_str(&format!("        archive: {}\n", quoted(&program.archive)));
                out.push_str(&format!("        program: {}\n", quoted(&program.program)));
                if let Some(signer) = &program.signer {
                    out.push_str(&format!("        signer: {}\n", quoted(signer)));
                }
            }
        }
        out
    }
}

const DIGEST: &str = "`sha256:` and 64 hexadecimal digits";

fn checked(
    text: &WithSpan<LooseText>,
    is_valid: impl Fn(&str) -> bool,
    expected: &str,
    cx: &Context<'_>,
) -> String {
    let found = &text.value.0;
    if !is_valid(found) {
        let message = format!("expected {expected}, found `{found}`");
        cx.report(text.span, Problem::error(Code::Value, message));
    }
    found.clone()
}

/// A merge can leave two pins, of which only one would count.
fn twice(text: &WithSpan<String>, cx: &Context<'_>) {
    let message = format!("`{}` is pinned twice", text.value);
    cx.report(text.span, Problem::error(Code::Conflict, message));
}

#[cfg(test)]
mod tests {
    use super::*;

    const COMMIT: &str = "0123456789abcdef0123456789abcdef01234567";

    fn lock() -> LockFile {
        let digest = |c: char| format!("sha256:{}", c.to_string().repeat(64));
        let mut lock = LockFile::default();
        for (repo, reference) in [("../b: \"c\"\u{202e}", None), ("https://h/a", Some("1.0"))] {
            lock.pin_source(SourcePin {
                repo: repo.to_owned(),
                reference: reference.map(str::to_owned),
                commit: COMMIT.to_owned(),
                tree: digest('a'),
            });
        }
        let program = ProgramPin {
            archive: digest('b'),
            program: digest('c'),
            signer: Some("https://github.com/o/r/x@v1".to_owned()),
        };
        lock.pin_extension(ExtensionPin {
            package: "https://github.com/o/r".to_owned(),
            release: "v1".to_owned(),
            files: [("linux-amd64".to_owned(), program)].into(),
        });
        lock
    }

    fn read(text: &str) -> Result<LockFile, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(LOCK_FILE);
        std::fs::write(&path, text).unwrap();
        let mut problems = Problems::default();
        let read = LockFile::load(&path, &mut problems);
        let found: Vec<String> = problems.iter().map(|p| p.message.clone()).collect();
        assert_eq!(read.is_none(), problems.has_errors(), "{found:?}");
        read.ok_or_else(|| found.join("\n"))
    }

    #[test]
    fn what_is_written_is_read_back() {
        assert_eq!(read(&lock().render()).unwrap(), lock());
        assert_eq!(
            read(&LockFile::default().render()).unwrap(),
            LockFile::default()
        );
        let mut problems = Problems::default();
        let missing = LockFile::load(Path::new("/no/such/proctor.lock"), &mut problems);
        assert_eq!(missing, Some(LockFile::default()));
    }

    #[test]
    fn a_file_that_is_not_understood_pins_nothing() {
        let good = lock().render();
        for (from, to, expected) in [
            (
                "kind: Lock",
                "kind: Eval",
                "expected a file of kind `Lock`, found `Eval`",
            ),
            ("version: 1", "version: 2", "unsupported version `2`"),
            ("commit:", "comit:", "unknown key `comit`"),
            (
                COMMIT,
                "0123456789",
                "expected the full id of a commit, found `0123456789`",
            ),
            (
                COMMIT,
                "../../../../../../../../../../../../../x",
                "expected the full id of a commit",
            ),
            (
                "sha256:bbbb",
                "sha1:bbbb",
                "expected `sha256:` and 64 hexadecimal digits",
            ),
            (
                "release: \"v1\"",
                "release: \"../v1\"",
                "expected the tag of a release",
            ),
            (
                "\"https://h/a\"\n    ref: \"1.0\"",
                "\"../b: \\\"c\\\"\\u202e\"",
                "is pinned twice",
            ),
            ("sources:", "sources: [", ""),
        ] {
            let text = good.replacen(from, to, 1);
            assert_ne!(text, good, "{from}");
            let found = read(&text).unwrap_err();
            assert!(found.contains(expected), "{to}: {found}");
        }
    }

    #[test]
    fn a_new_release_drops_the_digests_of_the_old_one() {
        let mut lock = lock();
        let mac = |release: &str| ExtensionPin {
            package: "https://github.com/o/r".to_owned(),
            release: release.to_owned(),
            files: [(
                "darwin-arm64".to_owned(),
                ProgramPin {
                    archive: "x".to_owned(),
                    program: "y".to_owned(),
                    signer: None,
                },
            )]
            .into(),
        };
        lock.pin_extension(mac("v1"));
        let files = |lock: &LockFile| {
            lock.extension("https://github.com/o/r")
                .unwrap()
                .files
                .len()
        };
        assert_eq!(files(&lock), 2);
        lock.pin_extension(mac("v2"));
        assert_eq!(files(&lock), 1);
    }
}
